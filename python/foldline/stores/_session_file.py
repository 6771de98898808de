"""A session file and what is known of it: whoever writes reads first what others wrote, under one lock."""

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

#: How a session begins: what a file may hold where its making was cut off.
_BEGINS: Final = b'{"type":"session"'


class SessionFile:
    """The entries of a file, up to where it was read, and the way to more of them.

    Attributes:
        tree: What was read so far.
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
        self._at = 0  # bytes that were read
        self._line = 1  # the line of the next one
        self._is_open_line = False  # whether these bytes end without a newline
        self._is_stale = False  # whether taking them over was broken off

    def open(self, header: Mapping[str, Any]) -> None:
        """Reads the file; one that is not there, or was not made to its end, gets a header.

        Raises:
            StoreError: It cannot be opened or made, or it is no session (``not_a_session``).
            LimitExceeded: It is too large.
        """
        if self._readonly:
            self.refresh()
            return
        with self.owned(), self._file.opened("create") as handle:
            self._catch_up(handle)
            if self.tree.header is None and not self.tree.entries:
                self._write(handle, [header])
            if not self.tree.entries:
                handle.sync_all()  # whoever made it may not have come to that

    def reopen(self) -> None:
        """Reads the file anew, and takes writes again."""
        with self.owned():
            self._file.failed = None
            self._forget()
            self.refresh()

    def owned(self) -> AbstractContextManager[bool]:
        """The lock among the threads of this process; a new one in a forked child, where nobody may hold it."""
        if self._process != os.getpid():
            self._process, self._mutex = os.getpid(), threading.RLock()
            self._is_stale = True
        return self._mutex

    def now(self) -> SessionTree:
        """The tree as the file has it now."""
        with self.owned():
            self.refresh()
            return self.tree

    def refresh(self) -> None:
        """Reads what others wrote. One system call where they wrote nothing.

        Raises:
            StoreError: The file cannot be read.
        """
        try:
            status = os.stat(self._file.path, follow_symlinks=False)  # noqa: PTH116 - as it was given
            if (status.st_dev, status.st_ino) == self._identity and status.st_size == self._at and not self._is_stale:
                return
        except OSError:
            pass  # it is told when the file is opened
        with self._file.opened("read") as handle:
            self._catch_up(handle, is_reader=True)

    def written(
        self,
        make: Callable[[SessionTree], list[dict[str, Any]] | str],
        expected_leaf: str | EllipsisType | None = ...,
    ) -> list[str]:
        """Writes what is made of the newest state, under the lock; the ids come back.

        Args:
            make: Gives the entries; or the id of one that makes them unnecessary.
            expected_leaf: What the newest entry must be.
        """
        if self._readonly:
            raise StoreError("it was opened for reading", code="not_writable")
        with self.owned(), self._file.opened("append") as handle:
            self._catch_up(handle)
            made = make(self.tree)
            if isinstance(made, str):
                return [made]
            if not isinstance(expected_leaf, EllipsisType) and expected_leaf != self.tree.leaf:
                raise StoreError("somebody else has written meanwhile", code="conflict", path="expected_leaf")
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
        """An entry behind the newest one, or behind another."""
        entry: dict[str, Any] = {"type": type, "id": id or new_id(tree)}
        entry["parentId"] = tree.leaf if isinstance(parent, EllipsisType) else parent
        return {**entry, "timestamp": timestamp(self._clock()), **fields}

    # --- Within ---------------------------------------------------------------------------------------

    def _catch_up(self, handle: Handle, *, is_reader: bool = False) -> None:
        """Takes over what stands in the file and is not known yet.

        Under the lock of a writer nobody else is at work: a line without its end was torn. A reader leaves it, since a
        program that takes no lock may be about to write the rest.
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
        """Takes what a scanner found, in its order."""
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
        """A file that is no session is not ours to write to."""
        tree = self.tree
        if tree.header is not None or any(_core.classify(entry.value)[0] == "pi" for entry in tree.entries):
            return
        begin = next(handle.read(0, len(_BEGINS)), b"")
        # A header that a crash tore is one: its beginning, or the zeros that a power cut leaves.
        if tree.entries or not (_BEGINS.startswith(begin) or not begin.strip(b"\0")):
            raise StoreError("the file is no session", code="not_a_session")

    def _write(self, handle: Handle, made: list[Any]) -> None:
        lines = [line_of(entry) for entry in made]
        if max(map(len, lines)) > self._max_line_bytes:
            raise LimitExceeded("the entry is too long", code="line_too_long", path="max_line_bytes")
        glue = b"\n" if self._is_open_line else b""  # behind a record that was torn
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
    """An id that no entry has."""
    while (made := secrets.token_hex(6)) in tree.indices:
        pass
    return made
