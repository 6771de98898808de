"""Making a list that a provider rejects into one that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from foldline import _core
from foldline.typing import Problem

if TYPE_CHECKING:
    from foldline.typing import Messages

__all__ = ["Repair", "RepairAction", "repair"]


@dataclass(frozen=True, slots=True)
class RepairAction:
    """One thing that a repair did.

    Attributes:
        index: The message of the given list that it was done to, or for.
        code: A stable code.
        detail: What was done, without content.
    """

    index: int
    code: str
    detail: str = ""

    def __str__(self) -> str:
        return f"message {self.index}: {self.code} ({self.detail})"


@dataclass(frozen=True, slots=True)
class Repair:
    """A repaired list. True where anything was done.

    Attributes:
        messages: The new list; what was not touched are the same objects, what was edited are copies.
        actions: Everything that was done, pass by pass.
        problems: What the provider still rejects, with indices into ``messages``; empty but for items of unknown types.
    """

    messages: list[Any]
    actions: list[RepairAction]
    problems: list[Problem]

    def __bool__(self) -> bool:
        return bool(self.actions)


def repair(
    messages: Messages,
    provider: str,
    *,
    open_calls: Literal["answer", "remove"] = "answer",
    orphans: Literal["text", "remove"] = "text",
    alternate: bool = False,
    single_system: bool = False,
    partial: bool = False,
    format: str = "auto",
) -> Repair:
    """Makes messages valid for a provider, and says what was done to which. The given objects are never changed.

    Only what `validate` reports is repaired: a valid list comes back as it is, without actions, and so does a repaired
    one. Calls without a result get one that says so. A result moves to its call; one without a call becomes text of
    the user, so that nothing is lost. Ids that the API does not take are rewritten on call and result alike. Nothing is
    guessed: what a model said stays what the model said.

    Args:
        messages: The messages in their provider's form: a list or tuple of dicts.
        provider: ``"openai"``, ``"responses"``, ``"anthropic"`` or ``"gemini"``.
        open_calls: Calls that nothing answers get an error as their result (``"answer"``) or go (``"remove"``).
        orphans: Results without a call become text of the user (``"text"``) or go (``"remove"``). A second result of a
            call that says the same as the first goes in either case.
        alternate: As for `validate`. Messages of one side in a row are joined where they have nothing but content, else
            a short one of the other side is put between.
        single_system: As for `validate`. All system messages become one, in front.
        partial: As for `validate`. Results of calls that are stored elsewhere stay.
        format: The provider's own dialect, or ``"auto"``, which is the same.

    Raises:
        ConfigError: An option is out of range.
        MessageError: A message cannot be read.
        LimitExceeded: A message is nested beyond 128 levels, or too large.

    Complexity: O(text) for each of at most seven passes that has something to do.

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
        format=format,
    )
    told = [RepairAction(index, code, detail) for index, code, detail in actions]
    return Repair(new, told, [Problem(index, code, detail) for index, code, detail in problems])
