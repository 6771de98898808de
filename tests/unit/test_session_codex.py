"""`read`: rollouts of newer Codex versions: other calls, states, other agents, compactions with a new history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.shelf import Shelf, lines

Dict = dict[str, Any]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def entry(kind: str, payload: Any) -> Dict:
    return {"timestamp": "2026-09-01T10:00:00Z", "type": kind, "payload": payload}


def item(words: str, role: str = "user", **more: Any) -> Dict:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]} | more


def response(payload: Dict) -> Dict:
    return entry("response_item", payload)


def event(kind: str, words: str) -> Dict:
    return entry("event_msg", {"type": kind, "message": words})


def compacted(message: str = "", *history: Dict) -> Dict:
    return entry("compacted", {"message": message} | ({"replacement_history": list(history)} if history else {}))


META = entry("session_meta", {"id": "s"})
GO, DONE = item("Go."), item("Done.", "assistant")
SUMMARY = item("Another model began. So far: done.")
PATCH = {
    "type": "custom_tool_call",
    "call_id": "c",
    "name": "apply_patch",
    "input": "*** Begin Patch",
    "status": "completed",
}
PATCHED = {"type": "custom_tool_call_output", "call_id": "c", "output": "Success."}
ENCRYPTED = {"type": "compaction", "encrypted_content": "gAAA"}

#: Entries after the header; the messages; the indices of boundaries.
CASES: dict[str, tuple[list[Dict], list[Dict], list[int]]] = {
    "a call of a custom tool": ([response(PATCH), response(PATCHED)], [PATCH, PATCHED], []),
    "states of the world": (
        [response(GO), entry("world_state", {"full": True, "state": {"environments": {}}}), response(DONE)],
        [GO, DONE],
        [],
    ),
    "a compaction with a summary alone": (
        [response(GO), response(DONE), compacted("So far: done."), response(GO)],
        [GO, DONE, item("So far: done."), GO],
        [2],
    ),
    "a new history: what it keeps is not repeated": (
        [response(GO), response(DONE), compacted(SUMMARY["content"][0]["text"], GO, SUMMARY), response(DONE)],
        [GO, DONE, SUMMARY, DONE],
        [2],
    ),
    "a new history whose messages were rebuilt": (
        [
            response(item("Go.", id="i1")),
            response(DONE | {"id": "i2", "status": "completed"}),
            response({"type": "message", "role": "user", "content": [*item("More")["content"], *item(".")["content"]]}),
            compacted("", GO, item("More."), SUMMARY),
        ],
        [
            item("Go.", id="i1"),
            DONE | {"id": "i2", "status": "completed"},
            {"type": "message", "role": "user", "content": [*item("More")["content"], *item(".")["content"]]},
            SUMMARY,
        ],
        [3],
    ),
    "a new history with a text that only an event held": (
        [response(GO), event("user_message", "Stop."), compacted("", GO, item("Stop."), SUMMARY)],
        [GO, item("Stop."), SUMMARY],
        [1],
    ),
    "a new history with an encrypted summary, twice": (
        [response(GO), compacted("", GO, ENCRYPTED), response(DONE), compacted("", GO, ENCRYPTED, SUMMARY)],
        [GO, ENCRYPTED, DONE, SUMMARY],
        [1, 3],
    ),
    "a new history with calls of other ids": (
        [response(PATCH | {"id": "x"}), response(PATCHED), compacted("", PATCH, PATCHED, SUMMARY)],
        [PATCH | {"id": "x"}, PATCHED, SUMMARY],
        [2],
    ),
    "a new history with a text that was rolled back before": (
        [
            response(GO),
            response(item("B.")),
            compacted("", GO, item("B."), SUMMARY),
            entry("event_msg", {"type": "thread_rolled_back", "num_turns": 2}),
            response(item("C.")),
            compacted("", GO, item("B."), item("C.")),
        ],
        [GO, item("C."), item("B.")],
        [2],
    ),
    "a message of another agent": (
        [
            response(GO),
            entry("inter_agent_communication", {"author": "/main/a", "recipient": "/main", "content": "Found."}),
        ],
        [GO, item("Found.")],
        [],
    ),
    "a message of another agent between a call and its output": (
        [response(PATCH), entry("inter_agent_communication", {"content": "Found."}), response(PATCHED)],
        [PATCH, PATCHED, item("Found.")],
        [],
    ),
    "an encrypted message of another agent": (
        [
            entry(
                "inter_agent_communication",
                {"author": "/a", "recipient": "/", "content": "", "encrypted_content": "gA"},
            )
        ],
        [
            {
                "type": "agent_message",
                "author": "/a",
                "recipient": "/",
                "content": [{"type": "encrypted_content", "encrypted_content": "gA"}],
            }
        ],
        [],
    ),
}


@pytest.mark.parametrize(("entries", "messages", "boundaries"), CASES.values(), ids=CASES)
def test_newer_entries_are_read(shelf: Shelf, entries: list[Dict], messages: list[Dict], boundaries: list[int]) -> None:
    transcript = shelf.read_one(lines([META, *entries]))
    assert transcript.messages == messages
    assert transcript.meta["compact_boundaries"] == boundaries
    assert "unread" not in transcript.meta
    assert shelf.problems == []


def test_a_call_of_a_custom_tool_and_its_output_are_a_pair(shelf: Shelf) -> None:
    transcript = shelf.read_one(lines([META, response(GO), response(PATCH), response(PATCHED), response(DONE)]))
    assert fl.analyze(transcript.messages).groups == [[0], [1, 2], [3]]
    assert fl.validate(transcript.messages, "responses") == []


#: Entries whose text is in no message; the entry that is named.
NAMED: dict[str, tuple[list[Dict], int]] = {
    "an answer that only an event holds": ([response(GO), event("agent_message", "Reviewed.")], 2),
    "a summary that the new history lacks": ([response(GO), compacted("So far: done.", GO, ENCRYPTED)], 2),
}


REVIEW = {"findings": [{"title": "[P1] a", "body": "The lock is never released."}], "overall_explanation": "One fault."}


@pytest.mark.parametrize(
    ("items", "is_named"),
    [
        ([], True),
        ([item("<review>\nOne fault.\n- The lock is never released.\n</review>")], False),
        ([item("One fault.")], True),
    ],
    ids=["in no item", "in an item", "an item without what was found"],
)
def test_a_review_that_no_item_has_is_named(shelf: Shelf, items: list[Dict], is_named: bool) -> None:
    review = entry("event_msg", {"type": "exited_review_mode", "review_output": REVIEW})
    transcript = shelf.read_one(lines([META, response(GO), review, *map(response, items)]))
    assert transcript.meta.get("unread", []) == ([{"entry": 2, "reason": "not_an_item"}] if is_named else [])


def test_an_entry_of_an_unknown_kind_is_named_if_it_has_a_text(shelf: Shelf) -> None:
    entries = [META, response(GO), entry("dictation", {"text": "Go on."}), entry("lights", {"level": 2})]
    transcript = shelf.read_one(lines(entries))
    assert transcript.meta["unread"] == [{"entry": 2, "reason": "unknown_kind"}]
    assert shelf.problems == []


@pytest.mark.parametrize(("entries", "named"), NAMED.values(), ids=NAMED)
def test_a_text_that_no_item_has_is_named(shelf: Shelf, entries: list[Dict], named: int) -> None:
    transcript = shelf.read_one(lines([META, *entries]))
    assert transcript.meta["unread"] == [{"entry": named, "reason": "not_an_item"}]


def test_an_event_about_an_item_is_not_named(shelf: Shelf) -> None:
    for first in (
        [response(DONE), event("agent_message", "Done.")],
        [event("agent_message", "Done.\n"), response(DONE)],
    ):
        assert "unread" not in shelf.read_one(lines([META, *first])).meta
