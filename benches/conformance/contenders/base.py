"""The contender interface: a library, its documented options for this purpose, and its call."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from judging import Count, Message

#: The answer of a stub model, for libraries that request a summary.
SUMMARY = "The user and the assistant worked through the earlier requests; results were looked up and reported."


class RefusedError(Exception):
    """The library reports that the budget cannot be met."""


class Trimmer(Protocol):
    """A library, ready to be called."""

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        """The timed call. Conversion of messages into the library's own objects happens before."""
        ...

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        """The answer in OpenAI's form; raises `RefusedError` if the library refused."""
        ...


@dataclass(frozen=True, slots=True)
class Contender:
    """A library with one set of options.

    Attributes:
        name: Its row in the table.
        package: The distribution on PyPI.
        module: The imported module.
        options: The options, as in its documentation.
        load: Makes a trimmer from the independent text counter.
        counts_tokens: Whether its budget is in tokens. If not, it gets the same share of the messages.
    """

    name: str
    package: str
    module: str
    options: str
    load: Callable[[Count], Trimmer]
    counts_tokens: bool = True

    def version(self) -> str:
        """The installed version."""
        return importlib.metadata.version(self.package)

    def missing(self) -> str | None:
        """The reason why it cannot be run, if any."""
        try:
            importlib.import_module(self.module)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return None


def by_identity(answer: Sequence[Any], made: Sequence[Any], messages: Sequence[Message]) -> list[Message | None]:
    """The originals of those objects that were returned unchanged; None for new ones."""
    originals = {id(own): message for own, message in zip(made, messages)}
    return [originals.get(id(own)) for own in answer]
