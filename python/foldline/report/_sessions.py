"""Sessions of foldline's own stores as transcripts: the original messages, with the compactions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from foldline.reading import read, transcript_of
from foldline.typing import StoredCompaction, StoredMessage, StoredTranscript

if TYPE_CHECKING:
    from foldline.stores._rows import RecordedCompaction
    from foldline.stores.jsonl import JsonlSession
    from foldline.stores.sql import SqlStore

__all__ = ["of_rows", "of_store"]


def of_store(store: JsonlSession | SqlStore) -> StoredTranscript:
    """A session as a transcript. O(the session).

    Raises:
        MessageError: It has no messages, or they cannot be read.
        StoreError: The database cannot be read.
        OSError: The file cannot be read.
    """
    from foldline.stores.jsonl import JsonlSession

    if isinstance(store, JsonlSession):
        return next(each for each in read(store.path) if "#" not in each.id)
    return of_rows(store.id, store.history(), store.compactions())


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
            each.time,
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
