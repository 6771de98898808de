"""Worker processes: each folds one file at a time, and a dead one loses only its unfinished files."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import stat
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Self

from foldline._cli.finalize import Placing
from foldline._cli.fold_file import compact_file, fold_file, place_files
from foldline._cli.progress import FileReport, Position, ProgressSink, Reporter, Stop
from foldline._cli.sources import STDIN, Source
from foldline._util.files import Outputs, remove_stale
from foldline.batch import BatchCompactor
from foldline.typing import Problem

__all__ = ["compact_all"]

#: Workers that may die on a file before it is abandoned.
_TRIES = 2

#: Seconds for a stopped worker to remove its temporary file.
_GRACE_S = 5.0

#: Largest file after which a worker gets its next file ahead, so that it does not wait for it.
_AHEAD_BYTES = 4 << 20


def compact_all(
    sources: Sequence[Source],
    names: Mapping[Source, Path],
    out: Path,
    compactor: BatchCompactor,
    reporter: Reporter,
    jobs: int,
) -> Iterator[tuple[Source, FileReport]]:
    """Folds files, in worker processes for several jobs; yields reports as files finish.

    A single file is folded in this process, by ``jobs`` threads if no model is used.

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
    if elsewhere:
        with _Crew(elsewhere, names, out, compactor, reporter) as crew:
            yield from crew.work(min(jobs, len(elsewhere)))


@dataclass(slots=True)
class _Worker:
    """A worker process and its files, in the order assigned.

    Attributes:
        process: The process.
        pipe: Receives its messages.
        sources: Files without a report.
        folded: How many of these, from the first, are folded but not placed.
        is_stuck: Whether placing failed.
    """

    process: Any
    pipe: Connection
    sources: deque[Source] = field(default_factory=deque)
    folded: int = 0
    is_stuck: bool = False

    @property
    def unfolded(self) -> int:
        """Number of files still to fold."""
        return len(self.sources) - self.folded

    def suspect(self) -> Source:
        """The file on which it died: the one in progress, if any."""
        return self.sources[0 if self.is_stuck else min(self.folded, len(self.sources) - 1)]


class _Crew:
    """Worker processes and their queue of files. Leaving the block ends them."""

    def __init__(
        self,
        sources: Sequence[Source],
        names: Mapping[Source, Path],
        out: Path,
        compactor: BatchCompactor,
        reporter: Reporter,
    ) -> None:
        self._names = names
        self._out = out
        self._compactor = compactor
        self._reporter = reporter
        self._context = multiprocessing.get_context("spawn")
        self._waiting = deque(sources)
        self._workers: list[_Worker] = []
        self._deaths: dict[Source, int] = {}
        #: Files already folded by a worker that died: their problems were reported.
        self._reported: set[Source] = set()
        #: Not ahead with a model, whose time is unknown, nor in a strict run, which ends at the first problem.
        self._gives_ahead = compactor.row_folder() is not None and not reporter.strict

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        killed = bool(self._deaths)
        for worker in self._workers:
            if worker.sources:
                worker.process.terminate()
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(_GRACE_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
                killed = True
        if killed:
            remove_stale(self._out / name.parent for name in self._names.values())

    def work(self, jobs: int) -> Iterator[tuple[Source, FileReport]]:
        """Folds all files in ``jobs`` processes.

        Raises:
            Stop: In a strict run.
        """
        for _ in range(jobs):
            self._start()
        self._share()
        while busy := {worker.pipe: worker for worker in self._workers if worker.sources}:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                try:
                    kind, value = worker.pipe.recv()
                except (EOFError, OSError):
                    self._bury(worker)
                    continue
                if kind == "done":
                    worker.folded -= 1
                    yield worker.sources.popleft(), value
                else:
                    self._hear(worker, kind, value)

    def _hear(self, worker: _Worker, kind: str, value: Any) -> None:
        """Handles a worker's message about the file it folds or the files it places."""
        was_told = worker.unfolded > 0 and worker.sources[worker.folded] in self._reported
        match kind:
            case "folded":
                worker.folded += 1
                self._share()
                if worker.unfolded:
                    self._reporter.begin(worker.sources[worker.folded].path)
            case "unwritten":
                self._reporter.problem(*value)
            case "problem" if not was_told:
                self._reporter.problem(*value)
            case "advance" if not was_told:
                transcripts, size_bytes = value
                self._reporter.have_read(size_bytes)
                self._reporter.advance(transcripts=transcripts)
            case "stuck":
                worker.is_stuck = True
                worker.process.terminate()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work,
            args=(theirs, self._compactor, self._out, self._reporter.strict),
            name="foldline",
            daemon=True,
        )
        with _blocked_interrupts():
            process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours))

    def _share(self) -> None:
        """Assigns files to idle workers, and ahead while there are enough for all."""
        while self._waiting:
            worker = min(self._workers, key=lambda worker: worker.unfolded)
            is_ahead = worker.unfolded == 1 and self._gives_ahead and len(self._waiting) >= len(self._workers)
            if worker.unfolded and not (is_ahead and _is_small(worker.sources[-1])):
                return
            source = self._waiting.popleft()
            if not worker.unfolded:
                self._reporter.begin(source.path)
            worker.sources.append(source)
            with contextlib.suppress(OSError):  # a dead worker is noticed when its pipe is read
                worker.pipe.send((source, self._names[source]))

    def _bury(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        suspect = worker.suspect()
        self._reported.update(itertools.islice(worker.sources, worker.folded))
        self._deaths[suspect] = self._deaths.get(suspect, 0) + 1
        if self._deaths[suspect] >= _TRIES:
            self._reporter.problem(_death(suspect, worker.process.exitcode))
            worker.sources.remove(suspect)
        self._waiting.extendleft(reversed(worker.sources))
        if self._waiting:
            self._start()
            self._share()


@contextlib.contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Keeps Ctrl-C from processes that start here: they would print a traceback before they can ignore it.

    A blocked signal is inherited; here it is delivered at the end of the block.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # else it starts with the first process, and unblocks the signal
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _is_small(source: Source) -> bool:
    with contextlib.suppress(OSError):
        known = os.stat(source.path)  # noqa: PTH116 - the path as given
        return stat.S_ISREG(known.st_mode) and known.st_size <= _AHEAD_BYTES
    return False


def _death(source: Source, exitcode: int | None) -> Problem:
    how = f"signal {-exitcode}" if exitcode is not None and exitcode < 0 else f"exit code {exitcode}"
    return Problem(None, "worker_died", f"its worker ended by {how} {_TRIES} times; it is skipped", source.path)


# In the worker.


def _nowhere() -> int:
    return 0


class _Pipe(ProgressSink):
    """Sends problems and progress to the parent.

    Args:
        pipe: Connection to the parent.
        lock: Lock shared by all users of the pipe.
        strict: Stop at the first problem.
        kind: Kind of message for problems.
    """

    def __init__(self, pipe: Connection, lock: threading.Lock, *, strict: bool, kind: str = "problem") -> None:
        self.problems = 0
        self._kind = kind
        self._pipe = pipe
        self._lock = lock
        self._strict = strict
        self._transcripts = self._bytes = self._sent_bytes = 0
        self._position: Position = _nowhere

    def send(self, kind: str, value: object = None) -> None:
        """Sends a message."""
        with self._lock:
            self._pipe.send((kind, value))

    def problem(self, problem: Problem, transcript: str | None = None) -> None:
        """Sends a problem.

        Raises:
            Stop: In a strict run: the file must not be placed.
        """
        self.problems += 1
        self.send(self._kind, (problem, transcript))
        if self._strict:
            raise Stop

    def advance(self, *, files: int = 0, transcripts: int = 0) -> None:  # noqa: ARG002 - files are counted by the parent
        """Sends progress, batched."""
        self._transcripts += transcripts
        if self._transcripts >= 64:
            self.emit()

    def begin(self, path: str, position: Position = _nowhere) -> None:  # noqa: ARG002 - the parent knows the path
        """Notes the file in progress."""
        self._position, self._sent_bytes = position, 0

    def end(self, size_bytes: int | None) -> None:
        """Notes that the file in progress is done."""
        self._bytes += (size_bytes or self._sent_bytes) - self._sent_bytes
        self.begin("")

    def emit(self) -> None:
        """Sends pending progress."""
        position = self._position()
        self._bytes += position - self._sent_bytes
        self._sent_bytes = position
        if self._transcripts or self._bytes:
            self.send("advance", (self._transcripts, self._bytes))
            self._transcripts = self._bytes = 0


def _work(pipe: Connection, compactor: BatchCompactor, out: Path, strict: bool) -> None:
    # Ctrl-C reaches all processes of a terminal, but the parent decides. SIGTERM exits so that temporary files are
    # removed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_follow_parent, daemon=True).start()
    lock = threading.Lock()
    # One reporter per thread, since each counts its problems.
    teller, placer = _Pipe(pipe, lock, strict=strict), _Pipe(pipe, lock, strict=strict, kind="unwritten")
    with (
        contextlib.suppress(EOFError, OSError, Stop),
        Outputs() as outputs,
        Placing(outputs, placer, lambda report: placer.send("done", report), lambda: placer.send("stuck")) as placing,
    ):
        while (task := pipe.recv()) is not None:
            source, name = task
            folded = fold_file(source, out, name, compactor, teller, outputs)
            teller.emit()
            if strict:  # files before the first problem are placed and reported
                place_files([folded], outputs, teller)
                teller.send("folded")
                teller.send("done", folded.report)
            else:
                teller.send("folded")
                placing.add(folded)


def _follow_parent() -> None:
    """Exits when the parent dies, so that a resumed run does not meet this worker."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
