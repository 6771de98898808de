"""Shared helpers: files, threads, checks. Private."""
