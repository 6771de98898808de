"""How many cases each test takes.

FOLDLINE_DEPTH=quick   the default: `make test`
FOLDLINE_DEPTH=deep    `make check` and CI; also runs the tests marked `deep`
FOLDLINE_DEPTH=soak    `make soak`: hours

The counts are in `depth.json`, which the tests of the crate read too. The cases are drawn from the same seeds at every
depth: the quick ones are the first of the deep ones. A variable with the name of a count sets that count alone, for
instance FOLDLINE_ORACLE_CASES=50000.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

DEPTHS: Final = ("quick", "deep", "soak")
TESTS: Final = Path(__file__).resolve().parent
TABLE: Final[dict[str, dict[str, int]]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
DEEPER_ONLY: Final = bool(os.environ.get("FOLDLINE_DEEPER_ONLY"))
SOURCES: Final = ("depth", "hypothesis", "hypothesis.stateful")

DEPTH: Final = os.environ.get("FOLDLINE_DEPTH") or "quick"
if DEPTH not in DEPTHS:
    raise ValueError(f"FOLDLINE_DEPTH is one of {', '.join(DEPTHS)}")


def cases(name: str) -> int:
    """The number of cases of a count in the table."""
    return int(os.environ.get(f"FOLDLINE_{name.upper()}") or TABLE[name][DEPTH])


@cache
def growing_names(path: Path) -> frozenset[str]:
    """The names of a file of tests that take more cases when the run is deeper.

    They use the table or hypothesis: themselves, by another name of the file, by a fixture, or by a helper.
    """
    growing: set[str] = set()
    uses: dict[str, set[str]] = {}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            module = "." * statement.level + (statement.module or "")
            for each in statement.names:
                helper, inner = helper_of(path, module), helper_of(path, f"{module.rstrip('.')}.{each.name}")
                if (
                    module in SOURCES
                    or (helper and each.name in growing_names(helper))
                    or (inner and growing_names(inner))
                ):
                    growing.add(each.asname or each.name)
        elif isinstance(statement, ast.Import):
            growing |= {each.asname or each.name for each in statement.names if each.name in SOURCES}
        else:
            used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            used |= {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
            for name in bound(statement):
                uses.setdefault(name, set()).update(used)
    while more := {name for name, used in uses.items() if used & growing} - growing:
        growing |= more
    return frozenset(growing)


def bound(statement: ast.stmt) -> Iterator[str]:
    """The names of the file that a statement binds."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    else:
        nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        yield from (node.id for node in nodes if isinstance(node.ctx, ast.Store))


def helper_of(path: Path, module: str) -> Path | None:
    """The file of tests that an import in another one names."""
    parts = module.lstrip(".").split(".")
    folder = path.parent if module.startswith(".") else TESTS
    if parts[0] == "tests":
        del parts[0]
    helper = folder.joinpath(*parts).with_suffix(".py") if parts and parts[0] else None
    return helper if helper and helper.is_file() and helper != path else None
