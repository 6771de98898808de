"""Worker processes: each folds one file at a time, and one that dies costs its file alone."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from foldline._cli.compacting import FileReport, compact_file
from foldline._cli.reporting import Reporter, Stop, Telling
from foldline._cli.sources import STDIN, Source
from foldline.batch import BatchCompactor
from foldline.typing import Problem

__all__ = ["compact_all"]

#: Workers that may die over the same file before it is given up.
_TRIES = 2

#: Seconds that a worker has to remove its temporary file when it is stopped.
_GRACE_S = 5.0


@dataclass(slots=True)
class _Worker:
    """A worker process and what it does."""

    process: Any
    pipe: Connection
    source: Source | None = None


def compact_all(
    sources: Sequence[Source],
    names: Mapping[Source, Path],
    out: Path,
    compactor: BatchCompactor,
    reporter: Reporter,
    jobs: int,
) -> Iterator[tuple[Source, FileReport]]:
    """Folds files, in processes of their own where there are several jobs; reports come as files are finished.

    One file alone is folded here, by as many threads as there are jobs where no model is asked.

    Raises:
        Stop: In a strict run.
    """
    is_alone = len(sources) == 1 and compactor.row_folder() is not None
    elsewhere = []
    for source in sources:
        if jobs == 1 or source.path == STDIN or is_alone:
            yield source, compact_file(source, out, names[source], compactor, reporter, threads=jobs)
        else:
            elsewhere.append(source)
    yield from _in_workers(elsewhere, names, out, compactor, reporter, jobs)


def _in_workers(
    sources: Sequence[Source],
    names: Mapping[Source, Path],
    out: Path,
    compactor: BatchCompactor,
    reporter: Reporter,
    jobs: int,
) -> Iterator[tuple[Source, FileReport]]:
    context = multiprocessing.get_context("spawn")
    waiting = deque(sources)
    deaths: dict[Source, int] = {}
    workers: list[_Worker] = []

    def start() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, compactor, out, reporter.strict), name="foldline", daemon=True
        )
        process.start()
        theirs.close()
        workers.append(_Worker(process, ours))
        give(workers[-1])

    def give(worker: _Worker) -> None:
        worker.source = waiting.popleft() if waiting else None
        with contextlib.suppress(OSError):  # it died: that shows when it is listened to
            worker.pipe.send(None if worker.source is None else (worker.source, names[worker.source]))

    try:
        for _ in range(min(jobs, len(sources))):
            start()
        while any(worker.source is not None for worker in workers):
            busy = {worker.pipe: worker for worker in workers if worker.source is not None}
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                source = worker.source
                assert source is not None  # noqa: S101 - for the type checker: it is busy
                try:
                    kind, value = worker.pipe.recv()
                except (EOFError, OSError):
                    workers.remove(worker)
                    worker.pipe.close()
                    worker.process.join()
                    deaths[source] = deaths.get(source, 0) + 1
                    if deaths[source] < _TRIES:
                        waiting.appendleft(source)
                    else:
                        reporter.problem(_death(source, worker.process.exitcode))
                    if waiting:
                        start()
                    continue
                if kind == "problem":
                    reporter.problem(*value)
                elif kind == "advance":
                    reporter.advance(**value)
                else:
                    give(worker)
                    yield source, value
    finally:
        _end(workers)


def _death(source: Source, exitcode: int | None) -> Problem:
    how = f"signal {-exitcode}" if exitcode is not None and exitcode < 0 else f"exit code {exitcode}"
    return Problem(None, "worker_died", f"its worker ended by {how}, {_TRIES} times; nothing was written", source.path)


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        if worker.source is not None:
            worker.process.terminate()
        worker.pipe.close()
    for worker in workers:
        worker.process.join(_GRACE_S)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


# In the worker.


class _Pipe(Telling):
    """Tells the parent."""

    def __init__(self, pipe: Connection, *, strict: bool) -> None:
        self.problems = 0
        self._pipe = pipe
        self._strict = strict
        self._transcripts = 0

    def problem(self, problem: Problem, transcript: str | None = None) -> None:
        """Sends a problem on.

        Raises:
            Stop: In a strict run: the file must not be put in its place before the parent has read of it.
        """
        self.problems += 1
        self._pipe.send(("problem", (problem, transcript)))
        if self._strict:
            raise Stop

    def advance(self, *, files: int = 0, transcripts: int = 0) -> None:  # noqa: ARG002 - files are counted by the parent
        """Sends on how much was done, now and then."""
        self._transcripts += transcripts
        if self._transcripts >= 64:
            self.tell()

    def tell(self) -> None:
        """Sends what was not sent yet."""
        if self._transcripts:
            self._pipe.send(("advance", {"transcripts": self._transcripts}))
            self._transcripts = 0


def _work(pipe: Connection, compactor: BatchCompactor, out: Path, strict: bool) -> None:
    # Ctrl-C goes to all processes of a terminal: the parent decides. When it stops a worker, temporary files go too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_follow_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError, Stop):
        while (task := pipe.recv()) is not None:
            source, name = task
            teller = _Pipe(pipe, strict=strict)
            report = compact_file(source, out, name, compactor, teller)
            teller.tell()
            pipe.send(("done", report))


def _follow_parent() -> None:
    """Where the parent is killed nobody waits for the work, and a run that goes on must not meet it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
