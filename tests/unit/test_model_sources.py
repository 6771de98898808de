"""Where the tokenizer file of a model is found, what is said of it, and what is said if there is none."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import foldline as fl
from foldline.cli import main
from foldline.errors import ConfigError, UnknownModelError
from unit.small_tokenizers import CORPUS, PATTERNS, save, split, train

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder of tokenizers and an empty cache."""
    (tmp_path / "tokenizers").mkdir()
    monkeypatch.setenv("FOLDLINE_TOKENIZERS", str(tmp_path / "tokenizers"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(train(split(PATTERNS["qwen2"])), tmp_path_factory.mktemp("model"))


@pytest.fixture
def model() -> Iterator[str]:
    """A name that is registered and removed after the test."""
    yield "my-model"
    fl.models.unregister("my-model")


def tekken() -> str:
    """A small `tekken.json`: the bytes."""
    vocabulary = [{"rank": byte, "token_bytes": base64.b64encode(bytes([byte])).decode()} for byte in range(256)]
    config = {"pattern": PATTERNS["tekken"], "default_vocab_size": 356, "default_num_special_tokens": 100}
    return json.dumps({"config": config, "vocab": vocabulary})


def ranks() -> str:
    """A small vocabulary of ranks: the bytes."""
    return "".join(f"{base64.b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))


def snapshot(hub: Path, repository: str, files: dict[str, str]) -> Path:
    folder = hub / f"models--{repository.replace('/', '--')}" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


CODE = f"PATTERN = r'''{PATTERNS['llama3']}'''"


@pytest.mark.parametrize(
    ("name", "files", "found"),
    [
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", {"tekken.json": tekken()}, "tekken.json"),
        ("mistralai/Devstral-Small-2507", {"tekken.json": tekken()}, "tekken.json"),
        (
            "THUDM/glm-4-9b-chat",
            {"tokenizer.model": ranks(), "tokenization_chatglm.py": CODE, "tokenizer_config.json": "{}"},
            "tokenizer.model",
        ),
        (
            "Qwen/Qwen3-32B",
            {"qwen.tiktoken": ranks(), "tokenization_qwen.py": CODE, "tokenizer_config.json": "{}"},
            "qwen.tiktoken",
        ),
    ],
)
def test_a_cached_snapshot_is_read_as_a_models_folder_is(
    tmp_path: Path, name: str, files: dict[str, str], found: str
) -> None:
    folder = snapshot(tmp_path / "hub", name, files)
    counter = fl.TokenCounter.for_model(name)
    assert counter.count(CORPUS[0]) == fl.TokenCounter(folder).count(CORPUS[0])
    source = fl.models.source(name)
    assert (source.place, source.file) == ("Hugging Face cache", str(folder / found))
    assert fl.models.missing(name) is None


def test_a_cached_snapshot_without_a_tokenizer_is_passed_over(tmp_path: Path) -> None:
    snapshot(tmp_path / "hub", "Qwen/Qwen3-32B", {"config.json": "{}"})
    assert "the vocabulary qwen3 is not built in" in str(fl.models.missing("Qwen/Qwen3-32B"))


def test_the_error_names_no_file_of_a_repository_but_those_that_are_looked_for() -> None:
    detail = str(fl.models.missing("THUDM/glm-4-9b-chat"))
    assert "tokenizer.json of" not in detail
    assert "tokenizer.json, tekken.json, tokenizer.model, tiktoken.model or the only .tiktoken or .gguf of" in detail
    assert "glm-4.json, glm-4.tiktoken, glm-4.model, glm-4.gguf or a folder glm-4" in detail
    assert "THUDM/glm-4-9b-chat" in detail


def test_the_error_names_the_package_for_its_vocabularies_alone() -> None:
    script = (ROOT / "vocab" / "build.py").read_text(encoding="utf-8")
    sources = script[script.index("SOURCES") :]
    packaged = {name.rsplit(".", 1)[0] for name in re.findall(r'"([\w.-]+\.(?:json|model|gguf))"', sources)}
    named = set()
    for model in fl.models.known():
        missing = fl.models.missing(model.name)
        if missing and "in the package foldline-vocab, which has it and is not installed" in missing:
            named.add(model.encoding)
    everywhere = {model.encoding for model in fl.models.known()}
    assert named == packaged & everywhere
    assert {"qwen3", "tekken", "gemma-4"} <= named


def test_the_error_says_that_the_users_folder_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "FOLDLINE_TOKENIZERS (not set)" not in str(fl.models.missing("llama-3.3-70b"))
    monkeypatch.delenv("FOLDLINE_TOKENIZERS")
    assert "FOLDLINE_TOKENIZERS (not set)" in str(fl.models.missing("llama-3.3-70b"))


@pytest.mark.parametrize("broken", ["a file", "an empty folder"])
def test_a_broken_file_is_reported_with_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    path = tmp_path / "tokenizers" / ("qwen3.json" if broken == "a file" else "qwen3")
    if broken == "a file":
        path.write_text("secret", encoding="utf-8")
    else:
        path.mkdir()
    with pytest.raises(ConfigError) as caught:
        fl.TokenCounter.for_model("qwen3:8b")
    assert (caught.value.code, caught.value.path) == ("bad_tokenizer", "model")
    assert str(path) in caught.value.detail
    assert "secret" not in caught.value.detail
    assert fl.models.missing("qwen3:8b") == caught.value.detail
    assert main(["models", "qwen3:8b"]) == 1
    out = capsys.readouterr().out
    assert f"file: {path}" in out
    assert f"missing: {caught.value.detail}" in out


def test_the_command_says_where_the_count_comes_from(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "gpt-5"]) == 0
    out = capsys.readouterr().out
    assert "kind: exact" in out
    assert "source: built in" in out
    assert main(["models", "qwen3:32b"]) == 1
    out = capsys.readouterr().out
    assert "source: missing" in out
    assert "models.register(name, tokenizer=path)" in out
    path = tmp_path / "tokenizers" / "qwen3.json"
    path.write_bytes(file.read_bytes())
    assert main(["models", "qwen3:32b"]) == 0
    out = capsys.readouterr().out
    assert "source: FOLDLINE_TOKENIZERS" in out
    assert f"file: {path}" in out
    assert main(["models"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    column = lines[0].index("source")
    found = {line[0]: line[column] for line in lines[1:]}
    assert (found["qwen3"], found["gpt-5"], found["llama-3.3"]) == ("FOLDLINE_TOKENIZERS", "built in", "missing")


def test_gemini_is_explained_as_it_is_counted(tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tokenizers" / "gemma-4.json").write_bytes(file.read_bytes())
    for name, expected in (
        ("gemini-3.5-flash", ("gemma-4", "gemini-local", "FOLDLINE_TOKENIZERS")),
        ("gemini-2.5-pro", ("o200k_base", "gemini", "built in")),
    ):
        assert main(["models", name, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert (record["encoding"], record["family"], record["source"]) == expected
    assert fl.TokenCounter.for_model("gemini-3.5-flash").count(CORPUS[0]) == fl.TokenCounter(file).count(CORPUS[0])


@pytest.mark.parametrize("form", [str, Path], ids=["a str", "a Path"])
def test_a_relative_folder_may_be_registered(
    tmp_path: Path, file: Path, model: str, monkeypatch: pytest.MonkeyPatch, form: type
) -> None:
    (tmp_path / "m1").mkdir()
    (tmp_path / "m1" / "tokenizer.json").write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    fl.models.register(model, tokenizer=form("m1"))
    assert fl.TokenCounter.for_model(model).count(CORPUS[0]) == fl.TokenCounter(file).count(CORPUS[0])
    monkeypatch.chdir("/")
    source = fl.models.source(model)
    assert (source.place, source.file, source.family) == ("path", str(tmp_path / "m1"), "open")
    assert fl.models.missing(model) is None


def test_a_file_without_an_ending_may_be_registered(tmp_path: Path, file: Path, model: str) -> None:
    path = tmp_path / "sha256-abc"
    path.write_bytes(file.read_bytes())
    fl.models.register(model, tokenizer=path)
    assert fl.TokenCounter.for_model(model).count(CORPUS[0]) == fl.TokenCounter(file).count(CORPUS[0])


@pytest.mark.parametrize("path", ["nothing/tokenizer.json", "nothing", "empty", ""])
def test_a_tokenizer_that_does_not_exist_is_refused(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        fl.models.register(model, tokenizer=path)
    assert (caught.value.code, caught.value.path) == ("bad_tokenizer", "tokenizer")
    assert path in caught.value.detail
    with pytest.raises(UnknownModelError):
        fl.models.missing(model)


def test_a_path_given_as_encoding_is_a_tokenizer_too(model: str) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.json cannot be read"):
        fl.models.register(model, encoding="nothing.json")


def test_a_registered_file_that_is_gone_is_missing(tmp_path: Path, file: Path, model: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(file.read_bytes())
    fl.models.register(model, tokenizer=path)
    path.unlink()
    assert str(path) in str(fl.models.missing(model))


@pytest.mark.parametrize("name", ["grok-4", "minimax-m2", "no-such-model"])
def test_an_unknown_model_names_the_ways_out(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownModelError) as caught:
        fl.TokenCounter.for_model(name)
    assert main(["models", name]) == 2
    told = " ".join(capsys.readouterr().err.replace("│", " ").split())
    for part in ("TokenCounter(path)", "models.register(name, tokenizer=path)"):
        assert part in caught.value.detail
        assert part in told


def test_a_source_is_told_of_every_known_model() -> None:
    for model, source in itertools.zip_longest(fl.models.known(), fl.models.sources()):
        assert (source.place is None) == (fl.models.missing(model.name) is not None), model.name
