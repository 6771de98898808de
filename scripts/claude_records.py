#!/usr/bin/env python3
"""Compare Claude's counts with those that ctok's tests record from Anthropic's API.

    .venv/bin/python scripts/claude_records.py FOLDER

FOLDER is the source archive of ctok 1.3.0, unpacked. Its documents (the Declaration of Human Rights in 501 languages,
Rosetta Code, MultiPL-E) are read there and not stored here.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import foldline as fl

#: Family in the records: a model of it, and what a message costs beside its text.
FAMILIES = {"v3": ("claude-sonnet-4-5", 7), "v4.7": ("claude-opus-4-7", 11)}
#: Corpora, and the key of a document.
CORPORA = {"udhr": "f", "rosetta": "id", "rosetta_holdout": "id", "multipl_e": "lang"}


def main(folder: Path) -> int:
    """Print the documents that are equal; 0 if all are."""
    fixtures = next(folder.rglob("udhr_counts.json")).parent
    wrong = 0
    for family, (model, frame) in FAMILIES.items():
        counter = fl.TokenCounter.for_model(model)
        for corpus, key in CORPORA.items():
            counts = json.loads((fixtures / f"{corpus}_counts.json").read_text(encoding="utf-8"))[family]["counts"]
            with gzip.open(fixtures / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
                documents = [json.loads(line) for line in lines]
            equal = sum(counter.count(each["text"]) + frame == counts[str(each[key])] for each in documents)
            wrong += len(documents) - equal
            print(f"{family:5} {corpus:16} {equal:5} of {len(documents):5} equal")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
