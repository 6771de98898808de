"""OpenAI Agents: a filter of what the runner sends to the model.

Examples:
    The session keeps every item; only the model's input is folded::

        config = RunConfig(call_model_input_filter=FoldFilter(model="gpt-5"))
        await Runner.run(agent, "Go on.", session=session, run_config=config)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from agents import FunctionTool, Handoff, RunContextWrapper, handoff
from agents.run import CallModelData, ModelInputData

from foldline.integrations._codec import Dicts
from foldline.integrations._folder import Folder
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for
from foldline.typing import Message

__all__ = ["FoldFilter"]


class FoldFilter:
    """Folds the items of each model call; see `RunConfig.call_model_input_filter`.

    Tools, handoffs and instructions are counted as they are at each call. A list that answers calls which are not in it
    is a part of a history that the provider keeps (``conversation_id``, ``previous_response_id``): it is left alone.

    Args:
        key: The session of a call, from its data; the runner has none. Default: folds are found by the beginning of
            the history alone.
        **options: See `AdapterOptions`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(
        self, *, key: Callable[[CallModelData[Any]], str | None] | None = None, **options: Unpack[AdapterOptions]
    ) -> None:
        given: dict[str, Any] = dict(options)
        pins = pins_for(given.pop("pins", ()))
        self._folder = Folder(Dicts("openai_responses"), compactor_for(**given), pins)
        self._key = key

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """The input of one model call."""
        items: list[Any] = data.model_data.input
        if _is_part(items):
            return data.model_data
        folded = await self._folder.afold(
            items,
            session=None if self._key is None else self._key(data),
            tools=await _tools(data.agent, RunContextWrapper(data.context)),
            system=data.model_data.instructions,
        )
        return ModelInputData(input=folded.messages, instructions=data.model_data.instructions)


def _is_part(items: Sequence[Any]) -> bool:
    """Whether an item answers a call that is not in the list."""
    calls = {item.get("call_id") for item in items if not _is_answer(item)}
    return any(_is_answer(item) and item.get("call_id") not in calls for item in items)


def _is_answer(item: Any) -> bool:
    return str(item.get("type") or "").endswith("_call_output")


async def _tools(agent: Any, context: RunContextWrapper[Any]) -> list[Message]:
    """The schemas of an agent's tools and handoffs, as they are sent."""
    found: list[Message] = []
    for tool in await agent.get_all_tools(context):
        if isinstance(tool, FunctionTool):
            found.append(_schema(tool.name, tool.description, tool.params_json_schema))
        else:  # a hosted tool: its name is what is known of it
            found.append({"type": getattr(tool, "name", type(tool).__name__)})
    for each in agent.handoffs:
        target = each if isinstance(each, Handoff) else handoff(each)
        if await _is_enabled(target, context, agent):
            found.append(_schema(target.tool_name, target.tool_description, target.input_json_schema))
    return found


async def _is_enabled(target: Handoff[Any, Any], context: RunContextWrapper[Any], agent: Any) -> bool:
    is_enabled: Any = target.is_enabled
    if callable(is_enabled):
        is_enabled = is_enabled(context, agent)
    return bool(await is_enabled if inspect.isawaitable(is_enabled) else is_enabled)


def _schema(name: str, description: str | None, parameters: Any) -> Message:
    return {"type": "function", "name": name, "description": description or "", "parameters": parameters}
