"""The background event loop: one daemon thread per process that runs all model calls.

Connections belong to the event loop that opened them. With one loop per process they are pooled and shared between
functions, coroutines and threads; one deadline covers every step of a call (a blocking client can only limit single
reads); and cancelling closes the connection at once. Forked children start their own loop.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

from foldline.errors import SummaryError

__all__ = ["arun", "is_here", "let_go", "on_exit", "run", "submit"]

T = TypeVar("T")

#: An asynchronous function that closes a resource.
Closer: TypeAlias = Callable[[], Awaitable[object]]

#: Seconds for connections to close at process exit.
_EXIT_S = 2.0


class _PrivateLoop:
    """An event loop in a daemon thread, until the process ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="foldline-models", daemon=True)
        self.closers: set[Closer] = set()
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _finish(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*[close() for close in self.closers], return_exceptions=True)

    def stop(self) -> None:
        """Cancels running tasks, closes resources, and stops the loop."""
        with suppress(RuntimeError, TimeoutError, concurrent.futures.CancelledError):
            asyncio.run_coroutine_threadsafe(self._finish(), self.loop).result(_EXIT_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_EXIT_S)
        if not self.thread.is_alive():
            self.loop.close()


class _Here:
    """The state of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.private: _PrivateLoop | None = None
        #: Resources of parent processes, kept referenced: closing them would disturb shared connections.
        self.of_parents: list[object] = []

    def after_fork(self) -> None:
        """Resets the state in a child, where the parent's threads do not run."""
        self.lock = threading.Lock()
        if self.private is not None:
            self.of_parents.append(self.private)
            self.private = None

    def at_exit(self) -> None:
        """Stops the loop."""
        if self.private is not None:
            self.private.stop()

    def get(self) -> _PrivateLoop:
        """The loop of this process, started on first use."""
        with self.lock:
            if self.private is None:
                self.private = _PrivateLoop()
            return self.private


_HERE = _Here()
atexit.register(_HERE.at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HERE.after_fork)


def is_here() -> bool:
    """Whether the running event loop is the background loop."""
    private = _HERE.private
    return private is not None and private.loop is asyncio.get_running_loop()


def submit(coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Starts a coroutine on the background loop, in the caller's context."""
    return asyncio.run_coroutine_threadsafe(coroutine, _HERE.get().loop)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the background loop and blocks until its result. Ctrl-C cancels it.

    Raises:
        SummaryError: The call was cancelled, as at exit (``cancelled``), or runs on the background loop
            (``nested_call``).
    """
    if threading.current_thread() is _HERE.get().thread:
        coroutine.close()
        raise SummaryError("a blocking call on the background loop would never end", code="nested_call")
    future = submit(coroutine)
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise SummaryError("the call was cancelled", code="cancelled") from None
    finally:
        future.cancel()  # after Ctrl-C; a no-op if done


async def arun(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the background loop and awaits its result on another. Cancelling cancels it."""
    return await asyncio.wrap_future(submit(coroutine))


def on_exit(close: Closer) -> Callable[[], None]:
    """Registers a closer for process exit; returns a function that unregisters it."""
    closers = _HERE.get().closers
    closers.add(close)
    return lambda: closers.discard(close)


def let_go(close: Closer, forget: Callable[[], None], pid: int) -> None:
    """Closes an unreferenced resource on the background loop; only in the process that opened it."""
    if pid != os.getpid():
        _HERE.of_parents.append(close)
        return
    forget()

    async def closing() -> None:
        with suppress(Exception):
            await close()

    submit(closing())
