"""Runs of `foldline compact` at their start."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
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
    """The run that is refused does not meet the other one's files, such as one that is just being replaced."""
    out = tmp_path / "out"
    (out / ".foldline" / "run.json").mkdir(parents=True)  # a file that cannot be replaced
    held = hold(out / ".foldline")
    assert held is not None
    assert main(["compact", str(source), "--out", str(out)]) == 2
    assert "another run uses the folder" in capsys.readouterr().err
    os.close(held)
    assert main(["compact", str(source), "--out", str(out)]) == 1
    assert "run.json: cannot be used" in capsys.readouterr().err


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


# Ctrl-C

#: The console script, which says when foldline's first lines are loaded: before that, an interrupt is Python's own.
SCRIPT = "import os, sys; from foldline.cli import main; os.write(1, b'.'); sys.exit(main())"

#: Time in which `SCRIPT` calls `main`, on a busy machine.
FIRST_LINES_S = 0.05


@pytest.mark.parametrize("more", [[], ["--jobs", "2"]], ids=["alone", "processes"])
def test_ctrl_c_in_the_first_moments_is_never_a_traceback(tmp_path: Path, more: list[str]) -> None:
    """Sent to all processes, as by a terminal; the work takes much longer."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abcd":
        (folder / f"{name}.jsonl").write_text(2_000 * (json.dumps({"messages": CHAT}) + "\n"))
    # With compiled modules, as installers leave them.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path / "compiled")
    subprocess.run([sys.executable, "-m", "foldline", "compact", "--help"], env=environment, check=True)
    random_ = random.Random(len(more))
    starts = cases("interrupted_starts")
    for number in range(starts):
        out = tmp_path / f"out{number}"
        command = [sys.executable, "-c", SCRIPT, "compact", str(folder), "--out", str(out), *more]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, env=environment
        )
        assert process.stdout is not None
        assert process.stdout.read(1) == b"."
        delay_s = FIRST_LINES_S + 0.3 * (number + random_.random()) / starts
        time.sleep(delay_s)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        assert (process.returncode, stdout) == (130, b""), (delay_s, stderr)
        assert stderr.strip() == b"", (delay_s, stderr)
        assert not list(out.rglob("*.tmp"))


def test_ctrl_c_where_python_cannot_raise_it_comes_again() -> None:
    """In a callback of the garbage collector an exception is printed and lost."""
    code = """
import signal, sys, time, weakref
import foldline.cli
from foldline._cli import commands

class Thing: pass

def command(arguments):
    thing = Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    del thing
    time.sleep(30)
    return 0

commands.run = command
sys.exit(foldline.cli.main())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=25)
    assert (ran.returncode, ran.stderr) == (130, b"")


def test_ctrl_c_that_becomes_another_error_is_still_ctrl_c() -> None:
    """As in an import, which raises an error of its own."""
    code = """
import signal, sys
import foldline.cli
from foldline._cli import commands

def command(arguments):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("Error calling __set_name__") from None

commands.run = command
sys.exit(foldline.cli.main())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=25)
    assert (ran.returncode, ran.stderr) == (130, b"")


def test_a_package_that_is_only_imported_loads_no_library() -> None:
    """So that the handler of Ctrl-C of the command line comes first."""
    code = "import sys, foldline.cli; print(sorted(name for name in sys.modules if name.startswith('foldline')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert ran.stdout.strip() == str(["foldline", "foldline.cli", "foldline.errors"])
