"""Inspect's messages as dicts of OpenAI's chat, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from inspect_ai.model import ChatMessageAssistant, ChatMessageUser

from foldline.integrations._codec import Codec, changed_members
from foldline.typing import Message

__all__ = ["InspectCodec"]


class InspectCodec(Codec):
    """Messages of Inspect, one dict each."""

    format = "openai_chat"

    def dicts(self, message: Any) -> Sequence[Message]:
        """The message as a dict."""
        thinking, content = _content(message.content)
        found: dict[str, Any] = {"role": message.role, "content": content}
        if message.role == "tool":
            found["tool_call_id"] = message.tool_call_id
            if message.error is not None:  # sent instead of the content
                found["content"] = message.error.message
        if message.role == "assistant":
            calls = [_call(call) for call in message.tool_calls or ()]
            if calls:
                found.update(tool_calls=calls, content=content or None)
            if thinking:
                found["reasoning_content"] = "\n\n".join(thinking)
        return (found,)

    def summary(self, message: Message) -> Any:
        """A message of the user; a filler may be the model's."""
        kind = ChatMessageAssistant if message["role"] == "assistant" else ChatMessageUser
        return kind(content=message["content"])

    def edited(self, original: Any, dicts: Sequence[Message], kept: Sequence[tuple[int, Message]]) -> Any:
        """A copy with a new result, or without thinking. It has the id of the original."""
        old, new = dicts[0], kept[0][1]
        if original.role == "tool":
            return original.model_copy(update={**changed_members(old, new), "error": None})
        if "reasoning_content" not in new and isinstance(original.content, list):
            return original.model_copy(update={"content": [c for c in original.content if c.type != "reasoning"]})
        return original


def _call(call: Any) -> Message:
    function = {"name": call.function, "arguments": json.dumps(call.arguments, default=str)}
    return {"id": call.id, "type": "function", "function": function}


def _content(content: Any) -> tuple[list[str], Any]:
    """The thinking of a content, and the rest of it."""
    if isinstance(content, str):
        return [], content
    thinking = [part.reasoning for part in content if part.type == "reasoning"]
    return thinking, [_part(part) for part in content if part.type != "reasoning"]


def _part(part: Any) -> Message:
    """A part of a message; of a kind that chat completions do not have, it is counted by its JSON."""
    if part.type == "text":
        return {"type": "text", "text": part.text}
    if part.type == "image":
        return {"type": "image_url", "image_url": {"url": part.image}}
    return {"type": f"inspect.{part.type}", "value": part.model_dump(mode="json", exclude_none=True)}
