"""Calls of remote models: requests, answers, failures, and their event loop. Private."""
