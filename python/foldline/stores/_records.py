"""What stores write: messages and compactions as JSON, and the hash of what a compaction covers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from foldline.errors import LimitExceeded, StoreError
from foldline.typing import CompactionEvent, ContextEntry, Message, StoredMessage

__all__ = [
    "MAX_DEPTH",
    "MAX_ID_CHARS",
    "NewContext",
    "checked_id",
    "event_fields",
    "event_from",
    "line_of",
    "new_context",
    "plain",
    "text_of",
    "timestamp",
]

#: How deep a message may be nested, as when it is read.
MAX_DEPTH: Final = 128

#: How long the id of an entry may be.
MAX_ID_CHARS: Final = 255

#: Fields of an event with the keys that they are stored under.
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


def plain(value: Any, depth: int = 0) -> Any:
    """A copy of a value that JSON holds without loss: mappings become dicts, tuples lists.

    Raises:
        StoreError: It holds what JSON does not know: keys that are no strings, NaN, objects (``not_json``).
        LimitExceeded: It is nested beyond 128 levels, or in itself.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise StoreError("a number that JSON does not know", code="not_json", path="message")
        return float(value)
    if depth >= MAX_DEPTH:
        raise LimitExceeded(f"nested beyond {MAX_DEPTH} levels", path="message")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise StoreError("a key that is no string", code="not_json", path="message")
        return {str(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, depth + 1) for each in value]
    raise StoreError("a value that JSON does not know", code="not_json", path="message")


def text_of(value: Any) -> str:
    """JSON of plain values in ASCII: any database and any log takes it, lone surrogates and NUL included.

    Raises:
        StoreError: A number has too many digits to be written (``not_json``).
    """
    try:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    except ValueError:
        raise StoreError("a number of too many digits", code="not_json", path="message") from None


def line_of(value: Mapping[str, Any]) -> bytes:
    """A line of JSON with its newline. UTF-8; where there are lone surrogates, escapes.

    Raises:
        StoreError: A number has too many digits to be written (``not_json``).
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return text_of(value).encode() + b"\n"
    except ValueError:
        raise StoreError("a number of too many digits", code="not_json", path="message") from None


def timestamp(seconds: float) -> str:
    """A time of the clock as ISO 8601, in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def checked_id(given: object, path: str = "id") -> str:
    """An id that every store can hold.

    Raises:
        StoreError: It is none (``bad_id``).
    """
    if isinstance(given, str) and 0 < len(given) <= MAX_ID_CHARS and given.isprintable():
        return given
    raise StoreError(f"must be a string of 1 to {MAX_ID_CHARS} printable characters", code="bad_id", path=path)


def event_fields(event: CompactionEvent) -> dict[str, Any]:
    """An event as it is stored."""
    fields = {key: plain(getattr(event, name, "")) for name, key in _EVENT_KEYS.items()}
    fields["details"] = {key: plain(getattr(event, name, ())) for name, key in _FILES.items()}
    return fields


def event_from(fields: Mapping[str, Any], round: int) -> CompactionEvent:
    """An event as it was stored; what is not known of one of another program is 0, or empty.

    Args:
        fields: What was stored.
        round: Which compaction it is, where it does not say so.
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
    """What a compaction makes of a context.

    Attributes:
        entries: The new context: id, and the message where it is new or edited.
        messages: The same, with every message.
        covered: The range that the compaction covers (gone, or edited), with its number of messages and their hash.
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
    """The context behind a compaction: what it names, and behind that what was appended meanwhile.

    Args:
        own_id: The compaction's own id; new messages get theirs from it.
        event: The compaction.
        context: What the compactor made.
        was: The context before; with ``originals`` the original messages.
        originals: Whether it is made of the original messages.

    Raises:
        StoreError: It names what is not in the context (``unknown_entry``), or what no store can hold (``not_json``).
    """
    held = {each.id: each.message for each in was}
    named = [entry.id for entry in context if entry.id is not None]
    known = {*event.compacted_ids, *named}
    if len(set(named)) != len(named) or any(each not in held for each in known):
        raise StoreError("an id that is not in the context, or twice", code="unknown_entry", path="ids")
    entries: list[tuple[str, Message | None]] = []
    for number, entry in enumerate(context):
        if entry.id is None and entry.message is None:
            raise StoreError("neither an id nor a message", code="bad_entry", path="context")
        message = None if entry.message is None else plain(entry.message)
        entries.append((f"{own_id}.{number}" if entry.id is None else str(entry.id), message))
    entries += [(str(each.id), None) for each in was if each.id not in known]  # appended meanwhile
    messages = [StoredMessage(each, held[each] if message is None else message) for each, message in entries]
    stays = {each for each, message in entries if message is None}
    touched = [each for each in was if each.id not in stays]
    # A compaction of the originals may be made anew, with another model; then it is one of its own.
    salt = f"originals {event.round}" if originals else "" if touched else f"round {event.round}"
    covered = {
        "from": str(touched[0].id) if touched else None,
        "to": str(touched[-1].id) if touched else None,
        "count": len(touched),
        "sha256": hash_of((each.message for each in touched), salt),
    }
    return NewContext(entries, messages, covered)


def hash_of(messages: Iterable[Message], salt: str = "") -> str:
    """SHA-256, in hex, over the messages as JSON with sorted keys, each with a newline; the salt is a line before."""
    digest = hashlib.sha256(f"{salt}\n".encode() if salt else b"")
    for message in messages:
        digest.update(json.dumps(message, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode() + b"\n")
    return digest.hexdigest()
