"""Runs tests against a mutant: the cheapest that can tell first."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from building import HERE, Workshop

_RULES = ("rules::", "plan::", "live::", "apply::")
#: Tests of the crate by binary: the filters of their names, and the environment. Quick ones, then those that come last.
QUICK: list[tuple[str, tuple[str, ...], dict[str, str]]] = [
    ("integration", ("cases::",), {}),
    ("lib", _RULES, {}),
    ("integration", ("rules::",), {}),
]
LATE: list[tuple[str, tuple[str, ...], dict[str, str]]] = [
    ("integration", ("proof::",), {"FOLDLINE_PROOF_LENGTH": "1", "FOLDLINE_PROOF_CASES": "2000"}),
    ("integration", ("proof::",), {"FOLDLINE_PROOF_LENGTH": "2", "FOLDLINE_PROOF_CASES": "20000"}),
]
#: The Python tests that plan, validate and repair. Those of strategies, stores and models come after these at best.
PYTHON = (
    "tests/property/test_cases.py",
    "tests/property/test_I1_partition.py",
    "tests/property/test_I2_identity.py",
    "tests/property/test_I3_groups.py",
    "tests/property/test_I4_budget.py",
    "tests/property/test_I5_oracle.py",
    "tests/property/test_I6_idempotence.py",
    "tests/property/test_I7_monotone.py",
    "tests/property/test_I8_append.py",
    "tests/property/test_I15_alternate.py",
    "tests/property/test_I15_valid.py",
    "tests/property/test_extras.py",
    "tests/property/test_live.py",
    "tests/property/test_repair.py",
    "tests/unit/test_batch.py",
    "tests/unit/test_compact.py",
    "tests/unit/test_fillers.py",
    "tests/unit/test_library_formats.py",
    "tests/unit/test_live.py",
    "tests/unit/test_native_formats.py",
    "tests/unit/test_peer_faults.py",
    "tests/unit/test_plan_batch.py",
    "tests/unit/test_plan_extras.py",
    "tests/unit/test_plan_variants.py",
    "tests/unit/test_planning.py",
    "tests/unit/test_quirks.py",
    "tests/unit/test_repair.py",
    "tests/unit/test_validation_document.py",
)
#: A test that takes longer than this many times its usual time, and so many seconds, has failed.
SLOWER, GRACE_S = 5, 5.0


class RustTests:
    """The binaries of the crate's tests; each mutant is a process."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.usual: dict[str, float] = {}
        self.reached: dict[str, set[int]] = {}
        noted = workshop.folder / "reached.txt"
        for run in QUICK + LATE:
            noted.unlink(missing_ok=True)
            began = time.monotonic()
            if failed := self._failed(run, 0, 600.0, {"FOLDLINE_MUTANTS_REACHED": str(noted)}):
                raise SystemExit(f"fails without a mutant: {failed}")
            self.usual[str(run)] = time.monotonic() - began
            self.reached[str(run)] = set(map(int, noted.read_text(encoding="utf-8").split()))

    def failed(self, number: int) -> str | None:
        """The binary that a mutant fails in, and one of its tests; None if the quick ones pass."""
        return self._first(QUICK, number)

    def failed_late(self, number: int) -> str | None:
        """The same of those that take long."""
        return self._first(LATE, number)

    def _first(self, runs: list[tuple[str, tuple[str, ...], dict[str, str]]], number: int) -> str | None:
        for run in runs:
            if number and number not in self.reached[str(run)]:
                continue
            if found := self._failed(run, number, SLOWER * self.usual[str(run)] + GRACE_S):
                return found
        return None

    def _failed(
        self,
        run: tuple[str, tuple[str, ...], dict[str, str]],
        number: int,
        timeout_s: float,
        also: dict[str, str] | None = None,
    ) -> str | None:
        name, words, more = run
        environment = {**os.environ, **more, **(also or {}), "FOLDLINE_MUTANT": str(number), "RUST_BACKTRACE": "0"}
        process = subprocess.Popen(
            [self.workshop.binaries / name, "--test-threads", "1", *words],
            cwd=self.workshop.tree, env=environment, text=True, errors="replace", start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"timeout in {name}"
        if process.returncode == 0:
            return None
        test = next((line.split()[1] for line in said.splitlines() if line.endswith("... FAILED")), "")
        return f"{name} {test}".strip()


class PythonTests:
    """One process of pytest that forks for each mutant, so that nothing is imported or collected again."""

    def __init__(self, workshop: Workshop, python: Path, most: int, files: tuple[str, ...]) -> None:
        self.workshop, self.python, self.most, self.files = workshop, python, most, files
        self.seconds: dict[str, float] = {}
        self.reaching: dict[int, list[str]] = {}
        self.kills: Counter[str] = Counter()
        self.process: subprocess.Popen[str] | None = None
        self.answers: Any = None

    def _start(self, job: str) -> None:
        reading, writing = os.pipe()
        more = {
            "FOLDLINE_MUTANTS_JOB": job,
            "FOLDLINE_MUTANTS_ANSWERS": str(writing),
            "FOLDLINE_MUTANTS_NUMBER": str(self.most),
            "FOLDLINE_ORACLE_CASES": os.environ.get("FOLDLINE_ORACLE_CASES", "300"),
            "PYTHONPATH": os.pathsep.join([str(self.workshop.tree / "python"), str(HERE)]),
        }
        options = ["-q", "-p", "forks", "-p", "no:cacheprovider", "-p", "no:randomly", "--timeout", "0"]
        log = (self.workshop.folder / f"{job}.log").open("w", encoding="utf-8")
        self.process = subprocess.Popen(
            [self.python, "-m", "pytest", *options, *self.files],
            cwd=self.workshop.tree, env={**os.environ, **more}, text=True, pass_fds=[writing],
            stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        os.close(writing)
        self.answers = os.fdopen(reading, encoding="utf-8")

    def learn(self, built: str) -> list[str]:
        """Run every test once, unmutated: how long each takes, which mutants it reaches. Those that failed.

        `built` stands for the build; what was learned of it with the same tests is not learned again.
        """
        key = self._key(built)
        kept = self.workshop.folder / "reach.json"
        if kept.exists() and (learned := json.loads(kept.read_text(encoding="utf-8"))).get("key") == key:
            self.seconds = learned["seconds"]
            self.reaching = {int(number): tests for number, tests in learned["reaching"].items()}
            return []
        self._start("reach")
        failed = []
        for line in self.answers:
            row = json.loads(line)
            if not row["passed"]:
                failed.append(row["test"])
                continue
            self.seconds[row["test"]] = row["seconds"]
            for number in row["reached"]:
                self.reaching.setdefault(number, []).append(row["test"])
        self.stop()
        if not self.seconds:
            raise SystemExit(f"no Python test ran: see {self.workshop.folder / 'reach.log'}")
        if not failed:
            text = json.dumps({"key": key, "seconds": self.seconds, "reaching": self.reaching})
            kept.write_text(text, encoding="utf-8")
        return failed

    def _key(self, built: str) -> str:
        """Of the build and of all that is Python."""
        tree = self.workshop.tree
        files = sorted([*(tree / "tests").rglob("*.py"), *(tree / "python").rglob("*.py")])
        parts = [built, *self.files, *(file.read_text(encoding="utf-8") for file in files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def failed(self, number: int) -> str | None:
        """The first test that fails, of those that reach the mutant (of all for 0, no mutant); None if all pass."""
        # Quick ones first, and the more a test has killed, the earlier.
        some = self.reaching.get(number, []) if number else list(self.seconds)
        tests = sorted(some, key=lambda test: (self.seconds[test] + 0.005) / (1 + self.kills[test]))
        if not tests:
            return None
        if self.process is None:
            self._start("judge")
            self.answers.readline()
        assert self.process is not None
        assert self.process.stdin is not None
        limits_s = {test: SLOWER * self.seconds[test] + GRACE_S for test in tests}
        job = {"mutant": number, "tests": tests, "limits_s": limits_s}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self.answers.readline()
        if not answer:
            raise SystemExit(f"pytest ended: see {self.workshop.folder / 'judge.log'}")
        failed: str | None = json.loads(answer)["failed"]
        if failed:
            self.kills[failed.removeprefix("timeout in ")] += 1
        return failed

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait()
            self.answers.close()
            self.process = None
