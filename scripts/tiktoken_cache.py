#!/usr/bin/env python3
"""Fill tiktoken's cache from the crate tiktoken-rs, so that the tests need no network.

    python scripts/tiktoken_cache.py DIR

Run with TIKTOKEN_CACHE_DIR=DIR, tiktoken then finds its vocabularies there; it checks the hash of every file
itself. The crate is a dependency, so cargo has it already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ENCODINGS = ["o200k_base", "cl100k_base", "p50k_base", "r50k_base"]


def crate_assets() -> Path:
    """The folder of vocabulary files in the crate's source."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    root = Path(__file__).resolve().parent.parent
    output = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout
    for package in json.loads(output)["packages"]:
        if package["name"] == "tiktoken-rs":
            return Path(package["manifest_path"]).parent / "assets"
    raise SystemExit("the crate tiktoken-rs is not among the dependencies")


def main() -> int:
    """Fill the cache unless it is filled already."""
    cache = Path(sys.argv[1]).absolute()
    done = cache / "complete"
    if done.exists():
        return 0
    cache.mkdir(parents=True, exist_ok=True)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(cache)

    import tiktoken
    import tiktoken.load

    assets = crate_assets()
    tiktoken.load.read_file = lambda address: (assets / address.rpartition("/")[2]).read_bytes()
    for name in ENCODINGS:
        tiktoken.get_encoding(name)
    done.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
