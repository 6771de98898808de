"""Models called through Anthropic's SDK."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from foldline.summarizers._remote.answers import Answer
from foldline.summarizers._remote.client import http_client
from foldline.summarizers._remote.remote import ModelRequest, extra_package
from foldline.summarizers._remote.sdk import SdkModel, dumped, split_system
from foldline.typing import Format

__all__ = ["AnthropicSDK"]

_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicSDK(SdkModel):
    """Calls a model through a client of the package `anthropic`, Bedrock and Vertex included.

    Args:
        model: Name of the model.
        client: An ``anthropic.Anthropic`` or ``anthropic.AsyncAnthropic`` (see `SdkModel` for the differences).
            Default: a new client, which reads key and address from the environment as the SDK does.
        client_options: Arguments for the new client, such as ``base_url`` and ``api_key``; never shown.
        request_options: Further arguments for ``messages.create``.
        options: As for `OpenAICompatible`: ``timeout_s``, ``max_attempts``, ``max_bytes``, ``temperature``,
            ``requests_per_minute``, ``max_concurrency``, ``thinking_tokens``.

    Raises:
        ConfigError: An option is out of range, or the extra ``anthropic`` or ``llm`` is missing.

    Examples:
        >>> import foldline as fl
        >>> fl.summarizers.AnthropicSDK("claude-haiku-4-5", client_options={"api_key": "secret"})
        AnthropicSDK('claude-haiku-4-5')
    """

    dialect: ClassVar[Format | None] = "anthropic"
    needs: ClassVar = (("anthropic", "anthropic"), ("httpx2", "llm"), ("stamina", "llm"))

    def _new_client(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        options = {"http_client": http_client(self.max_bytes), "max_retries": 0, **self._client_options}
        client = extra_package("anthropic", "anthropic").AsyncAnthropic(**options)
        return client, client.close

    def _answer(self) -> Answer:
        return Answer(self.model)

    def _start(self, client: Any, request: ModelRequest) -> Any:
        text, others = split_system(request.messages)
        system = text if request.system is None else request.system
        fields: dict[str, Any] = {"system": system} if system else {}
        if request.tools:
            fields |= {"tools": list(request.tools), "tool_choice": {"type": "none"}}
        if self.temperature is not None:
            # Newer SDK versions do not have this argument, since newer models reject it.
            fields["extra_body"] = {"temperature": self.temperature}
        fields |= {"max_tokens": request.max_tokens, "stream": True, **self._request_options}
        return client.messages.create(model=self.model, messages=others, **fields)

    def _take(self, answer: Answer, piece: Any) -> None:
        event = dumped(piece)
        message, block, delta = (_mapping(event.get(name)) for name in ("message", "content_block", "delta"))
        if message:
            answer.model = str(message.get("model") or answer.model)
            usage = _mapping(message.get("usage"))
            read = [usage[name] for name in _READ if isinstance(usage.get(name), int)]
            answer.add_usage(sum(read) if read else None, usage.get("output_tokens"))
            answer.add_cache_usage(usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens"))
            answer.end_with(message.get("stop_reason"))
        answer.called_tool = answer.called_tool or block.get("type") == "tool_use"
        answer.add_text(block.get("text"))
        answer.add_text(delta.get("text"))
        answer.end_with(delta.get("stop_reason"))
        # The final usage is cumulative.
        answer.add_usage(None, _mapping(event.get("usage")).get("output_tokens"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
