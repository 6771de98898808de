"""LangChain's messages and tools as dicts, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, messages_to_dict
from langchain_core.utils.function_calling import convert_to_openai_tool

from foldline.integrations._codec import Codec, changed_members
from foldline.typing import Message, Messages

__all__ = ["LangChainCodec", "Tools", "system_of"]


class LangChainCodec(Codec):
    """Messages of LangChain, by `messages_to_dict`."""

    format = "langchain"

    def dicts(self, message: Any) -> Sequence[Message]:
        """The message with its type, as ``messages_to_dict`` writes it."""
        found: Sequence[Message] = messages_to_dict([message])
        return found

    def summary(self, message: Message) -> Any:
        """A human message; a filler may be the model's."""
        kind = AIMessage if message["type"] == "ai" else HumanMessage
        return kind(content=message["data"]["content"])

    def edited(self, original: Any, dicts: Sequence[Message], kept: Sequence[tuple[int, Message]]) -> Any:
        """A copy with the members that the core replaced."""
        return original.model_copy(update=changed_members(dicts[0]["data"], kept[0][1]["data"]))


class Tools:
    """The schemas of tools, each made once. Tools are kept alive by it, the newest 1,000."""

    _MOST = 1_000

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Message]] = {}

    def schemas(self, tools: Sequence[Any] | None) -> Messages | None:
        """The schemas as they are sent; None without tools."""
        return [self._schema(tool) for tool in tools] if tools else None

    def _schema(self, tool: Any) -> Message:
        found = self._known.get(id(tool))
        if found is None or found[0] is not tool:
            found = tool, convert_to_openai_tool(tool)
            self._known[id(tool)] = found
            while len(self._known) > self._MOST:
                del self._known[next(iter(self._known))]
        return found[1]


def system_of(message: SystemMessage | str | None) -> str | Messages | None:
    """The text or blocks of a system message."""
    content: Any = message.content if isinstance(message, BaseMessage) else message
    if isinstance(content, list):
        return [each if isinstance(each, Mapping) else {"type": "text", "text": str(each)} for each in content] or None
    return content or None
