"""The shared cases of sessions from public bug reports: what `fl.read` and `foldline compact` make of them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main

Dict = dict[str, Any]

#: The beginning of each kind of file.
BEGINNINGS = {
    "pdf": b"%PDF-1.7\n",
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\4\0\0\0\3\0\x08\2\0\0\0",
    "wav": b"RIFF\xff\xff\xff\x7fWAVEfmt \x10\0\0\0\1\0\1\0\x80>\0\0\0}\0\0\2\0\x10\0data",
}


def filled(text: str) -> str:
    """A text with its words and files."""

    def content(match: re.Match[str]) -> str:
        kind, size = match[1], int(match[2])
        if kind == "words":
            return " ".join(f"word{i}" for i in range(size))
        return base64.b64encode(BEGINNINGS[kind].ljust(size, b"\0")).decode()

    return re.sub(r"\{\{(\w+):(\d+)\}\}", content, text)


def written_out(value: Any, number: int | None = None) -> Any:
    """A value with its short forms replaced."""
    if isinstance(value, str):
        return filled(value if number is None else value.replace("{i}", str(number)))
    if isinstance(value, dict):
        return {key: written_out(item, number) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    items: list[Any] = []
    for item in value:
        if isinstance(item, dict) and "$repeat" in item:
            for i in range(item["$repeat"]):
                items += written_out(item["of"], i)
        else:
            items.append(written_out(item, number))
    return items


def cases(folder: Path, call: str) -> Iterator[Dict]:
    """The cases and variants with this call."""
    for path in sorted(folder.glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        variants = case.pop("variants", [])
        for each in (case, *(case | variant for variant in variants)):
            if each["call"] == call:
                yield each


def file_of(case: Dict, folder: Path) -> Path:
    path = folder / f"{case['id']}.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in written_out(case["file"])), encoding="utf-8")
    return path


def texts(value: Any) -> Iterator[str]:
    """Every text inside a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def test_sessions_are_read_as_the_cases_expect(shared: Path, tmp_path: Path) -> None:
    checked = 0
    for case in cases(shared.parent / "cases" / "field", "read"):
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
    for case in cases(shared.parent / "cases" / "field", "cli"):
        expected = case["expected"]
        if "exit" not in expected:
            continue
        out = tmp_path / f"{case['id']}.out"
        code = main(["compact", str(file_of(case, tmp_path)), "--out", str(out), *case["arguments"]])
        err = capsys.readouterr().err
        assert (code, "Traceback" in err) == (expected["exit"], False), (case["id"], err)
        assert all(path.read_bytes() for path in out.glob("*.jsonl"))
        checked += 1
    assert checked >= 1
