"""pydantic-ai's messages as dicts of OpenAI's chat, and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from foldline.integrations._codec import Codec
from foldline.typing import Message

__all__ = ["PydanticCodec"]


class PydanticCodec(Codec):
    """Requests and responses of pydantic-ai.

    A request has a dict for each part: system prompt, user prompt, result of a tool, retry. A response is one dict.
    """

    format = "openai_chat"

    def dicts(self, message: ModelMessage) -> Sequence[Message]:
        """The message as dicts, one for each part of a request."""
        if isinstance(message, ModelResponse):
            return (_response(message),)
        found = [_request_part(part) for part in message.parts]
        return found or ({"role": "user", "content": ""},)

    def summary(self, message: Message) -> ModelMessage:
        """A request with the text; a filler may be the model's."""
        if message["role"] == "assistant":
            return ModelResponse(parts=[TextPart(message["content"])])
        return ModelRequest(parts=[UserPromptPart(message["content"])])

    def edited(self, original: Any, dicts: Sequence[Message], kept: Sequence[tuple[int, Message]]) -> Any:
        """A copy with the parts that stay, and new content of those that were changed."""
        if isinstance(original, ModelResponse):
            return _response_like(original, kept[0][1])
        parts = []
        for place, message in kept:
            part: Any = original.parts[place]
            changed = message is not dicts[place]
            parts.append(dataclasses.replace(part, content=message["content"]) if changed else part)
        return dataclasses.replace(original, parts=parts)


def _request_part(part: Any) -> Message:
    """A part of a request as a message."""
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, UserPromptPart):
        return {"role": "user", "content": _content(part.content)}
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    tool_call_id = getattr(part, "tool_call_id", None)
    answers = getattr(part, "tool_name", None) is not None and tool_call_id is not None
    said = part.model_response() if hasattr(part, "model_response") else None
    if isinstance(said, str) and answers:
        return {"role": "tool", "tool_call_id": tool_call_id, "content": said}
    if isinstance(said, str):
        return {"role": "user", "content": said}
    return {"role": "user", "content": [_unknown(part)]}


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [{"type": "text", "text": each} if isinstance(each, str) else _content_part(each) for each in content]


def _content_part(part: Any) -> dict[str, Any]:
    """A part of a prompt: a text, a picture or a file."""
    kind = getattr(part, "kind", None)
    if kind in ("text", "text-content"):
        return {"type": "text", "text": getattr(part, "content", "")}
    if kind == "image-url":
        return {"type": "image_url", "image_url": {"url": part.url}}
    if kind == "binary" and str(getattr(part, "media_type", "")).startswith("image/"):
        return {"type": "image_url", "image_url": {"url": part.data_uri}}
    return _unknown(part)


def _response(message: ModelResponse) -> Message:
    texts, thinking, calls, others = [], [], [], []
    for part in message.parts:
        if isinstance(part, TextPart):
            texts.append(part.content)
        elif isinstance(part, ThinkingPart):
            thinking.append(part.content)
        elif isinstance(part, ToolCallPart):
            function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
            calls.append({"id": part.tool_call_id, "type": "function", "function": function})
        else:
            others.append(_unknown(part))
    found: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts) or None}
    if others:
        found["content"] = [*({"type": "text", "text": text} for text in texts), *others]
    if thinking:
        found["reasoning_content"] = "\n\n".join(thinking)
    if calls:
        found["tool_calls"] = calls
    return found


def _response_like(original: ModelResponse, message: Message) -> ModelResponse:
    """A response whose thinking was stripped."""
    is_stripped = "reasoning_content" not in message
    parts = [part for part in original.parts if not (is_stripped and isinstance(part, ThinkingPart))]
    return dataclasses.replace(original, parts=parts)


def _unknown(part: Any) -> dict[str, Any]:
    """A part of another kind, by what it says as JSON: it is counted and kept."""
    known = (
        {field.name: getattr(part, field.name, None) for field in dataclasses.fields(part)}
        if (dataclasses.is_dataclass(part))
        else {}
    )
    kind = str(getattr(part, "part_kind", None) or getattr(part, "kind", None) or type(part).__name__)
    return {"type": f"pydantic_ai.{kind}", "value": json.loads(json.dumps(known, default=_plain))}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes"
    return type(value).__name__
