"""I13: what was acknowledged is there after kill -9, whole and in order; at most one torn record a kill.

Only kills count that hit a write in progress. The counts `session_kills` and `database_kills` say how often; the seed
is `FOLDLINE_SEED`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from depth import cases
from unit.services import LASTING, postgres_url

SEED = os.environ.get("FOLDLINE_SEED", "1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.timeout(max(300, cases("session_kills") * 3))
@pytest.mark.parametrize("kind", LASTING)
def test_I13_what_was_acknowledged_outlives_kill_9(kind: str, tmp_path: Path) -> None:
    if kind == "postgresql":
        postgres_url()
    kills = cases("session_kills" if kind == "jsonl" else "database_kills")
    command = [sys.executable, str(Path(__file__).parent / "killing.py"), kind, str(tmp_path), str(kills), SEED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout)
    print(kind, counted)
    assert counted["kills"] == kills
    assert counted["acknowledged"] > kills  # else it shows nothing
    assert counted["compactions"] > 0
    if kind != "jsonl":
        assert counted["torn"] == 0
