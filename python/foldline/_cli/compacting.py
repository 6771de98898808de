"""What `foldline compact` does: transcripts in, folded transcripts out, file by file."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import click

from foldline._cli.parquet import folded_batches, is_parquet, write_batches
from foldline._cli.reporting import Telling
from foldline._cli.sources import STDIN, DatabaseSource, Source, transcripts
from foldline._core import READER_KEYS, RECORD_KEYS, LineScanner, document_ranges
from foldline._row_reading import NamedRow, read_rows
from foldline.batch import BatchCompactor, CompactedRow, error_record, json_text
from foldline.errors import StoreError
from foldline.output import COMPRESSIONS, Hashing, compressing, make_folder, replacing
from foldline.reading import MAX_DOCUMENT_BYTES
from foldline.typing import Problem, StoredTranscript

__all__ = ["BOOKKEEPING", "COUNTS", "FileReport", "compact_file", "output_names", "sha256_of", "source_name", "totals"]

#: Where bookkeeping lies in the output folder.
BOOKKEEPING = Path(".foldline")

#: What is counted of a file, in the order in which it is shown.
COUNTS = (
    "transcripts",
    "folded",
    "unchanged",
    "infeasible",
    "failed",
    "problems",
    "tokens_before",
    "tokens_after",
)

_SNIFFED_BYTES = 1 << 16

#: From here on a thread of its own hashes a file; below, it would take longer to start.
_LARGE_BYTES = 8 << 20


# What goes where.


def output_names(sources: list[Source], folders: list[str], out: Path, compress: str = "auto") -> dict[Source, Path]:
    """The path of each output below ``out``; its suffix says how it is compressed.

    Raises:
        click.UsageError: Two would be the same, or one would overwrite a source.
    """
    place = _real(out)
    for folder in folders:
        if place.is_relative_to(_real(Path(folder))):
            raise click.BadParameter("lies in a folder that is read; choose one outside it", param_hint="--out")
    occupied = {path for source in sources if source.path != STDIN for path in _places(Path(source.path))}
    names: dict[Source, Path] = {}
    taken: dict[Path, Source] = {}
    for source in sources:
        name = _output_name(source, compress)
        if name.parts[0] == str(BOOKKEEPING):
            raise click.UsageError(f"{source.path}: {BOOKKEEPING} in the output folder is kept for bookkeeping")
        if name in taken:
            raise click.UsageError(f"{taken[name].path} and {source.path} would both become {name.as_posix()}")
        if place / name in occupied:
            raise click.BadParameter(f"{source.path} would be overwritten", param_hint="--out")
        taken[name] = source
        names[source] = name
    for name, source in taken.items():
        above = next((parent for parent in name.parents if parent in taken), None)
        if above is not None:
            raise click.UsageError(f"{taken[above].path} and {source.path} would both become {above.as_posix()}")
    return names


def _places(path: Path) -> tuple[Path, Path]:
    """Where a source lies, and where it leads if it is a link."""
    return _real(path.parent) / path.name, _real(path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve raises where links go in a circle.


def _output_name(source: Source, compress: str) -> Path:
    """The name of a source, with the suffix of another compression if one is asked for. Parquet compresses itself."""
    is_compressed = source.name.suffix in COMPRESSIONS
    plain = source.name.with_suffix("") if is_compressed else source.name
    if is_parquet(source.path):
        return plain
    if compress == "auto":
        return source.name
    return plain if compress == "none" else plain.with_name(f"{plain.name}.{compress}")


# One transcript.


def _record(transcript: StoredTranscript, source: Source, row: CompactedRow) -> dict[str, Any]:
    """A transcript as it is written."""
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
        "meta": _meta(transcript, source),
    }


def _meta(transcript: StoredTranscript, source: Source) -> dict[str, Any]:
    """What stood around the messages. Of what this command wrote itself, what stood around at first."""
    around = transcript.meta
    if around.keys() | {"messages"} >= set(RECORD_KEYS) and isinstance(around["meta"], dict):
        return around["meta"]
    said = {"id": transcript.id, "format": transcript.format, "path": source.path}
    # What is said of single messages is not true of the folded list.
    said |= {key: around[key] for key in READER_KEYS if key in around}
    return {key: value for key, value in around.items() if key not in said or said[key] != value}


# One file.


@dataclass(slots=True)
class FileReport:
    """What became of a file."""

    source: str
    output: str | None = None
    transcripts: int = 0
    folded: int = 0
    unchanged: int = 0
    infeasible: int = 0
    failed: int = 0
    problems: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    longest: int = 0
    retry: int = 0
    input_bytes: int | None = None
    input_sha256: str | None = None
    output_bytes: int | None = None
    output_sha256: str | None = None

    def add(self, status: str, tokens_before: int | None, tokens_after: int | None, messages: int) -> None:
        """Counts a written transcript."""
        self.transcripts += 1
        setattr(self, status, getattr(self, status) + 1)
        self.tokens_before += tokens_before or 0
        self.tokens_after += tokens_after or 0
        self.longest = max(self.longest, messages)

    def record(self) -> dict[str, Any]:
        """What is told of it: the counts, the longest transcript, summaries worth another try, sizes and hashes."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def compact_file(
    source: Source, out: Path, name: Path, compactor: BatchCompactor, reporter: Telling, *, threads: int = 1
) -> FileReport:
    """Folds the transcripts of a file, one at a time, into ``out / name``.

    A file without any transcript gives no output. What cannot be written is a problem, and leaves an older output as
    it was.

    Args:
        source: The file.
        out: The output folder.
        name: The path of the output below it.
        compactor: What folds.
        reporter: Who is told of problems and progress.
        threads: How many may fold at once where no model is asked.

    Raises:
        Stop: In a strict run; then nothing is written.
    """
    report = FileReport(source_name(source))
    problems_before = reporter.problems
    hashed = None if source.path == STDIN else _Hashed(Path(source.path))
    try:
        if is_parquet(source.path):
            batches = folded_batches(source.path, compactor, report, reporter)
            first_batch = next(batches, None)
            if first_batch is not None:
                with _output(report, out, name, source) as stream:
                    write_batches(stream, itertools.chain([first_batch], batches), compactor)
        else:
            found = _found(source, compactor, reporter, threads)
            first = next(found, None)
            if first is not None:
                as_document = _is_list(source)
                with _output(report, out, name, source) as stream:
                    lines = _folded_lines(itertools.chain([first], found), source, compactor, report, reporter)
                    _write(stream, lines, as_document=as_document)
    except OSError as error:
        reporter.problem(Problem(None, "cannot_write", error.strerror or type(error).__name__, str(out / name)))
        report.retry += 1
    except StoreError as error:
        reporter.problem(Problem(None, error.code, error.detail, error.path or str(out / name)))
        report.retry += 1
    except BaseException:
        if hashed is not None:
            hashed.give_up()
        raise
    if hashed is not None:
        report.input_bytes, report.input_sha256 = hashed.end()
    report.problems = reporter.problems - problems_before
    return report


def _found(
    source: Source, compactor: BatchCompactor, reporter: Telling, threads: int
) -> Iterator[StoredTranscript | NamedRow]:
    """The transcripts of a file, folded already where the core does all of it."""
    folder = compactor.row_folder(threads)
    if folder is None or isinstance(source, DatabaseSource):
        yield from transcripts(source, reporter.problem)
        return
    try:
        yield from read_rows(source.path, folder, reporter.problem)
    except OSError as error:
        reporter.problem(Problem(None, "unreadable_file", error.strerror or type(error).__name__, source.path))


class _Hashed:
    """Bytes and hash of a file: of a large one found while it is folded, of a small one thereafter."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: tuple[int | None, str | None] = (None, None)
        self._given_up = threading.Event()
        self._thread: threading.Thread | None = None
        with contextlib.suppress(OSError):  # it is told when it is read
            if path.stat().st_size >= _LARGE_BYTES:
                self._thread = threading.Thread(target=self._hash, name="foldline-hash", daemon=True)
                self._thread.start()

    def _hash(self) -> None:
        with contextlib.suppress(OSError):  # it is told when it is read
            self._found = sha256_of(self._path, self._given_up.is_set)

    def give_up(self) -> None:
        """Nobody waits for it."""
        self._given_up.set()

    def end(self) -> tuple[int | None, str | None]:
        """Waits for it."""
        if self._thread is None:
            self._hash()
        else:
            self._thread.join()
        return self._found


@contextlib.contextmanager
def _output(report: FileReport, out: Path, name: Path, source: Source) -> Iterator[IO[bytes]]:
    """The stream of an output; in the report once it lies in its place."""
    folder = make_folder(out, name.parent)
    with replacing(folder / name.name, mode=_mode(source)) as stream:
        hashing = Hashing(stream)
        with compressing(hashing, name.suffix) as packed:
            yield packed
    report.output = name.as_posix()
    report.output_bytes, report.output_sha256 = hashing.size, hashing.hexdigest()


def sha256_of(path: Path, is_given_up: Callable[[], bool] = lambda: False) -> tuple[int, str]:
    """Bytes and hash of a file; of what is no file, a pipe for one, nothing is read.

    Args:
        path: The file.
        is_given_up: Asked now and then; once it is, the rest of the file is not read.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while (chunk := stream.read(1 << 20)) and not is_given_up():
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def source_name(source: Source) -> str:
    """What reports call a source."""
    return source.path if source.path == STDIN else source.name.as_posix()


def _folded_lines(
    found: Iterator[StoredTranscript | NamedRow],
    source: Source,
    compactor: BatchCompactor,
    report: FileReport,
    reporter: Telling,
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
        written = _record(transcript, source, row)
        report.add(row.status, row.tokens_before, row.tokens_after, len(transcript.messages))
        report.retry += row.retry
        if row.error is not None:
            reporter.error(row.error, source.path, transcript.id)
        reporter.advance(transcripts=1)
        yield json_text(written).encode()


def _write(stream: IO[bytes], lines: Iterator[bytes], *, as_document: bool) -> None:
    """Lines of JSON, or one array of several; a single object is the same in both."""
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


def _mode(source: Source) -> int:
    """What the owner alone may read stays so."""
    if source.path == STDIN:
        return 0o666
    with contextlib.suppress(OSError):
        return (os.stat(source.path).st_mode & 0o666) | 0o600  # noqa: PTH116 - as it was given
    return 0o600


def _is_list(source: Source) -> bool:
    """Whether a file is one JSON array, and not lines with an array each. Reads its first value, or all of it."""
    if not os.path.isfile(source.path):  # noqa: PTH113 - as it was given
        return False
    errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
    with contextlib.suppress(ImportError):
        import zstandard

        errors += (zstandard.ZstdError,)
    with contextlib.suppress(*errors), Path(source.path).open("rb") as raw:
        stream: Any = raw
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == b"\x1f\x8b":
            stream = gzip.GzipFile(fileobj=raw)
        elif magic == b"\x28\xb5\x2f\xfd":
            stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return _holds_list(stream)
    return False


def _holds_list(stream: IO[bytes]) -> bool:
    begun = bytearray(stream.read(_SNIFFED_BYTES))
    if not begun.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return False
    scanner = LineScanner()
    chunk, values = bytes(begun), 0
    while chunk:
        found, problems = scanner.feed(chunk)
        if not values and problems and (not found or problems[0][0] <= found[0][0]):
            # The first line is none: a document over many lines, or nothing at all.
            ranges, bad = document_ranges(bytes(begun) + stream.read(MAX_DOCUMENT_BYTES))
            return len(ranges) == 1 and not bad
        values += len(found)
        if values > 1 or problems:
            return False
        chunk = stream.read(_SNIFFED_BYTES)
        if not values:
            begun += chunk
    found, problems = scanner.finish()
    return values + len(found) == 1 and not problems


# All files.


def totals(files: Sequence[FileReport]) -> dict[str, int]:
    """The sums over all files."""
    return {key: sum(getattr(report, key) for report in files) for key in COUNTS}
