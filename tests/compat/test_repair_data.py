"""Every recorded session that its provider would reject becomes valid by repair."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import foldline as fl

PROVIDERS = {
    "openai_chat": "openai",
    "openai_responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}


def recorded(shared: Path) -> list[tuple[str, fl.StoredTranscript]]:
    """All transcripts of a provider's dialect."""
    paths = sorted(path for path in shared.glob("*/*") if path.suffix in (".json", ".jsonl", ".traj"))
    found = [(path.name, each) for path in paths for each in fl.read(path, on_problem=lambda _: None)]
    return [(name, each) for name, each in found if each.format in PROVIDERS]


def test_every_invalid_session_is_repaired(shared: Path) -> None:
    """Valid sessions come back unchanged; no input is modified."""
    rows: list[tuple[str, str, int, dict[str, int], dict[str, int]]] = []
    transcripts = recorded(shared)
    for name, transcript in transcripts:
        provider, messages = PROVIDERS[transcript.format], transcript.messages
        problems = Counter(problem.code for problem in fl.validate(messages, provider))
        before = copy.deepcopy(messages) if problems else None
        repaired = fl.repair(messages, provider)
        assert repaired.problems == [] == fl.validate(repaired.messages, provider), name
        assert bool(repaired) == bool(problems)
        if not problems:
            assert all(new is old for new, old in zip(repaired.messages, messages, strict=True))
            continue
        assert messages == before
        assert not fl.repair(repaired.messages, provider)
        actions = Counter(action.code for action in repaired.actions)
        rows.append((name, provider, len(messages), dict(problems), dict(actions)))
    for row in rows:
        print(*row, sep=" | ")
    assert len(transcripts) >= 450
    assert len(rows) >= 10


def test_every_session_alternates_after_repair(shared: Path) -> None:
    """For strict chat templates; a fold of alternating messages alternates too."""
    strict: dict[str, Any] = {"alternate": True, "single_system": True}
    for name, transcript in recorded(shared):
        provider = PROVIDERS[transcript.format]
        repaired = fl.repair(transcript.messages, provider, **strict)
        assert repaired.problems == [] == fl.validate(repaired.messages, provider, **strict), name
        assert not fl.repair(repaired.messages, provider, **strict)
        for keep in (fl.KeepMessages(5), fl.KeepTokens(2_000)):
            plan = fl.plan(repaired.messages, keep, counter="chars/4", format=transcript.format)
            folded = plan.apply(repaired.messages, "What came before." if plan.cut else None, alternate=True)
            assert fl.validate(folded, provider, **strict) == [], name
