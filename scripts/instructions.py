#!/usr/bin/env python3
"""Compare the instructions of fixed work with a budget.

    python scripts/instructions.py [BINARY] [--update] [--only TEXT]

BINARY is the bench target `instructions`; by default cargo builds it. It runs under `valgrind --tool=callgrind`,
twice per case: the instructions of one repeat are the difference between three repeats and one, halved, so that startup
and first touch cost nothing. The budget is benches/instructions.json. More than 3 % above it fails, and so does more
than 3 % below: an improvement must be recorded too, with `--update`. A case `… n` has a twin `… 2n` on twice the
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
#: The largest allowed ratio of instructions for twice the text.
MAX_GROWTH = 2.2
#: Callgrind does not support AVX-512; every x86-64 processor of the last ten years runs this engine.
ENGINE = "avx2"
WORKERS = 2


def build() -> Path:
    """The bench target, built like the release."""
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
    """The compiler that built the binary; another compiler may generate other instructions."""
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def write(found: dict[str, int], previous: dict[str, Any]) -> None:
    """The budget; cases that were not measured keep their values."""
    cases = previous.get("instructions", {}) | found
    budget = {"engine": ENGINE, "compiler": compiler(), "headroom": HEADROOM, "instructions": cases}
    BUDGET.write_text(json.dumps(budget, indent=2) + "\n", encoding="utf-8")


def judge(found: dict[str, int], cases: list[str], budget: dict[str, Any]) -> int:
    """Prints a table; returns the number of cases out of budget, or missing in the budget or the program."""
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
    """Prints the ratios for twice the text; returns the number of cases that grow faster than the text."""
    twins = {case: case[: -len("n")] + "2n" for case in found if case.endswith(" n")}
    growths = {case: found[twin] / found[case] for case, twin in twins.items() if twin in found}
    for case, growth in growths.items():
        print(f"{case:34} {growth:14.2f} times for twice the text{' NOT LINEAR' if growth > MAX_GROWTH else ''}")
    return sum(growth > MAX_GROWTH for growth in growths.values())


def main() -> int:
    """Measures, and compares or records."""
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
