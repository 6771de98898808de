"""Agent Framework: a compaction strategy that folds before each call of a model.

Examples:
    The history of the session keeps every message::

        agent = Agent(client, tools=tools, compaction_strategy=FoldStrategy(model="gpt-5", tools=tools))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from agent_framework import FunctionTool, Message, tool

from foldline.integrations._agent_framework_messages import AgentFrameworkCodec, original_of
from foldline.integrations._folder import Folder
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for
from foldline.typing import Messages

__all__ = ["FoldStrategy"]

_EXCLUDED = "_excluded"
_REASON = "_exclude_reason"

#: The reason of the messages that a fold replaces. Those that something else excludes are not touched.
_OURS = "foldline"

#: Marks a message that this strategy made.
_SUMMARY = "_foldline_summary"


class FoldStrategy:
    """Marks the messages that a fold replaces as excluded, and inserts the summary.

    Nothing is removed: the session's history keeps every message, and a later run folds on from the folds that are
    known for its beginning. Marks are set anew at each call, so that a lost one does no harm. A history provider must
    not leave out excluded messages (``skip_excluded``), since a strategy has to see the whole history.

    Args:
        tools: The tools of the agent: a strategy does not see them.
        instructions: Its instructions, which the client adds after the strategy.
        key: The session of a list of messages. Without one, folds are found by the beginning of the list.
        **options: See `AdapterOptions`. A pin is a predicate over `Message`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(  # type: ignore[misc]  # tools are the agent's, not those of a compactor
        self,
        *,
        tools: Sequence[Any] | None = None,
        instructions: str | None = None,
        key: Callable[[Sequence[Message]], str | None] | None = None,
        **options: Unpack[AdapterOptions],
    ) -> None:
        given: dict[str, Any] = dict(options)
        pins = pins_for(given.pop("pins", ()))
        self._folder = Folder(AgentFrameworkCodec(), compactor_for(**given), pins)
        self._around: dict[str, Any] = {"tools": _schemas(tools), "system": instructions}
        self._key = key

    async def __call__(self, messages: list[Message]) -> bool:
        """Folds a list in place; whether it changed."""
        whole: list[Message] = []
        for each in messages:
            original = original_of(each)
            if not each.additional_properties.get(_SUMMARY) and (not whole or whole[-1] is not original):
                whole.append(original)
        history = [each for each in whole if not _is_excluded_by_others(each)]
        session = None if self._key is None else self._key(history)
        folded = await self._folder.afold(history, session=session, **self._around)
        before = _state(messages)
        messages[:] = _marked(whole, folded.messages)
        return _state(messages) != before


def _marked(whole: Sequence[Message], sent: Sequence[Message]) -> list[Message]:
    """All messages: those that are not sent are excluded, and a new one stands before the next that is sent."""
    position = {id(each): at for at, each in enumerate(whole)}
    found: list[Message] = []
    new: list[Message] = []
    done = 0
    for each in sent:
        at = position.get(id(original_of(each)))
        if at is None:
            each.additional_properties[_SUMMARY] = True
            new.append(each)
            continue
        found += [_excluded(skipped) for skipped in whole[done:at]]
        found += [_included(message) for message in (*new, each)]
        new, done = [], max(done, at + 1)
    return [*found, *new, *map(_excluded, whole[done:])]


def _included(message: Message) -> Message:
    message.additional_properties[_EXCLUDED] = False
    return message


def _excluded(message: Message) -> Message:
    if not _is_excluded_by_others(message):
        message.additional_properties.update({_EXCLUDED: True, _REASON: _OURS})
    return message


def _is_excluded_by_others(message: Message) -> bool:
    properties = message.additional_properties
    return bool(properties.get(_EXCLUDED)) and properties.get(_REASON) != _OURS


def _state(messages: Sequence[Message]) -> list[tuple[int, bool]]:
    return [(id(each), bool(each.additional_properties.get(_EXCLUDED))) for each in messages]


def _schemas(tools: Sequence[Any] | None) -> Messages | None:
    """The schemas of tools, as they are sent."""
    found = [each if isinstance(each, FunctionTool) else tool(each) for each in tools or ()]
    return [each.to_json_schema_spec() for each in found] or None
