"""A session in a database, for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from types import EllipsisType, TracebackType
from typing import Self, TypeVar

from foldline.stores._records import checked_messages
from foldline.stores.sql import SqlStore
from foldline.typing import CompactionEvent, ContextEntry, Message, Problem, StoredMessage

__all__ = ["AsyncSqlStore"]

T = TypeVar("T")


class AsyncSqlStore:
    """`SqlStore` for asyncio: its methods as coroutines that run in threads.

    A task cancelled during a write ends only after the write, so that its outcome is definite. `Compactor.acompact`
    takes the synchronous store (`sync`) and runs it in threads itself.

    Examples:
        >>> import asyncio, tempfile, pathlib, foldline as fl
        >>> async def talk():
        ...     url = f"sqlite:///{pathlib.Path(tempfile.mkdtemp()) / 'sessions.db'}"
        ...     async with await fl.stores.AsyncSqlStore.open(url, session="a") as store:
        ...         await store.append({"role": "user", "content": "hi"})
        ...         return await store.messages()
        >>> asyncio.run(talk())
        [{'role': 'user', 'content': 'hi'}]
    """

    def __init__(self, store: SqlStore) -> None:
        self.sync = store

    @classmethod
    async def open(
        cls, url: str, *, session: str, lock_timeout_s: float = 60.0, clock: Callable[[], float] = time.time
    ) -> AsyncSqlStore:
        """Opens a session, as `SqlStore` does; raises the same errors."""
        return cls(await _apart(lambda: SqlStore(url, session=session, lock_timeout_s=lock_timeout_s, clock=clock)))

    def __repr__(self) -> str:
        return f"Async{self.sync!r}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def of(self, session: str) -> AsyncSqlStore:
        """Another session of the same database."""
        return AsyncSqlStore(await _apart(lambda: self.sync.of(session)))

    async def close(self) -> None:
        """Closes the connections."""
        await _apart(self.sync.close)

    async def append(
        self, message: Message, *, id: str | None = None, expected_leaf: str | EllipsisType | None = ...
    ) -> str:
        """As `SqlStore.append`."""
        return await _apart(lambda: self.sync.append(message, id=id, expected_leaf=expected_leaf))

    async def extend(self, messages: Iterable[Message], *, expected_leaf: str | EllipsisType | None = ...) -> list[str]:
        """As `SqlStore.extend`."""
        listed = checked_messages(messages)
        return await _apart(lambda: self.sync.extend(listed, expected_leaf=expected_leaf))

    async def save_context(
        self,
        event: CompactionEvent,
        context: Sequence[ContextEntry],
        *,
        expected_leaf: str | EllipsisType | None = ...,
    ) -> None:
        """As `SqlStore.save_context`."""
        await _apart(lambda: self.sync.save_context(event, context, expected_leaf=expected_leaf))

    async def active(self) -> tuple[StoredMessage, ...]:
        """The context with its ids."""
        return await _apart(self.sync.active)

    async def messages(self) -> list[Message]:
        """The context, as sent in the next request."""
        return await _apart(self.sync.messages)

    async def ids(self) -> list[int | str]:
        """The ids of the context."""
        return await _apart(self.sync.ids)

    async def history(self) -> tuple[StoredMessage, ...]:
        """Every appended message with its id."""
        return await _apart(self.sync.history)

    async def restore(self) -> list[Message]:
        """The original messages."""
        return await _apart(self.sync.restore)

    async def events(self) -> tuple[CompactionEvent, ...]:
        """All compactions, oldest first."""
        return await _apart(self.sync.events)

    async def compacted_ids(self) -> frozenset[int | str]:
        """Ids of all messages marked as compacted."""
        return await _apart(self.sync.compacted_ids)

    async def last_round(self) -> int:
        """Round of the last compaction; 0 before the first."""
        return await _apart(self.sync.last_round)

    async def problems(self) -> tuple[Problem, ...]:
        """The damaged rows of the session, as `SqlStore.problems`."""
        return await _apart(lambda: self.sync.problems)


async def _apart(work: Callable[[], T]) -> T:
    """Runs a call in a thread; a cancelled task waits for its end first."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
