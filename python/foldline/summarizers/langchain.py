"""Models called through LangChain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foldline.errors import ConfigError
from foldline.summarizers._remote import background_loop
from foldline.summarizers._remote.answers import Answer
from foldline.summarizers._remote.remote import ModelRequest
from foldline.summarizers._remote.sdk import SdkModel, nothing
from foldline.typing import Completion, Messages

__all__ = ["LangChainModel"]

#: The tag of calls whose chunks LangGraph does not add to the stream of messages that a user sees.
_NOT_STREAMED = ("nostream",)

#: Keys under which integrations store the finish reason.
_ENDS = ("finish_reason", "stop_reason", "done_reason")


class LangChainModel(SdkModel):
    """Calls a chat model of LangChain, or any object with ``stream`` and ``astream``.

    The answer is drained as a stream; a model that cannot stream answers in one piece. Retries are the chat model's own
    (its ``max_retries``); none are added. If the integration does not report a finish reason, the answer is taken as
    complete. A call from a graph of LangGraph is tagged, so that the summary is not streamed to the user.

    Args:
        chat_model: The chat model. `acomplete` uses it on the caller's event loop, `complete` in a thread.
        max_tokens_field: The integration's argument for the output limit: ``max_output_tokens`` for Google,
            ``num_predict`` for Ollama. None for a model with a fixed limit.
        request_options: Further arguments of the call.
        options: As for `OpenAICompatible`: ``timeout_s``, ``max_bytes``, ``requests_per_minute``,
            ``max_concurrency``, ``thinking_tokens``. The temperature is the chat model's.

    Raises:
        ConfigError: An option is out of range, or the extra ``llm`` is missing.
    """

    def __init__(
        self,
        chat_model: Any,
        *,
        max_tokens_field: str | None = "max_tokens",
        request_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if not all(callable(getattr(chat_model, name, None)) for name in ("stream", "astream")):
            raise ConfigError("must be a chat model", code="bad_model", path="chat_model")
        for name in ("max_attempts", "temperature"):
            if name in options:
                raise ConfigError("is an option of the chat model", code="bad_option", path=name)
        named = (getattr(chat_model, name, None) for name in ("model_name", "model"))
        name = next((each for each in named if isinstance(each, str) and each), type(chat_model).__name__)
        super().__init__(name, chat_model, request_options=request_options, max_attempts=1, **options)
        self.max_tokens_field = max_tokens_field

    async def acomplete(
        self,
        messages: Messages,
        *,
        max_tokens: int,
        timeout_s: float | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
    ) -> Completion:
        """As `RemoteModel.acomplete`, on the caller's event loop."""
        return await self._complete(self._request(messages, max_tokens, tools, system), self._deadline(timeout_s))

    def _new_client(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        raise NotImplementedError

    def _open(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        return _Half(self._client, is_async=not background_loop.is_here()), nothing

    def _is_async(self, client: Any) -> bool:
        return isinstance(client, _Half) and client.is_async

    def _answer(self) -> Answer:
        return _LangChainAnswer(self.model)

    def _start(self, client: _Half, request: ModelRequest) -> Any:
        fields = dict(self._request_options)
        if self.max_tokens_field is not None:
            fields.setdefault(self.max_tokens_field, request.max_tokens)
        if callable(getattr(client.chat_model, "with_config", None)):  # a runnable: others do not know the argument
            fields.setdefault("config", {"tags": list(_NOT_STREAMED)})
        stream = client.chat_model.astream if client.is_async else client.chat_model.stream
        return stream([{"role": each["role"], "content": each["content"]} for each in request.messages], **fields)

    def _take(self, answer: _LangChainAnswer, piece: Any) -> None:
        answer.add(piece)


@dataclass(frozen=True, slots=True)
class _Half:
    """A chat model, and whether to use its asynchronous half."""

    chat_model: Any
    is_async: bool


class _LangChainAnswer(Answer):
    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._is_there = False

    def add(self, piece: Any) -> None:
        """Adds a chunk."""
        self._is_there = True
        self.add_text(getattr(piece, "content", None))
        calls = (getattr(piece, name, None) for name in ("tool_calls", "tool_call_chunks", "invalid_tool_calls"))
        self.called_tool = self.called_tool or any(calls)
        more = getattr(piece, "additional_kwargs", None)
        self.refused = self.refused or bool(isinstance(more, Mapping) and more.get("refusal"))
        told = getattr(piece, "response_metadata", None)
        if isinstance(told, Mapping):
            for name in _ENDS:
                self.end_with(told.get(name))
            self.model = str(told.get("model_name") or told.get("model") or self.model)
        usage = getattr(piece, "usage_metadata", None)
        if isinstance(usage, Mapping):
            # Each chunk has its own counts; they are added up, as LangChain does.
            read, written = usage.get("input_tokens"), usage.get("output_tokens")
            self.add_usage((self.input_tokens or 0) + (read or 0), (self.output_tokens or 0) + (written or 0))
            details = usage.get("input_token_details")
            if isinstance(details, Mapping):
                cached, created = details.get("cache_read"), details.get("cache_creation")
                if cached is not None:
                    self.add_cache_usage((self.cache_read_tokens or 0) + cached)
                if created is not None:
                    self.add_cache_usage(None, (self.cache_write_tokens or 0) + created)

    def completion(self) -> Completion:
        """As `Answer.completion`; without a finish reason the answer counts as complete."""
        if self._is_there and self.end is None:
            self.end = "stop"
        return super().completion()
