"""A file that only grows: whole records or none, whoever else writes to it and whatever fails."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Final, Literal

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
    """What the system said, as a typed error."""
    number = error.errno or 0
    name = errno.errorcode.get(number, type(error).__name__)
    return StoreError(f"{doing}: {name}", code=_CODES.get(number, "io_error"))


class AppendFile:
    """A file that is opened for every step, so that nothing of it is held over a fork, and that is never rewritten.

    Args:
        path: Where it lies. A link is not followed.
        durable: Whether an append is on the disk when it returns.
        lock_timeout_s: How long a step waits for others.

    Attributes:
        failed: The code of a failure after which nothing may be appended; None while all is well.
    """

    def __init__(self, path: str, *, durable: bool, lock_timeout_s: float) -> None:
        self.path = path
        self.durable = durable
        self.lock_timeout_s = lock_timeout_s
        self.failed: str | None = None

    @contextlib.contextmanager
    def opened(self, mode: Literal["read", "append", "create"]) -> Iterator[Handle]:
        """The file under its lock: a shared one for reading.

        Raises:
            StoreError: It cannot be opened (``no_file``, ``not_writable``, ``linked_file``, ``not_a_file``,
                ``io_error``), or others held the lock for too long (``busy``).
        """
        if mode != "read" and self.failed is not None:
            raise StoreError("an earlier write failed; open the session anew", code="needs_reopen")
        while True:
            with self._locked(mode) as handle:
                # Who replaced the file while we waited for the lock has left us with one that nobody will read.
                if mode == "read" or handle.is_at(self.path):
                    yield handle
                    return

    @contextlib.contextmanager
    def _locked(self, mode: Literal["read", "append", "create"]) -> Iterator[Handle]:
        descriptor, made = self._open(mode)
        try:
            try:
                if not stat.S_ISREG(_locks.uninterrupted(lambda: os.fstat(descriptor)).st_mode):
                    raise StoreError("no regular file", code="not_a_file")
                if not _locks.lock(descriptor, shared=mode == "read", timeout_s=self.lock_timeout_s):
                    raise StoreError("others hold the lock", code="busy")
                handle = Handle(self, descriptor, made=made)
            except OSError as error:
                raise store_error(error, "opening") from error
            try:
                yield handle
            finally:
                with contextlib.suppress(OSError):
                    _locks.unlock(descriptor)
        finally:
            with contextlib.suppress(OSError):  # what was acknowledged is on the disk already
                os.close(descriptor)

    def _open(self, mode: Literal["read", "append", "create"]) -> tuple[int, bool]:
        """A descriptor of the file, and whether it is a new one."""
        flags = os.O_RDONLY if mode == "read" else os.O_RDWR | os.O_APPEND
        # A pipe in the file's place must not keep us waiting for a writer.
        for name in ("O_NOFOLLOW", "O_BINARY", "O_NONBLOCK", "O_NOCTTY"):
            flags |= getattr(os, name, 0)
        try:
            if not hasattr(os, "O_NOFOLLOW") and os.path.islink(self.path):  # noqa: PTH114 - it may be anything
                raise OSError(errno.ELOOP, "a link")
            made = False
            try:
                descriptor = _locks.uninterrupted(lambda: os.open(self.path, flags, 0o600))
            except FileNotFoundError:
                if mode != "create":
                    raise
                descriptor = _locks.uninterrupted(lambda: os.open(self.path, flags | os.O_CREAT, 0o600))
                made = True
        except OSError as error:
            raise store_error(error, "opening") from error
        return descriptor, made


class Handle:
    """A file while it is open and locked.

    Attributes:
        size: Its bytes.
        identity: Which file it is: device and number.
        made: Whether this step has made it.
    """

    def __init__(self, file: AppendFile, descriptor: int, *, made: bool) -> None:
        self._file = file
        self._descriptor = descriptor
        self.made = made
        status = _locks.uninterrupted(lambda: os.fstat(descriptor))
        self.size = status.st_size
        self.identity = (status.st_dev, status.st_ino)

    def is_at(self, path: str) -> bool:
        """Whether the file is still the one that lies there.

        Raises:
            StoreError: None does.
        """
        try:
            status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - as it was given
        except OSError as error:
            raise store_error(error, "looking") from error
        return (status.st_dev, status.st_ino) == self.identity

    def read(self, offset: int, chunk_bytes: int = 1 << 20) -> Iterator[bytes]:
        """What stands from an offset to the end.

        Raises:
            StoreError: It cannot be read (``io_error``).
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

        One write; the rest of a short one follows under the same lock. Then it is synced. Where that fails, the file
        is cut back to what it was. After a sync that failed nobody knows what is on the disk, and a second one would
        say that all is well: nothing more is taken until the session is opened anew. The same where the file could not
        be cut back.

        Raises:
            StoreError: ``store_full``, ``io_error``, ``sync_failed``.
        """
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
                raise StoreError("what was written may not be on the disk", code="sync_failed") from error
            raise store_error(error, "writing") from error
        except BaseException:  # Ctrl-C, say: it was not acknowledged
            self._cut_back(len(data))
            raise
        self.size += len(data)

    def sync_all(self) -> None:
        """Brings the file and its name to the disk: after it was made.

        Raises:
            StoreError: It could not (``sync_failed``).
        """
        if not self._file.durable:
            return
        try:
            _locks.sync(self._descriptor)
            _locks.folder_synced(os.path.dirname(os.path.abspath(self._file.path)))  # noqa: PTH100, PTH120 - as given
        except OSError as error:
            raise StoreError("the new file may not be on the disk", code="sync_failed") from error

    def _cut_back(self, appended: int) -> None:
        """Makes the file what it was before an append that failed."""
        try:
            # More than that is of somebody who takes no lock: it is not ours to remove.
            if _locks.uninterrupted(lambda: os.fstat(self._descriptor)).st_size > self.size + appended:
                self._file.failed = self._file.failed or "not_cut_back"
                return
            _locks.uninterrupted(lambda: os.ftruncate(self._descriptor, self.size))
            if self._file.durable and self._file.failed is None:
                _locks.sync(self._descriptor)
        except OSError:
            self._file.failed = self._file.failed or "not_cut_back"
