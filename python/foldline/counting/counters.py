"""Counters from what callers give."""

from __future__ import annotations

from collections.abc import Callable

from foldline._core import TokenCounter

__all__ = ["as_counter"]


def as_counter(counter: TokenCounter | str | Callable[[str], int] | None) -> TokenCounter:
    """A counter from what callers may give: a counter, its name, a function; o200k_base without any."""
    if isinstance(counter, TokenCounter):
        return counter
    return TokenCounter("o200k_base" if counter is None else counter)
