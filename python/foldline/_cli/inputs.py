"""Properties of an input file: its bytes, their hash, and whether it is one JSON array."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import queue
import stat
import threading
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from foldline._core import LineScanner, document_ranges
from foldline.reading import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

__all__ = ["Input", "is_list", "sha256_of"]

#: Larger files are not read into memory, and a separate thread hashes them.
_LARGE_BYTES = 8 << 20

_SNIFFED_BYTES = 1 << 16

#: Bytes read at a time, and chunks that may wait to be hashed: bounds memory.
_CHUNK_BYTES, _MOST_WAITING = 1 << 20, 8


class Input:
    """A file, its bytes and their hash: opened and read once, up to the size that it had when it was opened.

    What is folded is what is hashed. A file that grows meanwhile is folded up to that size, so that its hash is not
    that of the longer file, which another run folds.

    Args:
        path: The file. If it is not a regular file or cannot be opened, there are no bytes here.
    """

    def __init__(self, path: Path) -> None:
        self._held: bytes | None = None
        self._file: io.FileIO | None = None
        self._hashed: _Hashed | None = None
        self._stream: IO[bytes] | None = None
        with contextlib.suppress(OSError):  # reported when the file is read
            if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
                return
            file = io.FileIO(path)
            self._begun = os.fstat(file.fileno())
            if self._begun.st_size >= _LARGE_BYTES:
                self._file = file
                return
            with file:
                self._held = _read(file, self._begun.st_size)

    @property
    def has_bytes(self) -> bool:
        """Whether it is a regular file that could be opened."""
        return self._held is not None or self._file is not None

    def stream(self) -> IO[bytes]:
        """The bytes to fold, from the beginning; once."""
        if self._held is not None:
            return io.BytesIO(self._held)
        assert self._file is not None  # noqa: S101 - for the type checker: `has_bytes`
        self._hashed = _Hashed(self._file, self._begun.st_size)
        self._stream = io.BufferedReader(self._hashed, _CHUNK_BYTES)
        return self._stream

    def again(self) -> IO[bytes]:
        """The same bytes from the beginning, for a look at their kind; can seek."""
        if self._held is not None:
            return io.BytesIO(self._held)
        assert self._file is not None  # noqa: S101 - for the type checker: `has_bytes`
        return io.BufferedReader(_Part(self._file, self._begun.st_size), _SNIFFED_BYTES)

    def position(self) -> int:
        """How many bytes of a large file were read in order so far."""
        return 0 if self._hashed is None else self._hashed.position

    def end(self) -> tuple[int | None, str | None]:
        """Size and hash of the bytes; None if they are not known. Reads what was not folded, and closes the file."""
        if self._held is not None:
            return len(self._held), hashlib.sha256(self._held).hexdigest()
        if self._file is None:
            return None, None
        was_folded_in_order = self._hashed is not None
        try:
            hashed = self._hashed or _Hashed(self._file, self._begun.st_size)
            with contextlib.suppress(OSError):  # reported when the file was read
                while hashed.read(_CHUNK_BYTES):
                    pass
            found = hashed.end()
            now = os.fstat(self._file.fileno())
        finally:
            self._file.close()
        # Parquet is not read in order, so that its hash is of a second reading.
        is_same = (now.st_size, now.st_mtime_ns) == (self._begun.st_size, self._begun.st_mtime_ns)
        return found if was_folded_in_order or is_same else (None, None)

    def abandon(self) -> None:
        """Closes the file."""
        if self._hashed is not None:
            self._hashed.end()
        if self._file is not None:
            self._file.close()


def _read(file: io.FileIO, size: int) -> bytes:
    with io.BufferedReader(_Part(file, size), _CHUNK_BYTES) as stream:
        return stream.read()


class _Part(io.RawIOBase):
    """The beginning of an open file, with a position of its own."""

    def __init__(self, file: io.FileIO, size: int) -> None:
        self._file = file
        self._size = size
        self._position = 0

    @property
    def position(self) -> int:
        """How many bytes were read."""
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, begin + offset)
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        room = memoryview(buffer)[: max(0, self._size - self._position)]
        if not room:
            return 0
        self._file.seek(self._position)
        count = self._file.readinto(room) or 0
        self._position += count
        return count


class _Hashed(_Part):
    """The same, hashed by a thread as it is read."""

    def __init__(self, file: io.FileIO, size: int) -> None:
        super().__init__(file, size)
        self._digest = hashlib.sha256()
        self._chunks: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = threading.Thread(target=self._hash, name="foldline-hash", daemon=True)
        self._thread.start()

    def seekable(self) -> bool:
        return False

    def readinto(self, buffer: Buffer) -> int:
        count = super().readinto(buffer)
        if count:
            self._chunks.put(bytes(memoryview(buffer)[:count]))
        return count

    def end(self) -> tuple[int, str]:
        """Size and hash of what was read."""
        if self._thread is not None:
            self._chunks.put(None)
            self._thread.join()
            self._thread = None
        return self._position, self._digest.hexdigest()

    def _hash(self) -> None:
        while (chunk := self._chunks.get()) is not None:
            self._digest.update(chunk)


def sha256_of(path: Path) -> tuple[int, str]:
    """Size and hash of a file. Does not read from pipes and devices.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def is_list(raw: IO[bytes]) -> bool:
    """Whether a file is one JSON array rather than lines of arrays. Reads its first value, or all of it."""
    errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
    with contextlib.suppress(ImportError):
        import zstandard

        errors += (zstandard.ZstdError,)
    with contextlib.suppress(*errors):
        stream: Any = raw
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == b"\x1f\x8b":
            stream = gzip.GzipFile(fileobj=raw)
        elif magic == b"\x28\xb5\x2f\xfd":
            stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return _holds_list(stream)
    return False


def _holds_list(stream: IO[bytes]) -> bool:
    begun = bytearray(stream.read(_SNIFFED_BYTES))
    if not begun.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return False
    scanner = LineScanner()
    chunk, values = bytes(begun), 0
    while chunk:
        found, problems = scanner.feed(chunk)
        if not values and problems and (not found or problems[0][0] <= found[0][0]):
            # The first line is not JSON: a multi-line document, or no JSON at all.
            ranges, bad = document_ranges(bytes(begun) + stream.read(MAX_DOCUMENT_BYTES))
            return len(ranges) == 1 and not bad
        values += len(found)
        if values > 1 or problems:
            return False
        chunk = stream.read(_SNIFFED_BYTES)
        if not values:
            begun += chunk
    found, problems = scanner.finish()
    return values + len(found) == 1 and not problems
