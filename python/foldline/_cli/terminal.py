"""Lines for a terminal: cut to its width, colour that only adds, ASCII where nothing else can be shown."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from foldline._cli.progress import printable

__all__ = ["Screen", "short", "span"]

#: What is written for signs that an encoding lacks.
_ASCII = {"→": "->", "…": "...", "█": "#", "░": ".", "·": ".", "×": "x", "✓": "+"}

#: Colours of the parts of a bar.
_COLORS = {"R": "cyan", "C": "blue", "A": "green", "U": "yellow", "T": "magenta", "S": "red", "F": "white", "P": "blue"}


def short(tokens: int) -> str:
    """Tokens in a few letters.

    Examples:
        >>> short(119910), short(3630), short(512)
        ('120k', '3.6k', '512')
    """
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.1f}k" if tokens < 10_000 else f"{tokens / 1_000:.0f}k"


def span(first: int, last: int) -> str:
    """A range of indices, both included."""
    return str(first) if first == last else f"{first}..{last}"


@dataclass(frozen=True, slots=True)
class Screen:
    """Where lines are written.

    Attributes:
        width: Columns.
        is_colored: Whether colour may be added.
        is_ascii: Whether only ASCII can be shown.
    """

    width: int = 80
    is_colored: bool = False
    is_ascii: bool = False

    @classmethod
    def here(cls) -> Screen:
        """The standard output of this process: at least 80 columns, at most 120."""
        is_terminal = bool(sys.stdout and sys.stdout.isatty())
        columns = shutil.get_terminal_size((80, 24)).columns if is_terminal or "COLUMNS" in os.environ else 80
        encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not is_terminal
        return cls(120 if columns >= 120 else 80, not plain, not encoding.startswith("utf"))

    @property
    def is_wide(self) -> bool:
        """Whether there is room for times and full numbers."""
        return self.width >= 120

    def text(self, words: str) -> str:
        """A text of one line as it can be shown, control characters escaped."""
        words = printable(" ".join(words.split()))
        if not self.is_ascii:
            return words
        for sign, plain in _ASCII.items():
            words = words.replace(sign, plain)
        return words.encode("ascii", "backslashreplace").decode()

    def cut(self, words: str, columns: int) -> str:
        """A text cut to columns, with an ellipsis."""
        words = self.text(words)
        dots = "..." if self.is_ascii else "…"
        return words if len(words) <= columns else words[: max(columns - len(dots), 0)] + dots

    def cut_start(self, words: str, columns: int) -> str:
        """A text of which the end is shown: of a path, its name."""
        words = self.text(words)
        dots = "..." if self.is_ascii else "…"
        return words if len(words) <= columns else dots + words[-max(columns - len(dots), 1) :]

    def line(self, words: str = "") -> None:
        """Writes a line, cut to the width."""
        click.echo(self.cut_line(words))

    def cut_line(self, words: str) -> str:
        """A line as it is written; its spaces stay."""
        if self.is_ascii:
            for sign, plain in _ASCII.items():
                words = words.replace(sign, plain)
        words = words.rstrip()
        dots = "..." if self.is_ascii else "…"
        return words if len(words) <= self.width else words[: self.width - len(dots)] + dots

    def colored(self, words: str, color: str) -> str:
        """A text in a colour, if colour may be added."""
        return click.style(words, fg=color) if self.is_colored else words

    def bar(self, parts: Sequence[tuple[str, int]], whole: int) -> str:
        """A bar of the whole width: each part by its letter, the rest is free."""
        letters, used, drawn = "", 0, 0
        for letter, tokens in parts:
            used += tokens
            until = min(self.width, round(self.width * used / max(whole, 1)))
            count = max(until - drawn, 1 if tokens and drawn < self.width else 0)
            block = letter + ("█" if self.is_colored and not self.is_ascii else letter) * (count - 1) if count else ""
            letters += self.colored(block, _COLORS.get(letter, "white"))
            drawn += count
        return letters + ("·" if self.is_colored and not self.is_ascii else ".") * max(self.width - drawn, 0)
