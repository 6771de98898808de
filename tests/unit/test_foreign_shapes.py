"""Shapes of other programs are refused by name, with the way out, in memory and in files alike."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from foldline.errors import MessageError

GENERATION = {"id": "o", "traceId": "t", "type": "GENERATION", "input": [{"role": "user", "content": "Hi."}]}
NODE = {"id": "n", "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Hi."]}}}
SAID = {"uuid": "m", "sender": "human", "text": "Hi.", "content": [{"type": "text", "text": "Hi."}]}
REQUEST = {"message": {"text": "Hi."}, "response": [{"value": "Hello."}]}

#: A value of each shape and the name that its refusal has.
SHAPES: list[tuple[str, Any]] = [
    ("LangSmith", {"id": "r", "run_type": "llm", "trace_id": "t", "inputs": {"messages": []}, "outputs": {}}),
    ("Langfuse", {"id": "t", "name": "chat", "observations": [GENERATION]}),
    ("Langfuse", GENERATION),
    ("ChatGPT", {"title": "Chat", "create_time": 1.5, "mapping": {"n": NODE}, "current_node": "n"}),
    ("ChatGPT", NODE["message"]),
    ("Claude account", {"uuid": "c", "name": "Chat", "account": {"uuid": "a"}, "chat_messages": [SAID]}),
    ("Claude account", SAID),
    ("Copilot", {"requesterUsername": "me", "responderUsername": "GitHub Copilot", "requests": [REQUEST]}),
    ("Copilot", {"type": "user.message", "data": {"content": "Hi."}, "id": "1", "timestamp": "t", "parentId": None}),
    ("OpenHands", {"id": 1, "source": "agent", "message": "Runs ls.", "action": "run", "args": {"command": "ls"}}),
    ("OpenHands", {"id": 2, "source": "agent", "message": "Done.", "observation": "run", "content": "a.py"}),
    ("OpenHands", {"id": "1", "source": "agent", "kind": "MessageEvent", "llm_message": {"role": "assistant"}}),
    ("LangSmith", {"runs": [{"id": "r", "run_type": "llm", "inputs": {}}], "cursors": {"next": None}}),
    ("Langfuse", {"data": [GENERATION], "meta": {"page": 1, "totalItems": 1}}),
    ("Copilot", {"kind": 0, "v": {"version": 3, "sessionId": "s", "requests": [REQUEST]}}),
    ("ATIF", {"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": [{"step_id": 1, "source": "user"}]}),
    ("ATIF", {"step_id": 2, "source": "agent", "message": "Hello."}),
    ("Copilot", {"type": "session.start", "data": {"sessionId": "s"}, "id": "0", "timestamp": "t", "parentId": None}),
]


def goose(kind: str) -> dict[str, Any]:
    """A message of goose with a call, or with its result."""
    call = {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}
    result = {"status": "success", "value": [{"type": "text", "text": "a.py"}]}
    part = {"toolRequest": {"toolCall": call}, "toolResponse": {"toolResult": result}}[kind]
    role = {"toolRequest": "assistant", "toolResponse": "user"}[kind]
    return {"role": role, "created": 1, "content": [{"type": kind, "id": "g", **part}]}


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize(("name", "value"), SHAPES)
def test_a_list_with_one_is_refused(name: str, value: Any, at: int) -> None:
    plain: list[Any] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    messages = [*plain[:at], value, *plain[at:]]
    for given in (messages, json.dumps(messages).encode()):
        for call in (fl.detect_format, fl.analyze, fl.TokenCounter().count_messages):
            with pytest.raises(MessageError) as caught:
                call(given)
            assert (caught.value.code, caught.value.index) == ("unsupported_format", at)
            assert name in caught.value.detail
            assert "does not read it yet: give" in caught.value.detail


@pytest.mark.parametrize("kind", ["toolRequest", "toolResponse"])
@pytest.mark.parametrize("at", range(3))
def test_messages_of_goose_in_memory_are_refused(kind: str, at: int) -> None:
    plain: list[Any] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    messages = [*plain[:at], goose(kind), *plain[at:]]
    with pytest.raises(MessageError) as caught:
        fl.plan(messages, fl.KeepMessages(1))
    assert (caught.value.code, caught.value.index, caught.value.path) == ("unsupported_format", at, "content")
    assert "goose" in caught.value.detail
    assert "foldline.read" in caught.value.detail
    # Where the format is named, its parts are unknown ones.
    assert fl.TokenCounter().count_messages(messages, format="openai_chat").kind == "estimated"


@pytest.mark.parametrize("form", ["line", "list", "document"])
@pytest.mark.parametrize(("name", "value"), SHAPES)
def test_a_file_with_one_is_refused(name: str, value: Any, form: str, tmp_path: Path) -> None:
    text = {
        "line": json.dumps(value) + "\n",
        "list": json.dumps([value, value]),
        "document": json.dumps(value, indent=1),
    }
    path = tmp_path / "stored.json"
    path.write_text(text[form], encoding="utf-8")
    problems: list[fl.Problem] = []
    assert list(fl.read(path, on_problem=problems.append)) == []
    assert {problem.code for problem in problems} == {"unsupported_format"}
    assert all(name in problem.detail for problem in problems)
    with pytest.raises(fl.errors.FoldlineError):
        fl.TokenCounter().count_transcripts(text[form].encode())


def test_the_command_line_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stored.jsonl"
    path.write_text(json.dumps(SHAPES[0][1]) + "\n", encoding="utf-8")
    assert main(["count", str(path)]) == 1
    captured = capsys.readouterr()
    assert "this is a LangSmith run" in captured.out + captured.err


def test_similar_messages_are_read(tmp_path: Path) -> None:
    for message in (
        {"type": "human", "data": {"content": "Hi."}},
        {"role": "user", "content": "Hi.", "author": {"role": "user"}, "run_type": "llm", "inputs": {}},
        {"role": "user", "content": [{"type": "text", "text": "toolRequest"}]},
    ):
        assert fl.TokenCounter().count_messages([message]).total > 0
    path = tmp_path / "stored.jsonl"
    path.write_text('{"messages":[{"role":"user","content":"Hi."}],"inputs":{},"id":"a"}\n', encoding="utf-8")
    assert len(list(fl.read(path))) == 1


@pytest.mark.parametrize("key", ["history", "messages", "trajectory"])
def test_events_of_openhands_in_a_document_are_not_read_as_turns(key: str, tmp_path: Path) -> None:
    said = {"id": 0, "source": "user", "message": "Fix it.", "action": "message", "args": {"content": "Fix it."}}
    ran = {"id": 1, "source": "agent", "message": "Runs ls.", "action": "run", "args": {"command": "ls"}}
    path = tmp_path / "output.json"
    path.write_text(json.dumps({"instance_id": "a", key: [said, ran]}))
    problems: list[fl.Problem] = []
    assert list(fl.read(path, on_problem=problems.append)) == []
    assert [each.code for each in problems] in (["unsupported_format"], ["unknown_record"])


def test_an_archive_is_named_and_not_read_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/1.json", json.dumps({"messages": [{"role": "user", "content": "Hi."}]}))
    problems: list[fl.Problem] = []
    assert list(fl.read(path, on_problem=problems.append)) == []
    assert problems[0].code == "unsupported_format"
    assert "inspect log dump" in problems[0].detail


#: A message of each framework of agents in memory, which has its texts under keys of its own.
MESSAGES: list[tuple[str, dict[str, Any]]] = [
    ("LlamaIndex", {"role": "user", "blocks": [{"block_type": "text", "text": "Hi."}]}),
    ("Semantic Kernel", {"role": "user", "items": [{"content_type": "text", "text": "Hi."}]}),
    ("Cohere", {"role": "USER", "message": "Hi."}),
    ("Pydantic AI", {"parts": [{"content": "Hi.", "part_kind": "user-prompt"}], "kind": "request"}),
    ("A2A", {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "Hi."}]}),
    ("OpenTelemetry", {"role": "user", "parts": [{"type": "text", "content": "Hi."}]}),
    ("AutoGen", {"source": "user", "content": "Hi.", "type": "TextMessage"}),
    ("Amp", {"role": "user", "content": [{"type": "tool_result", "toolUseID": "t", "run": {"result": "Hi."}}]}),
]


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize(("name", "message"), MESSAGES)
def test_messages_of_frameworks_are_refused_by_name(name: str, message: dict[str, Any], at: int) -> None:
    plain = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    for messages in ([message], [*plain[:at], message, *plain[at:]]):
        with pytest.raises(MessageError, match=name) as refused:
            fl.detect_format(messages)
        assert refused.value.code == "unsupported_format"


def test_a_message_that_says_nothing_is_no_framework() -> None:
    for odd in ({"role": "assistant"}, {"role": "user", "name": "a"}, {"role": "user", "message": {"a": 1}}):
        assert fl.detect_format([{"role": "user", "content": "Hi."}, odd]).format == "openai_chat"
