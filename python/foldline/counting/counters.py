"""Resolves the ``counter`` argument."""

from __future__ import annotations

from collections.abc import Callable

from foldline._core import TokenCounter

__all__ = ["as_counter"]


def as_counter(counter: TokenCounter | str | Callable[[str], int] | None) -> TokenCounter:
    """The `TokenCounter` for a counter, its name, or a function. Default: `o200k_base`."""
    if isinstance(counter, TokenCounter):
        return counter
    return TokenCounter("o200k_base" if counter is None else counter)
