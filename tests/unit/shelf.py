"""A folder of files and the results of reading them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import foldline as fl


def line(value: Any) -> bytes:
    """A value as a line of JSON."""
    return json.dumps(value).encode() + b"\n"


def lines(values: Iterable[Any]) -> bytes:
    """Values as JSON lines."""
    return b"".join(map(line, values))


class Shelf:
    """A folder of files and the results of reading them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[fl.Problem] = []

    def put(self, data: bytes, name: str = "file.jsonl") -> Path:
        """Writes a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def read(self, data: bytes, name: str = "file.jsonl") -> list[fl.StoredTranscript]:
        """The transcripts in a file with these bytes."""
        return list(fl.read(self.put(data, name), on_problem=self.problems.append))

    def read_one(self, data: bytes, name: str = "file.jsonl") -> fl.StoredTranscript:
        """The only transcript in a file with these bytes."""
        (transcript,) = self.read(data, name)
        return transcript

    def told(self) -> list[tuple[str, int | None, int | None]]:
        """The problems: code, line, offset."""
        return [(problem.code, problem.line, problem.offset) for problem in self.problems]
