"""How many cases each test takes.

FOLDLINE_DEPTH=quick   the default: `make test`
FOLDLINE_DEPTH=deep    `make check` and CI; also runs the tests marked `deep`
FOLDLINE_DEPTH=soak    `make soak`: hours

The counts are in `depth.json`, which the tests of the crate read too. The cases are drawn from the same seeds at every
depth: the quick ones are the first of the deep ones. A variable with the name of a count sets that count alone, for
instance FOLDLINE_ORACLE_CASES=50000.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Final

DEPTHS: Final = ("quick", "deep", "soak")
TESTS: Final = Path(__file__).resolve().parent
TABLE: Final[dict[str, dict[str, int]]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
DEEPER_ONLY: Final = bool(os.environ.get("FOLDLINE_DEEPER_ONLY"))
IMPORT: Final = re.compile(r"^\s*from ([\w.]+) import|^\s*import ([\w.]+)", re.MULTILINE)

DEPTH: Final = os.environ.get("FOLDLINE_DEPTH") or "quick"
if DEPTH not in DEPTHS:
    raise ValueError(f"FOLDLINE_DEPTH is one of {', '.join(DEPTHS)}")


def cases(name: str) -> int:
    """The number of cases of a count in the table."""
    return int(os.environ.get(f"FOLDLINE_{name.upper()}") or TABLE[name][DEPTH])


@cache
def grows(path: Path) -> bool:
    """Whether a file of tests takes more cases when the run is deeper: by the table or hypothesis, also in a helper."""
    text = path.read_text(encoding="utf-8")
    for module in (found[1] or found[2] for found in IMPORT.finditer(text)):
        if module in ("depth", "hypothesis"):
            return True
        parts = module.lstrip(".").split(".")
        folder = path.parent if module.startswith(".") else TESTS
        if parts[0] == "tests":
            del parts[0]
        helper = folder.joinpath(*parts).with_suffix(".py")
        if parts and helper.is_file() and helper != path and grows(helper):
            return True
    return False
