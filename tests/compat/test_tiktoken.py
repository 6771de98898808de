"""I11: counts equal tiktoken's on every string."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foldline as fl
from depth import cases

ENCODINGS = ("o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "r50k_base")
CASES = cases("tiktoken_cases")

# fmt: off
WORDS = st.sampled_from([
    "don't", "I'LL", "we'vE", "ſ's", "K'd", "\u2019s", "the", " and", "  ", "\n", "\r\n", " \n \n", "\t", "123", "4567",
    "...", "!!", "/*", "//", "<|endoftext|>", "é", "e\u0301", "ß", "İ", "ǅ", "你好", "日本語", "안녕", "नमस्ते", "ع",
    "👩‍👩‍👧", "🇩🇪", "\u00a0", "\u2028", "\u3000", "\u200d", "\ufeff", "\x00", "\x1c", "\x85", "\U00011dbc",
    "\ue000", "\U0010ffff",
])
# fmt: on
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=st.characters(codec="ascii"), max_size=120),
    st.text(alphabet=" \t\n\r\x0b\x0c\x85\u00a0\u2028a1.", max_size=40),
    st.text(alphabet="aA'sStTrReEvVmMlLdDſ ", max_size=40),
    st.text(alphabet=st.characters(categories=["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc"]), max_size=30),
    st.text(alphabet=st.characters(categories=["Nd", "Nl", "No", "Po", "Sm", "Zs"]), max_size=30),
    st.lists(WORDS, max_size=25).map("".join),
    st.tuples(st.sampled_from("a^ \n1你e\u0301"), st.integers(1, 600)).map(lambda pair: pair[0] * pair[1]),
)


@pytest.mark.parametrize("name", tiktoken.list_encoding_names())
def test_I11_every_encoding_of_tiktoken_is_compared_or_refused(name: str) -> None:
    """No encoding is offered that the tests below leave out; those of edits and of GPT-2 are not offered."""
    if name in ENCODINGS:
        assert fl.TokenCounter(name).name == name
        return
    assert name in ("gpt2", "p50k_edit")
    with pytest.raises(fl.errors.ConfigError):
        fl.TokenCounter(name)


@pytest.mark.parametrize("name", ENCODINGS)
def test_I11_equals_tiktoken(name: str) -> None:
    """Hypothesis draws lists of strings and looks for one that is counted otherwise."""
    counter, peer = fl.TokenCounter(name), tiktoken.get_encoding(name)
    seen = 0

    @settings(
        max_examples=max(1, CASES // 20),
        derandomize=CASES < 10_000,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(TEXTS, min_size=20, max_size=20))
    def compare(texts: list[str]) -> None:
        nonlocal seen
        seen += len(texts)
        expected = [len(ids) for ids in peer.encode_ordinary_batch(texts, num_threads=1)]
        assert [counter.count(text) for text in texts] == expected
        assert counter.count_batch(texts).tolist() == expected

    compare()
    assert seen >= CASES


@pytest.mark.parametrize("name", ENCODINGS)
def test_I11_surrogates_as_tiktoken(name: str) -> None:
    """A lone surrogate is U+FFFD; two that form a pair are that character."""
    counter, peer = fl.TokenCounter(name), tiktoken.get_encoding(name)
    for text in ("\ud83d", "a\udc00b", "\ud83d\ude00", "\ude00\ud83d", "x" * 50 + "\udfff"):
        assert counter.count(text) == len(peer.encode_ordinary(text))


@pytest.mark.parametrize("name", ENCODINGS)
def test_I11_special_tokens_are_text(name: str) -> None:
    """Text that reads like a special token is text."""
    text = "<|endoftext|><|im_start|>system<|fim_prefix|>"
    assert fl.TokenCounter(name).count(text) == len(tiktoken.get_encoding(name).encode(text, disallowed_special=()))


def strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys included."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack.extend(value)
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)


def documents(path: Path) -> Iterator[Any]:
    """The JSON values of a file; none where it is not JSON."""
    text = path.read_text(encoding="utf-8")
    try:
        yield json.loads(text)
        return
    except ValueError:
        pass
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


@pytest.mark.deep
@pytest.mark.parametrize("name", ENCODINGS)
def test_I11_shared_data(shared: Path, name: str) -> None:
    """Every string of every shared file, and every line of its raw text."""
    counter, peer = fl.TokenCounter(name), tiktoken.get_encoding(name)
    compared = 0
    for path in sorted(path for path in shared.rglob("*") if path.is_file()):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        texts = list(dict.fromkeys(text for document in documents(path) for text in strings(document)))
        texts += [line for line in lines if len(line) < 200_000]
        expected = [len(ids) for ids in peer.encode_ordinary_batch(texts, num_threads=2)]
        found = counter.count_batch(texts).tolist()
        different = [i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]]
        assert not different, f"{path.name}: string {different[0]} of {len(different)}"
        compared += len(texts)
    assert compared > 50_000
