"""Files with text of conversations are private from their creation, and outputs have the mode of their source.

Whatever the umask: one that grants everything, and one that takes the owner's own permissions.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foldline._util.files import Outputs, replacing
from foldline.batch.cache import SummaryCache
from foldline.stores import JsonlSession, SqlStore
from foldline.typing import Completion
from unit.samples import talk, user

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")

UMASKS = [0o000, 0o022, 0o077, 0o277]


@pytest.fixture(params=UMASKS, ids=[f"umask {each:03o}" for each in UMASKS])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: mode_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_session_file_is_private(umask: int, tmp_path: Path) -> None:
    store = JsonlSession(tmp_path / "session.jsonl")
    assert modes(tmp_path) == {"session.jsonl": 0o600}
    store.append(user("hi"))
    assert JsonlSession(tmp_path / "session.jsonl").messages() == [user("hi")]
    assert modes(tmp_path) == {"session.jsonl": 0o600}


def test_a_database_and_its_write_ahead_log_are_private(umask: int, tmp_path: Path) -> None:
    with SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="a") as store:
        store.append(user("hi"))
        assert modes(tmp_path) == dict.fromkeys(("x.db", "x.db-shm", "x.db-wal"), 0o600)


def test_the_summary_cache_is_private(umask: int, tmp_path: Path) -> None:
    cache = SummaryCache(tmp_path / "cache.sqlite")
    cache.put(b"k" * 32, Completion("A secret.", "m", 1, 1, "stop"))
    with cache.claimed(b"k" * 32):
        files = ("cache.lock", "cache.sqlite", "cache.sqlite-shm", "cache.sqlite-wal")
        assert modes(tmp_path) == dict.fromkeys(files, 0o600)
    cache.close()


def test_the_mode_of_an_existing_file_is_left(tmp_path: Path) -> None:
    JsonlSession(tmp_path / "session.jsonl").append(user("hi"))
    SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="a").close()
    for name in ("session.jsonl", "x.db"):
        (tmp_path / name).chmod(0o640)
    JsonlSession(tmp_path / "session.jsonl").append(user("ho"))
    with SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="a") as store:
        store.append(user("ho"))
        assert mode_of(tmp_path / "x.db-wal") == 0o640
    assert modes(tmp_path) == {"session.jsonl": 0o640, "x.db": 0o640}


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400, 0o755])
def test_an_unfinished_file_is_private_and_a_placed_one_has_its_mode(umask: int, tmp_path: Path, mode: int) -> None:
    outputs = Outputs()
    with outputs.staging(tmp_path / "x", mode=mode) as (staged, stream):
        stream.write(b"secret")
        assert list(modes(tmp_path).values()) == [0o600]
    assert outputs.place([staged]) == [None]
    assert modes(tmp_path) == {"x": mode}
    with replacing(tmp_path / "y") as stream:
        stream.write(b"secret")
    assert mode_of(tmp_path / "y") == 0o600


WATCHED = """
import os, sys
granted = []
for name in ("open", "mkdir", "chmod", "fchmod", "mknod", "mkfifo"):
    def call(*arguments, _call=getattr(os, name), _name=name, **more):
        if _name == "open" and arguments[1] & os.O_CREAT:
            granted.append((_name, (list(arguments[2:]) or [0o777])[0], str(arguments[0])))
        elif "chmod" in _name:
            granted.append((_name, arguments[1], ""))
        return _call(*arguments, **more)
    setattr(os, name, call)
import foldline as fl
folder = sys.argv[1]
fl.stores.JsonlSession(folder + "/session.jsonl").append({"role": "user", "content": "hi"})
with fl.stores.SqlStore(f"sqlite:///{folder}/x.db", session="a") as store:
    store.append({"role": "user", "content": "hi"})
from foldline.batch.cache import SummaryCache
SummaryCache(folder + "/cache.sqlite").spent()
from foldline._util.files import replacing
import pathlib
with replacing(pathlib.Path(folder) / "out") as stream:
    stream.write(b"hi")
wide = [each for each in granted if each[1] & 0o077]
assert granted and not wide, wide
"""


def test_no_file_is_wider_for_a_moment(tmp_path: Path) -> None:
    """Each is created with its mode: no call grants others anything."""
    done = subprocess.run([sys.executable, "-c", WATCHED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- The batch ----------------------------------------------------------------------------------------------


def line(name: str) -> str:
    return json.dumps({"id": name, "messages": talk(8)}) + "\n"


def foldline(*arguments: Any, given: str = "", umask: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "foldline", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False, umask=umask)


OPTIONS = ("--keep-tokens", 100, "--summarizer", "extractive")


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_outputs_have_the_mode_of_their_source_and_bookkeeping_is_private(tmp_path: Path, umask: int) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    wanted = {"a.jsonl": 0o600, "b.jsonl": 0o644, "c.jsonl": 0o440, "d.jsonl": 0o755}
    for name, mode in wanted.items():
        (folder / name).write_text(line(name))
        (folder / name).chmod(mode)
    done = foldline("compact", folder, "--out", out, *OPTIONS, umask=umask)
    assert done.returncode == 0, done.stderr
    assert {path.name: mode_of(path) for path in out.iterdir() if path.is_file()} == wanted
    assert set(modes(out / ".foldline").values()) == {0o600}


def test_an_output_that_is_not_folded_again_loses_what_its_source_has_lost(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    names = ("narrowed", "widened", "same", "link")
    for name in names:
        (folder / f"{name}.jsonl").write_text(line(name))
        (folder / f"{name}.jsonl").chmod(0o600 if name == "widened" else 0o644)
    assert foldline("compact", folder, "--out", out, *OPTIONS).returncode == 0
    (folder / "narrowed.jsonl").chmod(0o600)
    (folder / "widened.jsonl").chmod(0o644)
    before = {name: (out / f"{name}.jsonl").stat().st_ino for name in names}
    (out / "link.jsonl").rename(tmp_path / "elsewhere")
    (out / "link.jsonl").symlink_to(tmp_path / "elsewhere")
    (folder / "link.jsonl").chmod(0o600)
    assert foldline("compact", folder, "--out", out, "--resume", *OPTIONS).returncode == 0
    assert {name: mode_of(out / f"{name}.jsonl") for name in names} == {
        "narrowed": 0o600,
        "widened": 0o600,  # as the source was when it was folded
        "same": 0o644,
        "link": 0o600,
    }
    assert mode_of(tmp_path / "elsewhere") == 0o644
    kept = [name for name in names if (out / f"{name}.jsonl").lstat().st_ino == before[name]]
    assert kept == ["narrowed", "widened", "same"]


def test_the_output_of_standard_input_is_private(tmp_path: Path) -> None:
    done = foldline("compact", "-", "--out", tmp_path / "out", *OPTIONS, given=line("x"))
    assert done.returncode == 0, done.stderr
    assert set(modes(tmp_path / "out").values()) == {0o600}


def test_a_restored_session_has_the_mode_of_the_session(tmp_path: Path) -> None:
    JsonlSession(tmp_path / "session.jsonl").extend(talk(2))
    for mode in (0o600, 0o644):
        (tmp_path / "session.jsonl").chmod(mode)
        done = foldline("restore", tmp_path / "session.jsonl", "--out", tmp_path / "out.jsonl")
        assert done.returncode == 0, done.stderr
        assert mode_of(tmp_path / "out.jsonl") == mode


def test_unfinished_files_and_the_journal_are_private_while_a_batch_runs(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number}.jsonl").write_text("".join(line(f"{number} {each}") for each in range(20)))
        (folder / f"{number}.jsonl").chmod(0o644)
    seen: dict[str, set[int]] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for root, _, names in os.walk(out):
                for name in names:
                    try:
                        mode = mode_of(Path(root, name))
                    except FileNotFoundError:
                        continue
                    kind = "temporary" if name.endswith(".tmp") else name if ".foldline" in root else "output"
                    seen.setdefault(kind, set()).add(mode)
            time.sleep(0.001)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        done = foldline("compact", folder, "--out", out, *OPTIONS)
    finally:
        over.set()
        watching.join()
    assert done.returncode == 0, done.stderr
    assert seen.pop("output") == {0o644}
    # A complete file gets its mode just before it is renamed.
    assert seen.pop("temporary") <= {0o600, 0o644}
    assert set().union(*seen.values()) == {0o600}
    assert "finished.jsonl" in seen
