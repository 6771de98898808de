"""Prompts for summaries: their parts, fences and texts. Private."""
