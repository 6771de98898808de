"""CrewAI: a hook that folds the messages of an agent before each call of its model.

Examples:
    Before the crew is made, since executors copy the hooks when they are made::

        FoldHook(model="gpt-5").register()
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from crewai.hooks import (
    LLMCallHookContext,
    register_before_llm_call_hook,
    unregister_before_llm_call_hook,
)

from foldline.integrations._codec import Dicts
from foldline.integrations._folder import Folder
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for
from foldline.typing import Message, Messages

__all__ = ["FoldHook"]


class FoldHook:
    """Folds the messages of an executor in place before each call of its model.

    Tools are counted as they are at each call. CrewAI calls its hooks without an event loop, also in asynchronous
    crews, so that a summarizer runs in the thread of the call.

    Args:
        **options: See `AdapterOptions`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(self, **options: Unpack[AdapterOptions]) -> None:
        given: dict[str, Any] = dict(options)
        pins = pins_for(given.pop("pins", ()))
        self._folder = Folder(Dicts("openai_chat"), compactor_for(**given), pins)
        self._sessions: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._count = 0

    def register(self) -> Callable[[], None]:
        """Adds the hook for all executors made from now on; the returned function removes it."""
        register_before_llm_call_hook(self)

        def remove() -> None:
            unregister_before_llm_call_hook(self)

        return remove

    def __call__(self, context: LLMCallHookContext) -> None:
        """Folds the messages of a call."""
        folded = self._folder.fold(
            context.messages, session=self._session_of(context.executor), tools=_tools(context.executor)
        )
        if folded.changed:
            context.messages[:] = folded.messages

    def _session_of(self, executor: Any) -> str | None:
        """A name for each executor."""
        if executor is None:
            return None
        try:
            known = self._sessions.get(executor)
            if known is None:
                self._count += 1
                known = self._sessions[executor] = f"executor {self._count}"
        except TypeError:  # it cannot be hashed or referred to weakly
            return None
        return known


def _tools(executor: Any) -> Messages | None:
    """The schemas of an executor's tools."""
    given: Sequence[Any] = getattr(executor, "original_tools", None) or getattr(executor, "tools", None) or ()
    return [_schema(tool) for tool in given] or None


def _schema(tool: Any) -> Message:
    arguments: Any = getattr(tool, "args_schema", None)
    schema = arguments.model_json_schema() if hasattr(arguments, "model_json_schema") else {}
    function = {"name": str(tool.name), "description": str(tool.description), "parameters": schema}
    return {"type": "function", "function": function}
