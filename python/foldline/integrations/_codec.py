"""How the messages of a framework become dicts, and how dicts become its messages again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from foldline.typing import Format, Message

__all__ = ["Codec", "Dicts", "changed_members"]


class Codec(ABC):
    """Converts the messages of one framework. It keeps no state.

    A message may be several dicts, such as one request with a system prompt and the results of several calls.
    """

    #: The dialect of the dicts.
    format: Format

    @abstractmethod
    def dicts(self, message: Any) -> Sequence[Message]:
        """A message as dicts: at least one, in the order of its parts."""

    @abstractmethod
    def summary(self, message: Message) -> Any:
        """A new message: a summary, or a filler between two messages of one side."""

    @abstractmethod
    def edited(self, original: Any, dicts: Sequence[Message], kept: Sequence[tuple[int, Message]]) -> Any:
        """A copy of a message with a part of its dicts, some with new content.

        Args:
            original: The message. It is not changed.
            dicts: Its dicts.
            kept: Those that stay, each with its place among them. One that is not the same object has new content.
        """


class Dicts(Codec):
    """Messages that are dicts of a dialect already."""

    def __init__(self, format: Format) -> None:
        self.format = format

    def dicts(self, message: Any) -> Sequence[Message]:
        """The message itself."""
        return (message,)

    def summary(self, message: Message) -> Any:
        """The message itself."""
        return message

    def edited(self, original: Any, dicts: Sequence[Message], kept: Sequence[tuple[int, Message]]) -> Any:
        """The core's copy."""
        del original, dicts
        return kept[0][1]


def changed_members(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an edited object that differ from those of the original."""
    return {name: value for name, value in new.items() if name not in old or old[name] is not value}
