"""The mutants of cargo-mutants' list, with names that do not depend on line numbers."""

from __future__ import annotations

import collections
import hashlib
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = "27.1.0"
FILES = ("src-rust/rules/**", "src-rust/plan/**")


@dataclass(frozen=True)
class Mutant:
    """One change at one position. Positions are byte offsets in the file as listed."""

    number: int
    file: str
    function: str
    genre: str
    change: str  # in the words of cargo-mutants: "replace < with =="
    line: str  # the text of its first line
    nth: int  # among those of the same file, function, change and line, from 1
    start: int
    end: int
    replacement: str
    key: str  # of the change and the whole function: a result is valid while this hash is unchanged

    @property
    def name(self) -> str:
        """In readable form."""
        which = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.file}: {self.function}: {self.change}{which}: {self.line}"


def installed(root: Path) -> str:
    """The pinned cargo-mutants; built from source into a folder, once."""
    program = root / "bin" / "cargo-mutants"
    if not program.exists():
        command = ["cargo", "install", "--quiet", "--locked", "--root", str(root), f"cargo-mutants@{VERSION}"]
        subprocess.run(command, check=True)
    return str(program)


def check_version(program: str) -> None:
    """Raise SystemExit unless this is the pinned version of cargo-mutants."""
    said = subprocess.run([program, "mutants", "--version"], capture_output=True, text=True, check=False).stdout
    if VERSION not in said.split():
        raise SystemExit(f"cargo-mutants {VERSION} is needed, not {said.strip() or program}")


def listed(program: str, tree: Path) -> list[Mutant]:
    """All mutants of the rules and the planner, numbered from 1."""
    check_version(program)
    globs = [word for glob in FILES for word in ("-f", glob)]
    command = [program, "mutants", "--list", "--json", *globs]
    text = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout
    seen: collections.Counter[tuple[str, ...]] = collections.Counter()
    files: dict[str, _File] = {}
    found = []
    for number, row in enumerate(json.loads(text), 1):
        file = files.setdefault(row["file"], _File(tree / row["file"]))
        found.append(_mutant(number, row, file, seen))
    return found


class _File:
    """A source with the offsets of its lines; cargo-mutants counts lines and characters from 1."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_bytes()
        self.lines = self.text.split(b"\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def offset(self, place: dict[str, int]) -> int:
        line = self.lines[place["line"] - 1].decode()
        return self.starts[place["line"] - 1] + len(line[: place["column"] - 1].encode())


def _mutant(number: int, row: dict[str, Any], file: _File, seen: collections.Counter[tuple[str, ...]]) -> Mutant:
    start, end = (file.offset(row["span"][side]) for side in ("start", "end"))
    function = row["function"]["function_name"] if row["function"] else ""
    where = {side: row["function"]["span"][side] for side in ("start", "end")} if row["function"] else row["span"]
    outer = file.offset(where["start"]), file.offset(where["end"])
    change = re.sub(r"^[^:]+:\d+:\d+: ", "", row["name"]).removesuffix(f" in {function}")
    line = file.lines[row["span"]["start"]["line"] - 1].decode().strip()
    same = (row["file"], function, change, line)
    seen[same] += 1
    parts = [row["file"], function, change, str(start - outer[0]), file.text[outer[0] : outer[1]].decode()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return Mutant(
        number, *same[:2], row["genre"], change, line, seen[same], start, end, row["replacement"], key
    )  # fmt: skip
