"""Detects the dialect of messages."""

from __future__ import annotations

from dataclasses import dataclass

from foldline import _core
from foldline.typing import Format, FormatOption, Messages

__all__ = ["DetectedFormat", "detect_format", "dialect_for"]


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    """The detected dialect of a list of messages, with the reason.

    Attributes:
        format: The dialect, as for the option ``format``.
        reason: The deciding feature, a stable code: ``role``, ``tool_calls`` (calls outside the content),
            ``content_part`` (the type of a part), ``item_type`` (that of an item of Responses), ``parts`` (instead of
            content), ``message_type`` (a type instead of a role), ``iteration`` (contains whole messages), ``place``
            (the key of the list in the request); ``plain`` without any: messages that most dialects write the same way
            are read as OpenAI chat.
        index: Index of the deciding message; None with ``plain`` and ``place``.
        candidates: Every dialect that fits all the messages.
    """

    format: Format
    reason: str
    index: int | None
    candidates: tuple[Format, ...]


def detect_format(messages: Messages | bytes, *, key: str | None = None) -> DetectedFormat:
    """Detects the dialect that ``format="auto"`` uses, by the content of messages. O(parts).

    Args:
        messages: The messages, or the bytes of a JSON array of them.
        key: The key of the list in the request: ``"input"`` selects Responses and ``"contents"`` Gemini if the
            messages are ambiguous.

    Raises:
        MessageError: ``ambiguous_format``: no dialect fits the roles, calls and results of all the messages, and the
            detail names the closest ones (other parts are clues only: a part of another dialect is an unknown part);
            ``unsupported_format``: foldline does not read this dialect; ``not_a_list``; ``bad_json``.

    Examples:
        >>> import foldline as fl
        >>> call = {"type": "tool-call", "toolCallId": "a", "toolName": "go", "args": {}}
        >>> found = fl.detect_format([{"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]}])
        >>> found.format, found.reason, found.index
        ('ai_sdk', 'content_part', 1)
    """
    dialect, reason, index, candidates = _core.detect_format(messages, key)
    return DetectedFormat(dialect, reason, index, tuple(candidates))


def dialect_for(messages: Messages, format: FormatOption) -> FormatOption:
    """The dialect for an option ``format``: ``"auto"`` is resolved by content.

    For an empty list it stays ``"auto"``.

    Examples:
        >>> dialect_for([{"role": "user", "parts": [{"text": "Go."}]}], "auto"), dialect_for([], "auto")
        ('gemini', 'auto')
    """
    return _core.detect_format(messages)[0] if format == "auto" and messages else format
