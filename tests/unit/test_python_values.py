"""Python values of every kind as messages: readings, errors, and that nothing is modified."""

from __future__ import annotations

import copy
import gc
import json
import sys
import threading
from collections import OrderedDict, UserDict, UserList, defaultdict
from collections.abc import Callable, Iterator
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

import foldline as fl
from foldline.errors import FoldlineError, LimitExceeded, MessageError
from unit.samples import (
    CANARY,
    OPERATIONS,
    WORDS,
    anthropic_call,
    anthropic_result,
    assistant,
    holds_no_content,
    nested,
    nested_dicts,
    openai_call,
    openai_result,
    own_dict,
    own_list,
    talk,
    user,
)

Operation = Callable[[Any, str], Any]

O200K = fl.TokenCounter("o200k_base")
FRAME = 4
"""The framing of a message in OpenAI chat."""


READING = sorted(OPERATIONS.keys() - {"apply"})
"""The functions that read any messages, not only those of a plan."""


@pytest.fixture(params=sorted(OPERATIONS))
def operation(request: pytest.FixtureRequest) -> Operation:
    return OPERATIONS[request.param]


def counted(message: Any, format: str = "openai_chat") -> int:
    """Tokens of the text of one message."""
    return int(O200K.count_messages([message], format=format).per_message[0]) - FRAME


# --- Refused values: class, code, index, path --------------------------------------------------------

REFUSED = [
    ("no role", {"content": CANARY}, "openai_chat", "missing_role", "role"),
    ("role None", {"role": None, "content": CANARY}, "openai_chat", "bad_role", "role"),
    ("role int", {"role": 7, "content": CANARY}, "openai_chat", "bad_role", "role"),
    ("role bytes", {"role": b"user", "content": CANARY}, "openai_chat", "bad_role", "role"),
    ("role list", {"role": [CANARY], "content": CANARY}, "openai_chat", "bad_role", "role"),
    ("role missing, Anthropic", {"content": [{"type": "text", "text": CANARY}]}, "anthropic", "missing_role", "role"),
    ("role missing, pi", {"content": CANARY}, "pi", "missing_role", "role"),
    ("message None", None, "openai_chat", "not_an_object", ""),
    ("message str", CANARY, "openai_chat", "not_an_object", ""),
    ("message list", [CANARY], "anthropic", "not_an_object", ""),
    ("message object", object(), "pi", "not_an_object", ""),
    ("content int", user(41), "openai_chat", "bad_content", "content"),
    ("content float", user(0.5), "anthropic", "bad_content", "content"),
    ("content False", user(False), "openai_chat", "bad_content", "content"),
    ("content bytes", user(CANARY.encode()), "openai_chat", "bad_content", "content"),
    ("content bytearray", user(bytearray(CANARY.encode())), "anthropic", "bad_content", "content"),
    ("content set", user({CANARY}), "openai_chat", "bad_content", "content"),
    ("content generator", user(part for part in [CANARY]), "openai_chat", "bad_content", "content"),
    ("content object", user(object()), "pi", "bad_content", "content"),
    ("part bytes", user([CANARY.encode()]), "pi", "bad_part", "content[0]"),
    ("text bytes", user([{"type": "text", "text": CANARY.encode()}]), "pi", "unsupported_value", "content[0]"),
    ("calls bytes", assistant(None, tool_calls=CANARY.encode()), "openai_chat", "bad_part", "tool_calls"),
    ("call bytes", assistant(None, tool_calls=[CANARY.encode()]), "openai_chat", "bad_part", "tool_calls[0]"),
    (
        "arguments bytes",
        openai_call(arguments=CANARY.encode()),
        "openai_chat",
        "unsupported_value",
        "tool_calls[0].function.arguments",
    ),
    ("input object", anthropic_call(given={"a": object()}), "anthropic", "unsupported_value", "content[0].input"),
    ("input key int", anthropic_call(given={5: CANARY}), "anthropic", "bad_key", "content[0].input"),
    ("input key bytes", anthropic_call(given={b"a": CANARY}), "anthropic", "bad_key", "content[0].input"),
    ("input key None", anthropic_call(given={None: CANARY}), "anthropic", "bad_key", "content[0].input"),
    ("unknown part with bytes", user([{"type": "x", "v": CANARY.encode()}]), "openai_chat", "unsupported_value", None),
    ("unknown part with a set", user([{"type": "x", "v": {CANARY}}]), "anthropic", "unsupported_value", None),
    ("unknown part with a key int", user([{"type": "x", "v": {1: CANARY}}]), "openai_chat", "bad_key", None),
    ("result int", openai_result(content=5), "openai_chat", "bad_content", "content"),
    ("result bytes", openai_result(content=CANARY.encode()), "openai_chat", "bad_content", "content"),
    ("result bytes, Anthropic", anthropic_result(content=b"x"), "anthropic", "bad_content", None),
    ("result with an object", openai_result(content=[object()]), "openai_chat", "unsupported_value", "content[0]"),
]


@pytest.mark.parametrize(
    ("message", "format", "code", "path"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_an_unreadable_value_is_a_message_error_with_its_path(
    operation: Operation, message: Any, format: str, code: str, path: str | None
) -> None:
    with pytest.raises(MessageError) as caught:
        operation([user("before"), message], format)
    error = caught.value
    assert (error.code, error.index) == (code, 1)
    if path is not None:
        assert error.path == path
    assert code in str(error)
    assert "message 1" in str(error)
    holds_no_content(error)


NO_LISTS = [
    ("None", None),
    ("dict", {"role": "user", "content": CANARY}),
    ("str", CANARY),
    ("int", 5),
    ("generator", (each for each in [user(CANARY)])),
    ("iterator", iter([user(CANARY)])),
    ("set", frozenset()),
    ("dict view", {"a": user(CANARY)}.values()),
    ("range", range(3)),
    ("UserList", UserList([user(CANARY)])),
    ("bytearray", bytearray(b"[]")),
    ("memoryview", memoryview(b"[]")),
]


@pytest.mark.parametrize("operation", sorted(OPERATIONS.keys() - {"fits"}), indirect=True)
@pytest.mark.parametrize("messages", [case[1] for case in NO_LISTS], ids=[case[0] for case in NO_LISTS])
def test_an_object_that_is_not_a_message_list_is_a_message_error(operation: Operation, messages: Any) -> None:
    with pytest.raises(MessageError) as caught:
        operation(messages, "auto")
    assert (caught.value.code, caught.value.index) == ("not_a_list", None)
    holds_no_content(caught.value)


@pytest.mark.parametrize(
    "mapping", [MappingProxyType(user(CANARY)), UserDict(user(CANARY))], ids=lambda m: type(m).__name__
)
def test_a_mapping_that_is_not_a_dict_is_refused(operation: Operation, mapping: Any) -> None:
    with pytest.raises(MessageError) as caught:
        operation([mapping], "openai_chat")
    assert caught.value.code == "not_an_object"
    holds_no_content(caught.value)


@pytest.mark.parametrize("operation", READING, indirect=True)
@pytest.mark.parametrize("format", ["", "OPENAI_CHAT", "converse", CANARY])
def test_an_unknown_format_is_a_config_error(operation: Operation, format: str) -> None:
    with pytest.raises(fl.errors.ConfigError) as caught:
        operation([user("a")], format)
    assert (caught.value.code, caught.value.path) == ("unknown_format", "format")
    holds_no_content(caught.value)


# --- Readable values ---------------------------------------------------------------------------------


def test_null_content_counts_only_the_framing() -> None:
    assert [counted(message) for message in (user(None), {"role": "user"}, user(""), user([]))] == [0, 0, 0, 0]


def test_null_content_with_calls_is_legal() -> None:
    messages = [user("a"), openai_call(), openai_result()]
    assert fl.validate(messages, "openai") == []
    assert counted(messages[1]) == O200K.count("go") + O200K.count("{}")


@pytest.mark.parametrize("role", ["critic", "", "Système", "user ", "<|im_start|>"])
def test_an_unknown_role_is_an_ordinary_message(role: str) -> None:
    messages = [user(), {"role": role, "content": WORDS}, user()]
    assert counted(messages[1]) == O200K.count(WORDS)
    plan = fl.plan(messages, fl.KeepMessages(2), counter="chars/4")
    assert plan.actions == ["summarize", "keep", "keep"]
    assert plan.apply(messages, "So far.")[1] is messages[1]


UNKNOWN_PARTS = [
    {"type": "hologram", "frames": 12},
    {"type": "x"},
    {"type": None},
    {"type": 5, "data": "hidden"},
    {},
    {"no": "type"},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "document", "source": {"type": "text", "data": "a page"}},
    {"type": "text"},
    {"type": "thinking"},
]


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic", "pi"])
@pytest.mark.parametrize("part", UNKNOWN_PARTS, ids=[json.dumps(part) for part in UNKNOWN_PARTS])
def test_an_unknown_part_counts_as_its_json_text_and_makes_the_count_estimated(part: Any, format: str) -> None:
    counts = O200K.count_messages([user([part])], format=format)
    text = json.dumps(part, separators=(",", ":"), ensure_ascii=False)
    frame = 0 if format == "pi" else FRAME
    assert counts.per_message[0] - frame == O200K.count(text) > 0
    assert counts.kind == "estimated"


def test_a_known_message_with_an_unknown_one_is_still_estimated() -> None:
    assert O200K.count_messages([user("a")]).kind == "exact"
    assert O200K.count_messages([user([{"type": "x"}]), user("a")]).kind == "estimated"


SCALARS = [
    (None, "null"),
    (True, "true"),
    (0, "0"),
    (-5, "-5"),
    (2**63, "9223372036854775808"),
    (-(10**30), "-1" + "0" * 30),
    (1.0, "1"),
    (-0.0, "0"),
    (0.1, "0.1"),
    (1e21, "1e+21"),
    (float("nan"), "null"),
    (float("inf"), "null"),
    (-float("inf"), "null"),
    ((1, 2), "[1,2]"),
    ([], "[]"),
    ({}, "{}"),
    ("é\n\x01", '"é\\n\\u0001"'),
    ({"b": 1, "a": [None]}, '{"b":1,"a":[null]}'),
]


@pytest.mark.parametrize(("value", "text"), SCALARS, ids=[text for _, text in SCALARS])
def test_values_count_like_the_output_of_json_stringify(value: Any, text: str) -> None:
    seen: list[str] = []
    counter = fl.TokenCounter(lambda piece: seen.append(piece) or 0)
    counter.count_messages([openai_call(arguments={"v": value}), anthropic_call()], format="openai_chat")
    assert f'{{"v":{text}}}' in seen


def test_an_integer_of_any_length_is_read() -> None:
    sys_limit = sys.get_int_max_str_digits()
    counts = fl.TokenCounter("chars/4").count_messages([openai_call(arguments={"n": 10 ** (sys_limit + 1000)})])
    assert counts.total > sys_limit // 8
    assert sys.get_int_max_str_digits() == sys_limit


class Text(str):
    """A str whose overridden methods record their calls and fail."""

    __slots__ = ()
    calls: ClassVar[list[str]] = []

    def __str__(self) -> str:
        self.calls.append("str")
        raise AssertionError

    __repr__ = __format__ = encode = __str__  # type: ignore[assignment]

    def __len__(self) -> int:
        self.calls.append("len")
        raise AssertionError

    def __iter__(self) -> Iterator[str]:
        self.calls.append("iter")
        raise AssertionError


class Role(StrEnum):
    USER = "user"


class Number(IntEnum):
    ONE = 1


class Colour(Enum):
    RED = "red"


class Loud(dict[str, Any]):
    """A dict whose overridden methods contradict its content and record their calls."""

    calls: ClassVar[list[str]] = []

    def _called(self, *_: Any) -> Any:
        self.calls.append("dict")
        raise AssertionError

    __getitem__ = get = items = keys = values = __iter__ = __contains__ = __len__ = __missing__ = _called  # type: ignore[assignment]


class LoudList(list[Any]):
    """A list whose methods record their calls."""

    calls: ClassVar[list[str]] = []

    def _called(self, *_: Any) -> Any:
        self.calls.append("list")
        raise AssertionError

    __getitem__ = __iter__ = __len__ = __contains__ = __reversed__ = _called  # type: ignore[assignment]


EQUAL_TO_PLAIN = [
    ("tuple of messages", (user(WORDS),)),
    ("tuple of parts", [user(({"type": "text", "text": WORDS},))]),
    ("list subclass", LoudList([user(WORDS)])),
    ("list subclass of parts", [user(LoudList([WORDS]))]),
    ("dict subclass", [Loud(role="user", content=WORDS)]),
    ("OrderedDict", [OrderedDict(user(WORDS))]),
    ("defaultdict", [defaultdict(list, user(WORDS))]),
    ("str subclass", [user(Text(WORDS))]),
    ("str subclass as role", [{"role": Text("user"), "content": WORDS}]),
    ("StrEnum as role", [{"role": Role.USER, "content": WORDS}]),
    ("part as a string", [user([WORDS])]),
    ("keys that are not strings, beside ours", [{"role": "user", "content": WORDS, 5: 1, None: 2, (1,): 3}]),
    ("a thousand other members", [{f"k{i}": i for i in range(1000)} | user(WORDS)]),
    ("a lone surrogate as a key, beside ours", [{"\ud800": 1, **user(WORDS)}]),
    ("JSON bytes", json.dumps([user(WORDS)]).encode()),
    (
        "JSON bytes with escapes and blanks",
        b' [ {"r\\u006fle":"user" , "content":' + json.dumps(WORDS).encode() + b"} ]\n",
    ),
    ("JSON bytes with a repeated key", b'[{"role":5,"content":' + json.dumps(WORDS).encode() + b',"role":"user"}]'),
]


@pytest.mark.parametrize(("name", "messages"), EQUAL_TO_PLAIN, ids=[case[0] for case in EQUAL_TO_PLAIN])
def test_container_subclasses_read_like_plain_ones(name: str, messages: Any) -> None:
    plain = O200K.count_messages([user(WORDS)])
    counts = O200K.count_messages(messages)
    assert (list(counts.per_message), counts.total, counts.kind) == (list(plain.per_message), plain.total, "exact")
    assert fl.plan(messages, fl.KeepMessages(1), counter="chars/4").tokens_before == 50
    assert fl.analyze(messages).groups == [[0]]
    # A text in a list reads like one, but no provider accepts it.
    refused = ["bad_content"] if name in ("list subclass of parts", "part as a string") else []
    assert [problem.code for problem in fl.validate(messages, "openai")] == refused
    assert Text.calls == Loud.calls == LoudList.calls == []


def test_keys_are_identified_by_content_not_address() -> None:
    """Strings are freed, and a new one may take the address of a freed one."""
    names = ["role", "rule", "roles", "content", "contents", "name", "nama", "refusal"]
    expected = {name: json.dumps({"role": "user", "content": WORDS} | {name: "user"}) for name in names}
    plain = {
        name: fl.TokenCounter("chars/4").count_messages(f"[{text}]".encode()).total for name, text in expected.items()
    }
    count = fl.TokenCounter("chars/4").count_messages
    for i in range(4_000):
        name = names[i * i % len(names)] if i % 3 else names[i % len(names)]
        message = json.loads(expected[name])
        assert count([message]).total == plain[name], name
        without = {"".join(reversed("elor"))[: 4 - i % 2] + "s" * (i % 2): "user", "content": WORDS}
        if i % 2:
            with pytest.raises(MessageError) as error:
                count([without])
            assert error.value.code == "missing_role"
        else:
            assert count([without]).total == plain["role"]


class Emptying:
    """Garbage that empties a dict when it is collected."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.itself = self
        self.message = message

    def __del__(self) -> None:
        self.message.clear()


@pytest.mark.parametrize("is_part", [False, True], ids=["a message", "a part"])
def test_a_dict_emptied_by_a_finalizer_during_the_reading_is_read_up_to_that_point(is_part: bool) -> None:
    """A key that is not UTF-8 raises an exception internally, which may run the collector."""
    count = fl.TokenCounter("chars/4").count_messages
    before = gc.get_threshold()
    for i in range(200):
        words = WORDS * (i + 1)
        read = {f"\ud800{i}{is_part}": i} | (
            {"type": "text", "text": words} if is_part else {"role": str(i), "content": words}
        )
        messages = [user([read])] if is_part else [read]
        gc.disable()
        Emptying(read)
        gc.set_threshold(1)
        gc.enable()
        outcome: int | str
        try:
            outcome = count(messages, format="openai_chat").total
        except MessageError as error:
            outcome = error.code
        finally:
            gc.set_threshold(*before)
        if sys.version_info >= (3, 12):
            gc.collect()  # In these versions the collector runs only between two steps of Python code.
        # An empty unknown part is written as {}.
        assert outcome in (0, 1, -(-len(words) // 4), "missing_role")
        assert read == {}


class Fraction(float):
    """A float with overridden methods."""

    calls: ClassVar[list[str]] = []

    def _called(self, *_: Any) -> Any:
        self.calls.append("float")
        raise AssertionError

    __index__ = __int__ = __float__ = __str__ = __repr__ = __format__ = __bool__ = _called


class Whole(int):
    """An int with overridden methods."""

    calls: ClassVar[list[str]] = []

    def _called(self, *_: Any) -> Any:
        self.calls.append("int")
        raise AssertionError

    __index__ = __int__ = __float__ = __str__ = __repr__ = __format__ = __bool__ = _called


def test_numbers_with_overridden_methods_are_read_by_their_value() -> None:
    odd = {"v": [Fraction(0.5), Whole(7), Whole(10**40)]}
    assert counted(openai_call(arguments=odd)) == counted(openai_call(arguments={"v": [0.5, 7, 10**40]}))
    assert Fraction.calls == Whole.calls == []


def test_applying_calls_no_method_of_a_users_container() -> None:
    big = openai_result("a", LoudList([{"type": "text", "text": WORDS * 9}]))
    blocks = LoudList(
        [{"type": "tool_result", "tool_use_id": "a", "content": WORDS * 9}, {"type": "text", "text": "t"}]
    )
    for messages in (
        LoudList([user(), openai_call("a"), openai_call("b"), big, openai_result("b", "r")]),
        LoudList([user(), anthropic_call("a"), anthropic_call("b"), user(blocks), anthropic_result("b", "r")]),
    ):
        plan = fl.plan(messages, fl.FitTokens(70), counter="chars/4")
        assert plan.actions[3] == "clear"
        assert len(plan.apply(messages, "So far.")) == 5
        result = fl.compact(messages, fl.FitTokens(140), counter="chars/4", summary_tokens=60)
        assert (result.error, result.changed) == (None, True)
        assert len(fl.compact(messages, fl.KeepMessages(99), counter="chars/4").messages) == 5
    assert LoudList.calls == []


def test_enums_with_a_value_type_are_read_by_their_value() -> None:
    assert counted(openai_call(arguments={"a": Number.ONE, "b": Role.USER})) == O200K.count("go") + O200K.count(
        '{"a":1,"b":"user"}'
    )


def test_other_enums_are_refused() -> None:
    with pytest.raises(MessageError, match="unsupported_value"):
        counted(openai_call(arguments={"a": Colour.RED}))


@pytest.mark.parametrize("messages", [[], (), b"[]", b" [ ] "], ids=repr)
def test_an_empty_list_gives_an_empty_result(messages: Any) -> None:
    counts = O200K.count_messages(messages)
    assert (len(counts), counts.per_message.shape, counts.total) == (0, (0,), counts.overhead)
    plan = fl.plan(messages, fl.KeepMessages(0), counter="chars/4")
    assert (bool(plan), plan.cut, plan.actions, plan.floor) == (False, 0, [], 0)
    assert fl.validate(messages, "openai") == fl.validate(messages, "anthropic") == []
    assert fl.analyze(messages).groups == []


def test_an_empty_list_folds_to_an_empty_list() -> None:
    result = fl.compact([], fl.KeepMessages(0), counter="chars/4")
    assert (result.messages, result.changed, result.error) == ([], False, None)
    assert fl.plan([], fl.KeepMessages(0), counter="chars/4").apply([]) == []


# --- JSON bytes --------------------------------------------------------------------------------------

BAD_BYTES = [
    (b"", "bad_json"),
    (b"   ", "bad_json"),
    (b"[", "bad_json"),
    (b"[{]", "bad_json"),
    (b"[] []", "bad_json"),
    (b"[],", "bad_json"),
    (b"nul", "bad_json"),
    (b"\xff\xfe", "bad_json"),
    (b'[{"role":"user","content":"\xff"}]', None),
    (b'["\x00"]', "bad_json"),
    (b"{}", "not_a_list"),
    (b'"text"', "not_a_list"),
    (b"5", "not_a_list"),
    (b"null", "not_a_list"),
    (b"[5]", "not_an_object"),
    (b'[{"content":"a"}]', "missing_role"),
    (b'[{"role":"user","content":5}]', "bad_content"),
    (b'[{"role":"user","content":{"v": NaN}}]', "bad_json"),
]


@pytest.mark.parametrize(("data", "code"), BAD_BYTES, ids=[repr(data) for data, _ in BAD_BYTES])
def test_bad_json_bytes_are_a_message_error(data: bytes, code: str | None) -> None:
    for name in ("count_messages", "plan", "validate", "analyze"):
        with pytest.raises(MessageError) as caught:
            OPERATIONS[name](data, "openai_chat")
        assert code is None or caught.value.code == code


def test_an_error_about_json_bytes_has_a_position_and_no_content() -> None:
    data = b'[{"role": "user", "content": "' + CANARY.encode() + b'"} oops]'
    with pytest.raises(MessageError) as caught:
        O200K.count_messages(data)
    assert f"byte {data.index(b'oops')}" in str(caught.value)
    holds_no_content(caught.value)


def test_a_plan_of_json_bytes_applies_to_the_parsed_list() -> None:
    messages = [*talk(4), user([{"type": "x", "v": [1, 2.5, {"a": None}]}])]
    plan = fl.plan(json.dumps(messages).encode(), fl.KeepMessages(2), counter="chars/4")
    assert plan == fl.plan(messages, fl.KeepMessages(2), counter="chars/4")
    assert plan.apply(messages, "So far.")[1:] == messages[3:]


@pytest.mark.parametrize("keep", [fl.KeepMessages(1), fl.KeepMessages(99)])
def test_json_bytes_fold_as_their_list(keep: fl.planning.Keep) -> None:
    messages = talk(3)
    of_bytes, of_list = (fl.compact(m, keep, counter="chars/4") for m in (json.dumps(messages).encode(), messages))
    assert of_bytes == of_list
    assert all(type(message) is dict for message in of_bytes.messages)


def test_json_bytes_keep_the_order_of_keys_and_the_forms_of_numbers() -> None:
    data = b'[{"content": "one", "role": "user", "n": 1.50}, {"role": "user", "z": 1, "a": 12345678901234567890123}]'
    messages = fl.compact(data, fl.KeepMessages(2), counter="chars/4").messages
    assert [list(message) for message in messages] == [["content", "role", "n"], ["role", "z", "a"]]
    assert [messages[0]["n"], messages[1]["a"]] == [1.5, 12345678901234567890123]


def test_bytes_that_are_not_json_cannot_be_folded() -> None:
    with pytest.raises(MessageError) as caught:
        fl.compact(b'[{"role": "user"', fl.KeepMessages(1), counter="chars/4")
    assert caught.value.code == "bad_json"


def test_a_plan_cannot_be_applied_to_bytes() -> None:
    data = json.dumps(talk(3)).encode()
    with pytest.raises(MessageError) as caught:
        fl.plan(data, fl.KeepMessages(1), counter="chars/4").apply(data, "So far.")  # type: ignore[arg-type]
    assert caught.value.code == "not_a_list"


# --- Nesting and cycles ------------------------------------------------------------------------------

PLACES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "arguments": ("openai_chat", lambda value: openai_call(arguments=value)),
    "a call without function": ("openai_chat", lambda value: assistant(None, tool_calls=value)),
    "function_call": ("openai_chat", lambda value: assistant(None, function_call={"name": "f", "arguments": value})),
    "a result's block": ("openai_chat", lambda value: openai_result(content=value)),
    "an unknown part": ("openai_chat", user),
    "a participant's part": ("openai_chat", lambda value: user(value, name="bo")),
    "input": ("anthropic", lambda value: anthropic_call(given=value)),
    "input of a server's tool": (
        "anthropic",
        lambda value: assistant([{"type": "server_tool_use", "id": "s", "name": "w", "input": value}]),
    ),
    "a block of a tool_result": ("anthropic", lambda value: anthropic_result(content=value)),
    "redacted thinking": ("anthropic", lambda value: assistant([{"type": "redacted_thinking", "data": value}])),
    "an unknown block": ("anthropic", user),
    "pi arguments": (
        "pi",
        lambda value: assistant([{"type": "toolCall", "id": "a", "name": "go", "arguments": value}]),
    ),
    "a pi result": ("pi", lambda value: {"role": "toolResult", "toolCallId": "a", "content": value}),
    "an unknown pi part": ("pi", user),
    "arguments of an item": (
        "openai_responses",
        lambda value: {"type": "function_call", "call_id": "a", "name": "go", "arguments": value},
    ),
    "a part of an output": (
        "openai_responses",
        lambda value: {"type": "function_call_output", "call_id": "a", "output": value},
    ),
    "an unknown item": ("openai_responses", lambda value: {"type": "strange", "v": value}),
    "a part of an item": ("openai_responses", user),
    "args": ("gemini", lambda value: {"role": "model", "parts": [{"functionCall": {"name": "go", "args": value}}]}),
    "a response": (
        "gemini",
        lambda value: {"role": "user", "parts": [{"functionResponse": {"name": "go", "response": value}}]},
    ),
    "an unknown part of a turn": ("gemini", lambda value: {"role": "user", "parts": value}),
}
AROUND_IT = {"redacted thinking", "an unknown item"}
"""For fields in which the JSON around the value counts too."""

INSIDE_A_PART = {
    "a part of an output",
    "a part of an item",
    "an unknown part of a turn",
    "a call without function",
    "a result's block",
    "an unknown part",
    "a participant's part",
    "a block of a tool_result",
    "an unknown block",
    "a pi result",
    "an unknown pi part",
    "redacted thinking",
}


def at(place: str, levels: int, nest: Callable[[int], Any]) -> Any:
    """A message with a value nested to this depth, including the surrounding part if present."""
    make = PLACES[place][1]
    if place in AROUND_IT:
        return make(nest(levels - 1))
    if place in INSIDE_A_PART:
        return make([{"type": "strange", "v": nest(levels - 1)}])
    return make(nest(levels))


@pytest.mark.parametrize("operation", READING, indirect=True)
@pytest.mark.parametrize("nest", [nested, nested_dicts])
@pytest.mark.parametrize("place", sorted(PLACES))
def test_128_levels_are_read(operation: Operation, place: str, nest: Callable[[int], Any]) -> None:
    operation([user("a"), at(place, 128, nest)], PLACES[place][0])


@pytest.mark.parametrize("levels", [129, 1_000])
@pytest.mark.parametrize("nest", [nested, nested_dicts])
@pytest.mark.parametrize("place", sorted(PLACES))
def test_one_level_more_exceeds_the_limit(
    operation: Operation, place: str, nest: Callable[[int], Any], levels: int
) -> None:
    with pytest.raises(LimitExceeded) as caught:
        operation([user("a"), at(place, levels, nest)], PLACES[place][0])
    assert (caught.value.code, caught.value.index) == ("nesting_too_deep", 1)


def test_nesting_of_any_depth_exceeds_the_limit(operation: Operation) -> None:
    with pytest.raises(LimitExceeded):
        operation([at("an unknown part", 100_000, nested)], "openai_chat")


def test_tool_schemas_nest_128_levels() -> None:
    O200K.count_messages([user("a")], tools=[nested_dicts(128)])
    with pytest.raises(LimitExceeded) as caught:
        O200K.count_messages([user("a")], tools=[{}, nested_dicts(129)])
    assert caught.value.path.startswith("tools[1]")


@pytest.mark.parametrize("levels", [1_000, 100_000])
@pytest.mark.parametrize("opening", [b"[", b'{"k":'])
def test_unterminated_nested_json_exceeds_the_limit(opening: bytes, levels: int) -> None:
    data = b'[{"role":"user","content":[{"type":"x","v":' + opening * levels
    with pytest.raises(LimitExceeded):
        O200K.count_messages(data)


@pytest.mark.parametrize("place", sorted(PLACES))
@pytest.mark.parametrize("make", [own_list, own_dict])
def test_a_value_that_contains_itself_is_an_error(operation: Operation, place: str, make: Callable[[], Any]) -> None:
    format, message = PLACES[place]
    value = make()
    if place in INSIDE_A_PART:
        value = [{"type": "strange", "v": value}]
    with pytest.raises(LimitExceeded):
        operation([message(value)], format)


def test_values_nested_many_times_over_are_an_error_not_an_endless_text(operation: Operation) -> None:
    value: Any = [1]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(LimitExceeded) as caught:
        operation([user([{"type": "x", "v": value}])], "openai_chat")
    assert (caught.value.code, caught.value.index) == ("too_many_values", 0)


@pytest.mark.parametrize("levels", [127, 128, 129])
@pytest.mark.parametrize("place", sorted(PLACES))
def test_json_bytes_nest_as_deep_as_python_values(place: str, levels: int) -> None:
    messages = [at(place, levels, nested)]
    outcomes = []
    for given in (messages, json.dumps(messages).encode()):
        try:
            outcomes.append(O200K.count_messages(given, format=PLACES[place][0]).total)
        except LimitExceeded as error:
            outcomes.append(error.code)
    assert outcomes[0] == outcomes[1]


def test_two_values_that_contain_each_other_are_an_error(operation: Operation) -> None:
    one: list[Any] = []
    other = {"type": "strange", "one": one}
    one.append(other)
    with pytest.raises(LimitExceeded):
        operation([user([other])], "openai_chat")


def test_a_message_list_that_contains_itself_is_an_error(operation: Operation) -> None:
    messages: list[Any] = [user("a")]
    messages.append(messages)
    with pytest.raises(MessageError) as caught:
        operation(messages, "openai_chat")
    assert (caught.value.code, caught.value.index) == ("not_an_object", 1)


def test_a_content_that_contains_itself_is_an_error(operation: Operation) -> None:
    with pytest.raises((MessageError, LimitExceeded)):
        operation([user(own_list())], "openai_chat")
    message = user()
    message["content"] = message
    with pytest.raises((MessageError, LimitExceeded)):
        operation([message], "openai_chat")


def test_a_shared_object_is_not_a_cycle() -> None:
    shared = {"type": "x", "v": [1]}
    once = counted(user([shared]))
    assert counted(user([shared] * 5)) == 5 * once


def test_unread_fields_may_contain_anything() -> None:
    odd = {"deep": nested(5_000), "own": own_list(), "object": object(), "bytes": b"\xff", 5: None}
    messages = [user("a", metadata=odd), assistant("b", usage=odd), user("c", **{"any key": odd})]
    plan = fl.plan(messages, fl.KeepMessages(2), counter="chars/4")
    folded = plan.apply(messages, "So far.")
    assert folded[1] is messages[1]
    assert folded[1]["usage"] is odd


# --- Users' objects ----------------------------------------------------------------------------------


class Hostile:
    """An object whose methods all record their call and fail."""

    def __init__(self) -> None:
        object.__setattr__(self, "calls", [])

    def _fail(self, *arguments: Any, **_: Any) -> Any:
        object.__getattribute__(self, "calls").append(arguments)
        raise RuntimeError(CANARY)

    __str__ = __repr__ = __format__ = __bytes__ = __eq__ = __ne__ = __lt__ = __hash__ = _fail
    __getitem__ = __iter__ = __next__ = __len__ = __contains__ = __bool__ = __index__ = __int__ = __float__ = _fail
    __getattr__ = __call__ = __reversed__ = __length_hint__ = __complex__ = __round__ = __trunc__ = _fail
    keys = items = values = get = read = model_dump = dict = to_dict = __array__ = __fspath__ = _fail


HOSTILE_PLACES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "message": ("openai_chat", lambda it: it),
    "role": ("openai_chat", lambda it: {"role": it, "content": "a"}),
    "content": ("openai_chat", user),
    "part": ("openai_chat", lambda it: user([it])),
    "type": ("openai_chat", lambda it: user([{"type": it}])),
    "text": ("anthropic", lambda it: user([{"type": "text", "text": it}])),
    "inside an unknown part": ("openai_chat", lambda it: user([{"type": "x", "v": [it]}])),
    "name": ("openai_chat", lambda it: user("a", name=it)),
    "refusal": ("openai_chat", lambda it: assistant("a", refusal=it)),
    "tool_calls": ("openai_chat", lambda it: assistant(None, tool_calls=it)),
    "call": ("openai_chat", lambda it: assistant(None, tool_calls=[it])),
    "call id": ("openai_chat", lambda it: openai_call(id=it)),
    "function": ("openai_chat", lambda it: assistant(None, tool_calls=[{"id": "a", "function": it}])),
    "arguments": ("openai_chat", lambda it: openai_call(arguments=it)),
    "inside arguments": ("openai_chat", lambda it: openai_call(arguments={"a": [it]})),
    "tool_call_id": ("openai_chat", lambda it: openai_result(id=it)),
    "result": ("openai_chat", lambda it: openai_result(content=it)),
    "tool_use id": ("anthropic", lambda it: anthropic_call(id=it)),
    "input": ("anthropic", lambda it: anthropic_call(given=it)),
    "tool_use_id": ("anthropic", lambda it: anthropic_result(id=it)),
    "result block": ("anthropic", lambda it: anthropic_result(content=[it])),
    "is_error": ("anthropic", lambda it: anthropic_result(is_error=it)),
    "unread field": ("anthropic", lambda it: user("a", cache_control=it)),
    "pi arguments": ("pi", lambda it: assistant([{"type": "toolCall", "id": "a", "name": it, "arguments": {"a": it}}])),
    "stopReason": ("pi", lambda it: assistant("a", stopReason=it)),
}


@pytest.mark.parametrize("place", sorted(HOSTILE_PLACES))
def test_no_method_of_a_users_object_is_called(operation: Operation, place: str) -> None:
    it = Hostile()
    format, make = HOSTILE_PLACES[place]
    try:
        operation([make(it)], format)
    except MessageError as error:
        holds_no_content(error)
    assert it.calls == []


@pytest.mark.parametrize("place", sorted(HOSTILE_PLACES))
def test_no_method_of_a_users_object_is_called_during_format_detection(place: str) -> None:
    it = Hostile()
    messages = [HOSTILE_PLACES[place][1](it)]
    for name in ("count_messages", "plan", "analyze"):
        try:
            OPERATIONS[name](messages, "auto")
        except MessageError as error:
            holds_no_content(error)
    assert it.calls == []


def test_a_kept_message_is_returned_without_reading_its_unread_fields() -> None:
    it = Hostile()
    messages = [user(), assistant("b", extra=it)]
    plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4")
    assert plan.apply(messages, "So far.")[1] is messages[1]
    assert it.calls == []


# --- Surrogates and special tokens -------------------------------------------------------------------

REPLACED = "ab\ufffdcd"
LONE = ["ab\ud83dcd", "ab\ude00cd"]


@pytest.mark.parametrize("text", LONE, ids=ascii)
def test_a_lone_surrogate_counts_as_the_replacement_character(text: str) -> None:
    assert O200K.count(text) == O200K.count(REPLACED)
    assert list(O200K.count_batch([text, "x"])) == [O200K.count(REPLACED), 1]
    assert counted(user(text)) == O200K.count(REPLACED)
    assert counted(user([{"type": "text", "text": text}])) == O200K.count(REPLACED)
    escaped = json.dumps([user(text)]).encode()
    assert O200K.count_messages(escaped).total == O200K.count_messages([user(REPLACED)]).total


def test_two_surrogates_that_form_a_pair_count_as_that_character() -> None:
    assert O200K.count("a\ud83d\ude00") == O200K.count("a😀")
    assert fl.plan([user("a\ud83d\ude00")], fl.KeepMessages(1), counter="chars/4").warnings == []


LONE_PLACES: dict[str, Callable[[str], Any]] = {
    "text": user,
    "part": lambda text: user([{"type": "text", "text": text}]),
    "unknown part": lambda text: user([{"type": "x", "v": [text]}]),
    "arguments": lambda text: openai_call(arguments={"a": text}),
    "arguments as text": lambda text: openai_call(arguments=text),
    "result": lambda text: openai_result(content=text),
    "name": lambda text: user("a", name=text),
    "name of a call": lambda text: assistant(None, tool_calls=[{"id": "a", "function": {"name": text}}]),
    "id of a call": openai_call,
    "id of a result": openai_result,
    "name of a tool": lambda text: openai_result("a", "r", name=text),
}


@pytest.mark.parametrize("place", sorted(LONE_PLACES))
def test_a_lone_surrogate_is_reported_at_its_message(place: str) -> None:
    messages = [user("fine"), LONE_PLACES[place](LONE[0])]
    plan = fl.plan(messages, fl.KeepMessages(2), counter="chars/4", format="openai_chat")
    assert ("lone_surrogates", 1) in plan.warnings
    assert fl.analyze(messages, format="openai_chat").lone_surrogates == [1]


def test_a_lone_surrogate_in_json_bytes_is_reported_too() -> None:
    data = json.dumps([user("fine"), user(LONE[0])]).encode()
    assert ("lone_surrogates", 1) in fl.plan(data, fl.KeepMessages(2), counter="chars/4").warnings


def test_a_lone_surrogate_is_preserved() -> None:
    messages = [user(), assistant(LONE[0])]
    plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4")
    folded = plan.apply(messages, "So far.")
    assert folded[1] is messages[1]
    assert folded[1]["content"] == LONE[0]


def test_folded_messages_with_lone_surrogates_are_summarized() -> None:
    messages = [user(f"Rename the file {LONE[0]}. " + WORDS * 9), assistant(), user()]
    result = fl.compact(messages, fl.KeepMessages(1), counter="chars/4", summary_tokens=300)
    assert result.error is None
    assert "\ufffd" in result.summary
    result.summary.encode()


SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_sep|>", "<|start|>", "<|fim_prefix|>", "<|endofprompt|>"]


@pytest.mark.parametrize("encoding", ["o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "r50k_base"])
@pytest.mark.parametrize("text", SPECIAL)
def test_the_text_of_a_special_token_is_plain_text(encoding: str, text: str) -> None:
    counter = fl.TokenCounter(encoding)
    assert counter.count(text) > 3
    assert counter.count(text + text) > counter.count(text)
    assert counter.count_messages([user(text)]).total == counter.count_messages([user("")]).total + counter.count(text)


def test_the_text_of_a_special_token_counts_like_ordinary_text() -> None:
    assert fl.count_tokens("<|endoftext|>") == 7


# --- Containers modified while they are read ---------------------------------------------------------


def fresh() -> list[Any]:
    """Messages with containers at every level."""
    call = openai_call(arguments={"a": [1, {"b": "c"}]})
    return [
        user([{"type": "text", "text": "a"}, {"type": "x", "v": [1, 2]}]),
        call,
        openai_result(content=["r"]),
        user(),
    ]


def shuffle(messages: list[Any]) -> Iterator[None]:
    """Endless changes of every kind, one per step."""
    while True:
        messages.append(user("more"))
        yield
        del messages[: len(messages) // 2]
        yield
        messages.extend(fresh())
        yield
        for message in list(messages):
            content = message.get("content")
            if isinstance(content, list):
                content.append({"type": "y", "v": list(range(9))})
                content[:1] = []
            message["more"] = [message.pop("more", None)][:1]
        yield
        for message in list(messages):
            message["content"] = ["a", {"type": "z"}] if isinstance(message.get("content"), str) else "s"
        yield
        messages.clear()
        yield
        messages[:] = fresh()
        yield


def while_changing(read: Callable[[list[Any]], Any], rounds: int = 400) -> int:
    """Reads messages that two threads modify; returns how often it succeeded."""
    messages = fresh()
    stop = threading.Event()

    def change() -> None:
        for _ in shuffle(messages):
            if stop.is_set():
                return

    threads = [threading.Thread(target=change) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    results = 0
    try:
        for thread in threads:
            thread.start()
        for _ in range(rounds):
            try:
                read(messages)
                results += 1
            except MessageError as error:
                assert error.code  # noqa: PT017
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    return results


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("name", ["count_messages", "plan", "analyze", "validate"])
def test_containers_modified_by_another_thread_give_a_result_or_a_message_error(name: str) -> None:
    assert while_changing(lambda messages: OPERATIONS[name](messages, "openai_chat")) > 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_plan_applied_to_changing_messages_gives_a_list_or_a_message_error() -> None:
    def plan_and_apply(messages: list[Any]) -> None:
        plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4", format="openai_chat")
        plan.apply(messages, "So far.")

    while_changing(plan_and_apply)


def test_a_counter_that_modifies_the_messages_counts_their_original_state() -> None:
    messages = talk(6)
    expected = fl.TokenCounter("chars/4").count_messages(messages).total

    def count(text: str) -> int:
        messages.clear()
        return -(-len(text) // 4)

    assert fl.TokenCounter(count).count_messages(messages).total == expected
    assert messages == []


def test_a_predicate_that_modifies_the_messages_is_harmless() -> None:
    messages = talk(6)

    def pin(message: Any) -> bool:
        messages[-1:] = []
        return False

    plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4", pins=pin)
    assert len(plan) == len(messages)


# --- Inputs are not modified -------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [None, user(5), {"content": "a"}, user([{"type": "x", "v": nested(500)}])], ids=ascii)
def test_a_failure_does_not_modify_the_messages(operation: Operation, bad: Any) -> None:
    good = [user("a"), openai_call(), openai_result(), user([{"type": "text", "text": "b"}])]
    before = copy.deepcopy(good)
    messages = [*good, bad]
    with pytest.raises(FoldlineError):
        operation(messages, "openai_chat")
    assert good == before
    assert all(one is other for one, other in zip(messages, good))
    assert messages[-1] is bad
