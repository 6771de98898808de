"""Checks of numbers passed by callers, and of records read from files."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

from foldline.errors import ConfigError

__all__ = ["fields_of", "message_index", "token_number", "whole_number"]

#: Least number that is not believed. Python does not write numbers of thousands of digits, nor their sums.
_MOST = 1 << 63


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


def fields_of(kind: type[Any], record: object) -> dict[str, Any] | None:
    """The fields of a dataclass in a record read from JSON; None if one is unknown or has a value of another type.

    Args:
        kind: The dataclass. Its fields are texts, numbers that are not negative, objects, lists of texts, or None.
        record: The record. Fields that it lacks are missing from the result, too.
    """
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    if not isinstance(record, dict) or not types.keys() >= record.keys():
        return None
    if not all(_has_type(value, types[name]) for name, value in record.items()):
        return None
    return {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}


def _has_type(value: object, type_: str) -> bool:
    """Whether a JSON value has a type, given by its annotation."""
    match value:
        case None:
            return type_.endswith("None")
        case bool():
            return False
        case str():
            return type_.startswith("str")
        case int() | float():
            is_number = type_.startswith("float") or (type_.startswith("int") and isinstance(value, int))
            return is_number and 0 <= value < _MOST  # neither NaN nor infinite
        case list():
            return type_.startswith("tuple[str") and all(isinstance(each, str) for each in value)
        case _:
            return type_.startswith("Mapping")
