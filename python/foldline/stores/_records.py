"""Stored records: messages and compactions as JSON, and the hash of the range a compaction covers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from foldline import _core
from foldline.errors import LimitExceeded, StoreError
from foldline.typing import CompactionEvent, ContextEntry, Message, StoredMessage

__all__ = [
    "MAX_DEPTH",
    "MAX_ID_CHARS",
    "NewContext",
    "RecordedCompaction",
    "checked_context",
    "checked_id",
    "checked_messages",
    "event_fields",
    "event_from",
    "line_of",
    "new_context",
    "plain",
    "text_of",
    "timestamp",
]

#: Greatest nesting depth of a message; readers have the same limit.
MAX_DEPTH: Final = 128

#: Longest id of an entry.
MAX_ID_CHARS: Final = 255

#: Fields of an event and their stored keys.
_EVENT_KEYS: Final = {
    "round": "round",
    "tokens_before": "tokensBefore",
    "tokens_after": "tokensAfter",
    "length_before": "lengthBefore",
    "length_after": "lengthAfter",
    "summary": "summary",
    "compacted_ids": "compactedIds",
    "duration_s": "durationS",
    "trigger": "trigger",
    "reason": "reason",
    "first_kept_id": "firstKeptEntryId",
    "model": "model",
    "fallback": "fallback",
    "strategy": "strategy",
    "prompt_version": "promptVersion",
}
_FILES: Final = {"read_files": "readFiles", "modified_files": "modifiedFiles"}


def checked_messages(messages: object, path: str = "message") -> list[dict[str, Any]]:
    """Shallow copies of the messages that a store is given, once all of them are messages.

    Raises:
        StoreError: One is not a message (``not_a_message``); ``index`` says which. One cannot be read since JSON cannot
            represent it (``not_json``).
    """
    if not isinstance(messages, Iterable):
        raise StoreError("must be a list of messages", code="not_a_message", path="messages")
    held = []
    for index, message in enumerate(messages):
        copied = dict(message) if isinstance(message, Mapping) else None
        if copied is None or not _core.is_message(copied):
            plain(copied)  # what JSON cannot represent has a code of its own
            detail = "must be a mapping with a role, a type or parts, whose content can be read"
            raise StoreError(detail, code="not_a_message", path=path, index=index)
        held.append(copied)
    return held


def checked_context(context: object) -> list[ContextEntry]:
    """The entries of a new context, once each names a message or is one.

    Raises:
        StoreError: One is neither (``bad_entry``), or its message is none (``not_a_message``).
    """
    entries: list[ContextEntry] = []
    for index, entry in enumerate(context if isinstance(context, Iterable) else [context]):
        if not isinstance(entry, ContextEntry) or (entry.id is None and entry.message is None):
            raise StoreError("neither an id nor a message", code="bad_entry", path="context", index=index)
        entries.append(entry)
    checked_messages((entry.message for entry in entries if entry.message is not None), "context")
    return entries


def plain(value: Any, depth: int = 0) -> Any:
    """A copy of a value that JSON represents without loss: mappings become dicts, tuples lists.

    Raises:
        StoreError: JSON cannot represent it: keys that are not strings, NaN, objects (``not_json``).
        LimitExceeded: It is nested deeper than `MAX_DEPTH`, or contains itself.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise StoreError("a number that JSON cannot represent", code="not_json", path="message")
        return float(value)
    if depth >= MAX_DEPTH:
        raise LimitExceeded(f"nested beyond {MAX_DEPTH} levels", path="message")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise StoreError("a key that is not a string", code="not_json", path="message")
        return {str(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, depth + 1) for each in value]
    raise StoreError("a value that JSON cannot represent", code="not_json", path="message")


def text_of(value: Any) -> str:
    """Plain values as ASCII JSON, safe for any database and log, lone surrogates and NUL included.

    Raises:
        StoreError: A number has too many digits (``not_json``).
    """
    try:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    except ValueError:
        raise StoreError("a number with too many digits", code="not_json", path="message") from None


def line_of(value: Mapping[str, Any]) -> bytes:
    """A line of JSON with its newline, in UTF-8; escaped if it contains lone surrogates.

    Raises:
        StoreError: A number has too many digits (``not_json``).
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return text_of(value).encode() + b"\n"
    except ValueError:
        raise StoreError("a number with too many digits", code="not_json", path="message") from None


def timestamp(seconds: float) -> str:
    """A Unix time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def checked_id(given: object, path: str = "id") -> str:
    """Returns an id that every store accepts.

    Raises:
        StoreError: The id is invalid (``bad_id``).
    """
    if isinstance(given, str) and 0 < len(given) <= MAX_ID_CHARS and given.isprintable():
        return given
    raise StoreError(f"must be a string of 1 to {MAX_ID_CHARS} printable characters", code="bad_id", path=path)


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedCompaction:
    """A compaction as it is stored.

    Attributes:
        before: How many messages were appended before it.
        time: When it was stored.
        event: The compaction.
        fields: Its fields as a session file has them, with ``context``, the context after it.
    """

    before: int
    time: str
    event: CompactionEvent
    fields: dict[str, Any]


def event_fields(event: CompactionEvent) -> dict[str, Any]:
    """An event as stored."""
    fields = {key: plain(getattr(event, name, "")) for name, key in _EVENT_KEYS.items()}
    fields["details"] = {key: plain(getattr(event, name, ())) for name, key in _FILES.items()}
    return fields


def event_from(fields: Mapping[str, Any], round: int) -> CompactionEvent:
    """A stored event; fields that another program did not write are 0 or empty.

    Args:
        fields: The stored fields.
        round: The round if the fields do not contain one.
    """
    known = {field.name for field in dataclasses.fields(CompactionEvent)}
    numbers = ("tokens_before", "tokens_after", "length_before", "length_after", "duration_s")
    found: dict[str, Any] = dict.fromkeys(numbers, 0) | {"summary": "", "compacted_ids": (), "round": round}
    for name, key in _EVENT_KEYS.items():
        value = fields.get(key)
        if name == "compacted_ids":
            value = tuple(value) if isinstance(value, list) else None
        if value is not None and name in known:
            found[name] = value
    details = fields.get("details")
    for name, key in _FILES.items():
        value = details.get(key) if isinstance(details, Mapping) else None
        if isinstance(value, list) and name in known:
            found[name] = tuple(each for each in value if isinstance(each, str))
    return CompactionEvent(**found)


@dataclasses.dataclass(frozen=True, slots=True)
class NewContext:
    """The context after a compaction.

    Attributes:
        entries: Ids of the new context, each with its message if new or edited, else None.
        messages: The new context with every message.
        covered: The range that the compaction removes or edits: first and last id, count, hash.
    """

    entries: list[tuple[str, Message | None]]
    messages: list[StoredMessage]
    covered: dict[str, Any]


def new_context(
    own_id: str,
    event: CompactionEvent,
    context: Sequence[ContextEntry],
    was: Sequence[StoredMessage],
    *,
    originals: bool = False,
) -> NewContext:
    """The context after a compaction: the entries it names, then messages appended meanwhile.

    Args:
        own_id: The compaction's id; ids of new messages derive from it.
        event: The compaction.
        context: The compactor's new context, checked.
        was: The context before, or the original messages with ``originals``.
        originals: Whether the compaction covers the original messages.

    Raises:
        StoreError: It names an id not in the context (``unknown_entry``), or JSON cannot represent it (``not_json``).
    """
    held = {each.id: each.message for each in was}
    named = [entry.id for entry in context if entry.id is not None]
    known = {*event.compacted_ids, *named}
    if len(set(named)) != len(named) or any(each not in held for each in known):
        raise StoreError("an id is not in the context, or occurs twice", code="unknown_entry", path="ids")
    entries: list[tuple[str, Message | None]] = []
    for number, entry in enumerate(context):
        message = None if entry.message is None else plain(entry.message)
        entries.append((f"{own_id}.{number}" if entry.id is None else str(entry.id), message))
    entries += [(str(each.id), None) for each in was if each.id not in known]  # appended meanwhile
    messages = [StoredMessage(each, held[each] if message is None else message) for each, message in entries]
    stays = {each for each, message in entries if message is None}
    touched = [each for each in was if each.id not in stays]
    # The originals may be compacted again, with another model: the salt makes that a separate compaction.
    salt = f"originals {event.round}" if originals else "" if touched else f"round {event.round}"
    covered = {
        "from": str(touched[0].id) if touched else None,
        "to": str(touched[-1].id) if touched else None,
        "count": len(touched),
        "sha256": hash_of((each.message for each in touched), salt),
    }
    return NewContext(entries, messages, covered)


def hash_of(messages: Iterable[Message], salt: str = "") -> str:
    """SHA-256, in hex, of the salt's line, if any, and each message as JSON with sorted keys and a newline."""
    digest = hashlib.sha256(f"{salt}\n".encode() if salt else b"")
    for message in messages:
        digest.update(json.dumps(message, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode() + b"\n")
    return digest.hexdigest()
