"""What a message is made of, whatever dialect it came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    """Something that is not looked into: its JSON text."""

    text: str


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` is a string as it came, or the raw value that is counted as compact JSON."""

    id: str | None
    name: str
    arguments: Any
    takes_names: bool = False
    """Whether a result without an id may answer it though it has one (Gemini)."""


@dataclass(frozen=True)
class Result:
    """A tool result: what it answers, and its content as given in the message and as text pieces."""

    id: str | None
    name: str | None
    content: Any
    texts: tuple[str, ...]
    is_fixed: bool = False
    """Whether it has no place for another text: results that are pictures, lists of tools, or a server's."""


Part = Text | Reasoning | Encrypted | Opaque | Call | Result


@dataclass(frozen=True)
class Message:
    """One message: its role, its parts in order, and the name of the participant, if any.

    `binding` says how it hangs together with its neighbours beside calls and results: "reasoning" stays with the
    model's message behind it, "call" is of one batch with a call directly behind it, "turn" keeps the message behind
    it where it is pinned, nothing is summarised across a "compaction", a "closed" unit of several messages keeps its
    calls and results to itself. Such a unit may say by itself that it is pinned, or the summary of an earlier fold.
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
