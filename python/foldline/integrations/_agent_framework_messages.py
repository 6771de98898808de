"""Agent Framework's messages as dicts of OpenAI's chat, and back."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from agent_framework import Content, Message

from foldline.integrations._codec import Codec
from foldline.typing import Message as Dict

__all__ = ["AgentFrameworkCodec", "original_of"]

#: The attribute of an edited copy that holds its original. The framework copies it, and does not write it.
_ORIGINAL = "_foldline_original"


def original_of(message: Message) -> Message:
    """The message that an edited copy stands for; else itself."""
    found: Message = getattr(message, _ORIGINAL, message)
    return found


class AgentFrameworkCodec(Codec):
    """Messages of Agent Framework. A message with results of tools has a dict for each; any other one is one dict."""

    format = "openai_chat"

    def dicts(self, message: Any) -> Sequence[Dict]:
        """The message as dicts."""
        if message.role == "tool" and message.contents:
            return [_result(content) for content in message.contents]
        if message.role == "assistant":
            return (_answer(message),)
        texts = [_part(content) for content in message.contents]
        return ({"role": message.role, "content": _flat(texts)},)

    def summary(self, message: Dict) -> Any:
        """A message of text."""
        return Message(message["role"], [message["content"]])

    def edited(self, original: Any, dicts: Sequence[Dict], kept: Sequence[tuple[int, Dict]]) -> Any:
        """A copy with the contents that stay, and new texts of the results that were changed."""
        made = copy.copy(original)
        made.additional_properties = dict(original.additional_properties)
        setattr(made, _ORIGINAL, original)
        if original.role == "tool":
            made.contents = [_edited_result(original.contents[at], dicts[at], new) for at, new in kept]
        elif "reasoning_content" not in kept[0][1]:  # its thinking was stripped
            made.contents = [content for content in original.contents if content.type != "text_reasoning"]
        return made


def _result(content: Any) -> Dict:
    """A result of a tool; another content is counted by its JSON."""
    if content.type != "function_result":
        return {"role": "user", "content": [_part(content)]}
    items = [item for item in content.items or () if item.type != "text"]
    if items:
        return {"role": "tool", "tool_call_id": content.call_id, "content": [_part(each) for each in content.items]}
    said = content.result if isinstance(content.result, str) else json.dumps(content.result, default=str)
    return {"role": "tool", "tool_call_id": content.call_id, "content": said}


def _edited_result(content: Any, old: Dict, new: Dict) -> Any:
    if new is old:
        return content
    text = new["content"]
    if not isinstance(text, str):
        text = "\n".join(str(part.get("text", "")) for part in text)
    made = copy.copy(content)
    made.result, made.items = text, [Content.from_text(text)]
    return made


def _answer(message: Any) -> Dict:
    """What the model answered."""
    parts: list[Dict] = []
    calls: list[Dict] = []
    thinking: list[str] = []
    for content in message.contents:
        if content.type == "function_call" and not content.informational_only:
            given = content.arguments
            arguments = given if isinstance(given, str) else json.dumps(dict(given or {}), default=str)
            function = {"name": content.name, "arguments": arguments}
            calls.append({"id": content.call_id, "type": "function", "function": function})
        elif content.type == "text_reasoning":
            thinking.append(content.text or "")
        else:
            parts.append(_part(content))
    found: dict[str, Any] = {"role": "assistant", "content": _flat(parts) or None}
    if thinking:
        found["reasoning_content"] = "\n\n".join(thinking)
    if calls:
        found["tool_calls"] = calls
    return found


def _flat(parts: Sequence[Dict]) -> Any:
    """The text of a message that has nothing else."""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else list(parts)


def _part(content: Any) -> Dict:
    """A part of a message; of a kind that chat completions do not have, it is counted by its JSON."""
    if content.type == "text":
        return {"type": "text", "text": content.text}
    if content.type in ("data", "uri") and str(content.media_type or "").startswith("image/"):
        return {"type": "image_url", "image_url": {"url": content.uri}}
    said = json.loads(json.dumps(content.to_dict(), default=lambda value: type(value).__name__))
    return {"type": f"agent_framework.{content.type}", "value": said}
