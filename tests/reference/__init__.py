"""The slow, obvious oracle: counting, rules, planning and validation in plain Python.

Nothing here imports foldline and nothing here is fast. Every function follows a sentence of the design, by
brute force where the sentence is about a largest, smallest or latest something, so that reading checks it.

    model.py      message dicts -> small frozen dataclasses
    counters.py   heuristics, JSON as JavaScript writes it, exact counts from a given text counter
    rules.py      pairing, groups, pins, turns, legal cuts, earlier summaries
    planner.py    every keep, over all legal cuts
    validity.py   what OpenAI Chat and Anthropic reject
    engine.py     the oracle under foldline's public names, to try the property tests on (and to break them)
"""
