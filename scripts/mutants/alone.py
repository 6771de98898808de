"""Mutants that the one build does not take: each is written into the copy as cargo-mutants would, and built alone."""

from __future__ import annotations

import time

from building import ROOT, Workshop
from judging import PythonTests, RustTests
from mutants import Mutant
from results import KILLED, SURVIVED, UNBUILDABLE, Results


def written(mutant: Mutant, source: bytes) -> bytes:
    """The source with this one change."""
    rest = source[mutant.end :]
    if mutant.genre in ("MatchArm", "StructField"):
        rest = rest.removeprefix(b",")
    return source[: mutant.start] + mutant.replacement.encode() + rest


def judge_alone(
    workshop: Workshop, mutants: list[Mutant], results: Results, rust: RustTests, python: PythonTests
) -> None:
    """Judge mutants one build each; those that do not compile are unbuildable."""
    if not mutants:
        return
    workshop.copy()
    workshop.write([])
    workshop.forget()
    for mutant in mutants:
        began = time.monotonic()
        source = (ROOT / mutant.file).read_bytes()
        target = workshop.tree / mutant.file
        target.write_bytes(written(mutant, source))
        if workshop.errors():
            outcome, failed = UNBUILDABLE, None
        else:
            workshop.build_tests()
            if not (failed := rust.failed(0)):
                workshop.build_extension()
                failed = python.failed(0) or rust.failed_late(0)
                python.stop()
            outcome = KILLED if failed else SURVIVED
        results.add(mutant, outcome, failed or "", time.monotonic() - began)
        target.write_bytes(source)
