"""The texts of a report: redacted, with nothing hidden, or left out."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foldline._html import shown

__all__ = ["FACT_NAMES", "FATES", "KIND_NAMES", "REASONS", "Texts", "cut"]

#: The kinds of facts in the order of a page, with their names.
KIND_NAMES = {
    "task": "Task",
    "request": "Requests",
    "constraint": "Constraints",
    "correction": "Corrections",
    "statement": "Statements",
    "question": "Questions",
    "done": "Done",
    "open_task": "Open tasks",
    "decision": "Decisions",
    "command": "Commands",
    "error": "Errors",
    "identifier": "Names",
    "number": "Numbers",
    "state": "Last state",
    "read_file": "Files read",
    "modified_file": "Files changed",
}

#: What a fact is called where its text is left out.
FACT_NAMES = {"read_file": "file", "modified_file": "file", "open_task": "task", "identifier": "name"}

#: The fates of messages by their letter: sign, name, and what becomes of the message.
FATES = {
    "f": ("▨", "folded", "goes into the summary"),
    "p": ("◆", "pinned", "stays, unchanged"),
    "k": ("●", "kept", "stays, unchanged"),
    "c": ("◌", "cleared", "stays, its results are a placeholder"),
    "s": ("◐", "shortened", "stays, of its results head and tail"),
    "d": ("×", "dropped", "is gone without a summary"),
}

#: The reasons of a plan in words.
REASONS = {
    "head": "instructions at the beginning",
    "compaction": "the provider's own compaction",
    "pinned": "you pinned it",
    "pinned_group": "its call or result is pinned",
    "open_call": "a call without a result",
    "recent": "at or after the cut",
    "fits": "the list is within its budget",
    "nothing_to_fold": "nothing may be folded",
    "keep_unmet": "no legal cut leaves what the keep asks for",
    "gain_too_small": "folding would save too little",
    "no_gain": "a summary would cost as much as it replaces",
    "before_cut": "before the cut",
    "earlier_summary": "an earlier summary, merged into the new one",
    "cleared_to_fit": "cleared to meet the budget",
    "shortened_to_fit": "shortened to meet the budget",
}

_SPACES = re.compile(r"\s+")


def cut(text: str, chars: int) -> str:
    """The start of a text, with an ellipsis if it goes on."""
    return text if len(text) <= chars else text[: max(chars - 1, 0)].rstrip() + "…"


@dataclass(slots=True)
class Texts:
    """How a report shows texts.

    Attributes:
        content: Whether texts of messages are shown at all.
        redact: Applied to every text that is shown.
    """

    content: bool = True
    redact: Callable[[str], str] | None = None
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def whole(self, text: str) -> str:
        """A text as it is, redacted, with nothing hidden; empty without content."""
        if not self.content:
            return ""
        return shown(text if self.redact is None else self.redact(text))

    def name(self, text: str | None) -> str:
        """A name that is not from a message, such as that of a session or a model; empty without content."""
        return cut(self.whole(text or ""), 120)

    def line(self, text: str, chars: int) -> str:
        """The start of a text on one line."""
        return cut(_SPACES.sub(" ", self.whole(text)).strip(), chars)

    def fact(self, kind: str, text: str) -> str:
        """The text of a fact; without content its kind and number, equal for equal texts."""
        if self.content:
            return cut(self.whole(text), 600)
        name = FACT_NAMES.get(kind, kind)
        number = self._numbers.setdefault((name, text), sum(known == name for known, _ in self._numbers) + 1)
        return f"{name.replace('_', ' ')} {number}"

    def call(self, call: Mapping[str, Any]) -> str:
        """A call in a few words: its tool and the name of its file, or its main argument."""
        argument = str(call["argument"])
        if call["files"] and call["command"] is None:
            argument = posixpath.basename(argument.rstrip("/")) or argument
        return self.line(f"{call['tool']} {argument}", 80)
