"""A run of `foldline compact` or `trim`: finds sources, keeps records, starts the workers, prints results."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from foldline._cli.fold_file import output_names
from foldline._cli.progress import COUNTS, Column, FileReport, Reporter, Stop, Table, totals
from foldline._cli.runs import begun, tell_earlier, tell_resumed
from foldline._cli.sources import STDIN, Source, find_sources
from foldline._cli.workers import compact_all
from foldline.batch import BatchCompactor
from foldline.batch.cache import SummaryCache

if TYPE_CHECKING:
    from foldline._cli.batch_report import Reporting

__all__ = ["Compacting"]


class _Pinned(Protocol):
    """Options with pins, which some transcript must have."""

    def check_pins(self, longest: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Compacting:
    """Options of a run.

    Attributes:
        out: The output folder.
        compress: Compression of results: ``auto``, ``gz``, ``zst`` or ``none``.
        resume: Continue an earlier run.
        strict: Stop at the first problem.
        engine: ``local`` or ``ray``.
        jobs: Files to fold at once. None: the engine's default.
        as_json: Print results as JSON lines.
        command: Name of the command, for the records.
        reporting: Where a report of the run is written, if one is wanted.
    """

    out: Path
    compress: str
    resume: bool
    strict: bool
    engine: str
    jobs: int | None
    as_json: bool
    command: str = "compact"
    reporting: Reporting | None = None

    def over(
        self,
        paths: Sequence[str],
        databases: Sequence[Source],
        folding: _Pinned,
        compactor: BatchCompactor,
        recorded: Mapping[str, Any],
        cache: SummaryCache | None,
    ) -> int:
        """Folds the sources of paths and databases, and prints the outcome; returns the exit code.

        Raises:
            click.UsageError: Outputs would collide, the folder cannot be used, the engine is missing, or a pin matches
                no message.
            StoreError: The cache cannot be used; the records of an earlier run are unchanged.
        """
        if self.engine == "ray" and importlib.util.find_spec("ray") is None:
            raise click.UsageError("--engine ray needs the package ray: pip install 'foldline[ray]'")
        finished: dict[Source, FileReport] = {}
        cost: dict[str, float] | None = None
        sources: list[Source] = []
        with Reporter(strict=self.strict) as reporter, contextlib.suppress(Stop):
            sources = [*find_sources(paths, reporter.problem), *databases]
            folders = [path for path in paths if path != STDIN and Path(path).is_dir()]
            names = output_names(sources, folders, self.out, self.compress)
            with begun(self.out, recorded, self.command) as run:
                if cache is not None:
                    cache.check()  # before the records of an earlier run are replaced
                if self.resume:
                    if cache is not None:
                        cache.spent()  # limits cover the resumed run too, so its amounts must be known
                    finished |= run.resumed(sources, names)
                else:
                    run.begin(names)
                    if cache is not None:
                        cache.forget_spent()
                waiting = [source for source in sources if source not in finished]
                reporter.expect(len(sources), (source.path for source in waiting))
                tell_resumed(finished, reporter)
                if self.engine == "ray":
                    from foldline._cli.ray import compact_all_on_ray

                    work = compact_all_on_ray(
                        waiting, names, self.out, compactor, reporter, self.jobs, strict=self.strict
                    )
                else:
                    work = compact_all(waiting, names, self.out, compactor, reporter, self.jobs or 1)
                try:
                    for source, report in work:
                        finished[source] = report
                        run.finished(report)
                        reporter.advance(files=1)
                finally:
                    done = [finished[source] for source in sources if source in finished]
                    run.write(done, complete=len(done) == len(sources))
                    if cache is not None:
                        cost = cache.spent() if self.reporting is not None else None
                        cache.close()
                tell_earlier(run, names, done, reporter)
        reports = [finished[source] for source in sources if source in finished]
        table = Table([Column("source")] + [Column(key, "right") for key in COUNTS], as_json=self.as_json)
        for report in reports:
            table.add(report.record())
        if len(reports) > 1 and not self.as_json:
            table.add({"source": "total"} | totals(reports))
        table.close()
        if self.reporting is not None:
            done_files = {source: finished[source] for source in sources if source in finished}
            self.reporting.write(self.out, done_files, compactor, _whole(cost), as_json=self.as_json)
        folding.check_pins(max((report.longest for report in reports), default=0))
        return reporter.exit_code


def _whole(cost: dict[str, float] | None) -> dict[str, float] | None:
    """What was spent, with zeros for what was not; None without a model."""
    if cost is None:
        return None
    return dict.fromkeys(("requests", "cache_hits", "input_tokens", "output_tokens"), 0.0) | cost
