"""`read`: tasks of Cline and Roo Code, from the messages that were sent and from the log that the user sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from unit.samples import assistant, user
from unit.shelf import Shelf

Dict = dict[str, Any]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def blocks(*words: str) -> list[Dict]:
    return [{"type": "text", "text": each} for each in words]


def call(id: str = "c1") -> Dict:
    return {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": "a.py"}}


def result(id: str = "c1") -> Dict:
    return {"type": "tool_result", "tool_use_id": id, "content": "x = 1"}


TASK = user(blocks("<task>\nGo.\n</task>", "<environment_details>"), ts=1)
CALL = assistant([*blocks("I look."), call()], ts=2)
RESULT = user([result(), *blocks("<environment_details>")], ts=3)
DONE = assistant(blocks("Done."), ts=4)
REASONING = {
    "role": "assistant",
    "content": [],
    "type": "reasoning",
    "encrypted_content": "gAAA",
    "summary": [],
    "ts": 4,
}

#: Messages of `api_conversation_history.json`; the indices of boundaries and of summaries.
CASES: dict[str, tuple[list[Dict], list[int], list[int]]] = {
    "a task": ([TASK, CALL, RESULT, DONE], [], []),
    "condensed: the summary follows what it hides": (
        [
            TASK | {"condenseParent": "k"},
            CALL | {"condenseParent": "k"},
            RESULT | {"condenseParent": "k"},
            user(blocks("Summary."), ts=5, isSummary=True, condenseId="k"),
            DONE,
        ],
        [3],
        [3],
    ),
    "condensed by an older version: the newest messages follow the summary": (
        [
            TASK,
            DONE | {"condenseParent": "k"},
            assistant("Summary.", ts=5, isSummary=True, condenseId="k"),
            RESULT,
            DONE,
        ],
        [2],
        [2],
    ),
    "condensed twice": (
        [
            TASK | {"condenseParent": "k"},
            user("First.", ts=5, isSummary=True, condenseId="k", condenseParent="l"),
            DONE | {"condenseParent": "l"},
            user("Second.", ts=6, isSummary=True, condenseId="l"),
        ],
        [1, 3],
        [1, 3],
    ),
    "truncated: a marker is no summary": (
        [
            TASK,
            user("[Hidden.]", ts=5, isTruncationMarker=True, truncationId="t"),
            CALL | {"truncationParent": "t"},
            RESULT | {"truncationParent": "t"},
            DONE,
        ],
        [1],
        [],
    ),
    "marked, without times": (
        [user("Go.", condenseParent="k"), user("Summary.", isSummary=True, condenseId="k"), assistant("Done.")],
        [1],
        [1],
    ),
}


@pytest.mark.parametrize(("messages", "boundaries", "summaries"), CASES.values(), ids=CASES)
def test_messages_are_kept_as_recorded(
    shelf: Shelf, messages: list[Dict], boundaries: list[int], summaries: list[int]
) -> None:
    transcript = shelf.read_one(json.dumps(messages).encode(), "api_conversation_history.json")
    assert (transcript.format, transcript.messages) == ("anthropic", messages)
    assert (transcript.meta["session_format"], transcript.meta["entries"]) == ("cline", messages)
    assert (transcript.meta["compact_boundaries"], transcript.meta["summaries"]) == (boundaries, summaries)
    assert shelf.problems == []


def test_the_second_form_of_roo_code_is_a_task_of_the_ai_sdk(shelf: Shelf) -> None:
    called = {"type": "tool-call", "toolCallId": "c1", "toolName": "read_file", "input": {}}
    output = {
        "type": "tool-result",
        "toolCallId": "c1",
        "toolName": "read_file",
        "output": {"type": "text", "value": "x"},
    }
    messages = [
        user("Go.", ts=1, condenseParent="k"),
        user("Summary.", ts=2, isSummary=True, condenseId="k"),
        assistant([called], ts=3),
        {"role": "tool", "content": [output], "ts": 4},
    ]
    transcript = shelf.read_one(
        json.dumps({"version": 2, "messages": messages}).encode(), "api_conversation_history.json"
    )
    assert (transcript.format, transcript.messages) == ("ai_sdk", messages)
    assert (transcript.meta["summaries"], transcript.meta["session_format"]) == ([1], "cline")
    assert fl.analyze(transcript.messages, format=transcript.format).groups[-1] == [2, 3]


def test_a_task_is_named_by_its_folder(shelf: Shelf) -> None:
    for task in ("17", "18"):
        shelf.put(json.dumps([TASK, DONE]).encode(), f"tasks/{task}/api_conversation_history.json")
        shelf.put(json.dumps(LOG).encode(), f"tasks/{task}/ui_messages.json")
    found = list(fl.read(shelf.folder / "tasks", on_problem=shelf.problems.append))
    assert [each.id for each in found] == ["17", "17#log", "18", "18#log"]
    assert shelf.problems == []


def test_encrypted_reasoning_is_counted_and_no_message(shelf: Shelf) -> None:
    transcript = shelf.read_one(json.dumps([TASK, REASONING, DONE]).encode(), "api_conversation_history.json")
    assert transcript.messages == [TASK, DONE]
    assert transcript.meta["skipped_kinds"] == {"reasoning": 1}


@pytest.mark.parametrize(
    ("members", "is_named"),
    [
        ({"encrypted_content": "gA", "summary": []}, False),
        ({"summary": [{"type": "summary_text", "text": "So."}]}, True),
    ],
    ids=["encrypted", "with a text"],
)
def test_reasoning_without_a_message_is_counted(shelf: Shelf, members: Dict, is_named: bool) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "ts": 2} | members
    transcript = shelf.read_one(json.dumps([TASK, reasoning, DONE]).encode(), "api_conversation_history.json")
    assert transcript.messages == [TASK, DONE]
    assert transcript.meta["skipped_kinds"] == {"reasoning": 1}
    assert transcript.meta.get("unread", []) == ([{"entry": 1, "reason": "reasoning"}] if is_named else [])
    assert shelf.problems == []


def test_a_task_is_valid_and_its_calls_are_pairs(shelf: Shelf) -> None:
    transcript = shelf.read_one(json.dumps([TASK, CALL, RESULT, DONE]).encode(), "api_conversation_history.json")
    assert fl.validate(transcript.messages, "anthropic") == []
    plan = fl.plan(transcript.messages, fl.KeepMessages(2), format=transcript.format)
    assert plan.cut == 1


@pytest.mark.parametrize(
    "messages",
    [
        [user("Go."), assistant("Done.")],
        [user("Go.", ts=1), assistant(None, tool_calls=[]), {"role": "tool", "tool_call_id": "a", "content": "x"}],
        [user("Go.", ts="10:02"), assistant("Done.")],
    ],
    ids=["without times", "with a role of another dialect", "with times as texts"],
)
def test_other_lists_of_messages_are_no_task(shelf: Shelf, messages: list[Dict]) -> None:
    transcript = shelf.read_one(json.dumps(messages).encode(), "chat.json")
    assert (transcript.format, transcript.messages) == ("openai_chat", messages)
    assert "session_format" not in transcript.meta


def test_a_damaged_entry_is_a_problem_with_its_index(shelf: Shelf) -> None:
    transcript = shelf.read_one(json.dumps([TASK, DONE | {"isSummary": True}, TASK]).encode(), "task.json")
    assert len(transcript.messages) == 3
    assert shelf.problems == []


# --- ui_messages.json ---------------------------------------------------------------------------------


def say(kind: str, words: str = "", **more: Any) -> Dict:
    return {"ts": 1, "type": "say", "say": kind, "text": words} | more


def ask(kind: str, words: str = "", **more: Any) -> Dict:
    return {"ts": 1, "type": "ask", "ask": kind, "text": words} | more


LOG = [
    say("text", "Go.", images=[]),
    say("api_req_started", '{"request": "Go.", "tokensIn": 3}'),
    say("reasoning", "Hm."),
    say("text", "I look."),
    ask("tool", '{"tool": "readFile", "path": "a.py"}'),
    ask("command", "make"),
    ask("command_output", "ok"),
    say("user_feedback", "Stop.", images=["data:image/png;base64,QUJD"]),
    say("error", "The request failed."),
    say("hologram", "?"),
    say("completion_result", "Done."),
    ask("completion_result"),
]


def test_the_log_gives_what_was_typed_said_and_returned(shelf: Shelf) -> None:
    transcript = shelf.read_one(json.dumps(LOG).encode(), "ui_messages.json")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert transcript.messages == [
        user("Go."),
        assistant("I look."),
        assistant('{"tool": "readFile", "path": "a.py"}'),
        assistant("make"),
        user("ok"),
        user([{"type": "text", "text": "Stop."}, picture]),
        assistant("Done."),
    ]
    assert (transcript.format, transcript.meta["session_format"]) == ("openai_chat", "cline")
    kinds = {"api_req_started": 1, "reasoning": 1, "error": 1, "hologram": 1, "completion_result": 1}
    assert transcript.meta["skipped_kinds"] == kinds
    assert [each["entry"] for each in transcript.meta["unread"]] == [8, 9]
    assert shelf.problems == []


@pytest.mark.parametrize("name", ["api_conversation_history.json", "ui_messages.json"])
def test_the_command_line_reads_tasks(
    shelf: Shelf, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [user(blocks(f"Step {i}. " + "word " * 60), ts=i) for i in range(6)]
    log = [say("text", "Go."), *(say("user_feedback", f"Step {i}. " + "word " * 60) for i in range(6))]
    path = str(shelf.put(json.dumps(turns if name.startswith("api") else log).encode(), name))
    assert main(["count", path, "--json"]) == 0
    assert main(["plan", path, "--keep-turns", "2"]) == 0
    assert main(["compact", path, "--out", str(tmp_path / "out"), "--keep-turns", "2"]) == 0
    assert "Traceback" not in capsys.readouterr().err
    written = json.loads((tmp_path / "out" / name).read_text("utf-8"))
    assert (written[0] if isinstance(written, list) else written)["status"] == "folded"
