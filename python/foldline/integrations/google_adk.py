"""Google ADK: a plugin that folds the contents of each request.

Examples:
    The events of the session stay as they are::

        app = App(name="app", root_agent=agent, plugins=[FoldPlugin(model="gemini-2.5-pro")])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from google.adk.agents.callback_context import CallbackContext
from google.adk.models import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from foldline.integrations._codec import Codec
from foldline.integrations._folder import Folder
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for
from foldline.typing import Message, Messages

__all__ = ["FoldPlugin"]


class _Contents(Codec):
    """Contents of Gemini."""

    format = "gemini"

    def dicts(self, message: Any) -> Sequence[Message]:
        """The content as the API's JSON."""
        return (message.model_dump(by_alias=True, exclude_none=True, mode="json"),)

    def summary(self, message: Message) -> Any:
        """A new content."""
        return types.Content.model_validate(message)

    def edited(self, original: Any, dicts: Sequence[Message], kept: Sequence[tuple[int, Message]]) -> Any:
        """A copy whose changed parts are new; the others are the original's."""
        old, new = dicts[0]["parts"], kept[0][1]["parts"]
        known = {id(part): made for part, made in zip(old, original.parts)}
        parts = [known[id(part)] if id(part) in known else types.Part.model_validate(part) for part in new]
        return original.model_copy(update={"parts": parts})


class FoldPlugin(BasePlugin):
    """Folds the contents of each request of a model. The events of the session stay.

    Tools and system instruction are counted as they are in each request. A pin is a predicate over `types.Content`.

    Args:
        name: Its name among the plugins of a runner.
        key: The session of a request, from its context. Default: the session's id and the agent's name.
        **options: See `AdapterOptions`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(
        self,
        *,
        name: str = "foldline",
        key: Callable[[CallbackContext], str | None] | None = None,
        **options: Unpack[AdapterOptions],
    ) -> None:
        super().__init__(name=name)
        given: dict[str, Any] = dict(options)
        pins = pins_for(given.pop("pins", ()))
        self._folder = Folder(_Contents(), compactor_for(**given), pins)
        self._key = _session_of if key is None else key

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Folds the contents of a request."""
        if getattr(llm_request, "previous_interaction_id", None):  # the provider keeps the history
            return
        folded = await self._folder.afold(
            llm_request.contents,
            session=self._key(callback_context),
            tools=_tools(llm_request.config),
            system=_system(llm_request.config),
        )
        if folded.changed:
            llm_request.contents = folded.messages


def _session_of(context: CallbackContext) -> str | None:
    """The session, and the agent: each agent of a session sends contents of its own."""
    return f"{context.session.id}|{context.agent_name}"


def _tools(config: Any) -> Messages | None:
    given = [tool for tool in getattr(config, "tools", None) or () if isinstance(tool, types.Tool)]
    return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in given] or None


def _system(config: Any) -> str | Messages | None:
    """The system instruction: a text, parts, or a content."""
    given: Any = getattr(config, "system_instruction", None)
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, types.Content):
        given = given.parts
    parts = given if isinstance(given, list) else [given]
    found: list[Message] = []
    for part in parts or ():
        if isinstance(part, types.Part):
            found.append(part.model_dump(by_alias=True, exclude_none=True, mode="json"))
        elif isinstance(part, str):
            found.append({"text": part})
        elif isinstance(part, dict):
            found.append(part)
    return found or None
