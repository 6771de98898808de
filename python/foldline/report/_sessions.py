"""Sessions of foldline's own stores as transcripts: the original messages, with the compactions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from foldline.errors import ConfigError
from foldline.reading import read, transcript_of
from foldline.stores._records import RecordedCompaction, event_fields
from foldline.typing import Message, StoredCompaction, StoredMessage, StoredTranscript

if TYPE_CHECKING:
    from foldline.stores.jsonl import JsonlSession
    from foldline.stores.memory import MemoryStore
    from foldline.stores.sql import SqlStore

__all__ = ["of_rows", "of_store"]


def of_store(store: JsonlSession | SqlStore | MemoryStore) -> StoredTranscript:
    """A session as a transcript. O(the session).

    Raises:
        ConfigError: It is no store of foldline.
        MessageError: It has no messages, or they cannot be read.
        StoreError: The database cannot be read.
        OSError: The file cannot be read.
    """
    from foldline.stores.jsonl import JsonlSession
    from foldline.stores.memory import MemoryStore

    if isinstance(store, JsonlSession):
        return next(each for each in read(store.path) if "#" not in each.id)
    if isinstance(store, MemoryStore):
        return _of_memory(store)
    if not hasattr(store, "compactions"):
        raise ConfigError("neither a session nor a store of foldline", code="wrong_type", path="source")
    return of_rows(store.id, store.history(), store.compactions())


def _of_memory(store: MemoryStore) -> StoredTranscript:
    history: dict[int | str, Message] = {}
    recorded = []
    for entry in store.entries:
        if entry.message is not None:
            history[entry.id] = entry.message
        elif entry.event is not None:
            # A message is listed where it is new or edited.
            listed = [
                {"id": str(each.id)} | ({} if history.get(each.id) is each.message else {"message": each.message})
                for each in entry.context
            ]
            fields = event_fields(entry.event) | {"context": listed}
            recorded.append(RecordedCompaction(len(history), "", entry.event, fields))
    return of_rows("memory", [StoredMessage(*each) for each in history.items()], recorded)


def of_rows(session: str, history: Sequence[StoredMessage], recorded: Sequence[RecordedCompaction]) -> StoredTranscript:
    """A session of a database as a transcript.

    Raises:
        MessageError: It has no messages, or they cannot be read.
    """
    found = transcript_of([each.message for each in history], session)
    compactions = tuple(
        StoredCompaction(
            each.before,
            number,
            each.event.trigger,
            each.time or None,
            each.event.tokens_before,
            each.event.tokens_after,
            each.event.summary or None,
        )
        for number, each in enumerate(recorded)
    )
    meta = {
        "session_format": "foldline",
        "entry_ids": [[str(each.id)] for each in history],
        "entries": [{"type": "compaction"} | each.fields for each in recorded],
    }
    return dataclasses.replace(found, id=session, meta=meta, compactions=compactions)
