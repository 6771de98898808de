"""`count_transcripts`: many conversations in, flat arrays out; from Python objects and from JSON lines."""

from __future__ import annotations

import json
import mmap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldline as fl
from foldline.errors import ConfigError, FoldlineError, LimitExceeded, MessageError, TextTypeError
from unit.samples import (
    CANARY,
    anthropic_call,
    anthropic_result,
    holds_no_content,
    openai_call,
    openai_result,
    own_list,
    talk,
    user,
)

COUNTER = fl.TokenCounter()
ROOT = Path(__file__).resolve().parents[2]

TALKS: list[list[dict[str, Any]]] = [
    talk(3),
    [],
    [user(), openai_call(), openai_result()],
    [user(), anthropic_call(), anthropic_result()],
    [user("对话"), user("a\ud83db"), user("\ud83d\ude00")],
    talk(40, "longer " * 300),
    [user("hi")],
]


def lines_of(values: list[Any], newline: bytes = b"\n") -> bytes:
    """One JSON value a line."""
    return b"".join(json.dumps(value).encode() + newline for value in values)


def check(
    counted: fl.counting.TranscriptCounts, talks: list[Any], counter: fl.TokenCounter = COUNTER, **options: Any
) -> None:
    """The counts are those of `count_messages`, one by one."""
    assert len(counted) == len(talks)
    one_by_one = [counter.count_messages(messages, **options) for messages in talks]
    shapes = {
        "per_message": (np.int64, sum(map(len, one_by_one))),
        "offsets": (np.int64, len(talks) + 1),
        "overhead": (np.int64, len(talks)),
        "totals": (np.int64, len(talks)),
    }
    for name, (dtype, length) in shapes.items():
        array = getattr(counted, name)
        assert (array.dtype, array.shape, array.flags.writeable) == (dtype, (length,), False)
    found = [counted.per_message[i:j].tolist() for i, j in zip(counted.offsets, counted.offsets[1:])]
    assert found == [counts.per_message.tolist() for counts in one_by_one]
    assert counted.overhead.tolist() == [counts.overhead for counts in one_by_one]
    assert counted.totals.tolist() == [counts.total for counts in one_by_one]
    assert counted.total == sum(counts.total for counts in one_by_one)
    ranks = ["exact", "reconstructed", "calibrated", "estimated"]
    kinds = [counter.kind, *(counts.kind for counts in one_by_one)]
    assert counted.kind == max(kinds, key=ranks.index)


# --- The counts --------------------------------------------------------------------------------------

REQUESTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]] = {
    "items": (
        {"model": "m", "input": [user("hi"), {"type": "reasoning", "summary": []}]},
        [user("hi"), {"type": "reasoning", "summary": []}],
        "openai_responses",
    ),
    "plain input": ({"body": {"model": "m", "input": [user("hi")]}}, [user("hi")], "openai_responses"),
    "one text": ({"model": "m", "input": "hi there"}, [user("hi there")], "openai_responses"),
    "one text of another dialect": (
        {"model": "m", "input": "hi there", "format": "anthropic"},
        [user("hi there")],
        "anthropic",
    ),
    "a text under another key": ({"messages": [], "input": "hi"}, [], "openai_chat"),
    "contents": ({"contents": [{"parts": [{"text": "hi"}]}]}, [{"parts": [{"text": "hi"}]}], "gemini"),
    "chat under input": (
        {"input": [user("hi"), openai_call(), openai_result()]},
        [user("hi"), openai_call(), openai_result()],
        "openai_chat",
    ),
}


@pytest.mark.parametrize("spec", ["o200k_base", "chars/4", "utf16/4+2", "auto"])
@pytest.mark.parametrize(("request_", "messages", "format"), REQUESTS.values(), ids=REQUESTS)
def test_the_place_of_messages_in_a_request_speaks_for_a_dialect(
    request_: dict[str, Any], messages: list[dict[str, Any]], format: str, spec: str
) -> None:
    counter = fl.TokenCounter(spec)
    for transcripts in ([request_], lines_of([request_])):
        check(counter.count_transcripts(transcripts), [messages], counter, format=format)
        check(counter.count_transcripts(transcripts, format=format), [messages], counter, format=format)


SPECS: list[Any] = ["o200k_base", "chars/4", "utf16/4+2", "auto", len]


@pytest.mark.parametrize("threads", [1, 2, 5, None])
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_transcripts_count_as_each_by_itself(spec: Any, threads: int | None) -> None:
    counter = fl.TokenCounter(spec)
    check(counter.count_transcripts(TALKS * 20, threads=threads), TALKS * 20, counter)
    check(counter.count_transcripts(lines_of(TALKS * 20), threads=threads), TALKS * 20, counter)


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"])
def test_a_models_framing_is_that_of_its_counter(model: str) -> None:
    counter = fl.TokenCounter.for_model(model)
    for given in (TALKS, lines_of(TALKS)):
        counted = counter.count_transcripts(given, threads=2)
        check(counted, TALKS, counter)


def test_the_error_bound_is_that_of_the_least_certain() -> None:
    counter = fl.TokenCounter.for_model("claude-sonnet-4-5")
    alone = [counter.count_messages(messages) for messages in TALKS]
    bounds = [counts.error_bound for counts in alone]
    assert counter.count_transcripts(TALKS).error_bound == max(bound for bound in bounds if bound is not None)
    assert COUNTER.count_transcripts([talk(1)]).error_bound is None


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "pi"])
def test_a_named_format_is_that_of_all(format: str) -> None:
    talks = [talk(2), talk(3), []]
    for given in (talks, lines_of(talks)):
        check(COUNTER.count_transcripts(given, format=format), talks, format=format)


@pytest.mark.parametrize(
    "given",
    [[], (), iter([]), b"", b"\n \r\n\t\n", bytearray(), memoryview(b"")],
    ids=lambda given: type(given).__name__,
)
def test_no_transcripts_give_empty_arrays(given: Any) -> None:
    counted = COUNTER.count_transcripts(given)
    check(counted, [])
    assert (counted.total, counted.kind, counted.errors) == (0, "exact", ())


def test_a_result_says_what_it_is() -> None:
    counted = COUNTER.count_transcripts([[user("hi")], talk(2, "word")])
    assert repr(counted) == f'TranscriptCounts(total={counted.total}, transcripts=2, messages=3, kind="exact")'
    assert counted.per_message is counted.per_message


# --- Python objects ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [list, tuple, iter, lambda talks: (talk for talk in talks)])
def test_transcripts_come_from_any_iterable(make: Callable[[Any], Any]) -> None:
    counted = COUNTER.count_transcripts(make(TALKS))
    check(counted, TALKS)
    assert counted.lines is None


def test_a_transcript_is_whatever_holds_messages(tmp_path: Path) -> None:
    messages = talk(3)
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps({"id": "a", "messages": messages}) + "\n")
    given = [
        messages,
        tuple(messages),
        {"messages": messages},
        {"id": 3, "traj": messages, "x": [1]},
        {"history": messages},
        {"body": {"messages": messages}},
        json.dumps(messages).encode(),
        next(fl.read(file)),
    ]
    check(COUNTER.count_transcripts(given), [messages] * len(given))
    check(COUNTER.count_transcripts(fl.read(file)), [messages])


@pytest.mark.parametrize("as_lines", [False, True])
def test_a_format_that_a_transcript_names_is_used(as_lines: bool) -> None:
    messages = talk(2)
    given = [
        {"messages": messages, "format": "anthropic"},
        {"messages": messages, "format": "no such format"},
        {"messages": messages, "format": 5},
        {"format": "pi", "body": {"messages": messages}},
        {"format": "pi", "body": {"messages": messages, "format": "anthropic"}},
    ]
    formats = ["anthropic", "auto", "auto", "pi", "anthropic"]
    counted = COUNTER.count_transcripts(lines_of(given) if as_lines else given)
    assert counted.totals.tolist() == [COUNTER.count_messages(messages, format=name).total for name in formats]
    named = COUNTER.count_transcripts(lines_of(given) if as_lines else given, format="openai_chat")
    assert named.totals.tolist() == [COUNTER.count_messages(messages, format="openai_chat").total] * 5


def test_the_format_of_a_stored_transcript_is_used() -> None:
    stored = fl.StoredTranscript("a", "anthropic", talk(2))
    assert (
        COUNTER.count_transcripts([stored]).total == COUNTER.count_messages(stored.messages, format="anthropic").total
    )


@pytest.mark.parametrize("given", [None, 5, "text", {"messages": []}, len], ids=lambda given: type(given).__name__)
def test_what_is_no_list_is_refused(given: Any) -> None:
    with pytest.raises(MessageError) as caught:
        COUNTER.count_transcripts(given)
    assert caught.value.code == "not_a_list"


def test_one_list_of_messages_is_no_list_of_transcripts() -> None:
    with pytest.raises(MessageError) as caught:
        COUNTER.count_transcripts(talk(2))
    assert (caught.value.code, caught.value.transcript) == ("loose_message", 0)


BAD_OBJECTS: dict[str, tuple[Any, str, int | None]] = {
    "no role": ([user(), {"content": CANARY}], "missing_role", 1),
    "bad content": ([user(CANARY), user(), user(5)], "bad_content", 2),
    "no list": (CANARY, "not_a_list", None),
    "none": (None, "not_a_list", None),
    "a number": (5, "not_a_list", None),
    "no messages": ({"a": CANARY}, "unknown_record", None),
    "an entry of a session": ({"type": "session", "cwd": CANARY}, "session_entry", None),
    "another form": ({"contents": [CANARY]}, "unsupported_format", None),
    "bad JSON": (b"[" + CANARY.encode(), "bad_json", None),
    "a message that is a list": ([[user()]], "not_an_object", 0),
}


@pytest.mark.parametrize(("bad", "code", "index"), BAD_OBJECTS.values(), ids=BAD_OBJECTS)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_bad_transcript_is_named(bad: Any, code: str, index: int | None, threads: int) -> None:
    given = [*TALKS, bad, None]
    with pytest.raises(MessageError) as caught:
        COUNTER.count_transcripts(given, threads=threads)
    error = caught.value
    assert (error.code, error.transcript, error.index, error.line) == (code, len(TALKS), index, None)
    holds_no_content(error)

    counted = COUNTER.count_transcripts([*TALKS, bad, *TALKS], threads=threads, errors="null")
    assert len(counted) == 2 * len(TALKS) + 1
    assert [(e.code, e.transcript, e.index) for e in counted.errors] == [(code, len(TALKS), index)]
    good = COUNTER.count_transcripts(TALKS * 2)
    assert counted.per_message.tolist() == good.per_message.tolist()
    assert np.delete(counted.totals, len(TALKS)).tolist() == good.totals.tolist()
    assert (counted.totals[len(TALKS)], counted.overhead[len(TALKS)]) == (0, 0)
    assert counted.offsets[len(TALKS)] == counted.offsets[len(TALKS) + 1]


def test_an_endless_transcript_is_a_limit() -> None:
    call = openai_call(arguments=own_list())
    with pytest.raises(LimitExceeded) as caught:
        COUNTER.count_transcripts([talk(1), [call]])
    assert (caught.value.transcript, caught.value.index) == (1, 0)
    counted = COUNTER.count_transcripts([talk(1), [call], talk(1)], errors="null")
    assert [(type(e), e.transcript) for e in counted.errors] == [(LimitExceeded, 1)]


@pytest.mark.parametrize("errors", ["raise", "null"])
def test_an_iterator_that_raises_ends_the_call(errors: Any) -> None:
    error = RuntimeError("from the iterator")

    def talks() -> Iterator[Any]:
        yield talk(1)
        raise error

    with pytest.raises(RuntimeError) as caught:
        COUNTER.count_transcripts(talks(), errors=errors)
    assert caught.value is error


# --- A function as counter ---------------------------------------------------------------------------


@pytest.mark.parametrize("errors", ["raise", "null"])
@pytest.mark.parametrize("as_lines", [False, True])
@pytest.mark.parametrize("size", [1, 50_000])
def test_what_a_function_raises_comes_out_as_it_is(errors: Any, as_lines: bool, size: int) -> None:
    error = RuntimeError("from the function")
    threads: set[str] = set()

    def count(text: str) -> int:
        threads.add(threading.current_thread().name)
        if text.startswith("c"):
            raise error
        return 1

    talks = [[user(letter * size)] for letter in "abcde"]
    counter = fl.TokenCounter(count)
    with pytest.raises(RuntimeError) as caught:
        counter.count_transcripts(lines_of(talks) if as_lines else talks, errors=errors, threads=4)
    assert caught.value is error
    assert threads == {threading.current_thread().name}


@pytest.mark.parametrize("as_lines", [False, True])
def test_a_function_that_gives_no_count_is_a_config_error_whatever_errors_says(as_lines: bool) -> None:
    counter = fl.TokenCounter(lambda text: -1)
    for errors in ("raise", "null"):
        with pytest.raises(ConfigError):
            counter.count_transcripts(lines_of([talk(1)]) if as_lines else [talk(1)], errors=errors)  # type: ignore[arg-type]


@pytest.mark.parametrize("as_lines", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_message_of_too_many_tokens_is_named(as_lines: bool, threads: int) -> None:
    counter = fl.TokenCounter(lambda text: 1 << 32 if text == "x" else 1)
    talks = [[user("a")], [user("a"), user("x")], [user("x")], [user("b")]]
    given = lines_of(talks) if as_lines else talks
    with pytest.raises(LimitExceeded) as caught:
        counter.count_transcripts(given, threads=threads)
    error = caught.value
    assert (error.code, error.index, error.line) == ("too_many_tokens", 1, 2 if as_lines else None)
    counted = counter.count_transcripts(given, threads=threads, errors="null")
    assert [(e.transcript, e.index) for e in counted.errors] == [(1, 1), (2, 0)]
    assert counted.totals.tolist() == [1, 0, 0, 1]


# --- JSON lines --------------------------------------------------------------------------------------


def mapped(data: bytes, tmp_path: Path) -> mmap.mmap:
    file = tmp_path / "lines"
    file.write_bytes(data)
    with file.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "make",
    [
        lambda data, _: data,
        lambda data, _: bytearray(data),
        lambda data, _: memoryview(data),
        lambda data, _: memoryview(b"xx" + data + b"xx")[2:-2],
        lambda data, _: memoryview(bytearray(data)).toreadonly(),
        lambda data, _: np.frombuffer(data, np.uint8),
        lambda data, _: np.frombuffer(data, np.int8),
        mapped,
    ],
    ids=["bytes", "bytearray", "memoryview", "slice", "read-only", "uint8", "int8", "mmap"],
)
def test_lines_lie_in_any_memory(make: Callable[[bytes, Path], Any], threads: int, tmp_path: Path) -> None:
    given = make(lines_of(TALKS * 30), tmp_path)
    counted = COUNTER.count_transcripts(given, threads=threads)
    check(counted, TALKS * 30)
    assert counted.lines is not None
    assert counted.lines.tolist() == list(range(1, 30 * len(TALKS) + 1))
    assert (counted.lines.dtype, counted.lines.flags.writeable) == (np.int64, False)


def test_memory_that_is_not_contiguous_is_a_type_error() -> None:
    with pytest.raises(TypeError) as caught:
        COUNTER.count_transcripts(memoryview(lines_of(TALKS))[::2])
    assert isinstance(caught.value, TextTypeError)
    assert caught.value.code == "not_bytes"


def test_blank_lines_line_ends_and_a_byte_order_mark_are_no_trouble() -> None:
    one = json.dumps(talk(1)).encode()
    data = b"\xef\xbb\xbf" + one + b"\r\n\r\n \t\n" + b"  " + one + b" \n\n" + one
    counted = COUNTER.count_transcripts(data)
    check(counted, [talk(1)] * 3)
    assert counted.lines is not None
    assert counted.lines.tolist() == [1, 4, 6]


def test_every_shape_that_read_takes_a_line_as() -> None:
    messages = talk(2)
    values = [
        messages,
        {"messages": messages},
        {"traj": messages},
        {"history": messages},
        {"body": {"messages": messages}},
    ]
    counted = COUNTER.count_transcripts(lines_of([*values, [messages, {"messages": messages}], []]))
    check(counted, [messages] * 7 + [[]])
    assert counted.lines is not None
    assert counted.lines.tolist() == [1, 2, 3, 4, 5, 6, 6, 7]


GOOD = json.dumps(talk(1)).encode()
BAD_LINES: dict[str, tuple[bytes, str, type[FoldlineError]]] = {
    "bad JSON": (b'{"messages": ' + CANARY.encode() + b"}", "bad_json", MessageError),
    "no JSON": (CANARY.encode(), "bad_json", MessageError),
    "bad UTF-8": (b'[{"role": "user", "content": "' + CANARY.encode() + b'\xff"}]', "bad_utf8", MessageError),
    "a second byte order mark": (b"\xef\xbb\xbf[]", "bad_json", MessageError),
    "one message": (json.dumps(user(CANARY)).encode(), "loose_message", MessageError),
    "an entry of a session": (b'{"type": "session", "cwd": "x"}', "session_entry", MessageError),
    "another form": (b'{"messages": [{"type": "user", "content": ""}]}', "unsupported_format", MessageError),
    "a line of a rollout": (b'{"type": "session_meta", "payload": {}}', "session_entry", MessageError),
    "a dialogue": (b'{"messages": [{"message": "hi"}]}', "session_entry", MessageError),
    "something else": (b'{"a": 1}', "unknown_record", MessageError),
    "a number": (b"5", "unknown_record", MessageError),
    "no role": (b'[{"role": "user", "content": ""}, {"content": 1}]', "missing_role", MessageError),
    "no message": (b"[5]", "not_an_object", MessageError),
    "nested too deep": (b"[" * 100_000, "nesting_too_deep", FoldlineError),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("line", "code", "error_type"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named(line: bytes, code: str, error_type: type[FoldlineError], threads: int) -> None:
    data = b"\n".join([GOOD, b"", GOOD, line, GOOD, b"{", GOOD])
    with pytest.raises(error_type) as caught:
        COUNTER.count_transcripts(data, threads=threads)
    assert (caught.value.code, caught.value.line) == (code, 4)
    holds_no_content(caught.value)
    assert "line 4" in str(caught.value)

    counted = COUNTER.count_transcripts(data, threads=threads, errors="null")
    one = COUNTER.count_messages(talk(1)).total
    assert counted.totals.tolist() == [one, one, 0, one, 0, one]
    assert counted.lines is not None
    assert counted.lines.tolist() == [1, 3, 4, 5, 6, 7]
    assert [(e.code, e.line, e.transcript) for e in counted.errors] == [(code, 4, 2), ("bad_json", 6, 4)]


def test_a_torn_last_line_is_called_so() -> None:
    counted = COUNTER.count_transcripts(GOOD + b"\n" + GOOD[:-5], errors="null")
    assert [(e.code, e.line) for e in counted.errors] == [("torn_line", 2)]
    whole = COUNTER.count_transcripts(GOOD + b"\n" + GOOD[:-5] + b"\n", errors="null")
    assert [e.code for e in whole.errors] == ["bad_json"]


@pytest.mark.parametrize(
    ("line", "codes", "transcripts"),
    [
        (GOOD + GOOD, ["glued_values"], 2),
        (GOOD + b" " + GOOD + b"{", ["glued_values", "bad_json"], 2),
        (b"\0\0" + GOOD, ["nul_bytes"], 1),
        (b"\0\0", ["nul_bytes"], 0),
    ],
)
def test_what_costs_no_transcript_is_told_beside_it(line: bytes, codes: list[str], transcripts: int) -> None:
    data = b"\n".join([GOOD, line, GOOD])
    with pytest.raises(MessageError) as caught:
        COUNTER.count_transcripts(data)
    assert (caught.value.code, caught.value.line) == (codes[0], 2)
    counted = COUNTER.count_transcripts(data, errors="null")
    check(counted, [talk(1)] * (transcripts + 2))
    assert [(e.code, e.line, e.transcript) for e in counted.errors] == [(code, 2, None) for code in codes]


def test_a_list_of_conversations_may_hold_a_bad_one() -> None:
    line = lines_of([[{"messages": talk(1)}, {"messages": [user(5)]}, talk(2)]])
    counted = COUNTER.count_transcripts(line, errors="null")
    assert [counted.totals[i] > 0 for i in range(3)] == [True, False, True]
    assert [(e.code, e.line, e.transcript, e.index) for e in counted.errors] == [("bad_content", 1, 1, 0)]


def test_the_first_bad_line_is_named_on_any_number_of_threads() -> None:
    line = json.dumps(talk(3, "word " * 2_000)).encode()
    data = b"\n".join([line] * 30 + [b"{"] + [line] * 30 + [b"["] + [line] * 9)
    for threads in (1, 2, 4):
        with pytest.raises(MessageError) as caught:
            COUNTER.count_transcripts(data, threads=threads)
        assert (caught.value.code, caught.value.line) == ("bad_json", 31)


def test_a_line_longer_than_a_window_is_read_whole() -> None:
    long = [user("word " * (8 << 20)), user("end")]
    data = lines_of([talk(1), long, talk(2)])
    assert len(data) > 32 << 20
    counter = fl.TokenCounter("chars/4")
    for given in (data, memoryview(data)):
        check(counter.count_transcripts(given, threads=2), [talk(1), long, talk(2)], counter)


def test_numbers_that_json_does_not_have_are_read_as_python_does(tmp_path: Path) -> None:
    odd = [user([{"type": "odd", "x": float("nan"), "y": [float("inf"), "NaN", -float("inf")]}])]
    values = [{"reward": float("nan"), "messages": talk(2)}, odd]
    check(COUNTER.count_transcripts(lines_of(values)), [talk(2), odd])
    (tmp_path / "odd.jsonl").write_bytes(lines_of(values))
    assert next(fl.read(tmp_path / "odd.jsonl")).messages == talk(2)


def test_lone_surrogates_count_as_everywhere() -> None:
    talks = [[user("a\ud83db")], [user("\ud83d\ude00")]]
    check(COUNTER.count_transcripts(lines_of(talks)), talks)


# --- Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [[], b"", TALKS])
def test_options_are_checked_before_any_work(given: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        COUNTER.count_transcripts(given, format="morse")
    assert (caught.value.code, caught.value.path) == ("unknown_format", "format")
    with pytest.raises(ConfigError) as caught:
        COUNTER.count_transcripts(given, errors="ignore")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.path) == ("bad_errors", "errors")


# --- Real data ---------------------------------------------------------------------------------------


BUNDLED = ROOT / "examples" / "data"


def files_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in (".jsonl", ".json", ".traj"))


@pytest.mark.parametrize("spec", ["o200k_base", "utf16/4+2"])
def test_bundled_sessions_count_as_each_by_itself(spec: str) -> None:
    count_as_each_by_itself(spec, files_in(BUNDLED))


@pytest.mark.deep
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("spec", ["o200k_base", "utf16/4+2"])
def test_recorded_sessions_count_as_each_by_itself(shared: Path, spec: str) -> None:
    count_as_each_by_itself(spec, files_in(shared))


def count_as_each_by_itself(spec: str, files: list[Path]) -> None:
    counter = fl.TokenCounter(spec)
    stored = [t for file in files for t in fl.read(file, on_problem=lambda problem: None)]
    assert len(stored) >= 4
    one_by_one = [counter.count_messages(t.messages, format=t.format) for t in stored]
    as_lines = lines_of([{"messages": t.messages, "format": t.format} for t in stored])
    for threads in (1, 2, 5):
        for given in (stored, as_lines, memoryview(as_lines)):
            counted = counter.count_transcripts(given, threads=threads)
            assert counted.totals.tolist() == [counts.total for counts in one_by_one]
            assert counted.per_message.tolist() == [n for counts in one_by_one for n in counts.per_message.tolist()]
            assert np.diff(counted.offsets).tolist() == list(map(len, one_by_one))


def test_bundled_lines_count_as_read_reads_them() -> None:
    assert count_as_read(files_in(BUNDLED)) > 0


@pytest.mark.deep
@pytest.mark.timeout(1_800)
def test_recorded_lines_count_as_read_reads_them(shared: Path) -> None:
    assert count_as_read(files_in(shared)) > 0


def count_as_read(files: list[Path]) -> int:
    """Compare every file that is one conversation a line; the number of conversations."""
    seen = 0
    for file in files:
        data = file.read_bytes()
        counted = COUNTER.count_transcripts(data, threads=2, errors="null")
        if any(error.code in ("loose_message", "session_entry", "bad_json", "torn_line") for error in counted.errors):
            continue
        stored = list(fl.read(file, on_problem=lambda problem: None))
        good = np.isin(np.arange(len(counted)), [error.transcript for error in counted.errors], invert=True)
        assert counted.totals[good].tolist() == [
            COUNTER.count_messages(t.messages, format=t.format).total for t in stored
        ]
        assert counted.lines is not None
        assert counted.lines[good].tolist() == [t.meta["line"] for t in stored]
        seen += len(stored)
    return seen
