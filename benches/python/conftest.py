"""Samples for the benchmarks of the Python package: the bundled sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"


@pytest.fixture(scope="session")
def counter() -> fl.TokenCounter:
    """An exact counter."""
    return fl.TokenCounter("o200k_base")


@pytest.fixture(scope="session")
def session() -> list[dict[str, Any]]:
    """A session of Claude Code as Anthropic messages: 173 messages, 122,766 tokens."""
    return list(next(iter(fl.read(EXAMPLES / "claude-code-session.jsonl"))).messages)


@pytest.fixture(scope="session")
def conversations() -> list[list[dict[str, Any]]]:
    """OpenAI Chat with tool calls."""
    lines = (EXAMPLES / "openai-tools.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["messages"] for line in lines]


@pytest.fixture(scope="session")
def text() -> str:
    """A megabyte: the bundled session of Claude Code as stored on disk."""
    return (EXAMPLES / "claude-code-session.jsonl").read_bytes()[:1_000_000].decode("utf-8", "ignore")
