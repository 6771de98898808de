"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import secrets
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
    "TEMPORARY",
    "GivenUp",
    "Hashing",
    "Outputs",
    "Staged",
    "compressing",
    "hold",
    "make_folder",
    "remove_stale",
    "replacing",
]

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


class Staged:
    """A file beside its place: a temporary file of the same folder, with the bytes that are to stand there.

    Attributes:
        path: Its place.
        stream: Where its bytes go.
    """

    __slots__ = ("_temporary", "path", "stream")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stream: IO[bytes] | None = None
        self._temporary = path.parent / f"{TEMPORARY}{secrets.token_hex(8)}.tmp"

    def open(self, mode: int) -> IO[bytes]:
        """Makes the temporary file."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        self.stream = open(os.open(self._temporary, flags, mode), "wb")  # noqa: PTH123, SIM115
        return self.stream

    def place(self) -> None:
        """Puts the file in its place: its bytes are durable when this returns, its name is not yet.

        Raises:
            OSError: It cannot; then the place is as it was.
        """
        assert self.stream is not None  # noqa: S101 - for the type checker: it was opened
        with self.stream as stream:
            stream.flush()
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
    """Files were not all put in their places, since that was no longer wanted."""


class Outputs:
    """Files beside their places, and how they come there.

    Leaving its block removes those that were not put in their places, whatever ends it, Ctrl-C included. A thread may
    put files in their places while another makes the next.
    """

    def __init__(self) -> None:
        self._waiting: set[Staged] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for staged in tuple(self._waiting):
            self.discard(staged)

    @contextlib.contextmanager
    def staging(self, path: Path, *, mode: int = 0o666) -> Iterator[tuple[Staged, IO[bytes]]]:
        """A temporary file for ``path``, which waits to be put in its place when the block ends well.

        Args:
            path: The file; its folder must exist.
            mode: Its permissions, before the umask.
        """
        staged = Staged(path)
        # Before there is a file: a signal may end the process anywhere.
        self._waiting.add(staged)
        try:
            stream = staged.open(mode)
            yield staged, stream
            stream.flush()
        except BaseException:
            self.discard(staged)
            raise

    def place(self, files: Sequence[Staged], check: Callable[[], bool] = lambda: True) -> list[OSError | None]:
        """Puts files in their places, with one sync for each folder: durable, names too, when this returns.

        What became of each: None, or why it is not durable; then its place is as it was, unless it is the folder that
        could not be opened.

        Raises:
            GivenUp: ``check``, which is asked before each file, said no.
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
                _sync_folder(folder)
            except OSError as error:
                for index in indices:
                    faults[index] = error
        return faults

    def discard(self, staged: Staged) -> None:
        """Removes a temporary file."""
        staged.discard()
        self._waiting.discard(staged)


def remove_stale(folders: Iterable[Path]) -> None:
    """Removes what killed writers left half written."""
    for folder in set(folders):
        for leftover in folder.glob(f"{TEMPORARY}*.tmp"):
            with contextlib.suppress(OSError):
                leftover.unlink()


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
    with Outputs() as outputs:
        with outputs.staging(path, mode=mode) as (staged, stream):
            yield stream
        (fault,) = outputs.place([staged])
        if fault is not None:
            raise fault


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
