#!/usr/bin/env python3
"""Regenerate examples/data from a folder of collected transcripts.

    python scripts/make_samples.py SHARED_DATA [--out examples/data] [--check]

SHARED_DATA contains the files named in SAMPLES and a MANIFEST.json with their size and SHA-256; every
source is checked against it before it is used. `--check` writes nothing and exits with 1 if a sample
differs from the output. The output depends on the sources alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_TOTAL_BYTES = 3_000_000

# (task_id, trial) of the conversations taken, in this order: short and long ones, solved and failed.
TAU_CONVERSATIONS = [
    (0, 1),
    (1, 1),
    (2, 0),
    (2, 1),
    (7, 2),
    (9, 2),
    (10, 1),
    (12, 0),
    (13, 2),
    (17, 3),
    (24, 2),
]
# The number of dialogues, from the start of the file.
KDCONV_COUNT = 12


def dump_line(value: Any) -> str:
    """One JSON value as a line: keys in order, text unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def copy(source: bytes) -> bytes:
    """The file byte for byte."""
    return source


def tau_to_jsonl(source: bytes) -> bytes:
    """Each chosen conversation's `traj`, unchanged as JSON values, under `messages`."""
    by_key = {(run["task_id"], run["trial"]): run for run in json.loads(source)}
    lines = [
        dump_line({"id": f"tau-airline-task{task}-trial{trial}", "messages": by_key[task, trial]["traj"]})
        for task, trial in TAU_CONVERSATIONS
    ]
    return "".join(lines).encode()


def kdconv_to_jsonl(source: bytes) -> bytes:
    """The first dialogues, whose two speakers alternate: the first is `user`, the second `assistant`."""
    lines = []
    for index, dialogue in enumerate(json.loads(source)[:KDCONV_COUNT]):
        messages = [
            {"role": ("user", "assistant")[i % 2], "content": turn["message"]}
            for i, turn in enumerate(dialogue["messages"])
        ]
        lines.append(dump_line({"id": f"kdconv-film-dev-{index:03d}", "messages": messages}))
    return "".join(lines).encode()


# written file -> (source file, conversion)
SAMPLES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "claude-code-session.jsonl": ("claude-code-entire/34_c37819391d_0_full.jsonl", copy),
    "openai-tools.jsonl": ("openai-tau-airline/gpt-4o-airline.tasks0-24.json", tau_to_jsonl),
    "pi-session.jsonl": ("pi/large-session.jsonl", copy),
    "gemini-cli-session.json": ("claude-code-entire/ab_2b9748b105_0_full.jsonl", copy),
    "swe-agent-trajectory.traj": ("swe-agent/trajectories_demonstrations_function_calling_simple.traj", copy),
    "chinese-dialogues.jsonl": ("kdconv-zh/film-dev.json", kdconv_to_jsonl),
}
LICENSES = ["entireio-cli.txt", "tau-bench.txt", "pi-mono.txt", "SWE-agent.txt", "KdConv.txt"]


def build(data: Path) -> dict[str, bytes]:
    """Every file to be written, by its path inside the output folder."""
    manifest = {entry["file"]: entry for entry in json.loads((data / "MANIFEST.json").read_bytes())}
    files: dict[str, bytes] = {}
    for name, (source, convert) in SAMPLES.items():
        content = (data / source).read_bytes()
        if hashlib.sha256(content).hexdigest() != manifest[source]["sha256"]:
            raise SystemExit(f"{source}: SHA-256 differs from MANIFEST.json")
        files[name] = convert(content)
    for name in LICENSES:
        files[f"LICENSES/{name}"] = (data / "LICENSES" / name).read_bytes()
    total = sum(map(len, files.values()))
    if total > MAX_TOTAL_BYTES:
        raise SystemExit(f"the samples take {total:,} bytes, more than {MAX_TOTAL_BYTES:,}")
    return files


def main() -> int:
    """Write the samples, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with MANIFEST.json, LICENSES/ and the sources")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "examples" / "data")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    args = parser.parse_args()

    differs = False
    for name, content in build(args.data).items():
        path = args.out / name
        same = path.is_file() and path.read_bytes() == content
        differs |= not same
        if not args.check and not same:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        state = "unchanged" if same else "DIFFERS" if args.check else "written"
        print(f"{len(content):>9,}  {state:9}  {name}")
    return 1 if differs and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
