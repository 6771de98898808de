"""Folds the rows of Parquet files with Spark: `mapInArrow` hands record batches to Python.

python examples/engines/with_spark.py logs folded 20000
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

import foldline as fl

#: The columns of `BatchCompactor.schema`, as Spark names their types.
SCHEMA = (
    "id string, messages string, summary string, tokens_before bigint, tokens_after bigint, "
    "actions array<string>, status string, error string, plan_hash string"
)


def fold(source: str, target: str, keep_tokens: int) -> None:
    compactor = fl.batch.BatchCompactor(fl.KeepTokens(keep_tokens))

    def folded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(compactor, batches)

    spark = SparkSession.builder.appName("foldline").getOrCreate()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
    spark.read.parquet(source).select("id", "messages").mapInArrow(folded, SCHEMA).write.parquet(target)
    spark.stop()


if __name__ == "__main__":
    fold(sys.argv[1], sys.argv[2], int(sys.argv[3]))
