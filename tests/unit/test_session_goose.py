"""`read`: sessions of goose, as `goose session export` writes them and as older lines after a header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foldline.cli import main
from unit.shelf import Shelf, lines

Dict = dict[str, Any]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def message(role: str, *parts: Dict, **more: Any) -> Dict:
    return {"id": f"m-{role}", "role": role, "created": 1, "content": list(parts)} | more


def text(words: str, **more: Any) -> Dict:
    return {"type": "text", "text": words} | more


def request(id: str = "c1", **more: Any) -> Dict:
    value = {"name": "developer__shell", "arguments": {"command": "ls"}}
    return {"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": value} | more}


def response(value: Any, id: str = "c1") -> Dict:
    return {"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}}


def call(id: str = "c1") -> Dict:
    return {"type": "tool_use", "id": id, "name": "developer__shell", "input": {"command": "ls"}}


def result(content: Any, id: str = "c1", **more: Any) -> Dict:
    return {"type": "tool_result", "tool_use_id": id, "content": content} | more


SESSION = {"id": "20260101_1", "working_dir": "/src", "name": "t", "message_count": 2}
HEADER = {"working_dir": "/src", "description": "t", "message_count": 2, "total_tokens": None}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
FOR_MODEL, FOR_USER = {"audience": ["assistant"]}, {"audience": ["user"], "priority": 0.0}

#: A message, and its role and content in the transcript.
CASES: dict[str, tuple[Dict, tuple[str, list[Dict]]]] = {
    "a text": (message("user", text("Go.")), ("user", [text("Go.")])),
    "a call": (message("assistant", text("I look."), request()), ("assistant", [text("I look."), call()])),
    "a result": (message("user", response([text("a.py")])), ("user", [result([text("a.py")])])),
    "a result of newer versions": (
        message("user", response({"content": [text("a.py")], "isError": False})),
        ("user", [result([text("a.py")])]),
    ),
    "a result that is an error of the tool": (
        message("user", response({"content": [text("no")], "isError": True})),
        ("user", [result([text("no")], is_error=True)]),
    ),
    "a call that failed": (
        message("user", {"type": "toolResponse", "id": "c1", "toolResult": {"status": "error", "error": "gone"}}),
        ("user", [result("gone", is_error=True)]),
    ),
    "a result with a copy for the user": (
        message("user", response([text("a.py", annotations=FOR_MODEL), text("a.py", annotations=FOR_USER)])),
        ("user", [result([text("a.py")])]),
    ),
    "a result for the user alone": (
        message("user", response([text("a.py", annotations=FOR_USER)])),
        ("user", [result([text("a.py")])]),
    ),
    "a resource": (
        message("user", response([{"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}])),
        ("user", [result([text("x")])]),
    ),
    "pictures": (
        message("user", {"type": "image", "data": "QUJD", "mimeType": "image/png"}),
        ("user", [PICTURE]),
    ),
    "thinking": (
        message("assistant", {"type": "thinking", "thinking": "Hm.", "signature": "s"}, text("Yes.")),
        ("assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, text("Yes.")]),
    ),
    "a call that goose could not read": (
        message("assistant", {"type": "toolRequest", "id": "c1", "toolCall": {"status": "error", "error": "bad"}}),
        ("assistant", [{"type": "tool_use", "id": "c1", "name": "unreadable_call", "input": {"error": "bad"}}]),
    ),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("form", ["export", "lines"])
def test_parts_become_blocks(shelf: Shelf, form: str, given: Dict, expected: tuple[str, list[Dict]]) -> None:
    data = json.dumps(SESSION | {"conversation": [given]}).encode() if form == "export" else lines([HEADER, given])
    transcript = shelf.read_one(data, "session.json")
    assert [(each["role"], each["content"]) for each in transcript.messages] == [expected]
    assert (transcript.format, transcript.meta["session_format"]) == ("anthropic", "goose")
    assert transcript.id == ("20260101_1" if form == "export" else "session")
    assert shelf.problems == []


def test_rows_of_the_database_are_sessions(shelf: Shelf) -> None:
    def row(session: str, role: str, *parts: Dict, **metadata: bool) -> Dict:
        texts = {"content_json": json.dumps(parts), "metadata_json": json.dumps(metadata)}
        return {"id": 1, "session_id": session, "role": role, "created_timestamp": 1} | texts

    rows = [
        row("a", "user", text("Go."), agentVisible=False),
        row("b", "user", text("Stop.")),
        row("a", "assistant", request(), userVisible=False),
        row("a", "user", response([text("a.py")])),
        row("a", "user") | {"content_json": "[{"},
        7,
    ]
    first, second, third = shelf.read(json.dumps(rows).encode(), "rows.json")
    assert [each.id for each in (first, second, third)] == ["a", "b", "rows"]
    assert [each["content"] for each in first.messages] == [[text("Go.")], [call()], [result([text("a.py")])]]
    assert (first.meta["compact_boundaries"], first.meta["summaries"]) == ([1], [1])
    assert first.meta["skipped_kinds"] == {"user": 1}
    assert (second.messages, third.messages) == ([{"role": "user", "content": [text("Stop.")]}], [])
    assert [(problem.code, problem.index) for problem in shelf.problems] == [("not_an_object", 0)]


def test_messages_that_a_compaction_hid_stay_before_a_boundary(shelf: Shelf) -> None:
    hidden = {"metadata": {"userVisible": True, "agentVisible": False}}
    summary = {"metadata": {"userVisible": False, "agentVisible": True}}
    conversation = [
        message("user", text("Go."), **hidden),
        message("assistant", text("Done."), **hidden),
        message("user", text("So far: done."), **summary),
        message("user", text("More.")),
    ]
    transcript = shelf.read_one(json.dumps(SESSION | {"conversation": conversation}).encode(), "session.json")
    assert [each["content"][0]["text"] for each in transcript.messages] == ["Go.", "Done.", "So far: done.", "More."]
    assert (transcript.meta["compact_boundaries"], transcript.meta["summaries"]) == ([2], [2])


def test_what_has_no_message_is_counted_or_named(shelf: Shelf) -> None:
    confirmation = {"type": "toolConfirmationRequest", "id": "c1", "toolName": "f", "arguments": {}, "prompt": None}
    notice = {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compacting."}
    values = [
        HEADER,
        message("user", confirmation),
        message("assistant", notice, {"type": "hologram", "text": "?"}),
        {},
    ]
    transcript = shelf.read_one(lines([*values, message("user", text("Go."))]))
    assert [each["content"] for each in transcript.messages] == [[text("Go.")]]
    assert transcript.meta["unread"] == [{"entry": 2, "reason": "notice"}, {"entry": 2, "reason": "unknown_kind"}]
    assert shelf.told()[0][0] == "unknown_record"


def test_the_command_line_reads_sessions(shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [message("user", text(f"Step {i}. " + "word " * 60)) for i in range(6)]
    shelf.put(json.dumps(SESSION | {"conversation": turns}).encode(), "in/export.json")
    shelf.put(lines([HEADER, *turns]), "in/lines.jsonl")
    path = str(shelf.folder / "in")
    assert main(["count", path, "--json"]) == 0
    assert main(["check", path]) == 0
    assert main(["compact", path, "--out", str(tmp_path / "out"), "--keep-turns", "2"]) == 0
    assert "Traceback" not in capsys.readouterr().err
    for name in ("export.json", "lines.jsonl"):
        record = json.loads((tmp_path / "out" / name).read_text("utf-8"))
        assert (record["status"], len(record["messages"]), record["format"]) == ("folded", 3, "anthropic")
