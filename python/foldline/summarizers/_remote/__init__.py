"""Calls of remote models: requests, answers, failures, the loop they run on. Private."""
