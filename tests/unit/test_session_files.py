"""`read`: the sessions of Codex, Gemini CLI, SWE-agent and pi, dialogues without roles, and abandoned branches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.samples import user
from unit.shelf import Shelf, line, lines

Dict = dict[str, Any]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def entry(kind: str, payload: Any, at: str = "2025-09-25T14:02:05Z") -> Dict:
    """A line of a Codex rollout."""
    return {"timestamp": at, "type": kind, "payload": payload}


# --- Codex -------------------------------------------------------------------------------------------


def item(text: str, role: str = "user") -> Dict:
    """A message item."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def call(id: str = "c1") -> Dict:
    return {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": id}


def output(id: str = "c1") -> Dict:
    return {"type": "function_call_output", "call_id": id, "output": "done"}


META = entry("session_meta", {"id": "s1", "cwd": "/src", "instructions": None})
REASONING = {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAAA"}


def test_a_rollout_gives_its_items_unchanged(shelf: Shelf) -> None:
    items = [item("Go."), REASONING, call(), output(), item("Done.", "assistant")]
    entries = [
        META,
        entry("response_item", items[0]),
        entry("event_msg", {"type": "user_message", "message": "Go."}),
        entry("turn_context", {"cwd": "/src", "model": "m"}),
        *(entry("response_item", each) for each in items[1:]),
    ]
    transcript = shelf.read_one(lines(entries))
    assert (transcript.id, transcript.format) == ("s1", "openai_responses")
    assert transcript.messages == items
    assert fl.validate(transcript.messages, "responses") == []
    assert transcript.meta["session_format"] == "codex"
    assert transcript.meta["entries"] == entries
    assert transcript.meta["sources"] == [[1], [4], [5], [6], [7]]
    assert transcript.meta["skipped_entries"] == 3
    assert shelf.problems == []


def test_a_rollout_without_envelopes_gives_the_same(shelf: Shelf) -> None:
    header = {"id": "s2", "timestamp": "2025-08-18T01:16:13Z", "instructions": None, "git": {}}
    items = [item("Go."), call(), output()]
    transcript = shelf.read_one(lines([header, {"record_type": "state"}, items[0], *items[1:]]))
    assert (transcript.id, transcript.format, transcript.messages) == ("s2", "openai_responses", items)
    assert shelf.problems == []


def test_the_oldest_rollouts_are_one_document(shelf: Shelf) -> None:
    document = {"session": {"id": "s3"}, "items": [item("Go."), call(), output()]}
    transcript = shelf.read_one(json.dumps(document, indent=2).encode(), "rollout.json")
    assert (transcript.format, transcript.messages) == ("openai_responses", document["items"])
    assert transcript.meta["session"] == {"id": "s3"}


def test_a_compaction_is_a_boundary_with_its_summary(shelf: Shelf) -> None:
    entries = [
        META,
        entry("response_item", item("Go.")),
        entry("compacted", {"message": "So far."}),
        entry("response_item", item("On.")),
    ]
    transcript = shelf.read_one(lines(entries))
    assert transcript.messages == [item("Go."), item("So far."), item("On.")]
    assert (transcript.meta["compact_boundaries"], transcript.meta["summaries"]) == ([1], [1])
    assert transcript.meta["sources"] == [[1], [2], [3]]


def test_a_compaction_at_openai_is_not_changed_and_nothing_is_duplicated(shelf: Shelf) -> None:
    encrypted = {"type": "compaction", "encrypted_content": "gAAAA"}
    replaced = {"message": "", "replacement_history": [item("Go."), encrypted]}
    entries = [META, entry("response_item", item("Go.")), entry("compacted", replaced)]
    transcript = shelf.read_one(lines(entries))
    assert transcript.messages == [item("Go."), encrypted]
    assert (transcript.meta["compact_boundaries"], transcript.meta["summaries"]) == ([1], [1])


def test_rolled_back_turns_are_a_branch(shelf: Shelf) -> None:
    rolled = {"type": "thread_rolled_back", "num_turns": 1}
    entries = [
        META,
        entry("response_item", item("<environment_context/>")),
        entry("response_item", item("This way.")),
        entry("response_item", item("Yes.", "assistant")),
        entry("event_msg", rolled),
        entry("response_item", item("That way.")),
    ]
    transcript = shelf.read_one(lines(entries))
    assert transcript.messages == [item("<environment_context/>"), item("That way.")]
    (branch,) = transcript.meta["branches"]
    assert branch["messages"] == [item("This way."), item("Yes.", "assistant")]
    assert (branch["from_entry"], branch["sources"]) == (1, [[2], [3]])


def test_separately_sent_instructions_are_reported(shelf: Shelf) -> None:
    meta = entry("session_meta", {"id": "s", "base_instructions": {"text": "Be brief."}})
    transcript = shelf.read_one(lines([meta, entry("response_item", item("Go."))]))
    assert transcript.meta["instructions"] == "Be brief."


def test_a_problem_in_a_rollout_is_reported_at_its_line_and_the_rest_is_read(shelf: Shelf) -> None:
    good = [entry("response_item", item("Go.")), entry("response_item", item("On."))]
    bad = [
        entry("response_item", None),
        {"timestamp": "t", "type": "response_item"},
        entry("response_item", {"text": "unheard of"}),
        entry("compacted", 5),
    ]
    data = [line(each) for each in (META, good[0], *bad, good[1])]
    transcript = shelf.read_one(b"".join(data) + line(good[0])[:-9])
    assert transcript.messages == [item("Go."), item("On.")]
    codes = ["entry_without_message"] * 4
    offsets = [sum(map(len, data[:i])) for i in range(len(data) + 1)]
    assert shelf.told()[1:] == [(code, i, offsets[i - 1]) for i, code in enumerate(codes, 3)]
    assert shelf.told()[0][:2] == ("torn_line", 8)


def test_a_rollout_without_an_item_gives_no_transcript(shelf: Shelf) -> None:
    assert shelf.read(lines([META, entry("turn_context", {})])) == []
    assert [problem.code for problem in shelf.problems] == ["no_transcript"]


def test_an_interrupted_call_stays_open(shelf: Shelf) -> None:
    entries = [META, *(entry("response_item", each) for each in (item("Go."), call(), item("Stop.")))]
    transcript = shelf.read_one(lines(entries))
    assert [problem.code for problem in fl.validate(transcript.messages, "responses")] == ["call_unanswered"]


# --- Gemini CLI --------------------------------------------------------------------------------------


def record(id: str, kind: str, content: Any = "", **more: Any) -> Dict:
    """A record of a Gemini CLI session."""
    return {"id": id, "timestamp": "2025-10-29T10:37:00Z", "type": kind, "content": content, **more}


def tool_call(id: str, *, cut_off: bool = False) -> Dict:
    response = {"functionResponse": {"id": id, "name": "read_file", "response": {"output": f"result of {id}"}}}
    made = {"id": id, "name": "read_file", "args": {"path": "/a"}, "status": "success", "displayName": "ReadFile"}
    return made | ({} if cut_off else {"result": [response]})


def called(id: str) -> Dict:
    return {"functionCall": {"id": id, "name": "read_file", "args": {"path": "/a"}}}


def responded(id: str) -> Dict:
    return {"functionResponse": {"id": id, "name": "read_file", "response": {"output": f"result of {id}"}}}


def content(role: str, *parts: Dict) -> Dict:
    return {"role": role, "parts": list(parts)}


HEADER = {"sessionId": "g1", "projectHash": "cde6", "startTime": "2025-10-29T10:37:00Z"}
THOUGHTS = {"thoughts": [{"subject": "Looking", "description": "I look."}], "tokens": {"input": 5, "total": 7}}
RECORDS = [
    record("1", "user", "Go."),
    record("2", "gemini", "I look.", **THOUGHTS),
    record("3", "gemini", toolCalls=[tool_call("a"), tool_call("b")]),
    record("4", "info", "An update is available."),
    record("5", "gemini", "Done."),
    record("6", "user", [{"text": "Thanks."}]),
]
CONTENTS = [
    content("user", {"text": "Go."}),
    content("model", {"text": "I look."}, called("a"), called("b")),
    content("user", responded("a"), responded("b")),
    content("model", {"text": "Done."}),
    content("user", {"text": "Thanks."}),
]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_gemini_session_gives_its_contents(shelf: Shelf, indent: int | None) -> None:
    document = json.dumps(HEADER | {"messages": RECORDS}, indent=indent).encode()
    transcript = shelf.read_one(document, "session.json")
    assert (transcript.id, transcript.format, transcript.messages) == ("g1", "gemini", CONTENTS)
    assert fl.validate(transcript.messages, "gemini") == []
    meta = transcript.meta
    assert meta["entry_ids"] == [["1"], ["2", "3"], ["3"], ["5"], ["6"]]
    assert meta["entries"][1]["tokens"] == THOUGHTS["tokens"]
    assert (meta["session_format"], meta["projectHash"], meta["skipped_entries"]) == ("gemini_cli", "cde6", 1)
    assert shelf.problems == []


def test_a_gemini_log_gives_the_same(shelf: Shelf) -> None:
    unfinished = record("3", "gemini", toolCalls=[tool_call("a", cut_off=True)])
    log = [
        HEADER,
        RECORDS[0],
        record("x", "user", "Not so."),
        {"$rewindTo": "x"},
        RECORDS[1],
        unfinished,
        *RECORDS[2:],
        {"$set": {"lastUpdated": "now"}},
    ]
    transcript = shelf.read_one(lines(log))
    assert (transcript.id, transcript.messages) == ("g1", CONTENTS)
    (branch,) = transcript.meta["branches"]
    assert (branch["from_entry"], branch["messages"]) == (1, [content("user", {"text": "Not so."})])
    assert transcript.meta["sources"][2] == [5, 6]
    assert transcript.meta["entries"] == log
    assert shelf.problems == []


@pytest.mark.parametrize("records", [[], [record("1", "warning", "A hook failed.")]])
def test_a_gemini_session_without_messages_is_empty(shelf: Shelf, records: list[Any]) -> None:
    transcript = shelf.read_one(json.dumps(HEADER | {"messages": records}, indent=1).encode())
    assert (transcript.id, transcript.format, transcript.messages) == ("g1", "gemini", [])
    assert shelf.problems == []


def test_an_interrupted_gemini_call_stays_open(shelf: Shelf) -> None:
    records = [
        RECORDS[0],
        record("2", "gemini", toolCalls=[tool_call("a", cut_off=True)]),
        record("3", "user", "Stop."),
    ]
    transcript = shelf.read_one(line(HEADER | {"messages": records}))
    assert [each["role"] for each in transcript.messages] == ["user", "model", "user"]
    assert "call_unanswered" in {problem.code for problem in fl.validate(transcript.messages, "gemini")}


def test_a_text_result_becomes_a_response(shelf: Shelf) -> None:
    made = tool_call("a") | {"result": "plain"}
    transcript = shelf.read_one(line(HEADER | {"messages": [RECORDS[0], record("2", "gemini", toolCalls=[made])]}))
    response = {"id": "a", "name": "read_file", "response": {"output": "plain"}}
    assert transcript.messages[2] == content("user", {"functionResponse": response})


def test_a_problem_in_a_gemini_session_is_reported_and_the_rest_is_read(shelf: Shelf) -> None:
    records = [RECORDS[0], 5, record("2", "oracle", "Hm."), record("3", "user", None), RECORDS[4]]
    transcript = shelf.read_one(line(HEADER | {"messages": records}))
    assert [each["role"] for each in transcript.messages] == ["user", "model"]
    told = [(problem.code, problem.index) for problem in shelf.problems]
    assert told == [("not_an_object", 1), ("entry_without_message", 3)]
    assert transcript.meta["unread"] == [{"entry": 2, "reason": "unknown_kind"}]
    assert {(problem.line, problem.offset) for problem in shelf.problems} == {(1, 0)}


# --- SWE-agent ---------------------------------------------------------------------------------------


def turn(role: str, words: str, agent: str = "main", **more: Any) -> Dict:
    return {"role": role, "content": words, "agent": agent, **more}


def test_a_trajectory_gives_its_history(shelf: Shelf) -> None:
    history = [
        turn("system", "Setting."),
        turn("user", "A demonstration.", is_demo=True),
        turn("user", "The issue."),
        turn("assistant", "I look.\n```\nls\n```", thought="I look.\n", action="ls\n"),
        turn("user", "a b"),
    ]
    steps = [{"action": "ls\n", "observation": "a b", "response": "I look.", "state": "{}", "thought": "I look.\n"}]
    document = {
        "environment": "swe_main",
        "trajectory": steps,
        "history": history,
        "info": {"exit_status": "submitted"},
    }
    transcript = shelf.read_one(json.dumps(document, indent=2).encode(), "a.traj")
    assert (transcript.id, transcript.format, transcript.messages) == ("a:0", "openai_chat", history)
    assert transcript.meta["demonstrations"] == [1]
    assert (transcript.meta["trajectory"], transcript.meta["info"]) == (steps, document["info"])
    assert transcript.meta["session_format"] == "swe_agent"
    assert shelf.problems == []


def test_a_result_answers_the_call_that_it_lists(shelf: Shelf) -> None:
    made = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    history = [
        turn("user", "The issue."),
        turn("assistant", "I look.", tool_calls=[made]),
        turn("tool", "a b", tool_call_ids=["c1"]),
    ]
    transcript = shelf.read_one(line({"history": history}))
    assert transcript.messages == [*history[:2], history[2] | {"tool_call_id": "c1"}]
    assert fl.validate(transcript.messages, "openai") == []


def test_each_agent_of_a_trajectory_has_its_own_transcript(shelf: Shelf) -> None:
    history = [turn("user", "The issue."), turn("user", "Sub task.", "helper"), turn("assistant", "Done.")]
    main, helper = shelf.read(line({"history": history, "instance_id": 1, "id": "t"}))
    assert (main.id, helper.id) == ("t", "t#helper")
    assert (main.messages, helper.messages) == ([history[0], history[2]], [history[1]])
    assert helper.meta["sources"] == [[1]]


def test_a_trajectory_without_a_history_is_its_steps(shelf: Shelf) -> None:
    steps = [
        {"query": [user("The issue.")], "action": "ls", "observation": "a b", "response": "I look."},
        {"action": "submit", "observation": None, "response": "I submit."},
        {"action": "submit", "observation": 5},
    ]
    transcript = shelf.read_one(line({"trajectory": steps}))
    assert [each["role"] for each in transcript.messages] == ["user", "assistant", "user", "assistant"]
    assert transcript.messages[0] == user("The issue.")
    assert [(problem.code, problem.index) for problem in shelf.problems] == [("entry_without_message", 2)]


def test_a_history_entry_without_a_role_is_reported(shelf: Shelf) -> None:
    transcript = shelf.read_one(line({"history": [turn("user", "Go."), {"agent": "main"}, 7]}))
    assert len(transcript.messages) == 1
    told = [(problem.code, problem.index) for problem in shelf.problems]
    assert told == [("entry_without_message", 1), ("not_an_object", 2)]


# --- Dialogues ---------------------------------------------------------------------------------------


def test_the_speakers_of_a_dialogue_alternate(shelf: Shelf) -> None:
    attrs = [{"attrname": "year", "attrvalue": "2004", "name": "a film"}]
    turns = [{"message": "你好"}, {"attrs": attrs, "message": "好"}, {"message": "再见"}]
    transcript = shelf.read_one(json.dumps([{"messages": turns, "name": "film"}], indent=2).encode(), "talks.json")
    assert (transcript.id, transcript.format) == ("talks:0", "openai_chat")
    assert transcript.messages == [
        {"role": "user", "content": "你好"},
        {"role": "assistant", "content": "好", "attrs": attrs},
        {"role": "user", "content": "再见"},
    ]
    assert (transcript.meta["roles"], transcript.meta["name"]) == ("assumed", "film")
    assert shelf.problems == []


def test_a_turn_without_text_is_reported_and_keeps_its_speaker(shelf: Shelf) -> None:
    transcript = shelf.read_one(line({"messages": [{"message": "a"}, {"attrs": []}, {"message": "c"}]}))
    assert [each["role"] for each in transcript.messages] == ["user", "user"]
    assert [(problem.code, problem.index) for problem in shelf.problems] == [("entry_without_message", 1)]


# --- pi and Claude Code: branches --------------------------------------------------------------------


def pi_message(id: str, parent: str | None, text: str) -> Dict:
    return {"type": "message", "id": id, "parentId": parent, "message": user(text)}


def test_the_newest_branch_of_a_pi_session_is_its_transcript(shelf: Shelf) -> None:
    entries = [
        {"type": "session", "version": 3, "id": "p1"},
        pi_message("1", None, "Go."),
        pi_message("2", "1", "This way."),
        pi_message("3", "2", "Further."),
        {"type": "branch_summary", "id": "4", "parentId": "1", "fromId": "3", "summary": "It led nowhere."},
        {
            "type": "custom_message",
            "id": "5",
            "parentId": "4",
            "customType": "x",
            "content": "Mind this.",
            "display": True,
        },
        {"type": "label", "id": "6", "parentId": "5", "targetId": "1", "label": "begin"},
        pi_message("7", "6", "That way."),
    ]
    transcript = shelf.read_one(lines(entries))
    assert transcript.messages == [
        user("Go."),
        {"role": "branchSummary", "summary": "It led nowhere.", "fromId": "3"},
        {"role": "custom", "customType": "x", "content": "Mind this.", "display": True},
        user("That way."),
    ]
    assert transcript.meta["entry_ids"] == [["1"], ["4"], ["5"], ["7"]]
    assert transcript.meta["summaries"] == [1]
    (branch,) = transcript.meta["branches"]
    assert branch == {"from_entry": 1, "messages": [user("This way."), user("Further.")], "sources": [[2], [3]]}
    assert shelf.problems == []
    counts = fl.TokenCounter("chars/4").count_messages(transcript.messages, format="pi")
    assert counts.per_message[1] == fl.TokenCounter("chars/4").count("It led nowhere.")


def test_a_summary_of_pi_is_a_boundary_and_named(shelf: Shelf) -> None:
    compaction = {"type": "compaction", "parentId": "1", "summary": "So far: gone.", "firstKeptEntryId": "1"}
    entries = [
        pi_message("1", None, "Go."),
        compaction | {"id": "2"},
        {"type": "custom", "id": "3", "parentId": "2", "customType": "x", "data": {"text": "state of an extension"}},
        {"type": "dictation", "id": "4", "parentId": "3", "content": "Wait."},
        compaction | {"id": "5", "parentId": "4", "summary": ""},
        pi_message("6", "5", "Further."),
    ]
    transcript = shelf.read_one(lines(entries))
    assert transcript.messages == [user("Go."), user("Further.")]
    assert transcript.meta["compact_boundaries"] == [1, 1]
    assert transcript.meta["unread"] == [{"entry": 1, "reason": "summary"}, {"entry": 3, "reason": "unknown_kind"}]
    assert shelf.problems == []


def test_an_entry_without_a_type_in_a_pi_session_is_reported(shelf: Shelf) -> None:
    entries = [pi_message("1", None, "Go."), {"type": 5, "id": "2", "parentId": "1"}]
    assert shelf.read_one(lines(entries)).messages == [user("Go.")]
    assert shelf.told() == [("unknown_record", 2, len(line(entries[0])))]


def claude(uuid: str, parent: str | None, kind: str, said: Any, **more: Any) -> Dict:
    message = {"role": kind, "content": said, **({"id": f"m{uuid}"} if kind == "assistant" else {})}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "message": message, **more}


def test_an_abandoned_prompt_is_a_branch(shelf: Shelf) -> None:
    text = [{"type": "text", "text": "Yes."}]
    entries = [
        claude("1", None, "user", "Go."),
        claude("2", "1", "assistant", text),
        claude("3", "2", "user", "This way."),
        claude("4", "3", "assistant", text),
        claude("5", "2", "user", "That way."),
        claude("6", "5", "assistant", text),
    ]
    transcript = shelf.read_one(lines(entries))
    assert transcript.meta["entry_ids"] == [["1"], ["2"], ["5"], ["6"]]
    (branch,) = transcript.meta["branches"]
    assert branch["messages"] == [user("This way."), {"role": "assistant", "content": text}]
    assert (branch["from_entry"], branch["sources"]) == (1, [[2], [3]])


def test_problems_of_a_session_have_their_offset(shelf: Shelf) -> None:
    entries = [claude("1", None, "user", "Go."), claude("1", None, "user", "Go.")]
    shelf.read_one(lines(entries))
    assert shelf.told() == [("repeated_entry", 2, len(line(entries[0])))]


# --- Several documents -------------------------------------------------------------------------------


def indented(id: str) -> bytes:
    return json.dumps({"id": id, "messages": [user("Go.")]}, indent=2).encode() + b"\n"


def test_several_indented_documents_are_read_in_order(shelf: Shelf) -> None:
    found = shelf.read(indented("a") + indented("b") + b"\n" + indented("c"))
    assert [(each.id, each.meta["line"]) for each in found] == [("a", 1), ("b", 10), ("c", 20)]
    assert shelf.problems == []


def test_text_between_indented_documents_is_reported_and_the_next_is_read(shelf: Shelf) -> None:
    torn = indented("b")[:40] + b"\n"
    found = shelf.read(indented("a") + torn + indented("c") + indented("d")[:-4])
    assert [each.id for each in found] == ["a", "c"]
    assert [(problem.code, problem.line) for problem in shelf.problems] == [("bad_json", 15), ("torn_line", 31)]
