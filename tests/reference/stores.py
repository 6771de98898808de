"""What can be read of a damaged store, decided slowly: which lines and rows are damaged, and what the rest holds."""

from __future__ import annotations

import json
import math
import sqlite3
from dataclasses import dataclass, field
from typing import Any, Final

#: Types of entries of a session file.
TYPES: Final = (
    *("session", "message", "custom_message", "branch_summary", "compaction", "model_change"),
    *("thinking_level_change", "session_info", "label", "usage", "custom"),
)
MOST: Final = 2**53 - 1
DEPTH: Final = 128


def is_message(value: Any) -> bool:
    """Whether a value is a message: a role that is text, or none and a type, parts or messages."""
    if not isinstance(value, dict):
        return False
    role = value.get("role")
    if role is not None:
        return isinstance(role, str)
    if isinstance(value.get("type"), str) or value.get("parts") is not None:
        return True
    is_part = any(key in value for key in ("role", "content", "parts"))
    has_nil = "Messages" in value and value["Messages"] is None
    has_list = any(isinstance(value.get(key), list) for key in ("messages", "Messages"))
    return not is_part and (has_list or has_nil)


def value_of(data: bytes) -> Any:
    """One JSON value.

    Raises:
        ValueError: It is not one, or not UTF-8.
    """
    return json.loads(data.decode("utf-8"))


def depth_of(value: Any) -> int:
    """Levels of containers."""
    levels, level = 0, [value]
    while level := [each for each in level if isinstance(each, (dict, list))]:
        levels += 1
        level = [child for each in level for child in (each.values() if isinstance(each, dict) else each)]
    return levels


# --- Session files ------------------------------------------------------------------------------------------


def damaged_lines(data: bytes) -> set[int]:
    """Numbers of the lines of a session file that are damaged, from 1."""
    found = set()
    for number, line in enumerate(data.split(b"\n"), 1):
        if b"\0" in line:
            found.add(number)
        stripped = line.strip(b" \t\r\0")
        if not stripped:
            continue
        try:
            value = value_of(stripped)
        except (ValueError, RecursionError):
            found.add(number)
            continue
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str) or not kind or (kind == "message" and not is_message(value.get("message"))):
            found.add(number)
        elif kind not in TYPES and {"message", "content", "summary", "context"} & value.keys():
            found.add(number)  # an entry of another type is a newer version's
    return found


# --- Databases ----------------------------------------------------------------------------------------------


@dataclass
class Session:
    """What can be read of a session in a SQLite file."""

    history: list[tuple[str, Any]] = field(default_factory=list)
    active: list[tuple[str, Any]] = field(default_factory=list)
    damaged: set[tuple[str, int | None]] = field(default_factory=set)
    newest: int = 0


class Bad(Exception):
    """A value is damaged."""


def whole(value: Any, least: int = 1) -> int:
    if type(value) is not int or not least <= value <= MOST:
        raise Bad
    return value


def text(value: Any) -> str:
    """Texts are read as bytes with a mark, so that blobs are not taken for them."""
    if not isinstance(value, Text):
        raise Bad
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise Bad from None


def name(value: Any) -> str:
    found = text(value)
    if not 0 < len(found) <= 255 or not found.isprintable():
        raise Bad
    return found


def parsed(value: Any) -> dict[str, Any]:
    try:
        found = json.loads(text(value))
    except (ValueError, RecursionError):
        raise Bad from None
    if not isinstance(found, dict) or depth_of(found) > DEPTH:
        raise Bad
    return found


def message(value: Any) -> dict[str, Any]:
    found = parsed(value)
    if not is_message(found):
        raise Bad
    return found


class Text(bytes):
    """A text of SQLite."""


def rows_of(place: str, session: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a session, as they are stored."""
    connection = sqlite3.connect(place)
    connection.text_factory = Text
    try:
        found = {}
        for table, columns in TABLES.items():
            # Without an index, whose order and content may differ from the rows.
            key = "id" if table == "sessions" else "session_id"
            query = f"SELECT {columns} FROM foldline_{table} NOT INDEXED WHERE +{key} = ?"
            found[table] = connection.execute(query, (session,)).fetchall()
        return found
    finally:
        connection.close()


TABLES: Final = {
    "messages": "seq, id, message",
    "compactions": "seq, event, round",
    "contexts": "compaction_seq, position, message_id, message",
    "marks": "message_id, compaction_seq",
    "sessions": "next_seq, round",
    "folds": "seq, fold",
}


def order(value: Any) -> tuple[int, Any]:
    """SQLite's order of values of different types."""
    if value is None:
        return 0, 0
    if isinstance(value, (int, float)):
        return 1, value
    return (2, bytes(value)) if isinstance(value, Text) else (3, value)


def session_of(rows: dict[str, list[tuple[Any, ...]]]) -> Session:
    """What can be read of a session."""
    found = Session()
    damaged = found.damaged

    def spoilt(table: str, position: Any) -> None:
        damaged.add((f"foldline_{table}", position if type(position) is int else None))

    appended: dict[bytes, tuple[Any, Any]] = {}
    later: list[tuple[int, str, Any]] = []
    for seq, own, content in sorted(rows["messages"], key=lambda row: order(row[0])):
        if isinstance(own, Text):
            appended[bytes(own)] = (seq, content)
        try:
            entry = (whole(seq), name(own), message(content))
        except Bad:
            spoilt("messages", seq)
            continue
        found.history.append(entry[1:])
        later.append(entry)
    last = 0
    for seq, event, _ in sorted(rows["compactions"], key=lambda row: order(row[0]), reverse=True):
        try:
            whole(seq)
            if not last:
                if not any(row[0] == seq for row in rows["contexts"]) and parsed(event).get("lengthAfter") != 0:
                    raise Bad
                last = seq
            parsed(event)
        except Bad:
            spoilt("compactions", seq)
    context: dict[str, Any] = {}
    for _, position, own, content in sorted(
        (row for row in rows["contexts"] if row[0] == last), key=lambda r: order(r[1])
    ):
        table, place = "contexts", position
        try:
            whole(position, 0)
            key = name(own)
            if content is None:
                if own not in appended:
                    raise Bad
                table, (place, content) = "messages", appended[own]
            held = message(content)
            if key in context:
                raise Bad
            context[key] = held
        except Bad:
            spoilt(table, place)
    for seq, own, held in later:
        if seq > last:
            if own in context:
                damaged.add(("foldline_messages", None))
            else:
                context[own] = held
    found.active = list(context.items())
    for own, _ in rows["marks"]:
        try:
            name(own)
        except Bad:
            spoilt("marks", None)
    for seq, fold in rows["folds"]:
        try:
            whole(seq)
            parsed(fold)
        except Bad:
            spoilt("folds", seq)
    numbers = [row[0] for table in ("messages", "compactions", "folds", "contexts") for row in rows[table]]
    found.newest = max(
        (math.floor(each) for each in numbers if type(each) in (int, float) and 1 <= each <= MOST), default=0
    )
    for following, last_round in rows["sessions"]:
        if type(following) is not int or not found.newest < following <= MOST:
            spoilt("sessions", None)
        if type(last_round) is not int or not 0 <= last_round <= 2**31 - 2:
            spoilt("sessions", None)
    return found
