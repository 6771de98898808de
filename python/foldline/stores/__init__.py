"""Where sessions are kept: `MemoryStore`, for tests and for sessions that end with their process."""

from __future__ import annotations

from foldline.stores.memory import MemoryStore, StoreEntry

__all__ = ["MemoryStore", "StoreEntry"]
