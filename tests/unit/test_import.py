"""The cost and the names of `import foldline`: a process that only counts loads nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import foldline as fl

#: All modules that a first count may import beyond those of a bare interpreter. The import of `typing` alone takes four
#: times as long as that of these.
FIRST_COUNT = ["__future__", "foldline", "foldline._core", "foldline.errors"]


def run(code: str) -> str:
    """The output of a new process."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    "count",
    [
        "foldline.count_tokens('hello world')",
        "foldline.TokenCounter('o200k_base').count('hello world')",
        "foldline.TokenCounter('chars/4').count_messages([{'role': 'user', 'content': 'hello world'}]).total",
        "foldline.TokenCounter.for_model('gpt-5').fits('hello world', 10)",
    ],
)
def test_a_first_count_imports_only_the_core(count: str) -> None:
    code = f"""
import sys
before = set(sys.modules)
import foldline
{count}
print(sorted(set(sys.modules) - before))
"""
    # Without `site`, no module that an environment imports at start hides one that foldline imports.
    path = [str(Path(fl.__file__).parents[1])]
    bare = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path += {path}\n{code}"]
    assert subprocess.run(bare, check=True, capture_output=True, text=True).stdout.strip() == str(FIRST_COUNT)


@pytest.mark.parametrize("name", [*fl.__all__])
def test_every_public_name_can_be_imported_in_a_new_process(name: str) -> None:
    assert run(f"import foldline as fl; print(fl.{name} is not None, {name!r} in dir(fl))") == "True True"


def test_importing_submodules_does_not_shadow_names() -> None:
    code = """
import foldline.planning, foldline.folding, foldline.counting.tokenizer_json, foldline.counting.models
import foldline as fl
print(callable(fl.plan), callable(fl.compact), callable(fl.counting.tokenizer_json))
print(fl.models is foldline.counting.models)
"""
    assert run(code).split() == ["True"] * 4


def test_a_star_import_gives_all_names() -> None:
    assert run("from foldline import *; print(compact.__name__, plan.__name__, models.__name__)") == (
        "compact plan foldline.counting.models"
    )


def test_other_names_are_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'fold'"):
        _ = fl.fold  # type: ignore[attr-defined]
