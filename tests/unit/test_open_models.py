"""Open models by name: their vocabularies, where the files are looked for, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from foldline.errors import ConfigError, UnknownModelError
from unit.small_tokenizers import CORPUS, PATTERNS, save, split, train


@pytest.fixture(autouse=True)
def no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder of tokenizers and an empty cache."""
    monkeypatch.setenv("FOLDLINE_TOKENIZERS", str(tmp_path / "tokenizers"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(train(split(PATTERNS["qwen2"])), tmp_path_factory.mktemp("model"))


def in_cache(hub: Path, repository: str, file: Path) -> None:
    folder = hub / f"models--{repository.replace('/', '--')}" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_bytes(file.read_bytes())


@pytest.mark.parametrize("name", ["qwen3:32b", "Qwen/Qwen3-32B-FP8", "llama-3.3-70b", "deepseek-v4", "gemma3:27b"])
def test_a_missing_file_is_named_with_the_places_where_it_is_looked_for(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.TokenCounter.for_model(name)
    assert (caught.value.code, caught.value.path) == ("missing_tokenizer", "model")
    for part in ("tokenizer.json, tekken.json, ", "FOLDLINE_TOKENIZERS", "HF_HOME", "TokenCounter(path)"):
        assert part in str(caught.value)
    assert fl.models.missing(name) == caught.value.detail


def test_a_file_in_the_users_folder_is_found(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tokenizers"
    folder.mkdir()
    (folder / "qwen3.json").write_bytes(file.read_bytes())
    counter = fl.TokenCounter.for_model("qwen3:32b")
    assert (counter.name, counter.kind, counter.model) == ("qwen3", "exact", "qwen3:32b")
    assert counter.count(CORPUS[0]) == fl.TokenCounter(file).count(CORPUS[0])
    assert fl.models.missing("qwen3:32b") is None


def test_a_file_in_the_cache_of_hugging_face_is_found(file: Path, tmp_path: Path) -> None:
    in_cache(tmp_path / "hub", "Qwen/Qwen3-8B", file)
    assert fl.TokenCounter.for_model("qwen3:32b").count(CORPUS[0]) == fl.TokenCounter(file).count(CORPUS[0])


def test_the_repository_of_the_name_is_looked_for_first(file: Path, tmp_path: Path) -> None:
    in_cache(tmp_path / "hub", "someone/Qwen3-32B-AWQ", file)
    assert fl.TokenCounter.for_model("someone/Qwen3-32B-AWQ").kind == "exact"
    assert fl.models.missing("Qwen/Qwen3-32B") is not None


def test_messages_have_an_estimate_for_the_template(file: Path, tmp_path: Path) -> None:
    in_cache(tmp_path / "hub", "Qwen/Qwen3-32B", file)
    messages = [{"role": "user", "content": CORPUS[0]}, {"role": "assistant", "content": CORPUS[1]}]
    counts = fl.TokenCounter.for_model("qwen3").count_messages(messages)
    texts = [fl.TokenCounter(file).count(str(message["content"])) for message in messages]
    assert counts.kind == "estimated"
    assert (counts.per_message - texts).tolist() == [5, 5]
    assert counts.overhead == 3


@pytest.mark.parametrize(
    ("values", "family", "kinds"),
    [
        ({"tokenizer": "file"}, "open", ("exact", "estimated")),
        ({"tokenizer": "file", "like": "gemini-2.5-pro"}, "open", ("exact", "estimated")),
        ({"tokenizer": "file", "family": "chatml"}, "chatml", ("exact", "estimated")),
        ({"encoding": "claude-3"}, "claude", ("reconstructed", "reconstructed")),
        ({"encoding": "o200k_base"}, "plain", ("exact", "exact")),
        ({"encoding": "cl100k_base", "like": "gpt-4o"}, "gpt-4o", ("exact", "exact")),
    ],
    ids=["a file", "a file like Gemini", "a file of a family", "Claude's", "OpenAI's", "OpenAI's like another"],
)
def test_a_registered_model_has_the_family_of_its_encoding(
    file: Path, values: dict[str, Any], family: str, kinds: tuple[str, str]
) -> None:
    given = values | ({"tokenizer": file} if "tokenizer" in values else {})
    fl.models.register("my-model", **given)
    try:
        counter = fl.TokenCounter.for_model("my-model")
        counts = counter.count_messages([{"role": "user", "content": "Hello."}])
        assert (fl.models.lookup("my-model").family, counter.kind, counts.kind) == (family, *kinds)
        if "tokenizer" in values:
            assert counter.count("Hello.") == fl.TokenCounter(file).count("Hello.")
    finally:
        fl.models.unregister("my-model")


def test_an_encoding_given_beside_a_name_says_how_it_counts() -> None:
    assert fl.models.lookup("claude-opus-4-8", encoding="claude-3").kind == "reconstructed"
    assert fl.models.lookup("my-model", encoding="qwen3", context_window=9).family == "chatml"
    with pytest.raises(ConfigError) as caught:
        fl.models.lookup("my-model", encoding="nonsense", context_window=9)
    assert caught.value.code == "unknown_encoding"


def test_a_registered_name_with_an_owner_is_that_owners_alone(file: Path) -> None:
    for owner, window in (("team-a", 1_000), ("team-b", 2_000)):
        fl.models.register(f"{owner}/ft", tokenizer=file, context_window=window)
    try:
        for name, window in (("team-a/ft", 1_000), ("hosted_vllm/team-b/ft", 2_000), ("Team-A/FT", 1_000)):
            assert fl.models.lookup(name).context_window == window
    finally:
        assert [fl.models.unregister(f"{owner}/ft") for owner in ("team-a", "team-b")] == [True, True]


def test_a_model_may_be_registered_with_its_tokenizer(file: Path) -> None:
    fl.models.register("my-model", tokenizer=file, family="chatml", context_window=1_000)
    try:
        assert fl.models.lookup("my-model").context_window == 1_000
        assert fl.TokenCounter.for_model("my-model-v2").count(CORPUS[0]) == fl.TokenCounter(file).count(CORPUS[0])
    finally:
        fl.models.unregister("my-model")
    with pytest.raises(ConfigError) as caught:
        fl.models.register("my-model", tokenizer=file, encoding="o200k_base")
    assert caught.value.code == "two_encodings"


def test_an_unknown_model_has_nothing_to_be_missing() -> None:
    with pytest.raises(UnknownModelError):
        fl.models.missing("no-such-model")


def test_the_command_lists_and_explains_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    names = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert names == [model.name for model in fl.models.known()]
    assert main(["models", "gpt-5"]) == 0
    assert "encoding: o200k_base" in capsys.readouterr().out
    assert main(["models", "ollama/qwen3:32b", "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["name"], record["encoding"], record["kind"]) == ("qwen3", "qwen3", "exact")
    assert "Qwen/Qwen3-32B" in record["missing"]
    assert main(["models", "no-such-model"]) == 2
