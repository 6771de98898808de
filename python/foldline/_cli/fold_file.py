"""Folds one file for `foldline compact`: reads its transcripts, writes the folded ones."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click

from foldline._cli.inputs import Input, is_list
from foldline._cli.parquet import folded_batches, holds_parquet, is_parquet, write_batches
from foldline._cli.progress import FileProblems, FileReport, ProgressSink
from foldline._cli.sources import STDIN, DatabaseSource, Source, transcripts
from foldline._core import READER_KEYS, RECORD_KEYS
from foldline._util.files import COMPRESSIONS, PRIVATE, Hashing, Outputs, Staged, compressing, make_folder
from foldline.batch import BatchCompactor, CompactedRow, error_record, json_text
from foldline.batch.compactor import facts_record
from foldline.errors import StoreError
from foldline.reading._rows import NamedRow, read_rows
from foldline.reading.files import read_stream
from foldline.typing import Problem, StoredTranscript

__all__ = [
    "BOOKKEEPING",
    "FoldedFile",
    "compact_file",
    "fold_file",
    "mode_of",
    "output_names",
    "place_files",
    "source_name",
]

#: Folder of bookkeeping files in the output folder.
BOOKKEEPING = Path(".foldline")


# Output names.


def output_names(sources: list[Source], folders: list[str], out: Path, compress: str = "auto") -> dict[Source, Path]:
    """The path of each output below ``out``; its suffix determines the compression.

    Raises:
        click.UsageError: Two outputs would have the same path, or one would overwrite a source.
    """
    place = _real(out)
    for folder in folders:
        if place.is_relative_to(_real(Path(folder))):
            raise click.BadParameter("is inside an input folder; choose one outside it", param_hint="--out")
    occupied = _occupied(source.path for source in sources if source.path != STDIN)
    names: dict[Source, Path] = {}
    taken: dict[Path, Source] = {}
    for source in sources:
        name = _output_name(source, compress)
        if name.parts[0] == str(BOOKKEEPING):
            raise click.UsageError(f"{source.path}: {BOOKKEEPING} in the output folder is reserved for bookkeeping")
        if name in taken:
            raise click.UsageError(f"{taken[name].path} and {source.path} would both become {name.as_posix()}")
        if os.path.normcase(place / name) in occupied:
            raise click.BadParameter(f"{source.path} would be overwritten", param_hint="--out")
        taken[name] = source
        names[source] = name
    for name, source in taken.items():
        above = next((parent for parent in name.parents if parent in taken), None)
        if above is not None:
            raise click.UsageError(f"{taken[above].path} and {source.path} would both become {above.as_posix()}")
    return names


def _occupied(paths: Iterable[str]) -> set[str]:
    """Paths of the sources, and targets of those that are links."""
    folders: dict[str, str] = {}
    occupied = set()
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        occupied.add(os.path.normcase(os.path.join(folders[folder], name)))  # noqa: PTH118 - of a million sources
        if os.path.islink(path):  # noqa: PTH114
            occupied.add(os.path.normcase(os.path.realpath(path)))
    return occupied


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `Path.resolve` raises on circular links


def _output_name(source: Source, compress: str) -> Path:
    """The output name of a source, with the suffix of the requested compression. Parquet compresses itself."""
    is_compressed = source.name.suffix in COMPRESSIONS
    if compress == "auto" and not is_compressed:
        return source.name
    plain = source.name.with_suffix("") if is_compressed else source.name
    if is_parquet(source.path):
        return plain
    if compress == "auto":
        return source.name
    return plain if compress == "none" else plain.with_name(f"{plain.name}.{compress}")


# One transcript.


def _record(transcript: StoredTranscript, source: Source, row: CompactedRow, *, with_facts: bool) -> dict[str, Any]:
    """The output record of a transcript."""
    return {
        "id": row.id,
        "format": row.format,
        "messages": row.messages,
        "summary": row.summary,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "actions": row.actions,
        "status": row.status,
        "error": None if row.error is None else error_record(row.error),
        "plan_hash": row.plan_hash,
        **(facts_record(row) if with_facts else {}),
        "meta": _meta(transcript, source),
    }


def _meta(transcript: StoredTranscript, source: Source) -> dict[str, Any]:
    """The fields around the messages. For outputs of this command, the original fields."""
    around = transcript.meta
    if around.keys() | {"messages"} >= set(RECORD_KEYS) and isinstance(around["meta"], dict):
        return around["meta"]
    said = {"id": transcript.id, "format": transcript.format, "path": source.path}
    # Fields about single messages do not apply to the folded list.
    said |= {key: around[key] for key in READER_KEYS if key in around}
    return {key: value for key, value in around.items() if key not in said or said[key] != value}


# One file.


@dataclass(frozen=True, slots=True)
class FoldedFile:
    """A folded file and its output, ready to be placed.

    Attributes:
        report: The outcome of the file.
        output: The staged output, or None.
    """

    report: FileReport
    output: Staged | None


def compact_file(
    source: Source, out: Path, name: Path, compactor: BatchCompactor, reporter: ProgressSink, *, threads: int = 1
) -> FileReport:
    """Folds the transcripts of a file one at a time into ``out / name``: `fold_file` and `place_files`."""
    with Outputs() as outputs:
        folded = fold_file(source, out, name, compactor, reporter, outputs, threads=threads)
        place_files([folded], outputs, reporter)
    return folded.report


def fold_file(
    source: Source,
    out: Path,
    name: Path,
    compactor: BatchCompactor,
    reporter: ProgressSink,
    outputs: Outputs,
    *,
    threads: int = 1,
) -> FoldedFile:
    """Folds the transcripts of a file one at a time into a temporary file next to ``out / name``.

    A file without transcripts gives no output. A failed write is a problem.

    Args:
        source: The file.
        out: The output folder.
        name: Path of the output below ``out``.
        compactor: Folds the transcripts.
        reporter: Receives problems and progress.
        outputs: Owner of the temporary file.
        threads: Number of folding threads, if no model is used.

    Raises:
        Stop: In a strict run; nothing is written.
    """
    started_s = time.perf_counter()
    report = FileReport(source_name(source))
    given = None if source.path == STDIN else Input(Path(source.path))
    if given is not None and not given.has_bytes:
        given = None
    problems = FileProblems(reporter, source.path, *(() if given is None else (given.position,)))
    try:
        output = _folded_output(source, given, out, name, compactor, report, problems, outputs, threads)
        if given is not None:
            report.input_bytes, report.input_sha256 = given.end()
    except BaseException:
        if given is not None:
            given.abandon()
        raise
    problems.end(report.input_bytes)
    report.problems = problems.problems
    if compactor.facts:
        report.seconds = round(time.perf_counter() - started_s, 3)
    return FoldedFile(report, output)


def place_files(
    files: Sequence[FoldedFile],
    outputs: Outputs,
    reporter: ProgressSink,
    check: Callable[[], bool] = lambda: True,
) -> None:
    """Places the outputs of files, durable on return.

    A failure is a problem; an older output stays unchanged.

    Raises:
        GivenUp: ``check`` returned false.
    """
    waiting = [(file, file.output) for file in files if file.output is not None]
    faults = outputs.place([output for _, output in waiting], check)
    for (file, output), fault in zip(waiting, faults, strict=True):
        if fault is not None:
            file.report.output = file.report.output_bytes = file.report.output_sha256 = None
            file.report.problems += 1
            _tell_unwritten(fault, output.path, file.report, reporter)


def _folded_output(
    source: Source,
    given: Input | None,
    out: Path,
    name: Path,
    compactor: BatchCompactor,
    report: FileReport,
    reporter: ProgressSink,
    outputs: Outputs,
    threads: int,
) -> Staged | None:
    """The complete output of a file; None if it has no transcripts or a write failed."""
    try:
        if given is not None and holds_parquet(given.again()):
            batches = folded_batches(source.path, compactor, report, reporter, given.again())
            first_batch = next(batches, None)
            if first_batch is None:
                return None
            with _output(report, out, name, source, outputs) as (output, stream):
                write_batches(stream, itertools.chain([first_batch], batches), compactor)
            return output
        found = _found(source, given, compactor, reporter, threads)
        first = next(found, None)
        if first is None:
            return None
        as_document = given is not None and is_list(given.again())
        with _output(report, out, name, source, outputs) as (output, stream):
            lines = _folded_lines(itertools.chain([first], found), source, compactor, report, reporter)
            _write(stream, lines, as_document=as_document)
        return output
    except OSError as error:
        _tell_unwritten(error, out / name, report, reporter)
    except StoreError as error:
        reporter.problem(Problem(None, error.code, error.detail, error.path or str(out / name)))
        report.retry += 1
    return None


def _tell_unwritten(error: OSError, place: Path, report: FileReport, reporter: ProgressSink) -> None:
    reporter.problem(Problem(None, "cannot_write", error.strerror or type(error).__name__, str(place)))
    report.retry += 1


def _found(
    source: Source, given: Input | None, compactor: BatchCompactor, reporter: ProgressSink, threads: int
) -> Iterator[StoredTranscript | NamedRow]:
    """The transcripts of a file, or rows folded by the core if it supports all options."""
    folder = None if isinstance(source, DatabaseSource) else compactor.row_folder(threads)
    if (folder is None and given is None) or os.path.isdir(source.path):  # noqa: PTH112 - the path as given
        yield from transcripts(source, reporter.problem)
        return
    stream = None if given is None else given.stream()
    try:
        if folder is not None:
            yield from read_rows(source.path, folder, reporter.problem, stream)
        elif stream is not None:
            yield from read_stream(stream, source.path, reporter.problem)
    except OSError as error:
        reporter.problem(Problem(None, "unreadable_file", error.strerror or type(error).__name__, source.path))


@contextlib.contextmanager
def _output(
    report: FileReport, out: Path, name: Path, source: Source, outputs: Outputs
) -> Iterator[tuple[Staged, IO[bytes]]]:
    """A staged output and the stream to write; recorded in the report when complete."""
    folder = make_folder(out, name.parent)
    with outputs.staging(folder / name.name, mode=mode_of(source)) as (output, stream):
        hashing = Hashing(stream)
        with compressing(hashing, name.suffix) as packed:
            yield output, packed
    report.output = name.as_posix()
    report.output_bytes, report.output_sha256 = hashing.size, hashing.hexdigest()


def source_name(source: Source) -> str:
    """The name of a source in reports."""
    return source.path if source.path == STDIN else source.name.as_posix()


def _folded_lines(
    found: Iterator[StoredTranscript | NamedRow],
    source: Source,
    compactor: BatchCompactor,
    report: FileReport,
    reporter: ProgressSink,
) -> Iterator[bytes]:
    for transcript in found:
        if isinstance(transcript, NamedRow):
            folded = transcript.row
            report.add(folded.status, folded.tokens_before, folded.tokens_after, folded.messages)
            if transcript.error is not None:
                reporter.error(transcript.error, source.path, transcript.id)
            reporter.advance(transcripts=1)
            yield transcript.record
            continue
        row = compactor.compact_row(transcript)
        written = _record(transcript, source, row, with_facts=compactor.facts)
        report.add(row.status, row.tokens_before, row.tokens_after, len(transcript.messages))
        report.retry += row.retry
        if row.error is not None:
            reporter.error(row.error, source.path, transcript.id)
        reporter.advance(transcripts=1)
        yield json_text(written).encode()


def _write(stream: IO[bytes], lines: Iterator[bytes], *, as_document: bool) -> None:
    """Writes JSON lines, or one array of several objects; a single object is the same in both."""
    opening, between, closing = (b"[\n", b",\n", b"\n]\n") if as_document else (b"", b"\n", b"\n")
    held = next(lines)
    several = False
    for line in lines:
        stream.write(held if several else opening + held)
        stream.write(between)
        held = line
        several = True
    stream.write(held)
    stream.write(closing if several else b"\n")


def mode_of(source: Source) -> int:
    """The source's permissions, as gzip gives them to its output; private without a file."""
    if source.path != STDIN:
        with contextlib.suppress(OSError):
            mode = os.stat(source.path).st_mode  # noqa: PTH116 - the path as given
            return mode & (0o666 if stat.S_ISDIR(mode) else 0o777)
    return PRIVATE
