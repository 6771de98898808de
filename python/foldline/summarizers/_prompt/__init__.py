"""Prompts for summaries: message blocks, fences and texts. Private."""
