"""Claude's tokens: the reconstruction against an oracle, and what ctok's records say."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import pytest
from tests.reference import claude

import foldline as fl
from depth import cases
from growth import MOST_GROWTH, growth

MODELS: Final = {
    "claude-3": ("claude-3-haiku", "claude-sonnet-4-5", "anthropic/claude-opus-4.6", "claude-opus-4@20250514"),
    "claude-4.7": ("claude-opus-4-7",),
    "claude-4.8": ("claude-opus-4-8", "claude-sonnet-5", "global.anthropic.claude-opus-5-v1"),
}
COUNTERS: Final = {name: fl.TokenCounter.for_model(models[0]) for name, models in MODELS.items()}

#: Characters of every class, and texts where a rule begins or ends.
POOLS: Final = (
    "abcXYZ'. \n",
    " '\"!?.,;:-_()[]{}<>/\\|@#$%^&*+=~`",
    "0123456789٣६²½①",
    "aA'sStTdmllreve",
    "éÉßẞİıǅǆΣςσϴθℂⅧⅷⒶⓐ",
    "字漢々。，）（、？！한글あアー〄",
    "\u0301\u0327\u05b4\u0903\u0730\u0711\u0e4d\u0e32\u200d\ufe0f\u0ccd\u0bcd\u20dd",
    "😀👍🏽⚖",
    " \t\n\u3000\u00a0\0\x07\ufffd\ue123\ufdd0\u2028",
    "“”‘’„…—–«»•·",
)
WORDS: Final = ("the", "The", "HELLO", "WiFi", "it's", "don't", "we'll", "naïve", "ПРИВЕТ", "==", "});", "क्षि", "ที่")


def hostile(draw: random.Random) -> str:
    """A text of words and characters of every class."""
    parts = []
    for _ in range(draw.randint(1, 12)):
        signs = "".join(draw.choices(draw.choice(POOLS), k=draw.randint(1, 4)))
        parts.append(draw.choice(WORDS) if draw.random() < 0.3 else signs)
        parts.append(draw.choice((" ", " ", "  ", "\n", "'", "", "", "")))
    return "".join(parts)


@pytest.mark.parametrize("generation", COUNTERS)
def test_texts_count_as_by_the_oracle(generation: str) -> None:
    draw = random.Random(f"claude {generation}")
    for _ in range(cases("claude_cases")):
        text = hostile(draw)
        assert COUNTERS[generation].count(text) == claude.tokens(text, generation), ascii(text)


#: Runs of ASCII of every kind and length, and a few characters that end a block of it.
RUNS: Final = (
    *("the", "The", "HELLO", "WiFi", "it's", "don't", "func", "x", "aVeryLongIdentifierName", "internationalization"),
    *("==", "});", "'s", "'", "''", "_", ",", '"', "-" * 16, "." * 15, "100", "3.14", "12345678901234567"),
    *("\n", "\n\t\t", " " * 3, " " * 17, "\t", "é", "字", "“", "─"),
)


@pytest.mark.parametrize("generation", COUNTERS)
def test_runs_of_ascii_at_any_place_count_as_by_the_oracle(generation: str) -> None:
    """The core reads ASCII in blocks, and knows short runs by their bytes."""
    draw = random.Random(f"claude runs {generation}")
    for _ in range(cases("claude_cases")):
        parts = draw.choices(RUNS, k=draw.randint(5, 50))
        text = "".join(part + draw.choice((" ", " ", "  ", "\n", "", "")) for part in parts)
        assert COUNTERS[generation].count(text) == claude.tokens(text, generation), ascii(text)


@pytest.mark.parametrize("generation", COUNTERS)
def test_every_character_counts_as_by_the_oracle(generation: str) -> None:
    step = max(1, 0x10000 // cases("claude_cases"))
    for code in [*range(1, 0xD800, step), *range(0xE000, 0x10000, step), *range(0x10000, 0x110000, 50 * step)]:
        for context in ("{}", "a{}b", " {} ", "1{}1", "a {} b", "'{}", "字{}"):
            text = context.format(chr(code))
            assert COUNTERS[generation].count(text) == claude.tokens(text, generation), ascii(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (1, 1, 0)),
        ("hello", (1, 2, 2)),
        (" a", (1, 1, 2)),
        ("  a", (2, 2, 2)),
        ("The cat's hat", (4, 6, 6)),
        ("1234567", (4, 4, 3)),
        ("\n" * 28, (1, 2, 1)),
        ("a" + "\n" * 28, (1, 2, 2)),
    ],
)
def test_named_texts(text: str, expected: tuple[int, int, int]) -> None:
    """As ctok 1.3.0 counts them; the frame of a message is not part of a text."""
    found = tuple(claude.tokens(text, generation) for generation in COUNTERS)
    assert found == tuple(counter.count(text) for counter in COUNTERS.values()) == expected


@pytest.mark.parametrize(("generation", "model"), [(name, each) for name in MODELS for each in MODELS[name]])
def test_models_have_the_tokenizer_of_their_generation(generation: str, model: str) -> None:
    counter = fl.TokenCounter.for_model(model)
    assert (counter.kind, counter.error_bound) == ("reconstructed", None)
    text = "Curly “quotes” and BUTTER tell generations apart.\n " * 3
    assert counter.count(text) == COUNTERS[generation].count(text)
    known = fl.models.lookup(model)
    assert known is not None
    assert known.encoding == generation


def test_a_message_of_text_is_reconstructed_and_one_with_a_call_calibrated() -> None:
    counter = fl.TokenCounter.for_model("claude-sonnet-4-5")
    text = [{"role": "user", "content": "hello"}]
    assert (counter.count_messages(text).total, counter.count_messages(text).kind) == (8, "reconstructed")
    call = [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "go", "input": {}}]}]
    assert counter.count_messages(call, format="anthropic").kind == "calibrated"


@pytest.mark.parametrize("unit", ["a", "A", "字", " ", "\n", "\u0301", "a\u05b4", "'s", "😀", "═", "9", "²."])
def test_time_is_linear(unit: str) -> None:
    counter = COUNTERS["claude-3"]
    counter.count(unit * 100)

    def of(times: int) -> Callable[[], object]:
        text = unit * times
        return lambda: counter.count(text)

    assert growth(of, 1_250) < MOST_GROWTH


def test_batches_and_threads_count_the_same() -> None:
    draw = random.Random("claude batch")
    texts = [hostile(draw) for _ in range(200)]
    counter = COUNTERS["claude-4.8"]
    assert list(counter.count_batch(texts, threads=2)) == [counter.count(text) for text in texts]


def test_a_limit_ends_the_count() -> None:
    counter = COUNTERS["claude-3"]
    text = "word " * 100
    assert counter.fits(text, counter.count(text))
    assert not counter.fits(text, counter.count(text) - 1)
