"""Detects the dialect of messages."""

from __future__ import annotations

from dataclasses import dataclass

from foldline import _core
from foldline.typing import Certainty, Format, FormatOption, Messages

__all__ = ["Contradiction", "DetectedFormat", "detect_format", "dialect_for"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A feature of a message that suggests other dialects than the detected one; it is read as an unknown part.

    Attributes:
        index: Index of the first message with such a feature.
        formats: The dialects that it suggests.
    """

    index: int
    formats: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    """The detected dialect of a list of messages, with the reason.

    Attributes:
        format: The dialect, as for the option ``format``.
        certainty: ``certain``: roles, calls, results or types of messages fit no other dialect. ``likely``: they fit
            several, and another part, or the key of the list, suggests this one. ``assumed``: several dialects write
            these messages the same way, and this one is the default.
        reason: The deciding feature, a stable code: ``role``, ``tool_calls`` (calls outside the content),
            ``content_part`` (the type of a part), ``item_type`` (that of an item of Responses), ``parts`` (instead of
            content), ``message_type`` (a type instead of a role), ``iteration`` (contains whole messages), ``place``
            (the key of the list in the request); ``plain`` without any: messages that most dialects write the same way
            are read as OpenAI chat.
        index: Index of the deciding message; None with ``plain`` and ``place``.
        candidates: Every dialect that fits all the messages.
        contradiction: What was ignored, if anything; None otherwise.
    """

    format: Format
    certainty: Certainty
    reason: str
    index: int | None
    candidates: tuple[Format, ...]
    contradiction: Contradiction | None = None


def detect_format(messages: Messages | bytes, *, key: str | None = None) -> DetectedFormat:
    """Detects the dialect that ``format="auto"`` uses, by the content of messages. O(parts).

    Args:
        messages: The messages, or the bytes of a JSON array of them.
        key: The key of the list in the request: ``"input"`` selects Responses and ``"contents"`` Gemini if the
            messages are ambiguous.

    Raises:
        MessageError: ``ambiguous_format``: no dialect fits what all the messages have outside their parts, and the
            detail names the closest ones (parts are clues only: one of another dialect is an unknown part);
            ``unsupported_format``: foldline does not read this dialect, which the detail names with the way out;
            ``not_a_list``; ``bad_json``.

    Examples:
        >>> import foldline as fl
        >>> call = {"type": "tool-call", "toolCallId": "a", "toolName": "go", "args": {}}
        >>> found = fl.detect_format([{"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]}])
        >>> found.format, found.certainty, found.reason, found.index
        ('ai_sdk', 'certain', 'content_part', 1)
    """
    dialect, certainty, reason, index, candidates, contradiction = _core.detect_format(messages, key)
    against = None if contradiction is None else Contradiction(contradiction[0], tuple(contradiction[1]))
    return DetectedFormat(dialect, certainty, reason, index, tuple(candidates), against)


def dialect_for(messages: Messages, format: FormatOption) -> FormatOption:
    """The dialect for an option ``format``: ``"auto"`` is resolved by content.

    For an empty list it stays ``"auto"``.

    Examples:
        >>> dialect_for([{"role": "user", "parts": [{"text": "Go."}]}], "auto"), dialect_for([], "auto")
        ('gemini', 'auto')
    """
    return _core.detect_format(messages)[0] if format == "auto" and messages else format
