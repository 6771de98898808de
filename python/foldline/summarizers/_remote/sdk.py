"""Base of models called through an SDK's client."""

from __future__ import annotations

import inspect
import threading
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from foldline._util.threads import in_thread
from foldline.errors import SummaryError
from foldline.summarizers._remote.answers import Answer
from foldline.summarizers._remote.failures import Failure, of_answered_error, of_connection, of_status
from foldline.summarizers._remote.remote import ModelRequest, RemoteModel, extra_package
from foldline.summarizers.rendering import text_of
from foldline.typing import Completion, Messages

__all__ = ["SdkModel", "dumped", "failure_of", "nothing", "split_system"]

_DEPTH = 8


class SdkModel(RemoteModel):
    """A model called through a given client, or a new one.

    Answers are always streamed and drained, which every client supports and which can be cancelled. The SDK's own
    retries are disabled, since only this package's retries respect the deadline.

    A new client is asynchronous and runs on the background loop (`RemoteModel`): total deadline and byte limit are as
    in `OpenAICompatible`. A given synchronous client runs in a thread, which on cancellation is abandoned and ends with
    the next piece or the SDK's read timeout. A given asynchronous client runs on the caller's event loop, with
    `acomplete` only. For given clients only the text is bounded, not what the SDK decompresses before.
    """

    def __init__(
        self,
        model: str,
        client: Any = None,
        *,
        client_options: Mapping[str, Any] | None = None,
        request_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self._client = client
        self._client_options = dict(client_options or {})
        self._request_options = dict(request_options or {})

    # For subclasses.

    @abstractmethod
    def _new_client(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        """A new asynchronous client, and its closer."""

    def _limited(self, client: Any, left_s: float) -> Any:
        """A given client without retries, and with ``left_s`` as read timeout."""
        return client.with_options(max_retries=0, timeout=left_s)

    @abstractmethod
    def _answer(self) -> Answer:
        """An empty answer to fill."""

    @abstractmethod
    def _start(self, client: Any, request: ModelRequest) -> Any:
        """Requests a stream; returns an awaitable for an asynchronous client."""

    @abstractmethod
    def _take(self, answer: Any, piece: Any) -> None:
        """Adds a piece of a stream to an answer."""

    def _is_async(self, client: Any) -> bool:
        """Whether a client is asynchronous."""
        return hasattr(client, "__aenter__")

    # For callers.

    def complete(
        self,
        messages: Messages,
        *,
        max_tokens: int,
        timeout_s: float | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
    ) -> Completion:
        """As `RemoteModel.complete`.

        Raises:
            SummaryError: Also for a given asynchronous client (``async_summarizer``): it belongs to its own event loop.
        """
        if self._client is not None and self._is_async(self._client):
            raise SummaryError("an asynchronous client needs its event loop", code="async_summarizer")
        return super().complete(messages, max_tokens=max_tokens, timeout_s=timeout_s, tools=tools, system=system)

    async def acomplete(
        self,
        messages: Messages,
        *,
        max_tokens: int,
        timeout_s: float | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
    ) -> Completion:
        """As `RemoteModel.acomplete`."""
        if self._client is not None and self._is_async(self._client):
            request = self._request(messages, max_tokens, tools, system)
            return await self._complete(request, self._deadline(timeout_s))
        return await super().acomplete(messages, max_tokens=max_tokens, timeout_s=timeout_s, tools=tools, system=system)

    # Internals.

    def _open(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        return self._new_client() if self._client is None else (self._client, nothing)

    async def _ask(self, client: Any, request: ModelRequest, left_s: float) -> Completion:
        if client is self._client:
            client = self._limited(client, left_s)
        answer = self._answer()
        request = replace(request, max_tokens=request.max_tokens + self.thinking_tokens)
        failure: Failure | None = None
        try:
            if self._is_async(client):
                await self._adrain(answer, self._start(client, request))
            else:
                cancelled = threading.Event()
                await in_thread(
                    lambda: self._drain(answer, self._start(client, request), cancelled),
                    name="foldline-model",
                    cancelled=cancelled,
                )
        except SummaryError:
            raise
        except Exception as error:  # noqa: BLE001 - `failure_of` classifies any SDK error
            failure = failure_of(error, answered=bool(answer.texts))
        if failure is not None:
            raise failure
        return answer.completion()

    def _drain(self, answer: Answer, stream: Any, cancelled: threading.Event) -> None:
        try:
            for piece in stream:
                self._add(answer, piece)
                if cancelled.is_set():
                    return
        finally:
            with suppress(AttributeError):
                stream.close()

    async def _adrain(self, answer: Answer, started: Any) -> None:
        stream = await started if inspect.isawaitable(started) else started
        try:
            async for piece in stream:
                self._add(answer, piece)
        finally:
            # SDK streams have `close`, generators `aclose`.
            close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
            if close is not None:
                await close()

    def _add(self, answer: Answer, piece: Any) -> None:
        before = len(answer.texts)
        self._take(answer, piece)
        answer.size += sum(map(len, answer.texts[before:]))
        if answer.size > self.max_bytes:
            raise SummaryError(f"the answer has more than {self.max_bytes} bytes", code="response_too_large")


async def nothing() -> None:
    """Closer of a given client: a no-op, since its owner closes it."""


def dumped(piece: Any) -> Mapping[str, Any]:
    """A piece of a stream as a dict."""
    if isinstance(piece, Mapping):
        return piece
    value: Mapping[str, Any] = piece.model_dump(exclude_none=True, warnings=False)
    return value


def split_system(messages: Messages) -> tuple[str, list[Mapping[str, Any]]]:
    """The text of the system messages, and the other messages."""
    system = [text_of(message) for message in messages if message.get("role") in ("system", "developer")]
    return "\n\n".join(system), [each for each in messages if each.get("role") not in ("system", "developer")]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_DEPTH):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def failure_of(error: Exception, *, answered: bool) -> Failure:
    """Classifies an SDK error by its status, its causes and its name."""
    for each in _chain(error):
        if isinstance(each, SummaryError):
            return Failure(each)
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if isinstance(status, int) and status >= 300:
        headers = getattr(getattr(error, "response", None), "headers", None)
        return of_status(status, headers if isinstance(headers, Mapping) else {}, body)
    names = {type(each).__name__ for each in _chain(error)}
    if "DecodingError" in names:
        return Failure(SummaryError("the answer cannot be decompressed", code="bad_compression"))
    if names & {"APITimeoutError", "ReadTimeout", "ConnectTimeout", "WriteTimeout", "PoolTimeout", "TimeoutException"}:
        return Failure(SummaryError("no answer came in time", code="timeout"))
    if "SSEError" in names:
        return Failure(SummaryError("an event of the stream is too large", code="event_too_large"))
    httpx2 = extra_package("httpx2", "llm")
    for each in _chain(error):
        if isinstance(each, (httpx2.TransportError, OSError)):
            # A failed read means that an answer had begun.
            return of_connection(each, answered=answered or isinstance(each, httpx2.ReadError))
    if body is not None or isinstance(status, int):
        return Failure(of_answered_error(body, code="stream_error"))
    if names & {"JSONDecodeError", "UnknownApiResponseError", "APIResponseValidationError"}:
        return Failure(SummaryError("the answer is not JSON", code="not_json"))
    return Failure(SummaryError(f"the client raised {type(error).__name__}", code="client_failed"))
