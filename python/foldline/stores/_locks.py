"""Portable file locks between processes, syncing, and what a fork does to open files."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["close", "lock", "opened", "sync", "uninterrupted", "unlock"]

T = TypeVar("T")

#: Errors that mean that the lock is taken.
_HELD: Final = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)

if sys.platform == "win32":
    import msvcrt

    #: A byte offset beyond any file: Windows locks byte ranges, and locked bytes cannot be written.
    _FAR: Final = 1 << 62

    def _try_lock(descriptor: int, *, shared: bool) -> None:
        del shared  # Windows has no shared locks
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)

    def unlock(descriptor: int) -> None:
        """Releases the lock."""
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)

else:
    import fcntl

    def _try_lock(descriptor: int, *, shared: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)

    def unlock(descriptor: int) -> None:
        """Releases the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


#: Descriptors of files that may be locked.
_OPEN: Final[set[int]] = set()

#: Held while a file is opened or closed, and during a fork, so that a child knows every descriptor that it inherits.
_GUARD: Final = threading.RLock()


def opened(open_file: Callable[[], int]) -> int:
    """Opens a file; returns its descriptor. `close` closes it.

    A lock belongs to the open file, which a forked child shares: it would hold the lock of a parent that died. So a
    child lets go of every such file.

    Raises:
        OSError: Of ``open_file``.
    """
    with _GUARD:
        process = os.getpid()
        descriptor = open_file()
        if process != os.getpid():  # a signal handler forked
            os.close(descriptor)
            raise InterruptedError
        _OPEN.add(descriptor)
        return descriptor


def close(descriptor: int) -> None:
    """Closes a file that `opened` opened. Errors are ignored: acknowledged data is on disk already."""
    with _GUARD:
        _OPEN.discard(descriptor)
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _let_go() -> None:
    """In a forked child: lets go of the files that its parent had open, without unlocking them for the parent.

    Each descriptor is made one of the null device: its number is not used again while code of the parent may hold it.
    """
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in _OPEN:
            os.dup2(null, descriptor, inheritable=False)
        os.close(null)
    _OPEN.clear()
    _GUARD.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_let_go)


def lock(descriptor: int, *, shared: bool, timeout_s: float) -> bool:
    """Takes the lock of an open file; returns whether it succeeded in time. It is released when the process ends.

    Raises:
        OSError: The file system does not support locks.
    """
    deadline_s = time.monotonic() + timeout_s
    pause_s = 0.0001
    while True:
        try:
            uninterrupted(lambda: _try_lock(descriptor, shared=shared))
        except OSError as error:
            if error.errno not in _HELD:
                raise
        else:
            return True
        if time.monotonic() >= deadline_s:
            return False
        # Random pauses, so that waiting processes do not retry in step.
        time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        pause_s = min(pause_s * 2, 0.002)


def sync(descriptor: int) -> None:
    """Writes the file's data through to the disk.

    Raises:
        OSError: The write failed; the content on disk is unknown.
    """
    if sys.platform == "darwin":
        # fsync leaves data in the drive's cache.
        uninterrupted(lambda: fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC))
    elif hasattr(os, "fdatasync"):
        uninterrupted(lambda: os.fdatasync(descriptor))
    else:
        uninterrupted(lambda: os.fsync(descriptor))


def uninterrupted(call: Callable[[], T]) -> T:
    """Calls a system call, again after each interruption by a signal."""
    while True:
        with contextlib.suppress(InterruptedError):
            return call()
