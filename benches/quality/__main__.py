"""The content of summaries: ``make bench-quality``, or ``benches/quality [--only NAMES] [--seeds FIRST-LAST]``.

Five measures, all offline and without a model: files that a summary names, the planted statements of
compaction-conformance-kit, the side constraints of COMPINT, the size of folds, and errors called open or resolved
against the judgement of readers. Results are printed and written to out/quality.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Seeds that were not used while the library was developed; 1-20 and 1001-1200 were.
SEEDS = "2001-2200"
#: Conversations and the number of tokens of each.
COMPINT = (("sessions", 16_000), ("sessions", 48_000), ("dialogues", 4_000))


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="files,kit,compint,growth,errors", help="measures, separated by commas")
    parser.add_argument("--seeds", default=SEEDS, help="first and last seed of the kit's sessions")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "quality", help="folder of the results")
    args = parser.parse_args()
    shared = Path(os.environ["FOLDLINE_SHARED"]) if "FOLDLINE_SHARED" in os.environ else None
    first, _, last = args.seeds.partition("-")
    results: dict[str, Any] = {}
    for name in args.only.split(","):
        if name != "kit" and shared is None:
            print(f"{name}: left out, FOLDLINE_SHARED names no folder of transcripts", file=sys.stderr)
            continue
        results[name] = _measure(name, shared or Path(), range(int(first), int(last or first) + 1))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "quality.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def _measure(name: str, shared: Path, seeds: range) -> list[dict[str, Any]]:
    if name == "files":
        return _files(shared)
    if name == "kit":
        return _kit(seeds)
    if name == "compint":
        return _compint(shared)
    if name == "growth":
        return _growth(shared)
    if name == "errors":
        return _errors(shared)
    sys.exit(f"there is no measure {name!r}: files, kit, compint, growth, errors")


def _errors(shared: Path) -> list[dict[str, Any]]:
    import errors

    rows = errors.measure(shared)
    print("\nErrors of recorded sessions, read as far as each sixth, against the judgement of readers")
    print("| state | lines | readers agree | not judged |")
    print("|---|---|---|---|")
    for row in rows:
        print(f"| {row.state} | {row.lines} | {row.agreed} | {row.not_judged} |")
    for row in rows:
        for line, verdict, reason in row.others:
            print(f"- called {row.state}, judged {verdict}: {line}\n  {reason}")
    return [dataclasses.asdict(row) for row in rows]


def _files(shared: Path) -> list[dict[str, Any]]:
    import files

    rows = files.measure(shared)
    print(f"\nFiles touched that a summary names, of {len(rows)} Claude Code sessions with a compaction (o200k_base)")
    print("| session | messages | tokens | budget | written | files | Claude Code's | a tail | foldline |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        numbers = (row.messages, row.tokens, row.budget, row.ours_tokens, row.files, row.theirs, row.tail, row.ours)
        print(f"| {row.session} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    total = sum(row.files for row in rows)
    shares = [100 * sum(getattr(row, who) for row in rows) / total for who in ("theirs", "tail", "ours")]
    print(f"| all | | | | | {total} | " + " | ".join(f"{share:.1f} %" for share in shares) + " |")
    return [dataclasses.asdict(row) for row in rows]


def _kit(seeds: range) -> list[dict[str, Any]]:
    import kit

    rows = kit.measure(seeds)
    print(f"\ncompaction-conformance-kit {kit.version()}, generated sessions of seeds {seeds[0]}-{seeds[-1]}, 5 rounds")
    print("| budget, of the characters | compactor | statements left | within the budget |")
    print("|---|---|---|---|")
    for row in rows:
        left = f"{row.survived:,} of {row.planted:,} ({row.percent:.1f} %)"
        print(f"| {row.budget_percent} % | {row.compactor} | {left} | {'always' if row.within_budget else 'no'} |")
    return [dataclasses.asdict(row) for row in rows]


def _compint(shared: Path) -> list[dict[str, Any]]:
    import compint

    every: list[dict[str, Any]] = []
    print(f"\nSide constraints of COMPINT (conpact {compint.version()}), half of the tokens gone")
    print("| conversations | cut to | position | " + " | ".join(compint.WAYS) + " | instances |")
    print("|---|---|---|" + "---|" * (len(compint.WAYS) + 1))
    for source, length in COMPINT:
        rows = compint.measure(shared, source, length)
        every += [dataclasses.asdict(row) for row in rows]
        for position in compint.POSITIONS:
            ways = [row for row in rows if row.position == position]
            shares = " | ".join(f"{row.percent:.1f} %" for row in ways)
            print(f"| {ways[0].conversations} {source} | {length:,} | {position} | {shares} | {ways[0].instances} |")
    return every


def _growth(shared: Path) -> list[dict[str, Any]]:
    import growth

    rows = growth.measure(shared)
    print("\nThe size of folds with the extractive summary (o200k_base)")
    print("| keep | folded | unchanged | infeasible | failed | grown | tokens gained | label |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        counts = (row.folded, row.unchanged, row.infeasible, row.failed.total(), row.grown)
        ends = f"{row.growth[0]:,} to {row.growth[1]:,} | {row.label[0]} to {row.label[1]}"
        print(f"| {row.keep} | " + " | ".join(f"{count:,}" for count in counts) + f" | {ends} |")
    return [dataclasses.asdict(row) for row in rows]


if __name__ == "__main__":
    sys.exit(main())
