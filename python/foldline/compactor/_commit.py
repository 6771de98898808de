"""Commits a compaction to a store."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.errors import ConfigError, FoldlineError, StoreError
from foldline.strategies.base import StrategyResult
from foldline.typing import CompactionEvent, CompactionStore, ContextEntry, FoldStore, SessionStore

__all__ = ["checked_store", "context_of", "saved"]


def checked_store(store: object) -> CompactionStore | SessionStore | FoldStore | None:
    """Checks for a store or None, or raises a `ConfigError`."""
    if store is None or isinstance(store, (CompactionStore, SessionStore, FoldStore)):
        return store
    detail = "must have save_compaction, or all of SessionStore, or all of FoldStore"
    raise ConfigError(detail, code="bad_store", path="store")


def context_of(outcome: StrategyResult, ids: Sequence[int | str]) -> list[ContextEntry]:
    """The new context, by the ids of the old one."""
    edited = set(outcome.edited)
    entries = []
    for message, source in zip(outcome.messages, outcome.sources):
        if source is None:
            entries.append(ContextEntry(None, message))
        else:
            entries.append(ContextEntry(ids[source], message if source in edited else None))
    return entries


def saved(
    store: CompactionStore | SessionStore, event: CompactionEvent, outcome: StrategyResult, ids: Sequence[int | str]
) -> None:
    """Saves a compaction, and the new context if the store keeps messages.

    Raises:
        StoreError: Saving failed.
    """
    try:
        if isinstance(store, SessionStore):
            store.save_context(event, context_of(outcome, ids))
        else:
            store.save_compaction(event)
    except StoreError:
        raise
    except FoldlineError as error:
        raise StoreError(f"the store failed: {error.code}") from error
    except Exception as error:
        raise StoreError(f"the store raised {type(error).__name__}") from error
