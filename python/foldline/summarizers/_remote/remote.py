"""Base of models called over a network: one deadline, one layer of retries, limits."""

from __future__ import annotations

import asyncio
import importlib
import math
import os
import random
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Self, TypeGuard
from weakref import WeakKeyDictionary

from foldline.errors import ConfigError, SummaryError
from foldline.summarizers._remote import background_loop
from foldline.summarizers._remote.failures import Failure
from foldline.typing import Completion, Format, Messages

__all__ = ["ModelRequest", "RemoteModel", "checked_count", "extra_package"]

#: Backoff before the first retry, in seconds; doubles per try, with up to half as much random jitter.
_WAIT_S = 0.5
_MOST_WAIT_S = 8.0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model.

    Attributes:
        messages: The messages: text messages, or an agent's own in the model's dialect.
        max_tokens: Maximum tokens of the answer.
        tools: Tool schemas in the model's dialect; no tool may be called.
        system: The system prompt, if it is outside the messages.
    """

    messages: Messages
    max_tokens: int
    tools: Messages | None = None
    system: str | Messages | None = None


class _Held:
    """Client and limits of one event loop."""

    def __init__(self, model: RemoteModel) -> None:
        self.client, self.close = model._open()
        self.slots = asyncio.Semaphore(model.max_concurrency) if model.max_concurrency else None
        self.rate: Any = None
        if model.requests_per_minute:
            # A limiter of one at a time spaces requests evenly, and the first does not wait.
            self.rate = extra_package("aiolimiter", "llm").AsyncLimiter(1, 60 / model.requests_per_minute)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Waits until a request may be sent; the block occupies a slot."""
        async with self.slots or nullcontext():
            if self.rate is not None:
                await self.rate.acquire()
            yield


class RemoteModel(ABC):
    """A model behind a network. Subclasses open a client and make single requests.

    Calls run on the process's background loop: `complete` blocks, `acomplete` awaits. So connections are shared by all
    threads and event loops. Objects may be pickled and used after a fork; connections are then opened again.
    """

    #: Required packages, and the extra that installs each.
    needs: ClassVar[tuple[tuple[str, str], ...]] = (("stamina", "llm"),)
    #: The dialect of an agent's own request that it answers; None if it takes text messages only.
    dialect: ClassVar[Format | None] = None

    def __init__(
        self,
        model: str,
        *,
        timeout_s: float = 60.0,
        max_attempts: int = 3,
        max_bytes: int = 16 * 2**20,
        requests_per_minute: float | None = None,
        max_concurrency: int | None = None,
        temperature: float | None = None,
        thinking_tokens: int = 0,
    ) -> None:
        if not _is_name(model):
            raise ConfigError("must be the name of a model", code="bad_model", path="model")
        self.model = model
        self.timeout_s = _checked_seconds(timeout_s)
        self.max_attempts = checked_count(max_attempts, "max_attempts")
        self.max_bytes = checked_count(max_bytes, "max_bytes")
        self.max_concurrency = None if max_concurrency is None else checked_count(max_concurrency, "max_concurrency")
        if requests_per_minute is not None and not _is_positive(requests_per_minute):
            raise ConfigError("must be a number above 0", code="bad_rate", path="requests_per_minute")
        self.requests_per_minute = requests_per_minute
        if temperature is not None and not (_is_number(temperature) and 0 <= temperature <= 2):
            raise ConfigError("must be from 0 to 2", code="bad_temperature", path="temperature")
        self.temperature = temperature
        self.thinking_tokens = checked_count(thinking_tokens, "thinking_tokens", least=0)
        for package, extra in self.needs:
            extra_package(package, extra)
        self._begin()

    def _begin(self) -> None:
        """Initializes without open connections."""
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, _Held] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_held", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    # For subclasses.

    @abstractmethod
    def _open(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        """A client for the running event loop, and its closer. Neither may refer to this object."""

    @abstractmethod
    async def _ask(self, client: Any, request: ModelRequest, left_s: float) -> Completion:
        """Makes one try.

        Raises:
            SummaryError: The answer is unusable, and a retry would not help.
            Failure: The try failed; the failure says whether a retry may help.
        """

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
        """Calls the model and blocks until the answer.

        Args:
            messages: Text messages, each with ``role`` and ``content``; or messages in the model's ``dialect``.
            max_tokens: Maximum tokens of the answer.
            timeout_s: Seconds for the whole call. Default and upper limit: the model's ``timeout_s``.
            tools: Tool schemas in the model's ``dialect``. They are sent, but no tool may be called.
            system: The system prompt in the model's ``dialect``, if it is outside the messages.

        Raises:
            ConfigError: ``tools`` or ``system`` for a model without a ``dialect``.
            SummaryError: No usable answer; see ``code``.
        """
        request = self._request(messages, max_tokens, tools, system)
        return background_loop.run(self._complete(request, self._deadline(timeout_s)))

    async def acomplete(
        self,
        messages: Messages,
        *,
        max_tokens: int,
        timeout_s: float | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
    ) -> Completion:
        """As `complete`, awaited on an event loop. Cancelling it closes the connection."""
        request = self._request(messages, max_tokens, tools, system)
        return await background_loop.arun(self._complete(request, self._deadline(timeout_s)))

    def close(self) -> None:
        """Closes the connections. A later call opens new ones."""
        background_loop.run(self._release())

    async def aclose(self) -> None:
        """As `close`, awaited on an event loop."""
        await background_loop.arun(self._release())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Internals.

    def _request(
        self, messages: Messages, max_tokens: int, tools: Messages | None, system: str | Messages | None
    ) -> ModelRequest:
        if self.dialect is None and (tools is not None or system is not None):
            raise ConfigError("takes text messages only", code="no_dialect", path="model")
        return ModelRequest(messages, max_tokens, tools, system)

    def _deadline(self, timeout_s: float | None) -> float:
        seconds = self.timeout_s if timeout_s is None else min(self.timeout_s, timeout_s)
        return time.monotonic() + seconds

    async def _complete(self, request: ModelRequest, deadline: float) -> Completion:
        stamina = extra_package("stamina", "llm")
        error = SummaryError("no answer came in time", code="timeout")
        waiting = _Waiting(deadline)
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                held = self._here()
                async for attempt in stamina.retry_context(waiting, attempts=self.max_attempts, timeout=None):
                    with attempt:
                        waiting.tries += 1
                        async with held.slot():
                            return await self._ask(held.client, request, deadline - time.monotonic())
        except TimeoutError:
            pass
        except Failure as failure:
            error = failure.error
        # Raised outside the handlers, so that no client error is chained: those contain the request and the key.
        raise error

    def _here(self) -> _Held:
        """Client and limits for the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            held = self._held.get(loop)
            if held is None:
                self._held[loop] = held = _Held(self)
                forget = background_loop.on_exit(held.close)
                # Closes the connections of an object dropped without `close`.
                finalizer = weakref.finalize(self, background_loop.let_go, held.close, forget, os.getpid())
                finalizer.atexit = False
        return held

    async def _release(self) -> None:
        with self._lock:
            held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held.close()


class _Waiting:
    """Retry policy: seconds to wait after a failed try, or False to stop."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.tries = 0

    def __call__(self, error: Exception) -> bool | float:
        if not isinstance(error, Failure) or not error.again:
            return False
        wait_s = error.wait_s
        if wait_s is None:
            backoff_s = min(_MOST_WAIT_S, _WAIT_S * 2 ** (self.tries - 1))
            wait_s = backoff_s * random.uniform(1, 1.5)  # noqa: S311 - spreads the retries of many callers
        # Waiting until the deadline would be in vain.
        return wait_s if wait_s < self.deadline - time.monotonic() else False


def extra_package(name: str, extra: str) -> ModuleType:
    """Imports a package of an extra.

    Raises:
        ConfigError: It is not installed (``missing_extra``).
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(f"needs the extra {extra}", code="missing_extra", path="summarizer") from None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def checked_count(value: object, path: str, *, least: int = 1) -> int:
    """Returns a count of at least ``least``, or raises a `ConfigError`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"must be a whole number from {least} on", code="bad_count", path=path)
    return value


def _checked_seconds(value: object) -> float:
    if not _is_positive(value):
        raise ConfigError("must be a number of seconds above 0", code="bad_timeout", path="timeout_s")
    return float(value)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_positive(value: object) -> TypeGuard[float]:
    return _is_number(value) and value > 0
