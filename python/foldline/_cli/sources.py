"""Finds the files that a command reads, and reads their transcripts."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foldline.reading import is_session, is_storage, read, sessions_of
from foldline.typing import Problem, StoredTranscript

__all__ = ["STDIN", "DatabaseSource", "OnProblem", "Source", "find_sources", "is_file", "is_pattern", "transcripts"]

STDIN = "-"

OnProblem = Callable[[Problem], None]


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        path: The path; ``-`` for standard input.
        name: Path below the given folder, or the file's name.
    """

    path: str
    name: Path


@dataclass(frozen=True, slots=True)
class DatabaseSource(Source):
    """Rows of a database to read.

    Attributes:
        path: The URL without its password.
        name: Name of the output, without compression.
        url: The URL.
        table: The table. Without table and query: sessions of foldline.
        query: The query.
        rows: Reads the transcripts of the source.
    """

    url: str = field(repr=False)
    table: str | None
    query: str | None
    rows: Callable[[DatabaseSource, OnProblem], Iterator[StoredTranscript]] = field(repr=False, compare=False)


def find_sources(paths: Sequence[str], on_problem: OnProblem) -> list[Source]:
    """The files of paths, in order; of a folder, all files below it by name.

    A session in the storage folder of opencode is one source. Hidden files and folders inside a folder are skipped
    (named explicitly, they are read). Links to folders are not followed; links to files are.
    """
    found = []
    for path in paths:
        if path == STDIN:
            found.append(Source(STDIN, Path("stdin.jsonl")))
        elif is_pattern(path):
            found += _matching(path, on_problem)
        elif not os.path.isdir(path):  # noqa: PTH112 - the path as given, not normalized
            found.append(Source(path, Path(Path(path).name)))
        else:
            files = sorted(_below(Path(path), on_problem))
            found += [Source(str(file), _name(file, Path(path))) for file in files]
    return found


def _name(file: Path, folder: Path) -> Path:
    """The path of a file below a folder; a session of opencode, which is a folder, has the name of a file."""
    name = file.relative_to(folder)
    return (name / "session" if file == folder else name).with_suffix(".jsonl") if file.is_dir() else name


def is_file(path: str) -> bool:
    """Whether the path is a regular file, not a folder, pipe or device."""
    return os.path.isfile(path)  # noqa: PTH113 - the path as given


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern: it contains ``*``, ``?`` or ``[``, and no file has that name."""
    return path != STDIN and glob.has_magic(path) and not os.path.lexists(path)


def _matching(pattern: str, on_problem: OnProblem) -> Iterator[Source]:
    """The files that match a pattern, sorted; names are relative to its fixed leading folders."""
    parts = Path(pattern).parts
    fixed = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    files = sorted(path for path in glob.glob(pattern, recursive=True) if is_file(path))  # noqa: PTH207 - hidden ones
    if not files:
        on_problem(Problem(None, "no_match", "no file matches", pattern))
    for path in files:
        yield Source(path, Path(path).relative_to(fixed))


def _below(folder: Path, on_problem: OnProblem) -> Iterator[Path]:
    def report(code: str, path: str | Path, detail: str = "") -> None:
        on_problem(Problem(None, code, detail, str(path)))

    def unreadable(error: OSError) -> None:
        report("unreadable_folder", error.filename, error.strerror or "")

    if is_session(folder):
        yield folder
        return
    for place, folders, files in os.walk(folder, onerror=unreadable):
        if is_storage(Path(place)):
            folders.clear()
            yield from sessions_of(Path(place))
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if Path(place, name).is_symlink():
                report("linked_folder", Path(place, name), "links to folders are not followed")
        for name in files:
            file = Path(place, name)
            if name.startswith("."):
                continue
            if file.is_file():
                yield file
            elif file.is_symlink():
                report("unreadable_file", file, "a link without a target file")
            else:
                report("unreadable_file", file, "a pipe, socket or device")


def transcripts(source: Source, on_problem: OnProblem) -> Iterator[StoredTranscript]:
    """The transcripts of a file or database; an unreadable file is a problem.

    Raises:
        StoreError: A database cannot be read to its end.
    """
    if isinstance(source, DatabaseSource):
        yield from source.rows(source, on_problem)
        return
    try:
        yield from read(source.path, on_problem=on_problem)
    except OSError as error:
        on_problem(Problem(None, "unreadable_file", error.strerror or type(error).__name__, source.path))
