"""`scripts/scale.py`: the arithmetic of docs/scale.md, by hand, and the table that the script prints."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from unit.test_benches import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    return load("scripts/scale.py", "foldline_scale")


def test_cores_bytes_and_requests(scale: ModuleType) -> None:
    # A million transcripts of 100 kB in, 20 kB out and 36 ms each.
    measured = scale.Measured(0.036, 100_000, 20_000, 80e6, 0, 0, 0)
    assumed = scale.Assumed(
        transcripts=1e6,
        cores=10,
        use=0.5,
        core_dollars_per_hour=0.10,
        block_mb=100,
        core_megabytes_per_s=12,
        get_dollars_per_million=1_000,
        put_dollars_per_million=9_000,
        deaths_per_core_hour=0,
    )
    found = scale.cost(measured, assumed)
    assert found.core_hours == pytest.approx(10)  # 36,000 s
    assert found.compute_hours == pytest.approx(2)  # on 10 cores, half of the time
    assert found.input_bytes == 100e9
    assert found.output_bytes == 20e9
    assert found.blocks == found.get_requests == found.put_requests == 1_000
    assert found.store_hours == pytest.approx(120e9 / 12e6 / 10 / 3600)
    assert found.resident_bytes == 800e6
    assert found.dollars == pytest.approx(20 * 0.10 + 1 + 9)  # billed core hours, requests
    assert (found.model_requests, found.model_dollars, found.model_hours, found.model_failed) == (0, 0, 0, 0)
    assert found.bottleneck == "cores"
    assert scale.cost(measured, replace(assumed, core_megabytes_per_s=0.1)).bottleneck == "object store"


def test_a_crash_costs_half_a_block(scale: ModuleType) -> None:
    measured = scale.Measured(0.036, 100_000, 20_000, 0, 0, 0, 0)
    assumed = scale.Assumed(transcripts=1e6, use=1.0, block_mb=100, deaths_per_core_hour=2)
    found = scale.cost(measured, assumed)
    assert found.deaths == pytest.approx(20)  # in 10 core hours
    assert found.lost_core_hours == pytest.approx(20 * 0.01 / 2)  # a block takes 0.01 core hours
    assert found.core_hours == pytest.approx(10.1)
    smaller = scale.cost(measured, replace(assumed, block_mb=10))
    assert smaller.lost_core_hours == pytest.approx(found.lost_core_hours / 10)
    assert smaller.put_requests == found.put_requests * 10


def test_failed_model_calls_are_retried(scale: ModuleType) -> None:
    # Half of the transcripts are folded, with 2,000 tokens in and 100 out each.
    measured = scale.Measured(0.001, 1_000, 500, 0, 0.5, 1_000, 50)
    assumed = scale.Assumed(
        transcripts=1e6,
        model_dollars_in=1,
        model_dollars_out=10,
        model_tokens_per_minute=1e6,
        model_call_s=6,
        model_failure_rate=0.1,
        model_attempts=3,
    )
    found = scale.cost(measured, assumed)
    assert found.model_requests == pytest.approx(500_000 * 1.11)  # 1 + 0.1 + 0.01
    assert found.model_failed == pytest.approx(500)  # three times in a row
    assert found.model_tokens == pytest.approx(1e9 * 1.11 + 50e6)  # failed transcripts were read but wrote nothing
    assert found.model_dollars == pytest.approx(1_110 + 500)
    assert found.model_hours == pytest.approx(1_160 / 60)
    assert found.model_in_flight == pytest.approx(555_000 / (1_160 * 60) * 6)
    assert found.model_bottleneck == "tokens a minute of the model"
    assert scale.cost(measured, replace(assumed, model_tokens_per_minute=1e12)).model_bottleneck == "cores"


def test_figures_are_those_of_the_benchmark(scale: ModuleType) -> None:
    run = {"name": "foldline --jobs 1", "input_bytes": 1_000, "output_bytes": 400, "cpu_s": 2.0, "transcripts": 4}
    other = {**run, "name": "foldline --jobs 2", "cpu_s": 9.0, "resident_bytes": 9}
    asked = {"transcripts": 2, "requests": 1, "input_tokens": 300, "output_tokens_at_most": 100}
    record = {"date": "2026-11-22", "command": "x", "runs": [other, {**run, "resident_bytes": 5}], "model": asked}
    found = scale.Measured.of(record)
    assert found == scale.Measured(0.5, 250, 100, 5, 0.5, 150, 50, "2026-11-22, `x`")


def test_every_assumption_is_an_option_and_in_the_table() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "scale.py")]
    ran = subprocess.run([*script, "--cores", "7", "--model-attempts", "5"], capture_output=True, text=True, check=True)
    assert "| cores at work | 7 |" in ran.stdout
    assert "| attempts of a call | 5 |" in ran.stdout


def test_the_document_contains_the_output_of_the_script() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "scale.py")]
    printed = subprocess.run(script, capture_output=True, text=True, check=True)
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert text.partition("<!-- printed by scripts/scale.py -->\n")[2].partition("<!-- end -->")[0] == printed.stdout
    measured = json.loads((ROOT / "benches" / "scale.json").read_text(encoding="utf-8"))
    assert measured["command"].startswith("benches/python/batch_files.py")
