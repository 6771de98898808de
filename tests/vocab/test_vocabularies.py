"""The package foldline-vocab: models count without a file of the user, as the reference implementations do.

`make test-vocab` builds the package and runs this file with it.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import random
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import foldline_vocab
import gguf
import pytest
import sentencepiece
import tiktoken
import tokenizers

import foldline as fl
from compat import usage
from depth import cases

FOLDER = Path(foldline_vocab.__file__).parent
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"

#: The models of users, and the vocabulary that each gets.
MODELS = {
    "qwen3:32b": "qwen3",
    "Qwen/Qwen3-32B-FP8": "qwen3",
    "qwen2.5-72b-instruct": "qwen2.5",
    "deepseek-r1:671b": "deepseek-v3",
    "deepseek-v3.1": "deepseek-v3",
    "deepseek-v4": "deepseek-v4",
    "mistral-nemo": "tekken",
    "mistral-7b-instruct-v0.3": "mistral-v3",
    "mistral-large-2411": "mistral-v7",
    "mixtral-8x7b": "mistral-v1",
    "gemma-4-31b-it": "gemma-4",
    "THUDM/glm-4-9b-chat": "glm-4",
    "zai-org/GLM-4.5-Air": "glm-4.5",
    "z-ai/glm-4.6": "glm-4.5",
}

ALPHABET = "ab cd\n\n\t  éß漢字仮名😀▁<think></|>{}0123456789'\"«»—ａ\u0301\u200d\r\n"


@pytest.fixture(autouse=True)
def no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tokenizer but those of the package."""
    monkeypatch.delenv("FOLDLINE_TOKENIZERS", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


#: What stands around a character: nothing, letters, spaces, digits, Han, signs, capitals, a contraction.
CONTEXTS = ("{}", "a{}b", " {} ", "1{}1", "\u5b57{}", "!{}!", "A{}a", "'{}s")


def lines(count: int, step: int) -> Iterator[str]:
    """`count` texts, half lines of real sessions and half hostile mixes, and every `step`-th character in contexts."""
    real = (
        line[at : at + 400]
        for file in sorted(EXAMPLES.rglob("*.json*"))
        for line in file.read_text("utf-8").splitlines()
        for at in range(0, len(line), 400)
    )
    yield from itertools.islice(real, count // 2)
    chance = random.Random(28)
    for _ in range(count // 2):
        yield "".join(chance.choices(ALPHABET, k=chance.randint(1, 60)))
    yield from ("<think>x</think>", "<tool_call>{}</tool_call>", "<|im_start|>user", " <think> ", "a<|file_sep|>b", "")
    yield from ("/nothink", "<arg_key>a</arg_key>", "[gMASK]<sop>")
    points = [chr(point) for point in range(1, 0x110000, step) if not 0xD800 <= point < 0xE000]
    for at in range(0, len(points), 32):
        yield from ("\n".join(context.format(c) for c in points[at : at + 32]) for context in CONTEXTS)


def by_ranks(name: str) -> Callable[[str], int]:
    """The ranks of a vocabulary as tiktoken counts them, with its added tokens that are not special."""
    source = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    added = [token["content"] for token in source["added_tokens"] if not token["special"]]
    signs = {sign: byte for byte, sign in byte_signs().items()}
    ranks = {bytes(signs[sign] for sign in token): rank for token, rank in source["model"]["vocab"].items()}
    special = {token: len(ranks) + i for i, token in enumerate(added)}
    pattern = source["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    # tiktoken normalizes nothing: texts that Qwen would normalize are left out by the caller.
    return lambda text: len(encoding.encode(text, allowed_special="all"))


def byte_signs() -> dict[int, str]:
    """The characters that stand for the bytes in a byte-level vocabulary."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return {byte: chr(byte if byte in plain else next(others)) for byte in range(256)}


def reference(name: str) -> Callable[[str], int]:
    """The count of another implementation."""
    if name.startswith(("qwen", "deepseek", "glm")):
        made = tokenizers.Tokenizer.from_file(str(FOLDER / f"{name}.json"))
        made.encode_special_tokens = True
        return lambda text: len(made.encode(text, add_special_tokens=False).ids)
    if name == "tekken":
        source = json.loads((FOLDER / "tekken.json").read_text("utf-8"))
        config = source["config"]
        count = config["default_vocab_size"] - config["default_num_special_tokens"]
        ranks = {base64.b64decode(each["token_bytes"]): each["rank"] for each in source["vocab"][:count]}
        encoding = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
        return lambda text: len(encoding.encode_ordinary(text))
    if name.startswith("mistral"):
        model: Any = sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / f"{name}.model"))
        return lambda text: len(model.encode(text))
    return of_gemma()


def of_gemma() -> Callable[[str], int]:
    """Gemma 4 by the package tokenizers, from the same merges."""
    fields = gguf.GGUFReader(str(FOLDER / "gemma-4.gguf")).fields

    def texts(name: str) -> list[str]:
        field = fields[f"tokenizer.ggml.{name}"]
        return [bytes(field.parts[place]).decode() for place in field.data]

    kinds = fields["tokenizer.ggml.token_type"]
    tokens = texts("tokens")
    merges = [tuple(merge.split(" ", 1)) for merge in texts("merges")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    model = tokenizers.models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    made = tokenizers.Tokenizer(model)
    made.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    user_defined = [token for token, at in zip(tokens, kinds.data, strict=True) if int(kinds.parts[at][0]) == 4]
    made.add_tokens([tokenizers.AddedToken(token, special=False, normalized=False) for token in user_defined])
    return lambda text: len(made.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize(("model", "name"), MODELS.items())
def test_models_count_by_the_vocabulary_of_the_package(model: str, name: str) -> None:
    counter = fl.TokenCounter.for_model(model)
    assert (counter.name, counter.kind) == (name, "exact")
    assert fl.models.missing(model) is None


@pytest.mark.parametrize("name", sorted(set(MODELS.values())))
def test_counts_are_those_of_the_reference(name: str) -> None:
    counter = fl.TokenCounter.for_model(next(model for model, found in MODELS.items() if found == name))
    count = reference(name)
    seen = 0
    for text in lines(cases("vocabulary_texts"), cases("vocabulary_step")):
        assert counter.count(text) == count(text), repr(text)
        seen += 1
    assert seen > cases("vocabulary_texts") // 2


@pytest.mark.parametrize("name", ["qwen2.5", "qwen3", "glm-4", "glm-4.5"])
def test_packed_ranks_count_like_the_ranks(name: str) -> None:
    count = by_ranks(name)
    counter = fl.TokenCounter.for_model(name)
    for text in lines(4_000, 9_973):
        if not name.startswith("qwen") or unicodedata.normalize("NFC", text) == text:
            assert counter.count(text) == count(text), repr(text)


def test_gemini_counts_by_the_vocabulary_of_gemma() -> None:
    counter = fl.TokenCounter.for_model("gemini-3.5-flash")
    gemma = fl.TokenCounter.for_model("gemma-4-31b-it")
    for text in ("Good day.", "你好，世界", "def f(x):\n    return x + 1\n"):
        assert counter.count(text) == gemma.count(text)
    assert counter.kind == "calibrated"
    assert fl.TokenCounter.for_model("gemini-2.5-pro").count("你好，世界") > 0


def test_recorded_requests_to_gemini_cost_the_strings_that_are_counted(shared: Path) -> None:
    """By the vocabulary of Gemma 4, to which that of Gemma 3 is equal on these requests."""
    counter = fl.TokenCounter.for_model("gemini-3.5-flash")
    differences: dict[bool, list[int]] = {False: [], True: []}
    errors: list[float] = []
    for request in usage.gemini(shared):
        if not request.beside:
            counts = counter.count_messages(request.messages, request.tools or None, format=request.format)
            differences[request.has_calls].append(counts.total - request.reported)
            if request.has_calls:
                errors.append(abs(counts.total / request.reported - 1))
    text, calls = differences[False], differences[True]
    assert (len(text), len(calls)) == (24, 70)
    assert max(map(abs, text)) <= 3
    assert (text.count(0), calls.count(0)) == (16, 28)
    assert sorted(errors)[len(errors) * 9 // 10] <= 0.08


def test_the_users_own_file_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLINE_TOKENIZERS", str(tmp_path))
    (tmp_path / "qwen3.model").write_bytes((FOLDER / "mistral-v3.model").read_bytes())
    text = "A text that both count in their own way: 12345."
    assert fl.TokenCounter.for_model("qwen3:32b").count(text) == fl.TokenCounter(tmp_path / "qwen3.model").count(text)


def test_the_package_names_its_sources_and_licences() -> None:
    listed = (FOLDER / "SOURCES.md").read_text("utf-8")
    files = {file.name for file in FOLDER.iterdir() if file.suffix in (".json", ".model", ".gguf")}
    assert all(f"| {name} |" in listed for name in files)
    as_given = [line.split("|")[1:5] for line in listed.splitlines() if line.endswith("| none |")]
    for name, _, _, sha256 in as_given:
        assert hashlib.sha256((FOLDER / name.strip()).read_bytes()).hexdigest() == sha256.strip()
    assert {file.name for file in (FOLDER / "licences").iterdir()} == {"Apache-2.0.txt", "MIT.txt"}


def test_without_the_package_the_error_names_it() -> None:
    program = "import foldline as fl; fl.TokenCounter.for_model('qwen3:32b')"
    spec = find_spec("foldline")
    assert spec is not None
    path = str(Path(str(spec.origin)).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, env={"PYTHONPATH": path}
    )
    assert "the package foldline-vocab" in done.stderr
