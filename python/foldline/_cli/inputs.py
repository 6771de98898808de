"""Properties of an input file: its bytes, their hash, and whether it is one JSON array."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import stat
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from foldline._core import LineScanner, document_ranges
from foldline.reading import MAX_DOCUMENT_BYTES

__all__ = ["Input", "is_list", "sha256_of"]

#: Larger files are not read into memory, and a separate thread hashes them.
_LARGE_BYTES = 8 << 20

_SNIFFED_BYTES = 1 << 16


class Input:
    """A file, its bytes and their hash.

    Attributes:
        held: The bytes of a small file, read once; None for any other. A large file is hashed by a thread while it is
            folded.
    """

    def __init__(self, path: Path) -> None:
        self.held: bytes | None = None
        self._path = path
        self._found: tuple[int | None, str | None] = (None, None)
        self._given_up = threading.Event()
        self._thread: threading.Thread | None = None
        with contextlib.suppress(OSError):  # reported when the file is read
            known = path.stat()
            if not stat.S_ISREG(known.st_mode):
                return
            if known.st_size < _LARGE_BYTES:
                self.held = path.read_bytes()
                return
            self._thread = threading.Thread(target=self._hash, name="foldline-hash", daemon=True)
            self._thread.start()

    def _hash(self) -> None:
        with contextlib.suppress(OSError):  # reported when the file is read
            self._found = sha256_of(self._path, self._given_up.is_set)

    def abandon(self) -> None:
        """Cancels hashing."""
        self._given_up.set()

    def end(self) -> tuple[int | None, str | None]:
        """Size and hash; None if it is not a regular file or cannot be read."""
        if self._thread is not None:
            self._thread.join()
        if self.held is not None:
            return len(self.held), hashlib.sha256(self.held).hexdigest()
        return self._found


def sha256_of(path: Path, is_given_up: Callable[[], bool] = lambda: False) -> tuple[int, str]:
    """Size and hash of a file. Does not read from pipes and devices.

    Args:
        path: The file.
        is_given_up: Called per chunk; once true, the rest of the file is not read.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while (chunk := stream.read(1 << 20)) and not is_given_up():
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def is_list(path: str, held: bytes | None) -> bool:
    """Whether a file is one JSON array rather than lines of arrays. Reads its first value, or all of it."""
    if held is None and not os.path.isfile(path):  # noqa: PTH113 - the path as given
        return False
    errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
    with contextlib.suppress(ImportError):
        import zstandard

        errors += (zstandard.ZstdError,)
    with contextlib.suppress(*errors), Path(path).open("rb") if held is None else io.BytesIO(held) as raw:
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
