"""`read`: sessions of opencode, from an export, a list of messages, and the storage folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from unit.shelf import Shelf

Dict = dict[str, Any]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def part(kind: str, **more: Any) -> Dict:
    return {"id": f"prt_{kind}", "sessionID": "ses_1", "messageID": "msg", "type": kind} | more


def text(words: str, **more: Any) -> Dict:
    return part("text", text=words, **more)


def tool(id: str = "c1", **state: Any) -> Dict:
    """A call, completed unless the state says otherwise."""
    return part("tool", callID=id, tool="bash", state={"status": "completed", "input": {"command": "ls"}} | state)


def message(role: str, *parts: Dict, id: str = "msg_1", created: int = 1, **info: Any) -> Dict:
    each = {"id": id, "sessionID": "ses_1", "role": role, "time": {"created": created}}
    return {"info": each | info, "parts": list(parts)}


def export(*messages: Dict) -> bytes:
    return json.dumps({"info": {"id": "ses_1", "title": "t"}, "messages": list(messages)}).encode()


def call(id: str = "c1") -> Dict:
    return {"type": "tool_use", "id": id, "name": "bash", "input": {"command": "ls"}}


def result(content: Any, id: str = "c1", **more: Any) -> Dict:
    return {"type": "tool_result", "tool_use_id": id, "content": content} | more


def said(words: str) -> Dict:
    return {"type": "text", "text": words}


PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}

#: Parts of one message of a role, and the messages they give: role and content.
CASES: dict[str, tuple[str, list[Dict], list[tuple[str, list[Dict]]]]] = {
    "a text": ("user", [text("Go.")], [("user", [said("Go.")])]),
    "a text of the program, which the model reads": (
        "user",
        [text("Go."), text("The file.", synthetic=True)],
        [("user", [said("Go."), said("The file.")])],
    ),
    "a call with its result": (
        "assistant",
        [part("step-start"), text("I look."), tool(output="a.py"), part("step-finish", reason="tool-calls")],
        [("assistant", [said("I look."), call()]), ("user", [result("a.py")])],
    ),
    "parallel calls": (
        "assistant",
        [tool("c1", output="a"), tool("c2", output="b")],
        [("assistant", [call("c1"), call("c2")]), ("user", [result("a", "c1"), result("b", "c2")])],
    ),
    "two steps in one message, as older versions write them": (
        "assistant",
        [part("step-start"), tool(output="a"), part("step-start"), text("Done.")],
        [("assistant", [call()]), ("user", [result("a")]), ("assistant", [said("Done.")])],
    ),
    "a failed call": (
        "assistant",
        [tool(status="error", error="no such file")],
        [("assistant", [call()]), ("user", [result("no such file", is_error=True)])],
    ),
    "an interrupted call stays open": ("assistant", [tool(status="running")], [("assistant", [call()])]),
    "a result with a picture": (
        "assistant",
        [tool(output="a", attachments=[part("file", mime="image/png", url="data:image/png;base64,QUJD")])],
        [("assistant", [call()]), ("user", [result([said("a"), PNG])])],
    ),
    "reasoning with a signature": (
        "assistant",
        [part("reasoning", text="Hm.", metadata={"anthropic": {"signature": "s"}})],
        [("assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "s"}])],
    ),
    "a picture and a file of the machine": (
        "user",
        [
            text("Look."),
            part("file", mime="image/png", url="data:image/png;base64,QUJD"),
            part("file", mime="text/plain", url="file:///a.py"),
        ],
        [("user", [said("Look."), PNG])],
    ),
    "a prompt to a sub-agent": ("user", [part("subtask", prompt="Count.", agent="a")], [("user", [said("Count.")])]),
}


@pytest.mark.parametrize(("role", "parts", "expected"), CASES.values(), ids=CASES)
def test_parts_become_blocks(shelf: Shelf, role: str, parts: list[Dict], expected: list[tuple[str, Any]]) -> None:
    transcript = shelf.read_one(export(message(role, *parts)), "export.json")
    assert (transcript.id, transcript.format) == ("ses_1", "anthropic")
    assert [(each["role"], each["content"]) for each in transcript.messages] == expected
    assert transcript.meta["session_format"] == "opencode"
    assert shelf.problems == []


def test_a_compaction_is_a_boundary_before_its_summary(shelf: Shelf) -> None:
    transcript = shelf.read_one(
        export(
            message("user", text("Go.")),
            message("assistant", text("Done.")),
            message("user", part("compaction", auto=True)),
            message("assistant", text("So far: done."), summary=True, finish="stop"),
            message("user", text("More.")),
        ),
        "export.json",
    )
    assert [each["content"][0]["text"] for each in transcript.messages] == ["Go.", "Done.", "So far: done.", "More."]
    assert (transcript.meta["compact_boundaries"], transcript.meta["summaries"]) == ([2], [2])
    assert transcript.meta["skipped_kinds"] == {"user": 1}


def test_what_has_no_message_is_counted_or_named(shelf: Shelf) -> None:
    transcript = shelf.read_one(
        export(
            message("user", text("Go."), text("Tip.", ignored=True)),
            message("assistant", part("step-start"), part("patch", hash="h"), part("hologram", text="?")),
            message("assistant", tool() | {"callID": None}),
        ),
        "export.json",
    )
    assert transcript.meta["unread"] == [{"entry": 0, "reason": "notice"}, {"entry": 1, "reason": "unknown_kind"}]
    kinds = {"assistant": 2, "part/hologram": 1, "part/patch": 1, "part/step-start": 1}
    assert transcript.meta["skipped_kinds"] == kinds
    assert [problem.code for problem in shelf.problems] == ["bad_tool_call"]


def test_a_list_of_messages_is_a_session_too(shelf: Shelf) -> None:
    transcript = shelf.read_one(json.dumps([message("user", text("Go."))]).encode(), "messages.json")
    assert (transcript.id, transcript.format, len(transcript.messages)) == ("ses_1", "anthropic", 1)


# --- The storage folder -------------------------------------------------------------------------------


def store(shelf: Shelf, *messages: Dict, root: str = "storage", session: str = "ses_1") -> Path:
    """Writes messages as opencode stores them; returns the folder."""
    for each in messages:
        info = each["info"]
        shelf.put(json.dumps(info).encode(), f"{root}/message/{session}/{info['id']}.json")
        for at, one in enumerate(each["parts"]):
            shelf.put(json.dumps(one).encode(), f"{root}/part/{info['id']}/prt_{at}.json")
    shelf.put(json.dumps({"id": session, "title": "t"}).encode(), f"{root}/session/p/{session}.json")
    return shelf.folder / root


GO = message("user", text("Go."), id="msg_2", created=1)
DONE = message("assistant", part("step-start"), tool(output="a"), text("Done."), id="msg_1", created=2)


def test_the_storage_folder_gives_what_the_export_gives(shelf: Shelf) -> None:
    folder = store(shelf, GO, DONE)
    (stored,) = fl.read(folder, on_problem=shelf.problems.append)
    exported = shelf.read_one(export(GO, DONE), "export.json")
    assert stored.messages == exported.messages
    assert (stored.id, stored.meta["info"]["title"], shelf.problems) == ("ses_1", "t", [])


def test_each_session_of_a_storage_folder_is_read_in_any_folder_and_alone(shelf: Shelf) -> None:
    store(shelf, GO)
    folder = store(shelf, GO, session="ses_2")
    assert [each.id for each in fl.read(shelf.folder)] == ["ses_1", "ses_1"]
    assert [Path(each.meta["path"]).name for each in fl.read(shelf.folder)] == ["ses_1", "ses_2"]
    assert len(list(fl.read(folder / "message" / "ses_2"))) == 1


def test_a_bad_file_of_the_storage_folder_is_a_problem_with_its_path(shelf: Shelf) -> None:
    folder = store(shelf, GO, DONE)
    bad = shelf.put(b'{"id": ', "storage/part/msg_1/prt_9.json")
    odd = shelf.put(b"[]", "storage/part/msg_1/prt_8.json")
    (transcript,) = fl.read(folder, on_problem=shelf.problems.append)
    assert [(problem.code, problem.path) for problem in shelf.problems] == [
        ("not_an_object", str(odd)),
        ("bad_json", str(bad)),
    ]
    assert len(transcript.messages) == 3


def test_a_file_of_the_storage_folder_alone_is_refused_by_name(shelf: Shelf) -> None:
    for value in (GO["info"], text("Go.")):
        assert shelf.read(json.dumps(value).encode(), "one.json") == []
    assert {problem.code for problem in shelf.problems} == {"unsupported_format"}
    assert all("storage folder" in problem.detail for problem in shelf.problems)


@pytest.mark.parametrize("place", ["storage", "storage/message/ses_1", "export.json"])
def test_the_command_line_reads_sessions(
    shelf: Shelf, place: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    turns = [message("user", text(f"Step {i}. " + "word " * 80), id=f"msg_{i:03}", created=i) for i in range(8)]
    store(shelf, *turns)
    shelf.put(export(*turns), "export.json")
    path = str(shelf.folder / place)
    assert main(["count", path, "--json"]) == 0
    assert main(["check", path]) == 0
    assert main(["compact", path, "--out", str(tmp_path / "out"), "--keep-turns", "2"]) == 0
    assert "Traceback" not in capsys.readouterr().err
    (written,) = (each for each in (tmp_path / "out").rglob("*.json*") if ".foldline" not in each.parts)
    record = json.loads(written.read_text("utf-8").splitlines()[0])
    assert record["status"] == "folded"
    assert len(record["messages"]) == 3
