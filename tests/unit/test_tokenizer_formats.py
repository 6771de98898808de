"""The other formats of tokenizers: SentencePiece, tekken, GGUF, against the packages that own them."""

from __future__ import annotations

import base64
import io
import json
import re
import struct
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError
from unit.small_tokenizers import CORPUS, KIMI, PATTERNS, digits, reference, save, split, texts, train

sentencepiece = pytest.importorskip("sentencepiece")
tiktoken = pytest.importorskip("tiktoken")


def piece_model(folder: Path, **options: Any) -> Path:
    """A SentencePiece model of the shape of Mistral's (with a prefix) or Gemma's."""
    sentences = [line for text in CORPUS * 3 for line in text.split("\n") if line]
    written = io.BytesIO()
    settings: dict[str, Any] = {
        "model_type": "bpe",
        "vocab_size": 560,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": True,
        "allow_whitespace_only_pieces": True,
        "hard_vocab_limit": False,
        "minloglevel": 2,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=written, **(settings | options)
    )
    path = folder / "tokenizer.model"
    path.write_bytes(written.getvalue())
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"add_dummy_prefix": False},
        {"user_defined_symbols": ["<turn>", "▁▁", "▁▁▁▁", "\n\n", "\n", "<think>"], "add_dummy_prefix": False},
        {"user_defined_symbols": ["<turn>", "▁▁▁"], "control_symbols": ["<ctrl>"]},
        {"user_defined_symbols": ["the ", "a b", "<turn>"], "add_dummy_prefix": False},
    ],
    ids=["prefix", "no prefix", "user-defined", "user-defined with prefix", "user-defined with spaces"],
)
def test_a_sentencepiece_model_counts_like_its_package(options: dict[str, Any], tmp_path: Path) -> None:
    path = piece_model(tmp_path, **options)
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    counter = fl.TokenCounter(path)
    more = ["<turn>", "<turn>a<turn>", " <turn> ", "<ctrl>x", "a" * 3000, " " * 999, "\n" * 77, "▁ a▁▁b"]
    wrong = {text: (counter.count(text), len(model.encode(text))) for text in [*texts(), *more]}
    assert {text: pair for text, pair in wrong.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"model_type": "unigram"}, "BPE"),
        ({"byte_fallback": False}, "byte fallback"),
        ({"remove_extra_whitespaces": True}, "spaces"),
        ({"normalization_rule_name": "nmt_nfkc"}, "normalization"),
        ({"treat_whitespace_as_suffix": True}, "spaces"),
    ],
)
def test_a_sentencepiece_model_of_another_kind_is_refused(options: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        fl.TokenCounter(piece_model(tmp_path, **options))
    assert caught.value.code == "unsupported_tokenizer"


def test_a_damaged_sentencepiece_model_is_an_error(tmp_path: Path) -> None:
    whole = piece_model(tmp_path).read_bytes()
    path = tmp_path / "cut.model"
    for size in range(1, len(whole) - 1, len(whole) // 50):
        path.write_bytes(whole[:size])
        with pytest.raises(ConfigError):
            fl.TokenCounter(path)


def byte_tokens(pattern: str) -> list[bytes]:
    """The tokens of a small vocabulary, in the order of their ranks."""
    vocab = json.loads(train(split(PATTERNS[pattern])).to_str())["model"]["vocab"]
    alphabet = {char: byte for byte, char in enumerate(byte_letters())}
    decoded = [bytes(alphabet[char] for char in token) for token in vocab if token != "<s>"]
    return [bytes([byte]) for byte in range(256)] + [token for token in decoded if len(token) > 1]


def tekken(folder: Path, *, extra: int = 3, **config: Any) -> tuple[Path, Any]:
    """A small tekken.json with more tokens than its model has, and the same for tiktoken."""
    tokens = byte_tokens("tekken")
    used = len(tokens) - extra
    content = {
        "config": {
            "pattern": PATTERNS["tekken"],
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": used + 10,
            "default_num_special_tokens": 10,
            "version": "v3",
        }
        | config,
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
    }
    path = folder / "tekken.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    ranks = {token: rank for rank, token in enumerate(tokens[:used])}
    return path, tiktoken.Encoding("small", pat_str=PATTERNS["tekken"], mergeable_ranks=ranks, special_tokens={})


def byte_letters() -> str:
    letters, at = [], 0x100
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            letters.append(chr(byte))
        else:
            letters.append(chr(at))
            at += 1
    return "".join(letters)


def test_tekken_counts_the_tokens_of_its_model_alone(tmp_path: Path) -> None:
    path, model = tekken(tmp_path)
    counter = fl.TokenCounter(path)
    wrong = {text: (counter.count(text), len(model.encode_ordinary(text))) for text in texts()}
    assert {text: pair for text, pair in wrong.items() if pair[0] != pair[1]} == {}


#: How models' Python code spells a split pattern.
CODE = {
    "qwen2": 'class T:\n    # it\'s so\n    PAT_STR = r"""%s"""\n    def f(self, x): return normalize(\'NFC\', x)\n',
    "llama3": 'FILES = {"vocab_file": "x"}\npat_str = %r\n',
    "kimi": "pat_str = '|'.join([\n" + "".join(f'    r"""{part}""",\n' for part in KIMI) + "])\n# %s\n",
}


def ranks(folder: Path, pattern: str, file: str, added: dict[str, Any] | None = None) -> tuple[Path, Any]:
    """A folder with a vocabulary of ranks and the model's code, and the same for tiktoken."""
    tokens = byte_tokens(pattern)
    lines = [f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens)]
    (folder / file).write_text("".join(lines), encoding="utf-8")
    (folder / "tokenization_small.py").write_text(CODE[pattern] % PATTERNS[pattern], encoding="utf-8")
    config = {} if added is None else {"added_tokens_decoder": added}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    special = {token["content"]: len(tokens) + at for at, token in enumerate((added or {}).values())}
    known = {token: rank for rank, token in enumerate(tokens)}
    return folder, tiktoken.Encoding("small", pat_str=PATTERNS[pattern], mergeable_ranks=known, special_tokens=special)


@pytest.mark.parametrize(("pattern", "file"), [("kimi", "tiktoken.model"), ("llama3", "tokenizer.model")])
def test_ranks_have_the_pattern_and_the_added_tokens_of_their_folder(pattern: str, file: str, tmp_path: Path) -> None:
    """Kimi's and GLM's files are named like those of other formats."""
    added = {
        "900": {"content": "<think>", "special": False, "normalized": False},
        "901": {"content": "</think>", "special": False, "normalized": False},
        "902": {"content": "<s>", "special": True, "normalized": False},
    }
    folder, model = ranks(tmp_path, pattern, file, added)
    plain = {"<think>", "</think>"}
    for counter in (fl.TokenCounter(folder), fl.TokenCounter(folder / file)):
        assert counter.kind == "exact"
        wrong = {
            text: (counter.count(text), len(model.encode(text, allowed_special=plain, disallowed_special=())))
            for text in texts()
        }
        assert {text: pair for text, pair in wrong.items() if pair[0] != pair[1]} == {}


def test_ranks_are_normalized_as_their_code_says(tmp_path: Path) -> None:
    folder, model = ranks(tmp_path, "qwen2", "small.tiktoken")
    counter = fl.TokenCounter(folder)
    for text in (*texts(), "e\u0301" * 20, "a\u0323\u0307"):
        composed = unicodedata.normalize("NFC", text)
        if unicodedata.normalize("NFD", composed).isascii() or composed == text:
            assert counter.count(text) == len(model.encode_ordinary(composed)), ascii(text)


def test_a_changed_configuration_is_read_anew(tmp_path: Path) -> None:
    folder, _ = ranks(tmp_path, "llama3", "small.tiktoken")
    before = fl.TokenCounter(folder).count("1234567 <think>")
    code = CODE["qwen2"] % PATTERNS["qwen2"]
    (folder / "tokenization_small.py").write_text(code, encoding="utf-8")
    assert fl.TokenCounter(folder).count("1234567 <think>") > before


def test_ranks_without_one_known_pattern_are_refused(tmp_path: Path) -> None:
    folder, _ = ranks(tmp_path, "llama3", "small.tiktoken")
    code = folder / "tokenization_small.py"

    def refused(named: str, kind: str = "unsupported_tokenizer") -> None:
        with pytest.raises(ConfigError, match=named) as caught:
            fl.TokenCounter(folder)
        assert caught.value.code == kind

    (folder / "tokenization_other.py").write_text(CODE["qwen2"] % PATTERNS["qwen2"], encoding="utf-8")
    refused("several split patterns")
    (folder / "tokenization_other.py").unlink()
    plain = code.read_text("utf-8")
    for line in ("x = normalize('NFKC', x)", "x = unicodedata.normalize(form, x)"):
        code.write_text(f"{plain}{line}\n", encoding="utf-8")
        refused("normalization")
    code.write_text(f"{plain}from unicodedata import normalize as n\nx = n('NFC', x)\n", encoding="utf-8")
    refused("an unknown name")
    code.write_text(f"{plain}OLD = r'[^\\p{{L}}]+|\\p{{L}}'\n", encoding="utf-8")
    refused(r"the split pattern \[\^\\p\{L\}\]\+\|\\p\{L\} is not supported")
    for line in ("def normalize(x): return x", "# unicodedata.normalize('NFC', x)"):
        code.write_text(f"{plain}{line}\n", encoding="utf-8")
        assert fl.TokenCounter(folder).count("e\u0301") > 1
    config = folder / "tokenizer_config.json"
    config.write_text("{", encoding="utf-8")
    refused("tokenizer_config", "bad_tokenizer")
    config.unlink()
    refused("added tokens")
    config.write_text("{}", encoding="utf-8")
    code.write_text("pat_str = r'\\w+'\n", encoding="utf-8")
    refused("split pattern")
    code.unlink()
    refused("split pattern")
    (folder / "second.tiktoken").write_bytes((folder / "small.tiktoken").read_bytes())
    refused("several .tiktoken files", "bad_tokenizer")


def test_a_tekken_with_other_settings_is_refused(tmp_path: Path) -> None:
    for config, code in (
        ({"pattern": r"\w+|\W+"}, "unsupported_tokenizer"),
        ({"default_vocab_size": 10**12}, "bad_tokenizer"),
        ({"default_vocab_size": 3}, "bad_tokenizer"),
    ):
        named = re.escape(r"the split pattern \w+|\W+ is") if "pattern" in config else None
        with pytest.raises(ConfigError, match=named) as caught:
            fl.TokenCounter(tekken(tmp_path, **config)[0])
        assert caught.value.code == code


def test_a_tekken_is_recognised_wherever_its_configuration_stands(tmp_path: Path) -> None:
    path, _ = tekken(tmp_path)
    before = fl.TokenCounter(path).count(CORPUS[0])
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(dict(reversed(content.items()))), encoding="utf-8")
    assert fl.TokenCounter(path).count(CORPUS[0]) == before
    path.write_text("\ufeff" + json.dumps(content), encoding="utf-8")
    assert fl.TokenCounter(path).count(CORPUS[0]) == before


def gguf(values: dict[str, Any]) -> bytes:
    """A GGUF file without tensors."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def pairs() -> Iterator[bytes]:
        for name, value in values.items():
            yield text(name)
            if isinstance(value, str):
                yield struct.pack("<I", 8) + text(value)
            elif isinstance(value, bool):
                yield struct.pack("<IB", 7, value)
            elif isinstance(value[0], str):
                yield struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
            elif isinstance(value[0], int):
                yield struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
            else:
                yield struct.pack("<IIQ", 9, 6, len(value)) + struct.pack(f"<{len(value)}f", *value)

    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + b"".join(pairs())


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        *(("gpt-2", "gpt2"), ("mpt", "gpt2"), ("olmo", "gpt2"), ("phi-2", "gpt2")),
        *(("llama-bpe", "llama3"), ("dbrx", "llama3"), ("smaug-bpe", "llama3"), ("glm4", "llama3")),
        *(("qwen2", "qwen2"), ("stablelm2", "qwen2"), ("qwen35", "qwen35"), ("gpt-4o", "o200k"), ("tekken", "tekken")),
        *(("kimi-k2", "kimi"), ("command-r", "digits"), ("starcoder", "digits"), ("smollm", "digits")),
    ],
)
def test_a_gguf_of_a_byte_level_model_counts_like_its_tokenizer_json(name: str, pattern: str, tmp_path: Path) -> None:
    made = train(digits() if pattern == "digits" else split(PATTERNS[pattern]))
    made.add_tokens(["<think>"])
    content = json.loads(made.to_str())
    tokens = sorted(content["model"]["vocab"], key=content["model"]["vocab"].__getitem__)
    values = {
        "general.architecture": "qwen2",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": name,
        "tokenizer.ggml.tokens": [*tokens, "<think>"],
        "tokenizer.ggml.token_type": [3 if token == "<s>" else 1 for token in tokens] + [4],
        "tokenizer.ggml.merges": [" ".join(merge) for merge in content["model"]["merges"]],
    }
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(values))
    counter, count = fl.TokenCounter(path), reference(save(made, tmp_path))
    assert [counter.count(text) for text in texts()] == [count(text) for text in texts()]
    of_folder = tmp_path / "of a folder"
    of_folder.mkdir()
    path.rename(of_folder / path.name)
    assert fl.TokenCounter(of_folder).count(CORPUS[0]) == count(CORPUS[0])
    path.write_bytes(gguf(values | {"tokenizer.ggml.pre": "unheard-of"}))
    with pytest.raises(ConfigError, match="unheard-of") as caught:
        fl.TokenCounter(path)
    assert caught.value.code == "unsupported_tokenizer"


def piece_gguf(folder: Path, model: Any, kinds: list[int]) -> Path:
    """The GGUF file of a SentencePiece model, with a space before the text and these types of tokens."""
    ids = range(model.get_piece_size())
    values = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [model.id_to_piece(i) for i in ids],
        "tokenizer.ggml.scores": [model.get_score(i) for i in ids],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.add_space_prefix": True,
    }
    path = folder / "model.gguf"
    path.write_bytes(gguf(values))
    return path


def test_a_gguf_of_a_sentencepiece_model_counts_like_its_package(tmp_path: Path) -> None:
    model = sentencepiece.SentencePieceProcessor(model_file=str(piece_model(tmp_path, control_symbols=["<ctrl>"])))
    ids = range(model.get_piece_size())
    kinds = [6 if model.is_byte(i) else 3 if model.is_control(i) else 2 if model.is_unknown(i) else 1 for i in ids]
    path = piece_gguf(tmp_path, model, kinds)
    counter = fl.TokenCounter(path)
    assert [counter.count(text) for text in texts()] == [len(model.encode(text)) for text in texts()]


def test_user_defined_tokens_beside_a_space_before_the_text_are_refused(tmp_path: Path) -> None:
    """llama.cpp puts the space after each of them as well."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(piece_model(tmp_path, user_defined_symbols=["<x>"])))
    ids = range(model.get_piece_size())
    kinds = [6 if model.is_byte(i) else 4 if model.id_to_piece(i) == "<x>" else 1 for i in ids]
    path = piece_gguf(tmp_path, model, kinds)
    with pytest.raises(ConfigError, match="a user defined") as caught:
        fl.TokenCounter(path)
    assert caught.value.code == "unsupported_tokenizer"


def byte_level_gguf() -> tuple[bytes, Any]:
    """A GGUF file without tensors, and the tokenizer in it."""
    made = train(split(PATTERNS["qwen2"]))
    content = json.loads(made.to_str())
    tokens = sorted(content["model"]["vocab"], key=content["model"]["vocab"].__getitem__)
    values = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token == "<s>" else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(merge) for merge in content["model"]["merges"]],
    }
    return gguf(values), made


@pytest.mark.parametrize("name", ["model.gguf", "sha256-0a1b"])
def test_the_file_of_a_whole_model_is_read_up_to_its_tensors(name: str, tmp_path: Path) -> None:
    """Ollama's have no ending."""
    head, made = byte_level_gguf()
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(head)
        file.truncate(3 << 30)
    counter, count = fl.TokenCounter(str(path)), reference(save(made, tmp_path))
    assert [counter.count(text) for text in texts()] == [count(text) for text in texts()]


def test_a_huge_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    head, _ = byte_level_gguf()
    for content in (b"{", head[:-9]):
        path = tmp_path / "tokenizer.json"
        with path.open("wb") as file:
            file.write(content)
            file.truncate(300 << 20)
        with pytest.raises(ConfigError) as caught:
            fl.TokenCounter(path)
        assert caught.value.code == "bad_tokenizer"


def test_hostile_lengths_of_a_gguf_are_refused(tmp_path: Path) -> None:
    whole = gguf({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a", "b"]})
    path = tmp_path / "model.gguf"
    huge = struct.pack("<Q", 2**63)
    hostile = [whole[:size] for size in range(len(whole))]
    hostile += [whole[:at] + huge + whole[at + 8 :] for at in range(4, len(whole) - 8)]
    for content in hostile:
        path.write_bytes(content)
        with pytest.raises(ConfigError):
            fl.TokenCounter(path)
