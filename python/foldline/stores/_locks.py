"""Portable file locks between processes, and syncing."""

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

#: Errors that mean that the lock is taken.
_HELD: Final = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)

#: Errors of file systems that cannot sync folders; they are ignored.
_CANNOT: Final = (errno.EINVAL, errno.EBADF, getattr(errno, "ENOTSUP", errno.EINVAL), errno.EACCES)

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


def folder_synced(path: str) -> None:
    """Makes the names in a folder durable, where supported.

    Raises:
        OSError: The sync failed.
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
    """Calls a system call, again after each interruption by a signal."""
    while True:
        with contextlib.suppress(InterruptedError):
            return call()
