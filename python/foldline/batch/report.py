"""Figures of a batch: outcomes, savings, lost facts, the extreme transcripts, and samples to read.

They are taken from the outputs, one row at a time, so that they say what was written. They hold no text of a message.
"""

from __future__ import annotations

import gzip
import hashlib
import heapq
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

__all__ = ["BatchReport", "Sample", "rows_of"]

#: Entries of each list of extremes.
_MOST = 10

#: Steps of the histogram of savings.
_STEPS = 10

#: Statuses, worst first.
_STATUSES = ("failed", "infeasible", "unchanged", "folded")

_COLUMNS = ("id", "status", "error", "tokens_before", "tokens_after", "facts", "warnings")


@dataclass(frozen=True, slots=True, order=True)
class Sample:
    """A transcript to read.

    Attributes:
        rank: A hash of its place, by which samples are chosen: the same in every run.
        source: Name of its file.
        place: Its place among the transcripts of the file, from 0.
        id: Its name.
        status: Its outcome.
    """

    rank: str
    source: str
    place: int
    id: str
    status: str


class BatchReport:
    """The figures of the outputs of a batch. Memory does not grow with the number of transcripts.

    Args:
        samples: Transcripts to choose from each outcome, of folded ones from each tenth of savings.
    """

    def __init__(self, samples: int = 1) -> None:
        self._samples = samples
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._tokens = {"before": 0, "after": 0}
        self._savings = [0] * _STEPS
        self._facts: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._warnings: Counter[str] = Counter()
        self._largest: list[tuple[int, str, int, str, int]] = []
        self._most_lost: list[tuple[int, str, int, str, int]] = []
        self._slowest: list[tuple[float, str, int, int]] = []
        self._chosen: dict[tuple[str, str, int], list[Sample]] = {}
        self._files = self._problems = 0
        self._seconds = 0.0

    def add_file(self, record: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds a file: its record in ``run.json``, and the rows of its output.

        Raises:
            ValueError: A row is none of an output; or another error of Python about its values.
        """
        self._files += 1
        self._problems += record["problems"]
        seconds = record.get("seconds")
        if seconds is not None:
            self._seconds += seconds
            entry = (seconds, record["source"], record["transcripts"], record["input_bytes"] or 0)
            _keep_most(self._slowest, entry)
        for place, row in enumerate(rows):
            self._add(record["source"], place, row)

    def _add(self, source: str, place: int, row: Mapping[str, Any]) -> None:
        status, error = row["status"], row["error"]
        code = "" if error is None else error["code"]
        if status not in _STATUSES or not isinstance(code, str) or not isinstance(row["id"], str):
            raise ValueError("not a row of an output")
        before, after = row["tokens_before"] or 0, row["tokens_after"] or 0
        self._outcomes[status, code] += 1
        self._tokens["before"] += before
        self._tokens["after"] += after
        step = -1
        if status == "folded":
            step = min(max(_STEPS * (before - after) // before, 0), _STEPS - 1) if before else 0
            self._savings[step] += 1
        _keep_most(self._largest, (before, source, place, row["id"], after))
        self._warnings.update(sorted({each["code"] for each in row["warnings"] or ()}))
        facts = row["facts"]
        if facts is not None:
            counts = {name: len(facts[name]) for name in ("kept", "added", "dropped")}
            self._facts.update(counts)
            self._dropped.update(fact["kind"] for fact in facts["dropped"])
            if counts["dropped"]:
                _keep_most(self._most_lost, (counts["dropped"], source, place, row["id"], sum(counts.values())))
        rank = hashlib.sha256(f"{source}\0{place}".encode("utf-8", "surrogatepass")).hexdigest()
        chosen = self._chosen.setdefault((status, code, step), [])
        chosen.append(Sample(rank, source, place, row["id"], status))
        if len(chosen) > self._samples:
            chosen.remove(max(chosen))

    def samples(self) -> list[Sample]:
        """The transcripts to read."""
        return [sample for _, chosen in self._groups() for sample in sorted(chosen)]

    def _groups(self) -> list[tuple[tuple[str, str, int], list[Sample]]]:
        return sorted(self._chosen.items(), key=lambda each: (_STATUSES.index(each[0][0]), each[0][1:]))

    def to_dict(
        self, cost: Mapping[str, float] | None = None, pages: Mapping[Sample, str] | None = None
    ) -> dict[str, Any]:
        """The figures as JSON-ready values.

        Args:
            cost: What the model's summaries cost, if a model wrote them.
            pages: The pages of samples, by sample.
        """
        pages = pages or {}
        outcomes = sorted(self._outcomes.items(), key=lambda each: (_STATUSES.index(each[0][0]), -each[1], each[0][1]))
        return {
            "files": self._files,
            "transcripts": sum(self._outcomes.values()),
            "problems": self._problems,
            "tokens_before": self._tokens["before"],
            "tokens_after": self._tokens["after"],
            "seconds": round(self._seconds, 3),
            "outcomes": [
                {"status": status, "code": code or None, "transcripts": count} for (status, code), count in outcomes
            ],
            "savings": [
                {"from_percent": k * 100 // _STEPS, "to_percent": (k + 1) * 100 // _STEPS, "folded": count}
                for k, count in enumerate(self._savings)
            ],
            "facts": {name: self._facts[name] for name in ("kept", "added", "dropped")}
            | {"dropped_by_kind": dict(self._dropped.most_common())},
            "warnings": dict(self._warnings.most_common()),
            "slowest": [
                {"source": source, "seconds": seconds, "transcripts": transcripts, "input_bytes": size}
                for seconds, source, transcripts, size in sorted(self._slowest, key=lambda each: (-each[0], each[1]))
            ],
            "largest": [
                {"source": source, "id": name, "tokens_before": before, "tokens_after": after}
                for before, source, _, name, after in _ordered(self._largest)
            ],
            "most_lost": [
                {"source": source, "id": name, "dropped": dropped, "facts": facts}
                for dropped, source, _, name, facts in _ordered(self._most_lost)
            ],
            "cost": None if cost is None else dict(cost),
            "samples": [
                {
                    "status": status,
                    "code": code or None,
                    "saved_from_percent": None if step < 0 else step * 100 // _STEPS,
                    "source": sample.source,
                    "id": sample.id,
                    "page": pages.get(sample),
                }
                for (status, code, step), chosen in self._groups()
                for sample in sorted(chosen)
            ],
        }


def _keep_most(heap: list[Any], entry: Any) -> None:
    """Keeps an entry if it is among the `_MOST` greatest."""
    if len(heap) < _MOST:
        heapq.heappush(heap, entry)
    else:
        heapq.heappushpop(heap, entry)


def _ordered(entries: list[tuple[int, str, int, str, int]]) -> list[tuple[int, str, int, str, int]]:
    return sorted(entries, key=lambda each: (-each[0], *each[1:3]))


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The columns of an output of `foldline compact` that figures need, a row a transcript.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as raw:
        is_parquet = raw.read(4) == b"PAR1"
    if is_parquet:
        yield from _rows_of_parquet(path)
        return
    with _plain(path) as stream:
        for line in stream:
            text = line.strip().rstrip(b",")
            if text not in (b"", b"[", b"]"):  # an array of several objects has one a line, too
                record = json.loads(text)
                yield {name: record.get(name) for name in _COLUMNS}


def _plain(path: Path) -> AbstractContextManager[IO[bytes]]:
    if path.suffix == ".gz":
        return cast("AbstractContextManager[IO[bytes]]", gzip.open(path))
    if path.suffix == ".zst":
        import zstandard

        return cast("AbstractContextManager[IO[bytes]]", io.BufferedReader(zstandard.open(path)))
    return path.open("rb")


def _rows_of_parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    with closing(pq.ParquetFile(path)) as file:
        names = [name for name in _COLUMNS if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=names):
            for row in batch.to_pylist():
                found = {name: row.get(name) for name in _COLUMNS}
                for name in ("error", "facts", "warnings"):
                    found[name] = None if found[name] is None else json.loads(found[name])
                yield found
