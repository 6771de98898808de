"""Folds the rows of Parquet files with Daft: a function of its columns gives structs, which become columns again.

python examples/engines/with_daft.py 'logs/*.parquet' folded 20000
"""

from __future__ import annotations

import sys

import daft
import pyarrow as pa
from daft import DataType, Series, col

import foldline as fl


def fold(source: str, target: str, keep_tokens: int) -> None:
    compactor = fl.batch.BatchCompactor(fl.KeepTokens(keep_tokens))
    schema = compactor.schema()

    @daft.func.batch(return_dtype=DataType.from_arrow_type(pa.struct(list(schema))), batch_size=64)
    def folded(names: Series, messages: Series) -> pa.Array:
        given = pa.table({"id": names.to_arrow(), "messages": messages.to_arrow()})
        return compactor(given).to_struct_array().combine_chunks()

    rows = daft.read_parquet(source).select(folded(col("id"), col("messages")).alias("row"))
    rows.select(*(col("row").get(name).alias(name) for name in schema.names)).write_parquet(target)


if __name__ == "__main__":
    fold(sys.argv[1], sys.argv[2], int(sys.argv[3]))
