"""Folded blocks as files: one per block, named by the hash of its input, written atomically.

Engines split tables into blocks and rerun a block after its worker died. The file name is the hash of the block and
of the options, so no bookkeeping is needed: if the file exists, the block is done.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from foldline._core import __version__
from foldline._util.files import Hashing, create_private, make_folder, replacing
from foldline.batch.compactor import CompactedRow, arrow_record, json_text
from foldline.errors import ConfigError, FoldlineError

if TYPE_CHECKING:
    import pyarrow as pa

    from foldline.batch.compactor import BatchCompactor

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = [
    "BOOKKEEPING",
    "ROWS_AT_A_TIME",
    "SUMMED",
    "TRIES",
    "Fragment",
    "FragmentWriter",
    "is_worth_another_try",
    "options_of",
]

#: Folder of bookkeeping files in an output folder.
BOOKKEEPING = Path(".foldline")

#: Folder in which processes leave a trace file per block in progress.
TRIES = BOOKKEEPING / "tries"

#: Processes that may die on a block before it is abandoned.
_TRIES = 2

_DIED = "worker_died"

#: Rows in memory at a time, and per row group of the output.
ROWS_AT_A_TIME = 64


@dataclass(frozen=True, slots=True)
class Fragment:
    """A folded block.

    Attributes:
        name: File name below the output folder.
        rows: Number of transcripts.
        folded: Transcripts that were folded.
        unchanged: Transcripts with nothing to fold.
        infeasible: Transcripts whose budget cannot be met.
        failed: Transcripts that could not be read or summarized; stored unchanged.
        retry: Failed transcripts that another run may fold, since only a summary is missing.
        tokens_before: Total tokens before.
        tokens_after: Total tokens after.
        size_bytes: Size of the file.
        sha256: SHA-256 of the file, in hexadecimal.
    """

    name: str
    rows: int
    folded: int
    unchanged: int
    infeasible: int
    failed: int
    retry: int
    tokens_before: int
    tokens_after: int
    size_bytes: int
    sha256: str

    def record(self) -> dict[str, Any]:
        """All fields as a dict."""
        return asdict(self)


#: Fields summed over fragments.
SUMMED = ("rows", "folded", "unchanged", "infeasible", "failed", "tokens_before", "tokens_after")

_COUNTED = (*SUMMED, "retry")


def options_of(compactor: BatchCompactor) -> dict[str, Any]:
    """The options of a compactor as data; equal options give equal data in every process."""
    return {
        "compactor": repr(compactor),
        "options": compactor.options,
        "pins": list(compactor.pins),
        "format": compactor.format,
        "columns": [compactor.id_column, compactor.messages_column],
        **({"facts": True} if compactor.facts else {}),
    }


def is_worth_another_try(record: dict[str, Any]) -> bool:
    """Whether another run may improve an output row: its summary failed, or its worker died."""
    if record["status"] != "failed":
        return False
    return record["plan_hash"] is not None or json.loads(record["error"])["code"] == _DIED


class FragmentWriter:
    """Folds blocks and writes a Parquet file for each, named by a hash of the block and the options.

    Picklable if its compactor is. Several processes may share a folder: equal blocks give equal files, and the last
    one written stays.

    Args:
        compactor: Folds the rows.
        out: Output folder, created if missing.
        resume: Reuse existing files that are complete and have no row without a summary.

    If two processes died on a block, it is not folded again: its rows are written unchanged, with the code
    ``worker_died``. For that, a file in ``OUT/.foldline/tries`` is locked by the process that folds a block. Without
    such locks, a block is retried without limit.
    """

    def __init__(self, compactor: BatchCompactor, out: str | Path, *, resume: bool = False) -> None:
        self.compactor = compactor
        self.out = Path(out)
        self.resume = resume
        self._options = json.dumps([__version__, options_of(compactor)], sort_keys=True).encode()

    def write(self, block: Any) -> Fragment:
        """Folds a `pyarrow.Table` or `pyarrow.RecordBatch` into its file, durable on return.

        Memory is bounded by the block and `ROWS_AT_A_TIME` folded rows.

        Raises:
            ConfigError: The block does not have the messages column, or pyarrow is missing.
            OSError: The file cannot be written; an older one is unchanged.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = block if isinstance(block, pa.Table) else pa.Table.from_batches([block])
        columns = [self.compactor.id_column, self.compactor.messages_column]
        if columns[1] not in table.column_names:
            raise ConfigError("the block has no such column", code="missing_column", path="messages_column")
        table = table.select([name for name in columns if name in table.column_names]).combine_chunks()
        name = f"part-{self._hash(table)}.parquet"
        folder = make_folder(self.out, Path())
        if self.resume and (found := self._finished(folder / name, table.num_rows)) is not None:
            return found
        counts = dict.fromkeys(_COUNTED, 0)
        with self._trying(name) as deaths, replacing(folder / name) as stream:
            fold = self.compactor if deaths < _TRIES else self._given_up
            hashing = Hashing(stream)
            with pq.ParquetWriter(
                hashing, self.compactor.schema(), compression="zstd", write_page_checksum=True
            ) as writer:
                for batch in table.to_batches(ROWS_AT_A_TIME):
                    folded = fold(batch)
                    writer.write_batch(folded)
                    _count(counts, folded)
        return Fragment(name, **counts, size_bytes=hashing.size, sha256=hashing.hexdigest())

    def _hash(self, table: pa.Table) -> str:
        import pyarrow as pa

        hashing = Hashing(_Nowhere())
        hashing.write(self._options)
        plain = table.replace_schema_metadata(None)
        with pa.ipc.new_stream(hashing, plain.schema) as stream:
            stream.write_table(plain)
        return hashing.hexdigest()

    @contextlib.contextmanager
    def _trying(self, name: str) -> Iterator[int]:
        """Leaves a trace file in case this process dies; yields the number of processes that died on the block."""
        if fcntl is None:
            yield 0
            return
        folder = make_folder(self.out, TRIES)
        deaths = 0
        for trace in filter(Path.is_file, folder.glob(f"{name}.*")):
            with contextlib.suppress(OSError), trace.open("rb") as stream:  # locked: its process is alive
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
                deaths += 1
        mine = folder / f"{name}.{secrets.token_hex(8)}"
        with os.fdopen(create_private(mine, os.O_WRONLY), "wb") as stream:
            with contextlib.suppress(OSError):  # not supported by every file system
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                yield deaths
            finally:
                mine.unlink(missing_ok=True)

    def _given_up(self, batch: Any) -> Any:
        """Rows for an abandoned block: the input unchanged, with an error."""
        import pyarrow as pa

        error = FoldlineError(f"the process that folded its block died {_TRIES} times", code=_DIED)
        column, names = self.compactor.messages_column, self.compactor.id_column
        records = []
        for index, row in enumerate(batch.to_pylist()):
            value, name = row[column], row.get(names)
            text = value if value is None or isinstance(value, str) else json_text(value)
            row = CompactedRow(str(index) if name is None else str(name), "", [], error=error)
            records.append(arrow_record(row, text))
        return pa.RecordBatch.from_pylist(records, schema=self.compactor.schema())

    def _finished(self, path: Path, rows: int) -> Fragment | None:
        """The fragment of an earlier run, if it is complete and does not need a retry."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        counts = dict.fromkeys(_COUNTED, 0)
        # Also of another program's file under its name, whose values may be any.
        with contextlib.suppress(OSError, pa.ArrowException, ValueError, TypeError, LookupError, RecursionError):
            if path.is_symlink():
                return None
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                if file.schema_arrow != self.compactor.schema():
                    return None
                for batch in file.iter_batches(ROWS_AT_A_TIME):
                    _count(counts, batch)
            if counts["rows"] == rows and not counts["retry"]:
                data = path.read_bytes()
                return Fragment(path.name, **counts, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        return None


def _count(counts: dict[str, int], batch: Any) -> None:
    """Adds the rows of a batch to the counts."""
    columns = ("status", "plan_hash", "error", "tokens_before", "tokens_after")
    for record in batch.select(list(columns)).to_pylist():
        counts["rows"] += 1
        counts[record["status"]] += 1
        counts["retry"] += is_worth_another_try(record)
        counts["tokens_before"] += record["tokens_before"] or 0
        counts["tokens_after"] += record["tokens_after"] or 0


class _Nowhere:
    """A stream that discards all bytes."""

    def write(self, data: bytes) -> int:
        return memoryview(data).nbytes

    def flush(self) -> None:
        pass
