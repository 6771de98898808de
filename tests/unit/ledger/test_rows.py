"""Every behaviour of `docs/seeds.md` has a test named after it, in a file that its row lists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def rows() -> dict[str, set[str]]:
    """The ids, each with the test files of its row."""
    text = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| ([GABTD]\d+) \|.*\| ([^|]+) \|$", text, flags=re.MULTILINE)
    return {row: set(re.findall(r"`([^`]+)`", files)) for row, files in found}


def named_rows() -> dict[str, set[str]]:
    """The ids that Python tests are named after, each with the files of these tests."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        for row in re.findall(r"^(?:async )?def test_([GABTD]\d+)_", text, flags=re.MULTILINE):
            found.setdefault(row, set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_every_row_has_a_test_and_every_named_test_has_a_row() -> None:
    assert named_rows().keys() == rows().keys()
    assert len(rows()) > 40


def test_the_files_of_a_row_contain_its_tests() -> None:
    named = named_rows()
    assert [(row, file) for row, files in rows().items() for file in files if file not in named.get(row, ())] == []
