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
from pathlib import Path
from typing import Final

DEPTHS: Final = ("quick", "deep", "soak")
TABLE: Final[dict[str, dict[str, int]]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

DEPTH: Final = os.environ.get("FOLDLINE_DEPTH") or "quick"
if DEPTH not in DEPTHS:
    raise ValueError(f"FOLDLINE_DEPTH is one of {', '.join(DEPTHS)}")


def cases(name: str) -> int:
    """The number of cases of a count in the table."""
    return int(os.environ.get(f"FOLDLINE_{name.upper()}") or TABLE[name][DEPTH])
