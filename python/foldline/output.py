"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import IO, Protocol, cast

from foldline.errors import StoreError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["COMPRESSIONS", "TEMPORARY", "Hashing", "compressing", "hold", "make_folder", "replacing"]

#: The suffixes of compressed files.
COMPRESSIONS = (".gz", ".zst")

#: What is compressed the more, the slower: gzip's own default, and zstd's.
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3

#: Temporary files begin with this; a dot, so that whoever reads the folder passes them over.
TEMPORARY = ".foldline-"


class Writable(Protocol):
    """What bytes can be written to."""

    def write(self, data: bytes, /) -> int:
        """Writes all of it."""
        ...

    def flush(self) -> None:
        """What is buffered goes on."""
        ...


class Hashing:
    """A stream that hashes what is written."""

    closed = False

    def __init__(self, stream: Writable) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        """Writes all of it."""
        self._stream.write(data)
        self._digest.update(data)
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes

    def flush(self) -> None:
        """What is buffered goes to the file."""
        self._stream.flush()

    def hexdigest(self) -> str:
        """Of all that was written."""
        return self._digest.hexdigest()


@contextlib.contextmanager
def compressing(stream: Writable, suffix: str) -> Iterator[IO[bytes]]:
    """A stream whose bytes go compressed into another, as a suffix says; with any other suffix as they are.

    Equal bytes give equal bytes: no name and no time goes with them.

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
    """Takes a folder for this process: a descriptor that holds it until it is closed; None where systems cannot.

    Raises:
        StoreError: Another process holds it (``folder_in_use``).
        OSError: It cannot be opened.
    """
    if fcntl is None:
        return None
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise StoreError("another run writes there", code="folder_in_use") from None
    except OSError:  # Not every file system can.
        pass
    return held


def make_folder(root: Path, relative: Path) -> Path:
    """Makes ``root / relative`` with all folders on the way. Below ``root`` no link is followed.

    Raises:
        StoreError: A link lies on the way.
        OSError: A folder cannot be made, or a file stands in its place.
    """
    root.mkdir(parents=True, exist_ok=True)
    folder = root
    for part in relative.parts:
        folder /= part
        if folder.is_symlink():
            raise StoreError("a link stands where a folder should be", code="linked_folder")
        folder.mkdir(exist_ok=True)
    return folder


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A stream whose bytes become the file ``path`` when the block ends well.

    Until then they lie in a temporary file of the same folder, which is removed whatever goes wrong, Ctrl-C included:
    ``path`` is its old self or the complete new one, after a power cut too. If it is a link, the link is replaced and
    what it leads to is left alone.

    Args:
        path: The file; its folder must exist.
        mode: Its permissions, before the umask.
    """
    temporary = path.parent / f"{TEMPORARY}{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, mode), "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # Not every file system can.
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
