"""A fork during a write: neither process keeps a lock for the other, and the child goes on or says why it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from foldline.errors import StoreError
from foldline.stores import JsonlSession, SqlStore, _databases, _locks
from unit.samples import user
from unit.services import LASTING, database_url

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

#: Begins a write in a thread, and forks while it holds its lock. The child lives on, and appends when asked.
PARENT = """
import os, signal, sys, threading
import foldline as fl
from foldline.stores import JsonlSession, SqlStore, _databases, _locks
kind, place, session = sys.argv[1:]
store = JsonlSession(place) if kind == "jsonl" else SqlStore(place, session=session, lock_timeout_s=5)
store.append({"role": "user", "content": "parent"})
locked, never = threading.Event(), threading.Event()
_databases._FORK_WAIT_S = 0.5
if kind == "jsonl":
    sync = _locks.sync
    def wait(descriptor):
        if threading.current_thread() is not threading.main_thread():
            locked.set()
            never.wait()
        sync(descriptor)
    _locks.sync = wait
    write = lambda: store.append({"role": "user", "content": "torn"})
else:
    def write():
        with store._database.writing() as connection:
            store._locked(connection)
            locked.set()
            never.wait()
threading.Thread(target=write, daemon=True).start()
locked.wait()
child = os.fork()
if child:
    signal.pause()
print(os.getpid(), flush=True)
sys.stdin.readline()
try:
    print(store.append({"role": "user", "content": "child"}), flush=True)
except fl.errors.StoreError as error:
    print(error.code, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("kind", LASTING)
def test_a_child_does_not_hold_the_lock_of_a_parent_that_died(kind: str, tmp_path: Path) -> None:
    session = f"test-{uuid.uuid4()}"
    place = str(tmp_path / "session.jsonl") if kind == "jsonl" else database_url(kind, tmp_path)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, kind, place, session], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        parent.kill()
        assert parent.wait(30) == -signal.SIGKILL
        os.kill(child, 0)  # the child lives
        store: Any
        if kind == "jsonl":
            store = JsonlSession(place, lock_timeout_s=5)
        else:
            store = SqlStore(place, session=session, lock_timeout_s=5)
        store.append(user("after"))
        parent.stdin.write("go on\n")
        parent.stdin.flush()
        outcome = parent.stdout.readline().strip()
        said = [each["content"] for each in store.messages() if each["content"] != "torn"]
        if kind == "sqlite":  # SQLite's state in the child is that of a transaction of the parent
            assert outcome == "forked"
            assert said == ["parent", "after"]
        else:
            assert outcome in store.ids()
            assert sorted(said) == ["after", "child", "parent"]
        getattr(store, "close", lambda: None)()
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdin.close()
        parent.stdout.close()


@pytest.mark.parametrize("kind", LASTING)
def test_a_fork_of_a_busy_process_disturbs_neither_side(kind: str, tmp_path: Path) -> None:
    """Four threads append while the process forks again and again; every child appends too."""
    session = f"test-{uuid.uuid4()}"
    place = str(tmp_path / "session.jsonl") if kind == "jsonl" else database_url(kind, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", BUSY, kind, place, session], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    store: Any = JsonlSession(place) if kind == "jsonl" else SqlStore(place, session=session)
    said = [each["content"] for each in store.messages()]
    assert store.problems == ()
    assert len(said) == len(set(said))
    getattr(store, "close", lambda: None)()
    expected = int(done.stdout)
    assert len(said) == expected
    assert sum(each.startswith("child") for each in said) == 12
    for name in range(4):
        own = [each for each in said if each.startswith(f"thread {name} ")]
        assert own == [f"thread {name} {number}" for number in range(len(own))]


BUSY = """
import os, sys, threading, time
from foldline.stores import JsonlSession, SqlStore
kind, place, session = sys.argv[1:]
store = JsonlSession(place) if kind == "jsonl" else SqlStore(place, session=session)
over = threading.Event()
counts = [0] * 4
def work(name):
    while not over.is_set():
        store.append({"role": "user", "content": f"thread {name} {counts[name]}"})
        counts[name] += 1
threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
for thread in threads:
    thread.start()
for number in range(12):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        try:
            store.append({"role": "user", "content": f"child {number}"})
            assert any(each["content"] == f"child {number}" for each in store.messages())
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
over.set()
for thread in threads:
    thread.join()
print(sum(counts) + 12)
"""


def test_a_fork_within_a_step_ends_the_step_in_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler or a callback forks, and the child returns into the step of its parent."""
    store = JsonlSession(tmp_path / "session.jsonl")
    store.append(user("before"))
    sync, pids = _locks.sync, []

    def fork(descriptor: int) -> None:
        if not pids:
            pids.append(os.fork())
        sync(descriptor)

    monkeypatch.setattr(_locks, "sync", fork)
    parent, code = os.getpid(), "stored"
    try:
        store.append(user("once"))
    except StoreError as error:
        code = error.code
    if os.getpid() != parent:
        os._exit({"forked": 3, "sync_failed": 3, "stored": 4}.get(code, 5))
    assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == 3
    assert code == "stored"
    store.append(user("after"))
    assert JsonlSession(tmp_path / "session.jsonl").messages() == [user("before"), user("once"), user("after")]


def test_a_fork_waits_for_a_transaction_to_end(tmp_path: Path) -> None:
    """So that a child can use the same SQLite file."""
    store = SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="a", lock_timeout_s=2)
    locked = threading.Event()

    def write() -> None:
        with store._database.writing() as connection:
            store._locked(connection)
            locked.set()
            time.sleep(0.5)

    thread = threading.Thread(target=write)
    thread.start()
    locked.wait()
    begun_s = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            store.append(user("child"))
            code = 0
        finally:
            os._exit(code)
    assert 0.3 < time.monotonic() - begun_s < _databases._FORK_WAIT_S
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    store.append(user("parent"))
    assert store.messages() == [user("child"), user("parent")]
    store.close()
