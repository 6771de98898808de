"""A session in memory: an append-only journal and the context derived from it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from foldline.errors import StoreError
from foldline.stores._records import checked_context, checked_messages
from foldline.typing import CompactionEvent, ContextEntry, Message, StoredMessage

__all__ = ["MemoryStore", "StoreEntry"]


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """An entry of the journal. Never changed, never deleted.

    Attributes:
        id: Its id.
        kind: ``"message"``, ``"compaction"`` or ``"fold"``.
        message: The appended message.
        event: The compaction: its summary, its first kept id, tokens before and after.
        context: The context after a compaction: ids, and messages that are new or edited. New messages get an id.
        fold: A fold of a whole history: its session, and its JSON text.
    """

    id: str
    kind: Literal["message", "compaction", "fold"]
    message: Message | None = None
    event: CompactionEvent | None = None
    context: tuple[StoredMessage, ...] = ()
    fold: tuple[str, str] | None = None


class MemoryStore:
    """A session in memory: every message, every compaction, and the resulting context.

    The context is that of the last compaction, followed by the messages appended since. A compaction and its marks are
    one entry, so neither exists without the other. Thread-safe.

    Args:
        entries: Journal of an earlier store, to continue its session as after a restart.

    Raises:
        StoreError: The journal is invalid (``bad_entry``, ``not_a_message``).

    Examples:
        >>> import foldline as fl
        >>> store = fl.stores.MemoryStore()
        >>> messages = [{"role": "user", "content": f"Step {i}. " + "word " * 60} for i in range(6)]
        >>> ids = store.extend(messages)
        >>> strategy = fl.strategies.Summarize(lambda messages: "Four steps.", keep_recent=2)
        >>> compactor = fl.Compactor(fl.triggers.MessageCount(5), strategy, store=store)
        >>> result = compactor.compact(store.messages(), ids=ids)
        >>> store.messages() == result.messages, len(store.entries), sorted(store.compacted_ids())
        (True, 7, ['e1', 'e2', 'e3', 'e4'])
        >>> fl.stores.MemoryStore(store.entries).messages() == result.messages
        True
    """

    def __init__(self, entries: Iterable[StoreEntry] = ()) -> None:
        self._lock = threading.Lock()
        self._entries: list[StoreEntry] = []
        self._active: list[StoredMessage] = []
        self._round = 0
        for entry in entries:
            self._replay(entry)

    def __repr__(self) -> str:
        return f"MemoryStore(entries={len(self._entries)}, active={len(self._active)})"

    @property
    def entries(self) -> tuple[StoreEntry, ...]:
        """The journal, oldest entry first."""
        with self._lock:
            return tuple(self._entries)

    def append(self, message: Message) -> str:
        """Appends a copy of a message; returns its id. O(size of the message).

        Raises:
            StoreError: It is not a message (``not_a_message``).
        """
        return self.extend([message])[0]

    def extend(self, messages: Iterable[Message]) -> list[str]:
        """Appends copies of messages in order; returns their ids. After an error none is stored.

        Raises:
            StoreError: One is not a message (``not_a_message``).
        """
        held = copy.deepcopy(checked_messages(messages))
        ids = []
        with self._lock:
            for message in held:
                entry = StoreEntry(self._next_id(), "message", message=message)
                self._entries.append(entry)
                self._active.append(StoredMessage(entry.id, message))
                ids.append(entry.id)
        return ids

    def active(self) -> tuple[StoredMessage, ...]:
        """The context with its ids."""
        with self._lock:
            return tuple(self._active)

    def messages(self) -> list[Message]:
        """The context, as sent in the next request. Do not modify the messages: they belong to the store."""
        return [each.message for each in self.active()]

    def ids(self) -> list[int | str]:
        """The ids of the context."""
        return [each.id for each in self.active()]

    def compacted_ids(self) -> frozenset[int | str]:
        """Ids of all messages marked as compacted: once in a context, but no longer."""
        with self._lock:
            entries, active = list(self._entries), {each.id for each in self._active}
        seen = {entry.id for entry in entries if entry.kind == "message"}
        return frozenset(seen.union(each.id for entry in entries for each in entry.context) - active)

    def last_round(self) -> int:
        """Round of the last compaction; 0 before the first."""
        return self._round

    def save_context(self, event: CompactionEvent, context: Sequence[ContextEntry]) -> None:
        """Stores a compaction and the new context in one step.

        Raises:
            StoreError: The context names an id not in the current one (``unknown_entry``): the compactor did not get
                the store's ids, or another thread has compacted since. Or the round is not newer (``stale_round``). Or
                an entry is not one (``bad_entry``, ``not_a_message``).
        """
        context = checked_context(context)
        with self._lock:
            if event.round <= self._round:
                raise StoreError("a compaction of this round is already stored", code="stale_round")
            own_id = self._next_id()
            was = {each.id: each.message for each in self._active}
            unknown = [i for i in (*event.compacted_ids, *_named(context)) if i not in was]
            if unknown:
                raise StoreError("an id is not in the context", code="unknown_entry", path="ids")
            now = []
            for number, entry in enumerate(context):
                message = was[entry.id] if entry.message is None else copy.deepcopy(entry.message)  # type: ignore[index]
                now.append(StoredMessage(f"{own_id}.{number}" if entry.id is None else entry.id, message))
            behind = len(now)
            known = {*event.compacted_ids, *_named(context)}
            now += [each for each in self._active if each.id not in known]  # appended meanwhile
            compaction = StoreEntry(own_id, "compaction", event=event, context=tuple(now[:behind]))
            self._entries.append(compaction)
            self._active, self._round = now, event.round

    def save_fold(self, session: str, fold: str) -> None:
        """Stores a fold of a whole history."""
        with self._lock:
            self._entries.append(StoreEntry(self._next_id(), "fold", fold=(session, fold)))

    def load_folds(self, session: str, limit: int) -> list[str]:
        """The newest folds of a session, oldest first."""
        with self._lock:
            found = [entry.fold[1] for entry in self._entries if entry.fold is not None and entry.fold[0] == session]
        return found[max(0, len(found) - limit) :]

    def _next_id(self) -> str:
        return f"e{len(self._entries) + 1}"

    def _replay(self, entry: StoreEntry) -> None:
        """Applies an entry of an earlier journal."""
        if entry.id != self._next_id():
            raise StoreError("an entry is missing or out of order", code="bad_entry")
        checked_messages((each.message for each in entry.context), "context")
        if entry.kind == "message" and entry.message is not None:
            checked_messages([entry.message])
            self._active.append(StoredMessage(entry.id, entry.message))
        elif entry.kind == "fold" and entry.fold is not None:
            pass
        elif entry.event is not None:
            known = {*entry.event.compacted_ids, *(each.id for each in entry.context)}
            self._active = [*entry.context, *(each for each in self._active if each.id not in known)]
            self._round = entry.event.round
        else:
            raise StoreError("neither a message nor a compaction", code="bad_entry")
        self._entries.append(entry)


def _named(context: Sequence[ContextEntry]) -> list[int | str]:
    return [entry.id for entry in context if entry.id is not None]
