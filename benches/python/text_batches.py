"""`count_batch` compared with counting the same texts one by one, on one thread.

    python benches/python/text_batches.py [MEGABYTES [FOLDER …]]

Real texts: the messages of the shared transcripts if `FOLDLINE_SHARED` names them, otherwise of `examples/data`; those
with many non-ASCII characters separately. The calls take turns, each over strings created for it, whose order in memory
is that of the list, or shuffled. Each `FOLDER` contains a build of the package (`before/foldline`, `after/foldline`),
measured in its own processes in turn with the others; default: the installed one. CPU time, the median of the rounds,
the best of the processes. A ratio above 1 means that the batch is faster.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
DATA = (
    Path(os.environ["FOLDLINE_SHARED"], "data")
    if "FOLDLINE_SHARED" in os.environ
    else HERE.parents[2] / "examples/data"
)
ENCODINGS = ("o200k_base", "cl100k_base")
#: Bytes of a text; None for the messages as they are.
SIZES = (None, 200, 2_000, 20_000)
ROUNDS = 7
PROCESSES = 3


def strings(value: object) -> Iterator[str]:
    """Every text within a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)


def message_texts() -> Iterator[str]:
    """Texts of at least 20 characters of all recorded files."""
    for file in sorted(DATA.rglob("*.json*")):
        whole = file.read_text(encoding="utf-8", errors="replace")
        for line in [whole] if file.suffix == ".json" else whole.splitlines():
            try:
                value = json.loads(line)
            except ValueError:
                continue
            yield from (text for text in strings(value) if len(text) >= 20)


def is_foreign(text: str) -> bool:
    return sum(character > "\x7f" for character in text[:400]) * 5 > len(text[:400])


def samples(megabytes: float) -> dict[str, list[str]]:
    """Texts by kind and size, up to this size together."""
    texts = [text for text in message_texts() if len(text) < 200_000]
    random.Random(7).shuffle(texts)
    found: dict[str, list[str]] = {}
    for name, chosen in (("mixed", texts), ("foreign", [text for text in texts if is_foreign(text)])):
        for size in SIZES:
            cut = chosen if size is None else pieces(chosen, size)
            found[f"{name} {size or 'whole'}"] = up_to(cut, megabytes * 1e6)
    return found


def pieces(texts: list[str], size: int) -> list[str]:
    """The texts one after the other, cut into pieces of this many characters."""
    whole = "\n".join(texts)
    return [whole[start : start + size] for start in range(0, len(whole) - size, size)]


def up_to(texts: list[str], most: float) -> list[str]:
    found, total = [], 0
    for text in texts:
        total += len(text.encode("utf-8", "replace"))
        if total > most:
            break
        found.append(text)
    return found


def cpu_ms(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1e3


def created(texts: list[str], order: str, seed: int) -> list[str]:
    """New strings, in the order of the memory or shuffled: a string keeps nothing from an earlier call."""
    found = [(text + " ")[:-1] for text in texts]
    if order == "shuffled":
        random.Random(seed).shuffle(found)
    return found


def measure(megabytes: float) -> dict[str, tuple[float, float]]:
    """For each sample the medians of milliseconds one by one, and as a batch."""
    import foldline

    medians: dict[str, tuple[float, float]] = {}
    for name, texts in samples(megabytes).items():
        for encoding in ENCODINGS:
            counter = foldline.TokenCounter(encoding)
            calls: list[Callable[[list[str]], object]] = [
                lambda given, counter=counter: [counter.count(text) for text in given],  # type: ignore[misc]
                counter.count_batch,
            ]
            for order in ("list", "shuffled"):
                times: list[list[float]] = [[], []]
                for round_ in range(ROUNDS + 1):
                    for which in (0, 1) if round_ % 2 else (1, 0):
                        given = created(texts, order, round_)
                        took = cpu_ms(lambda call=calls[which], given=given: call(given))  # type: ignore[misc]
                        if round_:
                            times[which].append(took)
                medians[f"{name}, {encoding}, {order}"] = (statistics.median(times[0]), statistics.median(times[1]))
    return medians


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 8
    folders = sys.argv[2:] or [""]
    if os.environ.get("FOLDLINE_BENCH_CHILD"):
        print(json.dumps(measure(megabytes)))
        return
    results: dict[str, list[dict[str, list[float]]]] = {folder: [] for folder in folders}
    for _ in range(PROCESSES):
        for folder in folders:
            environment = {**os.environ, "FOLDLINE_BENCH_CHILD": "1", **({"PYTHONPATH": folder} if folder else {})}
            command = [sys.executable, str(HERE), str(megabytes)]
            done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
            results[folder].append(json.loads(done.stdout))
    print("ms one by one, ms as a batch, ratio".ljust(46), *(folder or "installed" for folder in folders), sep=" | ")
    for name in results[folders[0]][0]:
        columns = []
        for folder in folders:
            single, batch = (min(result[name][which] for result in results[folder]) for which in (0, 1))
            columns.append(f"{single:7.2f} {batch:7.2f} {single / batch:5.2f}")
        print(name.ljust(46), *columns, sep=" | ")


if __name__ == "__main__":
    main()
