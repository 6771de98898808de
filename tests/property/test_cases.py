"""The named cases of `tests/cases`, on the oracle and on the module under test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from reference.engine import Engine
from reference.planner import Keep

from .invariants import is_plan, public_keep

CASES: Final = Path(__file__).resolve().parents[1] / "cases"
OTHER: Final = ("validity", "heuristics", "usage")


def load(name: str) -> Any:
    """One file of cases."""
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def plan_cases() -> list[Any]:
    """The plan cases of all files, named by file and case."""
    files = [path.stem for path in sorted(CASES.glob("*.json")) if path.stem not in OTHER]
    return [pytest.param(case, id=f"{file}: {case['name']}") for file in files for case in load(file)]


def keep_of(spec: dict[str, Any]) -> Keep:
    """The keep of a case."""
    (kind, amount), *_ = spec.items()
    return Keep(kind, amount, spec.get("of", "tokens"))  # type: ignore[arg-type]


def pins_of(fl: Any, pins: list[int]) -> dict[str, Any]:
    """Pins as options. By importance, which also pins the summary of an earlier fold; the oracle has only indices."""
    return {"importance": dict.fromkeys(pins, 10.0)} if hasattr(fl, "Transcript") else {"pins": pins}


def check_plan(fl: Any, case: dict[str, Any]) -> None:
    """Plans a case and compares the expected fields one by one."""
    expected = case["expect"]
    plan = fl.plan(
        case["messages"],
        public_keep(fl, keep_of(case["keep"])),
        counter=case["counter"],
        **pins_of(fl, case.get("pins", [])),
        summary_tokens=case.get("summary_tokens", 0),
        format=case["format"],
        **{name: case[name] for name in ("min_gain_tokens", "thinking") if name in case},
    )
    assert is_plan(fl, plan) == ("infeasible" not in expected)
    found = {name: value_of(plan, name, case) for name in expected if name != "infeasible"}
    assert found == {name: value for name, value in expected.items() if name != "infeasible"}


def value_of(plan: Any, name: str, case: dict[str, Any]) -> Any:
    """A field of a plan in the notation of the cases."""
    value = plan.chunks(case["chunk_tokens"]) if name == "chunks" else getattr(plan, name)
    fields = {
        "chunks": ("start", "stop", "tokens", "is_oversized"),
        "alternatives": ("cut", "tokens_kept", "tokens_after", "folded", "is_mid_turn", "why"),
    }
    if name in fields:
        return [[getattr(each, field) for field in fields[name]] for each in value]
    if name == "warnings":
        return [list(warning) for warning in value]
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("case", plan_cases())
def test_plan_of_oracle(case: dict[str, Any]) -> None:
    """The oracle agrees with the values worked out by hand."""
    check_plan(Engine(), case)


@pytest.mark.parametrize("case", plan_cases())
def test_plan(fl: Any, case: dict[str, Any]) -> None:
    """The module agrees with the values worked out by hand."""
    check_plan(fl, case)


@pytest.mark.parametrize("case", load("validity"), ids=lambda case: f"{case['provider']}: {case['name']}")
def test_validity(fl: Any, case: dict[str, Any]) -> None:
    """The problems of a list, on the oracle and on the module."""
    for module in (Engine(), fl):
        found = {(problem.index, problem.code) for problem in module.validate(case["messages"], case["provider"])}
        assert found == {tuple(problem) for problem in case["problems"]}


@pytest.mark.parametrize("case", load("heuristics"), ids=lambda case: f"{case['counter']}: {case['note']}")
def test_heuristics(fl: Any, case: dict[str, Any]) -> None:
    """Counts of texts and of messages, on the oracle and on the module."""
    for module in (Engine(), fl):
        counter = module.TokenCounter(case["counter"])
        if "text" in case:
            assert counter.count(case["text"]) == case["expect"]
        else:
            counts = counter.count_messages(case["messages"], format=case["format"])
            assert list(counts.per_message) == case["expect"]
            assert counts.total == sum(case["expect"])


def test_case_names_are_unique() -> None:
    """A failing case can be found by its name."""
    for path in CASES.glob("*.json"):
        keys = [(case.get("provider"), case.get("name") or str(case)) for case in load(path.stem)]
        assert len(set(keys)) == len(keys), path.name
