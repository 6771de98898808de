"""Folds the rows of Parquet files with Polars, streamed: a column messages in, the columns of `BatchCompactor` out.

python examples/engines/with_polars.py 'logs/*.parquet' folded.parquet 20000
"""

from __future__ import annotations

import sys

import polars as pl

import foldline as fl


def fold(source: str, target: str, keep_tokens: int) -> None:
    compactor = fl.batch.BatchCompactor(fl.KeepTokens(keep_tokens))
    columns = [compactor.id_column, compactor.messages_column]

    def folded(frame: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame(compactor(frame.to_arrow()))

    schema = pl.DataFrame(compactor.schema().empty_table()).schema
    rows = pl.scan_parquet(source).select(columns)
    rows.map_batches(folded, schema=schema, streamable=True).sink_parquet(target)


if __name__ == "__main__":
    fold(sys.argv[1], sys.argv[2], int(sys.argv[3]))
