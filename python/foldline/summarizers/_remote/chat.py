"""The fields of a request in OpenAI's chat dialect."""

from __future__ import annotations

from typing import Any

from foldline.summarizers._remote.remote import ModelRequest

__all__ = ["chat_messages", "chat_tools"]


def chat_messages(request: ModelRequest) -> list[Any]:
    """The messages, after the system prompt if it is outside them."""
    if request.system is None:
        return list(request.messages)
    return [{"role": "system", "content": request.system}, *request.messages]


def chat_tools(request: ModelRequest) -> dict[str, Any]:
    """The fields of tool schemas; the model may call none."""
    return {"tools": list(request.tools), "tool_choice": "none"} if request.tools else {}
