"""Atomic and durable file writes."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Protocol, Self, cast

from foldline.errors import StoreError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = [
    "COMPRESSIONS",
    "PRIVATE",
    "TEMPORARY",
    "GivenUp",
    "Hashing",
    "Outputs",
    "Staged",
    "compressing",
    "create_private",
    "ensure_private",
    "failed_path",
    "hold",
    "make_folder",
    "narrow",
    "read_regular",
    "remedy",
    "remove_stale",
    "replacing",
    "sync_folder",
]

#: Suffixes of compressed files.
COMPRESSIONS = (".gz", ".zst")

#: Compression levels: the defaults of gzip and zstd. Higher levels compress better and slower.
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3

#: Prefix of temporary files. The dot hides them from readers of the folder.
TEMPORARY = ".foldline-"

#: Mode of a file that may hold text of conversations: only its owner reads and writes it.
PRIVATE = 0o600

#: Errors of a full disk, and of something else in the place of a file.
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_NO_FILE = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP)

#: Errors of file systems that have no modes.
_NO_MODES = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

#: Errors of file systems that cannot sync a folder. Any other one means that a name may be lost.
_NO_FOLDER_SYNC = (errno.EBADF, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class Writable(Protocol):
    """A writable binary stream."""

    def write(self, data: bytes, /) -> int:
        """Writes all bytes."""
        ...

    def flush(self) -> None:
        """Passes buffered bytes on."""
        ...


class Hashing:
    """A stream that hashes the bytes written."""

    closed = False

    def __init__(self, stream: Writable) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        """Writes all bytes."""
        self._stream.write(data)
        self._digest.update(data)
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Passes buffered bytes to the file."""
        self._stream.flush()

    def hexdigest(self) -> str:
        """The SHA-256 of all bytes written, in hexadecimal."""
        return self._digest.hexdigest()


@contextlib.contextmanager
def compressing(stream: Writable, suffix: str) -> Iterator[IO[bytes]]:
    """A stream that compresses into another, by suffix; any other suffix passes bytes through.

    The output is deterministic: it contains no name and no time.

    Raises:
        ImportError: The package zstandard is missing.
    """
    if suffix == ".gz":
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, cast(IO[bytes], stream), mtime=0) as packed:
            yield cast(IO[bytes], packed)
    elif suffix == ".zst":
        import zstandard

        compressor = zstandard.ZstdCompressor(_ZSTD_LEVEL, write_checksum=True)
        with compressor.stream_writer(cast(IO[bytes], stream), closefd=False) as packed:
            yield cast(IO[bytes], packed)
    else:
        yield cast(IO[bytes], stream)


def hold(folder: Path) -> int | None:
    """Locks a folder for this process until the returned descriptor is closed; None without ``fcntl``.

    Raises:
        StoreError: Another process has the lock (``folder_in_use``).
        OSError: The folder cannot be opened.
    """
    if fcntl is None:
        return None
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise StoreError("another run uses the folder", code="folder_in_use") from None
    except OSError:  # not supported by every file system
        pass
    return held


def make_folder(root: Path, relative: Path) -> Path:
    """Creates ``root / relative`` with all parents. Does not follow links below ``root``.

    Raises:
        StoreError: A path component is a link.
        OSError: A folder cannot be created, or a path component is a file.
    """
    root.mkdir(parents=True, exist_ok=True)
    folder = root
    for part in relative.parts:
        folder /= part
        if folder.is_symlink():
            raise StoreError("a link is in place of a folder", code="linked_folder", path=str(folder))
        folder.mkdir(exist_ok=True)
    return folder


def create_private(path: str | os.PathLike[str], flags: int) -> int:
    """Creates a new file that only its owner may read and write, whatever the umask. Returns its descriptor.

    Args:
        path: The file. A link in its place is not followed.
        flags: Flags of `os.open`, in addition to those of creation.

    Raises:
        FileExistsError: There is something already.
        OSError: It cannot be created.
    """
    flags |= os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, PRIVATE)
    try:
        _set_mode(descriptor, PRIVATE)  # a umask may have taken the owner's permissions
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def ensure_private(path: str | os.PathLike[str]) -> None:
    """Creates a file as `create_private` does if it is missing; one that is there keeps its mode.

    For a database: SQLite gives its auxiliary files, such as the write-ahead log, the mode of the database.

    Raises:
        OSError: The file cannot be created.
    """
    with contextlib.suppress(FileExistsError):
        os.close(create_private(path, os.O_RDWR))


def read_regular(path: Path) -> bytes:
    """The bytes of a file. Does not wait for a pipe.

    Raises:
        FileNotFoundError: There is none.
        OSError: It cannot be read, or is not a regular file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise FileExistsError(errno.EEXIST, "not a regular file", str(path))
    return path.read_bytes()


def remedy(error: OSError) -> str:
    """What to do about a file that cannot be read or written."""
    if error.errno in _FULL:
        return "its disk is full: make room and continue"
    if error.errno in _NO_FILE:
        return "move it away and continue"
    return "check that its folder exists, and that both can be read and written"


def failed_path(error: OSError) -> str | None:
    """The file that an error is about, if it is known. Of a rename: the new name."""
    path = error.filename2 or error.filename
    return None if path is None or isinstance(path, int) else os.fsdecode(path)


def narrow(path: Path, mode: int) -> None:
    """Takes from a file the permissions that a mode does not have. A link is not followed.

    Raises:
        OSError: It cannot be opened or changed.
    """
    known = stat.S_IMODE(path.lstat().st_mode)
    if known & ~mode and hasattr(os, "O_NOFOLLOW"):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            _set_mode(descriptor, known & mode)
        finally:
            os.close(descriptor)


def _set_mode(descriptor: int, mode: int) -> None:
    """Sets the permissions of an open file, where its system has them."""
    if not hasattr(os, "fchmod") or stat.S_IMODE(os.fstat(descriptor).st_mode) == mode:
        return
    try:
        os.fchmod(descriptor, mode)
    except OSError as error:
        if error.errno not in _NO_MODES:
            raise


class Staged:
    """A temporary file in the folder of its destination, to be renamed there. Private until then.

    Attributes:
        path: The destination.
        stream: The open temporary file.
    """

    __slots__ = ("_mode", "_temporary", "path", "stream")

    def __init__(self, path: Path, mode: int = PRIVATE) -> None:
        self.path = path
        self._mode = mode
        self.stream: IO[bytes] | None = None
        self._temporary = path.parent / f"{TEMPORARY}{secrets.token_hex(8)}.tmp"

    def open(self) -> IO[bytes]:
        """Creates the temporary file."""
        self.stream = open(create_private(self._temporary, os.O_WRONLY), "wb")  # noqa: SIM115
        return self.stream

    def place(self) -> None:
        """Renames the file, with its final mode, to its destination. Its bytes are durable on return; its name is not.

        Raises:
            OSError: The rename failed; the destination is unchanged.
        """
        assert self.stream is not None  # noqa: S101 - for the type checker: it was opened
        with self.stream as stream:
            stream.flush()
            _set_mode(stream.fileno(), self._mode)
            os.fsync(stream.fileno())
        self._temporary.replace(self.path)

    def discard(self) -> None:
        """Removes the temporary file."""
        if self.stream is not None:
            with contextlib.suppress(OSError):
                self.stream.close()
        with contextlib.suppress(OSError):
            self._temporary.unlink(missing_ok=True)


class GivenUp(Exception):
    """Placing files was cancelled before all were placed."""


class Outputs:
    """Temporary files and their placement at their destinations.

    Leaving the block removes every file not yet placed, after any exception including Ctrl-C. One thread may place
    files while another writes the next.
    """

    def __init__(self) -> None:
        self._waiting: set[Staged] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for staged in tuple(self._waiting):
            self.discard(staged)

    @contextlib.contextmanager
    def staging(self, path: Path, *, mode: int = PRIVATE) -> Iterator[tuple[Staged, IO[bytes]]]:
        """A temporary file for ``path``, ready to be placed if the block succeeds.

        Args:
            path: The file; its folder must exist.
            mode: Its permissions once it is placed, whatever the umask.
        """
        staged = Staged(path, mode)
        # Registered before the file exists: a signal may end the process at any point.
        self._waiting.add(staged)
        try:
            stream = staged.open()
            yield staged, stream
            stream.flush()
        except BaseException:
            self.discard(staged)
            raise

    def place(self, files: Sequence[Staged], check: Callable[[], bool] = lambda: True) -> list[OSError | None]:
        """Places files with one sync per folder. Contents and names are durable on return.

        Returns one entry per file: None, or the error that kept it from being durable. After an error the destination
        is unchanged, unless only the sync of its folder failed.

        Raises:
            GivenUp: ``check``, called before each file, returned false.
        """
        faults: list[OSError | None] = [None] * len(files)
        folders: dict[Path, list[int]] = {}
        for index, staged in enumerate(files):
            if not check():
                raise GivenUp
            try:
                staged.place()
                self._waiting.discard(staged)
                folders.setdefault(staged.path.parent, []).append(index)
            except OSError as error:
                self.discard(staged)
                faults[index] = error
        for folder, indices in folders.items():
            try:
                sync_folder(folder)
            except OSError as error:
                for index in indices:
                    faults[index] = error
        return faults

    def discard(self, staged: Staged) -> None:
        """Removes a temporary file."""
        staged.discard()
        self._waiting.discard(staged)


def remove_stale(folders: Iterable[Path]) -> None:
    """Removes temporary files left by killed writers."""
    for folder in set(folders):
        for leftover in folder.glob(f"{TEMPORARY}*.tmp"):
            with contextlib.suppress(OSError):
                leftover.unlink()


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = PRIVATE) -> Iterator[IO[bytes]]:
    """A stream whose bytes replace the file ``path`` if the block succeeds.

    Bytes go to a temporary file in the same folder, removed after any failure including Ctrl-C. ``path`` has its old
    or its complete new content, even after a power cut. If it is a link, the link is replaced and its target is
    unchanged.

    Args:
        path: The file; its folder must exist.
        mode: Its permissions, whatever the umask.
    """
    with Outputs() as outputs:
        with outputs.staging(path, mode=mode) as (staged, stream):
            yield stream
        (fault,) = outputs.place([staged])
        if fault is not None:
            raise fault


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Makes the names in a folder durable, where its system supports that.

    Raises:
        OSError: The sync failed, so that new names may be lost in a power cut.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        with contextlib.suppress(OSError):  # nothing was written through it
            os.close(descriptor)
