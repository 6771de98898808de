"""`read`: what a person typed while the agent worked is one message of the user, and new kinds of entries are fine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from unit.samples import user
from unit.shelf import Shelf, lines

Dict = dict[str, Any]

TYPED = "Keep the old index."


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


# --- Claude Code -------------------------------------------------------------------------------------


def entry(kind: str, uuid: str, content: Any, **more: Any) -> Dict:
    """An entry of a session of Claude Code."""
    message = {"role": kind, "content": content} | ({"id": f"m-{uuid}"} if kind == "assistant" else {})
    return {"type": kind, "uuid": uuid, "sessionId": "s", "message": message} | more


def call(*ids: str, uuid: str = "", **more: Any) -> Dict:
    blocks = [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make"}} for id in ids]
    return entry("assistant", uuid or f"call-{ids[0]}", blocks, **more)


def result(id: str, **more: Any) -> Dict:
    block = {"type": "tool_result", "tool_use_id": id, "content": f"result of {id}"}
    return entry("user", f"result-{id}", [block], **more)


def answer(words: str, **more: Any) -> Dict:
    return entry("assistant", f"answer-{words}", [{"type": "text", "text": words}], **more)


def operation(name: str, content: Any = None, **more: Any) -> Dict:
    """An operation of the queue."""
    more |= {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": name, "sessionId": "s"} | more


def attachment(prompt: Any = TYPED, kind: str = "queued_command", uuid: str = "t", **more: Any) -> Dict:
    """An attachment with what was typed."""
    inner = {"type": kind, "prompt": prompt, "commandMode": "prompt", "origin": {"kind": "human"}} | more
    return {"type": "attachment", "uuid": uuid, "sessionId": "s", "attachment": inner}


GO, DONE = entry("user", "go", "Go."), answer("Done.")
NOTICE = "<task-notification>build 7 has ended</task-notification>"

#: Entries between the first prompt and the last answer, with the typed text in one message.
TYPED_ONCE: dict[str, list[Dict]] = {
    "only an attachment": [call("a"), result("a"), attachment()],
    "enqueued and attached": [call("a"), operation("enqueue", TYPED), result("a"), attachment()],
    "attached, then removed": [
        call("a"),
        operation("enqueue", TYPED),
        result("a"),
        attachment(),
        operation("remove", TYPED, reason="absorbed_mid_turn"),
    ],
    "removed, then attached": [
        call("a"),
        operation("enqueue", TYPED),
        result("a"),
        operation("remove", TYPED, reason="absorbed_mid_turn"),
        attachment(),
    ],
    "removed without a content, then attached later": [
        call("a"),
        operation("enqueue", TYPED),
        result("a"),
        operation("remove", reason="absorbed_mid_turn"),
        answer("Hm."),
        attachment(),
    ],
    "removed, as older versions write it": [call("a"), operation("enqueue", TYPED), result("a"), operation("remove")],
    "removed with its text, which was enqueued before the file begins": [
        call("a"),
        result("a"),
        operation("remove", TYPED, reason="absorbed_mid_turn"),
    ],
    "between a call and its result": [call("a"), attachment(), result("a")],
    "between two parallel results": [call("a", "b"), result("a"), attachment(), result("b")],
    "between the lines of one message": [
        call("a") | {"uuid": "c1"},
        result("a"),
        attachment(),
        entry("assistant", "c2", call("b")["message"]["content"])
        | {"message": call("b")["message"] | {"id": "m-call-a"}},
        result("b"),
    ],
    "with a picture": [
        call("a"),
        operation("enqueue", f"{TYPED} [Image #1]"),
        result("a"),
        attachment([{"type": "text", "text": TYPED}, {"type": "image", "source": {"type": "url", "url": "x"}}]),
        operation("remove", reason="absorbed_mid_turn"),
    ],
    "without an origin, as older versions write it": [call("a"), result("a"), attachment(origin=None)],
    "still in the queue": [call("a"), operation("enqueue", TYPED), result("a")],
    "dequeued at the end of the turn": [
        call("a"),
        operation("enqueue", TYPED),
        result("a"),
        answer("Hm."),
        operation("dequeue"),
        entry("user", "typed", TYPED),
    ],
    "dequeued with others into one entry": [
        call("a"),
        operation("enqueue", "First."),
        operation("enqueue", TYPED),
        result("a"),
        operation("dequeue"),
        operation("dequeue"),
        entry("user", "typed", [{"type": "text", "text": f"First.\n{TYPED}"}]),
    ],
    "dequeued by a session that ends there": [
        call("a"),
        operation("enqueue", TYPED),
        result("a"),
        operation("dequeue"),
    ],
    "taken back and typed again": [
        call("a"),
        operation("enqueue", TYPED),
        operation("popAll"),
        result("a"),
        operation("enqueue", TYPED),
        attachment(),
        operation("remove", TYPED, reason="absorbed_mid_turn"),
    ],
    "taken back, typed again and dequeued": [
        call("a"),
        operation("enqueue", TYPED),
        operation("popAll"),
        operation("enqueue", TYPED),
        result("a"),
        operation("dequeue"),
        entry("user", "typed", TYPED),
    ],
    "after another text that was attached and removed": [
        call("a"),
        operation("enqueue", "First."),
        operation("enqueue", TYPED),
        result("a"),
        attachment("First."),
        operation("remove"),
        answer("Hm."),
        operation("dequeue"),
        entry("user", "typed", TYPED),
    ],
    "with another text in one attachment": [
        call("a"),
        operation("enqueue", "First."),
        operation("enqueue", TYPED),
        result("a"),
        attachment(f"First.\n{TYPED}"),
        operation("remove", "First.", reason="absorbed_mid_turn"),
        operation("remove", TYPED, reason="absorbed_mid_turn"),
    ],
    "beside an attachment that has more lines": [
        call("a"),
        operation("enqueue", TYPED),
        result("a"),
        attachment("First.\nSecond."),
        operation("remove", TYPED, reason="absorbed_mid_turn"),
    ],
    "beside a notice": [
        call("a"),
        operation("enqueue", NOTICE),
        operation("enqueue", TYPED),
        result("a"),
        attachment(NOTICE, origin={"kind": "task-notification"}, commandMode="task-notification"),
        attachment(uuid="t2"),
    ],
}


def count_in(messages: list[Dict], text: str) -> int:
    """How often a text occurs in messages."""
    return sum(repr(message).count(text) for message in messages)


@pytest.mark.parametrize("between", TYPED_ONCE.values(), ids=TYPED_ONCE)
def test_a_text_typed_while_the_agent_works_is_one_message(shelf: Shelf, between: list[Dict]) -> None:
    entries = [GO, *between, DONE]
    transcript = shelf.read_one(lines(entries))
    assert count_in(transcript.messages, TYPED) == 1
    assert shelf.problems == []
    # It is a message of its own, not inside a pair.
    assert fl.validate(transcript.messages, "anthropic") == []
    (at,) = (i for i, message in enumerate(transcript.messages) if TYPED in repr(message))
    assert transcript.messages[at]["role"] == "user"
    assert "tool_result" not in repr(transcript.messages[at])
    assert transcript.messages[0] == user("Go.")
    # Every entry is in a message, or counted.
    used = {source for sources in transcript.meta["sources"] for source in sources}
    assert len(entries) - len(used) == transcript.meta["skipped_entries"]


def test_a_typed_text_is_at_its_time(shelf: Shelf) -> None:
    entries = [GO, call("a"), attachment(), result("a"), answer("Hm."), call("b"), result("b"), DONE]
    roles = [message["role"] for message in shelf.read_one(lines(entries)).messages]
    assert roles == ["user", "assistant", "user", "user", "assistant", "assistant", "user", "assistant"]
    transcript = shelf.read_one(lines(entries))
    assert transcript.messages[3] == user(TYPED)
    assert transcript.meta["sources"][3] == [2]


def test_a_text_typed_twice_is_two_messages(shelf: Shelf) -> None:
    entries = [GO]
    for id in ("a", "b"):
        entries += [call(id), operation("enqueue", TYPED), result(id), attachment(uuid=id), operation("remove", TYPED)]
    assert count_in(shelf.read_one(lines([*entries, DONE])).messages, TYPED) == 2


def test_a_word_inside_a_later_prompt_is_not_the_typed_text(shelf: Shelf) -> None:
    entries = [GO, call("a"), operation("enqueue", "No."), result("a"), operation("dequeue"), DONE]
    later = entry("user", "later", "No. 7 is missing.")
    messages = shelf.read_one(lines([*entries, later, answer("Yes.")])).messages
    assert [message["content"] for message in messages if message["role"] == "user"][2:] == ["No.", "No. 7 is missing."]


@pytest.mark.parametrize(
    ("between", "reason"),
    [
        ([operation("enqueue", TYPED), operation("popAll")], "taken_back"),
        ([operation("enqueue", TYPED), operation("remove", TYPED, reason="cancelled")], "removed_from_queue"),
        ([operation("enqueue", NOTICE), operation("remove")], "notice"),
        ([operation("enqueue", "/clear"), operation("dequeue")], "command"),
        ([attachment(origin={"kind": "peer"})], "notice"),
        ([attachment(NOTICE, origin=None, commandMode="task-notification")], "notice"),
    ],
    ids=["taken back", "cancelled", "notice in the queue", "command", "text of a peer", "notice without an origin"],
)
def test_what_was_not_sent_or_not_typed_is_named_with_the_reason(
    shelf: Shelf, between: list[Dict], reason: str
) -> None:
    transcript = shelf.read_one(lines([GO, call("a"), *between, result("a"), DONE]))
    assert [message["role"] for message in transcript.messages] == ["user", "assistant", "user", "assistant"]
    assert transcript.meta["unread"] == [{"entry": 2, "reason": reason}]
    assert shelf.problems == []


def test_a_text_typed_on_an_abandoned_branch_stays_there(shelf: Shelf) -> None:
    entries = [
        GO | {"parentUuid": None},
        answer("Yes.") | {"parentUuid": "go"},
        entry("user", "this", "This way.", parentUuid="answer-Yes."),
        call("a") | {"parentUuid": "this"},
        operation("enqueue", TYPED),
        result("a") | {"parentUuid": "call-a"},
        operation("remove"),
        entry("user", "that", "That way.", parentUuid="answer-Yes."),
        answer("Fine.") | {"parentUuid": "that"},
    ]
    transcript = shelf.read_one(lines(entries))
    assert count_in(transcript.messages, TYPED) == 0
    (branch,) = transcript.meta["branches"]
    assert branch["messages"][-1] == user(TYPED)


def test_a_text_typed_to_a_sub_agent_is_in_its_transcript(shelf: Shelf) -> None:
    side = {"isSidechain": True}
    entries = [GO, entry("user", "task", "Look.", **side), attachment() | side, answer("Seen.", **side), DONE]
    main_thread, sub_agent = shelf.read(lines(entries))
    assert count_in(main_thread.messages, TYPED) == 0
    assert sub_agent.messages[1] == user(TYPED)


def test_copies_of_the_messages_of_sub_agents_are_named(shelf: Shelf) -> None:
    copy = {"type": "progress", "uuid": "p", "data": {"type": "agent_progress", "message": DONE, "agentId": "x"}}
    transcript = shelf.read_one(lines([GO, copy, DONE]))
    assert transcript.meta["unread"] == [{"entry": 1, "reason": "copy_of_sub_agent"}]
    assert transcript.meta["skipped_kinds"] == {"progress/agent_progress": 1}


@pytest.mark.parametrize(
    ("members", "is_named"),
    [
        ({"type": "voice-note", "content": TYPED}, True),
        ({"type": "voice-note", "message": {"role": "user", "content": [{"type": "text", "text": TYPED}]}}, True),
        ({"type": "voice-note", "data": {"prompt": TYPED}}, True),
        ({"type": "voice-note", "content": " ", "level": "high"}, False),
        ({"type": "cost-state", "content": TYPED}, False),
    ],
    ids=["a content", "a message", "a prompt in its data", "no text", "a known kind"],
)
def test_an_entry_of_an_unknown_kind_is_named_if_it_has_a_text(shelf: Shelf, members: Dict, is_named: bool) -> None:
    transcript = shelf.read_one(lines([GO, members | {"uuid": "n", "sessionId": "s"}, DONE]))
    named = [{"entry": 1, "reason": "unknown_kind"}]
    assert transcript.meta.get("unread", []) == (named if is_named else [])
    assert transcript.meta["skipped_kinds"] == {members["type"]: 1}
    assert shelf.problems == []


# --- Codex -------------------------------------------------------------------------------------------


def rollout(kind: str, payload: Any) -> Dict:
    return {"timestamp": "2026-09-01T10:00:00Z", "type": kind, "payload": payload}


def said(words: str, role: str = "user") -> Dict:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def typed_event(words: str = TYPED) -> Dict:
    return rollout("event_msg", {"type": "user_message", "message": words, "images": []})


META = rollout("session_meta", {"id": "s"})
CALL = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "x"}
OUTPUT = {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}

#: Entries of a rollout, with the typed text in one message.
ROLLOUTS: dict[str, list[Dict]] = {
    "only an event": [rollout("response_item", CALL), rollout("response_item", OUTPUT), typed_event()],
    "an event between a call and its output": [
        rollout("response_item", CALL),
        typed_event(),
        rollout("response_item", OUTPUT),
    ],
    "an item, then its event": [rollout("response_item", said(TYPED)), typed_event()],
    "an event, then its item": [typed_event(), rollout("response_item", said(TYPED))],
    "an item with more around it": [
        rollout("response_item", said(f"# Context\nopen: a.py\n{TYPED}\n")),
        typed_event(),
    ],
    "after a prompt with the same beginning": [
        rollout("response_item", said(f"{TYPED} And then test.")),
        typed_event(f"{TYPED} And then test."),
    ],
    "before a call without an output": [
        rollout("response_item", CALL),
        typed_event(),
        rollout("response_item", said("Go on.")),
    ],
}


@pytest.mark.parametrize("entries", ROLLOUTS.values(), ids=ROLLOUTS)
def test_a_text_typed_into_codex_is_one_message(shelf: Shelf, entries: list[Dict]) -> None:
    data = lines([META, rollout("response_item", said("Go.")), *entries])
    transcript = shelf.read_one(data)
    assert count_in(transcript.messages, TYPED) == 1
    assert shelf.problems == []
    places = [i for i, item in enumerate(transcript.messages) if item.get("call_id") == "c"]
    assert len(places) < 2 or places[1] == places[0] + 1


def test_an_item_of_an_unknown_type_stays_in_its_place(shelf: Shelf) -> None:
    item = {"type": "hologram", "text": "x"}
    transcript = shelf.read_one(lines([META, *(rollout("response_item", each) for each in (said("Go."), item))]))
    assert transcript.messages == [said("Go."), item]
    assert fl.TokenCounter("chars/4").count_messages(transcript.messages, format="openai_responses").total > 5
    assert shelf.problems == []


# --- Entries of newer versions -----------------------------------------------------------------------

PI = {"type": "message", "id": "1", "parentId": None, "message": user("Go.")}
GEMINI = {"id": "1", "timestamp": "t", "type": "user", "content": "Go."}

#: A session of each kind, with entries of unknown kinds, and the names under which they are counted.
NEWER: dict[str, tuple[list[Dict], list[str]]] = {
    "claude_code": (
        [
            {"type": "permission-mode", "permissionMode": "plan", "sessionId": "s"},
            {"type": "mood", "mood": "calm"},
            GO,
            {"type": "attachment", "uuid": "u1", "attachment": {"type": "weather"}},
            {"type": "system", "subtype": "hiccup", "uuid": "u2"},
            {"type": "last-prompt", "lastPrompt": "Go."},
        ],
        ["attachment/weather", "last-prompt", "mood", "permission-mode", "system/hiccup"],
    ),
    "codex": (
        [
            META,
            {"type": "mood", "mood": "calm"},
            rollout("world_state", {"full": True}),
            rollout("response_item", said("Go.")),
            rollout("event_msg", {"type": "sunrise"}),
        ],
        ["event_msg/sunrise", "mood", "session_meta", "world_state"],
    ),
    "pi": (
        [{"type": "session", "id": "s"}, PI, {"type": "mood", "id": "2", "parentId": "1"}, {"type": "weather"}],
        ["mood", "session", "weather"],
    ),
    "gemini_cli": (
        [
            {"sessionId": "s", "projectHash": "h"},
            GEMINI,
            GEMINI | {"id": "2", "type": "oracle"} | {"timestamp": "t"},
            {"type": "mood"},
        ],
        ["mood", "oracle", "untyped"],
    ),
}


@pytest.mark.parametrize("kind", NEWER)
def test_kinds_of_entries_of_newer_versions_are_counted_and_no_problem(shelf: Shelf, kind: str) -> None:
    entries, kinds = NEWER[kind]
    transcript = shelf.read_one(lines(entries))
    assert shelf.problems == []
    assert transcript.meta["session_format"] == kind
    assert transcript.meta["entries"] == entries
    assert transcript.meta["skipped_kinds"] == dict.fromkeys(kinds, 1)
    assert transcript.meta["skipped_entries"] == len(kinds)
    assert len(transcript.messages) == 1


def test_entries_before_the_first_known_one_belong_to_the_session(shelf: Shelf) -> None:
    first = [{"type": "mood", "mood": number} for number in range(3)]
    transcript = shelf.read_one(lines([*first, GO]))
    assert transcript.meta["entries"] == [*first, GO]
    assert (transcript.meta["line"], transcript.meta["skipped_kinds"]) == (1, {"mood": 3})
    assert shelf.problems == []


@pytest.mark.parametrize("around", [[], [user("Go.")], [{"messages": [user("Go.")]}]], ids=["alone", "loose", "list"])
def test_an_entry_of_no_session_is_a_problem(shelf: Shelf, around: list[Dict]) -> None:
    shelf.read(lines([{"type": "mood"}, *around, {"type": "mood"}]))
    codes = [problem.code for problem in shelf.problems]
    assert codes == (["unknown_record"] * 2 if around else ["no_transcript"])


def test_what_is_damaged_in_a_session_stays_a_problem(shelf: Shelf) -> None:
    damaged: list[Any] = [5, {}, {"type": 7}, {"type": "user", "uuid": "x", "message": 5}]
    shelf.read(lines([GO, *damaged, GO]))
    codes = [problem.code for problem in shelf.problems]
    assert codes == ["unknown_record"] * 3 + ["entry_without_message", "repeated_entry"]


@pytest.mark.parametrize("kind", NEWER)
def test_a_sound_session_of_a_newer_version_ends_with_zero(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(lines(NEWER[kind][0]))
    out = tmp_path / "out"
    assert main(["compact", str(path), "--out", str(out), "--keep-turns", "1"]) == 0
    assert "unknown" not in capsys.readouterr().err
    (record,) = map(json.loads, (out / "session.jsonl").read_text(encoding="utf-8").splitlines())
    assert record["meta"]["skipped_kinds"] == dict.fromkeys(NEWER[kind][1], 1)


@pytest.mark.parametrize("entries", TYPED_ONCE.values(), ids=TYPED_ONCE)
def test_the_command_line_keeps_the_typed_text(entries: list[Dict], tmp_path: Path) -> None:
    path, out = tmp_path / "session.jsonl", tmp_path / "out"
    path.write_bytes(lines([GO, *entries, DONE]))
    assert main(["compact", str(path), "--out", str(out), "--keep-messages", "50"]) == 0
    (record,) = map(json.loads, (out / "session.jsonl").read_text(encoding="utf-8").splitlines())
    assert count_in(record["messages"], TYPED) == 1


@pytest.mark.parametrize("typed", ["ls -la", "!ls -la"])
def test_a_command_of_the_shell_is_typed_once(shelf: Shelf, typed: str) -> None:
    """The user's entry has it as an element."""
    entries = [
        GO,
        call("a"),
        operation("enqueue", typed),
        result("a"),
        operation("dequeue"),
        entry("user", "sh", "<bash-input>ls -la</bash-input>"),
        DONE,
    ]
    session = shelf.read_one(lines(entries))
    assert str(session.messages).count("ls -la") == 1
