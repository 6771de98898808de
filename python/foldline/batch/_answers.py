"""Space on the disk, reserved for an answer before the answer is paid for, and answers that wait there.

A full disk may refuse the row of an answer although it took that of the spending before the call: a database needs new
pages, in its log too. So a file of the size of the longest answer is allocated before a call. If the cache cannot store
the answer, it is written into that file, which needs no further space, and waits for a cache that can store it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from foldline._util.files import read_regular, sync_folder

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["AnswerReservation", "Answers"]

_RESERVED, _ANSWER = ".room", ".answer"


class AnswerReservation:
    """An allocated file next to a cache, locked by this process.

    Attributes:
        path: The file.
        size_bytes: Its size.

    Raises:
        FileNotFoundError: Another process removed it before it was locked.
        OSError: The disk is full.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # not supported by every file system
                    fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(self._descriptor).st_nlink:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            _allocate(self._descriptor, size_bytes)
        except BaseException:
            self.remove()
            raise

    def keep(self, key: bytes, value: str) -> None:
        """Turns the file into an answer, durable on return.

        Raises:
            OSError: It is longer than the file and the disk is full, or the disk failed.
        """
        data = json.dumps([key.hex(), value]).encode()
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.ftruncate(self._descriptor, os.lseek(self._descriptor, 0, os.SEEK_CUR))
        os.fsync(self._descriptor)
        self.path.rename(self.path.with_suffix(_ANSWER))
        sync_folder(self.path.parent)
        os.close(self._descriptor)

    def remove(self) -> None:
        """Removes the file."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


class Answers:
    """The reservations of this process and all waiting answers, in the folder of a cache and with its name.

    Args:
        cache: The file of the cache.
    """

    def __init__(self, cache: Path) -> None:
        self._folder = cache.parent
        self._name = cache.stem
        self._idle: list[AnswerReservation] = []

    def reserve(self, size_bytes: int) -> AnswerReservation:
        """A reservation of at least this size, of its caller alone; an earlier one if it is large enough.

        Raises:
            OSError: The disk is full.
        """
        while self._idle:
            reservation = self._idle.pop()
            if reservation.size_bytes >= size_bytes:
                return reservation
            reservation.remove()
        with contextlib.suppress(FileNotFoundError):  # swept before it was locked
            return AnswerReservation(self._new_path(), size_bytes)
        return AnswerReservation(self._new_path(), size_bytes)

    def give_back(self, reservation: AnswerReservation) -> None:
        """Ends the use of a reservation that was not needed."""
        self._idle.append(reservation)

    def waiting(self) -> Iterator[tuple[Path, bytes, str]]:
        """The waiting answers of all processes: file, key and value."""
        for path in sorted(self._folder.glob(f"{self._name}.*{_ANSWER}")):
            with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
                key, value = json.loads(read_regular(path))
                if isinstance(value, str):
                    yield path, bytes.fromhex(key), value

    def remove_stale(self) -> None:
        """Removes the reservations of killed processes."""
        for path in self._folder.glob(f"{self._name}.*{_RESERVED}"):
            with contextlib.suppress(OSError):  # locked, no file, or removed by another process
                if not path.is_file():
                    continue
                if fcntl is not None:
                    with path.open("rb") as stream:
                        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        path.unlink()
                else:
                    path.unlink()

    def close(self) -> None:
        """Removes the reservations of this process, and of processes that have ended."""
        while self._idle:
            self._idle.pop().remove()
        self.remove_stale()

    def _new_path(self) -> Path:
        return self._folder / f"{self._name}.{secrets.token_hex(8)}{_RESERVED}"


def _allocate(descriptor: int, size_bytes: int) -> None:
    """Allocates a file on the disk, not only its size."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # not supported by every file system
                raise
    data = bytes(size_bytes)
    while data:
        data = data[os.write(descriptor, data) :]
    os.fsync(descriptor)
