"""Counters from a tokenizer.json, by the core and by the package `tokenizers`; errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError

tokenizers = pytest.importorskip("tokenizers")

CORPUS = ["the quick brown fox jumps over the lazy dog", "pack my box with five dozen jugs", "名前は何ですか"]
MESSAGES = [{"role": "user", "content": "the quick brown fox"}, {"role": "assistant", "content": "the lazy dog"}]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """Byte-level BPE with a special token, an added beginning, truncation and padding."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<end>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(CORPUS, trainer)
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return made


@pytest.fixture
def path(tokenizer: Any, tmp_path: Path) -> str:
    file = tmp_path / "tokenizer.json"
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=64)
    tokenizer.save(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return str(file)


@pytest.mark.parametrize("text", [*CORPUS, "", " ", "x" * 500, "a\n\nb", "😀"])
def test_a_counter_counts_like_its_tokenizer(tokenizer: Any, path: str, text: str) -> None:
    """Without truncation, padding and template tokens."""
    assert fl.counting.tokenizer_json(path).count(text) == len(tokenizer.encode(text, add_special_tokens=False).ids)


def test_special_tokens_are_plain_text(path: str) -> None:
    assert fl.counting.tokenizer_json(path).count("<end>") > 1


def test_lone_surrogates_count_as_the_replacement_character(path: str) -> None:
    counter = fl.counting.tokenizer_json(path)
    assert counter.count("a\ud83d") == counter.count("a�")


def test_every_way_to_name_a_tokenizer_gives_the_same_counter(path: str) -> None:
    counters = [
        fl.counting.tokenizer_json(path),
        fl.counting.tokenizer_json(Path(path)),
        fl.TokenCounter(path),
        as_counter(path),
    ]
    for counter in counters:
        assert (counter.name, counter.kind) == (path, "exact")
        assert counter.count_batch(CORPUS).tolist() == counters[0].count_batch(CORPUS).tolist()
        assert counter.count_messages(MESSAGES).total == counters[0].count_messages(MESSAGES).total


def test_a_file_of_any_name_is_read(path: str, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(Path(path).read_bytes())
    assert fl.counting.tokenizer_json(other).count(CORPUS[0]) == fl.counting.tokenizer_json(path).count(CORPUS[0])


def test_plans_accept_the_path(path: str) -> None:
    assert fl.plan(MESSAGES, fl.KeepMessages(1), counter=path).cut == 1


def test_the_command_line_accepts_the_path(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps({"messages": MESSAGES}))
    assert main(["count", str(file), "--encoding", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["tokens"] > 0


@pytest.mark.parametrize("content", [None, b"", b"{}", b"not json", b"\xff\xfe"])
def test_a_file_that_is_not_a_tokenizer_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "tokenizer.json"
    if content is not None:
        file.write_bytes(content)
    for make in (fl.counting.tokenizer_json, fl.TokenCounter, as_counter):
        with pytest.raises(ConfigError) as caught:
            make(str(file))
        assert (caught.value.code, caught.value.path) == ("bad_tokenizer", "counter")


def test_the_package_counts_where_it_is_asked_for(tokenizer: Any, path: str) -> None:
    for counter in (fl.TokenCounter(path, engine="hf"), fl.counting.tokenizer_json(path, engine="hf")):
        assert (counter.name, counter.kind) == (path, "estimated")
        assert counter.count(CORPUS[0]) == len(tokenizer.encode(CORPUS[0], add_special_tokens=False).ids)


def test_without_the_package_the_error_names_the_extra(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert fl.TokenCounter(path).count(CORPUS[0]) > 0
    with pytest.raises(ConfigError, match=r"foldline\[hf\]") as caught:
        fl.TokenCounter(path, engine="hf")
    assert caught.value.code == "missing_extra"
