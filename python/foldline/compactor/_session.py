"""The memory of one session: its tries, its rounds, its pins, and its fold in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from foldline._core import LiveSnapshot
from foldline.compactor._background import Job
from foldline.compactor._guard import LoopGuard
from foldline.compactor._pins import PinMemory
from foldline.typing import Message, Messages

__all__ = ["Session"]


@dataclass(slots=True)
class Session:
    """The memory of one session.

    Attributes:
        guard: Counts unsuccessful tries.
        round: The last round.
        lock: Held while the memory is read or changed.
        job: The fold in the background, if any.
        begins_from_tokens: Tokens from which on another fold may be begun in the background, after one failed.
    """

    guard: LoopGuard
    round: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    job: Job[Any] | None = None
    begins_from_tokens: float = 0.0
    _pinned: PinMemory = field(default_factory=PinMemory)
    _passed: int = 0  # predicates of `Compactor.unpin` that these have passed
    #: Of the list after the last fold, and what was appended since: the index in the original history.
    _origins: list[int | None] = field(default_factory=list)
    _length: int = 0
    _summaries: list[Message] = field(default_factory=list)

    @property
    def has_pins(self) -> bool:
        """Whether pinned messages are remembered."""
        return bool(self._pinned)

    @property
    def has_folded(self) -> bool:
        """Whether this session made the summaries of its list."""
        return bool(self._summaries)

    def pins_of(
        self,
        prepared: LiveSnapshot,
        messages: Messages,
        indices: Iterable[int],
        predicates: Sequence[Callable[[Any], bool]],
        lasting: Sequence[Callable[[Any], bool]],
        unpinned: Sequence[Callable[[Any], bool]],
    ) -> tuple[int, ...]:
        """The pinned messages of a list: by index, by predicate, remembered, and a transcript's own.

        Args:
            prepared: The list, counted.
            messages: The list.
            indices: Indices of this call. One of a summary of this session means the message of that index in the
                original history, if it is still there.
            predicates: Predicates of this call. Summaries that match are not pinned.
            lasting: Predicates of every call.
            unpinned: Messages of ``lasting`` that match are not pinned; nor are remembered ones, unless pinned again
                since.

        Raises:
            ConfigError: An index is out of range, or of a summary (``pin_on_summary``).
        """
        summaries = set(prepared.summaries())
        found = set(prepared.pins())
        with self.lock:
            for index in indices:
                place = self._place_of(index, messages) if index in summaries else index
                prepared.check_pin(place)
                found.add(place)
            remembered = self._pinned.find(prepared.hashes(), messages, unpinned) if self._pinned else set()
            found |= remembered
            self._passed = len(unpinned)
            carried: set[int] = set()
            if summaries and not self._summaries:  # a fold of another process, as before a restart
                for group in prepared.carried():
                    # The label does not say which message of the group was pinned.
                    if len(_without(unpinned, set(group), messages)) == len(group):
                        carried |= set(group) - remembered
        found |= _matches(messages, predicates, summaries)
        found |= carried | _without(unpinned, _matches(messages, lasting, summaries), messages)
        return tuple(sorted(found))

    def _place_of(self, index: int, messages: Messages) -> int:
        """The place of a message of the original history, for the index of a summary of this session."""
        is_own = any(messages[index] == each for each in self._summaries)
        return self._origins.index(index) if is_own and index in self._origins else index

    def remember(self, prepared: LiveSnapshot, pins: Sequence[int]) -> None:
        """Remembers the pins of a list."""
        with self.lock:
            if pins or self._pinned:
                self._pinned.replace(prepared.hashes(), pins, passed=self._passed)

    def folded(
        self, prepared: LiveSnapshot, pins: Sequence[int], sources: Sequence[int | None], messages: Messages
    ) -> None:
        """Remembers the pins of the list that a fold gives, and which of its messages are new.

        Args:
            prepared: The list before.
            pins: Its pinned messages.
            sources: For each message of the new list its index; None for a new one.
            messages: The new list.
        """
        with self.lock:
            origins = self._origins_of(len(prepared))
            self._origins = [None if old is None else origins[old] for old in sources]
            self._summaries = [new for new, old in zip(messages, sources) if old is None]
            pinned, hashes = set(pins), prepared.hashes()
            moved = [new for new, old in enumerate(sources) if old in pinned]
            new = [None if old is None else hashes[old] for old in sources]
            self._pinned.replace(new, moved, passed=self._passed)

    def _origins_of(self, count: int) -> list[int | None]:
        """The index in the original history of each message of a list, if known."""
        if not self._summaries:
            self._length = count
            return list(range(count))
        added = range(self._length, self._length + max(0, count - len(self._origins)))
        self._length += len(added)
        return [*self._origins[:count], *added]


def _matches(messages: Messages, predicates: Sequence[Callable[[Any], bool]], summaries: set[int]) -> set[int]:
    return {
        i for predicate in predicates for i, message in enumerate(messages) if i not in summaries and predicate(message)
    }


def _without(predicates: Sequence[Callable[[Any], bool]], indices: set[int], messages: Messages) -> set[int]:
    return {i for i in indices if not any(each(messages[i]) for each in predicates)}
