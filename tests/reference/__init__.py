"""The slow, obvious oracle: counting, rules, planning and validation in plain Python.

It does not import foldline and is not fast. Every function follows a sentence of the design, by
brute force if the sentence is about a largest, smallest or latest element, so that reading checks it.

    model.py      message dicts -> small frozen dataclasses
    contents.py   the content of a message: texts, files, unknown parts
    media.py      pictures, documents, sound and video: their sizes and prices
    counters.py   heuristics, JSON as JavaScript writes it, exact counts from a given text counter
    rules.py      pairing, groups, pins, turns, legal cuts, earlier summaries
    planner.py    every keep, over all legal cuts
    validity.py   the problems that OpenAI Chat and Anthropic reject
    engine.py     the oracle under foldline's public names, to try the property tests on (and to break them)
"""
