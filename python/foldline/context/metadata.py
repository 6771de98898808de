"""Metadata of messages, stored outside them: origins, importance, and keys of the user."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, overload

from foldline.context.state import checked_key
from foldline.errors import ConfigError
from foldline.typing import ORIGINS, Origin

__all__ = ["IMPORTANCE", "PINNED_FROM", "ROUND", "Key", "Metadata"]

T = TypeVar("T")

#: The least importance that pins a message.
PINNED_FROM: Final = 10.0


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """A name with the type of its values.

    A value of another type reads as absent; if the type is float, integers are accepted.

    Examples:
        >>> reviewed = Key("reviewed", bool)
        >>> metadata = Metadata()
        >>> metadata.set(3, reviewed, True)
        >>> metadata.get(3, reviewed), metadata.get(4, reviewed)
        (True, None)
    """

    name: str
    type: type[T]

    def __post_init__(self) -> None:
        checked_key(self.name, "name")

    def read(self, value: object) -> T | None:
        """The value if it has this key's type, else None."""
        if isinstance(value, bool):  # a bool does not count as a number
            return value if isinstance(value, self.type) and self.type in (bool, object) else None
        if self.type is float and isinstance(value, numbers.Real):
            try:
                return float(value)  # type: ignore[return-value]
            except OverflowError:
                return None
        return value if isinstance(value, self.type) else None


#: Importance of a message, in [-10, 10]: 10 pins it; absent or not a number is neutral.
IMPORTANCE: Final = Key("foldline:importance", float)
#: The round of the compaction that wrote this summary, from 1.
ROUND: Final = Key("foldline:round", int)
_ORIGIN: Final = Key("foldline:origin", str)


class Metadata:
    """Metadata of messages, by index. Initially empty; reading never fails.

    A message without metadata is ``"original"`` and neutral. Compactions return the metadata of the new list: each
    message's metadata moves with it (`moved`).

    Examples:
        >>> metadata = Metadata()
        >>> metadata.importance(7), metadata.origin(7), metadata.is_pinned(7)
        (0.0, 'original', False)
        >>> metadata.set_importance(7, 10)
        >>> metadata.is_pinned(7), metadata.moved([None, 7]).is_pinned(1)
        (True, True)
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[int, dict[str, Any]] = {}

    def __repr__(self) -> str:
        return f"Metadata(messages={len(self._values)})"

    def __len__(self) -> int:
        """Number of messages with metadata."""
        return len(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metadata) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[int]:
        """Indices of the messages with metadata, ascending."""
        return iter(sorted(self._values))

    def set(self, index: int, key: Key[T] | str, value: T | Any) -> None:
        """Sets a value for a message.

        Raises:
            ConfigError: The index is not a whole number from 0, or the key is not a name.
        """
        at: object = index
        if isinstance(at, bool) or not isinstance(at, int) or at < 0:
            raise ConfigError("must be a whole number from 0", code="bad_index", path="index")
        self._values.setdefault(at, {})[_name(key)] = value

    @overload
    def get(self, index: int, key: Key[T]) -> T | None: ...
    @overload
    def get(self, index: int, key: Key[T], default: T) -> T: ...
    @overload
    def get(self, index: int, key: str, default: Any = None) -> Any: ...
    def get(self, index: int, key: Key[Any] | str, default: Any = None) -> Any:
        """A value of a message; the default if it is absent or has another type."""
        value = self._values.get(index, {}).get(_name(key))
        if isinstance(key, Key):
            value = key.read(value)
        return default if value is None else value

    def set_importance(self, index: int, score: float) -> None:
        """Sets a message's importance.

        Raises:
            ConfigError: The score is not a number in [-10, 10].
        """
        number = IMPORTANCE.read(score)
        if number is None or not -PINNED_FROM <= number <= PINNED_FROM:
            raise ConfigError("must be a number in [-10, 10]", code="bad_importance", path="score")
        self.set(index, IMPORTANCE, number)

    def importance(self, index: int) -> float:
        """A message's importance, clamped to [-10, 10]; 0.0 if not set."""
        score = self.get(index, IMPORTANCE)
        if score is None or math.isnan(score):
            return 0.0
        return max(-PINNED_FROM, min(PINNED_FROM, score))

    def is_pinned(self, index: int) -> bool:
        """Whether its importance pins the message."""
        return self.importance(index) >= PINNED_FROM

    def set_origin(self, index: int, origin: Origin) -> None:
        """Sets a message's origin.

        Raises:
            ConfigError: The origin is not ``original``, ``compacted_synthetic``, ``compacted_modified`` or
                ``retrieved_history``.
        """
        if origin not in ORIGINS:
            raise ConfigError(f"must be one of {', '.join(ORIGINS)}", code="bad_origin", path="origin")
        self.set(index, _ORIGIN, origin)

    def origin(self, index: int) -> Origin:
        """A message's origin; ``"original"`` if not set."""
        origin = self.get(index, _ORIGIN, "original")
        return origin if origin in ORIGINS else "original"

    def importances(self, count: int) -> dict[int, float]:
        """Scores of the first ``count`` messages that are not neutral, as `plan` takes them."""
        return {i: score for i in self._below(count) if (score := self.importance(i))}

    def origins(self, count: int) -> dict[int, Origin]:
        """Origins of the first ``count`` messages other than ``"original"``, as `plan` takes them."""
        return {i: origin for i in self._below(count) if (origin := self.origin(i)) != "original"}

    def _below(self, count: int) -> Iterator[int]:
        return (i for i in self if i < count)

    def copy(self) -> Metadata:
        """An independent copy."""
        copied = Metadata()
        copied._values = {index: dict(values) for index, values in self._values.items()}
        return copied

    def moved(self, sources: Sequence[int | None]) -> Metadata:
        """The metadata for a new list.

        Args:
            sources: For every message of the new list its index in the old one; None for a new message.
        """
        moved = Metadata()
        for new, old in enumerate(sources):
            if old is not None and old in self._values:
                moved._values[new] = dict(self._values[old])
        return moved


def _name(key: Key[Any] | str) -> str:
    return key.name if isinstance(key, Key) else checked_key(key)
