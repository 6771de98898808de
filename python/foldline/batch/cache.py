"""Persistent cache of summaries, keyed by their input, and spending limits."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import math
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from foldline._util.checks import fields_of
from foldline._util.files import ensure_private, failed_path, remedy
from foldline._util.sqlite import set_durable
from foldline.batch._answers import AnswerReservation, Answers
from foldline.errors import ConfigError, StoreError, SummaryError
from foldline.typing import ChatModel, Completion, Facts, Messages, Summarizer, SummarizeRequest

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["CachedSummarizer", "Metered", "SummaryCache"]

#: Part of every key; changing it invalidates the cache.
_VERSION = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS summaries (key BLOB PRIMARY KEY, completion TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (name TEXT PRIMARY KEY, amount REAL NOT NULL) WITHOUT ROWID;
"""

#: Stored fields of a completion.
_STORED = tuple(field.name for field in dataclasses.fields(Completion))

#: Size of the reservation for an answer, in bytes: for short ones, and for each token of longer ones. A token has some
#: 4 characters, of which JSON writes each with up to 6 bytes.
_LEAST_RESERVED_BYTES, _TOKEN_BYTES = 1 << 16, 32

#: What to do about an error of the cache, by SQLite's primary code; errors without one are about what it contains.
_NOT_ALLOWED = "check that it, and its -wal and -shm beside it, are files that can be read and written"
_NO_CACHE = "it is damaged, or no cache of summaries: move it away; its summaries are then paid for again"
_NO_AMOUNTS = "the amounts in it are damaged: start without --resume, or call forget_spent; summaries are kept"
_REMEDIES = {
    sqlite3.SQLITE_NOTADB: _NO_CACHE,
    sqlite3.SQLITE_CORRUPT: _NO_CACHE,
    sqlite3.SQLITE_ERROR: _NO_CACHE,
    sqlite3.SQLITE_FULL: "its disk is full: make room and continue",
    sqlite3.SQLITE_IOERR: "its disk fails or is full: make room, or move the folder to another disk",
    sqlite3.SQLITE_BUSY: "another process holds its lock: wait for it and continue",
}


class SummaryCache:
    """An SQLite file of summaries, shared by any number of processes. Writes survive a power cut.

    Picklable; each process opens the file on first use.

    Args:
        path: The file, created with owner-only access. SQLite's auxiliary files, a lock file, and reservations for
            answers in flight are created next to it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._open: tuple[int, sqlite3.Connection, int, Answers] | None = None
        self._lock = threading.RLock()  # threads of one process share a connection

    def __repr__(self) -> str:
        return f"SummaryCache({str(self.path)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]

    def get(self, key: bytes) -> Completion | None:
        """The summary stored under a key, or None. A row that cannot be read is removed.

        Raises:
            StoreError: The file cannot be read.
        """
        with self._errors():
            connection = self._connection()
            row = connection.execute("SELECT completion FROM summaries WHERE key = ?", (key,)).fetchone()
            if row is not None:
                found = _completion(row[0])
                if found is None:
                    connection.execute("DELETE FROM summaries WHERE key = ?", (key,))
                return found
            # An answer that the full disk kept out of the database.
            waiting = (_completion(value) for _, known, value in self._answers().waiting() if known == key)
            return next((found for found in waiting if found is not None), None)

    def put(self, key: bytes, completion: Completion, room: AnswerReservation | None = None) -> None:
        """Stores a summary; an existing one is kept.

        Args:
            key: The key.
            completion: The summary.
            room: Its reservation, where the summary waits if the file cannot be written.

        Raises:
            StoreError: The file cannot be written.
        """
        value = json.dumps({name: getattr(completion, name) for name in _STORED})
        with self._errors():
            try:
                self._connection().execute("INSERT OR IGNORE INTO summaries VALUES (?, ?)", (key, value))
            except sqlite3.Error:
                if room is None:
                    raise
                room.keep(key, value)
                return
        if room is not None:
            self._answers().give_back(room)

    def room(self, max_tokens: int) -> AnswerReservation:
        """A reservation for an answer, allocated on the disk. Give it to `put`; in another process it has no use.

        Raises:
            StoreError: The disk is full.
        """
        with self._errors():
            self._connection()
            return self._answers().reserve(max(_LEAST_RESERVED_BYTES, max_tokens * _TOKEN_BYTES))

    def check(self) -> None:
        """Opens the file.

        Raises:
            StoreError: It cannot be used.
        """
        with self._errors():
            self._connection()

    def spend(self, limits: dict[str, float | None], **amounts: float) -> str | None:
        """Adds amounts if all stay within their limits; else adds nothing and returns the exceeded limit's name.

        Raises:
            StoreError: The file cannot be written, or the amounts in it are damaged.
        """
        with self._errors():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                spent = self._amounts(connection)
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
        """Amounts spent, by name.

        Raises:
            StoreError: The file cannot be read, or the amounts in it are damaged.
        """
        with self._errors():
            return self._amounts(self._connection())

    def _amounts(self, connection: sqlite3.Connection) -> dict[str, float]:
        amounts = {}
        for name, amount in connection.execute("SELECT name, amount FROM spent").fetchall():
            is_known = isinstance(name, bytes) and name.isascii()
            if not (is_known and isinstance(amount, (int, float)) and math.isfinite(amount)):
                raise self._failure("bad amount", _NO_AMOUNTS, self.path)
            amounts[name.decode()] = amount
        return amounts

    def forget_spent(self) -> None:
        """Resets the amounts spent; summaries are kept."""
        with self._errors():
            self._connection().execute("DELETE FROM spent")

    @contextlib.contextmanager
    def claimed(self, key: bytes) -> Iterator[None]:
        """Locks a key: other processes that want it wait. Released when the process ends.

        Raises:
            StoreError: The file or its lock cannot be used.
        """
        self._connection()
        if fcntl is None or self._open is None:
            yield
            return
        lock, place = self._open[2], int.from_bytes(key[:4], "big")
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX, 1, place)
        except OSError as error:
            raise self._failure(type(error).__name__, remedy(error), self.path.with_suffix(".lock")) from None
        try:
            yield
        finally:
            fcntl.lockf(lock, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Closes the file, if this process has it open."""
        if self._open is not None and self._open[0] == os.getpid():
            self._open[1].close()
            os.close(self._open[2])
            self._open[3].close()
        self._open = None

    def _connection(self) -> sqlite3.Connection:
        if self._open is None or self._open[0] != os.getpid():
            with self._errors():
                lock_path = self.path.with_suffix(".lock")
                for path in (self.path, lock_path):
                    ensure_private(path)
                    if not path.is_file():
                        raise FileExistsError(errno.EEXIST, "not a file", str(path))
                connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
                connection.text_factory = bytes  # bad UTF-8 is then damage of its row, not an error
                set_durable(connection, lock_timeout_s=60.0)
                connection.executescript(_TABLES)
                lock = os.open(lock_path, os.O_RDWR)
                answers = Answers(self.path)
                answers.remove_stale()
                with contextlib.suppress(sqlite3.Error, OSError):  # still full: they are read where they are
                    for path, key, value in answers.waiting():
                        if _completion(value) is not None:
                            connection.execute("INSERT OR IGNORE INTO summaries VALUES (?, ?)", (key, value))
                        path.unlink(missing_ok=True)
            self._open = (os.getpid(), connection, lock, answers)
        return self._open[1]

    def _answers(self) -> Answers:
        self._connection()
        assert self._open is not None  # noqa: S101 - for the type checker: it was opened
        return self._open[3]

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            # The low byte is the primary code, higher bytes extend it (SQLite, "Result and Error Codes").
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            raise self._failure(type(error).__name__, _REMEDIES.get(code, _NOT_ALLOWED), self.path) from None
        except OSError as error:
            raise self._failure(type(error).__name__, remedy(error), failed_path(error) or self.path) from None

    def _failure(self, what: str, advice: str, path: str | Path) -> StoreError:
        detail = f"the cache of summaries cannot be used ({what}): {advice}"
        return StoreError(detail, code="cache_failed", path=str(path))


def _completion(data: object) -> Completion | None:
    """The completion in a row or a waiting answer; None if it is damaged."""
    try:
        text = data.decode("ascii") if isinstance(data, bytes) else data  # `put` writes ASCII
        known = fields_of(Completion, json.loads(text)) if isinstance(text, str) else None
        if known is None or not known.keys() >= {"text", "notes"}:
            return None
        Facts.of(known.get("evidence"))
    except (ValueError, RecursionError, TypeError, AttributeError, LookupError):
        return None
    return Completion(**known)


class CachedSummarizer:
    """Answers from the cache, and calls a summarizer on a miss.

    The key is a hash of all messages up to the last one folded, the request's options, the prompt version, and
    ``identity``. Unusable answers are stored too, since they were paid for; errors are not.

    Args:
        summarizer: Called on a cache miss.
        cache: The cache.
        identity: Distinguishes this summarizer from others: the model and its options.
        counts_hits: Whether answers from the cache are counted, as ``cache_hits`` of `SummaryCache.spent`. Each is a
            write to the disk.
    """

    def __init__(
        self, summarizer: Summarizer, cache: SummaryCache, identity: str, *, counts_hits: bool = False
    ) -> None:
        self.summarizer = summarizer
        self.cache = cache
        self.identity = identity
        self.counts_hits = counts_hits

    def __repr__(self) -> str:
        return f"CachedSummarizer({self.summarizer!r})"

    def summarize(self, request: SummarizeRequest) -> Completion:
        """The cached summary, or a new one. Space for a new one is reserved before it is paid for.

        Raises:
            SummaryError: Those of the summarizer; or the cache cannot be used (``cache_failed``), before any call.
        """
        key = self.key(request)
        try:
            with self.cache.claimed(key):
                known = self.cache.get(key)
                if known is None:
                    with self._reserved(request.max_tokens) as reservation:
                        known = self.summarizer.summarize(request)
                        self.cache.put(key, known, reservation)
                elif self.counts_hits:
                    self.cache.spend({}, cache_hits=1)
            return known
        except StoreError as error:
            raise SummaryError(error.detail, code=error.code, path=error.path) from None

    @contextlib.contextmanager
    def _reserved(self, max_tokens: int) -> Iterator[AnswerReservation]:
        reservation = self.cache.room(max_tokens)
        try:
            yield reservation
        except BaseException:
            reservation.remove()
            raise

    def key(self, request: SummarizeRequest) -> bytes:
        """The cache key of a request."""
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
    """A model with limits on requests and cost, shared by all processes of a run.

    The cost of an answer is unknown in advance: the maximum, prompt plus all output tokens, is reserved, and the unused
    rest is returned. The reservation of a killed process is not returned.

    Args:
        model: The model.
        cache: Stores the amounts spent.
        max_requests: Limit on calls; retries within a call do not count.
        max_cost: Limit on cost.
        price: Cost of a number of input and output tokens; required with ``max_cost``.
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
        """Calls the model if within the limits.

        Raises:
            SummaryError: A limit is reached (``spending_limit``).
        """
        aside = 0.0
        if self._price is not None:
            # A token has at least one byte, so bytes bound the tokens.
            most = sum(len(str(message.get("content", "")).encode("utf-8", "replace")) + 16 for message in messages)
            aside = self._price(most, max_tokens + int(getattr(self.model, "thinking_tokens", 0) or 0))
        passed = self.cache.spend(self._limits, requests=1, **self._cost(aside))
        if passed is not None:
            raise SummaryError(f"the limit on {passed} is reached", code="spending_limit")
        answer: Completion = self.model.complete(messages, max_tokens=max_tokens, timeout_s=timeout_s, **options)
        read, written = answer.input_tokens, answer.output_tokens
        back = 0.0
        if self._price is not None and read is not None and written is not None:
            back = self._price(read, written) - aside
        with contextlib.suppress(StoreError):  # accounting must not lose a paid answer
            self.cache.spend({}, **self._cost(back), input_tokens=read or 0, output_tokens=written or 0)
        return answer

    def _cost(self, amount: float) -> dict[str, float]:
        """An amount to spend; nothing without prices."""
        return {} if self._price is None else {"cost": amount}
