"""docs/validation.md names the codes of problems and of repairs: all of them, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foldline._core import PROBLEM_CODES, REPAIR_CODES

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "validation.md").read_text(encoding="utf-8")


def table(heading: str) -> list[str]:
    """The code spans in the first column of the first table under a heading."""
    section = DOCUMENT.partition(f"\n## {heading}\n")[2].partition("\n#")[0]
    return re.findall(r"^\| `([a-z_]+)` \|", section, flags=re.MULTILINE)


@pytest.mark.parametrize(("heading", "codes"), [("Problems", PROBLEM_CODES), ("Repairs", REPAIR_CODES)])
def test_the_tables_name_the_codes(heading: str, codes: list[str]) -> None:
    named = table(heading)
    assert sorted(set(named)) == sorted(codes)
    assert named == sorted(named)
    assert len(set(codes)) == len(codes)
