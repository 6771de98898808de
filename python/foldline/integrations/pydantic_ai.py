"""Pydantic AI: a capability that folds the history before each model call, and a tier of the harness.

Examples:
    The history of the run is the folded one, so that ``result.all_messages()`` goes on from there::

        agent = Agent("openai:gpt-5", capabilities=[Fold(model="gpt-5")])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestContext

from foldline.integrations._folder import Folder
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for
from foldline.integrations._pydantic_ai_messages import PydanticCodec
from foldline.typing import Message

__all__ = ["Fold", "FoldStrategy"]


class Fold(AbstractCapability[Any]):
    """Folds the messages of a run before each model call.

    The request and the history of the run both become the folded list. Tools and instructions are counted as they are
    at each call. A pin is a predicate over `ModelRequest` and `ModelResponse`.

    Args:
        key: The session of a run, from its context. Default: the conversation (``ctx.conversation_id``).
        **options: See `AdapterOptions`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(
        self, *, key: Callable[[RunContext[Any]], str | None] | None = None, **options: Unpack[AdapterOptions]
    ) -> None:
        self._folder = _folder(options)
        self._key = _conversation if key is None else key

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: it holds functions, so a specification cannot name it."""
        return None

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Folds the request and the history."""
        parameters = request_context.model_request_parameters
        folded = await self._folder.afold(
            request_context.messages,
            session=self._key(ctx),
            tools=[_schema(tool) for tool in (*parameters.function_tools, *parameters.output_tools)],
            system=_instructions(request_context),
        )
        if folded.changed:
            request_context.messages = list(folded.messages)
            ctx.messages[:] = folded.messages
        return request_context


class FoldStrategy:
    """A tier of the harness's `TieredCompaction`: compacts whenever it is called.

    Args:
        is_pinned: Whether a part stays, as for the harness's own tiers: its whole message does.
        **options: See `AdapterOptions`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(self, *, is_pinned: Callable[[Any], bool] | None = None, **options: Unpack[AdapterOptions]) -> None:
        self._folder = _folder(options)
        if is_pinned is not None:
            test = is_pinned
            self._folder.pins += (lambda message: any(test(part) for part in message.parts),)

    async def compact(self, messages: Sequence[ModelMessage], ctx: RunContext[Any]) -> list[ModelMessage]:
        """The folded messages."""
        folded = await self._folder.afold(messages, session=_conversation(ctx), force=True)
        return list(folded.messages)


def _folder(options: Any) -> Folder:
    given = dict(options)
    pins = pins_for(given.pop("pins", ()))
    return Folder(PydanticCodec(), compactor_for(**given), pins)


def _conversation(ctx: RunContext[Any]) -> str | None:
    found: Any = getattr(ctx, "conversation_id", None) or getattr(ctx, "run_id", None)
    return str(found) if found else None


def _instructions(request_context: ModelRequestContext) -> str | None:
    """The instructions, which stand outside the messages."""
    parts = getattr(request_context.model_request_parameters, "instruction_parts", None)
    if parts:
        return "\n\n".join(part.content for part in parts)
    last: Any = request_context.messages[-1] if request_context.messages else None
    return getattr(last, "instructions", None)


def _schema(tool: Any) -> Message:
    function = {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.parameters_json_schema,
    }
    return {"type": "function", "function": function}
