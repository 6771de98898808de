"""Checks of numbers passed by callers."""

from __future__ import annotations

import operator

from foldline.errors import ConfigError

__all__ = ["message_index", "token_number", "whole_number"]


def whole_number(value: object, field: str) -> int:
    """Returns a non-negative integer, or raises a `ConfigError` that names the field."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError("must be a whole number", code="bad_number", path=field) from None
    if number < 0:
        raise ConfigError("must not be negative", code="bad_number", path=field)
    if number >= 2**53:
        raise ConfigError("larger than any transcript", code="bad_number", path=field)
    return number


def message_index(value: object, field: str) -> int:
    """Returns the index of a message, or raises a `ConfigError` that names the field."""
    if isinstance(value, int) and value < 0:
        detail = "an index counts from the start; that of the last message is len(messages) - 1"
        raise ConfigError(detail, code="bad_number", path=field)
    return whole_number(value, field)


def token_number(value: object, field: str) -> int:
    """Returns a non-negative integer, or raises a `ConfigError` that names the field."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError("must be a whole number of tokens", code="bad_tokens", path=field) from None
    if number < 0:
        raise ConfigError("must not be negative", code="bad_tokens", path=field)
    if number >= 2**53:
        raise ConfigError("larger than any context", code="bad_tokens", path=field)
    return number
