"""Every behaviour that the seed documents ask for has a test that is named after it."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]

ROWS = [f"{letter}{n}" for letter, last in (("G", 10), ("A", 9), ("B", 11), ("T", 11)) for n in range(1, last + 1)]


def named_rows() -> set[str]:
    """The rows that tests of Python are named after."""
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    return {row for text in texts for row in re.findall(r"^(?:async )?def test_([GABT]\d+)_", text, re.MULTILINE)}


def test_every_row_has_a_test_and_no_test_is_named_after_another() -> None:
    assert named_rows() == set(ROWS)
