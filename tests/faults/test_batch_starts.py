"""Runs of `foldline compact` at their start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from depth import cases
from foldline._util.files import hold
from foldline.cli import main

CHAT = [{"role": ("user", "assistant")[i % 2], "content": f"Message {i}. " + "Word. " * 30} for i in range(8)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"id": "a", "messages": CHAT}) + "\n")
    return path


# Two runs into one folder


def test_a_run_locks_the_folder_before_it_writes_there(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run that is refused does not meet the other one's files, such as a probe that is just being removed."""
    out = tmp_path / "out"
    (out / ".foldline" / "probe").mkdir(parents=True)  # a probe that cannot be replaced
    held = hold(out / ".foldline")
    assert held is not None
    assert main(["compact", str(source), "--out", str(out)]) == 2
    assert "another run uses the folder" in capsys.readouterr().err
    os.close(held)
    assert main(["compact", str(source), "--out", str(out)]) == 2
    assert "cannot be written to" in capsys.readouterr().err


def test_of_runs_started_together_each_ends_well_or_reads_that_another_holds_the_folder(
    source: Path, tmp_path: Path
) -> None:
    for number in range(cases("started_together")):
        command = [sys.executable, "-m", "foldline", "compact", str(source), "--out", str(tmp_path / f"out{number}")]
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
        told = [process.communicate(timeout=60)[1] for process in both]
        codes = [process.returncode for process in both]
        assert 0 in codes
        for code, text in zip(codes, told, strict=True):
            assert code in (0, 2)
            assert (b"another run uses the folder" in text) == (code == 2), text
