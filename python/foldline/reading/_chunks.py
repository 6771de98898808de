"""The bytes of a file, plain or compressed, in chunks of bounded size and number of lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import IO, Protocol, cast

from foldline import _core
from foldline.reading._frames import Frames

__all__ = ["MAX_CHUNK_LINES", "OnDefect", "decompressed", "in_few_lines"]

_CHUNK_BYTES = 1 << 20

#: Most lines of a chunk: bounds the memory of what is found in it, such as a problem for each line.
MAX_CHUNK_LINES = 1 << 14


class OnDefect(Protocol):
    """Called with each defect of a file, as `Problem` describes it."""

    def __call__(self, code: str, line: int | None = None, offset: int | None = None, detail: str = "") -> None:
        """Reports a defect."""
        ...


def decompressed(raw: IO[bytes], problem: OnDefect) -> Iterator[bytes]:
    """The decompressed bytes of a file, in chunks; of a corrupt archive the readable beginning."""
    head = raw.read(4)
    stream = cast(IO[bytes], _Rewound(head, raw))
    frames: Frames | None = None
    errors: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error)
    if head[:2] == b"\x1f\x8b":
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    elif head == b"\x28\xb5\x2f\xfd":
        try:
            import zstandard
        except ImportError:
            problem("unsupported_compression", detail="reading zstd needs the package zstandard")
            return
        frames = Frames(stream)
        stream = zstandard.ZstdDecompressor().stream_reader(cast(IO[bytes], frames), read_across_frames=True)
        errors += (zstandard.ZstdError,)
    elif head == b"PK\x03\x04":
        detail = "this is an archive of files: read each of them; of an Inspect log, `inspect log dump` prints JSON"
        problem("unsupported_format", detail=detail)
        return
    # `read` of a decompressor fills a whole chunk and loses it if the archive is truncated; `read1` does not.
    read = getattr(stream, "read1", stream.read)
    offset = 0
    while True:
        try:
            chunk = read(_CHUNK_BYTES)
        except errors:
            problem("corrupt_compression", None, offset)
            return
        if not chunk:
            # The decompressor takes an unfinished frame for the end.
            if frames is not None and not frames.are_whole:
                problem("corrupt_compression", None, offset)
            return
        offset += len(chunk)
        yield from in_few_lines(chunk)


def in_few_lines(chunk: bytes) -> Iterator[bytes]:
    """A chunk in pieces of at most `MAX_CHUNK_LINES` lines, each of which ends with a line."""
    if _core.count_newlines(chunk) <= MAX_CHUNK_LINES:
        yield chunk
        return
    begin = 0
    while begin < len(chunk):
        end = chunk.rfind(b"\n", begin, begin + MAX_CHUNK_LINES) + 1 or chunk.find(b"\n", begin) + 1 or len(chunk)
        yield chunk[begin:end]
        begin = end


class _Rewound:
    """A stream whose first bytes were already read."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._rest.read(size)
        if size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read()
        head, self._head = self._head[:size], self._head[size:]
        return head
