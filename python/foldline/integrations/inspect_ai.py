"""Inspect AI: a compaction strategy for the agents of an evaluation.

Examples:
    The threshold is Inspect's, and so is the decision to compact::

        react(tools=tools, compaction=CompactionFold(model="gpt-5", threshold=0.8))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from inspect_ai.model import ChatMessageUser, CompactionStrategy

from foldline.integrations._folder import Folder
from foldline.integrations._inspect_ai_messages import InspectCodec
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for
from foldline.typing import Message, Messages

__all__ = ["CompactionFold"]


class CompactionFold(CompactionStrategy):
    """Folds the messages of an agent whenever Inspect compacts, which it does above its threshold only.

    Tools are counted as they are at each call. The input of the sample stays, as in Inspect's own strategies. A
    compaction that does not help ends the sample, also if the summarizer failed: with ``on_failure="truncate"`` older
    messages are dropped then.

    Args:
        threshold: Tokens, or the share of the context window, above which Inspect compacts.
        memory: Whether Inspect warns the model before a compaction, where it has the memory tool.
        **options: See `AdapterOptions`. A trigger is not used. A pin is a predicate over `ChatMessage`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(self, *, threshold: float = 0.9, memory: bool = True, **options: Unpack[AdapterOptions]) -> None:
        super().__init__(type="summary", threshold=threshold, memory=memory)
        given: dict[str, Any] = dict(options)
        pins = (*pins_for(given.pop("pins", ())), _is_input)
        self._folder = Folder(InspectCodec(), compactor_for(**given), pins)

    async def compact(
        self, model: Any, messages: list[Any], tools: Sequence[Any]
    ) -> tuple[list[Any], ChatMessageUser | None]:
        """The folded messages, and the summary, which Inspect adds to the history."""
        del model
        session = messages[0].id if messages else None  # ids differ from sample to sample
        folded = await self._folder.afold(messages, session=session, tools=_schemas(tools), force=True)
        known = {id(each) for each in (*messages, *folded.edited)}
        new = [each for each in folded.messages if id(each) not in known and each.role == "user"]
        return list(folded.messages), new[0] if new else None


def _is_input(message: Any) -> bool:
    return bool(message.role == "user" and message.source == "input")


def _schemas(tools: Sequence[Any]) -> Messages | None:
    """The schemas of tools, as they are sent."""
    found: list[Message] = []
    for tool in tools:
        parameters = tool.parameters.model_dump(exclude_none=True)
        function = {"name": tool.name, "description": tool.description, "parameters": parameters}
        found.append({"type": "function", "function": function})
    return found or None
