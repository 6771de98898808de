"""Runs blocking calls in a thread, awaited on an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(
    function: Callable[[], T], *, name: str = "foldline", cancelled: threading.Event | None = None
) -> T:
    """Calls a blocking function in a new thread and awaits its result.

    If the await is cancelled, it returns at once; the thread runs on and its result is dropped.

    Args:
        function: The function, run in a copy of the caller's context.
        name: Name of the thread.
        cancelled: Event set when the await ends, so that the function can stop early.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):  # a future rejects it, so the await would hang
            future.set_exception(RuntimeError("StopIteration was raised in a thread"))
        else:
            future.set_exception(error)

    def work() -> None:
        value, failure = None, None
        try:
            value = context.run(function)
        except BaseException as error:  # noqa: BLE001 - the await raises it
            failure = error
        with suppress(RuntimeError):  # the loop is closed: no await is left
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=work, name=name, daemon=True).start()
    try:
        return await future
    finally:
        if cancelled is not None:
            cancelled.set()
