"""The four presets over real sessions, through five rounds: nothing is lost, everything is valid, pins are alive."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import foldline as fl

ROOT = Path(__file__).resolve().parents[2]


def script() -> Any:
    import sys

    spec = importlib.util.spec_from_file_location("presets_example", ROOT / "examples" / "presets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look for it
    spec.loader.exec_module(module)
    return module


EXAMPLE = script()


def keeps_its_word(replayed: Any) -> None:
    """What holds for every replay."""
    store, journal = replayed.store, replayed.store.entries
    appended = [entry for entry in journal if entry.kind == "message"]
    assert [entry.message for entry in appended] == replayed.appended
    active = set(store.ids())
    assert {entry.id for entry in appended} <= active | store.compacted_ids()  # I1, over all rounds
    assert active.isdisjoint(store.compacted_ids())
    for done in replayed.rounds:
        result = done.result
        kept = [source for source in result.sources if source is not None]
        assert kept == sorted(set(kept))  # I2
        assert len(result.event.compacted_ids) == done.messages[0] - done.kept  # I1
        assert result.dropped == ()  # I9: everything that is gone went through the summarizer
        assert result.summary
        assert done.is_valid
        assert done.tokens[1] < done.tokens[0]
    assert [done.number for done in replayed.rounds] == list(range(1, len(replayed.rounds) + 1))
    assert replayed.messages == store.messages() == fl.stores.MemoryStore(journal).messages()
    own = {id(message) for message in replayed.appended}
    summaries = [m for i, m in enumerate(replayed.messages) if replayed.metadata.origin(i) == "compacted_synthetic"]
    others = [m for i, m in enumerate(replayed.messages) if replayed.metadata.origin(i) == "original"]
    assert len(summaries) + len(others) == len(replayed.messages)
    assert all(id(message) in own for message in others)  # I2: the caller's own objects
    pinned = [m for i, m in enumerate(replayed.messages) if replayed.metadata.is_pinned(i)]
    assert any(message is replayed.appended[0] for message in pinned)


@pytest.mark.filterwarnings("ignore:the request has:foldline.errors.FoldlineWarning")
@pytest.mark.parametrize("name", EXAMPLE.PRESETS)
@pytest.mark.parametrize("file", ["claude-code-session.jsonl", "pi-session.jsonl"])
def test_five_rounds_over_a_real_session(file: str, name: str) -> None:
    session = next(fl.read(ROOT / "examples" / "data" / file))
    replayed = EXAMPLE.replay(session, name)
    assert len(replayed.rounds) == EXAMPLE.ROUNDS
    keeps_its_word(replayed)


@pytest.mark.filterwarnings("ignore:the request has:foldline.errors.FoldlineWarning")
@pytest.mark.deep
@pytest.mark.parametrize("name", EXAMPLE.PRESETS)
@pytest.mark.parametrize(
    "folder", ["swe-agent", "openai-tau-airline", "codex-rollout", "gemini-cli", "claude-code-entire"]
)
def test_rounds_over_recorded_sessions(shared: Path, folder: str, name: str) -> None:
    """The longest sessions of each kind; short ones have fewer rounds to do."""
    place = shared / folder
    sessions = []
    for path in sorted(place.rglob("*.json*"))[:12]:
        sessions += [each for each in fl.read(path) if len(each.messages) > 30]
    sessions.sort(key=lambda each: len(each.messages), reverse=True)
    rounds = 0
    for session in sessions[:3]:
        replayed = EXAMPLE.replay(session, name)
        keeps_its_word(replayed)
        rounds += len(replayed.rounds)
    assert rounds or not sessions


@pytest.mark.filterwarnings("ignore:the request has:foldline.errors.FoldlineWarning")
def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert EXAMPLE.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(EXAMPLE.PRESETS) * EXAMPLE.ROUNDS
    assert not any("NO" in line for line in lines)
