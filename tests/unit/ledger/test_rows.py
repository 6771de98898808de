"""Every behaviour that the seed documents ask for has a test that is named after it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]

ROWS = [f"{letter}{n}" for letter, last in (("G", 10), ("A", 9), ("B", 11), ("T", 11)) for n in range(1, last + 1)]

LATER: set[str] = set()
"""Rows that are not built yet."""


def named_rows() -> set[str]:
    """The rows that tests of Python are named after."""
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    return {row for text in texts for row in re.findall(r"^(?:async )?def test_([GABT]\d+)_", text, re.MULTILINE)}


@pytest.mark.parametrize("row", [row for row in ROWS if row not in LATER])
def test_every_row_of_the_ledger_has_a_test(row: str) -> None:
    assert row in named_rows()


def test_rows_that_come_later_have_not_come() -> None:
    """Else they belong out of the list."""
    assert LATER & named_rows() == set()


def test_no_test_is_named_after_a_row_that_does_not_exist() -> None:
    assert named_rows() <= set(ROWS)
