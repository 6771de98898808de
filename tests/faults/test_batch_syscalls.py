"""Every system call of `foldline compact` that concerns its output goes wrong once: I10 and I13 for the batch.

Real calls fail: a small library that is preloaded counts them. The count `syscall_step` says
which: 1 for every one, 5 for every fifth.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from depth import cases

HERE = Path(__file__).parent
FAULTS = ("EIO", "ENOSPC", "EINTR", "short", "kill")
COMPILER = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="preloading and forks as Linux has them"),
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler"),
]


class Runs:
    """Runs of the command in forks of one process, with and without a fault."""

    def __init__(self, folder: Path) -> None:
        self.source, self.out = folder / "in", folder / "out"
        library = folder / "failing_calls.so"
        assert COMPILER is not None
        subprocess.run(
            [COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "failing_calls.c"), "-ldl"], check=True
        )
        command = ["compact", str(self.source), "--out", str(self.out), "--keep-messages", "2", "--resume"]
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "batch_faults.py"), str(self.out), "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"},
        )

    def run(self, at: int = 0, fault: str = "") -> tuple[int, int, str]:
        """Exit code (minus the signal), calls, and what was told."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([at, fault]) + "\n")
        self.process.stdin.flush()
        code, calls, told = json.loads(self.process.stdout.readline())
        return code, calls, told

    def clear(self) -> None:
        """Removes all output."""
        shutil.rmtree(self.out, ignore_errors=True)

    def written(self) -> dict[str, bytes]:
        """The files of the output folder, those of bookkeeping left out."""
        files = (path for path in self.out.rglob("*") if path.is_file())
        named = {path.relative_to(self.out).as_posix(): path.read_bytes() for path in files}
        return {name: data for name, data in named.items() if not name.startswith(".foldline/")}

    def leftovers(self) -> list[str]:
        """Temporary files."""
        return [path.name for path in self.out.rglob(".foldline-*.tmp")]


def conversation(name: str, number: int) -> dict[str, Any]:
    texts = [f"{name} {number}: step {step}. " + "Mind the tests. " * 30 for step in range(6)]
    roles = ("user", "assistant")
    return {"id": f"{name}-{number}", "messages": [{"role": roles[i % 2], "content": t} for i, t in enumerate(texts)]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp("calls")
    source = folder / "in"
    (source / "deep").mkdir(parents=True)
    lines = [json.dumps(conversation("a", i)) for i in range(40)]
    (source / "a.jsonl").write_text("\n".join(lines) + "\n")
    (source / "deep" / "b.json").write_text(json.dumps([conversation("b", 0), conversation("b", 1)], indent=1))
    (source / "c.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[:3]).encode(), mtime=0))
    found = Runs(folder)
    yield found
    with found.process:  # which closes its pipes
        found.process.kill()


def source_bytes(runs: Runs) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in runs.source.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def expected(runs: Runs) -> tuple[int, dict[str, bytes]]:
    runs.clear()
    code, calls, told = runs.run()
    assert code == 0, told
    written = runs.written()
    assert len(written) == 3
    assert calls > 30
    return calls, written


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_call_goes_wrong_the_output_is_whole_or_not_there(
    runs: Runs, expected: tuple[int, dict[str, bytes]], fault: str
) -> None:
    calls, whole = expected
    before = source_bytes(runs)
    failed = 0
    for at in range(1, calls + 1, cases("syscall_step")):
        runs.clear()
        code, _, told = runs.run(at, fault)
        where = f"{fault} at call {at} of {calls}: exit code {code}\n{told}"
        assert source_bytes(runs) == before, where
        for name, data in runs.written().items():
            if not Path(name).name.startswith(".foldline-"):
                assert data == whole[name], f"{where}: {name}"
        if code == 0:
            assert runs.written() == whole, where
        else:
            failed += 1
            assert code in ((-9,) if fault == "kill" else (1, 2)), where
            assert "Traceback" not in told, where
        if fault == "short":
            assert code == 0, where
        # The next run goes on from there, and tidies up.
        code, _, told = runs.run()
        assert code == 0, f"{where}, then {told}"
        assert runs.written() == whole, where
        assert runs.leftovers() == [], where
        assert json.loads((runs.out / ".foldline" / "run.json").read_bytes())["complete"], where
    assert (failed > 0) == (fault != "short")
