"""`TokenCounter`: construction, results, and interruption."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import foldline as fl
from foldline.errors import ConfigError, FoldlineError, LimitExceeded, MessageError, UnknownModelError
from unit.samples import CANARY, WORDS, anthropic_call, anthropic_result, holds_no_content, openai_call, talk, user

ENCODINGS = ["o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "r50k_base"]
HEURISTICS = ["chars/4", "bytes/4+4", "utf16/4+2"]


# --- Construction ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODINGS)
def test_an_encoding_is_exact(name: str) -> None:
    counter = fl.TokenCounter(name)
    assert (counter.name, counter.kind, repr(counter)) == (name, "exact", f'TokenCounter("{name}")')
    assert counter.count("hello world") == 2


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_heuristic_is_estimated(name: str) -> None:
    counter = fl.TokenCounter(name)
    assert (counter.name, counter.kind) == (name, "estimated")
    assert counter.count_messages([user("hello")]).kind == "estimated"


def test_a_function_is_estimated() -> None:
    counter = fl.TokenCounter(len)
    assert (counter.name, counter.kind) == ("callable", "estimated")
    assert counter.count("hello") == 5


@pytest.mark.parametrize("arguments", [(), (None,)])
def test_the_default_is_o200k_base(arguments: tuple[Any, ...]) -> None:
    assert fl.TokenCounter(*arguments).name == "o200k_base"


class Name(str):
    """A str subclass whose `__str__` fails."""

    __slots__ = ()

    def __str__(self) -> str:
        raise AssertionError


def test_a_str_subclass_is_a_name() -> None:
    assert fl.TokenCounter(Name("cl100k_base")).name == "cl100k_base"
    assert fl.TokenCounter.for_model(Name("gpt-4")).name == "cl100k_base"


def test_any_callable_is_accepted_as_a_function() -> None:
    class Vowels:
        def __call__(self, text: str) -> int:
            return sum(map(text.count, "aeiou"))

    assert fl.TokenCounter(Vowels()).count("banana") == 3
    assert fl.TokenCounter(fl.TokenCounter("chars/4").count).count("banana") == 2


UNKNOWN = [
    "",
    "O200K_BASE",
    "o200k",
    "gpt-4",
    " o200k_base",
    "chars / 4",
    CANARY,
    5,
    0.5,
    b"o200k_base",
    [],
    {},
    object(),
]


@pytest.mark.parametrize("spec", UNKNOWN, ids=lambda spec: f"{type(spec).__name__} {str(spec)[:12]}")
def test_an_unknown_counter_is_a_config_error_that_lists_the_known_ones(spec: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.TokenCounter(spec)
    assert (caught.value.code, caught.value.path) == ("unknown_counter", "counter")
    assert all(name in caught.value.detail for name in ENCODINGS + HEURISTICS)
    holds_no_content(caught.value)


def test_the_name_is_positional_only() -> None:
    with pytest.raises(TypeError):
        fl.TokenCounter(spec="o200k_base")  # type: ignore[call-arg]


def test_a_counter_is_immutable() -> None:
    counter = fl.TokenCounter()
    for name in ("name", "kind", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(counter, name, "x")


MODELS = [
    ("gpt-5", "o200k_base"),
    ("gpt-5-mini-2025-08-07", "o200k_base"),
    ("gpt-5.1-codex-max", "o200k_base"),
    ("gpt-4o", "o200k_base"),
    ("gpt-4o-mini-2024-07-18", "o200k_base"),
    ("gpt-4.1-nano", "o200k_base"),
    ("chatgpt-4o-latest", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3-mini", "o200k_base"),
    ("o4-mini-2025-04-16", "o200k_base"),
    ("gpt-oss-120b", "o200k_harmony"),
    ("openai/gpt-oss-20b", "o200k_harmony"),
    ("gpt-4", "cl100k_base"),
    ("gpt-4-turbo-2024-04-09", "cl100k_base"),
    ("gpt-4-0613", "cl100k_base"),
    ("gpt-3.5-turbo-16k", "cl100k_base"),
    ("gpt-35-turbo", "cl100k_base"),
    ("ft:gpt-4o-mini:acme::abc123", "o200k_base"),
    ("openrouter/openai/gpt-4o", "o200k_base"),
    ("text-embedding-3-small", "cl100k_base"),
]


@pytest.mark.parametrize(("model", "encoding"), MODELS)
def test_a_model_is_counted_by_the_encoding_of_its_family(model: str, encoding: str) -> None:
    assert fl.TokenCounter.for_model(model).name == encoding


@pytest.mark.parametrize(
    "model",
    ["", "claude-opus-4-99", "gemini", "llama", "gpt", "gpt-40", "o1000", "o", "xgpt-4", CANARY],
)
def test_a_model_without_a_known_encoding_is_an_unknown_model(model: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        fl.TokenCounter.for_model(model)
    assert caught.value.code == "unknown_model"
    assert isinstance(caught.value, FoldlineError)
    holds_no_content(caught.value)


# --- Results -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, 5, b"text", ["text"], {"text": 1}], ids=repr)
def test_only_a_str_is_counted(text: Any) -> None:
    with pytest.raises(MessageError) as caught:
        fl.TokenCounter().count(text)
    assert (caught.value.code, caught.value.index) == ("not_a_string", None)


def test_count_is_a_plain_int() -> None:
    assert type(fl.TokenCounter().count(WORDS)) is int
    assert type(fl.TokenCounter().count("")) is int
    assert fl.TokenCounter().count("") == 0


def test_count_tokens_uses_the_counter_of_the_encoding() -> None:
    assert fl.count_tokens(WORDS) == fl.TokenCounter().count(WORDS)
    assert fl.count_tokens(WORDS, encoding="r50k_base") == fl.TokenCounter("r50k_base").count(WORDS)
    with pytest.raises(ConfigError):
        fl.count_tokens("a", encoding="nothing")


BATCHES: list[tuple[str, Callable[[], Any]]] = [
    ("list", lambda: ["", "a", WORDS]),
    ("tuple", lambda: ("", "a", WORDS)),
    ("generator", lambda: (text for text in ["", "a", WORDS])),
    ("array of objects", lambda: np.array(["", "a", WORDS], dtype=object)),
    ("array of text", lambda: np.array(["", "a", WORDS])),
    ("dict keys", dict.fromkeys(["", "a", WORDS]).keys),
    ("str subclass", lambda: [Name(""), Name("a"), Name(WORDS)]),
]


@pytest.mark.parametrize("texts", [case[1] for case in BATCHES], ids=[case[0] for case in BATCHES])
@pytest.mark.parametrize("spec", [*ENCODINGS, *HEURISTICS, len])
def test_a_batch_counts_like_its_texts(spec: Any, texts: Callable[[], Any]) -> None:
    counter = fl.TokenCounter(spec)
    counts = counter.count_batch(texts())
    assert (counts.dtype, counts.shape) == (np.int64, (3,))
    assert counts.tolist() == [counter.count(text) for text in ("", "a", WORDS)]


@pytest.mark.parametrize(
    "texts", [[], (), np.array([], dtype=object), iter(())], ids=lambda texts: type(texts).__name__
)
def test_an_empty_batch_gives_an_empty_array(texts: Any) -> None:
    counts = fl.TokenCounter().count_batch(texts)
    assert (counts.dtype, counts.shape) == (np.int64, (0,))


@pytest.mark.parametrize("item", [None, 5, b"a", ["a"], float("nan"), np.int64(3)], ids=repr)
def test_an_item_that_is_not_a_text_is_reported_with_its_index(item: Any) -> None:
    for texts in (["a", CANARY, item, "b"], np.array(["a", CANARY, item, "b"], dtype=object)):
        with pytest.raises(MessageError) as caught:
            fl.TokenCounter().count_batch(texts)
        assert (caught.value.code, caught.value.index) == ("not_a_string", 2)
        holds_no_content(caught.value)


@pytest.mark.parametrize("texts", [None, 5, "text", {"a": 1}, len], ids=lambda texts: type(texts).__name__)
def test_an_object_that_is_not_a_batch_is_refused(texts: Any) -> None:
    with pytest.raises(MessageError) as caught:
        fl.TokenCounter().count_batch(texts)
    assert caught.value.code == "not_a_list"


def test_an_exception_of_the_iterator_propagates() -> None:
    error = RuntimeError("from the iterator")

    def texts() -> Any:
        yield "a"
        raise error

    with pytest.raises(RuntimeError) as caught:
        fl.TokenCounter().count_batch(texts())
    assert caught.value is error


def test_the_counts_of_a_batch_belong_to_the_caller() -> None:
    counts = fl.TokenCounter().count_batch(["a", "b"])
    counts[0] = 9
    assert fl.TokenCounter().count_batch(["a", "b"]).tolist() == [1, 1]


@pytest.mark.parametrize("spec", [*ENCODINGS, *HEURISTICS, len])
def test_a_text_fits_at_its_count_and_not_below(spec: Any) -> None:
    counter = fl.TokenCounter(spec)
    tokens = counter.count(WORDS)
    assert [counter.fits(WORDS, limit) for limit in (0, tokens - 1, tokens, tokens + 1)] == [False, False, True, True]
    assert counter.fits("", 0)


@pytest.mark.parametrize("spec", ["o200k_base", *HEURISTICS, len])
@pytest.mark.parametrize("as_bytes", [False, True])
def test_messages_fit_at_their_total_and_not_below(spec: Any, as_bytes: bool) -> None:
    counter = fl.TokenCounter(spec)
    messages: Any = [user(), openai_call(arguments={"a": 1})]
    messages = json.dumps(messages).encode() if as_bytes else messages
    tools = [{"type": "function", "function": {"name": "go"}}]
    for more in (None, tools):
        total = counter.count_messages(messages, more).total
        assert [counter.fits(messages, limit, tools=more) for limit in (total - 1, total)] == [False, True]


@pytest.mark.parametrize("limit", [-1, -(2**63)])
def test_a_negative_limit_is_a_config_error(limit: int) -> None:
    for what in ("text", [user()]):
        with pytest.raises(ConfigError) as caught:
            fl.TokenCounter().fits(what, limit)
        assert (caught.value.code, caught.value.path) == ("negative_limit", "limit")


@pytest.mark.parametrize("limit", [2**32, 2**53, 2**63, 2**64, 10**400], ids=lambda limit: f"{float(str(limit)[:9]):g}")
def test_every_text_fits_an_infinite_limit(limit: int) -> None:
    assert fl.TokenCounter().fits(WORDS, limit)
    assert fl.TokenCounter().fits([user()], limit)


@pytest.mark.parametrize("name", ["\ud800", "o200k_base\udfff"], ids=ascii)
def test_a_name_that_is_not_a_text_is_unknown(name: str) -> None:
    with pytest.raises(ConfigError):
        fl.TokenCounter(name)
    with pytest.raises(UnknownModelError):
        fl.TokenCounter.for_model(name)


@pytest.mark.parametrize("limit", [None, 1.5, "5", float("nan")])
def test_a_limit_that_is_not_a_whole_number_is_refused(limit: Any) -> None:
    with pytest.raises((TypeError, ConfigError)):
        fl.TokenCounter().fits("text", limit)


def test_a_numpy_integer_is_a_limit() -> None:
    assert fl.TokenCounter().fits("a", np.int64(1))  # type: ignore[arg-type]


# --- Messages ----------------------------------------------------------------------------------------


def test_counts_have_one_number_per_message() -> None:
    counts = fl.TokenCounter().count_messages(talk(5))
    assert (counts.per_message.dtype, counts.per_message.shape, len(counts)) == (np.int64, (5,), 5)
    assert (type(counts.total), type(counts.overhead)) == (int, int)
    assert counts.total == int(counts.per_message.sum()) + counts.overhead
    assert repr(counts) == f'Counts(total={counts.total}, messages=5, overhead={counts.overhead}, kind="exact")'


def test_the_array_of_counts_is_read_only() -> None:
    counts = fl.TokenCounter().count_messages(talk(3))
    assert not counts.per_message.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        counts.per_message[0] = 1
    assert counts.per_message is counts.per_message


def test_the_array_of_counts_outlives_the_counts() -> None:
    array = fl.TokenCounter("chars/4").count_messages([user("abcd")] * 100).per_message
    assert array.tolist() == [1] * 100


KINDS: list[tuple[str, Any, str, list[Any], str]] = [
    ("text", "o200k_base", "openai_chat", [user("a")], "exact"),
    ("a call and its arguments", "o200k_base", "openai_chat", [openai_call()], "calibrated"),
    ("a picture", "o200k_base", "openai_chat", [user([{"type": "image_url", "image_url": {"url": "u"}}])], "estimated"),
    ("an unknown part", "o200k_base", "openai_chat", [user([{"type": "x"}])], "estimated"),
    ("nothing", "o200k_base", "openai_chat", [], "exact"),
    ("Anthropic", "o200k_base", "anthropic", [user("a")], "calibrated"),
    ("Anthropic with a call", "o200k_base", "anthropic", [anthropic_call(), anthropic_result()], "calibrated"),
    ("Anthropic with a picture", "o200k_base", "anthropic", [user([{"type": "image"}])], "estimated"),
    ("pi", "o200k_base", "pi", [user("a")], "exact"),
    ("a heuristic", "chars/4", "openai_chat", [user("a")], "estimated"),
    ("a function", len, "openai_chat", [user("a")], "estimated"),
]


@pytest.mark.parametrize(
    ("spec", "format", "messages", "kind"), [case[1:] for case in KINDS], ids=[case[0] for case in KINDS]
)
def test_every_count_states_its_accuracy(spec: Any, format: str, messages: list[Any], kind: str) -> None:
    assert fl.TokenCounter(spec).count_messages(messages, format=format).kind == kind
    assert fl.plan(messages, fl.KeepMessages(0), counter=spec, format=format).kind == kind


def test_pictures_are_never_counted_as_text() -> None:
    data = "A" * 4_000_000
    parts = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]
    assert fl.TokenCounter().count_messages([user(parts)]).total < 5_000
    source = {"type": "base64", "media_type": "image/png", "data": data}
    block = {"type": "image", "source": source}
    for messages in ([user([block])], [anthropic_call(), anthropic_result(content=[block])]):
        assert fl.TokenCounter().count_messages(messages, format="anthropic").total < 5_000


def test_tools_are_added_to_the_overhead_as_the_provider_writes_them() -> None:
    counter, messages = fl.TokenCounter(), [user("a")]
    plain = counter.count_messages(messages)
    tools = [{"type": "function", "function": {"name": "go", "description": "Goes."}}]
    counts = counter.count_messages(messages, tools)
    assert list(counts.per_message) == list(plain.per_message)
    written = "namespace functions {\n\n// Goes.\ntype go = () => any;\n\n} // namespace functions"
    assert counts.overhead - plain.overhead == counter.count(written) + 9  # 9 for all, -1 a tool, 1 without arguments
    assert (counts.kind, counts.error_bound) == ("calibrated", 0.01)


def test_tools_of_the_provider_are_estimated_by_their_json() -> None:
    counter, tool = fl.TokenCounter("chars/4"), {"type": "web_search", "context": "medium"}
    counts = counter.count_messages([user("a")], [tool])
    assert (counts.overhead, counts.kind) == (counter.count(json.dumps(tool, separators=(",", ":"))), "estimated")


@pytest.mark.parametrize("tools", [[], (), None], ids=repr)
def test_an_empty_tool_list_adds_nothing(tools: Any) -> None:
    counter = fl.TokenCounter()
    assert counter.count_messages([user()], tools).overhead == counter.count_messages([user()]).overhead


@pytest.mark.parametrize("tools", ["text", b"[]", 5, {"type": "function"}, iter([])], ids=lambda t: type(t).__name__)
def test_tools_must_be_a_list(tools: Any) -> None:
    for use in (
        lambda: fl.TokenCounter().count_messages([user()], tools),
        lambda: fl.TokenCounter().fits([user()], 5, tools=tools),
        lambda: fl.plan([user()], fl.KeepMessages(0), tools=tools),
        lambda: fl.compact([user()], fl.KeepMessages(0), tools=tools),
    ):
        with pytest.raises(MessageError) as caught:
            use()
        assert (caught.value.code, caught.value.path) == ("not_a_list", "tools")


def test_plans_and_folds_count_tools_as_overhead() -> None:
    tools = [{"type": "function", "function": {"name": "go", "description": WORDS}}]
    messages = talk(9)
    overhead = fl.TokenCounter().count_messages(messages, tools).overhead
    assert fl.plan(messages, fl.KeepMessages(2), tools=tools).overhead == overhead > 40
    result = fl.compact(messages, fl.FitTokens(300), tools=tools, summary_tokens=100)
    assert result.error is None
    assert fl.TokenCounter().count_messages(result.messages, tools).total == result.tokens_after <= 300


def test_a_tool_that_is_not_json_is_refused_with_its_path() -> None:
    with pytest.raises(MessageError) as caught:
        fl.TokenCounter().count_messages([user()], [{}, {"a": object()}])
    assert (caught.value.code, caught.value.path) == ("unsupported_value", "tools[1]")


# --- Functions of the caller -------------------------------------------------------------------------

CALLS: list[tuple[str, Callable[[fl.TokenCounter], Any]]] = [
    ("count", lambda counter: counter.count("a")),
    ("count_batch", lambda counter: counter.count_batch(["a", "b"])),
    ("fits", lambda counter: counter.fits("a", 5)),
    ("fits messages", lambda counter: counter.fits([user("a")], 5)),
    ("count_messages", lambda counter: counter.count_messages([user("a"), user("b")])),
    ("tools", lambda counter: counter.count_messages([], [{}])),
    ("plan", lambda counter: fl.plan([user("a")], fl.KeepMessages(0), counter=counter)),
    ("fit", lambda counter: fl.plan([user("a"), openai_call()], fl.FitTokens(1), counter=counter)),
    ("compact", lambda counter: fl.compact([user("a")], fl.KeepMessages(0), counter=counter)),
    ("long text", lambda counter: counter.count("a" * 100_000)),
    ("long messages", lambda counter: counter.count_messages([user("a" * 100_000)])),
]


@pytest.mark.parametrize("use", [case[1] for case in CALLS], ids=[case[0] for case in CALLS])
@pytest.mark.parametrize(
    "make", [lambda: RuntimeError("mine"), KeyboardInterrupt, SystemExit, lambda: KeyError(CANARY)]
)
def test_an_exception_of_a_counting_function_propagates_unchanged(
    use: Callable[[Any], Any], make: Callable[[], BaseException]
) -> None:
    error = make()

    def fail(text: str) -> int:
        raise error

    with pytest.raises(type(error)) as caught:
        use(fl.TokenCounter(fail))
    assert caught.value is error


@pytest.mark.parametrize("use", [case[1] for case in CALLS], ids=[case[0] for case in CALLS])
@pytest.mark.parametrize("answer", [-1, 1.0, 0.5, None, "3", b"3", [], 2**64, 10**40, float("nan")], ids=repr)
def test_a_result_that_is_not_a_nonnegative_whole_number_is_a_config_error(
    use: Callable[[Any], Any], answer: Any
) -> None:
    with pytest.raises(ConfigError) as caught:
        use(fl.TokenCounter(lambda text: answer))
    assert (caught.value.code, caught.value.path) == ("bad_counter_result", "counter")


@pytest.mark.parametrize("answer", [0, True, np.int64(3), np.uint8(3), 2**32 - 1], ids=repr)
def test_every_nonnegative_whole_number_is_a_count(answer: Any) -> None:
    counter = fl.TokenCounter(lambda text: answer)
    assert counter.count("a") == int(answer)
    assert counter.count_batch(["a"]).tolist() == [int(answer)]
    assert counter.count_messages([user("a")]).total == int(answer)


def test_one_text_may_exceed_the_maximum_of_a_message() -> None:
    counter = fl.TokenCounter(lambda text: 2**32)
    assert counter.count("a") == 2**32
    assert not counter.fits("a", 2**32 - 1)
    for call in (lambda: counter.count_batch(["x", "a"]), lambda: counter.count_messages([user("a")])):
        with pytest.raises(LimitExceeded) as caught:
            call()
        assert (caught.value.code, caught.value.index) == ("too_many_tokens", 0)


def test_the_total_may_exceed_the_maximum_of_a_message() -> None:
    counts = fl.TokenCounter(lambda text: 2**32 - 1).count_messages([user("a")] * 3)
    assert counts.total == 3 * (2**32 - 1)


def test_a_failing_message_is_named() -> None:
    counter = fl.TokenCounter(lambda text: -1 if text == "c" else 1)
    with pytest.raises(ConfigError) as caught:
        counter.count_messages([user("a"), user("b"), user("c")])
    assert caught.value.index == 2


def test_a_function_may_call_foldline() -> None:
    inner = fl.TokenCounter()

    def count(text: str) -> int:
        return inner.count_messages([user(text)]).total

    assert fl.TokenCounter(count).count("a") == inner.count_messages([user("a")]).total


def test_a_failure_does_not_affect_the_next_call() -> None:
    failing = fl.TokenCounter(lambda text: 1 // 0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            failing.count("a")
        with pytest.raises(MessageError):
            failing.count(5)  # type: ignore[arg-type]
        assert fl.TokenCounter().count("a") == 1


def test_no_framing_is_added_to_the_counts_of_a_function() -> None:
    assert fl.TokenCounter(lambda text: 0).count_messages([user(WORDS), openai_call()]).total == 0


def test_failing_calls_do_not_leak() -> None:
    class Token:
        pass

    def fail(text: str) -> int:
        raise RuntimeError

    counter = fl.TokenCounter(fail)
    token = Token()
    before = sys.getrefcount(token)
    for _ in range(100):
        with pytest.raises(MessageError):
            fl.TokenCounter().count_messages([user([{"type": "x", "v": token}])])
        with pytest.raises(RuntimeError):
            counter.count_messages([user("a", extra=token)])
    assert sys.getrefcount(token) == before


# --- Threads, forks, interrupts ----------------------------------------------------------------------


def steps_of_another_thread(read: Callable[[], Any], rounds: int) -> int:
    """Calls `read` until another thread has made a hundred steps, or `rounds` times; returns its steps.

    Only `read` lets the other thread run: the switch interval of the interpreter is set very high.
    """
    steps = 0
    begin, done = threading.Event(), threading.Event()

    def work() -> None:
        nonlocal steps
        begin.wait()
        while not done.is_set():
            steps += 1
            time.sleep(0)  # releases the GIL

    thread = threading.Thread(target=work)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    try:
        begin.set()
        for _ in range(rounds):
            read()
            if steps > 100:
                break
        return steps
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()


LONG_TEXT = "a" * 500_000
COUNTER = fl.TokenCounter()


@pytest.mark.parametrize(
    "read",
    [
        lambda: COUNTER.count(LONG_TEXT),
        lambda: COUNTER.count_batch([LONG_TEXT[:1000]] * 500),
        lambda: COUNTER.count_messages([user(LONG_TEXT)]),
        lambda: COUNTER.fits(LONG_TEXT, 10**9),
        lambda: fl.plan([user(LONG_TEXT)], fl.KeepMessages(1), counter=COUNTER),
    ],
    ids=["count", "count_batch", "count_messages", "fits", "plan"],
)
def test_another_thread_runs_while_much_text_is_counted(read: Callable[[], Any]) -> None:
    assert steps_of_another_thread(read, rounds=1_000) > 100


def test_a_short_text_is_counted_without_releasing_the_gil() -> None:
    text = "a" * 60_000
    assert steps_of_another_thread(lambda: COUNTER.count(text), rounds=20) == 0


@pytest.mark.parametrize("spec", ["o200k_base", "chars/4", len])
def test_threads_share_a_counter(spec: Any) -> None:
    counter, messages = fl.TokenCounter(spec), talk(50, WORDS * 20)
    expected = counter.count_messages(messages).total
    found: list[int] = []

    def count() -> None:
        found.extend(counter.count_messages(messages).total for _ in range(10))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 80


def test_each_thread_gets_the_exception_of_its_function() -> None:
    barrier = threading.Barrier(4)
    wrong: list[Any] = []

    def use(number: int) -> None:
        error = RuntimeError(number)

        def fail(text: str) -> int:
            raise error

        counter = fl.TokenCounter(fail)
        barrier.wait()
        for _ in range(200):
            try:
                counter.count("a" * 70_000)
            except RuntimeError as raised:
                if raised is not error:
                    wrong.append(raised)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def run(script: str, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
    """Runs a script in a fresh interpreter."""
    code = textwrap.dedent(script)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout_s, check=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_counters_work_in_a_forked_child() -> None:
    done = run(
        """
        import os, foldline as fl
        counter, text = fl.TokenCounter(), "word " * 100_000
        messages = [{"role": "user", "content": text}] * 3
        expected = (counter.count(text), counter.count_messages(messages).total)
        child = os.fork()
        if child == 0:
            found = (counter.count(text), counter.count_messages(messages).total)
            plan = fl.plan(messages, fl.KeepMessages(1), counter=counter)
            os._exit(0 if found == expected and plan.cut == 2 else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert counter.count(text) == expected[0]
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


HOSTILE = {
    "one letter": "'a' * (64 << 20)",
    "spaces": "' ' * (64 << 20)",
    "one sign": "'^' * (64 << 20)",
    "Han": "'对' * (21 << 20)",
    "digits": "'7' * (64 << 20)",
}
LONG = {
    "count": "counter.count(text)",
    "count_batch": "counter.count_batch([text])",
    "count_messages": "counter.count_messages([message])",
    "fits": "counter.fits(text, 1 << 40)",
    "fits messages": "counter.fits([message], 1 << 40)",
    "plan": "fl.plan([message], fl.KeepMessages(1), counter=counter)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way")
@pytest.mark.parametrize(
    ("text", "call"),
    [(text, "count") for text in HOSTILE] + [("one letter", call) for call in LONG if call != "count"],
)
def test_ctrl_c_ends_a_long_count(text: str, call: str) -> None:
    """The call is repeated until the signal arrives, which then ends it like any other Python code."""
    script = textwrap.dedent(
        f"""
        import sys, foldline as fl
        counter, text = fl.TokenCounter(), {HOSTILE[text]}
        message = {{"role": "user", "content": text}}
        # The first calls import what they need, and CPython ends by the signal where one came while a dataclass was
        # being made (`exec` notes it as unhandled), even if it was caught. The call under test imports nothing.
        fl.plan([{{"role": "user", "content": "a"}}], fl.KeepMessages(1), counter=counter)
        counter.count_messages([{{"role": "user", "content": "a"}}])
        sys.stdin.readline()
        print("counting", flush=True)
        try:
            while True:
                {LONG[call]}
        except KeyboardInterrupt:
            sys.stdout.write("interrupted\\n")
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "counting\n"
        threading.Event().wait(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
        process.wait()
    assert (out, err, process.returncode) == ("interrupted\n", "", 0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")
@pytest.mark.parametrize("text", HOSTILE)
def test_signals_are_handled_throughout_a_count(text: str) -> None:
    """A timer fires every 2 ms and must be handled in each quarter of a count that takes 0.3 s.

    The count begins when CPython has encoded a text beyond ASCII, which is one call. The shortest of several counts is
    judged: in another the process may have been stopped for a quarter.
    """
    done = run(
        f"""
        import signal, sys, time, foldline as fl
        counter, text, handled = fl.TokenCounter(), ({HOSTILE[text]})[: 1 << 20], []
        signal.signal(signal.SIGALRM, lambda *_: handled.append(time.monotonic()))
        def measure():
            handled.clear()
            called = time.monotonic()
            text.isascii() or text.encode()
            begin = 2 * time.monotonic() - called
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
            counter.count(text)
            end = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 0)
            return end - begin, {{int(4 * (at - begin) / (end - begin)) for at in handled if begin <= at < end}}
        seconds = 0.0
        while seconds < 0.3:
            text += text
            seconds, quarters = min((measure() for _ in range(5)), key=lambda measured: measured[0])
        sys.stdout.write(str(sorted(quarters)))
        """
    )
    assert (done.stdout, done.stderr) == ("[0, 1, 2, 3]", "")


def test_a_counter_works_after_an_interrupt() -> None:
    done = run(
        """
        import os, signal, threading, foldline as fl
        counter, text = fl.TokenCounter(), "a" * (16 << 20)
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            while True:
                counter.count(text)
        except KeyboardInterrupt:
            pass
        assert counter.count("hello world") == 2
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


# --- Errors as values --------------------------------------------------------------------------------

ERRORS = [getattr(fl.errors, name) for name in fl.errors.__all__ if name != "FoldlineWarning"]


@pytest.mark.parametrize("error_type", ERRORS, ids=lambda error_type: error_type.__name__)
@pytest.mark.parametrize("over", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_copying_and_pickling(error_type: type[FoldlineError], over: Callable[[Any], Any]) -> None:
    error = error_type("what is wrong", code="some_code", index=3, path="content[2]")
    again = over(error)
    assert type(again) is error_type
    assert vars(again) == vars(error)
    assert (str(again), repr(again), again.args) == (str(error), repr(error), error.args)


def test_an_error_of_the_core_survives_pickling() -> None:
    with pytest.raises(MessageError) as caught:
        fl.TokenCounter().count_messages([user(), user(5)])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.code, again.index, again.path) == ("bad_content", 1, "content")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "bad_message: wrong"),
        ({"code": "c"}, "c: wrong"),
        ({"index": 0}, "bad_message: wrong (message 0)"),
        ({"path": "p"}, "bad_message: wrong (at p)"),
        ({"index": 2, "path": "p"}, "bad_message: wrong (message 2, at p)"),
    ],
)
def test_an_error_has_a_code_and_a_path(arguments: dict[str, Any], text: str) -> None:
    assert str(MessageError("wrong", **arguments)) == text


def test_every_error_is_a_foldline_error() -> None:
    for error_type in ERRORS:
        with pytest.raises(FoldlineError):
            raise error_type("x")


@pytest.mark.parametrize("name", ["TokenCounter", "Counts", "Transcript", "TranscriptSnapshot", "BatchPlans"])
def test_compiled_classes_that_would_lose_state_refuse_pickling(name: str) -> None:
    objects = {
        "TokenCounter": fl.TokenCounter(),
        "Counts": fl.TokenCounter().count_messages([]),
        "Transcript": fl.Transcript(),
        "TranscriptSnapshot": fl.Transcript().snapshot(),
        "BatchPlans": fl.plan_batch([], fl.KeepMessages(0)),
    }
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(objects[name])
