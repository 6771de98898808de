"""`read`: every file format, detected by content alone."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import MessageError
from unit.samples import anthropic_call, anthropic_result, assistant, openai_call, openai_result, user
from unit.shelf import Shelf, line, lines

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"

OPENAI = [user("Go."), openai_call(), openai_result(content="r"), assistant("Done.")]
ANTHROPIC = [user("Go."), anthropic_call(), anthropic_result(content="r"), assistant("Done.")]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


# --- Messages and conversations ----------------------------------------------------------------------

LAYOUTS: list[tuple[str, Any]] = [
    ("a list of messages, one document", lambda m: json.dumps(m).encode()),
    ("a list of messages, indented", lambda m: json.dumps(m, indent=2).encode()),
    ("a list with one message a line", lambda m: b"[" + lines(m).replace(b"}\n", b"},\n")[:-2] + b"\n]\n"),
    ("a list that begins on its second line", lambda m: b"\xef\xbb\xbf\r\n" + json.dumps(m, indent=4).encode()),
    ("a conversation with one message a line", lambda m: b'{"messages": [' + b",\n".join(map(line, m)) + b"]}"),
    ("a conversation, cut at its members", lambda m: b'{"id": 1,\n "messages": ' + json.dumps(m).encode() + b"\n}"),
    ("one message a line", lines),
    ("one message a line, no newline at the end", lambda m: lines(m)[:-1]),
    ("a conversation", lambda m: line({"messages": m})),
    ("a conversation, indented", lambda m: json.dumps({"id": "c", "messages": m}, indent=1).encode()),
    ("a list of one conversation", lambda m: line([{"messages": m}])),
    ("a list of one list", lambda m: line([m])),
    ("a trajectory", lambda m: line({"task": 1, "traj": m})),
    ("a history", lambda m: line({"history": m})),
    ("a request body", lambda m: line({"model": "x", "messages": m, "max_tokens": 5})),
    ("a request of a batch", lambda m: line({"custom_id": "1", "method": "POST", "body": {"messages": m}})),
    ("escaped as ASCII", lambda m: json.dumps(m, ensure_ascii=True).encode()),
    ("with a byte order mark", lambda m: b"\xef\xbb\xbf" + line({"messages": m})),
    ("with CRLF", lambda m: lines(m).replace(b"\n", b"\r\n")),
    ("with blank lines", lambda m: b"\n\n" + lines(m).replace(b"\n", b"\n \t\n")),
]
each_layout = pytest.mark.parametrize("write", [case[1] for case in LAYOUTS], ids=[case[0] for case in LAYOUTS])
each_dialect = pytest.mark.parametrize(
    ("format", "messages"), [("openai_chat", OPENAI), ("anthropic", ANTHROPIC)], ids=["OpenAI", "Anthropic"]
)


@each_layout
@each_dialect
@pytest.mark.parametrize("name", ["file.jsonl", "file.json", "file.txt", "file", "file.csv"])
def test_a_conversation_is_read_from_every_layout_under_any_name(
    shelf: Shelf, format: str, messages: list[Any], write: Any, name: str
) -> None:
    transcript = shelf.read_one(write(messages), name)
    assert transcript.messages == messages
    assert transcript.format == format
    assert transcript.meta["path"] == str(shelf.folder / name)
    assert shelf.problems == []


@each_layout
@pytest.mark.parametrize("name", ["file.jsonl.gz", "file.gz", "file.jsonl", "file"])
def test_gzip_is_recognized_by_content(shelf: Shelf, write: Any, name: str) -> None:
    assert shelf.read_one(gzip.compress(write(OPENAI)), name).messages == OPENAI
    assert shelf.problems == []


def test_several_gzip_members_are_one_file(shelf: Shelf) -> None:
    data = b"".join(gzip.compress(line({"id": i, "messages": OPENAI})) for i in range(3))
    assert [t.id for t in shelf.read(data)] == ["0", "1", "2"]


def test_each_line_may_be_a_conversation(shelf: Shelf) -> None:
    data = lines({"id": f"c{i}", "messages": [user(f"hi {i}")], "tag": i} for i in range(5))
    found = shelf.read(data)
    assert [(t.id, t.messages[0]["content"]) for t in found] == [(f"c{i}", f"hi {i}") for i in range(5)]
    assert [t.meta["line"] for t in found] == [1, 2, 3, 4, 5]
    assert [t.meta["tag"] for t in found] == list(range(5))
    assert shelf.problems == []


def test_conversations_are_read_lazily(shelf: Shelf) -> None:
    path = shelf.put(lines({"id": i, "messages": [user("x" * 10_000)]} for i in range(500)))
    reading = fl.read(path)
    assert next(reading).id == "0"
    assert next(reading).id == "1"
    reading.close()


@pytest.mark.parametrize(
    ("around", "id"),
    [
        ({"id": "a"}, "a"),
        ({"session_id": "b"}, "b"),
        ({"conversation_id": "c"}, "c"),
        ({"id": "a", "session_id": "b"}, "a"),
        ({"id": 17}, "17"),
        ({}, "talks:0"),
        ({"id": None}, "talks:0"),
        ({"id": {"no": "text"}}, "talks:0"),
        ({"id": ["a"]}, "talks:0"),
    ],
)
def test_a_conversation_has_its_own_id_or_one_derived_from_the_file_name(shelf: Shelf, around: Any, id: str) -> None:
    assert shelf.read_one(line(around | {"messages": OPENAI}), "talks.jsonl.gz").id == id


def test_ids_derived_from_the_name_are_numbered(shelf: Shelf) -> None:
    found = shelf.read(
        lines([{"messages": OPENAI}, {"id": "own", "messages": OPENAI}, {"messages": OPENAI}]), "t.jsonl"
    )
    assert [t.id for t in found] == ["t:0", "own", "t:2"]


def test_the_source_position_is_not_overwritten_by_stored_metadata(shelf: Shelf) -> None:
    transcript = shelf.read_one(line({"path": "elsewhere", "line": 99, "messages": OPENAI}))
    assert (transcript.meta["path"], transcript.meta["line"]) == (str(shelf.folder / "file.jsonl"), 1)


@pytest.mark.parametrize("text", ["a\ud83d", "\ude00b", "\ude00\ud83d"], ids=ascii)
def test_a_lone_surrogate_is_preserved(shelf: Shelf, text: str) -> None:
    transcript = shelf.read_one(line({"messages": [user(text), assistant("b")]}))
    assert transcript.messages[0]["content"] == text
    assert shelf.problems == []
    plan = fl.plan(transcript.messages, fl.KeepMessages(2), counter="chars/4")
    assert plan.warnings == [("lone_surrogates", 0)]


def test_the_context_around_the_messages_is_kept(shelf: Shelf) -> None:
    tools = [{"type": "function", "function": {"name": "go"}}]
    body = {"model": "m", "messages": OPENAI, "tools": tools, "system": "Be brief."}
    assert shelf.read_one(line(body)).meta.items() >= {"model": "m", "tools": tools, "system": "Be brief."}.items()
    wrapped = shelf.read_one(line({"custom_id": "c1", "body": body})).meta
    assert wrapped.items() >= {"custom_id": "c1", "model": "m", "tools": tools}.items()


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "pi"])
def test_a_stored_format_decides_ambiguous_content(shelf: Shelf, format: str) -> None:
    assert shelf.read_one(line({"format": format, "messages": [user("hi")]})).format == format


@pytest.mark.parametrize("format", ["unheard of", 5, None, ["anthropic"]])
def test_an_unknown_stored_format_is_ignored_and_the_content_decides(shelf: Shelf, format: Any) -> None:
    assert shelf.read_one(line({"format": format, "messages": ANTHROPIC})).format == "anthropic"


@pytest.mark.parametrize("data", [b"[]", b'{"messages": []}'])
def test_a_conversation_may_be_empty(shelf: Shelf, data: bytes) -> None:
    assert shelf.read_one(data).messages == []
    assert shelf.problems == []


def test_messages_equal_their_json(shelf: Shelf) -> None:
    odd = user([{"type": "x", "v": [1, 2.5, None, True, {"é\n": "対話🙂"}]}], unknown={"deep": [[[]]]}, n=10**30)
    (message,) = shelf.read_one(line({"messages": [odd]})).messages
    assert message == odd
    assert list(message) == list(odd)


def test_one_file_may_contain_every_layout(shelf: Shelf) -> None:
    data = lines(
        [
            {"id": "a", "messages": OPENAI},
            user("loose"),
            {"type": "session", "id": "p"},
            {"type": "message", "id": "1", "message": user("pi")},
            claude("user", "u1", user("claude")),
            {"id": "b", "messages": OPENAI},
            assistant("loose too"),
        ]
    )
    found = {t.id: [m["content"] for m in t.messages] for t in shelf.read(data)}
    assert list(found) == ["a", "b", "file", "s1", "p"]
    assert (found["file"], found["s1"], found["p"]) == (["loose", "loose too"], ["claude"], ["pi"])
    assert shelf.problems == []


# --- Claude Code -------------------------------------------------------------------------------------


def claude(kind: str, uuid: str, message: Any = None, **more: Any) -> dict[str, Any]:
    """An entry of a Claude Code session."""
    entry = {"type": kind, "uuid": uuid, "sessionId": "s1", **more}
    return entry if message is None else entry | {"message": message}


def said(uuid: str, id: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    """An assistant line: some blocks of the message with that id."""
    return claude("assistant", uuid, {"id": id, "role": "assistant", "content": list(blocks)}, **more)


def use(id: str) -> dict[str, Any]:
    """A call."""
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}


def answer(id: str, **more: Any) -> dict[str, Any]:
    """A result."""
    return {"type": "tool_result", "tool_use_id": id, "content": f"result of {id}", **more}


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def thinking() -> dict[str, Any]:
    """A thinking block with its signature."""
    return {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmF0dXJl"}


def test_lines_with_one_message_id_are_one_message(shelf: Shelf) -> None:
    entries = [
        claude("user", "1", user("Go.")),
        said("2", "m1", thinking()),
        said("3", "m1", text("I will look.")),
        said("4", "m1", use("a")),
        claude("user", "5", user([answer("a", is_error=True)])),
        said("6", "m2", text("Done.")),
    ]
    transcript = shelf.read_one(lines(entries))
    assert (transcript.id, transcript.format) == ("s1", "anthropic")
    assert transcript.messages == [
        user("Go."),
        assistant([thinking(), text("I will look."), use("a")]),
        user([answer("a", is_error=True)]),
        assistant([text("Done.")]),
    ]
    assert transcript.meta["entry_ids"] == [["1"], ["2", "3", "4"], ["5"], ["6"]]
    assert fl.validate(transcript.messages, "anthropic") == []
    assert shelf.problems == []


def test_results_of_parallel_calls_are_one_message_after_the_calls(shelf: Shelf) -> None:
    entries = [
        claude("user", "1", user("Go.")),
        said("2", "m1", use("a")),
        claude("user", "3", user([answer("a")])),
        said("4", "m1", use("b")),
        said("5", "m1", use("c")),
        claude("user", "6", user([answer("c"), text("beside")])),
        claude("user", "7", user("Hurry.")),
        claude("user", "8", user([answer("b")])),
        said("9", "m2", text("Done.")),
    ]
    transcript = shelf.read_one(lines(entries))
    assert transcript.messages == [
        user("Go."),
        assistant([use("a"), use("b"), use("c")]),
        user([answer("a"), answer("c"), answer("b"), text("beside")]),
        user("Hurry."),
        assistant([text("Done.")]),
    ]
    assert fl.validate(transcript.messages, "anthropic") == []
    assert transcript.meta["entry_ids"][2] == ["3", "6", "8"]


def test_a_repeated_call_id_is_answered_at_its_last_call(shelf: Shelf) -> None:
    entries = [
        said("1", "m1", use("a")),
        claude("user", "2", user([answer("a")])),
        said("3", "m2", use("a")),
        claude("user", "4", user([answer("a")])),
    ]
    roles = [len(m["content"]) for m in shelf.read_one(lines(entries)).messages]
    assert roles == [1, 1, 1, 1]


def test_a_result_without_a_call_stays_where_it_is(shelf: Shelf) -> None:
    entries = [claude("user", "1", user([answer("gone")])), claude("user", "2", user("Go."))]
    assert shelf.read_one(lines(entries)).messages == [user([answer("gone")]), user("Go.")]


def test_the_messages_of_sub_agents_are_a_separate_transcript(shelf: Shelf) -> None:
    entries = [
        claude("user", "1", user("Go.")),
        claude("user", "2", user("Sub task."), isSidechain=True),
        said("3", "m1", text("Main.")),
        said("4", "m2", text("Side."), isSidechain=True),
    ]
    main, side = shelf.read(lines(entries))
    assert (main.id, side.id) == ("s1", "s1#sidechain")
    assert main.messages == [user("Go."), assistant([text("Main.")])]
    assert side.messages == [user("Sub task."), assistant([text("Side.")])]


def test_sub_agents_with_ids_have_a_transcript_each(shelf: Shelf) -> None:
    entries = [
        claude("user", "1", user("Go.")),
        claude("user", "2", user("First task."), isSidechain=True, agentId="a1"),
        claude("user", "3", user("Second task."), isSidechain=True, agentId="b2"),
        said("4", "m1", text("First."), isSidechain=True, agentId="a1"),
        said("5", "m2", text("Second."), isSidechain=True, agentId="b2"),
    ]
    found = shelf.read(lines(entries))
    assert [each.id for each in found] == ["s1", "s1#a1", "s1#b2"]
    assert found[1].messages == [user("First task."), assistant([text("First.")])]
    assert found[2].messages == [user("Second task."), assistant([text("Second.")])]
    alone = shelf.read_one(lines(entries[1::2]))
    assert (alone.id, alone.messages) == ("s1#a1", found[1].messages)


def test_a_boundary_and_its_summary_are_recorded(shelf: Shelf) -> None:
    entries = [
        claude("user", "1", user("Go.")),
        said("2", "m1", text("Done.")),
        claude("system", "3", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 5}),
        claude("user", "4", user("This session is continued."), isCompactSummary=True),
        claude("user", "5", user("On.")),
    ]
    transcript = shelf.read_one(lines(entries))
    assert len(transcript.messages) == 4
    assert transcript.meta["compact_boundaries"] == [2]
    assert transcript.meta["summaries"] == [2]
    assert transcript.meta["skipped_entries"] == 1


def test_entries_that_are_not_sent_to_a_model_are_skipped_and_counted(shelf: Shelf) -> None:
    entries = [
        {"type": "summary", "summary": "A title", "leafUuid": "x"},
        {"type": "file-history-snapshot", "snapshot": {}},
        claude("system", "1", content="hook output"),
        claude("attachment", "2"),
        claude("user", "3", user("Go.")),
        {"type": "queue-operation", "operation": "enqueue"},
        {"type": "progress", "data": 1},
    ]
    transcript = shelf.read_one(lines(entries))
    assert transcript.messages == [user("Go.")]
    assert transcript.meta["skipped_entries"] == 6
    assert shelf.problems == []


def test_a_repeated_entry_is_read_once_and_reported_with_its_line(shelf: Shelf) -> None:
    entries = [claude("user", "1", user("Go.")), said("2", "m1", text("Done.")), claude("user", "1", user("Go."))]
    assert len(shelf.read_one(lines(entries)).messages) == 2
    assert [(p.code, p.line) for p in shelf.problems] == [("repeated_entry", 3)]


def test_the_order_is_that_of_the_file_regardless_of_parents(shelf: Shelf) -> None:
    parents = {"1": "3", "2": "2", "3": "gone", "4": None}
    entries = [claude("user", uuid, user(uuid), parentUuid=parent) for uuid, parent in parents.items()]
    assert [m["content"] for m in shelf.read_one(lines(entries)).messages] == ["1", "2", "3", "4"]
    assert shelf.problems == []


def test_a_text_next_to_blocks_of_the_same_message_becomes_a_block(shelf: Shelf) -> None:
    entries = [claude("assistant", "1", {"id": "m1", "role": "assistant", "content": "Hm."}), said("2", "m1", use("a"))]
    assert shelf.read_one(lines(entries)).messages == [assistant([text("Hm."), use("a")])]


def test_a_line_without_content_adds_nothing_to_its_message(shelf: Shelf) -> None:
    entries = [
        claude("assistant", "1", {"id": "m1", "role": "assistant", "content": None}),
        said("2", "m1", text("Hm.")),
    ]
    assert shelf.read_one(lines(entries)).messages == [assistant([text("Hm.")])]


def test_a_session_without_an_id_is_named_after_its_file(shelf: Shelf) -> None:
    entry = claude("user", "1", user("Go."))
    del entry["sessionId"]
    assert shelf.read_one(line(entry), "0a1b.jsonl").id == "0a1b"


def test_a_session_of_only_skipped_entries_gives_no_transcript(shelf: Shelf) -> None:
    assert shelf.read(line({"type": "summary", "summary": "A title"})) == []
    assert [problem.code for problem in shelf.problems] == ["no_transcript"]


# --- pi ----------------------------------------------------------------------------------------------


def test_a_pi_session_is_its_messages(shelf: Shelf) -> None:
    call = assistant(
        [{"type": "toolCall", "id": "a", "name": "bash", "arguments": {"command": "ls"}}], stopReason="toolUse"
    )
    result = {"role": "toolResult", "toolCallId": "a", "toolName": "bash", "content": [text("r")], "isError": False}
    shell = {"role": "bashExecution", "command": "ls", "output": "a b", "exitCode": 0}
    entries = [
        {"type": "session", "id": "p1", "cwd": "/src"},
        {"type": "message", "id": "1", "message": user("Go.")},
        {"type": "model_change", "id": "2"},
        {"type": "message", "id": "3", "parentId": "1", "message": call},
        {"type": "message", "id": "4", "message": result},
        {"type": "compaction", "id": "5", "summary": "So far.", "firstKeptEntryId": "4"},
        {"type": "message", "message": shell},
    ]
    transcript = shelf.read_one(lines(entries))
    assert (transcript.id, transcript.format) == ("p1", "pi")
    assert transcript.messages == [user("Go."), call, result, shell]
    assert transcript.meta["entry_ids"] == [["1"], ["3"], ["4"], []]
    assert transcript.meta["compact_boundaries"] == [3]
    assert transcript.meta["skipped_entries"] == 3
    assert shelf.problems == []


def test_pi_messages_can_be_counted_and_planned(shelf: Shelf) -> None:
    entries = [{"type": "message", "message": user("word " * 40)} for _ in range(4)]
    transcript = shelf.read_one(lines(entries), "talk.jsonl")
    assert transcript.id == "talk"
    plan = fl.plan(transcript.messages, fl.KeepMessages(1), counter="chars/4", format=transcript.format)
    assert (plan.format, plan.cut) == ("pi", 3)


# --- Requests to Responses and to Gemini -------------------------------------------------------------

ITEM = {"type": "function_call", "call_id": "a", "name": "go", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "done"}
CONTENT = {"role": "user", "parts": [{"text": "hi"}]}

REQUESTS = [
    ({"model": "m", "input": [{"role": "user", "content": "hi"}], "instructions": "Be brief."}, "openai_responses", 1),
    ({"model": "m", "input": "hi", "tools": []}, "openai_responses", 1),
    ({"body": {"model": "m", "input": [ITEM, OUTPUT]}}, "openai_responses", 2),
    ({"messages": [ITEM, OUTPUT]}, "openai_responses", 2),
    ({"model": "m", "input": [{"role": "tool", "tool_call_id": "a", "content": "b"}]}, "openai_chat", 1),
    ({"contents": [CONTENT], "systemInstruction": {"parts": [{"text": "Be brief."}]}}, "gemini", 1),
    ({"body": {"contents": [{"parts": [{"text": "hi"}]}]}}, "gemini", 1),
    ({"contents": []}, "gemini", 0),
    ({"format": "gemini", "messages": []}, "gemini", 0),
]


@pytest.mark.parametrize(("value", "format", "count"), REQUESTS, ids=str)
def test_requests_are_read_unchanged(shelf: Shelf, value: Any, format: str, count: int) -> None:
    transcript = shelf.read_one(lines([value]))
    assert (transcript.format, len(transcript.messages)) == (format, count)
    body = value.get("body", value)
    given = next(body[key] for key in ("messages", "input", "contents") if key in body)
    assert transcript.messages == ([{"role": "user", "content": given}] if isinstance(given, str) else given)
    beside = {"instructions", "systemInstruction", "tools", "model"}
    assert {key: transcript.meta[key] for key in beside & set(body)} == {key: body[key] for key in beside & set(body)}


def test_items_one_a_line_are_one_conversation(shelf: Shelf) -> None:
    items = [{"role": "user", "content": "hi"}, {"type": "reasoning", "id": "r", "summary": []}, ITEM, OUTPUT]
    transcript = shelf.read_one(lines(items))
    assert (transcript.format, transcript.messages) == ("openai_responses", items)


def test_a_list_of_two_dialects_is_an_error_naming_both(shelf: Shelf) -> None:
    assert shelf.read(lines([{"messages": [ITEM, CONTENT]}])) == []
    (problem,) = shelf.problems
    assert (problem.code, problem.index) == ("ambiguous_format", 1)
    assert "openai_responses" in problem.detail
    assert "gemini" in problem.detail


# --- Unreadable files --------------------------------------------------------------------------------

UNSUPPORTED = [
    ({"messages": [{"type": "user", "content": "hi"}]}, "no role"),
]


@pytest.mark.parametrize(("value", "name"), UNSUPPORTED, ids=[name for _, name in UNSUPPORTED])
def test_an_unsupported_known_format_is_named(shelf: Shelf, value: Any, name: str) -> None:
    assert shelf.read(lines([value] * 3)) == []
    (problem,) = shelf.problems
    assert (problem.code, problem.line) == ("unsupported_format", 1)
    assert name in problem.detail


@pytest.mark.parametrize(
    "value", [5, "text", None, True, {}, {"a": 1}, [5], [{"a": 1}], {"messages": "text"}], ids=repr
)
def test_a_value_that_is_not_a_conversation_is_a_problem(shelf: Shelf, value: Any) -> None:
    found = shelf.read(lines([value, {"id": "good", "messages": OPENAI}]))
    assert [t.id for t in found] == ["good"]
    assert [(p.code, p.line, p.offset) for p in shelf.problems] == [("unknown_record", 1, 0)]


def test_a_file_without_conversations_is_one_problem(shelf: Shelf) -> None:
    assert shelf.read(b"a,b,c\n1,2,3\n" * 500, "table.csv") == []
    (problem,) = shelf.problems
    assert (problem.code, problem.path) == ("no_transcript", str(shelf.folder / "table.csv"))


def test_two_dialects_in_one_conversation_are_a_problem_of_that_conversation(shelf: Shelf) -> None:
    mixed = [user("Go."), openai_call(), {"role": "toolResult", "content": "r"}, openai_result()]
    found = shelf.read(lines([{"id": "mixed", "messages": mixed}, {"id": "good", "messages": OPENAI}]))
    assert [t.id for t in found] == ["good"]
    assert [(p.code, p.line, p.index) for p in shelf.problems] == [("ambiguous_format", 1, 2)]


# --- Folders, standard input, samples ----------------------------------------------------------------


def test_a_folder_is_read_in_order_of_names_without_hidden_files(shelf: Shelf) -> None:
    for name in ("b.jsonl", "a/z.json", "a/deep/y.jsonl.gz", "c.txt", ".hidden.jsonl", ".git/d.jsonl", "a/.e/f.jsonl"):
        data = line({"id": name, "messages": OPENAI})
        shelf.put(gzip.compress(data) if name.endswith("gz") else data, name)
    ids = ["a/deep/y.jsonl.gz", "a/z.json", "b.jsonl", "c.txt"]
    assert [t.id for t in fl.read(shelf.folder)] == [t.id for t in fl.read(str(shelf.folder))] == ids


def test_a_hidden_file_is_read_if_named(shelf: Shelf) -> None:
    assert shelf.read_one(line({"id": "a", "messages": OPENAI}), ".hidden/.file").id == "a"
    assert [t.id for t in fl.read(shelf.folder / ".hidden")] == []


def test_an_empty_folder_gives_no_transcript_and_no_problem(shelf: Shelf) -> None:
    assert list(fl.read(shelf.folder, on_problem=shelf.problems.append, strict=True)) == []
    assert shelf.problems == []


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = lines([{"id": "a", "messages": OPENAI}, {"messages": ANTHROPIC}])
    for raw in (data, gzip.compress(data)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
        found = list(fl.read("-"))
        assert [(t.id, t.format) for t in found] == [("a", "openai_chat"), ("stdin:1", "anthropic")]
        assert found[0].meta["path"] == "-"


def test_a_missing_path_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(fl.read(tmp_path / "nothing"))


def test_a_problem_has_its_position(shelf: Shelf) -> None:
    shelf.read(line({"id": "a", "messages": OPENAI}) + b"{oops}\n")
    (problem,) = shelf.problems
    assert str(problem).startswith(f"{shelf.folder / 'file.jsonl'}, line 2, offset ")
    assert problem.code in str(problem)


def test_by_default_the_first_problems_of_each_file_and_code_are_logged(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    good = line({"id": "a", "messages": OPENAI})
    shelf.put(good + b"{oops}\n" * 1000 + b"7\n" * 3, "folder/1.jsonl")
    shelf.put(good + b"{oops}\n" * 12, "folder/2.jsonl")
    assert len(list(fl.read(shelf.folder / "folder"))) == 2
    logged = [(Path(record.args[0].path).name, record.args[0].code, record.args[0].detail) for record in caplog.records]
    assert logged == [
        *[("1.jsonl", "bad_json", "")] * 10,
        *[("1.jsonl", "unknown_record", "")] * 3,
        ("1.jsonl", "bad_json", "990 more"),
        *[("2.jsonl", "bad_json", "")] * 10,
        ("2.jsonl", "bad_json", "2 more"),
    ]


def test_what_was_not_logged_is_counted_even_if_the_reader_stops(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    good = line({"id": "a", "messages": OPENAI})
    reading = fl.read(shelf.put(good + b"{oops}\n" * 20 + good + good))
    assert [next(reading).id for _ in range(2)] == ["a", "a"]
    reading.close()
    assert caplog.records[-1].args[0].detail == "10 more"


def test_strict_accepts_valid_files(shelf: Shelf) -> None:
    assert len(list(fl.read(shelf.put(lines({"messages": OPENAI} for _ in range(3))), strict=True))) == 3


def test_strict_stops_at_the_first_problem(shelf: Shelf) -> None:
    good = line({"id": "good", "messages": OPENAI})
    path = shelf.put(good + b"{oops}\n" + good + b"7\n" + good)
    reading = fl.read(path, on_problem=shelf.problems.append, strict=True)
    with pytest.raises(MessageError) as caught:
        for _ in range(3):
            next(reading)
    assert caught.value.code == "bad_json"
    assert [p.code for p in shelf.problems] == ["bad_json"]
    assert list(reading) == []


SAMPLES = sorted(path for path in DATA.iterdir() if path.suffix in (".jsonl", ".json", ".traj"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_the_samples_read_without_a_problem_and_fold(path: Path, shelf: Shelf) -> None:
    found = list(fl.read(path, on_problem=shelf.problems.append, strict=True))
    assert found
    assert shelf.problems == []
    assert len({t.id for t in found}) == len(found)
    for transcript in found:
        result = fl.compact(transcript.messages, fl.KeepFraction(0.3), counter="chars/4", format=transcript.format)
        assert result.error is None
        if result.tokens_before > 500:
            assert result.tokens_after < result.tokens_before
        if transcript.format != "pi":
            provider = {"openai_chat": "openai"}.get(transcript.format, transcript.format)
            before = {(each.code) for each in fl.validate(transcript.messages, provider)}
            assert {(each.code) for each in fl.validate(result.messages, provider)} <= before


def test_the_sample_session_has_all_its_calls() -> None:
    (session,) = [t for t in fl.read(DATA / "claude-code-session.jsonl") if not t.id.endswith("#sidechain")]
    blocks = [block for m in session.messages if isinstance(m["content"], list) for block in m["content"]]
    assert sum(block["type"] == "tool_use" for block in blocks) == 96
    assert sum(block["type"] == "thinking" for block in blocks) == 86
    assert len(session.meta["compact_boundaries"]) == 1
    assert len(session.meta["entry_ids"]) == len(session.messages)


def test_each_of_many_sub_agents_in_one_file_is_a_transcript(tmp_path: Path) -> None:
    message = {"role": "user", "content": "Go."}
    entry = {"type": "user", "sessionId": "s", "isSidechain": True, "message": message}
    file = tmp_path / "s.jsonl"
    file.write_bytes(lines([entry | {"uuid": f"u{i}", "agentId": f"a{i}"} for i in range(2_000)]))
    found = list(fl.read(file))
    assert len({transcript.id for transcript in found}) == len(found) == 2_000
    assert all(transcript.messages == [message] for transcript in found)
