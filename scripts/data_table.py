#!/usr/bin/env python3
"""Lists the contents of a folder of collected transcripts, one line per file.

    python scripts/data_table.py SHARED_DATA [--write docs/data.md | --check docs/data.md]

Without an option the table is printed. `--write` puts it into a document, between its marker lines;
`--check` exits with 1 if the document differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import foldline as fl

BEGIN, END = "<!-- table -->", "<!-- end of table -->"

SUFFIXES = (".json", ".jsonl", ".traj")

# The API that takes the messages of a dialect.
PROVIDERS = {
    "openai_chat": "openai",
    "openai_responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}

COLUMNS = (
    "file",
    "session of",
    "dialect",
    "transcripts",
    "messages",
    "groups",
    "open calls",
    "orphan results",
    "problems of the file",
    "what its provider rejects",
)


@dataclass
class Row:
    """The contents of a file."""

    file: str
    sessions: set[str] = field(default_factory=set)
    dialects: set[str] = field(default_factory=set)
    transcripts: int = 0
    messages: int = 0
    groups: int = 0
    open_calls: int = 0
    orphan_results: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    invalid: int = 0

    def add(self, transcript: fl.StoredTranscript) -> None:
        """Adds one transcript of the file."""
        structure = fl.analyze(transcript.messages, format=transcript.format)
        self.sessions.add(transcript.meta.get("session_format", ""))
        self.dialects.add(transcript.format)
        self.transcripts += 1
        self.messages += len(transcript.messages)
        self.groups += len(structure.groups)
        self.open_calls += len(structure.open_calls)
        self.orphan_results += len(structure.orphan_results)
        if provider := PROVIDERS.get(transcript.format):
            codes = [problem.code for problem in fl.validate(transcript.messages, provider)]
            self.rejected.update(codes)
            self.invalid += bool(codes)

    def cells(self) -> list[str]:
        """Its cells, in the order of the columns."""
        numbers = (self.transcripts, self.messages, self.groups, self.open_calls, self.orphan_results)
        rejected = listed(self.rejected) + (f" in {self.invalid}" if self.invalid and self.transcripts > 1 else "")
        return [
            f"`{self.file}`",
            ", ".join(sorted(self.sessions - {""})),
            ", ".join(sorted(self.dialects)),
            *(f"{number:,}" for number in numbers),
            listed(self.problems),
            rejected,
        ]


def listed(codes: Counter[str]) -> str:
    """Codes, with their number if more than one."""
    return ", ".join(f"{code} ×{count}" if count > 1 else code for code, count in sorted(codes.items()))


def rows(folder: Path) -> list[Row]:
    """One row per file, by name."""
    found = []
    for path in sorted(path for path in folder.glob("*/*") if path.suffix in SUFFIXES):
        row = Row(path.relative_to(folder).as_posix())
        problems: list[fl.Problem] = []
        for transcript in fl.read(path, on_problem=problems.append):
            row.add(transcript)
        row.problems.update(problem.code for problem in problems)
        found.append(row)
    return found


def sums(found: Iterable[Row]) -> list[str]:
    """The last line: the sum of every number."""
    total = Row("")
    for row in found:
        for name in ("transcripts", "messages", "groups", "open_calls", "orphan_results", "invalid"):
            setattr(total, name, getattr(total, name) + getattr(row, name))
        total.problems += row.problems
        total.rejected += row.rejected
    cells = total.cells()
    return ["all", "", "", *cells[3:8], f"{total.problems.total():,}", f"{total.rejected.total():,} in {total.invalid}"]


def table(folder: Path) -> str:
    """The table in Markdown."""
    found = rows(folder)
    aligned = ["---"] * 3 + ["---:"] * 5 + ["---"] * 2
    lines = [list(COLUMNS), aligned, *(row.cells() for row in found), sums(found)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def placed(document: str, text: str) -> str:
    """A document with the table between its marker lines."""
    before, _, rest = document.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n{END}{behind}"


def main() -> int:
    """Print the table, put it into a document, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of folders with transcripts")
    parser.add_argument("--write", type=Path, help="the document to put the table into")
    parser.add_argument("--check", type=Path, help="the document to compare with")
    args = parser.parse_args()

    text = table(args.data)
    document = args.write or args.check
    if document is None:
        print(text, end="")
        return 0
    before = document.read_text(encoding="utf-8")
    after = placed(before, text)
    if args.write and after != before:
        document.write_text(after, encoding="utf-8")
    if args.check and after != before:
        print(f"{document} differs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
