"""A session file and its parsed state; a writer first reads other writers' entries, under one lock."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import EllipsisType
from typing import Any, Final

from foldline import _core
from foldline.errors import LimitExceeded, StoreError
from foldline.stores._appending import AppendFile, Handle
from foldline.stores._records import line_of, timestamp
from foldline.stores._tree import SessionTree

__all__ = ["SessionFile", "new_id"]

#: First bytes of a session file. A file whose creation was cut off may contain less.
_BEGINS: Final = b'{"type":"session"'


class SessionFile:
    """The parsed entries of a file, refreshed by reading its new bytes.

    Attributes:
        tree: The entries read so far.
    """

    def __init__(
        self,
        file: AppendFile,
        *,
        max_line_bytes: int,
        max_bytes: int,
        readonly: bool,
        clock: Callable[[], float],
    ) -> None:
        self._file = file
        self._max_line_bytes = max_line_bytes
        self._max_bytes = max_bytes
        self._readonly = readonly
        self._clock = clock
        self._mutex: AbstractContextManager[bool] = threading.RLock()
        self._process = os.getpid()
        self._forget()

    def _forget(self) -> None:
        self.tree = SessionTree(self._file.path)
        self._identity: tuple[int, int] | None = None
        self._at = 0  # bytes read
        self._line = 1  # number of the next line
        self._is_open_line = False  # whether these bytes end without a newline
        self._is_stale = False  # whether a refresh was interrupted

    def open(self, header: Mapping[str, Any]) -> None:
        """Reads the file. A missing file, or one without a complete header, gets a header.

        Raises:
            StoreError: It cannot be opened or created, or it is not a session (``not_a_session``).
            LimitExceeded: The file is too large.
        """
        if self._readonly:
            self.refresh()
            return
        with self.owned(), self._file.opened("create") as handle:
            self._catch_up(handle)
            if self.tree.header is None and not self.tree.entries:
                self._write(handle, [header])
            if not self.tree.entries:
                handle.sync_all()  # its creator may have died before this

    def reopen(self) -> None:
        """Reads the file again and accepts writes again."""
        with self.owned():
            self._file.failed = None
            self._forget()
            self.refresh()

    def owned(self) -> AbstractContextManager[bool]:
        """The lock between threads of this process; a new one in a forked child, where no thread owns it."""
        if self._process != os.getpid():
            self._process, self._mutex = os.getpid(), threading.RLock()
            self._is_stale = True
        return self._mutex

    def now(self) -> SessionTree:
        """The current tree, after a refresh."""
        with self.owned():
            self.refresh()
            return self.tree

    def refresh(self) -> None:
        """Reads other writers' entries. One system call if the file is unchanged.

        Raises:
            StoreError: The file cannot be read.
        """
        try:
            status = os.stat(self._file.path, follow_symlinks=False)  # noqa: PTH116 - the path as given
            if (status.st_dev, status.st_ino) == self._identity and status.st_size == self._at and not self._is_stale:
                return
        except OSError:
            pass  # reported when the file is opened
        with self._file.opened("read") as handle:
            self._catch_up(handle, is_reader=True)

    def written(
        self,
        make: Callable[[SessionTree], list[dict[str, Any]] | str],
        expected_leaf: str | EllipsisType | None = ...,
    ) -> list[str]:
        """Writes entries derived from the newest state, under the lock; returns their ids.

        Args:
            make: Returns the entries, or the id of an existing entry that makes them unnecessary.
            expected_leaf: The expected newest entry.
        """
        if self._readonly:
            raise StoreError("it was opened for reading", code="not_writable")
        with self.owned(), self._file.opened("append") as handle:
            self._catch_up(handle)
            made = make(self.tree)
            if isinstance(made, str):
                return [made]
            if not isinstance(expected_leaf, EllipsisType) and expected_leaf != self.tree.leaf:
                raise StoreError("another writer has appended since", code="conflict", path="expected_leaf")
            self._write(handle, made)
            return [entry["id"] for entry in made]

    def entry(
        self,
        tree: SessionTree,
        type: str,
        fields: Mapping[str, Any],
        *,
        id: str | None = None,
        parent: str | EllipsisType | None = ...,
    ) -> dict[str, Any]:
        """A new entry after the newest one, or after ``parent``."""
        entry: dict[str, Any] = {"type": type, "id": id or new_id(tree)}
        entry["parentId"] = tree.leaf if isinstance(parent, EllipsisType) else parent
        return {**entry, "timestamp": timestamp(self._clock()), **fields}

    # --- Internals ------------------------------------------------------------------------------------

    def _catch_up(self, handle: Handle, *, is_reader: bool = False) -> None:
        """Reads the bytes of the file not read yet.

        Under a writer's lock no other writer is active: a line without its end was torn. A reader skips it, since a
        program that takes no lock may still be writing it.
        """
        if self._is_stale or handle.identity != self._identity or handle.size < self._at:
            self._forget()
            self._identity = handle.identity
        if handle.size == self._at:
            return
        if handle.size > self._max_bytes:
            raise LimitExceeded("the file is too large", code="session_too_large", path="max_bytes")
        self._is_stale = True
        self.tree.pending = []
        scanner = _core.LineScanner(self._max_line_bytes)
        base, first, at, line = self._at, self._line - 1, self._at, self._line
        whole, whole_line, last = at, line, b"\n"
        for chunk in handle.read(at):
            self._absorb(*scanner.feed(chunk), first, base)
            line += chunk.count(b"\n")
            if (end := chunk.rfind(b"\n")) >= 0:
                whole, whole_line = at + end + 1, line
            at, last = at + len(chunk), chunk[-1:]
        values, problems = scanner.finish()
        is_pending = bool(problems) and is_reader
        if is_pending:
            self.tree.pending = [(first + at_line, base + offset, code) for at_line, offset, code in problems]
        else:
            self._absorb(values, problems, first, base)
        self._check_kind(handle)
        self._at, self._line, self._is_open_line = at, line, last != b"\n"
        if is_pending:
            self._at, self._line, self._is_open_line = whole, whole_line, False
        self._is_stale = False

    def _absorb(
        self, values: list[tuple[int, int, bytes]], problems: list[tuple[int, int, str]], first: int, base: int
    ) -> None:
        """Adds a scanner's values and problems in the order of the file."""
        found: list[tuple[int, int, bytes | str]] = [*values, *problems]
        for line, offset, what in sorted(found, key=lambda each: each[:2]):
            if isinstance(what, str):
                self.tree.report(what, first + line, base + offset)
                continue
            try:
                value = json.loads(what)
            except (ValueError, RecursionError):
                self.tree.report("bad_json", first + line, base + offset)
            else:
                self.tree.add(value, first + line, base + offset)

    def _check_kind(self, handle: Handle) -> None:
        """Refuses a file that is not a session, so that it is never written to."""
        tree = self.tree
        if tree.header is not None or any(_core.classify(entry.value)[0] == "pi" for entry in tree.entries):
            return
        begin = next(handle.read(0, len(_BEGINS)), b"")
        # A torn header counts as one: its beginning, or the zeros left by a power cut.
        if tree.entries or not (_BEGINS.startswith(begin) or not begin.strip(b"\0")):
            raise StoreError("the file is not a session", code="not_a_session")

    def _write(self, handle: Handle, made: list[Any]) -> None:
        lines = [line_of(entry) for entry in made]
        if max(map(len, lines)) > self._max_line_bytes:
            raise LimitExceeded("the entry is too long", code="line_too_long", path="max_line_bytes")
        glue = b"\n" if self._is_open_line else b""  # after a torn record
        data = glue + b"".join(lines)
        if handle.size + len(data) > self._max_bytes:
            raise LimitExceeded("the file would be too large", code="session_too_large", path="max_bytes")
        handle.append(data)
        self._is_stale = True
        at, line = self._at + len(glue), self._line + len(glue)
        for entry, written in zip(made, lines):
            self.tree.add(entry, line, at)
            at, line = at + len(written), line + 1
        self._at, self._line, self._is_open_line, self._is_stale = at, line, False, False


def new_id(tree: SessionTree) -> str:
    """An unused id."""
    while (made := secrets.token_hex(6)) in tree.indices:
        pass
    return made
