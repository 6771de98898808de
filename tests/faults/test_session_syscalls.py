"""I10 and I13 of session files: every n-th call of the system fails, or the process dies in it."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from faults.failing_os import FAULTS, FailingOs
from foldline._util import files
from foldline.errors import StoreError
from foldline.stores import JsonlSession, _appending, _locks
from foldline.typing import ContextEntry
from unit.samples import talk, user

CODES = {"io_error", "store_full", "sync_failed", "needs_reopen"}


class Steps:
    """Opening, appending, compacting: what each acknowledged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store: JsonlSession | None = None
        self.before = b""
        self.acknowledged: list[Any] = []
        self.rounds = 0

    def run(self) -> None:
        """Raises where a step fails; `before` is the file as it was before that."""
        self._look()
        self.store = JsonlSession(self.path)
        for number in range(2):
            self._append(user(f"new {number}"))
        self._look()
        ids = self.store.ids()
        event = fl.typing.CompactionEvent(1, 100, 10, len(ids), len(ids) - 1, "So far.", tuple(ids[:2]), 0.0)
        context = [ContextEntry(None, user("So far.")), *(ContextEntry(each) for each in ids[2:])]
        self.store.save_context(event, context)
        self.rounds = 1
        self._append(user("last"))

    def _append(self, message: Any) -> None:
        assert self.store is not None
        self._look()
        self.store.append(message)
        self.acknowledged.append(message)

    def _look(self) -> None:
        self.before = self.path.read_bytes() if self.path.exists() else b""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of four messages, the last record of which is torn."""
    path = tmp_path_factory.mktemp("begun") / "session.jsonl"
    JsonlSession(path).extend(talk(4))
    with path.open("ab") as stream:
        stream.write(b'{"type":"message","id":"torn","par')
    return path


@pytest.fixture(params=["a new file", "a file with a torn end"])
def path(request: pytest.FixtureRequest, begun: Path, tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    if request.param == "a file with a torn end":
        shutil.copyfile(begun, path)
    return path


@pytest.fixture(autouse=True)
def mended() -> Iterator[None]:
    yield
    use_os(os)


def use_os(module: Any) -> None:
    """Sets the module through which files are written."""
    _appending.os = _locks.os = files.os = module  # type: ignore[attr-defined]


def break_os(at: int, fault: str, *, sticky: bool = False) -> FailingOs:
    failing = FailingOs(at, fault, sticky=sticky)
    use_os(failing)
    return failing


def calls_of(path: Path) -> list[str]:
    """The calls of a run in which all goes well."""
    failing = break_os(0, "")
    Steps(path).run()
    return failing.calls


def fresh(path: Path, number: int) -> Path:
    """A copy to break."""
    folder = path.parent / str(number)
    folder.mkdir()
    if path.exists():
        shutil.copyfile(path, folder / path.name)
    return folder / path.name


def check(steps: Steps, old: list[Any], *, may_hold_more: bool) -> JsonlSession:
    """What was acknowledged is there, whole; of what was not, one write at most, and only where nobody could tell."""
    use_os(os)
    store = JsonlSession(steps.path)
    held, sure = store.restore(), [*old, *steps.acknowledged]
    assert held[: len(sure)] == sure
    rest = held[len(sure) :]
    more_rounds = store.last_round() - steps.rounds
    assert more_rounds in (0, 1)
    assert len(rest) + more_rounds <= (1 if may_hold_more else 0)
    assert len(store.problems) <= (1 if old else 0) + 1
    assert store.check() == store.problems
    # And it goes on.
    store.append(user("after"))
    assert JsonlSession(steps.path).messages()[-1] == user("after")
    return store


@pytest.mark.parametrize(
    ("fault", "sticky"),
    [*((each, False) for each in FAULTS if each != "kill"), ("EIO", True), ("ENOSPC", True)],
)
def test_I10_I13_every_nth_call_fails(path: Path, fault: str, sticky: bool) -> None:
    old = JsonlSession(path, readonly=True).restore() if path.exists() else []
    calls = calls_of(fresh(path, 0))
    assert {"open", "fstat", "write", "fdatasync", "close"} <= set(calls)
    for n in range(1, len(calls) + 1):
        steps = Steps(fresh(path, n))
        failing = break_os(n, fault, sticky=sticky)
        where, error = calls[n - 1], None
        try:
            steps.run()
        except (StoreError, KeyboardInterrupt) as raised:
            error = raised
        failed = error is not None
        if isinstance(error, StoreError):
            assert error.code in CODES, where
        if fault in ("short", "EINTR") or (where == "close" and fault != "interrupt"):
            assert not failed, (where, error)
        if not failed:
            assert steps.acknowledged == [user("new 0"), user("new 1"), user("last")]
        # Ctrl-C in closing comes when all is done; a file whose size nobody tells cannot be cut back.
        cut_back = where != "close" and not (sticky and where == "fstat")
        if failed and steps.before and cut_back:
            assert steps.path.read_bytes() == steps.before, (where, n)  # I10: to the byte
        if failed and steps.store is not None and not sticky:
            known = steps.store
            use_os(os)
            assert known.messages() == JsonlSession(steps.path, readonly=True).messages()  # memory and file agree
            if where == "fdatasync" and fault in ("EIO", "ENOSPC"):
                with pytest.raises(StoreError) as caught:
                    known.append(user("after a failed sync"))
                assert caught.value.code == "needs_reopen"
                known.reopen()
                assert known.messages() == JsonlSession(steps.path, readonly=True).messages()
        check(steps, old, may_hold_more=not cut_back)
        assert failing.calls[:n] == calls[:n]


def test_I13_a_file_that_cannot_even_be_cut_back_is_read_around_the_rest(tmp_path: Path) -> None:
    store = JsonlSession(tmp_path / "session.jsonl")
    store.append(user("first"))

    class NoWay(FailingOs):
        """The disk is full at a third of the record, and then it is not even there."""

        def __getattr__(self, name: str) -> Any:
            return self._gone if name == "ftruncate" else super().__getattr__(name)

        def _gone(self, *_: Any) -> None:
            raise OSError(errno.EIO, "gone")

    calls = break_os(0, "").calls
    store.append(user("second"))
    _appending.os = NoWay(calls.index("write") + 1, "ENOSPC")  # type: ignore[attr-defined]
    for code in ("store_full", "needs_reopen", "needs_reopen"):
        with pytest.raises(StoreError) as caught:
            store.append(user("third"))
        assert caught.value.code == code
    _appending.os = os  # type: ignore[attr-defined]
    assert store.messages() == [user("first"), user("second")]
    store.reopen()
    store.append(user("third"))
    again = JsonlSession(tmp_path / "session.jsonl")
    assert again.messages() == [user("first"), user("second"), user("third")]
    assert [each.line for each in again.problems] == [4]


def test_I13_what_others_wrote_behind_a_record_that_failed_is_not_cut_off(tmp_path: Path) -> None:
    """Others that take no lock: their record stays, and the session says that it wants to be opened anew."""
    path = tmp_path / "session.jsonl"
    store = JsonlSession(path)
    store.append(user("first"))

    class Busy(FailingOs):
        def fdatasync(self, _: int) -> None:
            with path.open("ab") as stream:
                stream.write(b'{"type":"message","id":"x","message":{"role":"user","content":"theirs"}}\n')
            raise OSError(errno.EIO, "gone")

    _locks.os = Busy()  # type: ignore[attr-defined]
    with pytest.raises(StoreError) as caught:
        store.append(user("mine"))
    assert caught.value.code == "sync_failed"
    _locks.os = os  # type: ignore[attr-defined]
    assert JsonlSession(path).messages()[-1] == user("theirs")
    with pytest.raises(StoreError) as caught:
        store.append(user("more"))
    assert caught.value.code == "needs_reopen"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_I13_the_process_dies_in_every_nth_call(path: Path) -> None:
    """And where the write had come half way, too. A process of its own, since here there may be threads."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from faults import test_session_syscalls as t; t.main(sys.argv[1])", path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def die_in_every_call(path: Path) -> int:
    """Forks a writer for every call, which dies in it; how many calls there were."""
    old = JsonlSession(path, readonly=True).restore() if path.exists() else []
    calls = calls_of(fresh(path, 0))
    use_os(os)
    for n in range(1, len(calls) + 1):
        for half in (False, True) if calls[n - 1] == "write" else (False,):
            place = fresh(path, n * 10 + half)
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                die(place, n, writing, half=half)
            os.close(writing)
            told = b""
            while chunk := os.read(reading, 4096):
                told += chunk
            os.close(reading)
            assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
            steps = Steps(place)
            steps.acknowledged = [user(each) for each in told.decode().splitlines() if each != "fold"]
            steps.rounds = told.decode().splitlines().count("fold")
            check(steps, old, may_hold_more=True)
    return len(calls)


def main(path: str) -> None:
    print(die_in_every_call(Path(path)))


def die(place: Path, n: int, pipe: int, *, half: bool) -> None:
    """Runs the steps, tells what was acknowledged, and dies in the n-th call."""
    failing = break_os(n, "kill")
    if half:
        gone_wrong = failing._gone_wrong

        def write_half(name: str, function: Any, arguments: Any) -> Any:
            descriptor, data = arguments
            function(descriptor, bytes(data)[: len(data) // 2])
            return gone_wrong(name, function, arguments)

        failing._gone_wrong = write_half  # type: ignore[method-assign]
    steps = Steps(place)

    class Telling(list[Any]):
        def append(self, message: Any) -> None:
            os.write(pipe, message["content"].encode() + b"\n")

    steps.acknowledged = Telling()
    kind = type(steps)
    try:
        kind.__setattr__ = lambda self, name, value: (  # type: ignore[method-assign, assignment]
            os.write(pipe, b"fold\n") if (name, value) == ("rounds", 1) else None,
            object.__setattr__(self, name, value),
        )
        steps.run()
    finally:
        os._exit(0)


# --- For real -----------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
import foldline as fl
from foldline.errors import StoreError
store = fl.stores.JsonlSession(sys.argv[1])
room = int(sys.argv[2])
size = __import__("os").stat(sys.argv[1]).st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, size + room))
before = open(sys.argv[1], "rb").read()
context = store.active()
for action in (
    lambda: store.append({"role": "user", "content": "x" * 5000}),
    lambda: store.extend({"role": "user", "content": "x" * 500} for _ in range(10)),
    lambda: store.save_context(
        fl.typing.CompactionEvent(1, 9, 1, 1, 1, "y" * 5000, (context[0].id,), 0.0),
        [fl.typing.ContextEntry(None, {"role": "user", "content": "y" * 5000})],
    ),
):
    try:
        action()
    except StoreError as error:
        assert error.code == "store_full", error
    else:
        raise SystemExit("it was written")
    assert open(sys.argv[1], "rb").read() == before
    assert store.active() == context
print(store.append({"role": "user", "content": ""}) if room > 400 else "no room")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("room", [0, 1, 100, 1000, 4096])
def test_I10_a_file_that_may_not_grow_is_as_it_was(tmp_path: Path, room: int) -> None:
    """The system itself writes less than it was given, and then nothing."""
    path = tmp_path / "session.jsonl"
    JsonlSession(path).append(user("first"))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(room)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(JsonlSession(path).messages()) == (2 if room > 400 else 1)
    assert JsonlSession(path).problems == ()


@pytest.mark.mount
def test_a_full_disk_is_told_and_the_session_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = tmp_path / "full.py"
    script.write_text(FULL)
    mount = f"mount -t tmpfs -o size=64k none {disk} && exec {sys.executable} {script} {disk}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["store_full", "ok"]


FULL = """
import os, sys
from pathlib import Path
import foldline as fl
from foldline.errors import StoreError
path = Path(sys.argv[1]) / "session.jsonl"
ballast = Path(sys.argv[1]) / "ballast"
ballast.write_bytes(b"." * 16384)
store = fl.stores.JsonlSession(path)
count = 0
try:
    while True:
        before = path.read_bytes()
        store.append({"role": "user", "content": "x" * 3000})
        count += 1
except StoreError as error:
    print(error.code)
assert path.read_bytes() == before
assert len(store.messages()) == count == len(fl.stores.JsonlSession(path, readonly=True).messages())
ballast.unlink()
store.append({"role": "user", "content": "x" * 3000})
assert len(fl.stores.JsonlSession(path).messages()) == count + 1
print("ok")
"""


def test_errors_of_the_system_have_codes() -> None:
    told = {number: _appending.store_error(OSError(number, "x"), "writing").code for number in errno.errorcode}
    assert told[errno.ENOSPC] == told[errno.EFBIG] == told[errno.EDQUOT] == "store_full"
    assert told[errno.EROFS] == told[errno.EACCES] == "not_writable"
    assert told[errno.EIO] == told[errno.EINVAL] == "io_error"
