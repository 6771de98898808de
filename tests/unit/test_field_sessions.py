"""The shared cases of sessions from public bug reports: what `fl.read` and `foldline compact` make of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from unit.field_cases import cases, file_of


def texts(value: Any) -> Iterator[str]:
    """Every text inside a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def test_sessions_are_read_as_the_cases_expect(shared: Path, tmp_path: Path) -> None:
    checked = 0
    for case in cases(shared, "read"):
        problems: list[fl.Problem] = []
        transcripts = list(fl.read(file_of(case, tmp_path), on_problem=problems.append))
        expected = case["expected"]
        found = [text for transcript in transcripts for text in texts(transcript.messages)]
        for text in expected.get("once", []):
            assert sum(each.count(text) for each in found) == 1, (case["id"], text)
        for text in expected.get("never", []):
            assert not any(text in each for each in found), (case["id"], text)
        if expected.get("no_problems"):
            assert problems == [], case["id"]
        assert len(transcripts) == expected.get("transcripts", len(transcripts)), case["id"]
        checked += 1
    assert checked >= 4


def test_sessions_are_compacted_as_the_cases_expect(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = 0
    for case in cases(shared, "cli"):
        expected = case["expected"]
        out = tmp_path / f"{case['id']}.out"
        code = main(["compact", str(file_of(case, tmp_path)), "--out", str(out), *case["arguments"]])
        err = capsys.readouterr().err
        assert (code, "Traceback" in err) == (expected.get("exit", 0), False), (case["id"], err)
        records = [json.loads(line) for path in out.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
        assert records
        for record in records:
            assert record["tokens_after"] <= expected.get("max_tokens", record["tokens_before"]), case["id"]
        checked += 1
    assert checked >= 2
