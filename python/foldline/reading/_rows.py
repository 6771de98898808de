"""Folds files row by row in the core, without a Python object per message.

Rows that the core declines (other shapes, bad lines, summaries over budget) are read and folded by the Python path,
in their place among the rows.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias, cast

from foldline._core import FoldedRow, RowFolder, count_newlines
from foldline.errors import FoldlineError
from foldline.reading._chunks import MAX_CHUNK_LINES, decompressed, in_few_lines
from foldline.reading._opening import MAX_DOCUMENT_BYTES, Opening
from foldline.reading._reader import FileReader
from foldline.reading._values import BAD_LINES
from foldline.typing import Problem, StoredTranscript

__all__ = ["NamedRow", "read_rows"]

#: Bytes passed to the core at a time: enough work for all threads, small compared to the memory they need.
_WINDOW_BYTES = 16 << 20

#: Most lines passed to the core at a time: bounds the memory of problems and of values for another reader.
_WINDOW_LINES = 1 << 15

#: A session file with shorter entries on average is not folded in the core.
_ENTRY_BYTES = 64

#: A longer line is skipped instead of buffered to its end.
_MOST_WAITED_BYTES = 256 << 20

#: A row of the core; a value for another reader, or a problem, each with line and offset.
_Found: TypeAlias = FoldedRow | tuple[int, int, bytes] | tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A transcript folded by the core.

    Attributes:
        id: Its name.
        row: The folded row.
    """

    id: str
    row: FoldedRow

    @property
    def error(self) -> FoldlineError | None:
        """Why the row is infeasible; else None."""
        return None if self.row.why is None else FoldlineError(self.row.why, code="infeasible")

    @property
    def record(self) -> bytes:
        """The record as one line of JSON, without the newline."""
        try:
            return self.row.record(self.id)
        except UnicodeEncodeError:  # from the name of a file that is not UTF-8
            record = json.loads(self.row.record("")) | {"id": self.id}
            return json.dumps(record, separators=(",", ":")).encode()


def read_rows(
    path: str, folder: RowFolder, on_problem: Callable[[Problem], None], stream: IO[bytes] | None = None
) -> Iterator[NamedRow | StoredTranscript]:
    """The transcripts of a file or standard input (``"-"``): folded rows, or transcripts that the core declines.

    Args:
        path: The file.
        folder: Folds the rows; cannot be used again.
        on_problem: Called with each problem.
        stream: The bytes of the file, if it is open.

    Raises:
        OSError: The path cannot be opened or read.
    """
    with _opened(path, stream) as opened:
        yield from _Rows(path, on_problem, strict=False).rows(cast("IO[bytes]", opened), folder)


def _opened(path: str, stream: IO[bytes] | None) -> AbstractContextManager[object]:
    if stream is None and path != "-":
        return Path(path).open("rb")
    return nullcontext(sys.stdin.buffer if stream is None else stream)


class _Rows(FileReader):
    """Reads one file, yielding folded rows where the core folds."""

    def rows(self, raw: IO[bytes], folder: RowFolder) -> Iterator[NamedRow | StoredTranscript]:
        windows = _windows(decompressed(raw, self.problem))
        window = next(windows, b"")
        if folder.begins(_first_line(window)) == "session":
            yield from self._whole_session(window, windows, folder)
            return
        opening: Opening[_Found] | None = Opening()
        while window:
            following = next(windows, b"")
            found = folder.feed(window, is_last=not following)
            if opening is not None:
                kind = _add(opening, window, found)
                if kind == "document":
                    yield from self.in_document(opening, itertools.chain((following,) if following else (), windows))
                    return
                found = []
                if kind == "lines" or not following:
                    found, opening = opening.found, None
            window = following
            yield from self._in_order(found)
        yield from self.at_end()

    def _in_order(self, found: list[_Found]) -> Iterator[NamedRow | StoredTranscript]:
        found.reverse()
        while found:
            each = found.pop()  # releases each row once it is written
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
        # Of many lines too short for entries, the core would keep a problem each.
        has_short_lines = count_newlines(file) > max(MAX_CHUNK_LINES, len(file) // _ENTRY_BYTES)
        folded = None if has_short_lines else folder.session(file)
        if folded is None:
            yield from self.in_chunks(in_few_lines(file))
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


def _add(opening: Opening[_Found], window: bytes, found: list[_Found]) -> str:
    values = (each.line if isinstance(each, FoldedRow) else each[0] for each in found if _is_value(each))
    codes = [(each[0], each[2]) for each in found if isinstance(each, tuple) and isinstance(each[2], str)]
    return opening.add(
        window,
        found,
        value_line=next(values, None),
        bad_line=next((line for line, code in codes if code in BAD_LINES), None),
        has_other=any(code not in BAD_LINES for _, code in codes),
    )


def _is_value(found: _Found) -> bool:
    return isinstance(found, FoldedRow) or isinstance(found[2], bytes)


def _first_line(window: bytes) -> bytes:
    """The first non-blank line."""
    start = 3 if window.startswith(b"\xef\xbb\xbf") else 0
    while start < len(window):
        end = window.find(b"\n", start)
        line = window[start : len(window) if end < 0 else end]
        if line.strip(b" \t\r"):
            return line
        start = len(window) if end < 0 else end + 1
    return b""


def _windows(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes in windows that end with a line, unless a line is overlong."""
    held: list[bytes] = []
    size = lines = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        lines += count_newlines(chunk)
        if size < _WINDOW_BYTES and lines < _WINDOW_LINES:
            continue
        end = chunk.rfind(b"\n") + 1
        if end:
            held[-1] = chunk[:end]
        elif size < _MOST_WAITED_BYTES:
            continue
        window = b"".join(held)
        held = [chunk[end:]] if end and end < len(chunk) else []
        size, lines = len(held[0]) if held else 0, 0
        yield window
        del window
    if size:
        yield b"".join(held)
