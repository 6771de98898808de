"""Repairs lists of messages that a provider rejects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from foldline import _core
from foldline.typing import Problem

if TYPE_CHECKING:
    from foldline.typing import FormatOption, Messages, Provider

__all__ = ["Repair", "RepairAction", "repair"]


@dataclass(frozen=True, slots=True)
class RepairAction:
    """One change made by a repair.

    Attributes:
        index: Index in the given list of the message that was changed or that caused the change.
        code: A stable code.
        detail: The change, without content.
    """

    index: int
    code: str
    detail: str = ""

    def __str__(self) -> str:
        return f"message {self.index}: {self.code} ({self.detail})"


@dataclass(frozen=True, slots=True)
class Repair:
    """A repaired list. True if anything was changed.

    Attributes:
        messages: The new list; unchanged messages are the same objects, edited ones are copies.
        actions: Every change, pass by pass.
        problems: Problems that remain, with indices into ``messages``; empty except for items of unknown types.
    """

    messages: list[Any]
    actions: list[RepairAction]
    problems: list[Problem]

    def __bool__(self) -> bool:
        return bool(self.actions)


def repair(
    messages: Messages,
    provider: Provider,
    *,
    open_calls: Literal["answer", "remove"] = "answer",
    orphans: Literal["text", "remove"] = "text",
    alternate: bool = False,
    single_system: bool = False,
    partial: bool = False,
    allow_prefill: bool = True,
    format: FormatOption = "auto",
) -> Repair:
    """Makes messages valid for a provider, and reports every change.

    The given objects are never changed. Only problems that `validate` reports are repaired: a valid list is returned
    unchanged, without actions, and so is a repaired one. A call without a result gets one that says so. A result moves
    to its call; a result without a call becomes text, so that nothing is lost, and so does a call of the provider's
    own tools whose result is missing. Ids that the API rejects are rewritten on call and result. Nothing is guessed:
    the model's text stays the model's.

    Args:
        messages: The messages in their provider's form: a list or tuple of dicts.
        provider: ``"openai"``, ``"responses"``, ``"anthropic"``, ``"gemini"``, ``"bedrock"``, ``"mistral"`` or
            ``"cohere"``.
        open_calls: Unanswered calls get an error as their result (``"answer"``; those of the provider's own tools
            become text) or are removed (``"remove"``).
        orphans: Results without a call become user text (``"text"``) or are removed (``"remove"``). A second result of
            a call that repeats the first is removed in either case.
        alternate: As for `validate`. Consecutive messages of one side are joined if they contain only content;
            otherwise a short message of the other side is inserted.
        single_system: As for `validate`. All system messages are joined into one, in front.
        partial: As for `validate`. Results of calls that are stored at the provider stay.
        allow_prefill: As for `validate`. Without it, a short message of the user follows an answer at the end.
        format: The provider's own dialect, or ``"auto"``, which is the same.

    Raises:
        ConfigError: An option is out of range.
        MessageError: A message cannot be read.
        LimitExceeded: A message is nested beyond 128 levels, or too large.

    Complexity: O(text) for each of at most thirteen passes that changes something.

    Examples:
        >>> import foldline as fl
        >>> call = {"id": "a", "type": "function", "function": {"name": "go", "arguments": "{}"}}
        >>> broken = [{"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "Stop."}]
        >>> repaired = fl.repair(broken, "openai")
        >>> [message["role"] for message in repaired.messages], repaired.actions[0].code
        (['assistant', 'tool', 'user'], 'call_answered')
    """
    new, actions, problems = _core.repair(
        messages,
        provider,
        open_calls=open_calls,
        orphans=orphans,
        alternate=alternate,
        single_system=single_system,
        partial=partial,
        allow_prefill=allow_prefill,
        format=format,
    )
    told = [RepairAction(index, code, detail) for index, code, detail in actions]
    return Repair(new, told, [Problem(index, code, detail) for index, code, detail in problems])
