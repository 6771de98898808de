"""Closed lists: names of formats, providers, origins and encodings come from the core and are accepted everywhere."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import get_args

import pytest

import foldline as fl
from foldline import _core, typing
from foldline.errors import ConfigError
from property.writers import WRITERS
from reference.counters import FRAMING

MESSAGES = [{"role": "user", "content": "hello"}]
LISTS = {"FORMATS": _core.FORMATS, "PROVIDERS": _core.PROVIDERS, "ORIGINS": _core.ORIGINS, "ENCODINGS": _core.ENCODINGS}

NOT_COPIES = {"reading/_sessions.py", "typing.py"}
"""A file that maps session kinds to formats; and the literal types, which a test compares with the lists."""


def test_the_lists_equal_the_documented_ones() -> None:
    assert (
        *("openai_chat", "openai_responses", "anthropic", "gemini"),
        *("pi", "ai_sdk", "langchain", "gent", "sharegpt", "bedrock_converse"),
        *("ai_sdk_ui", "mistral", "cohere"),
    ) == _core.FORMATS
    assert _core.PROVIDERS == ("openai", "responses", "anthropic", "gemini", "bedrock", "mistral", "cohere")
    assert _core.ORIGINS == ("original", "compacted_synthetic", "compacted_modified", "retrieved_history")
    assert _core.ENCODINGS == ("o200k_base", "cl100k_base", "o200k_harmony", "p50k_base", "r50k_base")
    assert _core.PROVIDER_OF_FORMAT == {
        "openai_chat": "openai",
        "openai_responses": "responses",
        "anthropic": "anthropic",
        "gemini": "gemini",
        "bedrock_converse": "bedrock",
        "mistral": "mistral",
        "cohere": "cohere",
    }
    assert typing.ORIGINS is _core.ORIGINS


@pytest.mark.parametrize(
    ("literal", "names"),
    [
        (typing.Format, _core.FORMATS),
        (typing.Provider, _core.PROVIDERS),
        (typing.Origin, _core.ORIGINS),
        (typing.CountKind, _core.COUNT_KINDS),
        (typing.SessionFormat, _core.SESSION_FORMATS),
    ],
)
def test_a_literal_type_repeats_the_list_of_the_core(literal: object, names: tuple[str, ...]) -> None:
    assert get_args(literal) == names


def test_every_policy_is_accepted_and_documented() -> None:
    trigger, strategy = fl.triggers.MessageCount(9), fl.strategies.NoOp()
    for policy in get_args(typing.FailurePolicy):
        assert fl.Compactor(trigger, strategy, on_failure=policy).on_failure == policy
    assert set(get_args(typing.Fallback)) < set(get_args(typing.FailurePolicy))


@pytest.mark.parametrize("thinking", get_args(typing.Thinking))
def test_every_treatment_of_thinking_is_accepted(thinking: str) -> None:
    assert fl.plan(MESSAGES, fl.KeepMessages(1), thinking=thinking).actions == ["keep"]


def test_every_format_is_in_the_lists_that_name_formats() -> None:
    root = Path(__file__).resolve().parents[2]
    schema = json.loads((root / "docs" / "plan.schema.json").read_text(encoding="utf-8"))
    assert tuple(schema["properties"]["format"]["enum"]) == _core.FORMATS
    documented = (root / "docs" / "api.md").read_text(encoding="utf-8")
    assert "| formats | " + ", ".join(f"`{name}`" for name in _core.FORMATS) + " |" in documented
    assert "| providers | " + ", ".join(f"`{name}`" for name in _core.PROVIDERS) + " |" in documented
    explained = fl.plan.__doc__ or ""
    assert all(f'``"{name}"``' in explained for name in _core.FORMATS)
    # pi has recorded sessions; every other format is written by a generator of the property tests.
    assert {*WRITERS, "pi"} == {*_core.FORMATS} == {*FRAMING, "pi"}


@pytest.mark.parametrize("format", _core.FORMATS)
def test_every_format_is_accepted_by_planning_batch_and_configuration(format: str) -> None:
    assert fl.plan([], fl.KeepMessages(1), format=format).to_json()
    assert fl.batch.BatchCompactor(fl.KeepMessages(1), format=format).format == format
    assert fl.config.load({"compaction": {"format": format}}).build().format == format


def test_other_formats_are_refused_by_planning_batch_and_configuration() -> None:
    for refused in (
        lambda: fl.plan([], fl.KeepMessages(1), format="morse"),
        lambda: fl.batch.BatchCompactor(fl.KeepMessages(1), format="morse"),
        lambda: fl.config.load({"compaction": {"format": "morse"}}),
    ):
        with pytest.raises(ConfigError):
            refused()


@pytest.mark.parametrize("provider", _core.PROVIDERS)
def test_every_provider_can_be_checked_and_repaired_for(provider: str) -> None:
    assert fl.validate([], provider) == []
    assert fl.repair([], provider).messages == []


@pytest.mark.parametrize("format", _core.PROVIDER_OF_FORMAT)
def test_a_format_is_valid_for_its_provider(format: str) -> None:
    messages = {
        "bedrock_converse": [{"role": "user", "content": [{"text": "hello"}]}],
        "gemini": [{"role": "user", "parts": [{"text": "hello"}]}],
        "openai_responses": [{"type": "message", "role": "user", "content": "hello"}],
    }.get(format, MESSAGES)
    assert fl.validate(messages, _core.PROVIDER_OF_FORMAT[format], format=format) == []


@pytest.mark.parametrize("origin", _core.ORIGINS)
def test_every_origin_is_accepted_by_metadata_and_transcripts(origin: str) -> None:
    metadata = fl.context.Metadata()
    metadata.set_origin(0, origin)
    assert metadata.origin(0) == origin
    assert fl.plan(MESSAGES, fl.KeepMessages(1), origins={0: origin}).actions == ["keep"]
    live = fl.Transcript(MESSAGES)
    live.set_origin(0, origin)
    assert live.origin(0) == origin


@pytest.mark.parametrize("encoding", _core.ENCODINGS)
def test_every_encoding_can_be_counted(encoding: str) -> None:
    assert fl.count_tokens("hello world", encoding) == 2
    assert fl.TokenCounter(encoding).name == encoding


def strings_in(node: ast.expr) -> set[str]:
    """The strings of a literal list, tuple, set or dict."""
    parts: list[ast.expr | None] = []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        parts = list(node.elts)
    elif isinstance(node, ast.Dict):
        parts = [*node.keys, *node.values]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


@pytest.mark.parametrize("names", LISTS.values(), ids=LISTS)
def test_no_python_file_duplicates_a_list(names: tuple[str, ...]) -> None:
    package = Path(fl.__file__).parent
    for file in sorted(package.rglob("*.py")):
        if file.relative_to(package).as_posix() in NOT_COPIES:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.expr):
                assert len(strings_in(node) & set(names)) < 3, f"{file.name}:{node.lineno}"
