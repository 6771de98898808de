"""Which dialect messages are in, and what told it."""

from __future__ import annotations

from dataclasses import dataclass

from foldline import _core
from foldline.typing import Messages

__all__ = ["DetectedFormat", "detect_format", "dialect_for"]


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    """The dialect of a list of messages, and why it is taken for that.

    Attributes:
        format: The dialect, as the option ``format`` takes it.
        reason: What told it, a stable code: ``role``, ``tool_calls`` (calls beside the content), ``content_part`` (the
            type of a part), ``item_type`` (that of an item of Responses), ``parts`` (instead of content),
            ``message_type`` (a type instead of a role), ``iteration`` (whole messages inside), ``place`` (the key
            of the request under which the list stands); ``plain`` where nothing did: messages that most dialects write
            alike are read as OpenAI chat.
        index: The message that told it; None with ``plain`` and ``place``.
        candidates: Every dialect that all the messages can be in.
    """

    format: str
    reason: str
    index: int | None
    candidates: tuple[str, ...]


def detect_format(messages: Messages | bytes, *, key: str | None = None) -> DetectedFormat:
    """The dialect that ``format="auto"`` reads messages in, judged by their content. O(parts).

    Args:
        messages: The messages, or the bytes of a JSON array of them.
        key: The key of a request under which the list stands: ``"input"`` speaks for Responses and ``"contents"`` for
            Gemini where the messages leave it open.

    Raises:
        MessageError: ``ambiguous_format``: no dialect has all the messages, and the detail names those that they look
            like; ``unsupported_format``: messages of a dialect that is not read; ``not_a_list``; ``bad_json``.

    Examples:
        >>> import foldline as fl
        >>> call = {"type": "tool-call", "toolCallId": "a", "toolName": "go", "args": {}}
        >>> found = fl.detect_format([{"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]}])
        >>> found.format, found.reason, found.index
        ('ai_sdk', 'content_part', 1)
    """
    dialect, reason, index, candidates = _core.detect_format(messages, key)
    return DetectedFormat(dialect, reason, index, tuple(candidates))


def dialect_for(messages: Messages, format: str) -> str:
    """The dialect that an option ``format`` stands for with these messages. Where there are none, ``auto`` stays open.

    Examples:
        >>> dialect_for([{"role": "user", "parts": [{"text": "Go."}]}], "auto"), dialect_for([], "auto")
        ('gemini', 'auto')
    """
    return _core.detect_format(messages)[0] if format == "auto" and messages else format
