"""Folded blocks as files: one a block, named by what it was made of, there whole or not at all.

Engines cut tables into blocks and run them again where a worker died. A file whose name is the hash of its block and of
how it is folded needs no bookkeeping of its own: if it is there, the block is done.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from foldline._core import __version__
from foldline._util.files import Hashing, make_folder, replacing
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

#: Where bookkeeping lies in an output folder.
BOOKKEEPING = Path(".foldline")

#: Where processes leave a trace of the blocks that they are at.
TRIES = BOOKKEEPING / "tries"

#: Processes that may die over the same block before it is given up.
_TRIES = 2

_DIED = "worker_died"

#: Rows that are in memory at a time, and in a row group of the output.
ROWS_AT_A_TIME = 64


@dataclass(frozen=True, slots=True)
class Fragment:
    """A folded block.

    Attributes:
        name: The file below the output folder.
        rows: Transcripts in it.
        folded: How many of them were folded.
        unchanged: How many had nothing to fold.
        infeasible: How many cannot meet their budget.
        failed: How many could not be read or summarised; they are in it as they were.
        retry: How many of those lack only a summary, so that another run may do better.
        tokens_before: Tokens of all before.
        tokens_after: Tokens of all after.
        size_bytes: Bytes of the file.
        sha256: Their hash, in hexadecimal digits.
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
        """All of it as data."""
        return asdict(self)


#: What is summed up over fragments.
SUMMED = ("rows", "folded", "unchanged", "infeasible", "failed", "tokens_before", "tokens_after")

_COUNTED = (*SUMMED, "retry")


def options_of(compactor: BatchCompactor) -> dict[str, Any]:
    """How a compactor folds, as data: equal for equal options, in every process."""
    return {
        "compactor": repr(compactor),
        "options": compactor.options,
        "pins": list(compactor.pins),
        "format": compactor.format,
        "columns": [compactor.id_column, compactor.messages_column],
    }


def is_worth_another_try(record: dict[str, Any]) -> bool:
    """Whether another run may do better by a row of the output: no summary came for its plan, or its worker died."""
    if record["status"] != "failed":
        return False
    return record["plan_hash"] is not None or json.loads(record["error"])["code"] == _DIED


class FragmentWriter:
    """Folds blocks and writes a Parquet file for each, named by a hash of the block and of the options.

    It can be pickled where its compactor can. Several processes may share a folder: those that fold equal blocks write
    equal files, and the last one stays.

    Args:
        compactor: What folds.
        out: The folder; where it is missing it is made.
        resume: Take files that are there already, if they are whole and no row of them lacks a summary.

    A block over which two processes died is not folded a third time: its rows are written as they came, with the code
    ``worker_died``. For that there is a file in ``OUT/.foldline/tries`` while a block is folded, which its process
    locks. A system without such locks tries for ever.
    """

    def __init__(self, compactor: BatchCompactor, out: str | Path, *, resume: bool = False) -> None:
        self.compactor = compactor
        self.out = Path(out)
        self.resume = resume
        self._options = json.dumps([__version__, options_of(compactor)], sort_keys=True).encode()

    def write(self, block: Any) -> Fragment:
        """Folds a `pyarrow.Table` or `pyarrow.RecordBatch` into its file; it is durable when this returns.

        Memory is that of the block and of `ROWS_AT_A_TIME` folded rows.

        Raises:
            ConfigError: The block has no column of messages, or pyarrow is missing.
            OSError: The file cannot be written; then there is none, or the older one.
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
        """Leaves a trace if this process dies; how many did over the same block."""
        if fcntl is None:
            yield 0
            return
        folder = make_folder(self.out, TRIES)
        deaths = 0
        for trace in folder.glob(f"{name}.*"):
            with contextlib.suppress(OSError), trace.open("rb") as stream:  # locked: one that works on an equal block
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
                deaths += 1
        mine = folder / f"{name}.{secrets.token_hex(8)}"
        with mine.open("xb") as stream:
            with contextlib.suppress(OSError):  # Not every file system can.
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                yield deaths
            finally:
                mine.unlink(missing_ok=True)

    def _given_up(self, batch: Any) -> Any:
        """The rows as they came."""
        import pyarrow as pa

        error = FoldlineError(f"the process that folded its block died, {_TRIES} times", code=_DIED)
        column, names = self.compactor.messages_column, self.compactor.id_column
        records = []
        for index, row in enumerate(batch.to_pylist()):
            value, name = row[column], row.get(names)
            text = value if value is None or isinstance(value, str) else json_text(value)
            row = CompactedRow(str(index) if name is None else str(name), "", [], error=error)
            records.append(arrow_record(row, text))
        return pa.RecordBatch.from_pylist(records, schema=self.compactor.schema())

    def _finished(self, path: Path, rows: int) -> Fragment | None:
        """What an earlier run made of a block, if it is whole and as good as it can be."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        counts = dict.fromkeys(_COUNTED, 0)
        with contextlib.suppress(OSError, pa.ArrowException):
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
    """Adds the rows of a batch."""
    columns = ("status", "plan_hash", "error", "tokens_before", "tokens_after")
    for record in batch.select(list(columns)).to_pylist():
        counts["rows"] += 1
        counts[record["status"]] += 1
        counts["retry"] += is_worth_another_try(record)
        counts["tokens_before"] += record["tokens_before"] or 0
        counts["tokens_after"] += record["tokens_after"] or 0


class _Nowhere:
    """What is written to it is gone."""

    def write(self, data: bytes) -> int:
        return memoryview(data).nbytes

    def flush(self) -> None:
        pass
