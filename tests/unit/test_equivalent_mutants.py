"""The list of mutants that no test can kill: each entry names existing code and a reason.

`make mutants` checks that it is a mutant of cargo-mutants' list, and that it survives.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "scripts" / "mutants" / "equivalent.toml"
ENTRIES = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['function']}: {entry['change']}")
def test_an_entry_names_an_existing_line_and_a_reason(entry: dict[str, str]) -> None:
    assert set(entry) - {"nth"} == {"file", "function", "change", "line", "reason"}
    assert len(entry["reason"].split()) > 3
    lines = (ROOT / entry["file"]).read_text(encoding="utf-8").splitlines()
    assert entry["line"] in [line.strip() for line in lines]


def test_no_entry_is_duplicated() -> None:
    places = [
        tuple(str(entry.get(key, 1)) for key in ("file", "function", "change", "line", "nth")) for entry in ENTRIES
    ]
    assert len(set(places)) == len(places)
