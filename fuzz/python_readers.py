"""Fuzzes readers that are Python code: `python fuzz/python_readers.py TARGET --seconds 20 --keep out/fuzz/TARGET`.

Event streams of a model, torn and damaged session files, compressed files. cargo-fuzz sees no coverage of Python, so an
input is kept for further mutations if its outcome is a new one. The first failing input is written to the folder of
`--keep` and ends the run; `--replay FILE` runs it again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import httpx2
import zstandard

import foldline as fl
from foldline.errors import StoreError, SummaryError
from foldline.stores import JsonlSession

CORPUS = Path(__file__).parent / "corpus"

#: Longest input.
MAX_BYTES = 8192

#: Largest expansion of a compressed input that is still worth reading here.
MAX_EXPANSION = 1000

#: Pieces that decide how a line is read.
PIECES = [
    b"\n", b"\r", b"\r\n", b"\n\n", b"data:", b"data: ", b"event: error\n", b"data: [DONE]\n\n", b":", b"\0",
    b"\xef\xbb\xbf", b"\xff", b"{", b"}", b"[", b"]", b'"', b"\\ud800", b"null", b"{}", b"[]", b"-1", b"1e999", b"NaN",
    b'"choices"', b'"content"', b'"delta"', b'"finish_reason"', b'"error"', b'"usage"', b'"parentId"', b'"message"',
    b'"type"', b'"compaction"', b'"id"', b"\x1f\x8b", b"\x28\xb5\x2f\xfd",
]  # fmt: skip

#: What came of an input; a new one is worth mutating.
Outcome = tuple[object, ...]


def event_stream(data: bytes, folder: Path) -> Outcome:
    """A stream of any bytes, in pieces of any size, gives an answer or a `SummaryError`: one answer at most.

    Of several defects the pieces decide which is found first, and whether one after the end is found at all.
    """
    outcomes = {_answer(data, size) for size in (len(data) or 1, 1 + data[0] % 16 if data else 1)}
    assert len({outcome for outcome in outcomes if outcome[0] == "answer"}) <= 1, f"the pieces matter: {outcomes}"
    return tuple(sorted(map(str, outcomes)))


def _answer(data: bytes, size: int) -> Outcome:
    class Pieces(httpx2.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]
            for at in range(0, len(data), size):
                yield data[at : at + size]

    def handle(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Pieces())

    transport = httpx2.MockTransport(handle)
    with fl.summarizers.OpenAICompatible("m", "http://127.0.0.1:9/v1", "key", transport=transport) as model:
        try:
            answer = model.complete([{"role": "user", "content": "x"}], max_tokens=10)
        except SummaryError as error:
            return ("error", error.code)
    assert isinstance(answer.text, str)
    assert len(answer.text) <= len(data)
    return ("answer", answer.text, answer.finish_reason, answer.input_tokens is None, answer.output_tokens is None)


def torn_tail(data: bytes, folder: Path) -> Outcome:
    """A damaged session file opens or is refused; what is appended is read back after everything that was read."""
    path = folder / "session.jsonl"
    path.write_bytes(data)
    try:
        store = JsonlSession(path, durability="none", max_line_bytes=4096)
        before = store.restore()
        new = store.append({"role": "user", "content": "appended"})
        after = store.restore()
    except StoreError as error:
        assert path.read_bytes() == data, "a refused file was changed"
        return ("refused", error.code)
    assert path.read_bytes().startswith(data.removesuffix(b"\n")), "what was there was changed"
    assert len(after) == len(before) + 1
    assert after[-1]["content"] == "appended"
    again = JsonlSession(path, readonly=True, max_line_bytes=4096)
    assert [*again.restore()] == [*after]
    assert again.leaf == new
    codes = sorted({problem.code for problem in again.problems})
    return ("opened", min(len(before), 4), min(len(again.messages()), 4), *codes)


def compressed(data: bytes, folder: Path) -> Outcome:
    """Any bytes are read as transcripts and problems, never as an exception; a torn archive keeps whole lines."""
    if data[:2] != b"\x1f\x8b" and data[:4] != b"\x28\xb5\x2f\xfd":
        data = gzip.compress(data, mtime=0) if len(data) % 2 else zstandard.ZstdCompressor().compress(data)
    path = folder / "lines.jsonl.gz"
    path.write_bytes(data)
    problems: list[str] = []
    sizes = [
        len(json.dumps(each.messages)) for each in fl.read(path, on_problem=lambda each: problems.append(each.code))
    ]
    assert sizes or problems, "neither a transcript nor a problem"
    assert sum(sizes) <= MAX_EXPANSION * MAX_BYTES
    return (min(len(sizes), 4), *sorted(set(problems)))


def sessions() -> list[bytes]:
    """Session files as they are written, with a compaction."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        store = JsonlSession(path, id="s", clock=lambda: 0.0)
        store.extend({"role": "user", "content": f"Step {i}. " + "word " * 20} for i in range(6))
        strategy = fl.strategies.Summarize(lambda messages: "Four steps.", keep_recent=2)
        compactor = fl.Compactor(fl.triggers.MessageCount(5), strategy, store=store)
        compactor.compact(store.messages(), ids=store.ids())
        return [path.read_bytes(), path.read_bytes().splitlines()[0] + b"\n"]


TARGETS: dict[str, Callable[[bytes, Path], Outcome]] = {
    "event_streams": event_stream,
    "torn_tails": torn_tail,
    "compressed": compressed,
}


def mutated(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """An input with one to four changes."""
    new = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randrange(len(new) + 1)
        match draw.randrange(8):
            case 0 if new:
                new[at % len(new)] ^= 1 << draw.randrange(8)
            case 1 if new:
                new[at % len(new)] = draw.randrange(256)
            case 2:
                new[at:at] = draw.choice(PIECES)
            case 3:
                del new[at : at + draw.choice((1, 4, 40, 400))]
            case 4:
                del new[at:]  # a torn tail
            case 5:
                start = draw.randrange(len(other) + 1)
                new[at:at] = other[start : start + draw.randrange(1, 400)]
            case 6:
                new[at : at + 400] = new[at : at + 400] * 2
            case _:
                piece = draw.choice(PIECES)
                new[at : at + len(piece)] = piece
    return bytes(new[:MAX_BYTES])


def main() -> int:
    """Runs a target for a time, or one input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--replay", type=Path)
    asked = parser.parse_args()
    target, draw, runs = TARGETS[asked.target], random.Random(asked.seed), 0
    with tempfile.TemporaryDirectory() as name:

        def fresh() -> Path:
            folder = Path(name) / str(runs)
            folder.mkdir()
            return folder

        if asked.replay:
            print(target(asked.replay.read_bytes(), fresh()))
            return 0
        pool = [path.read_bytes() for path in sorted((CORPUS / asked.target).glob("*"))]
        pool += sessions() if asked.target == "torn_tails" else []
        first, seen = len(pool), set[Outcome]()
        began = time.monotonic()
        while time.monotonic() - began < asked.seconds:
            data = pool[runs] if runs < first else mutated(draw.choice(pool), draw.choice(pool), draw)
            folder = fresh()
            try:
                outcome = target(data, folder)
            except BaseException:
                asked.keep.mkdir(parents=True, exist_ok=True)
                (asked.keep / "crash-input").write_bytes(data)
                traceback.print_exc()
                print(f"{asked.target}: seed {asked.seed}, run {runs}: {asked.keep / 'crash-input'}", file=sys.stderr)
                return 1
            for path in folder.glob("*"):
                path.unlink()
            folder.rmdir()
            runs += 1
            if outcome not in seen:
                seen.add(outcome)
                pool.append(data)
    print(f"{asked.target}: {runs} inputs, {len(seen)} different outcomes, 0 findings (seed {asked.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
