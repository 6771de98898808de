"""Parquet files, folded a batch of rows at a time."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import IO, Any

from foldline._cli.progress import FileReport, ProgressSink
from foldline._cli.sources import STDIN, is_file
from foldline.batch import BatchCompactor
from foldline.batch._fragments import ROWS_AT_A_TIME, is_worth_another_try
from foldline.errors import ConfigError, FoldlineError
from foldline.typing import Problem, StoredTranscript

__all__ = ["folded_batches", "holds_parquet", "is_parquet", "row_transcripts", "write_batches"]

_MAGIC = b"PAR1"


def is_parquet(path: str) -> bool:
    """Whether a file begins with Parquet's magic."""
    if path == STDIN or not is_file(path):
        return False
    with contextlib.suppress(OSError), open(path, "rb") as stream:  # noqa: PTH123 - the path as given
        return holds_parquet(stream)
    return False


def holds_parquet(stream: IO[bytes]) -> bool:
    """Whether a stream begins with Parquet's magic."""
    return stream.read(len(_MAGIC)) == _MAGIC


def folded_batches(
    path: str, compactor: BatchCompactor, report: FileReport, reporter: ProgressSink, stream: IO[bytes] | None = None
) -> Iterator[Any]:
    """The folded rows of a file as `pyarrow.RecordBatch` objects. A corrupt batch is a problem and ends the file.

    Args:
        path: The file.
        compactor: Folds the rows.
        report: Receives the counts.
        reporter: Receives problems and progress.
        stream: The bytes of the file, if it is open.

    Raises:
        Stop: In a strict run.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        detail = "Parquet needs the package pyarrow: pip install 'foldline[arrow]'"
        reporter.problem(Problem(None, "missing_extra", detail, path))
        return
    try:
        with pq.ParquetFile(path if stream is None else stream) as file:
            wanted = {compactor.messages_column, compactor.id_column} & set(file.schema_arrow.names)
            for batch in file.iter_batches(ROWS_AT_A_TIME, columns=sorted(wanted)):
                folded = compactor(batch)
                _tell(folded.to_pylist(), path, report, reporter)
                yield folded
    except ConfigError as error:
        reporter.problem(Problem(None, error.code, "the file has no column messages", path))
    except (pa.ArrowException, OSError) as error:
        reporter.problem(Problem(None, "bad_parquet", type(error).__name__, path))


def row_transcripts(path: str, compactor: BatchCompactor) -> Iterator[StoredTranscript | None]:
    """The transcript of each row of a file that was folded; None for a row without one."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        columns = [compactor.messages_column]
        columns += {compactor.id_column} & set(file.schema_arrow.names)
        for batch in file.iter_batches(ROWS_AT_A_TIME, columns=columns):
            for index, row in enumerate(batch.to_pylist()):
                try:
                    yield compactor.transcript_of_row(row[columns[0]], row.get(compactor.id_column), index)
                except FoldlineError:
                    yield None


def write_batches(stream: IO[bytes], batches: Iterator[Any], compactor: BatchCompactor) -> None:
    """Writes a file of folded batches, a row group each."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(stream, compactor.schema(), compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def _tell(rows: list[dict[str, Any]], path: str, report: FileReport, reporter: ProgressSink) -> None:
    for row in rows:
        report.add(row["status"], row["tokens_before"], row["tokens_after"], len(row["actions"] or ()))
        report.retry += is_worth_another_try(row)
        if row["error"] is not None:
            error = FoldlineError(**json.loads(row["error"]))
            reporter.error(error, path, row["id"])
        reporter.advance(transcripts=1)
