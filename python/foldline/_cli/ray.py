"""Ray actors instead of worker processes: each folds one file at a time, and a dead one loses only its file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from foldline._cli.fold_file import compact_file
from foldline._cli.progress import FileReport, ProgressSink, Reporter, Stop
from foldline._cli.sources import STDIN, Source
from foldline._util.files import remove_stale
from foldline.batch import BatchCompactor
from foldline.batch.ray import running
from foldline.errors import FoldlineError
from foldline.typing import Problem

__all__ = ["compact_all_on_ray"]

#: Actors that may die on a file before it is abandoned.
_TRIES = 2

#: Seconds for killed actors to end, before their temporary files are removed.
_GRACE_S = 5.0

_Reported = list[tuple[Problem, str | None]]


def compact_all_on_ray(
    sources: Sequence[Source],
    names: Mapping[Source, Path],
    out: Path,
    compactor: BatchCompactor,
    reporter: Reporter,
    jobs: int | None,
    *,
    strict: bool,
) -> Iterator[tuple[Source, FileReport]]:
    """Folds files on a Ray cluster, as `compact_all` does in processes. Default ``jobs``: all processors.

    All nodes must reach sources and output folder under the same paths.

    Raises:
        Stop: In a strict run.
        click.UsageError: Ray is missing, or no cluster answers.
    """
    for source in sources:
        if source.path == STDIN:
            yield source, compact_file(source, out, names[source], compactor, reporter)
    waiting = deque(source for source in sources if source.path != STDIN)
    if not waiting:
        return
    with contextlib.ExitStack() as stack:
        # Last, when the actors of a local instance have ended with it.
        stack.callback(remove_stale, {out / name.parent for name in names.values()})
        try:
            ray = stack.enter_context(running(jobs))
        except FoldlineError as error:
            raise click.UsageError(f"--engine ray: {error.detail}") from None
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))  # stdout is for results; Ray prints there
        yield from _on_actors(ray, waiting, names, out, compactor, reporter, jobs, strict=strict)


def _on_actors(
    ray: Any,
    waiting: deque[Source],
    names: Mapping[Source, Path],
    out: Path,
    compactor: BatchCompactor,
    reporter: Reporter,
    jobs: int | None,
    *,
    strict: bool,
) -> Iterator[tuple[Source, FileReport]]:
    kind = ray.remote(num_cpus=1, max_restarts=0)(_Worker)
    busy: dict[Any, tuple[Any, Source]] = {}
    deaths: dict[Source, int] = {}

    def give(actor: Any) -> None:
        if waiting:
            source = waiting.popleft()
            reporter.begin(source.path)
            busy[actor.compact.remote(source, names[source])] = (actor, source)
        else:
            ray.kill(actor)

    def start() -> None:
        give(kind.remote(compactor, out, str(Path.cwd()), strict=strict))

    try:
        for _ in range(min(len(waiting), jobs or max(1, int(ray.cluster_resources().get("CPU", 1))))):
            start()
        while busy:
            (done,), _ = ray.wait(list(busy), num_returns=1)
            actor, source = busy.pop(done)
            try:
                problems, report = ray.get(done)
            except ray.exceptions.RayError as error:
                deaths[source] = deaths.get(source, 0) + 1
                if deaths[source] < _TRIES:
                    waiting.appendleft(source)
                else:
                    reporter.problem(_death(source, error))
                with contextlib.suppress(ray.exceptions.RayError):
                    ray.kill(actor)
                if waiting:
                    start()
                continue
            give(actor)
            for problem, transcript in problems:
                reporter.problem(problem, transcript)
            if report is not None:
                reporter.have_read(report.input_bytes or 0)
                reporter.advance(transcripts=report.transcripts)
                yield source, report
    finally:
        for actor, _ in busy.values():
            with contextlib.suppress(ray.exceptions.RayError):
                ray.kill(actor)
        if busy:  # the tasks of an actor end when it is dead, and then it writes no more
            with contextlib.suppress(ray.exceptions.RayError):
                ray.wait(list(busy), num_returns=len(busy), timeout=_GRACE_S)


def _death(source: Source, error: Exception) -> Problem:
    detail = f"its worker ended by {type(error).__name__} {_TRIES} times; nothing was written"
    return Problem(None, "worker_died", detail, source.path)


# In the actor.


class _Worker:
    def __init__(self, compactor: BatchCompactor, out: Path, folder: str, *, strict: bool) -> None:
        os.chdir(folder)  # relative paths are relative to the caller's folder
        self._compactor = compactor
        self._out = out
        self._strict = strict

    def compact(self, source: Source, name: Path) -> tuple[_Reported, FileReport | None]:
        """The problems of a file and its report; None as report after a stop in a strict run."""
        teller = _Teller(strict=self._strict)
        report = None
        with contextlib.suppress(Stop):
            report = compact_file(source, self._out, name, self._compactor, teller)
        return teller.reported, report


class _Teller(ProgressSink):
    """Collects problems, to send them with the report."""

    def __init__(self, *, strict: bool) -> None:
        self.problems = 0
        self.reported: _Reported = []
        self._strict = strict

    def problem(self, problem: Problem, transcript: str | None = None) -> None:
        """Collects a problem."""
        self.problems += 1
        self.reported.append((problem, transcript))
        if self._strict:
            raise Stop

    def advance(self, *, files: int = 0, transcripts: int = 0) -> None:
        """Does nothing: the report contains the counts."""
