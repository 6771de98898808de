"""The demo runs from any folder and writes files that read back."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import foldline as fl

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy, so that the test writes no file into the project."""
    shutil.copytree(EXAMPLES, tmp_path / "project" / "examples")
    return tmp_path / "project"


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(project: Path, folder: Path, **environment: str) -> str:
    demo = project / "examples" / "demo.py"
    ran = subprocess.run(
        [sys.executable, str(demo)],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_the_demo_runs_from_any_folder(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = hashes(project / "examples" / "data")
    out = run(project, elsewhere, PYTHONUTF8="1")
    for word in ("claude-code-session.jsonl", "pi-session.jsonl", "openai-tools.jsonl", "chinese-dialogues.jsonl"):
        assert word in out
    for word in ("tokens", "groups", "pinned", "folded", "The summary of", "out/demo/", " s.\n"):
        assert word in out
    assert str(tmp_path) not in out
    assert hashes(project / "examples" / "data") == before
    assert list(elsewhere.iterdir()) == []

    results = project / "out" / "demo"
    for path in results.iterdir():
        originals = {t.id: t for t in fl.read(project / "examples" / "data" / path.name)}
        for transcript in fl.read(path, on_problem=pytest.fail):
            original = originals[transcript.id]
            assert transcript.format == original.format
            assert len(transcript.messages) < len(original.messages)
            counter = fl.TokenCounter()
            after = counter.count_messages(transcript.messages, format=transcript.format).total
            assert after < counter.count_messages(original.messages, format=original.format).total
    assert len(list(results.iterdir())) == 4

    first = hashes(results)
    run(project, elsewhere, PYTHONUTF8="1")
    assert hashes(results) == first, "a second run gives the same"


def test_the_pinned_task_is_kept_verbatim(project: Path, tmp_path: Path) -> None:
    run(project, tmp_path)
    session = next(fl.read(EXAMPLES / "data" / "claude-code-session.jsonl"))
    [line] = (project / "out" / "demo" / "claude-code-session.jsonl").read_text().splitlines()
    assert session.messages[0] in json.loads(line)["messages"]


def test_the_demo_prints_to_ascii_terminals(project: Path, tmp_path: Path) -> None:
    assert "tokens" in run(project, tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
