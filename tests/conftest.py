"""Which tests run, in which surroundings, and that none is skipped where all must run.

A test that this run is not for is left out, not skipped: `SELECTED` says which markers need what. In CI
(FOLDLINE_NO_SKIPS) a test that is skipped all the same fails.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from depth import DEEPER_ONLY, DEPTH, TESTS, cases, growing_names

ROOT = Path(__file__).resolve().parents[1]

# A shell that starts a job in the background lets it ignore SIGINT and SIGQUIT, `nohup` SIGHUP. Python then installs no
# handler for Ctrl-C, and programs started here would inherit that: the tests send these signals and expect an effect.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _name in ("SIGQUIT", "SIGHUP"):
    if signal.getsignal(getattr(signal, _name, signal.SIGTERM)) is signal.SIG_IGN:
        signal.signal(getattr(signal, _name), signal.SIG_DFL)

# No test depends on the terminal that it happens to run in.
for _name in (
    "COLUMNS",
    "LINES",
    "FORCE_COLOR",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "PY_COLORS",
    "TTY_COMPATIBLE",
):
    os.environ.pop(_name, None)

# tiktoken looks here for its rank files and checks their hashes itself; `make` fills the folder.
os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(ROOT / ".venv" / "tiktoken-cache"))

SHARED = Path(os.environ.get("FOLDLINE_SHARED") or ROOT.parent / "shared")


def may_mount() -> bool:
    """Whether this user may mount a file system, in a namespace of its own."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


#: A test with one of these markers is left out unless the condition holds.
SELECTED = {
    "deep": DEPTH != "quick",
    "service": bool(os.environ.get("FOLDLINE_REQUIRE_SERVICES")),
    "engine": bool(os.environ.get("FOLDLINE_REQUIRE_ENGINES")),
    "browser": bool(os.environ.get("FOLDLINE_REQUIRE_BROWSER")),
    "shared": (SHARED / "data").is_dir() or bool(os.environ.get("FOLDLINE_NO_SKIPS")),
    "llm": bool(os.environ.get("FOLDLINE_LLM_PYTHON")),
    "mount": may_mount(),
    "manual": bool(os.environ.get("FOLDLINE_MANUAL")),
}

settings.register_profile(
    "foldline",
    max_examples=cases("hypothesis_examples"),
    derandomize=DEPTH != "soak",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("foldline")


def pytest_report_header() -> str:
    """Say how deep this run is."""
    left_out = ", ".join(name for name, wanted in SELECTED.items() if not wanted) or "nothing"
    return f"depth: {DEPTH}{', deeper tests only' if DEEPER_ONLY else ''}; left out: {left_out}"


def takes_more_cases(item: pytest.Item) -> bool:
    """Whether a test takes more cases when the run is deeper, itself or by one of its fixtures."""
    if TESTS not in item.path.parents:
        return False
    name = item.nodeid.split("::")[1].partition("[")[0]
    fixtures = set(getattr(item, "fixturenames", ()))
    inherited = (folder / "conftest.py" for folder in item.path.parents if folder.is_relative_to(TESTS))
    return name in growing_names(item.path) or any(
        not fixtures.isdisjoint(growing_names(file)) for file in inherited if file.is_file()
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run is not for."""
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.shared)
    left_out = {name for name, wanted in SELECTED.items() if not wanted}

    def runs(item: pytest.Item) -> bool:
        marks = {mark.name for mark in item.iter_markers()}
        if not left_out.isdisjoint(marks):
            return False
        return not DEEPER_ONLY or not marks.isdisjoint(("deep", "service")) or takes_more_cases(item)

    deselected = [item for item in items if not runs(item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        gone = set(deselected)
        items[:] = [item for item in items if item not in gone]


def fail_where_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure where every test must run."""
    if os.environ.get("FOLDLINE_NO_SKIPS") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where every test must run: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Skips in CI fail."""
    report = yield
    fail_where_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """Files that are skipped as a whole fail too."""
    report = yield
    fail_where_skipped(report)
    return report


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the recorded transcripts; a test that takes it is marked `shared`."""
    assert (SHARED / "data").is_dir(), "no recorded transcripts (set FOLDLINE_SHARED)"
    return SHARED / "data"
