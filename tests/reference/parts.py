"""The parts of a message, independent of its dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .media import Medium


@dataclass(frozen=True)
class Text:
    """Visible text of a message."""

    text: str


@dataclass(frozen=True)
class Reasoning:
    """Thinking that the provider returned; redacted thinking is its whole block as JSON text."""

    text: str


@dataclass(frozen=True)
class Encrypted:
    """Content that only the provider can read, in base64: reasoning, or a compaction."""

    text: str
    is_reasoning: bool


@dataclass(frozen=True)
class Opaque:
    """An opaque or unknown part: its JSON text without the data of files, and these files."""

    text: str
    media: tuple[Medium, ...] = ()


@dataclass(frozen=True)
class File:
    """A picture, or a file of which nothing is text."""

    media: tuple[Medium, ...]


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` is a string as received, or the raw value that is counted as compact JSON."""

    id: str | None
    name: str
    arguments: Any
    takes_names: bool = False
    """Whether a result without an id may answer it although it has one (Gemini)."""


@dataclass(frozen=True)
class Result:
    """A tool result: the id of its call, and its content as given in the message and as text pieces."""

    id: str | None
    name: str | None
    content: Any
    texts: tuple[str, ...]
    is_fixed: bool = False
    """Whether its text cannot be replaced: results that are pictures, lists of tools, or a server's."""
    media: tuple[Medium, ...] = ()


Part = Text | Reasoning | Encrypted | Opaque | File | Call | Result


@dataclass(frozen=True)
class Message:
    """One message: its role, its parts in order, and the name of the participant, if any.

    `binding` is how it is joined to its neighbours apart from calls and results: "reasoning" stays with the
    model message after it, "call" is in one batch with a call directly after it, "turn" keeps the message after
    it if it is pinned, nothing is summarised across a "compaction", a "closed" unit of several messages pairs its
    calls and results internally. Such a unit may mark itself as pinned, or as the summary of an earlier fold.
    """

    role: str
    parts: tuple[Part, ...]
    participant: str | None = None
    binding: str = ""
    is_pinned: bool = False
    is_synthetic: bool = False

    @property
    def texts(self) -> list[str]:
        """Text pieces outside calls, results and reasoning."""
        return [part.text for part in self.parts if isinstance(part, Text)]

    @property
    def reasoning(self) -> list[str]:
        """Reasoning pieces."""
        return [part.text for part in self.parts if isinstance(part, Reasoning)]

    @property
    def calls(self) -> list[Call]:
        """Tool calls in order."""
        return [part for part in self.parts if isinstance(part, Call)]

    @property
    def results(self) -> list[Result]:
        """Tool results in order."""
        return [part for part in self.parts if isinstance(part, Result)]

    @property
    def media(self) -> list[Medium]:
        """Pictures, documents, sound and video in order, those in results too."""
        return [medium for part in self.parts if isinstance(part, Opaque | File | Result) for medium in part.media]
