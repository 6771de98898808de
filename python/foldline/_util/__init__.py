"""Helpers without a room of their own: files, threads, checks. Private."""
