"""A session in an append-only JSON Lines file, one entry a line. Compatible with pi's sessions."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, Final, Literal

from foldline.errors import ConfigError, StoreError
from foldline.stores._appending import AppendFile
from foldline.stores._records import (
    checked_context,
    checked_id,
    checked_messages,
    event_fields,
    event_from,
    hash_of,
    new_context,
    plain,
)
from foldline.stores._records import timestamp as iso
from foldline.stores._session_file import SessionFile, new_id
from foldline.stores._tree import CUSTOM, Context, SessionEntry, SessionTree
from foldline.typing import CompactionEvent, ContextEntry, Format, Message, Problem, SessionStore, StoredMessage

__all__ = ["JsonlSession"]

#: Version of pi's format that is written.
_VERSION: Final = 3
_MIB: Final = 1 << 20

#: The type of marks for folds of whole histories.
_FOLD: Final = "foldline.fold"

#: Types of entries other than messages that callers may add.
_MARKS: Final = ("model_change", "thinking_level_change", "session_info", "label", "custom", "custom_message")

#: Fields of every entry, which callers may not set.
_RESERVED: Final = frozenset({"type", "id", "parentId", "timestamp"})


class JsonlSession:
    r"""A session in a JSON Lines file: messages, compactions and marks as a tree. Nothing is deleted.

    Entries are durable when `append` and `save_context` return. A record torn by a crash is skipped and reported; the
    next one begins on a new line. Any number of threads and processes may write to one file: each write takes a lock
    and first reads the entries of other writers. The newest entry is the leaf; the context is the result of the path
    from the root to it.

    Args:
        path: The file, created if missing with owner-only access. A link is not followed.
        id: Session id of a new file. Default: a random UUID.
        format: Dialect of the messages of a new file. Default: detected when the file is read.
        meta: Further fields for the header of a new file, such as ``cwd``.
        durability: ``"fsync"``: entries are on disk when a call returns. ``"none"``: the system writes them later; a
            power cut may lose the newest entries.
        readonly: Reads only; the file and its folder may be read-only.
        max_line_bytes: Longest entry written or read, newline included; a longer one is reported and skipped.
        max_bytes: Largest size of the file.
        lock_timeout_s: Timeout for taking the lock.
        clock: Returns Unix time in seconds, for the timestamps of entries.

    Raises:
        StoreError: The file cannot be opened or created, or is not a session (``not_a_session``); see ``code``.
        LimitExceeded: The file is too large (``session_too_large``).
        ConfigError: An option is out of range.

    Examples:
        >>> import tempfile, pathlib, foldline as fl
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "session.jsonl"
        >>> store = fl.stores.JsonlSession(file)
        >>> ids = store.extend({"role": "user", "content": f"Step {i}. " + "word " * 60} for i in range(6))
        >>> strategy = fl.strategies.Summarize(lambda messages: "Four steps.", keep_recent=2)
        >>> compactor = fl.Compactor(fl.triggers.MessageCount(5), strategy, store=store)
        >>> result = compactor.compact(store.messages(), ids=store.ids())
        >>> again = fl.stores.JsonlSession(file)  # after a restart
        >>> again.messages() == result.messages, len(again.messages()), len(again.restore())
        (True, 3, 6)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        id: str | None = None,
        format: Format | None = None,
        meta: Mapping[str, Any] | None = None,
        durability: Literal["fsync", "none"] = "fsync",
        readonly: bool = False,
        max_line_bytes: int = 64 * _MIB,
        max_bytes: int = 4096 * _MIB,
        lock_timeout_s: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if durability not in ("fsync", "none"):
            raise ConfigError("must be fsync or none", code="bad_durability", path="durability")
        for name, value, least, most in (
            ("max_line_bytes", max_line_bytes, 1024, 256 * _MIB),
            ("max_bytes", max_bytes, 1024, 1 << 62),
            ("lock_timeout_s", lock_timeout_s, 0, 1e9),
        ):
            if isinstance(value, bool) or not least <= value <= most:
                raise ConfigError(f"must be between {least} and {most}", path=name)
        self.path = os.fspath(path)
        header: dict[str, Any] = {"type": "session", "version": _VERSION}
        header |= {"id": checked_id(str(uuid.uuid4()) if id is None else id), "timestamp": iso(clock())}
        header |= plain(meta or {}) | {"foldline": {"version": 1, "format": format}}
        self._file = SessionFile(
            AppendFile(self.path, durable=durability == "fsync", lock_timeout_s=lock_timeout_s),
            max_line_bytes=max_line_bytes,
            max_bytes=max_bytes,
            readonly=readonly,
            clock=clock,
        )
        self._file.open(header)

    def __repr__(self) -> str:
        return f"JsonlSession({Path(self.path).name!r}, entries={len(self._file.tree.entries)})"

    # --- Reading --------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session id; the stem of the file name if the header has no id."""
        found = (self._file.now().header or {}).get("id")
        return found if isinstance(found, str) else Path(self.path).stem

    @property
    def header(self) -> Mapping[str, Any]:
        """The header, the first line of the file; empty if it is missing or corrupt."""
        return self._file.now().header or {}

    @property
    def entries(self) -> tuple[SessionEntry, ...]:
        """All entries of all branches, in file order."""
        return tuple(self._file.now().entries)

    @property
    def leaf(self) -> str | None:
        """Id of the newest entry, the parent of the next one; None if empty."""
        return self._file.now().leaf

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the file, sorted by line; all other lines were read."""
        return tuple(self._file.now().problems())

    def leaves(self) -> tuple[str, ...]:
        """The end of each branch, in the order of the file."""
        return tuple(self._file.now().leaves())

    def active(self, leaf: str | None = None) -> tuple[StoredMessage, ...]:
        """The context with its ids, at the newest or another entry. O(messages); at another entry, O(path length).

        Raises:
            StoreError: No such entry (``unknown_entry``), or the file cannot be read.
        """
        with self._file.owned():
            return tuple(self._context(leaf).messages)

    def messages(self, leaf: str | None = None) -> list[Message]:
        """The context, as sent in the next request. Do not modify the messages: they belong to the store."""
        return [each.message for each in self.active(leaf)]

    def ids(self, leaf: str | None = None) -> list[int | str]:
        """The ids of the context."""
        return [each.id for each in self.active(leaf)]

    def history(self, leaf: str | None = None) -> tuple[SessionEntry, ...]:
        """All entries from the root to a leaf: messages, compactions, marks."""
        with self._file.owned():
            path = self._context(leaf).path
            return tuple(self._file.tree.entries[index] for index in path)

    def restore(self, leaf: str | None = None) -> list[Message]:
        """The original messages, as if never compacted. Do not modify them."""
        with self._file.owned():
            return list(self._context(leaf).originals.values())

    def compacted_ids(self, leaf: str | None = None) -> frozenset[int | str]:
        """Ids of all messages that were once in the context, but no longer are."""
        with self._file.owned():
            context = self._context(leaf)
            seen = set(context.originals)
            for index in context.compactions:
                seen.update(each["id"] for each in _named(self._file.tree.entries[index].value))
            return frozenset(seen.difference(each.id for each in context.messages))

    def last_round(self) -> int:
        """Round of the last compaction on the path to the newest entry; 0 before the first."""
        return self._file.now().main.round

    def check(self) -> tuple[Problem, ...]:
        """Verifies compactions: recomputes the hash of the messages that each covered. O(file size).

        Returns:
            `problems`, and ``covered_changed`` for each mismatch.
        """
        with self._file.owned():
            self._file.refresh()
            found = list(self.problems)
            for index, entry in enumerate(self._file.tree.entries):
                covered = entry.value.get("covered")
                if entry.type != "compaction" or not isinstance(covered, dict):
                    continue
                before = self._file.tree.parents[index]
                context = Context() if before is None else self._file.tree.context(self._file.tree.entries[before].id)
                if not _is_as_covered(entry.value, covered, context):
                    found.append(Problem(None, "covered_changed", "", self.path, entry.line, entry.offset))
            return tuple(found)

    # --- Writing --------------------------------------------------------------------------------------

    def append(self, message: Message, *, id: str | None = None, expected_leaf: str | EllipsisType | None = ...) -> str:
        """Appends a message after the newest entry; returns its id.

        Args:
            message: The message, stored as JSON: tuples become lists.
            id: Idempotency key. If an entry has this id and the same message, nothing is written and its id is
                returned, so that an append with unknown outcome can be retried. Default: a random id.
            expected_leaf: The newest entry known to the caller (None: empty file). If another writer has appended
                since, nothing is written. Default: not checked.

        Raises:
            StoreError: Nothing was written: ``conflict``, ``id_in_use``, ``not_a_message``, ``not_json``, ``busy``,
                ``store_full``, ``io_error``, ``sync_failed``, ``needs_reopen``, …
            LimitExceeded: The message is nested too deeply or too long, or the file would be too large.
        """
        return self._append([message], id, expected_leaf)[0]

    def extend(self, messages: Iterable[Message], *, expected_leaf: str | EllipsisType | None = ...) -> list[str]:
        """Appends messages with one write and one sync; returns their ids.

        After an error none is stored; a crash may leave the first ones.
        """
        return self._append(messages, None, expected_leaf)

    def save_context(
        self,
        event: CompactionEvent,
        context: Sequence[ContextEntry],
        *,
        expected_leaf: str | EllipsisType | None = ...,
    ) -> None:
        """Stores a compaction and the new context as one entry, atomically.

        An event already stored is not stored again.

        Raises:
            StoreError: The context names an id not in the current one (``unknown_entry``): the compactor did not get
                the store's ids, or another process has compacted since. Or the round is not newer (``stale_round``). Or
                nothing could be written, as for `append`.
            LimitExceeded: The entry would be too long, or the file too large.
        """
        self._save(event, context, expected_leaf)

    def originals(self) -> SessionStore:
        """A view without compactions, for a compactor that summarizes the original messages.

        A compaction saved through it is a normal compaction.

        Examples:
            >>> import tempfile, pathlib, foldline as fl
            >>> store = fl.stores.JsonlSession(pathlib.Path(tempfile.mkdtemp()) / "session.jsonl")
            >>> _ = store.extend({"role": "user", "content": f"{i} " + "word " * 60} for i in range(6))
            >>> def compact(store, text):
            ...     strategy = fl.strategies.Summarize(lambda messages: text, keep_recent=2)
            ...     compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store)
            ...     context = store.active()
            ...     return compactor.compact([each.message for each in context], ids=[each.id for each in context])
            >>> _ = compact(store, "Four."), compact(store.originals(), "Four, told better.")
            >>> store.last_round(), "told better" in store.messages()[0]["content"], len(store.restore())
            (2, True, 6)
        """
        return _Originals(self)

    def branch(self, from_id: str | None) -> str:
        """Continues from an earlier entry, or from the beginning with None. Adds a mark, the new leaf.

        Later entries remain, as another branch.

        Raises:
            StoreError: No such entry (``unknown_entry``), or nothing could be written.
        """

        def make(tree: SessionTree) -> list[dict[str, Any]]:
            if from_id is not None and from_id not in tree.indices:
                raise StoreError("no such entry", code="unknown_entry", path="from_id")
            data = {"from": tree.leaf}
            return [self._file.entry(tree, CUSTOM, {"customType": "foldline.branch", "data": data}, parent=from_id)]

        return self._file.written(make)[0]

    def add_entry(self, type: str, fields: Mapping[str, Any]) -> str:
        """Adds an entry that is not a message.

        Args:
            type: ``model_change``, ``thinking_level_change``, ``session_info``, ``label``, ``custom`` (never sent to a
                model) or ``custom_message`` (sent to the model).
            fields: Fields of the entry.

        Raises:
            StoreError: Unsupported type, or a reserved field (``bad_entry``); or nothing could be written.
        """
        held = plain(fields)
        if type not in _MARKS or not isinstance(held, dict) or not _RESERVED.isdisjoint(held):
            raise StoreError("entries of this kind cannot be added", code="bad_entry", path="type")
        return self._file.written(lambda tree: [self._file.entry(tree, type, held)])[0]

    def add_model_change(self, model: str, provider: str = "") -> str:
        """Records that another model answers from here on."""
        return self.add_entry("model_change", {"provider": provider, "modelId": model})

    def add_usage(self, usage: Mapping[str, Any]) -> str:
        """Records the usage that a provider reported for a request."""
        return self.add_entry(CUSTOM, {"customType": "foldline.usage", "data": usage})

    def save_fold(self, session: str, fold: str) -> None:
        """Stores a fold of a whole history, as a mark that is never sent to a model.

        Raises:
            StoreError: The fold is not JSON (``not_json``), or nothing could be written.
        """
        try:
            data = {"session": session, "fold": json.loads(fold)}
        except (TypeError, ValueError, RecursionError):
            raise StoreError("a fold must be JSON", code="not_json", path="fold") from None
        self.add_entry(CUSTOM, {"customType": _FOLD, "data": data})

    def load_folds(self, session: str, limit: int) -> list[str]:
        """The newest folds of a session, oldest first. O(entries).

        Raises:
            StoreError: The file cannot be read.
        """
        marks = [entry.value for entry in self.entries if entry.value.get("customType") == _FOLD]
        data = [mark["data"] for mark in marks if isinstance(mark.get("data"), dict)]
        found = [json.dumps(each.get("fold")) for each in data if each.get("session") == session]
        return found[max(0, len(found) - limit) :]

    def reopen(self) -> None:
        """Reads the file again, and accepts appends again after a failed write.

        Raises:
            StoreError: The file cannot be read.
        """
        self._file.reopen()

    # --- Internals ------------------------------------------------------------------------------------

    def _context(self, leaf: str | None) -> Context:
        tree = self._file.now()
        try:
            return tree.context(leaf)
        except KeyError:
            raise StoreError("no such entry", code="unknown_entry", path="leaf") from None

    def _append(
        self, messages: Iterable[Message], id: str | None, expected_leaf: str | EllipsisType | None
    ) -> list[str]:
        held = [plain(message) for message in checked_messages(messages)]
        if id is not None:
            checked_id(id)
        if not held:
            return []

        def make(tree: SessionTree) -> list[dict[str, Any]] | str:
            if id is not None and id in tree.indices:
                if tree.entries[tree.indices[id]].message != held[0]:
                    raise StoreError("another entry has this id", code="id_in_use", path="id")
                return id
            parent, made = tree.leaf, []
            for message in held:
                made.append(self._file.entry(tree, "message", {"message": message}, id=id, parent=parent))
                parent = made[-1]["id"]
            return made

        return self._file.written(make, expected_leaf)

    def _save(
        self,
        event: CompactionEvent,
        context: Sequence[ContextEntry],
        expected_leaf: str | EllipsisType | None = ...,
        *,
        originals: bool = False,
    ) -> None:
        context = checked_context(context)
        fields = event_fields(event)

        def make(tree: SessionTree) -> list[dict[str, Any]] | str:
            main = tree.main
            for index in main.compactions:
                entry = tree.entries[index]
                if entry.value.get("round") == event.round and event_from(entry.value, 0) == event_from(fields, 0):
                    return entry.id
            if event.round <= main.round:
                raise StoreError("a compaction of this round is already stored", code="stale_round")
            was = main.messages
            if originals:
                was = [StoredMessage(each, message) for each, message in main.originals.items()]
            own_id = new_id(tree)
            made = new_context(own_id, event, context, was, originals=originals)
            listed = [
                {"id": each} | ({} if message is None else {"message": message}) for each, message in made.entries
            ]
            more = {"base": "originals" if originals else "context", "covered": made.covered, "context": listed}
            return [self._file.entry(tree, "compaction", fields | more, id=own_id)]

        self._file.written(make, expected_leaf)


class _Originals:
    """The original messages of a session, as a store for a compactor."""

    def __init__(self, session: JsonlSession) -> None:
        self._session = session

    def append(self, message: Message) -> str:
        return self._session.append(message)

    def active(self) -> tuple[StoredMessage, ...]:
        with self._session._file.owned():
            originals = self._session._context(None).originals
            return tuple(StoredMessage(each, message) for each, message in originals.items())

    def save_context(self, event: CompactionEvent, context: Sequence[ContextEntry]) -> None:
        self._session._save(event, context, originals=True)

    def last_round(self) -> int:
        return self._session.last_round()


def _named(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of a stored context that have an id."""
    listed = fields.get("context")
    kept = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [each for each in kept if isinstance(each.get("id"), str)]


def _is_as_covered(fields: Mapping[str, Any], covered: Mapping[str, Any], before: Context) -> bool:
    """Whether the messages that a compaction covered still have the recorded hash."""
    originals = fields.get("base") == "originals"
    was = before.messages
    if originals:
        was = [StoredMessage(each, message) for each, message in before.originals.items()]
    stays = {each["id"] for each in _named(fields) if "message" not in each}
    touched = [each.message for each in was if each.id not in stays]
    salt = f"originals {fields.get('round')}" if originals else "" if touched else f"round {fields.get('round')}"
    return len(touched) == covered.get("count") and hash_of(touched, salt) == covered.get("sha256")
