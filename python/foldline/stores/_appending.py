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
        descriptor, made = self._open(mode)
        try:
            try:
                if not _locks.lock(descriptor, shared=mode == "read", timeout_s=self.lock_timeout_s):
                    raise StoreError("others hold the lock", code="busy")
            except OSError as error:
                raise store_error(error, "locking") from error
            try:
                yield Handle(self, descriptor, made=made)
            finally:
                with contextlib.suppress(OSError):
                    _locks.unlock(descriptor)
        finally:
            os.close(descriptor)

    def _open(self, mode: Literal["read", "append", "create"]) -> tuple[int, bool]:
        """A descriptor of a regular file, and whether it is a new one."""
        flags = os.O_RDONLY if mode == "read" else os.O_RDWR | os.O_APPEND
        # A pipe in the file's place must not keep us waiting for a writer.
        for name in ("O_NOFOLLOW", "O_BINARY", "O_NONBLOCK", "O_NOCTTY"):
            flags |= getattr(os, name, 0)
        try:
            if not hasattr(os, "O_NOFOLLOW") and os.path.islink(self.path):  # noqa: PTH114 - it may be anything
                raise OSError(errno.ELOOP, "a link")
            made = False
            try:
                descriptor = os.open(self.path, flags, 0o600)
            except FileNotFoundError:
                if mode != "create":
                    raise
                descriptor = os.open(self.path, flags | os.O_CREAT, 0o600)
                made = True
        except OSError as error:
            raise store_error(error, "opening") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise StoreError("no regular file", code="not_a_file")
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
        status = os.fstat(descriptor)
        self.size = status.st_size
        self.identity = (status.st_dev, status.st_ino)

    def read(self, offset: int, chunk_bytes: int = 1 << 20) -> Iterator[bytes]:
        """What stands from an offset to the end.

        Raises:
            StoreError: It cannot be read (``io_error``).
        """
        while offset < self.size:
            try:
                os.lseek(self._descriptor, offset, os.SEEK_SET)
                chunk = os.read(self._descriptor, min(chunk_bytes, self.size - offset))
            except InterruptedError:
                continue
            except OSError as error:
                raise store_error(error, "reading") from error
            if not chunk:
                return
            offset += len(chunk)
            yield chunk

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
                self._sync()
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
            self._sync()
            _locks.folder_synced(os.path.dirname(os.path.abspath(self._file.path)))  # noqa: PTH100, PTH120 - as given
        except OSError as error:
            raise StoreError("the new file may not be on the disk", code="sync_failed") from error

    def _sync(self) -> None:
        while True:
            try:
                _locks.sync(self._descriptor)
            except InterruptedError:
                continue
            return

    def _cut_back(self, appended: int) -> None:
        """Makes the file what it was before an append that failed."""
        try:
            # More than that is of somebody who takes no lock: it is not ours to remove.
            if os.fstat(self._descriptor).st_size > self.size + appended:
                self._file.failed = self._file.failed or "not_cut_back"
                return
            while True:
                try:
                    os.ftruncate(self._descriptor, self.size)
                except InterruptedError:
                    continue
                break
            if self._file.durable and self._file.failed is None:
                self._sync()
        except OSError:
            self._file.failed = self._file.failed or "not_cut_back"
