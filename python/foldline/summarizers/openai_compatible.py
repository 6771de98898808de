"""A model at an HTTP endpoint compatible with OpenAI's ``POST /chat/completions``."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast
from urllib.parse import urlsplit

from foldline.errors import ConfigError, SummaryError
from foldline.summarizers._remote.answers import ChatAnswer
from foldline.summarizers._remote.chat import chat_messages, chat_tools
from foldline.summarizers._remote.client import http_client
from foldline.summarizers._remote.failures import Failure, of_answered_error, of_connection, of_status
from foldline.summarizers._remote.remote import ModelRequest, RemoteModel, extra_package
from foldline.typing import Completion, Format

if TYPE_CHECKING:
    import httpx2

__all__ = ["OpenAICompatible"]

_OPENAI = "https://api.openai.com/v1"
#: Bytes read of an error body.
_ERROR_BYTES = 64 * 1024
#: Largest event of a stream, in bytes.
_EVENT_BYTES = 2**20


class OpenAICompatible(RemoteModel):
    """Calls a model over HTTP: OpenAI, or a compatible server (llama.cpp, vLLM, Ollama, …).

    Usable directly as ``summarizer``. One deadline covers the whole call: connecting, waiting, streaming, and up to
    ``max_attempts`` tries after 408, 409, 429, 5xx and failed connections. ``Retry-After`` is honored; if it exceeds
    the deadline, the call fails at once. Redirects are not followed. Proxies come from the environment, except for
    loopback addresses, which are reached directly.

    The key is never shown; a key from the environment is not pickled either. It is sent to the given ``base_url``,
    whatever that is.

    Args:
        model: Name of the model.
        base_url: Address of the endpoint, without ``/chat/completions``. Default: ``OPENAI_BASE_URL``, else OpenAI's.
        api_key: The key; ``""`` for none. Default: ``OPENAI_API_KEY``.
        timeout_s: Seconds for a whole call, including retries and waiting for a slot.
        stream: Whether to request a stream. The answer is drained before use in any case.
        max_attempts: Maximum tries of a call.
        max_bytes: Maximum size of an answer, decompressed.
        temperature: Temperature of the request. Default: not sent.
        requests_per_minute: Maximum requests per minute, evenly spaced.
        max_concurrency: Maximum concurrent requests. Both limits apply to this object in this process.
        max_tokens_field: Name of the output limit. Default: ``max_completion_tokens`` for OpenAI, else ``max_tokens``.
        thinking_tokens: Tokens allowed for thinking in addition to the answer.
        headers: Further headers; never shown.
        extra_body: Further fields of the request; None removes a field.
        transport: Sends the requests instead of the network. Runs on another thread's event loop.

    Raises:
        ConfigError: An option is out of range, OpenAI's endpoint has no key, or the extra ``llm`` is missing.

    Examples:
        >>> import foldline as fl
        >>> model = fl.summarizers.OpenAICompatible("qwen3", base_url="http://localhost:8080/v1", api_key="secret")
        >>> model
        OpenAICompatible('qwen3', base_url='http://localhost:8080/v1')
    """

    dialect: ClassVar[Format | None] = "openai_chat"
    needs: ClassVar = (("httpx2", "llm"), ("stamina", "llm"))

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        *,
        stream: bool = True,
        max_attempts: int = 3,
        max_bytes: int = 16 * 2**20,
        temperature: float | None = None,
        requests_per_minute: float | None = None,
        max_concurrency: int | None = None,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None,
        thinking_tokens: int = 0,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(
            model,
            timeout_s=timeout_s,
            max_attempts=max_attempts,
            max_bytes=max_bytes,
            temperature=temperature,
            requests_per_minute=requests_per_minute,
            max_concurrency=max_concurrency,
            thinking_tokens=thinking_tokens,
        )
        self.base_url = _checked_url(base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI)
        self.stream = bool(stream)
        is_openais = self.base_url == _OPENAI
        self.max_tokens_field = max_tokens_field or ("max_completion_tokens" if is_openais else "max_tokens")
        if self.max_tokens_field not in ("max_tokens", "max_completion_tokens"):
            raise ConfigError("must be max_tokens or max_completion_tokens", code="bad_field", path="max_tokens_field")
        self._api_key = None if api_key is None else _checked_key(api_key)
        self._headers = _checked_headers(headers or {})
        self._extra_body = dict(extra_body or {})
        self._transport = transport
        if is_openais and not self._key():
            raise ConfigError("no key is given, and OPENAI_API_KEY is not set", code="missing_api_key", path="api_key")

    def __repr__(self) -> str:
        return f"OpenAICompatible({self.model!r}, base_url={self.base_url!r})"

    def _key(self) -> str:
        return _checked_key(os.environ.get("OPENAI_API_KEY", "")) if self._api_key is None else self._api_key

    def _open(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        client = http_client(self.max_bytes, transport=self._transport)
        return client, client.aclose

    def _body(self, request: ModelRequest) -> bytes:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": chat_messages(request),
            **chat_tools(request),
            self.max_tokens_field: request.max_tokens + self.thinking_tokens,
            "temperature": self.temperature,
            "stream": self.stream,
            "stream_options": {"include_usage": True} if self.stream else None,
            **self._extra_body,
        }
        body = {name: value for name, value in body.items() if value is not None}
        with suppress(TypeError, ValueError, RecursionError):
            # Lone surrogates, which UTF-8 cannot encode, are sent as question marks.
            return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        raise SummaryError("the request cannot be written as JSON", code="bad_request")

    async def _ask(self, client: httpx2.AsyncClient, request: ModelRequest, left_s: float) -> Completion:  # noqa: ARG002
        httpx = extra_package("httpx2", "llm")
        headers = {"content-type": "application/json", **self._headers}
        if key := self._key():
            headers["authorization"] = f"Bearer {key}"
        content = self._body(request)
        failure: Failure
        answered = False
        try:
            url = f"{self.base_url}/chat/completions"
            async with client.stream("POST", url, content=content, headers=headers) as response:
                answered = True
                return await self._answer(response)
        except httpx.SSEError:
            failure = Failure(SummaryError("an event of the stream is too large", code="event_too_large"))
        except httpx.DecodingError:
            failure = Failure(SummaryError("the answer cannot be decompressed", code="bad_compression"))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            failure = of_connection(error, answered=answered)
        raise failure

    async def _answer(self, response: httpx2.Response) -> Completion:
        if response.status_code != 200:
            raise of_status(response.status_code, response.headers, await _error_body(response))
        answer = ChatAnswer(self.model)
        # Decided by the response, not the request: some endpoints only stream, some never do.
        if response.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream":
            async with aclosing(_events(response)) as events:
                async for event in events:
                    answer.add(event)
        else:
            answer.add(_object(await response.aread(), "the answer"))
        return answer.completion()


async def _events(response: httpx2.Response) -> AsyncGenerator[dict[str, Any]]:
    """The chunks of a stream."""
    source = extra_package("httpx2", "llm").EventSource(response, max_event_size=_EVENT_BYTES)
    async with aclosing(aiter(source)) as events:
        async for event in events:
            data = event.data.strip()
            if data == "[DONE]":
                return
            if data:
                chunk = _object(data.encode("utf-8", "replace"), "an event of the stream", code="stream_error")
                if event.event == "error":
                    raise of_answered_error(chunk, code="stream_error")
                yield chunk


def _object(data: bytes, what: str, *, code: str = "provider_error") -> dict[str, Any]:
    """The JSON object of an answer.

    Raises:
        SummaryError: It is not an object (``not_json``), or it is an error of the provider.
    """
    value: object = None
    with suppress(ValueError, RecursionError):  # not chained: the error contains the answer
        value = json.loads(data.decode("utf-8-sig"))
    if not isinstance(value, dict):
        raise SummaryError(f"{what} is not a JSON object", code="not_json")
    if value.get("error"):
        raise of_answered_error(value, code=code)
    return cast(dict[str, Any], value)


async def _error_body(response: httpx2.Response) -> object:
    """The beginning of an error body, as JSON or else as text."""
    data = b""
    # If the body breaks off, the status still counts.
    with suppress(extra_package("httpx2", "llm").HTTPError, SummaryError):
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                data += piece[:_ERROR_BYTES]
                if len(data) > _ERROR_BYTES:
                    break
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def _checked_url(url: object) -> str:
    parts = None
    with suppress(ValueError):
        parts = urlsplit(str(url))
        _ = parts.port  # raises if invalid
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("must be an http or https URL", code="bad_url", path="base_url")
    if "@" in parts.netloc or parts.query or parts.fragment:
        # They would appear in reprs and logs.
        raise ConfigError("must not contain a user, query or fragment", code="bad_url", path="base_url")
    return str(url).rstrip("/")


def _checked_key(key: object) -> str:
    if not isinstance(key, str) or not key.isascii() or not (key.isprintable() and " " not in key):
        raise ConfigError("must be printable ASCII without spaces", code="bad_api_key", path="api_key")
    return key


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for each in (*headers, *headers.values()):
        if not (_is_text(each) and each.isascii() and each.isprintable()):
            raise ConfigError("names and values must be printable ASCII", code="bad_header", path="headers")
    return {name.lower(): value for name, value in headers.items()}


def _is_text(value: object) -> bool:
    return isinstance(value, str)
