"""Folds the rows of a DuckDB query, 64 at a time, and writes them with DuckDB.

python examples/engines/with_duckdb.py 'logs/*.parquet' folded.parquet 20000
"""

from __future__ import annotations

import sys

import duckdb
import pyarrow as pa

import foldline as fl


def fold(source: str, target: str, keep_tokens: int) -> None:
    compactor = fl.batch.BatchCompactor(fl.KeepTokens(keep_tokens))
    # One connection reads while the other writes.
    with duckdb.connect() as reading, duckdb.connect() as writing:
        rows = reading.execute("SELECT id, messages FROM read_parquet(?)", [source]).to_arrow_reader(64)
        assert rows is not None, "a query has rows"
        folded = pa.RecordBatchReader.from_batches(compactor.schema(), map(compactor, rows))
        writing.register("folded", folded)
        writing.execute("COPY folded TO $target (FORMAT parquet, COMPRESSION zstd)", {"target": target})


if __name__ == "__main__":
    fold(sys.argv[1], sys.argv[2], int(sys.argv[3]))
