"""Parquet files: a row in, a row out, a batch at a time."""

from __future__ import annotations

import contextlib
import json
from typing import IO, TYPE_CHECKING, Any

from foldline._cli.reporting import Telling
from foldline.batch import BatchCompactor
from foldline.errors import ConfigError, FoldlineError
from foldline.typing import Problem

if TYPE_CHECKING:
    from foldline._cli.compacting import FileReport

__all__ = ["compact_parquet", "is_parquet"]

_MAGIC = b"PAR1"

#: Rows that are in memory at a time, and in a row group of the output.
_BATCH_ROWS = 64


def is_parquet(path: str) -> bool:
    """Whether a file says that it is one."""
    from foldline._cli.sources import STDIN, is_file

    if path == STDIN or not is_file(path):
        return False
    with contextlib.suppress(OSError), open(path, "rb") as stream:  # noqa: PTH123 - as it was given
        return stream.read(len(_MAGIC)) == _MAGIC
    return False


def compact_parquet(
    path: str, stream: IO[bytes], compactor: BatchCompactor, report: FileReport, reporter: Telling
) -> None:
    """Folds the rows of a file into another. What is wrong with the file is a problem; then the output ends there.

    Raises:
        Stop: In a strict run.
        FoldlineError: The package is missing, or the file cannot be read at all.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise _unreadable("Parquet needs the package pyarrow: pip install 'foldline[arrow]'") from None
    with pq.ParquetWriter(stream, compactor.schema(), compression="zstd") as writer:
        try:
            with pq.ParquetFile(path, memory_map=False) as file:
                wanted = {compactor.messages_column, compactor.id_column} & set(file.schema_arrow.names)
                for batch in file.iter_batches(_BATCH_ROWS, columns=sorted(wanted)):
                    folded = compactor(batch)
                    _tell(folded.to_pylist(), path, report, reporter)
                    writer.write_batch(folded)
        except ConfigError as error:
            reporter.problem(Problem(None, error.code, "the file has no column messages", path))
        except pa.ArrowException as error:
            reporter.problem(Problem(None, "bad_parquet", type(error).__name__, path))


def _tell(rows: list[dict[str, Any]], path: str, report: FileReport, reporter: Telling) -> None:
    for row in rows:
        report.add(row["status"], row["tokens_before"], row["tokens_after"], len(row["actions"] or ()))
        if row["error"] is not None:
            error = FoldlineError(**json.loads(row["error"]))
            reporter.error(error, path, row["id"])
        reporter.advance(transcripts=1)


def _unreadable(detail: str) -> FoldlineError:
    from foldline.errors import StoreError

    return StoreError(detail, code="missing_extra")
