"""The beginning of a file, by which it is JSON lines or one JSON document."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

__all__ = ["MAX_DOCUMENT_BYTES", "Opening"]

#: A document that is not one value a line is kept in memory whole, up to this size.
MAX_DOCUMENT_BYTES = 1 << 30

T = TypeVar("T")


class Opening(Generic[T]):
    """Keeps the beginning of a file until its kind is decided.

    The first line that is not blank decides: if it is a JSON value the file is lines; if it is not, the file may be one
    document over many lines. A line with what no document contains, or a beginning that is too long for a document,
    means lines. Blank chunks are counted instead of kept.

    Attributes:
        chunks: The bytes of the beginning.
        found: The findings of these chunks, not reported yet: of a document they are void.
        skipped_lines: Lines of the blank chunks before them.
        skipped_bytes: Bytes of the blank chunks before them.
    """

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.found: list[T] = []
        self.skipped_lines = self.skipped_bytes = 0
        self._size_bytes = 0

    def add(
        self, chunk: bytes, found: list[T], *, value_line: int | None, bad_line: int | None, has_other: bool
    ) -> Literal["lines", "document", "undecided"]:
        """Adds a chunk with its findings.

        Args:
            chunk: The bytes; empty at the end of the file.
            found: The findings.
            value_line: The first line with a JSON value.
            bad_line: The first line that is not JSON.
            has_other: Whether a line has another problem.
        """
        if not self.chunks and not chunk.strip(b" \t\r\n"):
            self.skipped_lines += chunk.count(b"\n")
            self.skipped_bytes += len(chunk)
            return "undecided"
        if chunk:
            self.chunks.append(chunk)
        if self.chunks and bad_line is not None and (value_line is None or bad_line < value_line):
            return "document"
        self.found += found
        self._size_bytes += len(chunk)
        is_decided = value_line is not None or has_other or self._size_bytes > MAX_DOCUMENT_BYTES
        return "lines" if is_decided else "undecided"
