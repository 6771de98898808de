"""The bar of a context window: how much is used by what, and how much is free."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import IO, Any

from foldline._core import Counts
from foldline._html import block, escaped, number, share
from foldline._util.checks import token_number

__all__ = ["BudgetBar"]

_LETTERS = {
    "tool_result": "R",
    "tool_call": "C",
    "text": "T",
    "reasoning": "K",
    "image": "P",
    "unknown": "?",
    "framing": "F",
    "overhead": "o",
}
_COLUMNS = 60


class BudgetBar:
    """A bar that is drawn in place: in IPython, on a terminal, and elsewhere as a line.

    Args:
        context_window: The tokens of the window.
        stream: Where lines are written. Default: standard error.

    Examples:
        >>> import foldline as fl
        >>> bar = fl.report.BudgetBar(1_000)
        >>> bar.set(250)
        >>> print(bar)
        [###############.............................................] 250 of 1,000 tokens, 25 %, 750 free
    """

    def __init__(self, context_window: int, *, stream: IO[str] | None = None) -> None:
        self.context_window = token_number(context_window, "context_window")
        self._stream = stream
        self._parts: list[tuple[str, int]] = []
        self._handle: Any = None

    def set(self, used: int | Counts | Mapping[str, int]) -> None:
        """Sets what is used: tokens, counts with their parts, or tokens by name."""
        if isinstance(used, Counts):
            parts = used.by_part | {"overhead": used.overhead}
            self._parts = [(_LETTERS.get(name, "#"), tokens) for name, tokens in parts.items() if tokens]
        elif isinstance(used, Mapping):
            self._parts = [(name[:1].upper() or "#", token_number(tokens, name)) for name, tokens in used.items()]
        else:
            self._parts = [("#", token_number(used, "used"))]

    def update(self, used: int | Counts | Mapping[str, int]) -> None:
        """Sets what is used, and draws the bar in place."""
        self.set(used)
        if self._displayed():
            return
        stream = sys.stderr if self._stream is None else self._stream
        is_terminal = stream.isatty()
        stream.write(f"\r{self}\x1b[K" if is_terminal else f"{self}\n")
        stream.flush()

    def _displayed(self) -> bool:
        """Draws in IPython, if this is one."""
        if self._stream is not None or "IPython" not in sys.modules:
            return False
        display: Any = sys.modules["IPython"].display
        if sys.modules["IPython"].get_ipython() is None:
            return False
        if self._handle is None:
            self._handle = display.display(self, display_id=True)
        else:
            self._handle.update(self)
        return True

    @property
    def tokens(self) -> int:
        """Tokens that are used."""
        return sum(tokens for _, tokens in self._parts)

    def __str__(self) -> str:
        drawn, used, bar = 0, 0, ""
        for letter, tokens in self._parts:
            used += tokens
            until = min(_COLUMNS, round(_COLUMNS * used / max(self.context_window, 1)))
            bar += letter * (until - drawn)
            drawn = max(drawn, until)
        return f"[{bar:.<{_COLUMNS}}] {self._words()}"

    def _words(self) -> str:
        free = self.context_window - self.tokens
        rest = f"{number(free)} free" if free >= 0 else f"{number(-free)} over"
        part = share(self.tokens, self.context_window)
        return f"{number(self.tokens)} of {number(self.context_window)} tokens, {part}, {rest}"

    def __repr__(self) -> str:
        return f"BudgetBar({self._words()})"

    def _repr_html_(self) -> str:
        width = min(100.0, 100 * self.tokens / max(self.context_window, 1))
        color = "#b3261e" if self.tokens > self.context_window else "#0b8074"
        bar = (
            f'<svg width="100%" height="14" role="img" aria-label="{escaped(self._words())}"><rect width="100%" '
            f'height="14" fill="#918877" fill-opacity=".25"/>'
            f'<rect width="{width:.1f}%" height="14" fill="{color}"/></svg>'
        )
        return block([bar], escaped(self._words()))
