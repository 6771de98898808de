#!/usr/bin/env python3
"""Hold the instructions that fixed work takes against a budget.

    python scripts/instructions.py [BINARY] [--update] [--only TEXT]

BINARY is the bench target `instructions`; without it cargo builds it. It runs under `valgrind --tool=callgrind`,
twice a case: the instructions of one repeat are the difference between three repeats and one, halved, so that start
and first touch cost nothing. The budget is benches/instructions.json. More than 3 % above it fails, and so does more
than 3 % below: what became faster must be recorded too, with `--update`. A case `… n` has a twin `… 2n` on twice the
text: more than 2.2 times the instructions fails, since that is not linear. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "benches" / "instructions.json"
HEADROOM = 0.03
#: The most that twice the text may take.
MAX_GROWTH = 2.2
#: Callgrind knows no AVX-512, so this engine runs on every x86-64 processor of the last ten years.
ENGINE = "avx2"
WORKERS = 2


def build() -> Path:
    """The bench target, built as the release is."""
    command = ["cargo", "bench", "--locked", "--no-run", "--bench", "instructions"]
    command += ["--message-format", "json-render-diagnostics"]
    messages = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    built = [message.get("executable") for message in map(json.loads, messages)]
    return Path(next(path for path in reversed(built) if path))


def run(binary: Path, case: str, repeats: int) -> tuple[int, str, str]:
    """Instructions of a whole run, its checksum and its engine."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/out",
            str(binary),
            case,
            str(repeats),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    collected = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode or not collected:
        raise SystemExit(f"{case}: {done.stderr.strip()}")
    checksum, engine = done.stdout.split()[-2:]
    return int(collected[1]), checksum, engine


def measure(binary: Path, case: str) -> int:
    """Instructions of one repeat."""
    once, checksum, engine = run(binary, case, 1)
    thrice, tripled, _ = run(binary, case, 3)
    if int(tripled) != 3 * int(checksum):
        raise SystemExit(f"{case}: the checksum of three repeats is not three times that of one")
    if engine != ENGINE:
        raise SystemExit(f"{case}: the engine is {engine}, the budget is for {ENGINE}: this processor cannot check it")
    return (thrice - once) // 2


def compiler() -> str:
    """The compiler that built the binary; another one may take other instructions."""
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def write(found: dict[str, int], previous: dict[str, Any]) -> None:
    """The budget, cases that were not measured as they were."""
    cases = previous.get("instructions", {}) | found
    budget = {"engine": ENGINE, "compiler": compiler(), "headroom": HEADROOM, "instructions": cases}
    BUDGET.write_text(json.dumps(budget, indent=2) + "\n", encoding="utf-8")


def judge(found: dict[str, int], cases: list[str], budget: dict[str, Any]) -> int:
    """Prints a table; the number of cases that are out of budget, or not in it, or in it alone."""
    allowed = budget.get("instructions", {})
    bad = 0
    print(f"{'case':34} {'instructions':>14} {'budget':>14} {'':>8}")
    for case, instructions in found.items():
        if case not in allowed:
            print(f"{case:34} {instructions:14,} {'none':>14}")
            bad += 1
            continue
        change = instructions / allowed[case] - 1
        outside = abs(change) > HEADROOM
        bad += outside
        verdict = (" MORE" if change > 0 else " LESS: record it") if outside else ""
        print(f"{case:34} {instructions:14,} {allowed[case]:14,} {change:+8.1%}{verdict}")
    for case in allowed.keys() - set(cases):
        print(f"{case}: in the budget, but not a case any more")
        bad += 1
    return bad


def judge_growth(found: dict[str, int]) -> int:
    """Prints what twice the text takes; the number of cases that grow faster than the text."""
    twins = {case: case[: -len("n")] + "2n" for case in found if case.endswith(" n")}
    growths = {case: found[twin] / found[case] for case, twin in twins.items() if twin in found}
    for case, growth in growths.items():
        print(f"{case:34} {growth:14.2f} times for twice the text{' NOT LINEAR' if growth > MAX_GROWTH else ''}")
    return sum(growth > MAX_GROWTH for growth in growths.values())


def main() -> int:
    """Measure, and compare or record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("binary", type=Path, nargs="?")
    parser.add_argument("--update", action="store_true", help="write the budget instead of comparing with it")
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    args = parser.parse_args()

    if not shutil.which("valgrind"):
        print("valgrind is needed (on Debian: apt-get install valgrind)", file=sys.stderr)
        return 2
    binary = (args.binary or build()).absolute()
    listed = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    cases = [case for case in listed if args.only in case]
    with ThreadPoolExecutor(WORKERS) as pool:
        found = dict(zip(cases, pool.map(lambda case: measure(binary, case), cases), strict=True))
    budget = json.loads(BUDGET.read_text(encoding="utf-8")) if BUDGET.exists() else {}
    if args.update:
        write(found, budget)
    bad = judge(found, listed, json.loads(BUDGET.read_text(encoding="utf-8")) if args.update else budget)
    not_linear = judge_growth(found)
    if bad and not args.update and budget.get("compiler") != compiler():
        print(f"The budget was recorded with {budget.get('compiler')}, this is {compiler()}.")
    print(f"{len(found)} cases, {bad} out of budget, {not_linear} not linear")
    return 1 if bad or not_linear else 0


if __name__ == "__main__":
    sys.exit(main())
