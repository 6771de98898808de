"""The entries of a session file as a tree, and the context at any leaf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from foldline import _core
from foldline.stores._records import event_from
from foldline.typing import CompactionEvent, Message, Problem, StoredMessage

__all__ = ["CUSTOM", "Context", "SessionEntry", "SessionTree"]

#: pi's type for an entry of another program; pi ignores it.
CUSTOM: Final = "custom"

#: Types of entries that pi or foldline writes.
_TYPES: Final = frozenset(
    {"message", "custom_message", "branch_summary", "compaction", "model_change", "thinking_level_change"}
    | {"session_info", "label", "usage", CUSTOM}
)

#: Keys under which those types have a message or a summary.
_CONTENT_KEYS: Final = ("message", "content", "summary", "context")


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """An entry of a session file. Never changed, never deleted.

    Attributes:
        id: Its id. If missing or a duplicate, it derives from the line.
        parent_id: The entry it follows; None for a root.
        type: ``message``, ``compaction``, ``model_change``, ``custom``, …
        value: The entry as stored. Do not modify.
        line: Line in the file, from 1.
        offset: Offset in bytes.
    """

    id: str
    parent_id: str | None
    type: str
    value: Mapping[str, Any]
    line: int
    offset: int

    @property
    def message(self) -> Message | None:
        """The message of the entry, or the one it represents; None for compactions and hidden entries."""
        return _message_of(self.type, self.value)

    @property
    def event(self) -> CompactionEvent | None:
        """The compaction, or None. The round is 0 if another program wrote it."""
        return event_from(self.value, 0) if self.type == "compaction" else None


def _message_of(kind: str, value: Mapping[str, Any]) -> Message | None:
    """The message of an entry, read as the core does; a property test compares the two."""
    if kind == "message":
        message = value.get("message")
        return message if isinstance(message, dict) and _core.is_message(message) else None
    if kind == "custom_message":
        keys = ("customType", "content", "display", "details")
        return {"role": "custom"} | {key: value[key] for key in keys if key in value}
    if kind == "branch_summary":
        return {"role": "branchSummary"} | {key: value[key] for key in ("summary", "fromId") if key in value}
    return None


@dataclass(slots=True)
class Context:
    """The state after the entries from the root to a leaf.

    Attributes:
        messages: The context with its ids.
        originals: Every original message on the path, by id.
        path: Indices of the entries on the path.
        round: Round of the last compaction.
        compactions: Indices of the compactions on the path.
    """

    messages: list[StoredMessage] = field(default_factory=list)
    originals: dict[int | str, Message] = field(default_factory=dict)
    path: list[int] = field(default_factory=list)
    round: int = 0
    compactions: list[int] = field(default_factory=list)


class SessionTree:
    """A tree of entries, built one entry at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.header: Mapping[str, Any] | None = None
        self.entries: list[SessionEntry] = []
        self.parents: list[int | None] = []
        self.indices: dict[str, int] = {}
        self.pending: list[tuple[int, int, str]] = []  # problems of a last line that may be incomplete
        self._problems: dict[tuple[int | None, str], Problem] = {}
        self.main = Context()  # context of the newest entry
        self._declared: dict[str, int] = {}  # ids as stored: the newest entry of each
        self._children: set[int] = set()

    def report(self, code: str, line: int | None, offset: int | None, detail: str = "") -> None:
        """Records a problem once."""
        self._problems.setdefault((line, code), self._problem(code, line, offset, detail))

    def problems(self) -> list[Problem]:
        """The problems, sorted by line."""
        found = [*self._problems.values(), *(self._problem(code, line, at) for line, at, code in self.pending)]
        return sorted(found, key=lambda each: (each.line or 0, each.offset or 0, each.code))

    def _problem(self, code: str, line: int | None, offset: int | None, detail: str = "") -> Problem:
        return Problem(None, code, detail, self.name, line, offset)

    @property
    def leaf(self) -> str | None:
        """The newest entry."""
        return self.entries[-1].id if self.entries else None

    def leaves(self) -> list[str]:
        """Entries without children, in file order."""
        return [entry.id for i, entry in enumerate(self.entries) if i not in self._children]

    def add(self, value: Any, line: int, offset: int) -> SessionEntry | None:
        """Adds an entry; None for a header or a non-object. O(its size), except for branches and compactions."""
        if not isinstance(value, dict):
            self.report("not_an_object", line, offset)
            return None
        kind = value.get("type")
        if kind == "session":
            if self.header is not None:
                self.report("second_header", line, offset)
            else:
                self.header = value
            return None
        parent = self._parent_of(value, line, offset)
        entry = SessionEntry(
            self._id_of(value, line, offset),
            None if parent is None else self.entries[parent].id,
            kind if isinstance(kind, str) else "",
            value,
            line,
            offset,
        )
        own = len(self.entries)
        if entry.type == "message" and entry.message is None:
            self.report("entry_without_message", line, offset)
        elif not entry.type or (entry.type not in _TYPES and any(key in value for key in _CONTENT_KEYS)):
            # The type may be damaged. Bookkeeping of a type that is not known is a newer version's, and no problem.
            self.report("unknown_entry", line, offset)
        follows_newest = parent == own - 1 if own else parent is None
        self.entries.append(entry)
        self.parents.append(parent)
        self.indices[entry.id] = own
        if parent is not None:
            self._children.add(parent)
        if follows_newest:
            self._step(self.main, own)
        else:
            self.main = self._context(own)
        return entry

    def _parent_of(self, value: Mapping[str, Any], line: int, offset: int) -> int | None:
        """The parent, always an earlier entry; without a valid one the previous entry. So no entry is ever lost."""
        before = len(self.entries) - 1 if self.entries else None
        if "parentId" not in value:
            return before
        named = value["parentId"]
        if named is None:
            return None
        found = self._declared.get(named, self.indices.get(named)) if isinstance(named, str) else None
        if found is None:
            self.report("unknown_parent", line, offset)
            return before
        return found

    def _id_of(self, value: Mapping[str, Any], line: int, offset: int) -> str:
        told = value.get("id")
        if not isinstance(told, str) or not told:
            return f"line:{line}"
        self._declared[told] = len(self.entries)
        if told in self.indices:
            self.report("duplicate_id", line, offset)
            return f"{told}@{line}"
        return told

    def context(self, leaf: str | None) -> Context:
        """The context at a leaf or any other entry. O(path length).

        Raises:
            KeyError: No such entry.
        """
        if leaf is None or leaf == self.leaf:
            return self.main
        return self._context(self.indices[leaf])

    def _context(self, index: int) -> Context:
        path = []
        at: int | None = index
        while at is not None:
            path.append(at)
            at = self.parents[at]
        context = Context()
        for each in reversed(path):
            self._step(context, each)
        return context

    def _step(self, context: Context, index: int) -> None:
        """Advances by one entry."""
        entry = self.entries[index]
        context.path.append(index)
        if entry.type == "compaction":
            self._fold(context, entry)
            context.compactions.append(index)
        elif (message := entry.message) is not None:
            context.originals[entry.id] = message
            context.messages.append(StoredMessage(entry.id, message))

    def _fold(self, context: Context, entry: SessionEntry) -> None:
        """Applies a compaction: its stored context, or pi's summary followed by the kept entries."""
        told = entry.value.get("round")
        context.round = told if isinstance(told, int) and not isinstance(told, bool) else context.round + 1
        current = {each.id: each.message for each in context.messages}
        rest = context.originals if entry.value.get("base") == "originals" else context.originals | current
        listed = entry.value.get("context")
        if isinstance(listed, list):
            context.messages = list(self._named(entry, listed, rest))
            return
        first = self._first_kept(context, entry)
        if first is None:
            return
        summary = {"role": "compactionSummary", "summary": str(entry.value.get("summary", ""))}
        if "tokensBefore" in entry.value:
            summary["tokensBefore"] = entry.value["tokensBefore"]
        kept = [self.entries[each].id for each in context.path[first:]]
        context.messages = [StoredMessage(f"{entry.id}.0", summary)]
        context.messages += [StoredMessage(each, rest[each]) for each in kept if each in rest]

    def _first_kept(self, context: Context, entry: SessionEntry) -> int | None:
        """Position on the path of the first entry that a compaction of pi keeps; None if unknown: all is kept."""
        if "firstKeptEntryId" in entry.value:
            named = entry.value["firstKeptEntryId"]
            if named is None:
                return len(context.path)
            index = self.indices.get(named) if isinstance(named, str) else None
        else:  # version 1 of the format counts entries, the header included
            place = entry.value.get("firstKeptEntryIndex")
            index = place - 1 if isinstance(place, int) and not isinstance(place, bool) else None
        if index is None or index not in context.path:
            self.report("unknown_first_kept", entry.line, entry.offset)
            return None
        return context.path.index(index)

    def _named(self, entry: SessionEntry, listed: list[Any], rest: Mapping[int | str, Message]) -> list[StoredMessage]:
        found: dict[str, StoredMessage] = {}
        for each in listed:
            name = each.get("id") if isinstance(each, dict) else None
            message = each.get("message") if isinstance(each, dict) else None
            if not isinstance(name, str) or name in found:
                name, message = None, None
            if name is not None and isinstance(message, dict) and _core.is_message(message):
                found[name] = StoredMessage(name, message)
            elif name is not None and message is None and name in rest:
                found[name] = StoredMessage(name, rest[name])
            else:
                self.report("missing_entry", entry.line, entry.offset, "the context names what is not in the file")
        return list(found.values())
