"""The cost and the names of `import foldline`: a process that only counts loads nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

import foldline as fl

#: Modules that take milliseconds to import and that counting does not need.
HEAVY = ("asyncio", "logging", "ssl", "json", "foldline.folding", "foldline.planning", "foldline.reading")


def run(code: str) -> str:
    """The output of a new process."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_counting_imports_little() -> None:
    code = f"""
import numpy, sys
before = set(sys.modules)
import foldline as fl
fl.TokenCounter("o200k_base").count("hello world")
print(sorted((set(sys.modules) - before) & set({HEAVY})))
"""
    assert run(code) == "[]"


@pytest.mark.parametrize("name", [*fl.__all__])
def test_every_public_name_can_be_imported_in_a_new_process(name: str) -> None:
    assert run(f"import foldline as fl; print(fl.{name} is not None, {name!r} in dir(fl))") == "True True"


def test_importing_submodules_does_not_shadow_names() -> None:
    code = """
import foldline.planning, foldline.folding, foldline.counting.tokenizer_json, foldline.counting.models
import foldline as fl
print(callable(fl.plan), callable(fl.compact), callable(fl.tokenizer_json), fl.models is foldline.counting.models)
"""
    assert run(code) == "True True True True"


def test_a_star_import_gives_all_names() -> None:
    assert run("from foldline import *; print(compact.__name__, plan.__name__, models.__name__)") == (
        "compact plan foldline.counting.models"
    )


def test_other_names_are_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'fold'"):
        _ = fl.fold  # type: ignore[attr-defined]
