"""Sessions in SQLite or PostgreSQL. A compaction and its marks are one transaction."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType, TracebackType
from typing import Any, Final, Self, TypeVar

from foldline.errors import ConfigError, StoreError
from foldline.stores._records import (
    RecordedCompaction,
    checked_context,
    checked_id,
    checked_messages,
    event_fields,
    event_from,
    new_context,
    plain,
    text_of,
    timestamp,
)
from foldline.typing import CompactionEvent, ContextEntry, Message, Problem, SessionStore, StoredMessage

try:
    import sqlalchemy as sa
except ImportError:
    raise ConfigError(
        "a database needs the package sqlalchemy: pip install 'foldline[sql]'", code="missing_extra", path="url"
    ) from None

from foldline.stores._damage import MAX_NUMBER
from foldline.stores._databases import Database
from foldline.stores._rows import SessionRows, newest_seq
from foldline.stores._schema import COMPACTIONS, CONTEXTS, FOLDS, MARKS, MESSAGES, SESSIONS, prepare

__all__ = ["SqlStore"]

T = TypeVar("T")

#: Ids assigned by the store: of messages, of compactions, and of messages added by compactions.
_OURS: Final = re.compile(r"m\d+|c\d+(\.\d+)?")

#: Rows per statement; bounds the number of SQL parameters.
_BATCH_ROWS: Final = 500


class SqlStore:
    r"""A session in a database: every message, every compaction, the context and the compacted marks.

    Changes are committed and on disk when `append` and `save_context` return. A compaction, its context and its marks
    are one transaction. Any number of threads and processes may write to one session: each locks its row first.

    Args:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``postgresql://user@host/database``. The tables,
            whose names begin with ``foldline_``, are created if missing and migrated if older.
        session: Session id, created if missing.
        lock_timeout_s: Timeout for taking a lock.
        clock: Returns Unix time in seconds, for the timestamps of rows.

    Raises:
        ConfigError: An option is out of range, or the extra ``sql`` is missing (``missing_extra``).
        StoreError: The database cannot be used; ``code`` says why.

    Examples:
        >>> import tempfile, pathlib, foldline as fl
        >>> url = f"sqlite:///{pathlib.Path(tempfile.mkdtemp()) / 'sessions.db'}"
        >>> store = fl.stores.SqlStore(url, session="a")  # or in a `with`, which closes it
        >>> ids = store.extend({"role": "user", "content": f"Step {i}. " + "word " * 60} for i in range(6))
        >>> strategy = fl.strategies.Summarize(lambda messages: "Four steps.", keep_recent=2)
        >>> compactor = fl.Compactor(fl.triggers.MessageCount(5), strategy, store=store)
        >>> result = compactor.compact(store.messages(), ids=store.ids())
        >>> again = fl.stores.SqlStore(url, session="a")  # after a restart
        >>> again.messages() == result.messages, sorted(again.compacted_ids()), len(again.restore())
        (True, ['m1', 'm2', 'm3', 'm4'], 6)
        >>> store.close(), again.close()
        (None, None)
    """

    def __init__(
        self,
        url: str,
        *,
        session: str,
        lock_timeout_s: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(lock_timeout_s, bool) or not 0 <= lock_timeout_s <= 1e6:
            raise ConfigError("must be between 0 and 1,000,000", path="lock_timeout_s")
        self._begin(Database(url, lock_timeout_s), checked_id(session, "session"), clock)
        try:
            with self._database.writing() as connection:
                prepare(connection)
                self._locked(connection)
        except BaseException:
            self._database.close()
            raise

    def _begin(self, database: Database, session: str, clock: Callable[[], float]) -> None:
        self._database = database
        self._session = session
        self._clock = clock
        self._known: set[Problem] = set()  # damaged rows that a warning has named

    def __repr__(self) -> str:
        return f"SqlStore({self._database.kind}, session={self._session!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def of(self, session: str) -> SqlStore:
        """Another session of the same database, over the same connections.

        Raises:
            StoreError: The session could not be created.
        """
        other = type(self).__new__(type(self))
        other._begin(self._database, checked_id(session, "session"), self._clock)
        with self._database.writing() as connection:
            other._locked(connection)
        return other

    def close(self) -> None:
        """Closes the connections, shared by all sessions of this store's database. Later use opens new ones."""
        self._database.close()

    @property
    def id(self) -> str:
        """The session's id."""
        return self._session

    # --- Reading --------------------------------------------------------------------------------------

    def sessions(self) -> tuple[str, ...]:
        """Ids of all sessions of the database, sorted."""
        with self._database.reading() as connection:
            found = connection.execute(sa.select(SESSIONS.c.id).order_by(SESSIONS.c.id)).scalars()
            return tuple(name for name in found if isinstance(name, str) and name.isprintable())

    @property
    def leaf(self) -> str | None:
        """Id of the newest message or compaction; None if empty."""
        return self._read(SessionRows.leaf)

    def active(self) -> tuple[StoredMessage, ...]:
        """The context with its ids. O(its messages).

        Warns:
            FoldlineWarning: A damaged row was left out.

        Raises:
            StoreError: The database cannot be read.
        """
        return tuple(self._read(SessionRows.active))

    def messages(self) -> list[Message]:
        """The context, as sent in the next request."""
        return [each.message for each in self.active()]

    def ids(self) -> list[int | str]:
        """The ids of the context."""
        return [each.id for each in self.active()]

    def history(self) -> tuple[StoredMessage, ...]:
        """Every appended message with its id."""
        return tuple(self._read(SessionRows.messages))

    def restore(self) -> list[Message]:
        """The original messages, as if never compacted."""
        return [each.message for each in self.history()]

    def events(self) -> tuple[CompactionEvent, ...]:
        """All compactions, oldest first."""
        return tuple(self._read(SessionRows.events))

    def compactions(self) -> tuple[RecordedCompaction, ...]:
        """All compactions, oldest first, each with its place and the context after it. O(the session)."""
        return tuple(self._read(SessionRows.compactions))

    def compacted_ids(self) -> frozenset[int | str]:
        """Ids of all messages marked as compacted: once in the context, but no longer."""
        return self._read(SessionRows.marks)

    def last_round(self) -> int:
        """Round of the last compaction; 0 before the first."""
        return self._read(SessionRows.last_round)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The damaged rows of the session; all others are read. O(the session).

        Each names its table and, as ``line``, its sequence number, or its position in a context. Rows are left as they
        are. The same rows are named by a `FoldlineWarning`, once for each store, when they are met.

        Raises:
            StoreError: The database cannot be read.
        """
        with self._database.reading() as connection:
            rows = SessionRows(connection, self._session)
            rows.check()
        return rows.damages.problems()

    # --- Writing --------------------------------------------------------------------------------------

    def append(self, message: Message, *, id: str | None = None, expected_leaf: str | EllipsisType | None = ...) -> str:
        """Appends a message; returns its id.

        Args:
            message: The message, stored as JSON: tuples become lists.
            id: Idempotency key. If an equal message has this id, nothing is written and its id is returned, so that an
                append with unknown outcome can be retried. Default: an id assigned by the store.
            expected_leaf: The newest message or compaction known to the caller (None: empty session). If another writer
                has appended since, nothing is written. Default: not checked.

        Raises:
            StoreError: Nothing was written: ``conflict``, ``id_in_use``, ``not_a_message``, ``not_json``, ``busy``,
                ``store_full``, ``unreachable``, …; but after ``commit_unknown`` it may have been written.
            LimitExceeded: The message is nested too deeply.
        """
        return self._append([message], id, expected_leaf)[0]

    def extend(self, messages: Iterable[Message], *, expected_leaf: str | EllipsisType | None = ...) -> list[str]:
        """Appends messages in one transaction, all or none; returns their ids."""
        return self._append(messages, None, expected_leaf)

    def save_context(
        self,
        event: CompactionEvent,
        context: Sequence[ContextEntry],
        *,
        expected_leaf: str | EllipsisType | None = ...,
    ) -> None:
        """Stores a compaction, the new context and its marks in one transaction.

        An event already stored is not stored again.

        Raises:
            StoreError: The context names an id not in the current one (``unknown_entry``): the compactor did not get
                the store's ids, or another process has compacted since. Or the round is not newer (``stale_round``). Or
                nothing could be written, as for `append`.
        """
        self._save(event, context, expected_leaf)

    def originals(self) -> SessionStore:
        """A view without compactions, for a compactor that summarizes the original messages.

        A compaction saved through it is a normal compaction.
        """
        return _Originals(self)

    def save_fold(self, session: str, fold: str) -> None:
        """Stores a fold of a whole history.

        Raises:
            StoreError: Nothing could be written, as for `append`.
        """
        with self._database.writing() as connection:
            row = {"seq": self._reserved(connection, 1), "history": session, "fold": fold}
            self._insert_all(connection, FOLDS, [row | {"created_at": timestamp(self._clock())}])

    def load_folds(self, session: str, limit: int) -> list[str]:
        """The newest folds of a session, oldest first.

        Raises:
            StoreError: The database cannot be read.
        """
        return self._read(lambda rows: rows.folds(session, limit))

    # --- Internals ------------------------------------------------------------------------------------

    def _is(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return table.c.session_id == self._session

    def _read(self, read: Callable[[SessionRows], T]) -> T:
        """Reads in one snapshot, and warns about damaged rows."""
        with self._database.reading() as connection:
            rows = SessionRows(connection, self._session)
            found = read(rows)
        rows.damages.warn(self._known)
        return found

    def _locked(self, connection: sa.Connection) -> None:
        """Locks the session's row until the transaction ends; creates it if it is missing."""
        row = sa.select(SESSIONS.c.id).where(SESSIONS.c.id == self._session).with_for_update()
        if connection.execute(row).one_or_none() is None:
            connection.execute(
                _insert(connection, SESSIONS)
                .values(id=self._session, created_at=timestamp(self._clock()), next_seq=1, round=0)
                .on_conflict_do_nothing()
            )
            connection.execute(row).one()

    def _reserved(self, connection: sa.Connection, count: int) -> int:
        """Reserves sequence numbers and returns the first; locks the session's row. One statement.

        The numbers are greater than that of any row, even if the session's row is damaged.
        """
        greatest = sa.func.greatest if self._database.kind == "postgresql" else sa.func.max
        told = sa.case((SESSIONS.c.next_seq.between(1, MAX_NUMBER), SESSIONS.c.next_seq), else_=1)
        newest = newest_seq(connection, self._session)
        following = sa.cast(greatest(told, newest + 1), sa.BigInteger) + count
        row = SESSIONS.update().where(SESSIONS.c.id == self._session).values(next_seq=following)
        found = connection.execute(row.returning(SESSIONS.c.next_seq)).scalar_one_or_none()
        if found is None:
            raise StoreError("the session does not exist", code="no_session", path="session")
        return int(found) - count

    def _check_leaf(self, connection: sa.Connection, expected_leaf: str | EllipsisType | None) -> None:
        if isinstance(expected_leaf, EllipsisType):
            return
        if expected_leaf != SessionRows(connection, self._session).leaf():
            raise StoreError("another writer has appended since", code="conflict", path="expected_leaf")

    def _append(
        self, messages: Iterable[Message], id: str | None, expected_leaf: str | EllipsisType | None
    ) -> list[str]:
        texts = [text_of(plain(message)) for message in checked_messages(messages)]
        if id is not None and _OURS.fullmatch(checked_id(id)):
            raise StoreError("ids such as m1 and c1 are reserved for the store", code="bad_id", path="id")
        if not texts:
            return []
        with self._database.writing() as connection:
            if id is not None:
                self._locked(connection)
                there = SessionRows(connection, self._session).message(id)
                if there is not None:
                    if there != json.loads(texts[0]):
                        raise StoreError("another message has this id", code="id_in_use", path="id")
                    return [id]
            first = self._reserved(connection, len(texts))
            self._check_leaf(connection, expected_leaf)
            ids = [f"m{first + i}" for i in range(len(texts))] if id is None else [id]
            now = timestamp(self._clock())
            self._insert_all(
                connection,
                MESSAGES,
                (
                    {"seq": first + i, "id": name, "message": text, "created_at": now}
                    for i, (name, text) in enumerate(zip(ids, texts))
                ),
            )
        return ids

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
        with self._database.writing() as connection:
            self._locked(connection)
            stored_rows = SessionRows(connection, self._session)
            stored = stored_rows.event_of(event.round)
            if stored is not None and stored == event_from(fields, 0):
                return
            if event.round <= stored_rows.last_round():
                raise StoreError("a compaction of this round is already stored", code="stale_round")
            self._check_leaf(connection, expected_leaf)
            active = stored_rows.active()
            appended = {each.id: each.message for each in stored_rows.messages()}
            was = [StoredMessage(*each) for each in appended.items()] if originals else active
            seq = self._reserved(connection, 1)
            made = new_context(f"c{seq}", event, context, was, originals=originals)
            covered = made.covered
            connection.execute(
                COMPACTIONS.insert().values(
                    session_id=self._session,
                    seq=seq,
                    round=event.round,
                    base="originals" if originals else "context",
                    covered_from=covered["from"] or "",
                    covered_to=covered["to"] or "",
                    covered_count=covered["count"],
                    input_sha256=covered["sha256"],
                    tokens_before=event.tokens_before,
                    tokens_after=event.tokens_after,
                    event=text_of(fields),
                    created_at=timestamp(self._clock()),
                )
            )
            rows: list[dict[str, Any]] = []
            for position, each in enumerate(made.messages):
                # A message equal to the appended one is not stored twice.
                text = None if appended.get(each.id) == each.message else text_of(each.message)
                rows.append({"position": position, "message_id": each.id, "message": text})
            self._insert_all(connection, CONTEXTS, ({"compaction_seq": seq} | row for row in rows))
            self._mark(connection, seq, active, made.messages)
            row = SESSIONS.update().where(SESSIONS.c.id == self._session)
            connection.execute(row.values(round=event.round))

    def _mark(
        self, connection: sa.Connection, seq: int, was: Sequence[StoredMessage], now: Sequence[StoredMessage]
    ) -> None:
        """Marks messages no longer in the context, and unmarks those back in it."""
        before, after = {str(each.id) for each in was}, {str(each.id) for each in now}
        back = sorted(after - before)
        for at in range(0, len(back), _BATCH_ROWS):
            batch = back[at : at + _BATCH_ROWS]
            connection.execute(MARKS.delete().where(self._is(MARKS), MARKS.c.message_id.in_(batch)))
        gone = [str(each.id) for each in was if str(each.id) not in after]
        rows = ({"message_id": each, "compaction_seq": seq} for each in gone)
        # A mark may be there already if a row is damaged.
        self._insert_all(connection, MARKS, rows, keep_existing=True)

    def _insert_all(
        self,
        connection: sa.Connection,
        table: sa.Table,
        rows: Iterable[Mapping[str, Any]],
        *,
        keep_existing: bool = False,
    ) -> None:
        insert = _insert(connection, table).on_conflict_do_nothing() if keep_existing else table.insert()
        listed = [{"session_id": self._session, **row} for row in rows]
        for at in range(0, len(listed), _BATCH_ROWS):
            connection.execute(insert, listed[at : at + _BATCH_ROWS])


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    """An insert that supports ``ON CONFLICT DO NOTHING``."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert

        return insert(table)
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return sqlite_insert(table)


class _Originals:
    """The original messages of a session, as a store for a compactor."""

    def __init__(self, session: SqlStore) -> None:
        self._session = session

    def append(self, message: Message) -> str:
        return self._session.append(message)

    def active(self) -> tuple[StoredMessage, ...]:
        return self._session.history()

    def save_context(self, event: CompactionEvent, context: Sequence[ContextEntry]) -> None:
        self._session._save(event, context, originals=True)

    def last_round(self) -> int:
        return self._session.last_round()
