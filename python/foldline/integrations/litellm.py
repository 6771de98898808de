"""LiteLLM: a hook for the proxy (``callbacks: module.hook``), and for calls of the library.

Examples:
    A module that the proxy's configuration names, ``litellm_settings: {callbacks: hooks.fold}``::

        fold = FoldHook(model="gpt-5")

    In a program, for ``await litellm.acompletion(...)``::

        litellm.callbacks = [FoldHook(model="gpt-5")]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from litellm.integrations.custom_logger import CustomLogger

from foldline.integrations._codec import Dicts
from foldline.integrations._folder import Folder
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for

__all__ = ["FoldHook"]

#: Kinds of calls, and the list that each has: another one is left alone.
_CHAT = ("completion", "acompletion")
_ANTHROPIC = ("anthropic_messages",)
_RESPONSES = ("responses", "aresponses")

#: Names of a session in the metadata of a request.
_SESSION_KEYS = ("session_id", "litellm_session_id", "thread_id", "conversation_id", "trace_id")


class FoldHook(CustomLogger):
    """Folds the messages of each request that passes through the proxy or the library.

    Chat completions, Anthropic's messages and OpenAI's Responses are folded, each by its own rules; other kinds of
    calls are left alone. Tools and system prompt are counted as they are in each request.

    Args:
        key: The session of a request, from its data. Default: the session that the metadata names, else the beginning
            of the messages.
        **options: See `AdapterOptions`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(
        self, *, key: Callable[[Mapping[str, Any]], str | None] | None = None, **options: Unpack[AdapterOptions]
    ) -> None:
        super().__init__()
        given: dict[str, Any] = dict(options)
        pins = pins_for(given.pop("pins", ()))
        compactor = compactor_for(**given)
        self._chat = Folder(Dicts("openai_chat"), compactor, pins)
        self._anthropic = Folder(Dicts("anthropic"), compactor, pins)
        self._responses = Folder(Dicts("openai_responses"), compactor, pins)
        self._key = _session_of if key is None else key

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """The request as the proxy sends it on."""
        del user_api_key_dict, cache
        return await self._folded(data, call_type)

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """The arguments of a call of the library."""
        return await self._folded(kwargs, str(getattr(call_type, "value", call_type)))

    async def _folded(self, data: dict[str, Any], call_type: str) -> dict[str, Any]:
        name = "input" if call_type in _RESPONSES else "messages"
        folder = self._folder_for(call_type)
        messages = data.get(name)
        if folder is None or not isinstance(messages, list):
            return data
        if data.get("previous_response_id"):  # the provider keeps the history
            return data
        system = data.get("instructions") if call_type in _RESPONSES else data.get("system")
        folded = await folder.afold(
            messages, session=self._key(data), tools=data.get("tools") or data.get("functions"), system=system
        )
        if folded.changed:
            data[name] = folded.messages
        return data

    def _folder_for(self, call_type: str) -> Folder | None:
        if call_type in _CHAT:
            return self._chat
        if call_type in _ANTHROPIC:
            return self._anthropic
        return self._responses if call_type in _RESPONSES else None


def _session_of(data: Mapping[str, Any]) -> str | None:
    """The session that a request names. Without one, folds are found by the beginning of its messages."""
    for holder in (data, data.get("metadata"), data.get("litellm_metadata"), data.get("extra_body")):
        if isinstance(holder, Mapping):
            for name in _SESSION_KEYS:
                value = holder.get(name)
                if isinstance(value, str) and value:
                    return value
    return None
