"""Mutation testing of the rules and the planner: ``make mutants``, or ``.venv-mutants/bin/python scripts/mutants``.

Every mutant that cargo-mutants lists for `src-rust/rules` and `src-rust/plan` is judged by the tests of the crate and
the Python tests that reach it, each file in its own process. All mutants are in one build (`schemata.py`); those
that do not compile there are built alone, and are unbuildable if that fails too. It works on a copy; results are
written to `out/mutants/results.jsonl` at once, so that a run can be stopped and resumed: a killed mutant is not
tried again while its function is unchanged (`--fresh` tries all).
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from building import ROOT, Workshop
from judging import PYTHON, Tests
from mutants import Mutant, installed, listed
from results import KILLED, SURVIVED, UNBUILDABLE, Results, equivalents, summary

OUT = ROOT / "out" / "mutants"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cargo-mutants", metavar="FILE", help="the program; else it is built into the folder")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv" / "bin" / "python", help="that can run the tests")
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "mutants", help="where copy and build lie")
    parser.add_argument("--only", default="*", metavar="GLOB", help="judge mutants of these files alone")
    parser.add_argument("--tests", nargs="+", default=PYTHON, metavar="FILE", help="the Python tests to judge by")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="mutants that are judged at once")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--report", action="store_true", help="judge nothing: print what is known")
    return parser.parse_args()


def say(text: str) -> None:
    """Report the progress."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def judge(mutants: list[Mutant], tests: Tests, results: Results, jobs: int) -> None:
    """Judge mutants in the shared build."""

    def judged(mutant: Mutant) -> tuple[str | None, float]:
        began = time.monotonic()
        return tests.failed(mutant.number), time.monotonic() - began

    with ThreadPoolExecutor(jobs) as pool:
        for number, (mutant, (failed, seconds)) in enumerate(zip(mutants, pool.map(judged, mutants)), 1):
            results.add(mutant, KILLED if failed else SURVIVED, failed or "", seconds)
            if number % 50 == 0:
                say(f"{number} of {len(mutants)}")


def judge_alone(mutants: list[Mutant], workshop: Workshop, tests: Tests, results: Results) -> None:
    """Judge mutants that the shared build cannot contain, one build each."""
    for mutant in mutants:
        began, failed = time.monotonic(), None
        workshop.write_alone(mutant)
        outcome = UNBUILDABLE
        if not workshop.errors():
            workshop.build()
            failed = tests.failed(0)
            outcome = KILLED if failed else SURVIVED
        results.add(mutant, outcome, failed or "", time.monotonic() - began)


def main() -> int:
    """Judge open mutants and print the figures; 0 if every survivor has a recorded reason."""
    args = arguments()
    os.nice(10)
    workshop = Workshop(args.folder.absolute(), args.python.absolute())
    workshop.copy()
    mutants = listed(args.cargo_mutants or installed(workshop.folder / "tools"), workshop.tree)
    reasons = equivalents(mutants)
    results = Results(OUT / "results.jsonl", args.fresh)
    chosen = [mutant for mutant in results.open(mutants) if fnmatch.fnmatch(mutant.file, args.only)]
    if chosen and not args.report:
        say(f"{len(mutants)} mutants, {len(chosen)} to judge")
        together, unbuildable = workshop.write_together(chosen)
        workshop.build()
        for mutant in chosen:
            if mutant.number in unbuildable:
                results.add(mutant, UNBUILDABLE, "", 0.0)
        say(f"{len(together)} of them in one build")
        tests = Tests(workshop, args.python.absolute(), tuple(args.tests))
        say(f"tests: {sum(run.usual_s for run in tests.runs):.0f} s")
        judge([mutant for mutant in chosen if mutant.number in together], tests, results, args.jobs)
        alone = [mutant for mutant in chosen if mutant.number not in together | unbuildable]
        judge_alone(alone, workshop, tests, results)
    text = summary(mutants, results, reasons)
    (OUT / "summary.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if "survived: " not in text and "not judged" not in text and "but killed" not in text else 1


if __name__ == "__main__":
    sys.exit(main())
