"""The shared cases from the field on media and overflow errors, with all their variants."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.media_files import base64_of, pdf, picture, sound

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(os.environ.get("FOLDLINE_SHARED") or ROOT.parent / "shared") / "cases" / "field"
FILES = {
    "pdf": lambda size: base64_of(pdf(size=size)),
    "png": lambda size: base64_of(picture(size=size)),
    "wav": lambda size: base64_of(sound(size=size)),
    "words": lambda count: " ".join(f"word{i}" for i in range(count)),
}


def expanded(value: Any) -> Any:
    """A value with its short forms written out, as the README of the cases tells."""
    if isinstance(value, str):
        return re.sub(r"\{\{(pdf|png|wav|words):(\d+)\}\}", lambda found: FILES[found[1]](int(found[2])), value)
    if isinstance(value, dict):
        return {key: expanded(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    items: list[Any] = []
    for item in value:
        if isinstance(item, dict) and "$repeat" in item:
            texts = [json.dumps(item["of"]).replace("{i}", str(i)) for i in range(item["$repeat"])]
            items += [inner for text in texts for inner in expanded(json.loads(text))]
        else:
            items.append(expanded(item))
    return items


def cases(call: str) -> list[Any]:
    found = []
    for file in sorted(CASES.glob("*.json")) if CASES.is_dir() else []:
        case = json.loads(file.read_text(encoding="utf-8"))
        variants = [case, *(case | variant for variant in case.get("variants", ()))]
        found += [pytest.param(each, id=each["id"]) for each in variants if each["call"] == call]
    return found


@pytest.mark.parametrize("case", cases("count"))
def test_a_case_of_counts(shared: Path, case: dict[str, Any]) -> None:
    messages, expected = expanded(case["messages"]), case["expected"]
    before = copy.deepcopy(messages)
    counts = fl.TokenCounter.for_model(case["model"]).count_messages(messages)
    assert expected["min_tokens"] <= counts.total <= expected["max_tokens"]
    assert counts.kind == "estimated"
    assert messages == before


@pytest.mark.parametrize("case", cases("overflow"))
def test_a_case_of_overflow_errors(shared: Path, case: dict[str, Any]) -> None:
    fires = [fl.triggers.Overflow().should_compact(fl.ContextState(error=error)) for error in case["errors"]]
    assert list(map(int, fires)) == case["expected"]["overflow"]


def test_the_cases_are_found(shared: Path) -> None:
    assert len(cases("count")) >= 6
    assert len(cases("overflow")) >= 2
