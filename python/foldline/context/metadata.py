"""What is known of messages beside them: origins, importance, and whatever else a user keeps. Never in them."""

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

    A value of another type reads as absent; where numbers are expected, whole ones are numbers too.

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
        """The value where it is one of this key, else None."""
        if isinstance(value, bool):  # a bool is no number here
            return value if isinstance(value, self.type) and self.type in (bool, object) else None
        if self.type is float and isinstance(value, numbers.Real):
            try:
                return float(value)  # type: ignore[return-value]
            except OverflowError:
                return None
        return value if isinstance(value, self.type) else None


#: How important a message is, in [-10, 10]: from 10 on it is pinned; absent or no number is neutral.
IMPORTANCE: Final = Key("foldline:importance", float)
#: The round of the compaction that wrote this summary, from 1.
ROUND: Final = Key("foldline:round", int)
_ORIGIN: Final = Key("foldline:origin", str)


class Metadata:
    """What is known of messages, by their index. Empty until something is written; reading is never an error.

    A message that nothing was said of is ``"original"`` and neutral. Compactions give back the metadata of the new
    list: what was said of a message goes with it (`moved`).

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
        """Messages that something was said of."""
        return len(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metadata) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[int]:
        """Indices of these messages, ascending."""
        return iter(sorted(self._values))

    def set(self, index: int, key: Key[T] | str, value: T | Any) -> None:
        """Says something of a message.

        Raises:
            ConfigError: The index is no whole number from 0, or the key no name.
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
        """What was said of a message; the default where nothing was, or something of another type."""
        value = self._values.get(index, {}).get(_name(key))
        if isinstance(key, Key):
            value = key.read(value)
        return default if value is None else value

    def set_importance(self, index: int, score: float) -> None:
        """Says how important a message is.

        Raises:
            ConfigError: The score is no number in [-10, 10].
        """
        number = IMPORTANCE.read(score)
        if number is None or not -PINNED_FROM <= number <= PINNED_FROM:
            raise ConfigError("must be a number in [-10, 10]", code="bad_importance", path="score")
        self.set(index, IMPORTANCE, number)

    def importance(self, index: int) -> float:
        """How important a message is; 0.0 where that was not said. What lies beyond [-10, 10] is its end."""
        score = self.get(index, IMPORTANCE)
        if score is None or math.isnan(score):
            return 0.0
        return max(-PINNED_FROM, min(PINNED_FROM, score))

    def is_pinned(self, index: int) -> bool:
        """Whether it is so important that it stays verbatim."""
        return self.importance(index) >= PINNED_FROM

    def set_origin(self, index: int, origin: Origin) -> None:
        """Says where a message comes from.

        Raises:
            ConfigError: It is none of ``original``, ``compacted_synthetic``, ``compacted_modified``,
                ``retrieved_history``.
        """
        if origin not in ORIGINS:
            raise ConfigError(f"is one of {', '.join(ORIGINS)}", code="bad_origin", path="origin")
        self.set(index, _ORIGIN, origin)

    def origin(self, index: int) -> Origin:
        """Where a message comes from; ``"original"`` where that was not said."""
        origin = self.get(index, _ORIGIN, "original")
        return origin if origin in ORIGINS else "original"

    def importances(self, count: int) -> dict[int, float]:
        """Scores that are not neutral, of the first ``count`` messages, as `plan` takes them."""
        return {i: score for i in self._below(count) if (score := self.importance(i))}

    def origins(self, count: int) -> dict[int, Origin]:
        """Origins other than ``"original"``, of the first ``count`` messages, as `plan` takes them."""
        return {i: origin for i in self._below(count) if (origin := self.origin(i)) != "original"}

    def _below(self, count: int) -> Iterator[int]:
        return (i for i in self if i < count)

    def copy(self) -> Metadata:
        """The same, for somebody else to write to."""
        copied = Metadata()
        copied._values = {index: dict(values) for index, values in self._values.items()}
        return copied

    def moved(self, sources: Sequence[int | None]) -> Metadata:
        """The metadata of a new list.

        Args:
            sources: For every message of the new list the index that it had in the old one; None for a new message.
        """
        moved = Metadata()
        for new, old in enumerate(sources):
            if old is not None and old in self._values:
                moved._values[new] = dict(self._values[old])
        return moved


def _name(key: Key[Any] | str) -> str:
    return key.name if isinstance(key, Key) else checked_key(key)
