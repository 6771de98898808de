"""Runs every library on the same conversations: ``make conformance``, or ``benches/conformance [--quick]``.

Every contender shortens every conversation to every budget; the results are judged by foldline's `validate`, by a
validator of this script and by one count of tokens. The table goes to out/conformance, and with ``--publish`` to
docs/conformance.md.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import warnings
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(sys.prefix) / "tiktoken-cache"))
os.environ["CUSTOM_TIKTOKEN_CACHE_DIR"] = os.environ["TIKTOKEN_CACHE_DIR"]  # Otherwise litellm sets a different one.
os.environ["LANGCHAIN_TRACING_V2"] = "false"

import runs
import table
from contenders import CONTENDERS, LEFT_OUT
from contenders.base import Contender
from conversations import Conversation, conversations, late_results

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="an eighth of the budgets")
    parser.add_argument("--only", help="contenders whose names begin so, separated by commas")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "conformance", help="folder of the results")
    parser.add_argument("--publish", action="store_true", help="write docs/conformance.md too")
    parser.add_argument("--command", help="what the table says it was written by, where that is not this command")
    args = parser.parse_args()
    if args.publish and (args.quick or args.only):
        parser.error("what is published is the whole table")

    import tiktoken

    import foldline as fl

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    encoding = tiktoken.get_encoding("o200k_base")
    remembered: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in remembered:
            remembered[text] = len(encoding.encode_ordinary(text))
        return remembered[text]

    chosen = [
        each for each in CONTENDERS if not args.only or any(each.name.startswith(name) for name in args.only.split(","))
    ]
    budgets = runs.BUDGETS // 8 if args.quick else runs.BUDGETS
    every, late = conversations(), late_results()
    rows, late_rows, versions, missing = [], [], {}, dict(LEFT_OUT)

    def run(contender: Contender, over: list[Conversation]) -> runs.Row:
        return runs.run(
            contender,
            over,
            count,
            lambda after: fl.validate(after, "openai"),
            budgets=budgets,
            tokenizer=lambda text: len(encoding.encode_ordinary(text)),
        )

    for contender in chosen:
        if why := contender.missing():
            missing[contender.name] = why
            continue
        versions[contender.package] = contender.version()
        start = time.perf_counter()
        try:
            row, late_row = run(contender, every), run(contender, late)
        except Exception as error:  # A contender whose setup fails is listed, never dropped.
            missing[contender.name] = f"{type(error).__name__}: {error}"
            continue
        rows.append(row)
        late_rows.append(late_row)
        print(f"{contender.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    versions["tiktoken"] = tiktoken.__version__
    command = args.command or " ".join(["benches/conformance", *sys.argv[1:]])
    if "FOLDLINE_SHARED" in os.environ:
        command = f"FOLDLINE_SHARED=… {command}"
    options = {each.name: each.options for each in chosen}
    about = table.conditions(command, versions, missing, options, runs.build_of(fl))
    text = table.as_markdown(rows, late_rows, every, about)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "conformance.json").write_text(table.as_json(rows, late_rows, every, about), encoding="utf-8")
    (args.out / "conformance.md").write_text(text, encoding="utf-8")
    if args.publish:
        (ROOT / "docs" / "conformance.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
