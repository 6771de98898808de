"""Summaries by what they summarise, so that nobody pays for one twice."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from foldline._util.sqlite import set_durable
from foldline.errors import ConfigError, StoreError, SummaryError
from foldline.typing import ChatModel, Completion, Messages, Summarizer, SummarizeRequest

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["CachedSummarizer", "Metered", "SummaryCache"]

#: Goes into every key: with another one, what is stored is not found.
_VERSION = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS summaries (key BLOB PRIMARY KEY, completion TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (name TEXT PRIMARY KEY, amount REAL NOT NULL) WITHOUT ROWID;
"""

#: Of a completion, what is stored.
_STORED = tuple(field.name for field in dataclasses.fields(Completion))


class SummaryCache:
    """A file of SQLite that any number of processes share. What was put is there after a power cut.

    It can be pickled; each process opens the file for itself, when it first needs it.

    Args:
        path: The file; beside it lie those of SQLite, and one for locks.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._open: tuple[int, sqlite3.Connection, int] | None = None
        self._lock = threading.RLock()  # threads of one process share a connection

    def __repr__(self) -> str:
        return f"SummaryCache({str(self.path)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]

    def get(self, key: bytes) -> Completion | None:
        """The summary under a key.

        Raises:
            StoreError: The file cannot be read.
        """
        with self._errors():
            row = self._connection().execute("SELECT completion FROM summaries WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        stored = json.loads(row[0])
        return Completion(**(stored | {"notes": tuple(stored["notes"])}))

    def put(self, key: bytes, completion: Completion) -> None:
        """Stores a summary; where one is there already it stays.

        Raises:
            StoreError: The file cannot be written.
        """
        value = json.dumps({name: getattr(completion, name) for name in _STORED})
        with self._errors():
            self._connection().execute("INSERT OR IGNORE INTO summaries VALUES (?, ?)", (key, value))

    def spend(self, limits: dict[str, float | None], **amounts: float) -> str | None:
        """Adds to what was spent, if all of it stays within the limits; else the name of one that would be passed.

        Raises:
            StoreError: The file cannot be written.
        """
        with self._errors():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                spent = dict(connection.execute("SELECT name, amount FROM spent").fetchall())
                for name, amount in amounts.items():
                    limit = limits.get(name)
                    if limit is not None and spent.get(name, 0.0) + amount > limit:
                        return name
                    new = spent.get(name, 0.0) + amount
                    connection.execute("INSERT OR REPLACE INTO spent VALUES (?, ?)", (name, new))
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        return None

    def spent(self) -> dict[str, float]:
        """What was spent, by name."""
        with self._errors():
            return dict(self._connection().execute("SELECT name, amount FROM spent").fetchall())

    def forget_spent(self) -> None:
        """A new account; summaries stay."""
        with self._errors():
            self._connection().execute("DELETE FROM spent")

    @contextlib.contextmanager
    def claimed(self, key: bytes) -> Iterator[None]:
        """While one process holds a key, others that want it wait. It is free again when its process ends."""
        self._connection()
        if fcntl is None or self._open is None:
            yield
            return
        lock, place = self._open[2], int.from_bytes(key[:4], "big")
        fcntl.lockf(lock, fcntl.LOCK_EX, 1, place)
        try:
            yield
        finally:
            fcntl.lockf(lock, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Closes the file, if this process has it open."""
        if self._open is not None and self._open[0] == os.getpid():
            self._open[1].close()
            os.close(self._open[2])
        self._open = None

    def _connection(self) -> sqlite3.Connection:
        if self._open is None or self._open[0] != os.getpid():
            with self._errors():
                connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
                set_durable(connection, lock_timeout_s=60.0)
                connection.executescript(_TABLES)
                lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
            self._open = (os.getpid(), connection, lock)
        return self._open[1]

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except (sqlite3.Error, OSError) as error:
            detail = f"the cache of summaries cannot be used: {type(error).__name__}"
            raise StoreError(detail, code="cache_failed") from None


class CachedSummarizer:
    """Asks a summarizer for what the cache does not hold.

    The key is a hash of all that is summarised and what stands before it, the request's options, the version of the
    prompt, and ``identity``. Answers that were asked for and cannot be used are kept too: they were paid for. Failures
    are not.

    Args:
        summarizer: Who is asked.
        cache: Where answers are kept.
        identity: What tells this summarizer from others: the model and how it is asked.
    """

    def __init__(self, summarizer: Summarizer, cache: SummaryCache, identity: str) -> None:
        self.summarizer = summarizer
        self.cache = cache
        self.identity = identity

    def __repr__(self) -> str:
        return f"CachedSummarizer({self.summarizer!r})"

    def summarize(self, request: SummarizeRequest) -> Completion:
        """The summary, from the cache where it is there."""
        key = self.key(request)
        with self.cache.claimed(key):
            known = self.cache.get(key)
            if known is None:
                known = self.summarizer.summarize(request)
                self.cache.put(key, known)
        return known

    def key(self, request: SummarizeRequest) -> bytes:
        """Where the summary of a request lies."""
        last = max(request.folded, default=-1)
        what = [
            _VERSION,
            self.identity,
            getattr(self.summarizer, "prompt_version", ""),
            request.format,
            request.max_tokens,
            request.target_tokens,
            request.part,
            request.instructions,
            list(request.folded),
            list(request.previous),
            request.previous_summary,
            list(request.messages[: last + 1]),
        ]
        return hashlib.sha256(json.dumps(what, separators=(",", ":")).encode()).digest()


class Metered:
    """A model that is asked only within limits on requests and money, which all processes of a run share.

    The cost of an answer is not known before: what is set aside is its prompt and all of its room, and what it did not
    use is given back. Of a process that was killed it stays set aside.

    Args:
        model: Who is asked.
        cache: Where it is counted.
        max_requests: The most calls. Tries again within one call are not counted.
        max_cost: The most money.
        price: What so many input and output tokens cost; needed with ``max_cost``.
    """

    def __init__(
        self,
        model: ChatModel,
        cache: SummaryCache,
        *,
        max_requests: int | None = None,
        max_cost: float | None = None,
        price: Callable[[int, int], float] | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        if max_cost is not None and price is None:
            raise ConfigError("needs prices", code="missing_option", path="max_cost")
        self._limits: dict[str, float | None] = {"requests": max_requests, "cost": max_cost}
        self._price = price

    def __repr__(self) -> str:
        return f"Metered({self.model!r})"

    def complete(
        self, messages: Messages, *, max_tokens: int, timeout_s: float | None = None, **options: Any
    ) -> Completion:
        """Answers, if that is within the limits."""
        aside = 0.0
        if self._price is not None:
            # A token has at least one byte: it never costs more.
            most = sum(len(str(message.get("content", "")).encode("utf-8", "replace")) + 16 for message in messages)
            aside = self._price(most, max_tokens + int(getattr(self.model, "thinking_tokens", 0) or 0))
        passed = self.cache.spend(self._limits, requests=1, cost=aside)
        if passed is not None:
            raise SummaryError(f"the limit on {passed} is reached", code="spending_limit")
        answer: Completion = self.model.complete(messages, max_tokens=max_tokens, timeout_s=timeout_s, **options)
        read, written = answer.input_tokens, answer.output_tokens
        back = 0.0
        if self._price is not None and read is not None and written is not None:
            back = self._price(read, written) - aside
        with contextlib.suppress(StoreError):  # An answer that was paid for is not lost over that.
            self.cache.spend({}, cost=back, input_tokens=read or 0, output_tokens=written or 0)
        return answer
