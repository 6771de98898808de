"""The recipes of `examples/engines`: every engine gives the rows that the compactor gives by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foldline as fl
from foldline.batch import json_text

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ["polars", "duckdb", "daft", "spark"]
#: Daft asks for an older pyarrow than the tests, Spark for Java: FOLDLINE_MANUAL=1 runs them where they are installed.
MANUAL = ("daft", "spark")


def test_each_recipe_has_a_test() -> None:
    assert sorted(path.stem for path in (ROOT / "examples" / "engines").glob("*.py")) == sorted(
        f"with_{name}" for name in ENGINES
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.manual if name in MANUAL else pytest.mark.engine) for name in ENGINES],
)
def test_a_recipe_gives_the_rows_of_the_compactor(name: str, tmp_path: Path) -> None:
    stored = [each for file in (ROOT / "examples" / "data").glob("*.jsonl") for each in fl.read(file)]
    given = pa.table(
        {
            "id": [f"{i}-{each.id}" for i, each in enumerate(stored)],
            "messages": [json_text(each.messages) for each in stored],
            "more": list(range(len(stored))),
        }
    )
    given = pa.concat_tables([given, pa.table({"id": ["bad", "none"], "messages": ["{", None], "more": [0, 0]})])
    (tmp_path / "in").mkdir()
    pq.write_table(given.slice(0, 10), tmp_path / "in" / "a.parquet")
    pq.write_table(given.slice(10), tmp_path / "in" / "b.parquet", row_group_size=4)
    source = str(tmp_path / "in" / "*.parquet") if name != "spark" else str(tmp_path / "in")
    out = tmp_path / ("out" if name in ("daft", "spark") else "out.parquet")
    command = [sys.executable, str(ROOT / "examples" / "engines" / f"with_{name}.py"), source, str(out), "2000"]
    environment = os.environ | {"HOME": str(tmp_path), "DO_NOT_TRACK": "1", "DAFT_ANALYTICS_ENABLED": "0"}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=280)
    assert ran.returncode == 0, ran.stderr[-3_000:]

    expected = rows(fl.batch.BatchCompactor(fl.KeepTokens(2_000))(given))
    assert {row["status"] for row in expected} >= {"folded", "failed"}
    assert rows(pq.read_table(out)) == expected


def rows(table: Any) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])
