"""benches/quality: the judge of named files, and the errors that readers judged."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> Any:
    file = ROOT / "benches" / "quality" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"quality_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judging() -> Any:
    return load("judging")


PATHS = ("/r/src/cli.rs", "/r/src/mod.rs", "/r/tests/mod.rs")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cli.rs was edited", ["/r/src/cli.rs"]),
        ("- /r/src/cli.rs\n- src/mod.rs", ["/r/src/cli.rs", "/r/src/mod.rs"]),
        ("mod.rs", []),
        ("see `tests/mod.rs`.", ["/r/tests/mod.rs"]),
        ("cli.rs.bak, my-cli.rs, cli.rsx", []),
        ("", []),
    ],
)
def test_a_file_is_named_by_its_distinguishing_part(judging: Any, text: str, named: list[str]) -> None:
    assert judging.Names(PATHS).named_in(text) == named


def test_a_constraint_is_kept_verbatim(judging: Any) -> None:
    assert judging.holds_verbatim("## Constraints\n- For now:  reply in\nbullet points.", "Reply in bullet points.")
    assert not judging.holds_verbatim("Reply in points.", "Reply in bullet points.")


def test_readers_agree_on_open_and_resolved_errors(shared: Path) -> None:
    rows = {row.state: row for row in load("errors").measure(shared.parent)}
    assert rows["open"].agreed >= 70
    assert rows["open"].others == ()
    assert rows["resolved"].agreed >= 74
    assert len(rows["resolved"].others) <= 4
