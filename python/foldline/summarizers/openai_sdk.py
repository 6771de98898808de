"""Models called through OpenAI's SDK."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from foldline.summarizers._remote.answers import Answer, ChatAnswer
from foldline.summarizers._remote.chat import chat_messages, chat_tools
from foldline.summarizers._remote.client import http_client
from foldline.summarizers._remote.remote import ModelRequest, extra_package
from foldline.summarizers._remote.sdk import SdkModel, dumped
from foldline.typing import Format

__all__ = ["OpenAISDK"]


class OpenAISDK(SdkModel):
    """Calls a model through a client of the package `openai`, Azure's included.

    Args:
        model: Name of the model.
        client: An ``openai.OpenAI`` or ``openai.AsyncOpenAI`` (see `SdkModel` for the differences). Default: a new
            client, which reads key and address from the environment as the SDK does.
        client_options: Arguments for the new client, such as ``base_url`` and ``api_key``; never shown.
        request_options: Further arguments for ``chat.completions.create``.
        options: As for `OpenAICompatible`: ``timeout_s``, ``max_attempts``, ``max_bytes``, ``temperature``,
            ``requests_per_minute``, ``max_concurrency``, ``thinking_tokens``.

    Raises:
        ConfigError: An option is out of range, or the extra ``openai`` or ``llm`` is missing.

    Examples:
        >>> import foldline as fl
        >>> fl.summarizers.OpenAISDK("gpt-5-mini", client_options={"api_key": "secret"}, timeout_s=30)
        OpenAISDK('gpt-5-mini')
    """

    dialect: ClassVar[Format | None] = "openai_chat"
    needs: ClassVar = (("openai", "openai"), ("httpx2", "llm"), ("stamina", "llm"))

    def _new_client(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        options = {"http_client": http_client(self.max_bytes), "max_retries": 0, **self._client_options}
        client = extra_package("openai", "openai").AsyncOpenAI(**options)
        return client, client.close

    def _answer(self) -> Answer:
        return ChatAnswer(self.model)

    def _start(self, client: Any, request: ModelRequest) -> Any:
        is_openais = str(getattr(client, "base_url", "")).startswith("https://api.openai.com/")
        fields: dict[str, Any] = {"max_completion_tokens" if is_openais else "max_tokens": request.max_tokens}
        if self.temperature is not None:
            fields["temperature"] = self.temperature
        fields |= {"stream": True, "stream_options": {"include_usage": True}, **chat_tools(request)}
        fields |= self._request_options
        return client.chat.completions.create(model=self.model, messages=chat_messages(request), **fields)

    def _take(self, answer: ChatAnswer, piece: Any) -> None:
        answer.add(dumped(piece))
