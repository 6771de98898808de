"""One event loop in a thread of its own, where all models are called: from functions, coroutines, threads, forks.

Connections belong to the event loop they were opened on. With one loop a process they can be kept and shared whoever
calls, a total deadline holds for every step of a call (a blocking client can limit single reads alone), and giving up
closes the connection at once.
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

#: What closes something.
Closer: TypeAlias = Callable[[], Awaitable[object]]

#: Seconds that connections get to close when the process ends.
_EXIT_S = 2.0


class _PrivateLoop:
    """A loop that runs in a daemon thread until the process ends."""

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
        """Ends what runs, closes what is open, stops."""
        with suppress(RuntimeError, TimeoutError, concurrent.futures.CancelledError):
            asyncio.run_coroutine_threadsafe(self._finish(), self.loop).result(_EXIT_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_EXIT_S)
        if not self.thread.is_alive():
            self.loop.close()


class _Here:
    """What this process has."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.private: _PrivateLoop | None = None
        #: What belongs to the process that this one was forked from: held, since closing what is shared disturbs it.
        self.of_parents: list[object] = []

    def after_fork(self) -> None:
        """In a child no thread of the parent runs on: it begins anew."""
        self.lock = threading.Lock()
        if self.private is not None:
            self.of_parents.append(self.private)
            self.private = None

    def at_exit(self) -> None:
        """Closes what is open."""
        if self.private is not None:
            self.private.stop()

    def get(self) -> _PrivateLoop:
        """The loop of this process."""
        with self.lock:
            if self.private is None:
                self.private = _PrivateLoop()
            return self.private


_HERE = _Here()
atexit.register(_HERE.at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HERE.after_fork)


def is_here() -> bool:
    """Whether the running event loop is the private one."""
    private = _HERE.private
    return private is not None and private.loop is asyncio.get_running_loop()


def submit(coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Begins a coroutine on the private loop, in the context of whoever asks."""
    return asyncio.run_coroutine_threadsafe(coroutine, _HERE.get().loop)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, waited for in this thread. Ctrl-C gives it up.

    Raises:
        SummaryError: The process ends meanwhile (``cancelled``), or it is called on the private loop itself.
    """
    if threading.current_thread() is _HERE.get().thread:
        coroutine.close()
        raise SummaryError("a model cannot be waited for where models are called", code="nested_call")
    future = submit(coroutine)
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise SummaryError("the call was cancelled", code="cancelled") from None
    finally:
        future.cancel()  # after Ctrl-C; nothing happens where it is done


async def arun(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives that runs on the private loop, awaited on another one. Cancelling gives it up."""
    return await asyncio.wrap_future(submit(coroutine))


def on_exit(close: Closer) -> Callable[[], None]:
    """Has something closed when the process ends, on the private loop; what comes back takes that back."""
    closers = _HERE.get().closers
    closers.add(close)
    return lambda: closers.discard(close)


def let_go(close: Closer, forget: Callable[[], None], pid: int) -> None:
    """Closes, on the private loop, what nobody holds any more; not in a child of the process that opened it."""
    if pid != os.getpid():
        _HERE.of_parents.append(close)
        return
    forget()

    async def closing() -> None:
        with suppress(Exception):
            await close()

    submit(closing())
