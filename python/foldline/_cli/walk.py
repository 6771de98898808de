"""The transcripts of the paths that a command is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from foldline._cli.options import PATHS, checked_paths
from foldline._cli.progress import Reporter
from foldline._cli.sources import OnProblem, Source, find_sources, transcripts
from foldline.typing import StoredTranscript

__all__ = ["each_transcript", "paths_argument"]

paths_argument = click.argument("paths", type=PATHS, nargs=-1, required=True, metavar="PATH…", callback=checked_paths)


def each_transcript(
    paths: Sequence[str],
    reporter: Reporter,
    on_problem: OnProblem | None = None,
    more: Sequence[Source] = (),
) -> Iterator[tuple[Source, StoredTranscript]]:
    """The transcripts of paths, then those of more sources, with their sources.

    Raises:
        StoreError: A database cannot be read to its end.
    """
    on_problem = on_problem or reporter.problem
    sources = [*find_sources(paths, on_problem), *more]
    reporter.expect(len(sources), (source.path for source in sources))
    for source in sources:
        with reporter.of_file(source.path):
            for transcript in transcripts(source, on_problem):
                reporter.advance(transcripts=1)
                yield source, transcript
        reporter.advance(files=1)
