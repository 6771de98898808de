"""Finds tool results in messages, with the names of their tools."""

from __future__ import annotations

from typing import NamedTuple

from foldline import _core
from foldline.typing import FormatOption, Messages

__all__ = ["ToolResult", "tool_results"]


class ToolResult(NamedTuple):
    """A result that can be replaced.

    Attributes:
        message: Index of its message.
        part: Index of its part, as in plans.
        tool: The tool's name; empty if neither the result nor its call gives it.
        chars: Length of its text in code points.
    """

    message: int
    part: int
    tool: str
    chars: int


def tool_results(messages: Messages, format: FormatOption) -> list[ToolResult]:
    """The tool results of a list, in order.

    Results of a provider's own tools are left out: they belong to their calls.

    Args:
        messages: The messages.
        format: Their dialect.

    Raises:
        MessageError: A message cannot be read.

    Examples:
        >>> call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        >>> answer = {"role": "tool", "tool_call_id": "c", "content": "text"}
        >>> tool_results([{"role": "assistant", "content": None, "tool_calls": [call]}, answer], "openai_chat")
        [ToolResult(message=1, part=0, tool='read_file', chars=4)]
    """
    return [ToolResult(*found) for found in _core.tool_results(messages, format)]
