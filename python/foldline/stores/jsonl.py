"""A session in a file: one entry a line, appended and never changed. Reads and goes on with sessions of pi."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, Final, Literal

from foldline.errors import ConfigError, StoreError
from foldline.stores._appending import AppendFile
from foldline.stores._records import checked_id, event_fields, event_from, hash_of, new_context, plain
from foldline.stores._records import timestamp as iso
from foldline.stores._session_file import SessionFile, new_id
from foldline.stores._tree import CUSTOM, Context, SessionEntry, SessionTree
from foldline.typing import CompactionEvent, ContextEntry, Message, Problem, SessionStore, StoredMessage

__all__ = ["JsonlSession"]

#: The version of pi's format that is written.
_VERSION: Final = 3
_MIB: Final = 1 << 20

#: Entries that may be added beside messages.
_MARKS: Final = ("model_change", "thinking_level_change", "session_info", "label", "custom", "custom_message")


class JsonlSession:
    r"""A session in a file of JSON lines: messages, compactions, marks, as a tree of entries. Nothing is ever deleted.

    What `append` and `save_context` have returned is on the disk, whole. A record that a crash tore is passed over and
    reported, and the next one begins on a line of its own. Any number of threads and processes may write to one file:
    each write takes a lock and reads first what the others wrote. The newest entry is the leaf: the context is what
    the way from the root to it makes.

    Args:
        path: The file; it is made where there is none, for its owner alone. A link is not followed.
        id: The session's own id, for a new file; without it one is made up.
        format: The dialect of the messages, for a new file; without it it is detected when the file is read.
        meta: What else the header of a new file is to say, such as ``cwd``.
        durability: ``"fsync"``: on the disk when it returns. ``"none"``: when the system finds time; after a power cut
            the newest entries may be gone.
        readonly: Reads only; the file and its folder may be read-only.
        max_line_bytes: The longest entry that is written or read, newline included; a longer one is reported and
            passed over.
        max_bytes: How large the file may be.
        lock_timeout_s: How long a step waits for others.
        clock: Seconds since 1970, for the time of entries.

    Raises:
        StoreError: The file cannot be opened or made, or it is no session (``not_a_session``); ``code`` says what.
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
        format: str | None = None,
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
                raise ConfigError(f"must lie between {least} and {most}", path=name)
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
        """The session's own id; the name of its file where it has none."""
        found = (self._file.now().header or {}).get("id")
        return found if isinstance(found, str) else Path(self.path).stem

    @property
    def header(self) -> Mapping[str, Any]:
        """The first line of the file; empty where it is missing or damaged."""
        return self._file.now().header or {}

    @property
    def entries(self) -> tuple[SessionEntry, ...]:
        """Every entry of every branch, as they stand in the file."""
        return tuple(self._file.now().entries)

    @property
    def leaf(self) -> str | None:
        """The newest entry, which the next one follows; None before the first."""
        return self._file.now().leaf

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the file, by line; everything else was read."""
        return tuple(self._file.now().problems())

    def leaves(self) -> tuple[str, ...]:
        """The end of each branch, in the order of the file."""
        return tuple(self._file.now().leaves())

    def active(self, leaf: str | None = None) -> tuple[StoredMessage, ...]:
        """The context with its ids: of the newest entry, or of any other. O(its messages); of another, O(its path).

        Raises:
            StoreError: There is no such entry (``unknown_entry``), or the file cannot be read.
        """
        with self._file.owned():
            return tuple(self._context(leaf).messages)

    def messages(self, leaf: str | None = None) -> list[Message]:
        """The context: what the next request is made of. The messages are the store's own: not to be changed."""
        return [each.message for each in self.active(leaf)]

    def ids(self, leaf: str | None = None) -> list[int | str]:
        """The ids of the context."""
        return [each.id for each in self.active(leaf)]

    def history(self, leaf: str | None = None) -> tuple[SessionEntry, ...]:
        """Every entry from the first to a leaf: messages, compactions, marks."""
        with self._file.owned():
            path = self._context(leaf).path
            return tuple(self._file.tree.entries[index] for index in path)

    def restore(self, leaf: str | None = None) -> list[Message]:
        """The original messages, as if nothing had ever been compacted. Not to be changed."""
        with self._file.owned():
            return list(self._context(leaf).originals.values())

    def compacted_ids(self, leaf: str | None = None) -> frozenset[int | str]:
        """Ids of everything that was once in the context, and is no longer."""
        with self._file.owned():
            context = self._context(leaf)
            seen = set(context.originals)
            for index in context.compactions:
                listed = self._file.tree.entries[index].value.get("context")
                seen.update(each["id"] for each in listed or () if isinstance(each, dict) and "id" in each)
            return frozenset(seen.difference(each.id for each in context.messages))

    def last_round(self) -> int:
        """The round of the last compaction on the way to the newest entry; 0 before the first."""
        return self._file.now().main.round

    def check(self) -> tuple[Problem, ...]:
        """Looks whether what compactions covered is still what they say: the hash of each is reckoned anew. O(file).

        Returns:
            `problems`, and ``covered_changed`` for each that does not agree.
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
        """Adds a message behind the newest entry; its id comes back.

        Args:
            message: It is stored as JSON holds it: tuples become lists.
            id: An id of the caller's own. Where an entry has it already with the same message, that one is meant and
                nothing is written: an append whose outcome is not known may be repeated.
            expected_leaf: The newest entry as the caller knows it (None: there is none). Where somebody else has
                written meanwhile nothing is written. Without it the message goes behind whatever is there.

        Raises:
            StoreError: Nothing was written: ``conflict``, ``id_in_use``, ``not_json``, ``busy``, ``store_full``,
                ``io_error``, ``sync_failed``, ``needs_reopen``, …
            LimitExceeded: The message is nested too deep, or too long; or the file would be.
        """
        return self._append([message], id, expected_leaf)[0]

    def extend(self, messages: Iterable[Message], *, expected_leaf: str | EllipsisType | None = ...) -> list[str]:
        """Adds messages, one behind the other, with one write and one sync; their ids come back.

        Where it fails none is there; a crash in the middle may leave the first of them.
        """
        return self._append(list(messages), None, expected_leaf)

    def save_context(
        self,
        event: CompactionEvent,
        context: Sequence[ContextEntry],
        *,
        expected_leaf: str | EllipsisType | None = ...,
    ) -> None:
        """Remembers a compaction and the context from then on: one entry, there whole or not at all.

        An event that is stored already is not stored again.

        Raises:
            StoreError: The context names what is not in the current one (``unknown_entry``): its ids were not given to
                the compactor, or somebody else has compacted meanwhile. Or an earlier round (``stale_round``). Or
                nothing could be written, as for `append`.
            LimitExceeded: The entry, or the file, would be too long.
        """
        self._save(event, context, expected_leaf)

    def originals(self) -> SessionStore:
        """The session as if nothing had been compacted: for a compactor that is to make a summary of the originals.

        What it saves is a compaction like any other.

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
        """Goes on from an earlier entry; None: from the beginning. The mark is an entry, and the new leaf.

        What stood behind that entry is still there, as another branch.

        Raises:
            StoreError: There is no such entry (``unknown_entry``), or nothing could be written.
        """

        def make(tree: SessionTree) -> list[dict[str, Any]]:
            if from_id is not None and from_id not in tree.indices:
                raise StoreError("no such entry", code="unknown_entry", path="from_id")
            data = {"from": tree.leaf}
            return [self._file.entry(tree, CUSTOM, {"customType": "foldline.branch", "data": data}, parent=from_id)]

        return self._file.written(make)[0]

    def add_entry(self, type: str, fields: Mapping[str, Any]) -> str:
        """Adds an entry that is no message.

        Args:
            type: ``model_change``, ``thinking_level_change``, ``session_info``, ``label``, ``custom`` (which no model
                sees) or ``custom_message`` (which it does).
            fields: What it says.

        Raises:
            StoreError: Another type, or a field that every entry has (``bad_entry``); or nothing could be written.
        """
        if type not in _MARKS or {"type", "id", "parentId", "timestamp"}.intersection(fields):
            raise StoreError("no such entry can be added", code="bad_entry", path="type")
        held = plain(fields)
        return self._file.written(lambda tree: [self._file.entry(tree, type, held)])[0]

    def add_model_change(self, model: str, provider: str = "") -> str:
        """Notes that another model answers from here on."""
        return self.add_entry("model_change", {"provider": provider, "modelId": model})

    def add_usage(self, usage: Mapping[str, Any]) -> str:
        """Notes what a provider reported of a request."""
        return self.add_entry(CUSTOM, {"customType": "foldline.usage", "data": usage})

    def reopen(self) -> None:
        """Reads the file anew, and takes appends again after a write that failed.

        Raises:
            StoreError: It cannot be read.
        """
        self._file.reopen()

    # --- Within ---------------------------------------------------------------------------------------

    def _context(self, leaf: str | None) -> Context:
        tree = self._file.now()
        try:
            return tree.context(leaf)
        except KeyError:
            raise StoreError("no such entry", code="unknown_entry", path="leaf") from None

    def _append(self, messages: list[Message], id: str | None, expected_leaf: str | EllipsisType | None) -> list[str]:
        held = [plain(dict(message)) for message in messages]
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
        fields = event_fields(event)

        def make(tree: SessionTree) -> list[dict[str, Any]] | str:
            main = tree.main
            for index in main.compactions:
                entry = tree.entries[index]
                if entry.value.get("round") == event.round and event_from(entry.value, 0) == event_from(fields, 0):
                    return entry.id
            if event.round <= main.round:
                raise StoreError("a compaction of this round is stored already", code="stale_round")
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


def _is_as_covered(fields: Mapping[str, Any], covered: Mapping[str, Any], before: Context) -> bool:
    """Whether the messages that a compaction covered have the hash that it says."""
    originals = fields.get("base") == "originals"
    was = before.messages
    if originals:
        was = [StoredMessage(each, message) for each, message in before.originals.items()]
    listed = fields.get("context")
    kept = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    stays = {each.get("id") for each in kept if "message" not in each}
    touched = [each.message for each in was if each.id not in stays]
    salt = f"originals {fields.get('round')}" if originals else "" if touched else f"round {fields.get('round')}"
    return len(touched) == covered.get("count") and hash_of(touched, salt) == covered.get("sha256")
