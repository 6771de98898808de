"""foldline compared with its peers: ``make bench-peers``, or ``.venv-bench/bin/python benches/peers [--quick]``.

One process, contenders in turn, CPU time, best of the rounds. Every result is compared with tiktoken's before
anything is timed: a peer that counts a sample differently is listed as not exact and left out of the ratio. Only
the release wheel in dist is measured, compared byte for byte; any other build is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"  # Otherwise peers would start threads for a batch on one.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(sys.prefix) / "tiktoken-cache"))
os.environ["CUSTOM_TIKTOKEN_CACHE_DIR"] = os.environ["TIKTOKEN_CACHE_DIR"]  # Otherwise litellm sets a different one.

import processes
import report
import vocabularies
import warm
from peers import FOLDLINE, PEERS, ROOT, Peer, assets
from results import Row

OUT = ROOT / "out" / "peers"
OTHERS = {
    "langchain-core": "langchain_core",
    "litellm": "litellm",
    "tokenizers": "tokenizers",
    "sentencepiece": "sentencepiece",
}


def release_wheel() -> str:
    """The name of the wheel in dist, if it is the installed one."""
    import foldline._core as core

    wheels = sorted((ROOT / "dist").glob("foldline-*.whl"))
    if not wheels:
        raise SystemExit("no wheel in dist: make wheel")
    installed = Path(core.__file__ or "").read_bytes()
    with zipfile.ZipFile(wheels[-1]) as wheel:
        name = next(name for name in wheel.namelist() if name.startswith("foldline/_core."))
        built = wheel.read(name)
    if hashlib.sha256(installed).digest() != hashlib.sha256(built).digest():
        raise SystemExit(f"{core.__file__} is not of {wheels[-1].name}: make bench-peers installs it")
    return wheels[-1].name


def present() -> tuple[list[Peer], dict[str, str], dict[str, str]]:
    """The measurable peers, all versions, and the reasons why others are missing."""
    found, versions, missing = [], {"foldline": FOLDLINE.version()}, {}
    for peer in PEERS:
        if why := peer.missing():
            missing[peer.name] = why
            continue
        found.append(peer)
        versions[peer.name] = peer.version()
    for package, module in OTHERS.items():
        if why := Peer(package, package, module, PEERS[0].load, PEERS[0].batch).missing():
            missing[package] = why
        else:
            versions[package] = Peer(package, package, module, PEERS[0].load, PEERS[0].batch).version()
    if "tiktoken" in missing:
        raise SystemExit(f"without tiktoken nothing can be checked: {missing['tiktoken']}")
    return found, versions, missing


def measures(peers: list[Peer], *, quick: bool) -> dict[str, Callable[[], Iterator[Row]]]:
    """Every measure by its name, in order."""
    rounds = 3 if quick else 9
    return {
        "texts": lambda: warm.texts(peers, rounds),
        "vocabularies": lambda: vocabularies.vocabularies(rounds),
        "messages": lambda: warm.messages(peers, rounds),
        "estimates": lambda: warm.estimates(rounds),
        "cold": lambda: processes.cold(peers, 2 if quick else 12),
        "threads": lambda: processes.threads(peers),
        "sizes": lambda: processes.sizes(peers),
        "linearity": lambda: processes.linearity(1 << (21 if quick else 24), *((1, 0.0) if quick else (5, 10.0))),
        "hostile": lambda: iter(()) if quick else processes.hostile_peers(peers, 20.0),
    }


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, no hostile text for the peers")
    parser.add_argument("--only", help="some of the parts, by commas (see `measures`)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of peers.json and peers.md")
    args = parser.parse_args()

    wheel = release_wheel()
    peers, versions, missing = present()
    assets()
    rows: list[Row] = []
    chosen = args.only.split(",") if args.only else None
    for name, measure in measures(peers, quick=args.quick).items():
        if chosen is None or name in chosen:
            start = time.perf_counter()
            rows += measure()
            print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    about = report.conditions(versions, missing, wheel, "make bench-peers" + (" QUICK=1" if args.quick else ""))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "peers.json").write_text(report.as_json(rows, about), encoding="utf-8")
    (args.out / "peers.md").write_text(report.as_markdown(rows, about), encoding="utf-8")
    print(report.as_markdown(rows, about))
    missed = [f"{row.measure}, {row.sample}" for row in rows if row.verdict().get("must_reached") is False]
    print(f"{len(rows)} measures, {len(missed)} below must" + "".join(f"\n  {name}" for name in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
