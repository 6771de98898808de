"""Session stores: in memory, in a JSON Lines file, in a database (extra ``sql``)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from foldline.stores._tree import SessionEntry
from foldline.stores.jsonl import JsonlSession
from foldline.stores.memory import MemoryStore, StoreEntry

if TYPE_CHECKING:
    from foldline.stores.sql import SqlStore
    from foldline.stores.sql_async import AsyncSqlStore

__all__ = ["AsyncSqlStore", "JsonlSession", "MemoryStore", "SessionEntry", "SqlStore", "StoreEntry"]

#: Names that need an optional package, with their modules.
_LATER = {"AsyncSqlStore": "foldline.stores.sql_async", "SqlStore": "foldline.stores.sql"}


if not TYPE_CHECKING:  # else every misspelt name would be an attribute

    def __getattr__(name: str) -> Any:
        """Imports a database store on first use."""
        if name in _LATER:
            return getattr(importlib.import_module(_LATER[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
