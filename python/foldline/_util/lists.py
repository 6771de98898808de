"""Copies of lists passed by callers."""

from __future__ import annotations

from typing import Any

from foldline.typing import Messages

__all__ = ["same"]


def same(messages: Messages) -> list[Any]:
    """A shallow copy, made without calling methods of a user's subclass."""
    return list.copy(messages) if isinstance(messages, list) else list(tuple.__iter__(messages))  # type: ignore[arg-type]
