"""Sessions in files: writing, reading after a restart, branches, files of pi, damaged files."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError, FoldlineError, LimitExceeded, StoreError
from foldline.stores import JsonlSession, _locks
from foldline.stores._records import MAX_DEPTH
from foldline.typing import ContextEntry
from unit.samples import CANARY, assistant, nested, openai_call, openai_result, talk, user


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def code_of(action: Any) -> str:
    with pytest.raises(FoldlineError) as caught:
        action()
    assert CANARY not in str(caught.value)
    return caught.value.code


def put(path: Path, *entries: dict[str, Any] | bytes) -> Path:
    data = [each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in entries]
    path.write_bytes(b"".join(data))
    return path


def compacted(store: Any, text: str = "So far.", keep: int = 2, **options: Any) -> fl.CompactionResult:
    """A compaction of the messages in the store."""
    strategy = fl.strategies.Summarize(lambda messages: text, keep_recent=keep)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, on_failure="raise", counter="chars/4")
    context = store.active()
    return compactor.compact([each.message for each in context], ids=[each.id for each in context], **options)


# --- Writing ------------------------------------------------------------------------------------------------


def test_entries_have_id_parent_time_and_type_and_one_line_each(path: Path) -> None:
    store = JsonlSession(path, id="s1", meta={"cwd": "/home"}, clock=lambda: 1763681581.544)
    first = store.append(user("hi"))
    second = store.append(assistant("ho"))
    header, *entries = lines(path)
    assert header == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "2025-11-20T23:33:01.544Z",
        "cwd": "/home",
        "foldline": {"version": 1, "format": None},
    }
    around = {"type": "message", "timestamp": "2025-11-20T23:33:01.544Z"}
    assert entries == [
        around | {"id": first, "parentId": None, "message": user("hi")},
        around | {"id": second, "parentId": first, "message": assistant("ho")},
    ]
    assert path.read_bytes().endswith(b"\n")
    assert (store.id, store.leaf, store.header) == ("s1", second, header)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_new_file_is_private_and_the_mode_of_an_existing_one_is_kept(path: Path) -> None:
    JsonlSession(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    JsonlSession(path).append(user("hi"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_opening_and_reading_a_session_writes_nothing(path: Path) -> None:
    JsonlSession(path).extend(talk(3))
    before = path.read_bytes(), path.stat().st_mtime_ns
    store = JsonlSession(path)
    assert (store.messages(), store.restore(), len(store.history())) == (talk(3), talk(3), 3)
    JsonlSession(path, readonly=True).active()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_message_round_trips_as_json(path: Path) -> None:
    odd = user(["é", "\ud800", "\u2028", "\0", 2**70, 1.5, None, True, {"a": ("b",)}], more={"x": "\U0001f600"})
    store = JsonlSession(path)
    store.append(odd)
    held = user(["é", "\ud800", "\u2028", "\0", 2**70, 1.5, None, True, {"a": ["b"]}], more={"x": "\U0001f600"})
    assert store.messages() == [held] == JsonlSession(path).messages()


def test_the_store_holds_copies(path: Path) -> None:
    store, message = JsonlSession(path), user(["a"])
    store.append(message)
    message["content"].append("b")
    assert store.messages() == [user(["a"])]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (user({1: CANARY}), "not_json"),
        (user(float("nan")), "not_json"),
        (user({CANARY}), "not_json"),
        (user(CANARY.encode()), "not_json"),
        (user([10**5000]), "not_json"),
        (user(nested(MAX_DEPTH + 1)), "limit_exceeded"),
    ],
)
def test_a_value_that_no_line_can_store_is_refused_and_nothing_is_written(path: Path, message: Any, code: str) -> None:
    store = JsonlSession(path)
    store.append(user("hi"))
    before = path.read_bytes()
    assert code_of(lambda: store.extend([user("first"), message])) == code
    assert path.read_bytes() == before
    assert store.messages() == [user("hi")]


def test_marks_are_entries_that_are_not_sent_to_a_model(path: Path) -> None:
    store = JsonlSession(path)
    store.add_model_change("gpt-5", "openai")
    store.add_usage({"input": 7})
    store.append(user("hi"))
    store.add_entry("custom_message", {"customType": "x", "content": "seen"})
    assert [each["type"] for each in lines(path)[1:]] == ["model_change", "custom", "message", "custom_message"]
    assert store.messages() == [user("hi"), {"role": "custom", "customType": "x", "content": "seen"}]
    assert store.problems == ()
    assert lines(path)[2]["data"] == {"input": 7}
    assert code_of(lambda: store.add_entry("message", {})) == "bad_entry"
    assert code_of(lambda: store.add_entry("label", {"id": "x"})) == "bad_entry"


def test_extend_is_one_write_and_an_empty_extend_writes_nothing(path: Path) -> None:
    store = JsonlSession(path)
    before = path.read_bytes()
    assert store.extend([]) == []
    assert path.read_bytes() == before
    assert store.extend(talk(3)) == store.ids()


# --- Caps: at them, and one past ----------------------------------------------------------------------------


def test_a_line_at_the_cap_is_written_and_one_past_it_is_not(path: Path) -> None:
    JsonlSession(path).append(user("first"), id="a")
    store = JsonlSession(path, max_line_bytes=1024)
    store.append(user(""), id="b")
    before = path.read_bytes()
    empty = len(before.splitlines(keepends=True)[-1])
    assert code_of(lambda: store.append(user("." * (1025 - empty)), id="c")) == "line_too_long"
    assert path.read_bytes() == before
    store.append(user("." * (1024 - empty)), id="c")
    assert len(path.read_bytes().splitlines(keepends=True)[-1]) == 1024
    assert len(JsonlSession(path, max_line_bytes=1024).messages()) == 3


def test_a_longer_line_is_skipped_and_reported(path: Path) -> None:
    store = JsonlSession(path)
    ids = store.extend([user("a"), user("." * 2000), user("b")])
    small = JsonlSession(path, max_line_bytes=1024)
    assert small.messages() == [user("a"), user("b")]
    assert [(each.code, each.line) for each in small.problems] == [("line_too_long", 3), ("unknown_parent", 4)]
    assert small.ids() == [ids[0], ids[2]]


def test_a_file_at_the_cap_is_written_and_one_past_it_is_not(path: Path) -> None:
    store = JsonlSession(path)
    store.append(user("." * 1000))
    store.append(user(""), id="a")
    store.append(user(""), id="b")
    before = path.read_bytes()
    record = before.splitlines(keepends=True)[-1]
    size = len(before) + len(record)  # all ids have the same length
    assert code_of(lambda: JsonlSession(path, max_bytes=size - 1).append(user(""), id="c")) == "session_too_large"
    assert path.read_bytes() == before
    JsonlSession(path, max_bytes=size).append(user(""), id="c")
    assert path.stat().st_size == size
    assert code_of(lambda: JsonlSession(path, max_bytes=size - 1)) == "session_too_large"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"durability": "maybe"}, "durability"),
        ({"max_line_bytes": 1023}, "max_line_bytes"),
        ({"max_line_bytes": (256 << 20) + 1}, "max_line_bytes"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"lock_timeout_s": -1}, "lock_timeout_s"),
        ({"lock_timeout_s": float("nan")}, "lock_timeout_s"),
    ],
)
def test_options_out_of_range_are_refused_before_a_file_is_made(path: Path, options: Any, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        JsonlSession(path, **options)
    assert caught.value.path == name
    assert not path.exists()


def test_ids_are_checked(path: Path) -> None:
    for bad in ("", "a\n", "a\0", "\ud800", "a" * 256):
        assert code_of(lambda bad=bad: JsonlSession(path).append(user("hi"), id=bad)) == "bad_id"
    JsonlSession(path).append(user("hi"), id="a" * 255)
    assert code_of(lambda: JsonlSession(path, id="\n")) == "bad_id"


# --- Concurrent writers -------------------------------------------------------------------------------------


def test_two_stores_of_one_file_see_each_other(path: Path) -> None:
    one, two = JsonlSession(path), JsonlSession(path)
    ids = [one.append(user("a")), two.append(user("b")), one.append(user("c"))]
    assert one.ids() == two.ids() == ids
    assert [each.parent_id for each in two.entries] == [None, *ids[:-1]]


def test_an_append_with_a_stale_expected_leaf_is_refused(path: Path) -> None:
    one, two = JsonlSession(path), JsonlSession(path)
    first = one.append(user("a"), expected_leaf=None)
    before = path.read_bytes()
    assert code_of(lambda: two.append(user("b"), expected_leaf=None)) == "conflict"
    assert path.read_bytes() == before
    second = two.append(user("b"), expected_leaf=first)
    assert code_of(lambda: one.extend([user("c")], expected_leaf=first)) == "conflict"
    assert one.leaf == second


def test_a_repeated_append_with_an_id_writes_nothing(path: Path) -> None:
    store = JsonlSession(path)
    store.append(user("a"), id="mine", expected_leaf=None)
    store.append(user("b"))
    before = path.read_bytes()
    assert JsonlSession(path).append(user("a"), id="mine", expected_leaf=None) == "mine"
    assert code_of(lambda: store.append(user(CANARY), id="mine")) == "id_in_use"
    assert path.read_bytes() == before


def test_a_compaction_is_refused_after_a_concurrent_compaction(path: Path) -> None:
    one, two = JsonlSession(path), JsonlSession(path)
    one.extend(talk(6))
    messages, ids = two.messages(), two.ids()
    compacted(one)
    before = path.read_bytes()
    strategy = fl.strategies.Summarize(lambda messages: "Mine.", keep_recent=2)
    late = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=two, on_failure="raise", counter="chars/4")
    assert code_of(lambda: late.compact(messages, ids=ids)) == "unknown_entry"
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_takes_its_own_lock(path: Path) -> None:
    store = JsonlSession(path)
    store.append(user("parent"))
    with store._file.owned():  # as if another thread were writing during the fork
        child = os.fork()
        if child == 0:
            try:
                store.append(user("child"))
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.append(user("parent again"))
    assert [each["content"] for each in store.messages()] == ["parent", "child", "parent again"]


def test_a_timeout_for_the_lock_is_an_error(path: Path) -> None:
    store = JsonlSession(path, lock_timeout_s=0)
    other = JsonlSession(path)
    with other._file._file.opened("append"):
        assert code_of(lambda: store.append(user("hi"))) == "busy"
    store.append(user("hi"))


def test_a_replaced_file_is_read_again(path: Path, tmp_path: Path) -> None:
    store = JsonlSession(path)
    store.extend(talk(3))
    other = JsonlSession(tmp_path / "other.jsonl")
    other.extend([user("new"), *talk(9)])  # longer than before
    (tmp_path / "other.jsonl").replace(path)
    assert store.messages() == [user("new"), *talk(9)]
    store.append(user("more"))
    assert JsonlSession(path).messages() == [user("new"), *talk(9), user("more")]
    path.unlink()
    assert code_of(lambda: store.append(user("gone"))) == "no_file"


def test_a_file_replaced_while_waiting_for_the_lock_is_not_written_to(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JsonlSession(path)
    store.append(user("old"))
    JsonlSession(tmp_path / "new.jsonl").append(user("new"))
    take = _locks.lock

    def late(descriptor: int, **options: Any) -> bool:
        if (tmp_path / "new.jsonl").exists():
            (tmp_path / "new.jsonl").replace(path)
        return take(descriptor, **options)

    monkeypatch.setattr(_locks, "lock", late)
    store.append(user("mine"))
    assert JsonlSession(path).messages() == [user("new"), user("mine")]


# --- Branches -----------------------------------------------------------------------------------------------


def test_a_branch_continues_from_an_earlier_entry_and_the_other_branch_stays(path: Path) -> None:
    store = JsonlSession(path)
    a, b, c = store.extend([user("a"), assistant("b"), user("c")])
    store.branch(a)
    d = store.append(assistant("d"))
    for each in (store, JsonlSession(path)):
        assert [m["content"] for m in each.messages()] == ["a", "d"]
        assert [m["content"] for m in each.messages(leaf=c)] == ["a", "b", "c"]
        assert [m["content"] for m in each.messages(leaf=b)] == ["a", "b"]
        assert each.leaves() == (c, d)
        assert [entry.type for entry in each.history()] == ["message", "custom", "message"]
    store.branch(None)
    assert store.messages() == []
    assert store.append(user("e")) == JsonlSession(path).leaf
    assert store.messages() == [user("e")]
    assert code_of(lambda: store.branch("nobody")) == "unknown_entry"
    assert code_of(lambda: store.active(leaf="nobody")) == "unknown_entry"


def test_each_branch_has_its_own_compactions_and_rounds(path: Path) -> None:
    store = JsonlSession(path)
    ids = store.extend(talk(6))
    compacted(store, "One.")
    first = store.leaf
    store.branch(ids[-1])
    assert (store.last_round(), store.messages()) == (0, talk(6))
    compacted(store, "Two.", keep=4)
    for each in (store, JsonlSession(path)):
        assert "Two." in each.messages()[0]["content"]
        assert "One." in each.messages(leaf=first)[0]["content"]
        assert (each.last_round(), len(each.messages()), len(each.messages(leaf=first))) == (1, 5, 3)
        assert each.restore() == each.restore(leaf=first) == talk(6)


def test_reading_a_session_gives_the_same_as_the_store(path: Path) -> None:
    store = JsonlSession(path)
    ids = store.extend([user("go"), openai_call("a"), openai_result("a"), *talk(4)])
    store.branch(ids[3])
    store.extend(talk(2))
    compacted(store)
    problems: list[fl.Problem] = []
    (transcript,) = fl.read(path, on_problem=problems.append)
    assert (transcript.id, transcript.format, problems) == (store.id, "openai_chat", [])
    assert transcript.messages == store.restore()
    assert len(transcript.meta["branches"]) == 1
    assert transcript.meta["compact_boundaries"] == [len(store.restore())]


def test_the_header_may_name_the_dialect(path: Path) -> None:
    JsonlSession(path, format="anthropic").extend(talk(2))
    assert next(fl.read(path)).format == "anthropic"


# --- Compactions --------------------------------------------------------------------------------------------


def test_a_compaction_records_its_range_author_and_strategy(path: Path) -> None:
    store = JsonlSession(path)
    messages = [user("Mend src/a.py."), openai_call("a", '{"path": "src/a.py"}'), openai_result("a"), *talk(4)]
    messages[1]["tool_calls"][0]["function"]["name"] = "read"
    ids = store.extend(messages)
    strategy = fl.strategies.Summarize(fl.summarizers.Extractive(), keep_recent=2)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4", on_failure="raise")
    result = compactor.compact(store.messages(), ids=store.ids())
    entry = lines(path)[-1]
    event = result.event
    assert event is not None
    assert (entry["type"], entry["parentId"], entry["summary"]) == ("compaction", ids[-1], event.summary)
    assert (entry["firstKeptEntryId"], entry["compactedIds"]) == (ids[5], ids[:5])
    assert (entry["tokensBefore"], entry["tokensAfter"]) == (event.tokens_before, event.tokens_after)
    assert (entry["round"], entry["strategy"], entry["model"]) == (1, "Summarize", event.model)
    assert (entry["trigger"], entry["reason"], entry["promptVersion"]) == ("auto", "message_count", "")
    assert entry["details"] == {"readFiles": ["src/a.py"], "modifiedFiles": []}
    assert {key: entry["covered"][key] for key in ("from", "to", "count")} == {"from": ids[0], "to": ids[4], "count": 5}
    assert entry["context"] == [
        {"id": f"{entry['id']}.0", "message": result.messages[0]}, {"id": ids[5]}, {"id": ids[6]}
    ]  # fmt: skip
    assert store.entries[-1].event == event
    assert JsonlSession(path).check() == ()


def test_check_detects_changes_of_covered_messages(path: Path) -> None:
    store = JsonlSession(path)
    store.extend(talk(6))
    compacted(store)
    store.extend(talk(4))
    compacted(store, "More.")
    compacted(store.originals(), "All.")
    assert store.check() == ()
    path.write_bytes(path.read_bytes().replace(b"2 word", b"2 worm", 1))
    changed = JsonlSession(path)
    assert [(each.code, each.line) for each in changed.check()] == [("covered_changed", 8), ("covered_changed", 14)]


def test_a_repeated_compaction_is_stored_once(path: Path) -> None:
    store = JsonlSession(path)
    ids = store.extend(talk(3))
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, "So far.", (ids[0],), 0.25)
    context = [ContextEntry(None, user("So far.")), ContextEntry(ids[1]), ContextEntry(ids[2])]
    store.save_context(event, context)
    before = path.read_bytes()
    store.save_context(event, context)
    JsonlSession(path).save_context(event, context, expected_leaf="whatever")
    assert path.read_bytes() == before
    other = fl.typing.CompactionEvent(1, 100, 10, 3, 2, "Other.", (ids[0],), 0.25)
    assert code_of(lambda: store.save_context(other, context)) == "stale_round"


def test_a_compaction_may_be_bound_to_a_leaf(path: Path) -> None:
    store = JsonlSession(path)
    ids = store.extend(talk(3))
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, "So far.", (ids[0],), 0.25)
    context = [ContextEntry(None, user("So far.")), ContextEntry(ids[1]), ContextEntry(ids[2])]
    JsonlSession(path).append(user("late"))
    assert code_of(lambda: store.save_context(event, context, expected_leaf=ids[2])) == "conflict"
    store.save_context(event, context)
    assert store.messages() == [user("So far."), *talk(3)[1:], user("late")]


@pytest.mark.parametrize(
    "context",
    [
        [ContextEntry("nobody")],
        [ContextEntry(None, None)],
        [ContextEntry(None, user({1: 2}))],
        [ContextEntry(0)],
    ],
)
def test_an_impossible_context_is_refused(path: Path, context: Any) -> None:
    store = JsonlSession(path)
    ids = store.extend(talk(3))
    before = path.read_bytes()
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, "", (ids[0],), 0.0)
    assert code_of(lambda: store.save_context(event, context)) in ("unknown_entry", "bad_entry", "not_json")
    assert (path.read_bytes(), store.messages()) == (before, talk(3))


def test_a_session_can_be_compacted_again_from_its_originals(path: Path) -> None:
    store = JsonlSession(path)
    store.extend([user("go"), openai_call("a"), openai_result("a", "r" * 900), *talk(5)])
    clear = fl.Compactor(fl.triggers.MessageCount(1), fl.strategies.ClearToolResults(fl.KeepMessages(1)), store=store)
    clear.compact(store.messages(), ids=store.ids())
    compacted(store, "Badly told.", keep=2)
    originals = store.originals()
    assert [each.message for each in originals.active()] == store.restore()
    result = compacted(originals, "Told anew.", keep=3)
    for each in (store, JsonlSession(path)):
        assert each.messages() == result.messages
        assert each.messages()[1:] == talk(5)[2:]
        assert "Badly told." not in str(each.messages())
        assert each.last_round() == 3
        assert len(each.restore()) == 8


# --- Sessions of pi -----------------------------------------------------------------------------------------

PI = [
    {"type": "session", "version": 3, "id": "p", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/x"},
    {"type": "message", "id": "a", "parentId": None, "message": user("a")},
    {"type": "message", "id": "b", "parentId": "a", "message": assistant("b")},
    {"type": "message", "id": "c", "parentId": "b", "message": user("c")},
]


def test_a_compaction_of_pi_is_its_summary_and_the_entries_it_keeps(path: Path) -> None:
    fold = {"type": "compaction", "id": "k", "parentId": "c", "summary": "S", "firstKeptEntryId": "b",
            "tokensBefore": 9}  # fmt: skip
    last = {"type": "message", "id": "d", "parentId": "k", "message": assistant("d")}
    store = JsonlSession(put(path, *PI, fold, last))
    summary = {"role": "compactionSummary", "summary": "S", "tokensBefore": 9}
    assert store.messages() == [summary, assistant("b"), user("c"), assistant("d")]
    assert store.ids() == ["k.0", "b", "c", "d"]
    assert (store.last_round(), store.compacted_ids()) == (1, {"a"})
    assert store.restore() == [user("a"), assistant("b"), user("c"), assistant("d")]
    event = store.entries[3].event
    assert event is not None
    assert (event.summary, event.first_kept_id, event.tokens_before, event.tokens_after) == ("S", "b", 9, 0)
    store.extend(talk(4))
    result = compacted(store, "T", keep=1)
    again = JsonlSession(path)
    assert (again.messages(), again.last_round(), again.problems) == (result.messages, 2, ())


@pytest.mark.parametrize("kept", ["gone", 7, ["a"]])
def test_a_compaction_with_an_unknown_kept_entry_folds_nothing_and_is_reported(path: Path, kept: Any) -> None:
    fold = {"type": "compaction", "id": "k", "parentId": "c", "summary": "S", "firstKeptEntryId": kept}
    store = JsonlSession(put(path, *PI, fold))
    assert store.messages() == [user("a"), assistant("b"), user("c")]
    assert [(each.code, each.line) for each in store.problems] == [("unknown_first_kept", 5)]


def test_the_first_version_of_the_format_has_no_ids_and_counts_entries(path: Path) -> None:
    header, *entries = PI
    old = [{key: value for key, value in each.items() if key not in ("id", "parentId")} for each in entries]
    fold = {"type": "compaction", "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 9}
    store = JsonlSession(put(path, {"type": "session", "id": "p"}, *old, fold))
    assert [each["content"] for each in store.messages()[1:]] == ["b", "c"]
    assert store.ids() == ["line:5.0", "line:3", "line:4"]
    store.append(user("d"))
    assert [each["content"] for each in JsonlSession(path).messages()[1:]] == ["b", "c", "d"]
    assert header["version"] == 3


def test_a_recorded_session_of_pi_is_read_continued_and_compacted(shared: Path, path: Path) -> None:
    source = shared / "pi" / "large-session.jsonl"
    shutil.copyfile(source, path)
    was = source.read_bytes()
    (recorded,) = fl.read(source)
    store = JsonlSession(path)
    assert store.messages() == store.restore() == recorded.messages
    assert (store.id, len(store.entries)) == (recorded.id, 1018)
    store.append({"role": "user", "content": [{"type": "text", "text": "Go on."}]})
    strategy = fl.strategies.Summarize(fl.summarizers.Extractive(), keep_recent=20)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, on_failure="raise", counter="chars/4")
    result = compactor.compact(store.messages(), ids=store.ids())
    assert result.changed
    assert path.read_bytes().startswith(was)
    again = JsonlSession(path)
    assert again.messages() == result.messages
    assert again.restore()[:-1] == recorded.messages
    assert again.check() == ()
    assert len(lines(path)[-1]["details"]["readFiles"]) > 3
    (whole,) = fl.read(path)
    assert (whole.format, whole.messages) == ("pi", again.restore())


# --- Damaged files ------------------------------------------------------------------------------------------

LINE = {key: json.dumps(value).encode() for key, value in zip("habc", PI)}


@pytest.mark.parametrize(
    ("data", "contents", "problems"),
    [
        (LINE["h"] + b"\n" + LINE["a"] + b"\n" + LINE["b"][:30], "a", [("torn_line", 3)]),
        (LINE["h"] + b"\n" + LINE["a"], "a", []),
        (LINE["h"] + b"\n" + LINE["a"] + LINE["b"] + b"\n" + LINE["c"] + b"\n", "abc", [("glued_values", 2)]),
        (b"\xef\xbb\xbf" + LINE["h"] + b"\r\n" + LINE["a"] + b"\r\n\r\n" + LINE["b"] + b"\r\n", "ab", []),
        (LINE["h"] + b"\n" + b"\0" * 9 + b"\n" + LINE["a"] + b"\n", "a", [("nul_bytes", 2)]),
        (LINE["h"] + b"\n" + b"\0" * 9 + LINE["a"] + b"\n", "a", [("nul_bytes", 2)]),
        (LINE["h"] + b"\n" + LINE["a"] + b"\n" + b"\0" * 9, "a", [("nul_bytes", 3)]),
        (LINE["h"] + b"\n\xff\xfe\n" + LINE["a"] + b"\n", "a", [("bad_utf8", 2)]),
        (LINE["h"] + b'\n"\xff"\n' + LINE["a"] + b"\n", "a", [("bad_utf8", 2)]),
        (LINE["h"] + b"\n[1]\n" + LINE["a"] + b"\n", "a", [("not_an_object", 2)]),
        (LINE["h"] + b"\n" + LINE["a"] + b"\n" + LINE["a"] + b"\n", "a", [("duplicate_id", 3)]),
        (LINE["a"] + b"\n" + LINE["b"] + b"\n", "ab", []),
        (LINE["h"] + b"\n" + LINE["a"] + b"\n" + LINE["h"] + b"\n" + LINE["b"] + b"\n", "ab", [("second_header", 3)]),
        (LINE["h"] + b"\n" + LINE["b"] + b"\n", "b", [("unknown_parent", 2)]),
        (LINE["h"] + b'\n{"type":"message","id":"a","parentId":"a","message":{"role":"user","content":"a"}}\n', "a",
         [("unknown_parent", 2)]),
        (LINE["h"] + b'\n{"type":"message","id":"m","parentId":null}\n', "", [("entry_without_message", 2)]),
        (LINE["h"] + b'\n{"id":"m","parentId":null}\n', "", [("unknown_entry", 2)]),
        (LINE["h"] + b'\n{"type":"new","id":"m","parentId":null}\n', "", []),
        (LINE["h"] + b"\n" + LINE["a"].replace(b'"message"', b'"messsage"', 1) + b"\n", "", [("unknown_entry", 2)]),
        (LINE["h"] + b'\n{"type":"compactjon","id":"m","summary":"s"}\n', "", [("unknown_entry", 2)]),
    ],
)  # fmt: skip
def test_a_damaged_file_is_read_around_the_damage_and_continued(
    path: Path, data: bytes, contents: str, problems: list[tuple[str, int]]
) -> None:
    path.write_bytes(data)
    for store in (JsonlSession(path, readonly=True), JsonlSession(path)):
        assert "".join(each["content"] for each in store.messages()) == contents
        found = [(each.code, each.line) for each in store.problems]
        assert found == problems
        for each in store.problems:
            assert each.path == str(path)
            assert each.offset is not None
            assert data[: each.offset].count(b"\n") == (each.line or 0) - 1
    assert path.read_bytes() == data  # nothing in the file is repaired
    store.append(user("z"))
    assert path.read_bytes().startswith(data)
    again = JsonlSession(path)
    assert again.messages()[-1] == user("z")
    assert len(again.entries) == len(store.entries)
    told = [("bad_json" if code == "torn_line" else code, line) for code, line in problems]
    assert [(each.code, each.line) for each in again.problems] == told


def test_a_torn_record_is_reported_while_others_write_after_it(path: Path) -> None:
    one, two = JsonlSession(path), JsonlSession(path)
    one.append(user("a"))
    two.messages()
    with path.open("ab") as stream:
        stream.write(b'{"type":"message","id":"t","par')  # its writer was killed
    one.append(user("b"))
    two.append(user("c"))
    for store in (one, two, JsonlSession(path)):
        assert [each["content"] for each in store.messages()] == ["a", "b", "c"]
        assert [each.line for each in store.problems] == [3]


@pytest.mark.parametrize(
    "data",
    [b"hello\n", b"\x89PNG\r\n\x1a\n\0\0", b'[{"role":"user","content":"hi"}]\n', b'{"a":1}\n',
     b'{"role":"user","content":"hi"}\n', b'{\n "type": "session"\n}\n'],
)  # fmt: skip
def test_a_file_that_is_not_a_session_is_refused_and_not_changed(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    for readonly in (False, True):
        assert code_of(lambda readonly=readonly: JsonlSession(path, readonly=readonly)) == "not_a_session"
    assert path.read_bytes() == data


@pytest.mark.parametrize("data", [b"", b"{", b'{"type":"sess', b'{"type":"session","version":3,"id":', b"\0" * 40])
def test_an_interrupted_creation_of_a_file_is_completed(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    JsonlSession(path, id="s").append(user("hi"))
    again = JsonlSession(path)
    assert (again.id, again.messages(), path.read_bytes().startswith(data)) == ("s", [user("hi")], True)


# --- Places -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="files of POSIX")
def test_links_folders_and_pipes_are_not_sessions(tmp_path: Path) -> None:
    JsonlSession(tmp_path / "real.jsonl").append(user("hi"))
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    (tmp_path / "loose.jsonl").symlink_to(tmp_path / "made.jsonl")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link.jsonl", "loose.jsonl"):
        assert code_of(lambda name=name: JsonlSession(tmp_path / name)) == "linked_file"
    assert not (tmp_path / "made.jsonl").exists()
    for readonly in (False, True):
        assert code_of(lambda readonly=readonly: JsonlSession(tmp_path / "pipe", readonly=readonly)) == "not_a_file"
        assert code_of(lambda readonly=readonly: JsonlSession(tmp_path, readonly=readonly)) == "not_a_file"
    assert code_of(lambda: JsonlSession(tmp_path / "none" / "x.jsonl")) == "no_file"
    assert code_of(lambda: JsonlSession(tmp_path / "none.jsonl", readonly=True)) == "no_file"
    assert code_of(lambda: JsonlSession(tmp_path / "real.jsonl" / "x")) == "no_file"


def test_a_session_opened_for_reading_cannot_write(path: Path) -> None:
    JsonlSession(path).append(user("hi"))
    store = JsonlSession(path, readonly=True)
    before = path.read_bytes()
    assert code_of(lambda: store.append(user("ho"))) == "not_writable"
    assert code_of(lambda: store.branch(None)) == "not_writable"
    assert path.read_bytes() == before
    JsonlSession(path).append(user("he"))
    assert store.messages() == [user("hi"), user("he")]


def test_errors_are_store_errors_with_codes(path: Path) -> None:
    with pytest.raises(StoreError):
        JsonlSession(path, readonly=True)
    with pytest.raises(LimitExceeded):
        JsonlSession(path, max_line_bytes=1024).append(user("." * 2000))
