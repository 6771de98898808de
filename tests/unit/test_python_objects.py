"""Strings and dicts count like the same values in JSON bytes, in every representation of CPython.

They are not modified, and no method of a caller's class is called.
"""

from __future__ import annotations

import ctypes
import gc
import json
import signal
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldline as fl
from unit.samples import OPERATIONS, WORDS, anthropic_call, assistant, openai_call, openai_result, talk, user

COUNTERS = {name: fl.TokenCounter(name) for name in ("o200k_base", "cl100k_base", "chars/4", "bytes/4+4", "utf16/4+2")}
O200K = COUNTERS["o200k_base"]

LONG = 300_000
"""Length of a text that is encoded into a temporary unless it is ASCII."""


class Text(str):
    """A string of a subclass."""


def asked(text: str) -> str:
    """A string of a subclass with cached UTF-8."""
    copy = "".join([text[:1], text[1:]])
    ask = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    ask.argtypes, ask.restype = [ctypes.py_object, ctypes.c_void_p], ctypes.c_void_p
    assert ask(copy, None)
    return copy


FORMS = {
    "nothing": "",
    "one byte of ASCII": "a",
    "ASCII": "The quick brown fox, 12 times over.\n",
    "one of Latin-1": "é",
    "Latin-1": "Où est l'élève? À côté du café, naïf.\n",
    "one of 16 bits": "中",
    "16 bits": "日本語のテキスト and ASCII, ünd noch etwas. Ω\n",
    "one of 21 bits": "😀",
    "21 bits": "Fine 👍🏽 — 👩‍👩‍👧 日本語 é a\n",
    "half a pair": "\ud83d",
    "halves of pairs": "a\ud83d b\ude00 \ude00\ud83d中 \ud83d",
    "a pair in two": "so \ud83d\ude00 it is",
    "halves beside a whole": "😀\ud83d\ude00\ud83d 中 \udfff\U0010ffff",
    "edges": "\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff\0",
}
"""A text in each representation that a string can have."""

MAKES: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "again and again": lambda text: text * (LONG // max(len(text), 1)),
    "of a subclass": Text,
    "long, of a subclass": lambda text: Text(text * (LONG // max(len(text), 1))),
    "asked before": lambda text: text if any("\ud800" <= c <= "\udfff" for c in text) else asked(text),
}


@pytest.fixture(params=FORMS.values(), ids=FORMS.keys())
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=MAKES.values(), ids=MAKES.keys())
def make(request: pytest.FixtureRequest) -> Callable[[str], str]:
    return request.param  # type: ignore[no-any-return]


def plainly(counter: fl.TokenCounter, messages: Any) -> list[int]:
    """Tokens of messages read from JSON, without Python values."""
    return counter.count_messages(json.dumps(messages).encode()).per_message.tolist()  # type: ignore[no-any-return]


def of_text(counter: fl.TokenCounter, text: str) -> int:
    """Tokens of a text: a transcript of JSON bytes minus the same transcript without the text."""
    if counter in (COUNTERS["chars/4"], COUNTERS["bytes/4+4"], COUNTERS["utf16/4+2"]):
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        lengths = {"chars/4": len(whole), "utf16/4+2": len(whole.encode("utf-16-le")) // 2}
        if counter is COUNTERS["bytes/4+4"]:
            return len(whole.encode()) // 4
        return -(-lengths["chars/4" if counter is COUNTERS["chars/4"] else "utf16/4+2"] // 4)
    with_text, without = (plainly(counter, [user(each)])[0] for each in (text, ""))
    return with_text - without


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
def test_a_text_counts_the_same_in_every_representation(
    counter: fl.TokenCounter, form: str, make: Callable[[str], str]
) -> None:
    # A new string for each, since reading may change its representation.
    expected = of_text(counter, str(make(form)))
    assert counter.count(make(form)) == expected
    texts = [make(form), WORDS, make(form)]
    assert counter.count_batch(texts).tolist() == [expected, counter.count(WORDS), expected]
    assert counter.fits(make(form), expected)
    assert expected == 0 or not counter.fits(make(form), expected - 1)


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
def test_messages_count_the_same_in_every_representation(
    counter: fl.TokenCounter, form: str, make: Callable[[str], str]
) -> None:
    text = make(form)
    messages = [
        user(text),
        assistant(text, tool_calls=openai_call(arguments=text)["tool_calls"]),
        openai_result(content=text),
        user([{"type": "text", "text": text}]),
    ]
    assert counter.count_messages(messages).per_message.tolist() == plainly(counter, messages)


@given(st.text(st.characters(exclude_categories=[]), max_size=60), st.integers(0, 3))
def test_any_text_counts_like_its_json(text: str, times: int) -> None:
    text *= 1 << (times * 3)
    for counter in COUNTERS.values():
        assert counter.count(text) == of_text(counter, text)
        assert counter.count_messages([user(text)]).per_message.tolist() == plainly(counter, [user(text)])


GROWING = ["one of Latin-1", "Latin-1", "one of 16 bits", "16 bits", "one of 21 bits", "21 bits"]
"""Texts whose UTF-8 Python caches on request."""


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
@pytest.mark.parametrize("name", GROWING)
def test_counting_a_long_text_does_not_enlarge_it(counter: fl.TokenCounter, name: str) -> None:
    form = FORMS[name]
    text = form * (LONG // len(form))
    size = sys.getsizeof(text)
    assert sys.getsizeof(asked(text)) > size
    counter.count(text)
    counter.fits(text, 10)
    counter.count_batch([text])
    counter.count_messages([user(text), openai_result(content=text)])
    fl.plan([user(text), openai_result(content=text)], fl.KeepTokens(10), counter=counter)
    assert sys.getsizeof(text) == size


class Lying(str):
    """A string with overridden methods."""

    def __len__(self) -> int:
        raise KeyboardInterrupt

    def encode(self, *_: Any) -> bytes:
        raise KeyboardInterrupt


@pytest.mark.parametrize("text", ["Text", "naïve", "日本", "a\ud83d"], ids=ascii)
def test_no_method_of_a_string_is_called(text: str) -> None:
    expected = O200K.count(text)
    assert O200K.count(Lying(text)) == expected
    assert O200K.count_batch([Lying(text)]).tolist() == [expected]
    assert O200K.fits(Lying(text), expected)
    assert plainly(O200K, [user(text)]) == O200K.count_messages([user(Lying(text))]).per_message.tolist()


SHORT_OF_MEMORY = """
import resource
import foldline as fl
text = {text}
counters = [fl.TokenCounter(name) for name in ("chars/4", "o200k_base")]
before = [counter.count_messages([dict(role="user", content=text[:100])]).total for counter in counters]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {spare}, -1))
try:
    print(counters[1].count_messages([dict(role="user", content=text)]).total > 1_000_000)
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are those of Linux")
def test_a_failed_allocation_is_not_read_as_an_empty_text() -> None:
    """A failed small allocation may abort the process, as any in Rust; it never gives a wrong count."""
    code = SHORT_OF_MEMORY.format(text="'é' * 30_000_001", spare=20 << 20)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.strip(), done.returncode) in [("True", 0), ("MemoryError", 0), ("", -signal.SIGABRT)]


# --- Dicts and lists --------------------------------------------------------------------------------


class Members(dict[str, Any]):
    """A dict of a subclass."""


class Holder:
    """An object whose `__dict__` shares its keys with the class."""

    def __init__(self, members: dict[str, Any]) -> None:
        for key, value in members.items():
            setattr(self, key, value)


def with_holes(members: dict[str, Any]) -> dict[str, Any]:
    """With members that were deleted before, between and after the others."""
    full: dict[str, Any] = {}
    for i, (key, value) in enumerate(members.items()):
        full |= {f"gone{i}": WORDS, key: value, f"gone too{i}": None}
    for key in [key for key in full if key.startswith("gone")]:
        del full[key]
    return full


def with_gone(members: dict[Any, Any]) -> dict[Any, Any]:
    """With a table that once contained a key that is not a string."""
    members = {7: 1} | members
    del members[7]
    return members


def with_many(members: dict[str, Any]) -> dict[str, Any]:
    return {f"more{i}": i for i in range(300)} | members


def fresh_keys(members: dict[str, Any]) -> dict[str, Any]:
    """With keys that no other dict has."""
    return {"".join(list(key)): value for key, value in members.items()}


DICTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "as they are": lambda members: members,
    "turned round": lambda members: dict(reversed(members.items())),
    "with holes": with_holes,
    "with many more": with_many,
    "with seven more": lambda members: {f"more{i}": i for i in range(7)} | members,
    "with other keys": lambda members: {7: WORDS, None: 1, (1, 2): 3} | members,
    "with other keys that are gone": with_gone,
    "of an object": lambda members: Holder(members).__dict__,
    "ordered": OrderedDict,
    "of a subclass": Members,
    "with keys of their own": fresh_keys,
    "with keys of a subclass": lambda members: {Text(key): value for key, value in members.items()},
}
"""Ways to construct a dict with the same members."""

MESSAGES = {
    "text": user(WORDS),
    "call": openai_call(arguments='{"a": 1}'),
    "result": openai_result(content=WORDS),
    "parts": user([{"type": "text", "text": WORDS}, {"type": "refusal", "refusal": WORDS}]),
    "nested": assistant(
        None, tool_calls=[{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    ),
}


def remade(value: Any, make: Callable[[dict[str, Any]], Any]) -> Any:
    """The same value with every dict constructed this way."""
    if isinstance(value, dict):
        return make({key: remade(item, make) for key, item in value.items()})
    return [remade(item, make) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
@pytest.mark.parametrize("make_dict", DICTS.values(), ids=DICTS.keys())
@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
def test_a_dict_counts_the_same_however_it_was_constructed(
    counter: fl.TokenCounter, message: dict[str, Any], make_dict: Callable[[dict[str, Any]], Any]
) -> None:
    before = counter.count_messages([message], format="openai_chat").per_message.tolist()
    assert before == plainly(counter, [message])
    made = remade(message, make_dict)
    for _ in range(3):
        assert counter.count_messages([made], format="openai_chat").per_message.tolist() == before


NAMES = st.sampled_from(
    ["role", "content", "name", "type", "tool_calls", "id", "parts", "x", "y", "", "é", "日本", "😀"]
)


@given(
    st.lists(st.tuples(NAMES | st.text(max_size=3), st.sampled_from(["user", "tool", "a b c", "日本語"])), max_size=12),
    st.lists(st.integers(0, 11), max_size=6),
)
def test_any_members_are_found_as_in_json(members: list[tuple[str, str]], gone: list[int]) -> None:
    message: dict[str, str] = {"role": "user"}
    for key, value in members:
        message["".join(list(key))] = value
    for i in gone:
        if i < len(members):
            message.pop(members[i][0], None)
    for counter in COUNTERS.values():
        try:
            expected: Any = plainly(counter, [message])
        except fl.errors.FoldlineError as error:
            expected = (error.code, error.index, error.path)
        try:
            found: Any = counter.count_messages([message]).per_message.tolist()
        except fl.errors.FoldlineError as error:
            found = (error.code, error.index, error.path)
        assert found == expected


def references(value: Any) -> list[int]:
    """Reference counts of every object in a value except keys, some of which are cached."""
    counts = [sys.getrefcount(value)]
    if isinstance(value, dict):
        counts += [count for item in value.values() for count in references(item)]
    elif isinstance(value, list):
        counts += [count for item in value for count in references(item)]
    return counts


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_references_are_released(name: str, format: str) -> None:
    calls = {"openai_chat": [openai_call(), openai_result()], "anthropic": [anthropic_call()]}[format]
    messages = json.loads(
        json.dumps([*talk(3), user("naïve 😀"), *calls, *talk(2), user([{"type": "text", "text": "a"}])])
    )
    operation = OPERATIONS[name]
    outcomes = []
    for _ in range(3):
        try:
            operation(messages, format)
        except fl.errors.FoldlineError as error:
            outcomes.append(error.code)
        gc.collect()
        outcomes.append(str(references(messages)))
    assert outcomes[-1] == outcomes[len(outcomes) // 3 - 1]


def test_the_reference_counts_of_immortal_objects_do_not_change() -> None:
    for value in (None, True, "user", "", 5):
        before = sys.getrefcount(value)
        for _ in range(1000):
            COUNTERS["chars/4"].count_messages([{"role": "user", "content": "a", "name": value, "x": value}])
        assert abs(sys.getrefcount(value) - before) < 50


def test_a_key_that_is_not_cached_is_released() -> None:
    key = "a key that is longer than those that are remembered, " + str(len(WORDS))
    message = user(WORDS) | {key: 1}
    before = sys.getrefcount(key)
    for _ in range(100):
        COUNTERS["chars/4"].count_messages([message])
    assert sys.getrefcount(key) == before


def test_more_keys_than_the_cache_holds() -> None:
    """Keys evict each other by address and are then released."""
    for i in range(3000):
        message = {"".join([*"role"]): "user", f"key {i}": i, "".join([*"content"]): WORDS}
        assert COUNTERS["chars/4"].count_messages([message], format="openai_chat").total == -(-len(WORDS) // 4)


class Odd(str):
    """A key with its own hash that compares equal to every other."""

    def __new__(cls, text: str, like: str) -> Self:
        made = super().__new__(cls, text)
        made.like = like
        return made

    like: str

    def __hash__(self) -> int:
        return hash(self.like)

    def __eq__(self, other: object) -> bool:
        raise KeyboardInterrupt


@pytest.mark.parametrize("more", [0, 20])
def test_a_key_is_identified_by_its_characters(more: int) -> None:
    """A dict lookup would call its methods."""
    others = {f"more{i}": i for i in range(more)}
    text = {"type": "text", "text": WORDS}
    count = COUNTERS["bytes/4+4"].count_messages
    expected = count([user([text])], format="openai_chat").total
    odd = {Odd("type", "other"): "text", "text": WORDS} | others
    assert count([user([odd])], format="openai_chat").total == expected
    unknown = {Odd("other", "type"): "text", "text": WORDS} | others
    assert count([user([unknown])], format="openai_chat").total > expected
    twice = {"type": "refusal", Odd("type", "other"): "text", "text": WORDS} | others
    assert count([user([twice])], format="openai_chat").total == expected
