"""Applies a caller's function to every text before it is sent, stored or reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from foldline.errors import ConfigError, SummaryError
from foldline.typing import Messages

__all__ = ["Redact", "as_redactor", "redacted_messages", "redacted_text", "redacted_value"]

#: Takes a text and returns it without secrets.
Redact: TypeAlias = Callable[[str], str]

#: Keys of structural strings: not redacted, because the messages could not be read without them.
_STRUCTURE: Final = frozenset(
    (
        *("role", "Role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId"),
        *("from", "origin", "Origin", "mimeType", "mime_type", "media_type", "status"),
    )
)
#: Keys of tool arguments and tool results: every string below them is text.
_PAYLOADS: Final = frozenset(("arguments", "args", "input", "response", "value", "json"))


def as_redactor(redact: object) -> Redact | None:
    """Wraps the function so that its failures become a `SummaryError` (``redact_failed``).

    The error contains none of the function's input.

    Raises:
        ConfigError: It is not callable.
    """
    if redact is None:
        return None
    if not callable(redact):
        raise ConfigError("must be a function from text to text", code="bad_function", path="redact")

    def checked(text: str) -> str:
        try:
            safe: object = redact(text)
        except Exception as error:  # noqa: BLE001 - the error may contain the text
            failure = SummaryError(f"redact raised {type(error).__name__}", code="redact_failed")
        else:
            if isinstance(safe, str):
                return safe
            failure = SummaryError("redact returned no text", code="redact_failed")
        raise failure

    return checked


def redacted_text(text: str | None, redact: Redact | None) -> str | None:
    """A redacted text.

    Raises:
        SummaryError: ``redact`` failed.
    """
    return text if text is None or redact is None else redact(text)


def redacted_messages(messages: Messages, redact: Redact | None) -> Messages:
    """Copies of messages with redacted texts, including tool arguments and results.

    Structural strings (roles, types, ids) and field names stay unchanged.

    Raises:
        SummaryError: ``redact`` failed.
    """
    if redact is None:
        return messages
    copies: list[Any] = redacted_value(list(messages), redact, is_payload=False)
    return copies


def redacted_value(value: Any, redact: Redact, *, is_payload: bool = True, _known: dict[int, Any] | None = None) -> Any:
    """A copy of a JSON-like value with every string redacted; handles cycles."""
    known = {} if _known is None else _known
    if isinstance(value, str):
        return redact(value)
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, Mapping):
        known[id(value)] = members = {}
        for key, member in value.items():
            if not is_payload and key in _STRUCTURE and isinstance(member, str):
                members[key] = member
            else:
                inside = is_payload or key in _PAYLOADS
                copied = redacted_value(member, redact, is_payload=inside, _known=known)
                members[key] = copied if is_payload or not inside else _redacted_whole(copied, redact)
        return members
    if isinstance(value, (list, tuple)):
        known[id(value)] = items = []
        items += [redacted_value(item, redact, is_payload=is_payload, _known=known) for item in value]
        return items
    return value


def _redacted_whole(value: Any, redact: Redact) -> Any:
    """Redacts tool arguments as JSON text, so that a pattern can match a name with its value."""
    if not isinstance(value, (Mapping, list)):
        return value
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # not JSON-compatible, or cyclic
        return value
    safe = redact(text)
    if safe == text:
        return value
    try:
        return json.loads(safe)
    except (ValueError, RecursionError):  # no longer JSON: keep it as text
        return safe
