"""Contents that a provider refuses for their shape; see `validity`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Problem = tuple[int, str]


def shape_problems(messages: Sequence[Mapping[str, Any]], provider: str) -> list[Problem]:
    """Contents that are no list of objects, and no text where the provider takes one."""
    heads = {"anthropic": ("system", "developer"), "bedrock": ("system", "developer"), "gemini": ("system",)}
    head = heads.get(provider, ())
    first = next((i for i, each in enumerate(messages) if each.get("role", "user") not in head), len(messages))
    return [
        (index, "bad_content") for index in range(first, len(messages)) if _has_bad_content(messages[index], provider)
    ]


def _has_bad_content(message: Mapping[str, Any], provider: str) -> bool:
    content = message.get("content")
    if provider == "responses":
        return message.get("type", "message") == "message" and _is_bad(content, provider)
    if provider != "gemini":
        return _is_bad(content, provider)
    parts = message.get("parts")
    return content is not None if parts is None else _is_bad(parts, provider)


def _is_bad(content: Any, provider: str) -> bool:
    if content is None:
        return False
    if isinstance(content, str):
        return provider in ("gemini", "bedrock")
    if not isinstance(content, list | tuple):
        return True
    return any(not isinstance(each, Mapping) or _is_bad(_of_result(each, provider), provider) for each in content)


def _of_result(block: Mapping[str, Any], provider: str) -> Any:
    """The content of a block that is a result."""
    if provider == "anthropic" and block.get("type") == "tool_result":
        return block.get("content")
    if provider == "bedrock" and isinstance(block.get("toolResult"), Mapping):
        return block["toolResult"].get("content")
    return None
