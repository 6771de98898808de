"""The JSON values of a file, each with line and offset: one a line, or the documents of a file that is not lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, TypeAlias

from foldline import _core
from foldline.reading._chunks import OnDefect, in_few_lines
from foldline.reading._opening import MAX_DOCUMENT_BYTES, Opening

__all__ = ["BAD_LINES", "document_values", "json_values"]

#: Line, offset and bytes of a JSON value.
Value: TypeAlias = tuple[int, int, bytes]

#: JSON values, and problems with line, offset and code.
_Found: TypeAlias = tuple[list[Value], list[tuple[int, int, str]]]

_BOM = b"\xef\xbb\xbf"

#: Codes of lines that are not JSON.
BAD_LINES = ("bad_json", "torn_line")


def json_values(chunks: Iterator[bytes], problem: OnDefect) -> Iterator[Value]:
    """JSON values with line and offset: one a line, or multi-line documents if the first line is not JSON."""
    scanner = _core.LineScanner()
    opening: Opening[_Found] | None = Opening()
    for chunk in chunks:
        found = scanner.feed(chunk)
        if opening is None:
            yield from _report(*found, problem)
            continue
        kind = _add(opening, chunk, found)
        if kind == "document":
            yield from document_values(opening, chunks, problem)
            return
        if kind == "lines":
            for each in opening.found:
                yield from _report(*each, problem)
            opening = None
    found = scanner.finish()
    if opening is None:
        yield from _report(*found, problem)
    elif _add(opening, b"", found) == "document":
        yield from document_values(opening, iter(()), problem)
    else:
        for each in opening.found:
            yield from _report(*each, problem)


def _report(values: list[Value], problems: list[tuple[int, int, str]], problem: OnDefect) -> Iterator[Value]:
    for line, offset, code in problems:
        problem(code, line, offset)
    yield from values


def document_values(opening: Opening[Any], chunks: Iterator[bytes], problem: OnDefect) -> Iterator[Value]:
    """The file as concatenated documents; line by line if it does not begin with one, or is too large."""
    begun = opening.chunks
    if _holds_document(begun, chunks):
        document = b"".join(begun)
        ranges, bad = _core.document_ranges(document)
        if ranges:
            places = _Places(document)
            # Reports problems in the order of their offsets, as for lines.
            whole = [(begin, end, "") for begin, end in ranges]
            for begin, end, code in sorted([*whole, *((at, at, code) for at, code in bad)], key=itemgetter(0)):
                line, offset = places.line(begin) + opening.skipped_lines, begin + opening.skipped_bytes
                if code:
                    problem(code, line, offset)
                else:
                    yield line, offset, document[begin:end]
            return
    scanner = _core.LineScanner()
    for chunk in itertools.chain(begun, chunks, (None,)):
        for piece in (None,) if chunk is None else in_few_lines(chunk):
            found, problems = scanner.finish() if piece is None else scanner.feed(piece)
            for line, offset, what in problems:
                problem(what, line + opening.skipped_lines, offset + opening.skipped_bytes)
            for line, offset, text in found:
                yield line + opening.skipped_lines, offset + opening.skipped_bytes, text


def _holds_document(begun: list[bytes], chunks: Iterator[bytes]) -> bool:
    """Reads a document to its end; False as soon as it cannot be one, or is too large."""
    size = looked_at = sum(map(len, begun))
    if not _may_be_document(begun):
        return False
    for chunk in chunks:
        begun.append(chunk)
        size += len(chunk)
        if size > MAX_DOCUMENT_BYTES:
            return False
        if size >= 2 * looked_at:  # at twice the size, so that the cost is linear
            looked_at = size
            if not _may_be_document(begun):
                return False
    return True


class _Places:
    """Line numbers of ascending offsets."""

    def __init__(self, document: bytes) -> None:
        self._document = document
        self._offset = 0
        self._line = 1

    def line(self, offset: int) -> int:
        self._line += self._document.count(b"\n", self._offset, offset)
        self._offset = offset
        return self._line


def _add(opening: Opening[_Found], chunk: bytes, found: _Found) -> str:
    values, problems = found
    return opening.add(
        chunk,
        [found],
        value_line=values[0][0] if values else None,
        bad_line=next((line for line, _, code in problems if code in BAD_LINES), None),
        has_other=any(code not in BAD_LINES for _, _, code in problems),
    )


def _may_be_document(begun: list[bytes]) -> bool:
    """Whether the beginning of a file is that of a JSON document, complete or not."""
    text = b"".join(begun)
    # Whole lines, so that no word and no character is cut; as one line, for which the scanner decides.
    scanner = _core.LineScanner()
    values, _ = scanner.feed(text[: text.rfind(b"\n") + 1].removeprefix(_BOM).replace(b"\n", b" "))
    rest, problems = scanner.finish()
    return bool(values or rest) or all(code in ("torn_line", "line_too_long") for _, _, code in problems)
