"""Batches: texts in lists and columns, transcripts in objects and lines, on one thread and on two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
COUNTER = fl.TokenCounter("o200k_base")


def texts(count: int = 4_000, size: int = 2_000) -> list[str]:
    """Texts of a given number and length from the bundled sessions."""
    whole = "".join(file.read_text(encoding="utf-8") for file in sorted(DATA.glob("*.jsonl")))
    starts = [i * (len(whole) - size) // count for i in range(count)]
    return [whole[start : start + size] for start in starts]


def lines() -> bytes:
    """The bundled sessions as JSON lines, fifty times over."""
    stored = [t for file in sorted(DATA.glob("*.jsonl")) for t in fl.read(file, on_problem=lambda problem: None)]
    return b"".join(json.dumps({"format": t.format, "messages": t.messages}).encode() + b"\n" for t in stored) * 50


def columns() -> dict[str, Any]:
    pa = pytest.importorskip("pyarrow")
    array = pa.array(texts())
    return {"list": texts(), "arrow": array, "dictionary": pa.chunked_array([array[:400]] * 10).dictionary_encode()}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["list", "arrow", "dictionary"])
def test_count_batch(benchmark: Any, kind: str, threads: int) -> None:
    given = columns()[kind]
    benchmark.pedantic(lambda: COUNTER.count_batch(given, threads=threads), rounds=15, warmup_rounds=1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["lines", "objects"])
def test_count_transcripts(benchmark: Any, kind: str, threads: int) -> None:
    given = lines()
    as_given = given if kind == "lines" else [json.loads(line) for line in given.splitlines()]
    benchmark.pedantic(lambda: COUNTER.count_transcripts(as_given, threads=threads), rounds=5, warmup_rounds=1)
