"""A pytest plugin that judges mutants in forked children: `python -m pytest -p forks …`.

With FOLDLINE_MUTANTS_JOB=reach every test runs once, unmutated, and a line of JSON says how long it took and which
mutants it reached. With FOLDLINE_MUTANTS_JOB=judge the tests are collected once; then each line of JSON on standard
input names a mutant, tests and how long each may take, and is answered by a line that says which test failed. Answers
go to the file descriptor FOLDLINE_MUTANTS_ANSWERS.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, settings

# A failing example is enough; a small one takes long. Profiles that are made later inherit this.
settings.register_profile("no shrinking", phases=(Phase.explicit, Phase.generate))
settings.load_profile("no shrinking")

_ANSWERS = int(os.environ["FOLDLINE_MUTANTS_ANSWERS"])
_JOBS = os.fdopen(os.dup(0), encoding="utf-8")  # pytest takes standard input away from tests
_failed: list[str] = []


def _tell(answer: dict[str, Any]) -> None:
    os.write(_ANSWERS, json.dumps(answer).encode() + b"\n")


def _switches() -> Any:
    import foldline._core

    library = ctypes.CDLL(foldline._core.__file__)
    library.foldline_mutants_reached.restype = ctypes.c_void_p
    return library


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what failed; an error of a fixture counts too."""
    if report.failed:
        _failed.append(report.nodeid)


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests in turn."""
    if os.environ["FOLDLINE_MUTANTS_JOB"] == "reach":
        _reach(session)
    else:
        _judge(session)
    return True


def _run(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    for item, following in zip(items, [*items[1:], None]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        yield item


def _reach(session: pytest.Session) -> None:
    number = int(os.environ["FOLDLINE_MUTANTS_NUMBER"]) + 1
    address = _switches().foldline_mutants_reached()
    bits = (ctypes.c_ubyte * number).from_address(address)
    ctypes.memset(address, 0, number)
    began = time.perf_counter()
    for item in _run(session.items):
        reached = [mutant for mutant in range(1, number) if bits[mutant]]
        seconds = round(time.perf_counter() - began, 4)
        _tell({"test": item.nodeid, "seconds": seconds, "reached": reached, "passed": item.nodeid not in _failed})
        ctypes.memset(address, 0, number)
        began = time.perf_counter()


def _judge(session: pytest.Session) -> None:
    library = _switches()
    by_id = {item.nodeid: item for item in session.items}
    _tell({"tests": len(by_id)})
    for line in _JOBS:
        job = json.loads(line)
        items = [by_id[name] for name in job["tests"] if name in by_id]
        _tell({"failed": _in_a_child(library, job["mutant"], items, job["limits_s"])})


def _in_a_child(library: Any, mutant: int, items: list[pytest.Item], limits_s: dict[str, float]) -> str | None:
    """The first test that fails, that the child dies in, or that takes longer than its limit; None if there is none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        _in_the_child(library, mutant, items, writing)
    os.close(writing)
    late, count = False, 0
    while not late and count < len(items):
        late = not select.select([reading], [], [], limits_s[items[count].nodeid])[0]
        # One byte for each test that passed; none once the child has ended.
        if not late and not os.read(reading, 1):
            break
        count += not late
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if count == len(items):
        return None
    return ("timeout in " if late else "") + items[count].nodeid


def _in_the_child(library: Any, mutant: int, items: list[pytest.Item], writing: int) -> None:
    """Never returns. Writes a line for each test that passes."""
    try:
        os.environ["FOLDLINE_MUTANT"] = str(mutant)  # for processes that tests start
        library.foldline_mutant_choose(mutant)
        for _ in _run(items):
            if _failed:
                break
            os.write(writing, b"\n")
    finally:
        os._exit(0)
