"""The quick tests are part of the deep ones, with fewer cases, and CI runs the deep ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from depth import TABLE, growing_names

ROOT = Path(__file__).resolve().parents[2]


def collected(depth: str, arguments: list[str], **environment: str) -> set[str]:
    """The ids of the tests that a run of this depth takes."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    set_here = ("FOLDLINE_REQUIRE_", "FOLDLINE_DEEPER_ONLY")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(set_here)}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=kept | environment | {"FOLDLINE_DEPTH": depth},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.deep
def test_the_quick_tests_are_part_of_the_deep_ones() -> None:
    every = ["tests", "python/foldline"]
    installed = {"FOLDLINE_REQUIRE_ENGINES": "1", "FOLDLINE_REQUIRE_BROWSER": "1"}
    quick = collected("quick", every, **installed)
    deep = collected("deep", every, **installed, FOLDLINE_REQUIRE_SERVICES="1")
    assert len(quick) > 1_000
    assert quick - deep == set()
    assert deep - quick != set()
    # What CI leaves out when it goes deep, `make test` has run.
    deeper = collected("deep", every, **installed, FOLDLINE_REQUIRE_SERVICES="1", FOLDLINE_DEEPER_ONLY="1")
    assert deeper <= deep
    assert deep - deeper <= quick


def test_what_takes_more_cases_when_the_run_is_deeper_is_found(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(
        "from depth import cases\n"
        "def seeds(): return range(cases('a'))\n"
        "def words(): return ['a']\n"
    )  # fmt: skip
    (tmp_path / "test_planted.py").write_text(
        "import pytest\n"
        "from depth import cases\n"
        "from hypothesis import given\n"
        "from hypothesis.stateful import RuleBasedStateMachine\n"
        "from . import helper\n"
        "from .helper import seeds, words\n"
        "COUNT = cases('a')\n"
        "class Machine(RuleBasedStateMachine): ...\n"
        "TestMachine = Machine.TestCase\n"
        "@pytest.fixture\n"
        "def drawn(): return cases('a')\n"
        "@given()\n"
        "def test_of_hypothesis(): ...\n"
        "def test_of_the_table(): cases('a')\n"
        "def test_of_a_constant(): range(COUNT)\n"
        "@pytest.mark.parametrize('number', range(COUNT))\n"
        "def test_of_parameters(number): ...\n"
        "def test_of_a_fixture(drawn): ...\n"
        "def test_of_a_helper(): seeds()\n"
        "def test_of_a_module_of_helpers(): helper.seeds()\n"
        "def test_of_fixed_words(): words()\n"
        "def test_of_nothing(): range(5)\n"
    )  # fmt: skip
    found = {name for name in growing_names(tmp_path / "test_planted.py") if name.lower().startswith("test")}
    assert found == {
        "TestMachine", "test_of_hypothesis", "test_of_the_table", "test_of_a_constant", "test_of_parameters",
        "test_of_a_fixture", "test_of_a_helper", "test_of_a_module_of_helpers",
    }  # fmt: skip


def test_a_deeper_run_takes_at_least_as_many_cases() -> None:
    for name, counts in TABLE.items():
        assert list(counts) == ["quick", "deep", "soak"], name
        assert min(counts.values()) > 0, name
        # A step is the distance of two cases: a deeper run takes smaller ones.
        assert list(counts.values()) == sorted(counts.values(), reverse=name.endswith("_step")), name


def commands(*arguments: str) -> str:
    """What make would run."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FOLDLINE_DEPTH", "MAKEFLAGS")}
    told = subprocess.run(["make", "-n", *arguments], cwd=ROOT, env=kept, capture_output=True, text=True, check=True)
    return told.stdout


def test_make_check_and_ci_run_the_deep_tests() -> None:
    assert "FOLDLINE_DEPTH := deep" in (ROOT / "Makefile").read_text(encoding="utf-8")
    check = commands("check")
    steps = {
        "lint-deep": "cargo doc", "cargo-test": "cargo test --locked -- --include-ignored",
        "pytest": "FOLDLINE_REQUIRE_ENGINES=1", "instructions": "scripts/instructions.py",
    }  # fmt: skip
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for target, command in steps.items():
        assert command in check, target
        (line,) = re.findall(rf"^part .* (make .*\b{target})$", ci, flags=re.MULTILINE)
        assert target == "instructions" or "FOLDLINE_DEPTH=deep" in line
        assert command in commands(*line.split()[1:]), target
    assert re.search(r"^part .* make .*\btest$", ci, flags=re.MULTILINE)
    assert "scripts/postgres.sh" in check
    assert "POSTGRES=1" in ci
    assert "--include-ignored" not in commands("test")
