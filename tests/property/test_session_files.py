"""No entry of a session file is lost: each is in a message, in a branch, skipped and counted, or a problem."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldline as fl

Dict = dict[str, Any]

#: Values that are not entries, and an entry of an unknown kind.
junk = st.sampled_from([5, None, "x", [5], {}, {"type": "unheard_of"}, {"type": 7}, {"a": {"b": [1]}}])
#: What happens to a text in the queue of Claude Code.
OPERATIONS = ("dequeue", "remove", "popAll", "new")

names = st.sampled_from(["a", "b", "c", "d"])
words = st.text("abc äあ🙂", max_size=8)
anything = st.one_of(st.none(), st.integers(), words, st.lists(words, max_size=2), st.just({"x": 1}))


@st.composite
def codex(draw: st.DrawFn) -> Dict:
    """A line of a rollout."""
    item = st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("message"), "role": st.sampled_from(["user", "assistant"]), "content": words}
        ),
        st.fixed_dictionaries({"type": st.just("function_call"), "call_id": names, "name": names, "arguments": words}),
        st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": names, "output": words}),
        st.fixed_dictionaries({"type": st.just("reasoning"), "summary": st.just([]), "encrypted_content": words}),
        anything,
    )
    kinds = ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "new", "world_state"]
    kind = draw(st.sampled_from([*kinds, "inter_agent_communication"]))
    payload = {
        "response_item": item,
        "event_msg": st.one_of(
            anything, st.builds(lambda n: {"type": "thread_rolled_back", "num_turns": n}, st.integers(-1, 3)),
            st.builds(lambda text: {"type": "agent_message", "message": text}, words),
        ),
        "inter_agent_communication": st.one_of(anything, st.builds(lambda text: {"content": text}, words)),
        "compacted": st.one_of(
            anything, st.builds(lambda text, items: {"message": text, "replacement_history": items}, words,
                                st.one_of(st.none(), st.lists(item, max_size=3)))
        ),
    }  # fmt: skip
    return {"timestamp": "t", "type": kind, "payload": draw(payload.get(kind, anything))}


@st.composite
def gemini(draw: st.DrawFn) -> Dict:
    """A record of a Gemini CLI session."""
    call = st.one_of(
        anything,
        st.fixed_dictionaries(
            {"id": names, "name": names, "args": st.just({})},
            optional={"result": st.one_of(words, st.none(), st.just([{"functionResponse": {"name": "f"}}]), anything)},
        ),
    )
    record = {"id": draw(names), "timestamp": "t", "content": draw(st.one_of(words, anything))}
    record["type"] = draw(st.sampled_from(["user", "gemini", "gemini", "info", "error", "oracle"]))
    if draw(st.booleans()):
        record["toolCalls"] = draw(st.one_of(anything, st.lists(call, max_size=2)))
    return record


gemini_lines = st.one_of(
    gemini(),
    st.builds(lambda id: {"$rewindTo": id}, names),
    st.builds(lambda records: {"$set": {"messages": records}}, st.lists(st.one_of(gemini(), junk), max_size=3)),
    st.just({"$set": {"lastUpdated": "t"}}),
)


@st.composite
def pi(draw: st.DrawFn) -> Dict:
    """An entry of a pi session, with any parent or none."""
    kinds = ["message", "message", "compaction", "branch_summary", "custom_message", "label", "custom", "new"]
    entry: Dict = {"type": draw(st.sampled_from(kinds)), "id": draw(names), "summary": draw(words)}
    entry["message"] = draw(st.one_of(anything, st.builds(lambda text: {"role": "user", "content": text}, words)))
    entry["content"] = draw(words)
    return entry | {"parentId": draw(st.one_of(st.none(), names, st.integers()))}


@st.composite
def claude(draw: st.DrawFn) -> Dict:
    """An entry of a Claude Code session."""
    block = st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, words),
        st.builds(lambda id: {"type": "tool_use", "id": id, "name": "f", "input": {}}, names),
        st.builds(lambda id, text: {"type": "tool_result", "tool_use_id": id, "content": text}, names, words),
    )
    kind = draw(st.sampled_from(["user", "user", "assistant", "system", "attachment", "file-history-snapshot"]))
    message = st.fixed_dictionaries(
        {"role": st.just(kind), "content": st.one_of(words, st.none(), st.lists(block, max_size=3))},
        optional={"id": names},
    )
    entry = {"type": kind, "uuid": draw(st.text("abcdef", min_size=2, max_size=3)), "message": draw(message)}
    return entry | {"parentUuid": draw(st.one_of(st.none(), st.text("abcdef", min_size=2, max_size=3)))}


@st.composite
def queue(draw: st.DrawFn) -> Dict:
    """What Claude Code writes about a text that is typed while the agent works."""
    typed = draw(st.one_of(words, st.sampled_from(["Wait.", "/clear", "Wait.\nStop.", "[Image #1]"])))
    if draw(st.booleans()):
        prompt = draw(st.one_of(st.just(typed), st.just([{"type": "text", "text": typed}]), anything))
        origin = draw(st.sampled_from([None, {"kind": "human"}, {"kind": "task-notification"}]))
        attachment = {"type": "queued_command", "prompt": prompt, "origin": origin}
        uuid = draw(st.text("abcdef", min_size=2, max_size=3))
        return {"type": "attachment", "uuid": uuid, "attachment": attachment}
    entry = {"type": "queue-operation", "operation": draw(st.sampled_from(["enqueue", "enqueue", *OPERATIONS]))}
    content = st.one_of(st.just(typed), st.just([{"type": "text", "text": typed}]), anything)
    reason = st.sampled_from([None, "absorbed_mid_turn", "cancelled"])
    return entry | draw(st.fixed_dictionaries({}, optional={"content": content, "reason": reason}))


@st.composite
def swe_agent(draw: st.DrawFn) -> Dict:
    """An entry of a history."""
    entry = {"role": draw(st.sampled_from(["user", "assistant", "tool"])), "content": draw(words)}
    return entry | draw(
        st.fixed_dictionaries(
            {},
            optional={"agent": names, "is_demo": st.booleans(), "tool_call_ids": st.one_of(anything, st.lists(names))},
        )
    )


@st.composite
def opencode(draw: st.DrawFn) -> Dict:
    """A message of an opencode session with its parts."""
    state = st.fixed_dictionaries(
        {"status": st.sampled_from(["completed", "error", "running"])},
        optional={"input": anything, "output": words, "error": words, "attachments": anything},
    )
    kinds = ["text", "reasoning", "tool", "file", "step-start", "compaction", "subtask", "patch", "new"]
    part = st.fixed_dictionaries(
        {"type": st.sampled_from(kinds), "text": st.one_of(words, anything), "state": st.one_of(state, anything)},
        optional={"callID": names, "tool": names, "prompt": words, "ignored": st.booleans(), "url": words},
    )
    info = {"role": draw(st.sampled_from(["user", "assistant", "oracle"])), "summary": draw(st.booleans())}
    return {"info": info, "parts": draw(st.lists(st.one_of(part, part, anything), max_size=4))}


@st.composite
def goose(draw: st.DrawFn) -> Dict:
    """A message of a goose session."""
    kinds = ["text", "toolRequest", "toolResponse", "thinking", "image", "systemNotification", "new"]
    outcome = st.one_of(
        anything,
        st.builds(lambda value: {"status": "success", "value": value}, anything),
        st.builds(lambda name: {"status": "success", "value": {"name": name, "arguments": {}}}, names),
        st.builds(lambda error: {"status": "error", "error": error}, words),
    )
    part = st.fixed_dictionaries(
        {"type": st.sampled_from(kinds), "text": words, "id": names},
        optional={"toolCall": outcome, "toolResult": outcome, "data": words, "mimeType": words, "msg": words},
    )
    metadata = st.fixed_dictionaries({}, optional={"agentVisible": st.booleans(), "userVisible": st.booleans()})
    content = st.one_of(anything, st.lists(st.one_of(part, part, anything), max_size=3))
    message = {"role": draw(st.sampled_from(["user", "assistant"])), "content": draw(content)}
    return message | {"metadata": draw(st.one_of(metadata, anything))}


@st.composite
def cline(draw: st.DrawFn) -> Dict:
    """A message of a task of Cline or Roo Code."""
    marks = st.fixed_dictionaries(
        {"ts": st.integers(0, 9)},
        optional={"isSummary": st.booleans(), "condenseId": names, "condenseParent": names, "type": words},
    )
    return {"role": draw(st.sampled_from(["user", "assistant"])), "content": draw(words)} | draw(marks)


cline_log = st.one_of(
    st.builds(
        lambda kind, text, images: {"ts": 1, "type": "say", "say": kind, "text": text, "images": images},
        st.sampled_from(["text", "user_feedback", "api_req_started", "error", "new"]), anything, anything,
    ),
    st.builds(lambda kind, text: {"type": "ask", "ask": kind, "text": text}, st.sampled_from(["tool", "new"]), words),
)  # fmt: skip


def text_of(content: Any) -> str:
    """The text of a content."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(block["text"] for block in blocks if isinstance(block, dict) and "text" in block)


def read(data: bytes) -> tuple[list[fl.StoredTranscript], list[fl.Problem]]:
    """The transcripts and problems of a file with these bytes."""
    problems: list[fl.Problem] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        return list(fl.read(path, on_problem=problems.append)), problems


def accounted(transcripts: list[fl.StoredTranscript], entries: list[Any], wrong: set[int]) -> None:
    """Every entry is in ``meta`` unchanged, and in a message, in a branch, skipped, or a problem."""
    meta = transcripts[0].meta
    assert meta["entries"] == entries
    used: set[int] = set()
    for transcript in transcripts:
        assert transcript.meta["entries"] == entries
        assert len(transcript.meta["sources"]) == len(transcript.messages)
        for sources in transcript.meta["sources"]:
            used.update(sources)
        for branch in transcript.meta.get("branches", []):
            assert len(branch["sources"]) == len(branch["messages"]) > 0
            assert branch["from_entry"] is None or branch["from_entry"] < len(entries)
            used.update(*branch["sources"])
    left = set(range(len(entries))) - used - wrong
    assert len(left) <= meta["skipped_entries"]
    for transcript in transcripts:
        json.dumps(transcript.messages)
        for key in ("compact_boundaries", "summaries", "demonstrations"):
            assert all(0 <= at <= len(transcript.messages) for at in transcript.meta.get(key, []))


#: The kind, the opening lines, its entries, and values that must not be in a file with its lines.
LINES = {
    "codex": ({"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}}, codex()),
    "gemini_cli": ({"sessionId": "s", "projectHash": "h"}, gemini_lines),
    "pi": ({"type": "session", "id": "s"}, pi()),
    "claude_code": ({"type": "summary", "summary": "s"}, st.one_of(claude(), queue())),
    "goose": ({"working_dir": "/", "message_count": 0}, goose()),
}


@pytest.mark.parametrize("kind", LINES)
@given(data=st.data())
def test_every_line_of_a_session_is_accounted_for(kind: str, data: st.DataObject) -> None:
    header, entries = LINES[kind]
    values = [header, *data.draw(st.lists(st.one_of(entries, entries, entries, junk), max_size=12))]
    transcripts, problems = read(b"".join(json.dumps(value).encode() + b"\n" for value in values))
    if not transcripts:
        assert problems
        return
    lines = {problem.line for problem in problems}
    given = [transcript for transcript in transcripts if transcript.meta.get("session_format") == kind]
    # A line is an entry of the session, or not an entry, which is a problem.
    found = given[0].meta["entries"] if given else []
    places = [i for i, value in enumerate(values) if any(value is not None and value == each for each in found)]
    assert all(i + 1 in lines for i in range(len(values)) if i not in places)
    if given:
        entry_lines = [i for i, value in enumerate(values) if value in found]
        assert len(entry_lines) == len(found)
        wrong = {at for at, i in enumerate(entry_lines) if i + 1 in lines}
        accounted(given, found, wrong)


@given(data=st.data())
def test_every_text_in_the_queue_is_in_a_message_or_named(data: st.DataObject) -> None:
    values = [{"type": "summary"}, *data.draw(st.lists(st.one_of(claude(), queue(), queue()), max_size=12))]
    transcripts, problems = read(b"".join(json.dumps(value).encode() + b"\n" for value in values))
    repeated = {problem.line for problem in problems if problem.code == "repeated_entry"}
    if not transcripts:
        return
    named = {each["entry"] for each in transcripts[0].meta.get("unread", [])}
    found, used = [], set()
    for transcript in transcripts:
        for holder in ({"messages": transcript.messages, **transcript.meta}, *transcript.meta.get("branches", [])):
            found += [text_of(message["content"]) for message in holder["messages"] if message["role"] == "user"]
            used.update(*holder["sources"])
    for i, entry in enumerate(values):
        text = text_of(entry.get("content") if "operation" in entry else entry.get("attachment", {}).get("prompt"))
        is_human = "operation" in entry or entry.get("attachment", {}).get("origin") != {"kind": "task-notification"}
        if not text.strip() or i + 1 in repeated:
            continue
        if "attachment" in entry:
            assert (i in used, i in named) == (is_human, not is_human)
        elif entry["operation"] == "enqueue" and "[Image" not in text:
            assert i in named or any(text.strip() in each for each in found) or text == "/clear"


@pytest.mark.parametrize(("key", "entries"), [("messages", gemini()), ("history", swe_agent())], ids=["gemini", "swe"])
@given(data=st.data())
def test_every_entry_of_a_document_is_accounted_for(key: str, entries: Any, data: st.DataObject) -> None:
    first = data.draw(entries)
    values = [first, *data.draw(st.lists(st.one_of(entries, entries, entries, junk), max_size=8))]
    around = {"sessionId": "s", "projectHash": "h"} if key == "messages" else {"trajectory": [], "info": {"a": 1}}
    transcripts, problems = read(json.dumps(around | {key: values}).encode())
    assert transcripts
    for transcript in transcripts:
        assert transcript.meta.items() >= around.items()
    accounted(transcripts, values, {problem.index for problem in problems if problem.index is not None})


#: The first entry of a document of each kind, its entries, and what holds them.
DOCUMENTS: dict[str, tuple[Dict, Any, Any]] = {
    "opencode": ({"info": {"role": "user"}, "parts": []}, opencode(), lambda values: {"info": {}, "messages": values}),
    "opencode, a list": ({"info": {"role": "user"}, "parts": []}, opencode(), lambda values: values),
    "goose": ({"role": "user", "content": []}, goose(), lambda values: {"working_dir": "/", "conversation": values}),
    "cline, the log": ({"type": "say", "say": "text", "text": "Go."}, cline_log, lambda values: values),
    "claude_code": ({"type": "user"}, st.one_of(claude(), queue()), lambda values: {"loglines": values}),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(data=st.data())
def test_every_entry_of_a_session_in_one_document_is_accounted_for(kind: str, data: st.DataObject) -> None:
    first, entries, around = DOCUMENTS[kind]
    values = [first, *data.draw(st.lists(st.one_of(entries, entries, entries, junk), max_size=8))]
    transcripts, problems = read(json.dumps(around(values)).encode())
    assert transcripts or problems
    given = [each for each in transcripts if each.meta["session_format"] == kind.partition(",")[0]]
    if given:
        accounted(given, values, {problem.index for problem in problems if problem.index is not None})


@given(messages=st.lists(cline(), min_size=1, max_size=8))
def test_every_message_of_a_task_is_kept(messages: list[Dict]) -> None:
    ((transcript,), problems) = read(json.dumps(messages).encode())
    assert (transcript.messages, problems) == (messages, [])
    assert transcript.meta["summaries"] == [i for i, each in enumerate(messages) if each.get("isSummary")]


@given(data=st.data(), count=st.integers(0, 10))
def test_every_turn_of_a_dialogue_is_a_message_or_a_problem(data: st.DataObject, count: int) -> None:
    turn = st.one_of(st.fixed_dictionaries({"message": words}, optional={"attrs": anything}), junk)
    turns = [{"message": "a"}, *data.draw(st.lists(turn, max_size=count))]
    ((transcript,), problems) = read(json.dumps({"messages": turns}).encode())
    wrong = {problem.index for problem in problems}
    good = [turn for i, turn in enumerate(turns) if i not in wrong]
    assert [message["content"] for message in transcript.messages] == [turn["message"] for turn in good]
    assert all(
        message.get("attrs") == turn.get("attrs") for message, turn in zip(transcript.messages, good, strict=True)
    )


@pytest.mark.parametrize("kind", LINES)
@given(data=st.data())
def test_a_session_torn_anywhere_keeps_its_whole_lines(kind: str, data: st.DataObject) -> None:
    header, entries = LINES[kind]
    values = [header, *data.draw(st.lists(entries, min_size=1, max_size=6))]
    whole = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    torn = whole[: data.draw(st.integers(0, len(whole)))]
    kept = torn.count(b"\n")
    transcripts, _ = read(torn)
    for transcript in transcripts:
        if transcript.meta.get("session_format") == kind:
            assert len(transcript.meta["entries"]) <= kept + 1
            assert transcript.meta["entries"][:kept] == [v for v in values[:kept] if v in transcript.meta["entries"]]
