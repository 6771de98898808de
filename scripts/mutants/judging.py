"""Runs the tests that reach a mutant, the fastest first, until one fails."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from building import Workshop

#: Tests of the crate: the binary, its test filter, and its environment.
RUST: list[tuple[str, tuple[str, ...], dict[str, str]]] = [
    ("integration", ("cases::",), {}),
    ("lib", ("rules::", "plan::", "prepared::", "fold::"), {}),
    ("integration", ("rules::",), {}),
    ("integration", ("proof::",), {"FOLDLINE_PROOF_LENGTH": "1", "FOLDLINE_PROOF_CASES": "2000"}),
    ("integration", ("proof::",), {"FOLDLINE_PROOF_LENGTH": "2", "FOLDLINE_PROOF_CASES": "20000"}),
]
#: Python tests that plan, validate and repair. Tests of strategies, stores and models would run after these at best.
PYTHON = (
    *(f"tests/property/test_{name}.py" for name in (
        "cases", "I1_partition", "I2_identity", "I3_groups", "I4_budget", "I5_oracle", "I6_idempotence", "I7_monotone",
        "I8_append", "I15_alternate", "I15_valid", "extras", "live", "repair",
    )),
    *(f"tests/unit/test_{name}.py" for name in (
        "batch", "compact", "fillers", "library_formats", "live", "native_formats", "peer_faults", "plan_batch",
        "plan_extras", "plan_variants", "planning", "quirks", "repair", "validation_document",
    )),
)  # fmt: skip
#: A process fails after its usual time multiplied by the first number, plus the second in seconds.
SLOWER, GRACE_S = 5, 10.0


@dataclass
class Run:
    """A process that runs tests."""

    name: str
    command: list[str]
    environment: dict[str, str]
    usual_s: float = 0.0
    reached: set[int] = field(default_factory=set)


class Tests:
    """All processes, each run once without a mutant to find its duration and the mutants that it reaches.

    Raises SystemExit if that run fails.
    """

    def __init__(self, workshop: Workshop, python: Path, files: tuple[str, ...]) -> None:
        self.tree = workshop.tree
        path = {"PYTHONPATH": str(workshop.tree / "python"), "FOLDLINE_ORACLE_CASES": "300"}
        pytest = [str(python), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"]
        self.runs = [
            Run(name, [str(workshop.binaries / name), "--test-threads", "1", *words], environment)
            for name, words, environment in RUST
        ] + [Run(file, [*pytest, file], path) for file in files]
        for run in self.runs:
            noted = workshop.folder / "reached.txt"
            noted.unlink(missing_ok=True)
            began = time.monotonic()
            if failed := self._failed(run, 0, 3600.0, {"FOLDLINE_MUTANTS_REACHED": str(noted)}):
                raise SystemExit(f"fails without a mutant: {failed}")
            run.usual_s = time.monotonic() - began
            run.reached = set(map(int, noted.read_text(encoding="utf-8").split())) if noted.exists() else set()
        self.runs.sort(key=lambda run: run.usual_s)

    def failed(self, number: int) -> str | None:
        """The first failing test of those that reach the mutant (all for 0, no mutant); None if all pass."""
        runs = [run for run in self.runs if not number or number in run.reached]
        return next(filter(None, (self._failed(run, number, SLOWER * run.usual_s + GRACE_S) for run in runs)), None)

    def _failed(self, run: Run, number: int, limit_s: float, more: dict[str, str] | None = None) -> str | None:
        switch = {"FOLDLINE_MUTANT": str(number), "RUST_BACKTRACE": "0"}
        process = subprocess.Popen(
            run.command, cwd=self.tree, env={**os.environ, **run.environment, **switch, **(more or {})},
            text=True, errors="replace", start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"timeout in {run.name}"
        if process.returncode == 0:
            return None
        return f"{run.name} {next((line.split()[1] for line in said.splitlines() if 'FAILED' in line), '')}".strip()
