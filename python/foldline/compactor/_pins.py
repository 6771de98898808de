"""Pins that last: pinned messages are known again by their hash and its occurrence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from foldline._util.checks import message_index
from foldline.errors import ConfigError
from foldline.typing import Messages, Pin

__all__ = ["PinMemory", "Pins", "as_predicates", "may_call", "split_pins"]

#: The pins of one call.
Pins: TypeAlias = "Iterable[Pin] | Callable[[Any], bool]"


def as_predicates(pins: object, path: str = "pins") -> tuple[Callable[[Any], bool], ...]:
    """Pins that hold for every call, or a `ConfigError`: an index is only valid for one list."""
    given = (pins,) if callable(pins) else pins
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise ConfigError("must be predicates", code="bad_pin", path=path)
    predicates = tuple(given)
    if not all(callable(each) for each in predicates):
        detail = "must be predicates; give indices to compact, or to prepare"
        raise ConfigError(detail, code="bad_pin", path=path)
    return predicates


def split_pins(pins: Pins) -> tuple[list[int], list[Callable[[Any], bool]]]:
    """The indices and the predicates of the pins of a call."""
    try:
        given = [pins] if callable(pins) else list(pins)
    except TypeError:
        raise ConfigError("must be indices or predicates", code="bad_pin", path="pins") from None
    return [message_index(each, "pins") for each in given if not callable(each)], [e for e in given if callable(e)]


def may_call(pins: Pins) -> bool:
    """Whether the pins of a call may be functions."""
    return not isinstance(pins, (list, tuple)) or any(map(callable, pins))


class PinMemory:
    """The pinned messages of a list, by hash and occurrence: the k-th of the messages with one hash.

    A message that a predicate of `Compactor.unpin` matches is forgotten when it is next found. It may be absent from
    the list at the time of the call, so that the memory of each message counts the predicates that it has passed.
    """

    __slots__ = ("_passed", "_pinned")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._pinned: dict[int, set[int]] = {}
        self._passed: dict[int, int] = {}
        self.add(pairs)

    def __bool__(self) -> bool:
        return bool(self._pinned)

    def pairs(self) -> list[tuple[int, int]]:
        """Each hash with one of its occurrences, sorted."""
        return sorted((digest, each) for digest, occurrences in self._pinned.items() for each in occurrences)

    def add(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Adds pinned messages by hash and occurrence."""
        for digest, occurrence in pairs:
            self._pinned.setdefault(digest, set()).add(occurrence)

    def find(
        self, hashes: Sequence[int], messages: Messages, unpinned: Sequence[Callable[[Any], bool]] = ()
    ) -> set[int]:
        """The indices of the pinned messages in a list. O(messages).

        Args:
            hashes: The hash of each message.
            messages: The list.
            unpinned: The predicates of all calls of `Compactor.unpin`.
        """
        if not self._pinned:
            return set()
        places: dict[int, list[int]] = {each: [] for each in self._pinned}
        for index, digest in enumerate(hashes):
            if digest in places:
                places[digest].append(index)
        found = set()
        for digest, occurrences in self._pinned.items():
            at, ended = places[digest], unpinned[self._passed.get(digest, 0) :]
            # Fewer equal messages than remembered: the last of them stands for the missing ones.
            indices = {at[min(each, len(at) - 1)] for each in occurrences if at}
            found |= {i for i in indices if not any(each(messages[i]) for each in ended)}
        return found

    def replace(
        self, hashes: Sequence[int | None], pins: Iterable[int], *, passed: int = 0, is_part: bool = False
    ) -> None:
        """Remembers the pins of a list; a message without a hash is not remembered. O(messages).

        Args:
            hashes: The hash of each message.
            pins: The pinned messages.
            passed: Number of predicates of `Compactor.unpin` that were heeded.
            is_part: Whether the list may be a part of a history: pinned messages that it lacks stay remembered.
        """
        pinned = set(pins)
        absent = set(self._pinned).difference(hashes) if is_part else ()
        self._pinned = {digest: self._pinned[digest] for digest in absent}
        self._passed = {digest: self._passed.get(digest, 0) for digest in absent}
        seen: dict[int, int] = {digest: 0 for pin in pinned if (digest := hashes[pin]) is not None}
        if not seen:
            return
        for index, digest in enumerate(hashes):
            if digest in seen and digest is not None:
                if index in pinned:
                    self._pinned.setdefault(digest, set()).add(seen[digest])
                    self._passed[digest] = passed
                seen[digest] += 1
