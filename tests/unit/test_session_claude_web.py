"""`read`: sessions of Claude Code on the web, its printed stream, and entries with commands and notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.shelf import Shelf, lines

Dict = dict[str, Any]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def entry(kind: str, content: Any, **more: Any) -> Dict:
    return {"type": kind, "message": {"role": kind, "content": content}} | more


def streamed(kind: str, content: Any, **more: Any) -> Dict:
    """A line that Claude Code prints; those of older versions have no id."""
    return entry(kind, content, session_id="s", parent_tool_use_id=None) | more


def text(words: str) -> list[Dict]:
    return [{"type": "text", "text": words}]


CALL = [{"type": "tool_use", "id": "c1", "name": "Task", "input": {"prompt": "Look."}}]
RESULT = [{"type": "tool_result", "tool_use_id": "c1", "content": "Found."}]
INIT = {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"], "cwd": "/src"}
GO = {"role": "user", "content": "Go."}
DONE = {"role": "assistant", "content": text("Done.")}


def end(words: str) -> Dict:
    return {"type": "result", "subtype": "success", "session_id": "s", "result": words, "num_turns": 1}


def test_a_session_of_the_web_is_one_document(shelf: Shelf) -> None:
    entries = [entry("user", "Go.", timestamp="t"), entry("assistant", text("Done.")), {"type": "env_manager_log"}]
    transcript = shelf.read_one(json.dumps({"loglines": entries, "title": "t"}).encode(), "session.json")
    assert transcript.messages == [GO, DONE]
    assert (transcript.format, transcript.meta["session_format"]) == ("anthropic", "claude_code")
    assert transcript.meta["skipped_kinds"] == {"env_manager_log": 1}
    assert shelf.problems == []


def test_the_printed_stream_is_a_session_with_its_sub_agents(shelf: Shelf) -> None:
    main, agent = shelf.read(
        lines(
            [
                INIT,
                streamed("user", "Go."),
                streamed("assistant", CALL),
                streamed("user", text("Look."), parent_tool_use_id="c1"),
                {"type": "stream_event", "session_id": "s", "event": {"type": "content_block_delta"}},
                streamed("assistant", text("Found."), parent_tool_use_id="c1"),
                streamed("user", RESULT),
                streamed("assistant", text("Done.")),
                end("Done."),
            ]
        )
    )
    assert main.messages == [
        GO, {"role": "assistant", "content": CALL}, {"role": "user", "content": RESULT}, DONE,
    ]  # fmt: skip
    assert (main.id, agent.id) == ("s", "s#c1")
    assert [each["content"] for each in agent.messages] == [text("Look."), text("Found.")]
    assert "unread" not in main.meta
    assert shelf.problems == []


def test_a_result_with_another_text_than_the_last_answer_is_named(shelf: Shelf) -> None:
    values = [INIT, streamed("user", "Go."), streamed("assistant", text("Done.")), end("API Error: overloaded")]
    assert shelf.read_one(lines(values)).meta["unread"] == [{"entry": 3, "reason": "notice"}]


def test_local_commands_and_notices_are_named(shelf: Shelf) -> None:
    system = {"type": "system", "uuid": "x", "sessionId": "s"}
    values = [
        entry("user", "Go.", uuid="u", sessionId="s"),
        system | {"uuid": "a", "subtype": "local_command", "content": "<command-name>/cost</command-name>"},
        system | {"uuid": "b", "subtype": "informational", "content": "A new version is there."},
        system | {"uuid": "c", "subtype": "compact_boundary", "content": "Conversation compacted"},
        system | {"uuid": "d", "subtype": "turn_duration", "durationMs": 3},
    ]
    transcript = shelf.read_one(lines(values))
    assert transcript.meta["unread"] == [{"entry": 1, "reason": "command"}, {"entry": 2, "reason": "notice"}]
    assert transcript.meta["compact_boundaries"] == [1]


@pytest.mark.parametrize("count", [1, 3])
def test_the_printed_stream_folds_in_the_core_as_in_python(shelf: Shelf, count: int) -> None:
    turns = [streamed("user", f"Step {i}. " + "word " * 50) for i in range(4)]
    path = shelf.put(lines([INIT, *turns, end("Done.")] * count))
    (transcript,) = fl.read(path, on_problem=shelf.problems.append)
    assert len(transcript.messages) == 4 * count
    assert shelf.problems == []
