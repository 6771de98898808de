"""Folds of whole histories, found again by the hash of the prefix that they cover."""

from __future__ import annotations

import json
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from foldline.compactor._pins import PinMemory
from foldline.compactor._session import Session
from foldline.errors import FoldlineWarning, StoreError
from foldline.typing import FoldStore, Message, Messages, Outcome

__all__ = ["Histories", "History", "StoredFold", "View"]

#: A run of unchanged messages of the history, as a half-open range; or a message with its index, None for a new one.
Entry: TypeAlias = "range | tuple[int | None, Message]"


@dataclass(frozen=True, slots=True)
class View:
    """The messages of a request, and the index of each in the history; None for a new message."""

    messages: list[Any]
    sources: list[int | None]


@dataclass(frozen=True, slots=True)
class StoredFold:
    """A fold of the first messages of a history.

    Attributes:
        covered: Number of these messages.
        prefix: Their hash.
        entries: The messages that replace them.
        outcome: ``"folded"`` or ``"fallback"``.
        reason: The reason of the fold.
        round: Its round.
        covered_tokens: Tokens of the covered messages.
        pins: The pinned messages of the history, each by hash and occurrence.
        dropped: Indices of the messages that are gone without a summary.
        summary: The text of the summary.
    """

    covered: int
    prefix: int
    entries: tuple[Entry, ...]
    outcome: Outcome
    reason: str
    round: int
    covered_tokens: int
    pins: tuple[tuple[int, int], ...]
    dropped: tuple[int, ...]
    summary: str

    @classmethod
    def of(cls, history: Messages, view: View, prefixes: Sequence[int], **more: Any) -> StoredFold:
        """The fold whose result for a history is ``view``. The unchanged end of the history is not covered."""
        covered, at = len(history), len(view.messages)
        while covered and at and view.sources[at - 1] == covered - 1 and view.messages[at - 1] is history[covered - 1]:
            covered, at = covered - 1, at - 1
        entries: list[Entry] = []
        for message, source in zip(view.messages[:at], view.sources[:at]):
            if source is None or message is not history[source]:
                entries.append((source, message))
            elif entries and isinstance(last := entries[-1], range) and last.stop == source:
                entries[-1] = range(last.start, source + 1)
            else:
                entries.append(range(source, source + 1))
        return cls(covered, prefixes[covered], tuple(entries), **more)

    def view(self, history: Messages) -> View:
        """The messages of the request for a history with this prefix."""
        messages: list[Any] = []
        sources: list[int | None] = []
        for entry in self.entries:
            if isinstance(entry, range):
                messages += history[entry.start : entry.stop]
                sources += entry
            else:
                sources.append(entry[0])
                messages.append(entry[1])
        messages += history[self.covered :]
        sources += range(self.covered, len(history))
        return View(messages, sources)

    def keeps(self, index: int) -> bool:
        """Whether a message of the history is in the request, unchanged."""
        if index >= self.covered:
            return True
        return any(index in entry for entry in self.entries if isinstance(entry, range))

    def to_json(self) -> str:
        """The fold as JSON text.

        Raises:
            StoreError: A message that it holds cannot be written as JSON.
        """
        entries = [
            [entry.start, entry.stop] if isinstance(entry, range) else {"source": entry[0], "message": entry[1]}
            for entry in self.entries
        ]
        values = {name: getattr(self, name) for name in self.__slots__} | {
            "prefix": f"{self.prefix:016x}",
            "entries": entries,
            # As text: JavaScript's numbers, and some databases', lose digits.
            "pins": [[f"{digest:016x}", each] for digest, each in self.pins],
        }
        try:
            return json.dumps(values)
        except (TypeError, ValueError):
            raise StoreError("a message of the fold is not JSON", code="not_json") from None

    @classmethod
    def from_json(cls, text: str) -> StoredFold:
        """A fold from its JSON text.

        Raises:
            StoreError: The text is not a fold.
        """
        try:
            values = json.loads(text)
            known = {
                "prefix": int(values["prefix"], 16),
                "entries": tuple(_entry(each) for each in values["entries"]),
                "pins": tuple((int(digest, 16), _count(each)) for digest, each in values["pins"]),
                "dropped": tuple(_count(each) for each in values["dropped"]),
            }
            for name in ("covered", "round", "covered_tokens"):
                known[name] = _count(values[name])
            fold = cls(**(values | known))
            old = [index for entry in fold.entries for index in (entry if isinstance(entry, range) else entry[:1])]
            kept = [index for index in old if index is not None]
            known_outcome = fold.outcome in ("folded", "fallback")
            if not known_outcome or any(index >= fold.covered for index in kept) or kept != sorted(set(kept)):
                raise ValueError
            return fold
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise StoreError("not a stored fold", code="bad_record") from None


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError
    return value


def _entry(value: Any) -> Entry:
    if isinstance(value, list):
        start, stop = value
        return range(_count(start), _count(stop))
    source, message = value["source"], value["message"]
    if not isinstance(message, dict):
        raise TypeError
    return None if source is None else _count(source), message


@dataclass(slots=True)
class History:
    """The memory of one history.

    Attributes:
        session: Tries, rounds, and the fold in the background.
        folds: The newest folds of a named session, oldest first.
        pins: The pinned messages.
        knows_pins: Whether these include the pins of the stored folds.
        lock: Held during a call, so that calls of one history wait for each other.
        is_loaded: Whether the stored folds were read.
        users: Number of calls that use it.
    """

    session: Session
    folds: list[StoredFold] = field(default_factory=list)
    pins: PinMemory = field(default_factory=PinMemory)
    knows_pins: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_loaded: bool = False
    users: int = 0


class Histories:
    """The histories of a compactor, least recently used first out. Thread-safe.

    A named session has its own folds. Histories without a name share theirs: a fold is found by the prefix it covers.

    Args:
        make_session: Makes the memory of a new session.
        store: Stores folds, so that a restart finds them.
        max_folds: Folds kept of each session.
        max_sessions: Sessions kept.
    """

    def __init__(
        self, make_session: Callable[[], Session], store: FoldStore | None, *, max_folds: int, max_sessions: int
    ) -> None:
        self._make_session = make_session
        self._store = store
        self._max_folds = max_folds
        self._max_sessions = max_sessions
        self._lock = threading.Lock()
        self._named: OrderedDict[str, History] = OrderedDict()
        #: Each by the hash of its history at its last call.
        self._anonymous: OrderedDict[int, History] = OrderedDict()
        self._anonymous_folds: OrderedDict[int, StoredFold] = OrderedDict()
        self._is_loaded = False

    def __len__(self) -> int:
        return len(self._named) + len(self._anonymous)

    def history(self, session: str | None, prefixes: Sequence[int]) -> History:
        """The memory of a session; without a session that of the history that this one continues, else a new one.

        The caller ends its use by `leave`.
        """
        with self._lock:
            if session is not None:
                found = self._named.get(session) or self._make_session_history()
                self._put(self._named, session, found)
            else:
                key = next((each for each in reversed(prefixes[1:]) if each in self._anonymous), None)
                found = self._make_session_history() if key is None else self._anonymous.pop(key)
                if len(prefixes) > 1:
                    self._put(self._anonymous, prefixes[-1], found)
            found.users += 1
            return found

    def _make_session_history(self) -> History:
        return History(self._make_session())

    def _put(self, histories: OrderedDict[Any, History], key: Any, history: History) -> None:
        """Adds a history as the one used last; removes those used least recently, unless a call uses them."""
        histories[key] = history
        histories.move_to_end(key)
        while len(histories) > self._max_sessions:
            oldest = next((each for each, known in histories.items() if not known.users and known is not history), None)
            if oldest is None:
                break
            del histories[oldest]

    def leave(self, history: History) -> None:
        """Ends the use of a history."""
        with self._lock:
            history.users -= 1

    def load(self, session: str | None, history: History) -> None:
        """Reads the stored folds of a session, or all folds without a session, once.

        The caller holds the history's lock.

        Raises:
            StoreError: The store cannot be read.
        """
        if self._store is None:
            return
        if session is None:
            with self._lock:
                if not self._is_loaded:
                    for fold in self._stored("", self._max_sessions):
                        self._anonymous_folds[fold.prefix] = fold
                self._is_loaded = True
        elif not history.is_loaded:
            history.folds = [*self._stored(session, self._max_folds), *history.folds][-self._max_folds :]
            history.is_loaded = True

    def _stored(self, session: str, limit: int) -> list[StoredFold]:
        """The stored folds; damaged ones are left out, with a warning."""
        assert self._store is not None  # noqa: S101 - for the type checker: callers check
        found, damaged = [], 0
        for text in self._store.load_folds(session, limit):
            try:
                found.append(StoredFold.from_json(text))
            except StoreError:
                damaged += 1
        if damaged:
            warnings.warn(f"{damaged} stored fold(s) cannot be read and are left out", FoldlineWarning, stacklevel=6)
        return found

    def restore(self, session: str | None, folds: Sequence[StoredFold]) -> None:
        """Adds folds that are not known yet. The store is not written."""
        if session is not None:
            history = self.history(session, ())
            # Never waits, since an event loop may call it. A call that has the lock makes a newer fold.
            if history.lock.acquire(blocking=False):
                try:
                    known = {(fold.covered, fold.prefix) for fold in history.folds}
                    history.folds += [fold for fold in folds if (fold.covered, fold.prefix) not in known]
                    del history.folds[: -self._max_folds]
                finally:
                    history.lock.release()
            self.leave(history)
            return
        with self._lock:
            for fold in folds:
                self._put_anonymous(fold)

    def _put_anonymous(self, fold: StoredFold) -> None:
        """Adds a fold of a history without a session, unless one for the same messages is known."""
        self._anonymous_folds.setdefault(fold.prefix, fold)
        self._anonymous_folds.move_to_end(fold.prefix)
        while len(self._anonymous_folds) > self._max_sessions:
            self._anonymous_folds.popitem(last=False)

    def longest(
        self, session: str | None, history: History, prefixes: Sequence[int], pins: Sequence[int] = ()
    ) -> StoredFold | None:
        """The fold that covers most of a history and keeps its pinned messages. The newest of several."""
        known: Iterable[StoredFold] = reversed(history.folds)
        if session is None:
            with self._lock:
                folds = (self._anonymous_folds.get(prefix) for prefix in prefixes)
                known = [fold for fold in folds if fold is not None]
        held = [
            fold
            for fold in known
            if fold.covered < len(prefixes) and prefixes[fold.covered] == fold.prefix and all(map(fold.keeps, pins))
        ]
        return max(held, key=lambda fold: fold.covered, default=None)

    def save(self, session: str | None, history: History, fold: StoredFold) -> None:
        """Adds a fold, stored first. The caller holds the history's lock.

        Raises:
            StoreError: The store failed; then the fold is not added.
        """
        if self._store is not None:
            self._store.save_fold(session or "", fold.to_json())
        if session is not None:
            history.folds.append(fold)
            del history.folds[: -self._max_folds]
            return
        with self._lock:
            self._anonymous_folds[fold.prefix] = fold
            self._anonymous_folds.move_to_end(fold.prefix)
            while len(self._anonymous_folds) > self._max_sessions:
                self._anonymous_folds.popitem(last=False)
