"""Small tokenizers that the tests train, and texts that reach every rule of their patterns."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CAPITALS = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SIGNS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*"


def o200k(end: str, numbers: str) -> str:
    return f"{CAPITALS}*{SMALL}+{end}|{CAPITALS}+{SMALL}*{end}|{numbers}" + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES


PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + SIGNS + SPACES,
    "qwen2": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + SIGNS + SPACES,
    "qwen35": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + SPACES,
    "o200k": o200k(CONTRACTIONS + "?", r"\p{N}{1,3}"),
    "tekken": o200k("", r"\p{N}"),
}
KIMI = [
    r"[\p{Han}]+",
    CAPITALS[:-1] + r"&&[^\p{Han}]]*" + SMALL[:-1] + r"&&[^\p{Han}]]+" + CONTRACTIONS + "?",
    CAPITALS[:-1] + r"&&[^\p{Han}]]+" + SMALL[:-1] + r"&&[^\p{Han}]]*" + CONTRACTIONS + "?",
    *(r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"),
]
PATTERNS["kimi"] = "|".join(KIMI)
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + SPACES,
]

PIECES = [
    *("a", "B", "the ", " Camel", "ABC", "Ab", "1", "12345", " ", "  ", "\t", "\n", "\r\n", "\n \n", "'s", "'", "'LL"),
    *("'\u017f", "don't", "/", "//", "!\n/", "!", " (", ");\n\n", "é", "É", "中", "。", "\u0301", "\xa0"),
    *("½", "😀", "👍🏽"),
    *("\u200d", "ǅ", "ʰ", "   \n  ", " " * 20, "-" * 30, "e\u0301", "한국", "\u1112\u1161", "<think>", "</think>"),
    *("<s>", "\0", "\x01", "\x7f", "\ufeff", "▁", "▁▁", "ガ", "\u30ab\u3099", "・", "龥", "龦", "\u3000", "٣", "１２"),
    *("Ⅷ", "नमस्ते", "<0x41>", "\n\n\n", "word", "Word's", "x=1;", "\u2028", "\u1ace", "\U00011935\U00011930", "ß", "ﬆ"),
    *("々", "〇", "〡", "⺀", "\U00020000", "\U00016ff0", "文's", "漢字", " 漢", "/\n", "ー"),
]  # fmt: skip
CORPUS = [
    "The quick brown fox jumps over the lazy dog; don't WORRY, it'll be fine: 12345 times!\n\n    return x == 1\n",
    "名前は何ですか。中文的文字在这里，한국어도 있습니다. Привет, мир! ação é über naïve",
    "def f(a, b):\n\treturn {'key': [a, b], \"other\": 3.14159}  # comment\r\n\r\n//// ---- ====",
    "aaaa aaaaaaaa bbbb abab abababab        spaces            more  spaces\n\n\n\n",
]


def texts(count: int = 400) -> list[str]:
    draw = random.Random(7)
    mixes = ["".join(draw.choices(PIECES, k=draw.randint(1, 40))) for _ in range(count)]
    words = " ".join(CORPUS).split(" ")
    return ["", *PIECES, *CORPUS, *mixes, *(" ".join(draw.choices(words, k=60)) for _ in range(count // 4))]


def train(pre_tokenizer: Any, *, normalizer: Any = None, special: Sequence[str] = ("<s>",), size: int = 700) -> Any:
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        made.normalizer = normalizer
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(CORPUS * 3, trainer)
    return made


def split(*patterns: str, behavior: str = "isolated", invert: bool = False) -> Any:
    pre = tokenizers.pre_tokenizers
    splits = [pre.Split(tokenizers.Regex(pattern), behavior, invert) for pattern in patterns]
    return pre.Sequence([*splits, pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def digits(*, individual: bool = True) -> Any:
    """Numbers, then the pattern of GPT-2: Command R, StarCoder, SmolLM."""
    pre = tokenizers.pre_tokenizers
    return pre.Sequence([pre.Digits(individual_digits=individual), pre.ByteLevel(add_prefix_space=False)])


def reference(path: Path) -> Callable[[str], int]:
    made = tokenizers.Tokenizer.from_file(str(path))
    made.encode_special_tokens = True
    return lambda text: len(made.encode(text, add_special_tokens=False).ids)


def save(made: Any, folder: Path, edit: Callable[[dict[str, Any]], None] | None = None) -> Path:
    path = folder / "tokenizer.json"
    made.save(str(path))
    if edit is not None:
        content = json.loads(path.read_text(encoding="utf-8"))
        edit(content)
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path
