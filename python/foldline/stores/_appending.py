"""An append-only file: whole records or none, with concurrent writers and after any failure."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Final, Literal

from foldline._util.files import create_private, sync_folder
from foldline.errors import StoreError
from foldline.stores import _locks

__all__ = ["AppendFile", "Handle", "store_error"]

_FULL: Final = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)

_CODES: Final = (
    dict.fromkeys(_FULL, "store_full")
    | dict.fromkeys(_FORBIDDEN, "not_writable")
    | {errno.ELOOP: "linked_file", errno.ENOENT: "no_file", errno.ENOTDIR: "no_file", errno.EISDIR: "not_a_file"}
)


def store_error(error: OSError, doing: str) -> StoreError:
    """An operating system error as a `StoreError` with a stable code."""
    number = error.errno or 0
    name = errno.errorcode.get(number, type(error).__name__)
    return StoreError(f"{doing}: {name}", code=_CODES.get(number, "io_error"))


class AppendFile:
    """An append-only file, opened per step so that no descriptor survives a fork. Never rewritten.

    Args:
        path: The file. A link is not followed.
        durable: Whether an append is on disk when it returns.
        lock_timeout_s: Timeout for taking the lock.

    Attributes:
        failed: The code of a failure after which appends are refused; else None.
    """

    def __init__(self, path: str, *, durable: bool, lock_timeout_s: float) -> None:
        self.path = path
        self.durable = durable
        self.lock_timeout_s = lock_timeout_s
        self.failed: str | None = None

    @contextlib.contextmanager
    def opened(self, mode: Literal["read", "append", "create"]) -> Iterator[Handle]:
        """The open file under its lock, a shared one for reading.

        Raises:
            StoreError: The file cannot be opened (``no_file``, ``not_writable``, ``linked_file``, ``not_a_file``,
                ``io_error``), or the lock was not free in time (``busy``).
        """
        if mode != "read" and self.failed is not None:
            raise StoreError("an earlier write failed; reopen the session", code="needs_reopen")
        while True:
            with self._locked(mode) as handle:
                # If the file was replaced while waiting for the lock, this descriptor is of a deleted file: open again.
                if mode == "read" or handle.is_at(self.path):
                    yield handle
                    return

    @contextlib.contextmanager
    def _locked(self, mode: Literal["read", "append", "create"]) -> Iterator[Handle]:
        descriptor, made = self._open(mode)
        try:
            try:
                if not stat.S_ISREG(_locks.uninterrupted(lambda: os.fstat(descriptor)).st_mode):
                    raise StoreError("not a regular file", code="not_a_file")
                if not _locks.lock(descriptor, shared=mode == "read", timeout_s=self.lock_timeout_s):
                    raise StoreError("another writer has the lock", code="busy")
                handle = Handle(self, descriptor, made=made)
            except OSError as error:
                raise store_error(error, "opening") from error
            try:
                yield handle
            finally:
                with contextlib.suppress(OSError):
                    _locks.unlock(descriptor)
        finally:
            _locks.close(descriptor)

    def _open(self, mode: Literal["read", "append", "create"]) -> tuple[int, bool]:
        """A descriptor of the file, and whether the file is new."""
        flags = os.O_RDONLY if mode == "read" else os.O_RDWR | os.O_APPEND
        # Opening a pipe in place of the file must not block.
        for name in ("O_NOFOLLOW", "O_BINARY", "O_NONBLOCK", "O_NOCTTY"):
            flags |= getattr(os, name, 0)
        try:
            if not hasattr(os, "O_NOFOLLOW") and os.path.islink(self.path):  # noqa: PTH114 - it may be anything
                raise OSError(errno.ELOOP, "a link")
            while True:
                try:
                    return _locks.uninterrupted(lambda: _locks.opened(lambda: os.open(self.path, flags))), False
                except FileNotFoundError:
                    if mode != "create":
                        raise
                with contextlib.suppress(FileExistsError):  # another process created it meanwhile
                    return _locks.uninterrupted(lambda: _locks.opened(lambda: create_private(self.path, flags))), True
        except OSError as error:
            raise store_error(error, "opening") from error


class Handle:
    """An open, locked file.

    Attributes:
        size: Size in bytes.
        identity: Device and inode.
        made: Whether this step created the file.
    """

    def __init__(self, file: AppendFile, descriptor: int, *, made: bool) -> None:
        self._file = file
        self._descriptor = descriptor
        self._process = os.getpid()
        self.made = made
        status = _locks.uninterrupted(lambda: os.fstat(descriptor))
        self.size = status.st_size
        self.identity = (status.st_dev, status.st_ino)

    def is_at(self, path: str) -> bool:
        """Whether ``path`` still names this file.

        Raises:
            StoreError: ``path`` does not exist.
        """
        try:
            status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - the path as given
        except OSError as error:
            raise store_error(error, "looking") from error
        return (status.st_dev, status.st_ino) == self.identity

    def read(self, offset: int, chunk_bytes: int = 1 << 20) -> Iterator[bytes]:
        """The bytes from an offset to the end, in chunks.

        Raises:
            StoreError: A read failed (``io_error``).
        """
        while offset < self.size:
            try:
                chunk = _locks.uninterrupted(lambda: self._read_at(offset, chunk_bytes))  # noqa: B023 - it runs now
            except OSError as error:
                raise store_error(error, "reading") from error
            if not chunk:
                return
            offset += len(chunk)
            yield chunk

    def _read_at(self, offset: int, chunk_bytes: int) -> bytes:
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        return os.read(self._descriptor, min(chunk_bytes, self.size - offset))

    def append(self, data: bytes) -> None:
        """Appends all of the data, or nothing.

        Writes under the lock until all is written, then syncs. After a failure the file is truncated to its old size.
        After a failed sync the content on disk is unknown, and a second sync would falsely succeed: further appends are
        refused until the session is reopened. The same applies if truncating failed.

        Raises:
            StoreError: ``store_full``, ``io_error``, ``sync_failed``; ``forked``: this is a child of the process that
                began the step, and the step is the parent's.
        """
        self._check_process()
        syncing = False
        try:
            rest = memoryview(data)
            while rest:
                with contextlib.suppress(InterruptedError):
                    written = os.write(self._descriptor, rest)
                    if written <= 0:
                        raise OSError(errno.EIO, "nothing was written")
                    rest = rest[written:]
            if self._file.durable:
                syncing = True
                _locks.sync(self._descriptor)
        except OSError as error:
            if syncing:
                self._file.failed = "sync_failed"
            self._cut_back(len(data))
            if syncing:
                raise StoreError("the written data may not be on the disk", code="sync_failed") from error
            raise store_error(error, "writing") from error
        except BaseException:  # such as Ctrl-C: the append was not acknowledged
            self._cut_back(len(data))
            raise
        self._check_process()
        self.size += len(data)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise StoreError("the process was forked within this step", code="forked")

    def sync_all(self) -> None:
        """Syncs the file and its name after its creation.

        Raises:
            StoreError: The sync failed (``sync_failed``).
        """
        if not self._file.durable:
            return
        try:
            _locks.sync(self._descriptor)
            folder = os.path.dirname(os.path.abspath(self._file.path))  # noqa: PTH100, PTH120 - the path as given
            _locks.uninterrupted(lambda: sync_folder(folder))
        except OSError as error:
            raise StoreError("the new file may not be on the disk", code="sync_failed") from error

    def _cut_back(self, appended: int) -> None:
        """Truncates the file after a failed append."""
        try:
            # A larger file has data of a writer that takes no lock; it must not be removed.
            if _locks.uninterrupted(lambda: os.fstat(self._descriptor)).st_size > self.size + appended:
                self._file.failed = self._file.failed or "not_cut_back"
                return
            _locks.uninterrupted(lambda: os.ftruncate(self._descriptor, self.size))
            if self._file.durable and self._file.failed is None:
                _locks.sync(self._descriptor)
        except OSError:
            self._file.failed = self._file.failed or "not_cut_back"
