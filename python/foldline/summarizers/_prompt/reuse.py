"""Asks for a summary below the agent's own request, which a provider's cache already holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foldline import _core
from foldline.errors import FoldlineError
from foldline.summarizers._prompt.prompting import ModelCall, OutputBudget, PromptTexts
from foldline.summarizers._prompt.prompts import Kind, instruction_for, words_for
from foldline.summarizers.rendering import role_of, text_of
from foldline.typing import Format, Provider, SummarizeRequest

__all__ = ["prefix_call"]

#: The provider whose rules judge a request in a dialect.
_PROVIDERS: Mapping[Format, Provider] = {"openai_chat": "openai", "anthropic": "anthropic"}
#: Characters quoted of the first message that stays.
_BEGINNING_CHARS = 80


def prefix_call(
    words: PromptTexts, request: SummarizeRequest, kind: Kind, room: OutputBudget, dialect: Format, window: int | None
) -> ModelCall | None:
    """The agent's request, message for message, and one user message that asks for the summary.

    Tools, system prompt and messages are those of the agent, so that the provider reads all but the last message from
    its cache. The messages are not fenced, as they are not in the agent's own calls; the answer is checked as any
    other.

    Args:
        words: The texts of the prompt.
        request: The request; its messages are sent whole, kept ones included.
        kind: The purpose of the prompt.
        room: The output budget.
        dialect: The dialect that the model takes.
        window: The most tokens of the prompt; None for no limit.

    Returns:
        None if the messages cannot be sent as they are: they are redacted, of another dialect, too long for the window,
        or an instruction may not stand behind them.
    """
    if request.redact is not None or request.format != dialect or words.template is not None:
        return None
    instruction = _instruction(words, request, kind, room)
    messages = [*request.messages, {"role": "user", "content": instruction}]
    size = request.request_tokens
    if window is not None and (size is None or size + request.count(instruction) > window):
        return None
    if not _is_accepted(messages, dialect):
        return None
    return ModelCall(messages, room, {"tools": request.tools, "system": request.system})


def _instruction(words: PromptTexts, request: SummarizeRequest, kind: Kind, room: OutputBudget) -> str:
    wanted = [f"- Mind this above all: {each}\n" for each in (words.instructions, request.instructions) if each]
    focus = f"- Be most detailed about this: {words.focus}\n" if words.focus else ""
    slots: dict[str, Any] = {
        "max_tokens": room.target,
        "max_words": words_for(room.target),
        "instructions": "".join([*wanted, focus]),
        "round": request.round,
    }
    return instruction_for(words.form, kind, slots, kept=_first_kept(request), is_history=request.part == "history")


def _first_kept(request: SummarizeRequest) -> tuple[int, str, str] | None:
    """How many messages follow the folded ones, and role and beginning of the first; None if there is none."""
    start = max(request.folded, default=-1) + 1
    if start >= len(request.messages):
        return None
    first = request.messages[start]
    text = " ".join(text_of(first)[: 4 * _BEGINNING_CHARS].split())[:_BEGINNING_CHARS]
    return len(request.messages) - start, role_of(first).lower(), json.dumps(text, ensure_ascii=False)


def _is_accepted(messages: list[Any], dialect: Format) -> bool:
    """Whether a provider takes the messages with the instruction: no call before it waits for its result."""
    try:
        return not _core.validate(
            messages,
            _PROVIDERS[dialect],
            alternate=False,
            single_system=False,
            partial=False,
            allow_prefill=True,
            format=dialect,
        )
    except FoldlineError:
        return False
