"""The arguments of planning and folding as the core takes them: messages, and the system prompt outside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foldline import _core
from foldline._core import LiveSnapshot, LiveTranscript
from foldline.errors import ConfigError, MessageError
from foldline.typing import Messages

__all__ = ["checked_system", "opened"]


def opened(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
) -> tuple[Messages, Messages | LiveTranscript | LiveSnapshot]:
    """The list of messages, and the value to count: the transcript if one is given, else the list.

    The bytes of a JSON array become a list of new dicts.

    Raises:
        MessageError: Neither a list, nor a transcript, nor the bytes of a JSON array.
    """
    if isinstance(messages, (LiveTranscript, LiveSnapshot)):
        return messages.messages, messages
    if isinstance(messages, bytes):
        try:
            _core.detect_format(messages)  # raises for bytes that are not a JSON array
        except MessageError as error:
            if error.code not in ("ambiguous_format", "unsupported_format"):  # the caller may name the format
                raise
        listed: list[Any] = json.loads(messages)
        return listed, listed
    if not isinstance(messages, (list, tuple)):
        raise _core.not_a_list(messages)
    return messages, messages


def checked_system(system: object) -> str | Messages | None:
    """The system prompt: a text, or content blocks; None for an empty one.

    Raises:
        ConfigError: It is neither.
    """
    if system is None or isinstance(system, str):
        return system or None
    if isinstance(system, (list, tuple)) and all(isinstance(block, Mapping) for block in system):
        return system or None
    raise ConfigError("must be a text or a list of content blocks", code="bad_system", path="system")
