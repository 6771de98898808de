"""Locks on files between processes, and syncing, on every system."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sys
import time
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["folder_synced", "lock", "sync", "uninterrupted", "unlock"]

T = TypeVar("T")

#: Errors that say that somebody else holds the lock.
_HELD: Final = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)

#: Errors that say that a file system cannot sync folders; that is no failure.
_CANNOT: Final = (errno.EINVAL, errno.EBADF, getattr(errno, "ENOTSUP", errno.EINVAL), errno.EACCES)

if sys.platform == "win32":
    import msvcrt

    #: A byte that no file reaches: Windows locks bytes, and nobody may write those that are locked.
    _FAR: Final = 1 << 62

    def _try_lock(descriptor: int, *, shared: bool) -> None:
        del shared  # there is only one kind
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)

    def unlock(descriptor: int) -> None:
        """Gives the lock back."""
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
        """Gives the lock back."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def lock(descriptor: int, *, shared: bool, timeout_s: float) -> bool:
    """Takes the lock of an open file; whether that worked in time. The system gives it back when a process ends.

    Raises:
        OSError: The file system has no locks.
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
        # Not in step with the others that wait.
        time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        pause_s = min(pause_s * 2, 0.002)


def sync(descriptor: int) -> None:
    """Brings what was written to the disk.

    Raises:
        OSError: It could not be written; what of it is on the disk, nobody knows.
    """
    if sys.platform == "darwin":
        # fsync leaves it in the drive's own cache.
        uninterrupted(lambda: fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC))
    elif hasattr(os, "fdatasync"):
        uninterrupted(lambda: os.fdatasync(descriptor))
    else:
        uninterrupted(lambda: os.fsync(descriptor))


def folder_synced(path: str) -> None:
    """Brings the names in a folder to the disk, where the system can.

    Raises:
        OSError: The disk failed.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = uninterrupted(lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY))
    try:
        uninterrupted(lambda: os.fsync(descriptor))
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def uninterrupted(call: Callable[[], T]) -> T:
    """A call of the system, made again where a signal came in its way."""
    while True:
        with contextlib.suppress(InterruptedError):
            return call()
