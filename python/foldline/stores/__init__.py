"""Where sessions are kept: in memory, in a file of JSON lines."""

from __future__ import annotations

from foldline.stores._tree import SessionEntry
from foldline.stores.jsonl import JsonlSession
from foldline.stores.memory import MemoryStore, StoreEntry

__all__ = ["JsonlSession", "MemoryStore", "SessionEntry", "StoreEntry"]
