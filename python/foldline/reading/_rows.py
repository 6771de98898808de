"""Files folded row by row in the core, without a Python object for each message.

What the core declines (other shapes, bad lines, budgets that a summary breaks) is read and folded as everywhere else,
in its place among the rows.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from foldline._core import FoldedRow, RowFolder
from foldline.errors import FoldlineError
from foldline.reading.files import MAX_DOCUMENT_BYTES, _File
from foldline.typing import Problem, StoredTranscript

__all__ = ["NamedRow", "read_rows"]

#: Lines are handed to the core so many bytes at a time: enough for all threads, little beside what they need.
_WINDOW_BYTES = 16 << 20

#: A longer line is passed over; it is not waited for its end.
_MOST_WAITED_BYTES = 256 << 20

_BAD = ("bad_json", "torn_line")


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A transcript that the core folded.

    Attributes:
        id: Its name.
        row: What became of it.
    """

    id: str
    row: FoldedRow

    @property
    def error(self) -> FoldlineError | None:
        """Why it is infeasible; None where it is not."""
        return None if self.row.why is None else FoldlineError(self.row.why, code="infeasible")

    @property
    def record(self) -> bytes:
        """The record as JSON, on one line without its end."""
        return self.row.record(self.id)


def read_rows(
    path: str, folder: RowFolder, on_problem: Callable[[Problem], None], held: bytes | None = None
) -> Iterator[NamedRow | StoredTranscript]:
    """The transcripts of a file or of standard input (``"-"``): rows where the core folds, else as `read` gives them.

    Args:
        path: The file.
        folder: What folds; it is used up.
        on_problem: Called with each problem.
        held: The bytes of the file, where they were read already.

    Raises:
        OSError: The path cannot be opened or read.
    """
    with _opened(path, held) as stream:
        yield from _Rows(path, on_problem, strict=False).rows(cast("IO[bytes]", stream), folder)


def _opened(path: str, held: bytes | None) -> AbstractContextManager[object]:
    if held is not None:
        return io.BytesIO(held)
    return nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb")


class _Rows(_File):
    """The reading of one file, with rows where the core folds."""

    def rows(self, raw: IO[bytes], folder: RowFolder) -> Iterator[NamedRow | StoredTranscript]:
        windows = _windows(self.chunks(raw))
        window = next(windows, b"")
        if folder.begins(_first_line(window)) == "session":
            yield from self._whole_session(window, windows, folder)
            return
        begun: list[bytes] | None = []
        # What is wrong before the first value: told once it is known that the file is not read anew as a document.
        early: list[FoldedRow | tuple[int, int, bytes] | tuple[int, int, str]] = []
        while window:
            following = next(windows, b"")
            found = folder.feed(window, is_last=not following)
            if begun is not None:
                begun.append(window)
                if _begins_badly(found):
                    if following:
                        begun.append(following)
                    yield from self.in_document(begun, windows)
                    return
                # Once a line was read, or is too long for any, the file is lines.
                too_long = any(isinstance(each, tuple) and each[2] == "line_too_long" for each in found)
                held = sum(map(len, begun)) <= MAX_DOCUMENT_BYTES
                begun = begun if held and not too_long and not any(map(_is_value, found)) else None
                early += found
                if begun is not None and following:
                    window = following
                    continue
                found, early = early, []
            window = following
            yield from self._in_order(found)
        yield from self.at_end()

    def _in_order(
        self, found: list[FoldedRow | tuple[int, int, bytes] | tuple[int, int, str]]
    ) -> Iterator[NamedRow | StoredTranscript]:
        found.reverse()
        while found:
            each = found.pop()  # so that a row that was written is held no longer
            if isinstance(each, FoldedRow):
                self.tell_held()
                number = self.found
                self.found += 1
                yield NamedRow(f"{self.stem}:{number}" if each.id is None else each.id, each)
                continue
            line, offset, what = each
            if isinstance(what, bytes):
                yield from self.in_value(line, offset, what)
            else:
                self.problem(what, line, offset)

    def _whole_session(
        self, window: bytes, windows: Iterator[bytes], folder: RowFolder
    ) -> Iterator[NamedRow | StoredTranscript]:
        begun, size = [window], len(window)
        for following in windows:
            begun.append(following)
            size += len(following)
            if size > MAX_DOCUMENT_BYTES:
                yield from self.in_chunks(_chained(begun, windows))
                return
        file = b"".join(begun)
        folded = folder.session(file)
        if folded is None:
            yield from self.in_chunks(iter((file,)))
            return
        del begun, file
        rows, problems = folded
        self.tell_held()
        for line, offset, code in problems:
            self.problem(code, line, offset)
        for row in rows:
            self.found += 1
            yield NamedRow((row.id or self.stem) + row.suffix, row)
        yield from self.at_end()


def _chained(begun: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    yield from begun
    yield from rest


def _is_value(found: object) -> bool:
    return isinstance(found, FoldedRow) or (isinstance(found, tuple) and isinstance(found[2], bytes))


def _begins_badly(found: list[FoldedRow | tuple[int, int, bytes] | tuple[int, int, str]]) -> bool:
    """Whether the first line that is not blank is no JSON value: then the file may be one document."""
    bad = next((each[0] for each in found if isinstance(each, tuple) and each[2] in _BAD), None)
    first = next((each.line if isinstance(each, FoldedRow) else each[0] for each in found if _is_value(each)), None)
    return bad is not None and (first is None or bad < first)


def _first_line(window: bytes) -> bytes:
    """The first line that is not blank."""
    start = 3 if window.startswith(b"\xef\xbb\xbf") else 0
    while start < len(window):
        end = window.find(b"\n", start)
        line = window[start : len(window) if end < 0 else end]
        if line.strip(b" \t\r"):
            return line
        start = len(window) if end < 0 else end + 1
    return b""


def _windows(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes in pieces that end with a line, where lines are not longer than any may be."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size < _WINDOW_BYTES:
            continue
        end = chunk.rfind(b"\n") + 1
        if end:
            held[-1] = chunk[:end]
        elif size < _MOST_WAITED_BYTES:
            continue
        window = b"".join(held)
        held = [chunk[end:]] if end and end < len(chunk) else []
        size = len(held[0]) if held else 0
        yield window
        del window
    if size:
        yield b"".join(held)
