"""The warm measures in this process: documents, calls, batches, messages, estimates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import estimators
from peers import ALL, Count, Peer
from results import Row, agree
from texts import conversations, documents, pieces
from timing import interleaved

ENCODINGS = ("o200k_base", "cl100k_base")
DICTS_ENCODING = "o200k_base"


def counters(peers: list[Peer], encoding: str) -> dict[str, Count]:
    """A counter of each library, loaded."""
    return {peer.name: peer.load(encoding) for peer in (*ALL[:1], *peers)}


def texts(peers: list[Peer], rounds: int) -> Iterator[Row]:
    """Documents, calls and batches of texts, in both encodings."""
    for encoding in ENCODINGS:
        load = counters(peers, encoding)
        for kind, document in documents().items():
            sample = f"{encoding} {kind}"
            yield _document(load, document, sample, kind, rounds)
            yield _calls(load, pieces(document, 200, 500), sample, "200 B, one call each", rounds)
            yield _calls(load, pieces(document, 2_000, 100), sample, "2 KB, one call each", rounds)
        yield _batch(peers, encoding, rounds)


def _document(load: dict[str, Count], text: str, sample: str, kind: str, rounds: int) -> Row:
    size = len(text.encode())
    work: dict[str, Callable[[], Any]] = {name: partial(count, text) for name, count in load.items()}
    wrong = agree(work, load["tiktoken"](text))
    seconds = interleaved(work, rounds=rounds)
    target = "1 MB documents" + (", multilingual" if kind == "multilingual" else "")
    speeds = {name: size / value / 1e6 for name, value in seconds.items()}
    return Row("1 MB documents", sample, "MB/s", True, speeds, target, wrong)


def _calls(load: dict[str, Count], texts: list[str], sample: str, measure: str, rounds: int) -> Row:
    def each(count: Count) -> list[int]:
        return [count(text) for text in texts]

    work: dict[str, Callable[[], Any]] = {name: partial(each, count) for name, count in load.items()}
    wrong = agree(work, each(load["tiktoken"]))
    seconds = interleaved(work, rounds=rounds)
    micros = {name: value / len(texts) * 1e6 for name, value in seconds.items()}
    return Row(measure, sample, "µs a call", False, micros, measure, wrong)


def _batch(peers: list[Peer], encoding: str, rounds: int) -> Row:
    """4,000 texts of 2 KB, of all kinds in turn."""
    each = [pieces(document, 2_000, 1_000) for document in documents().values()]
    texts = [text for turn in zip(*(kind * (1_000 // len(kind) + 1) for kind in each), strict=False) for text in turn]
    texts = texts[:4_000]
    size = sum(len(text.encode()) for text in texts)
    batches = {peer.name: peer.batch(encoding, 1) for peer in (*ALL[:1], *peers)}
    work: dict[str, Callable[[], Any]] = {name: partial(batch, texts) for name, batch in batches.items()}
    wrong = agree(work, [int(n) for n in work["tiktoken"]()], lambda a, b: [int(n) for n in a] == b)
    seconds = interleaved(work, rounds=max(3, rounds // 2))
    speeds = {name: size / value / 1e6 for name, value in seconds.items()}
    return Row("batch of 2 KB", f"{encoding} {len(texts):,} texts", "MB/s", True, speeds, "batch of 2 KB", wrong)


def messages(peers: list[Peer], rounds: int) -> Iterator[Row]:
    """Lists of message dicts, counted exactly, one call per list; peers are loops around exact counters."""
    import foldline as fl

    lists = conversations()
    number = sum(map(len, lists))
    ours = fl.TokenCounter(DICTS_ENCODING)
    work: dict[str, Callable[[], Any]] = {"foldline": lambda: [ours.count_messages(m).total for m in lists]}
    for name, count in counters(peers, DICTS_ENCODING).items():
        if name != "foldline":
            work[name] = partial(lambda count: [estimators.exact(count, m) for m in lists], count)
    wrong = agree(work, work["tiktoken"]())
    other = _frameworks(lists)
    seconds = interleaved(work | other, rounds=max(3, rounds // 2))
    micros = {name: value / number * 1e6 for name, value in seconds.items()}
    sample = f"{len(lists)} lists, {number:,} messages"
    yield Row("messages, exact", sample, "µs a message", False, micros, "messages, exact", wrong, list(other))


def _frameworks(lists: list[list[estimators.Message]]) -> dict[str, Callable[[], Any]]:
    """The counters of agent frameworks over dicts. Their numbers differ: neither frames messages like the API."""
    work: dict[str, Callable[[], Any]] = {}
    try:
        from langchain_core.messages.utils import count_tokens_approximately

        work["langchain approximate"] = lambda: [count_tokens_approximately(m) for m in lists]
    except ImportError:
        pass
    try:
        from litellm import token_counter

        work["litellm token_counter"] = lambda: [token_counter(model="gpt-4o", messages=m) for m in lists]
    except ImportError:
        pass
    return work


def estimates(rounds: int) -> Iterator[Row]:
    """The formulas of the seeds: over dicts, and over JSON bytes with one conversation per line."""
    import foldline as fl

    lists = conversations()
    number = sum(map(len, lists))
    lines = [json.dumps(m, ensure_ascii=False, separators=(",", ":")).encode() for m in lists]
    data = b"\n".join(lines) + b"\n"
    size = len(data)
    for name, formula, estimate in estimators.SEEDS:
        counter = fl.TokenCounter(formula or "chars/4")
        # A bare sum of lengths differs from every formula: measured, not compared.
        beside = [] if formula else ["Python"]
        target = "estimates of dicts"
        work: dict[str, Callable[[], Any]] = {
            "foldline": lambda counter=counter: [counter.count_messages(m).total for m in lists],
            "Python": lambda estimate=estimate: [estimate(m) for m in lists],
        }
        wrong = agree(work, work["Python"]()) if formula else []
        seconds = interleaved(work, rounds=rounds)
        micros = {key: value / number * 1e6 for key, value in seconds.items()}
        yield Row(target, name, "µs a message", False, micros, target if formula else "", wrong, beside)

        of_bytes, how = _of_bytes(counter, data)
        target = "estimates of JSONL"
        work = {
            "foldline": of_bytes,
            "Python": lambda estimate=estimate: [estimate(json.loads(line)) for line in data.splitlines()],
        }
        wrong = agree(work, sum(work["Python"]()), lambda a, b: sum(map(int, a)) == b) if formula else []
        seconds = interleaved(work, rounds=rounds)
        speeds = {key: size / value / 1e6 for key, value in seconds.items()}
        yield Row(target, f"{name} ({how})", "MB/s", True, speeds, target if formula else "", wrong, beside)


def _of_bytes(counter: Any, data: bytes) -> tuple[Callable[[], Any], str]:
    """Totals of all conversations in JSON lines, in one call if foldline has one."""
    one_by_one = lambda: [counter.count_messages(line).total for line in data.splitlines()]  # noqa: E731
    at_once = getattr(counter, "count_transcripts", None)
    if at_once is None:
        return one_by_one, "a call a line"

    def totals() -> Any:
        found = at_once(data)
        found = getattr(found, "totals", getattr(found, "total", found))
        return found() if callable(found) else found

    try:
        if sum(map(int, totals())) == sum(one_by_one()):
            return totals, "count_transcripts"
    except (TypeError, ValueError, AttributeError):
        pass
    return one_by_one, "a call a line; count_transcripts differs"
