"""Columns of a session database as values. A damaged row is left out and named: it never hides a session."""

from __future__ import annotations

import json
import warnings
from typing import Any, Final

from foldline import _core
from foldline.errors import FoldlineWarning
from foldline.stores._records import MAX_DEPTH, MAX_ID_CHARS
from foldline.typing import Problem

__all__ = ["MAX_NUMBER", "DamagedRow", "Damages", "id_of", "message_of", "number_of", "object_of"]

#: Greatest sequence number; a larger one is damage. JSON numbers are exact up to here.
MAX_NUMBER: Final = 2**53 - 1

_ROW: Final = "a row of "


class DamagedRow(Exception):
    """A row that cannot be read, with the code of its problem."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Damages:
    """The damaged rows met while reading a session.

    Args:
        session: The session's id.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._found: dict[tuple[str, int | None, str], Problem] = {}

    def add(self, table: str, position: object, code: str) -> None:
        """Records a damaged row by table and sequence number or position; without content."""
        line = position if isinstance(position, int) else None
        self._found.setdefault((table, line, code), Problem(None, code, f"{_ROW}{table}", self._session, line))

    def problems(self) -> tuple[Problem, ...]:
        """The problems, sorted by table and position."""
        return tuple(self._found[key] for key in sorted(self._found, key=lambda key: (key[0], key[1] or -1, key[2])))

    def warn(self, known: set[Problem]) -> None:
        """Warns once about each row not yet known."""
        for problem in self.problems():
            if problem not in known:
                known.add(problem)
                warnings.warn(
                    f"a damaged row of session {self._session!r} is not used: {problem.detail.removeprefix(_ROW)},"
                    f" position {'unknown' if problem.line is None else problem.line}: {problem.code}",
                    FoldlineWarning,
                    stacklevel=5,
                )


def number_of(value: object, least: int = 1) -> int:
    """A sequence number, position or round.

    Raises:
        DamagedRow: It is not a whole number in range (``bad_number``).
    """
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MAX_NUMBER:
        return value
    raise DamagedRow("bad_number")


def id_of(value: object) -> str:
    """The id of a message.

    Raises:
        DamagedRow: It is not an id that a store gives or accepts (``bad_id``).
    """
    if isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS and value.isprintable():
        return value
    raise DamagedRow("bad_id")


def object_of(text: object) -> dict[str, Any]:
    """The object in a column of JSON.

    Raises:
        DamagedRow: ``not_text``, ``bad_utf8``, ``bad_json``, ``nesting_too_deep``, ``not_an_object``, or another code
            of the core's scanner of JSON lines.
    """
    if not isinstance(text, str):
        raise DamagedRow("not_text")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # bytes that were no UTF-8 are decoded to lone surrogates
            raise DamagedRow("bad_utf8") from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise DamagedRow(_code_of(text)) from None
    # Fewer brackets cannot nest too deep.
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
        raise DamagedRow("nesting_too_deep")
    if not isinstance(value, dict):
        raise DamagedRow("not_an_object")
    return value


def message_of(text: object) -> dict[str, Any]:
    """The message in a column of JSON.

    Raises:
        DamagedRow: As for `object_of`; ``not_a_message``.
    """
    value = object_of(text)
    if not _core.is_message(value):
        raise DamagedRow("not_a_message")
    return value


def _is_too_deep(value: object) -> bool:
    """Whether containers nest beyond `MAX_DEPTH`. Level by level: recursion has a lower limit."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for each in level for child in _children(each)]
        if not level:
            return False
    return any(isinstance(each, (dict, list)) for each in level)


def _children(value: object) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _code_of(text: str) -> str:
    """The code of a text that is not JSON, as the core's scanner of JSON lines names it."""
    scanner = _core.LineScanner()
    found = [*scanner.feed(text.encode().replace(b"\n", b" ") + b"\n")[1], *scanner.finish()[1]]
    return found[0][2] if found else "bad_json"
