"""Mutation testing of the rules and the planner: ``make mutants``, or ``.venv-mutants/bin/python scripts/mutants``.

Every mutant that cargo-mutants lists for `src-rust/rules` and `src-rust/plan` is judged by the tests of the crate, and
where these pass by the Python tests that reach it. All mutants are in one build (`schemata.py`); those that do not
compile there are built alone, and are unbuildable if that fails too. It works on a copy; what was found is written to
`out/mutants/results.jsonl` at once, so that a run can be stopped and gone on with: what was killed is not tried again
while its function is what it was (`--fresh` tries all).
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import time
from pathlib import Path

from alone import judge_alone
from building import ROOT, Workshop
from judging import PYTHON, PythonTests, RustTests
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
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--report", action="store_true", help="judge nothing: print what is known")
    return parser.parse_args()


def say(text: str) -> None:
    """Tell how far it is."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def judge(mutants: list[Mutant], results: Results, rust: RustTests, python: PythonTests) -> None:
    """Judge mutants of the one build, first by the crate's tests, then by Python's."""
    survivors = []
    for number, mutant in enumerate(mutants, 1):
        began = time.monotonic()
        if failed := rust.failed(mutant.number):
            results.add(mutant, KILLED, failed, time.monotonic() - began)
        else:
            survivors.append(mutant)
        if number % 100 == 0:
            say(f"tests of the crate: {number} of {len(mutants)}, {len(survivors)} pass them")
    for number, mutant in enumerate(survivors, 1):
        began = time.monotonic()
        failed = python.failed(mutant.number) or rust.failed_late(mutant.number)
        results.add(mutant, KILLED if failed else SURVIVED, failed or "", time.monotonic() - began)
        if number % 50 == 0:
            say(f"Python tests: {number} of {len(survivors)}")
    python.stop()


def main() -> int:
    """Judge what is open and print the figures; 0 if nothing survives that is not argued."""
    args = arguments()
    os.nice(10)
    workshop = Workshop(args.folder.absolute(), args.python.absolute())
    workshop.copy()
    mutants = listed(args.cargo_mutants or installed(workshop.folder / "tools"), workshop.tree)
    reasons = equivalents(mutants)
    results = Results(OUT / "results.jsonl", args.fresh)
    began = time.monotonic()
    if not args.report:
        chosen = [m for m in results.open(mutants) if fnmatch.fnmatch(m.file, args.only)]
        say(f"{len(mutants)} mutants, {len(chosen)} to judge")
        together, unbuildable = workshop.build_together(mutants)
        for mutant in chosen:
            if mutant.number in unbuildable:
                results.add(mutant, UNBUILDABLE, "", 0.0)
        chosen = [m for m in chosen if m.number not in unbuildable]
        say(f"{len(together)} of them in one build")
        rust = RustTests(workshop)
        say("tests of the crate: " + " + ".join(f"{s:.2f} s" for s in rust.usual.values()))
        python = PythonTests(workshop, args.python.absolute(), max(m.number for m in mutants), tuple(args.tests))
        for test in python.learn(workshop.digest()):
            say(f"fails without a mutant, left out: {test}")
        say(f"Python tests: {len(python.seconds)} in {sum(python.seconds.values()):.0f} s")
        judge([m for m in chosen if m.number in together], results, rust, python)
        judge_alone(workshop, [m for m in chosen if m.number not in together], results, rust, python)
    text = summary(mutants, results, reasons)
    (OUT / "summary.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    say(f"{(time.monotonic() - began) / 60:.0f} min")
    return 0 if "survived: " not in text and "not judged" not in text and "but killed" not in text else 1


if __name__ == "__main__":
    sys.exit(main())
