"""Sessions in SQLite or PostgreSQL. A compaction and its marks are one transaction."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType, TracebackType
from typing import Any, Final, Self

from foldline.errors import ConfigError, StoreError
from foldline.stores._records import checked_id, event_fields, event_from, new_context, plain, text_of, timestamp
from foldline.typing import CompactionEvent, ContextEntry, Message, SessionStore, StoredMessage

try:
    import sqlalchemy as sa
except ImportError:
    raise ConfigError(
        "a database needs the package sqlalchemy: pip install 'foldline[sql]'", code="missing_extra", path="url"
    ) from None

from foldline.stores._databases import Database
from foldline.stores._schema import COMPACTIONS, CONTEXTS, FOLDS, MARKS, MESSAGES, SESSIONS, prepare

__all__ = ["SqlStore"]

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
            return tuple(connection.execute(sa.select(SESSIONS.c.id).order_by(SESSIONS.c.id)).scalars())

    @property
    def leaf(self) -> str | None:
        """Id of the newest message or compaction; None if empty."""
        with self._database.reading() as connection:
            return self._leaf(connection)

    def active(self) -> tuple[StoredMessage, ...]:
        """The context with its ids. O(its messages).

        Raises:
            StoreError: The database cannot be read.
        """
        with self._database.reading() as connection:
            return tuple(self._active(connection))

    def messages(self) -> list[Message]:
        """The context, as sent in the next request."""
        return [each.message for each in self.active()]

    def ids(self) -> list[int | str]:
        """The ids of the context."""
        return [each.id for each in self.active()]

    def history(self) -> tuple[StoredMessage, ...]:
        """Every appended message with its id."""
        with self._database.reading() as connection:
            return tuple(self._originals(connection))

    def restore(self) -> list[Message]:
        """The original messages, as if never compacted."""
        return [each.message for each in self.history()]

    def events(self) -> tuple[CompactionEvent, ...]:
        """All compactions, oldest first."""
        query = sa.select(COMPACTIONS.c.event).where(self._is(COMPACTIONS)).order_by(COMPACTIONS.c.seq)
        with self._database.reading() as connection:
            return tuple(event_from(json.loads(text), 0) for text in connection.execute(query).scalars())

    def compacted_ids(self) -> frozenset[int | str]:
        """Ids of all messages marked as compacted: once in the context, but no longer."""
        with self._database.reading() as connection:
            return frozenset(connection.execute(sa.select(MARKS.c.message_id).where(self._is(MARKS))).scalars())

    def last_round(self) -> int:
        """Round of the last compaction; 0 before the first."""
        query = sa.select(SESSIONS.c.round).where(SESSIONS.c.id == self._session)
        with self._database.reading() as connection:
            return connection.execute(query).scalar_one_or_none() or 0

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
            StoreError: Nothing was written: ``conflict``, ``id_in_use``, ``not_json``, ``busy``, ``store_full``,
                ``unreachable``, …; but after ``commit_unknown`` it may have been written.
            LimitExceeded: The message is nested too deeply.
        """
        return self._append([message], id, expected_leaf)[0]

    def extend(self, messages: Iterable[Message], *, expected_leaf: str | EllipsisType | None = ...) -> list[str]:
        """Appends messages in one transaction, all or none; returns their ids."""
        return self._append(list(messages), None, expected_leaf)

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
        query = sa.select(FOLDS.c.fold).where(self._is(FOLDS), FOLDS.c.history == session)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(FOLDS.c.seq.desc()).limit(limit)).scalars()
            return [str(text) for text in rows][::-1]

    # --- Internals ------------------------------------------------------------------------------------

    def _is(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return table.c.session_id == self._session

    def _locked(self, connection: sa.Connection) -> tuple[int, int]:
        """The next sequence number and the last round; locks the session's row until the transaction ends."""
        row = sa.select(SESSIONS.c.next_seq, SESSIONS.c.round).where(SESSIONS.c.id == self._session).with_for_update()
        found = connection.execute(row).one_or_none()
        if found is None:
            connection.execute(
                _insert(connection, SESSIONS)
                .values(id=self._session, created_at=timestamp(self._clock()), next_seq=1, round=0)
                .on_conflict_do_nothing()
            )
            found = connection.execute(row).one()
        return int(found[0]), int(found[1])

    def _reserved(self, connection: sa.Connection, count: int) -> int:
        """Reserves sequence numbers and returns the first; locks the session's row. One statement."""
        following = SESSIONS.c.next_seq + count
        row = SESSIONS.update().where(SESSIONS.c.id == self._session).values(next_seq=following)
        found = connection.execute(row.returning(SESSIONS.c.next_seq)).scalar_one_or_none()
        if found is None:
            raise StoreError("the session does not exist", code="no_session", path="session")
        return int(found) - count

    def _leaf(self, connection: sa.Connection) -> str | None:
        queries = (
            sa.select(MESSAGES.c.seq, MESSAGES.c.id).where(self._is(MESSAGES)).order_by(MESSAGES.c.seq.desc()).limit(1),
            sa.select(COMPACTIONS.c.seq, sa.literal(None))
            .where(self._is(COMPACTIONS))
            .order_by(COMPACTIONS.c.seq.desc())
            .limit(1),
        )
        rows = [row for query in queries if (row := connection.execute(query).one_or_none()) is not None]
        if not rows:
            return None
        seq, name = max(rows, key=lambda row: int(row[0]))
        return f"c{seq}" if name is None else str(name)

    def _active(self, connection: sa.Connection) -> list[StoredMessage]:
        last = connection.execute(sa.select(sa.func.max(COMPACTIONS.c.seq)).where(self._is(COMPACTIONS))).scalar() or 0
        rows: list[Any] = []
        if last:
            is_message = sa.and_(MESSAGES.c.session_id == CONTEXTS.c.session_id, MESSAGES.c.id == CONTEXTS.c.message_id)
            rows += connection.execute(
                sa.select(CONTEXTS.c.message_id, sa.func.coalesce(CONTEXTS.c.message, MESSAGES.c.message))
                .select_from(CONTEXTS.outerjoin(MESSAGES, is_message))
                .where(self._is(CONTEXTS), CONTEXTS.c.compaction_seq == last)
                .order_by(CONTEXTS.c.position)
            ).all()
        rows += connection.execute(
            sa.select(MESSAGES.c.id, MESSAGES.c.message)
            .where(self._is(MESSAGES), MESSAGES.c.seq > last)
            .order_by(MESSAGES.c.seq)
        ).all()
        return [StoredMessage(name, json.loads(text)) for name, text in rows]

    def _originals(self, connection: sa.Connection) -> list[StoredMessage]:
        query = sa.select(MESSAGES.c.id, MESSAGES.c.message).where(self._is(MESSAGES)).order_by(MESSAGES.c.seq)
        return [StoredMessage(name, json.loads(text)) for name, text in connection.execute(query)]

    def _check_leaf(self, connection: sa.Connection, expected_leaf: str | EllipsisType | None) -> None:
        if not isinstance(expected_leaf, EllipsisType) and expected_leaf != self._leaf(connection):
            raise StoreError("another writer has appended since", code="conflict", path="expected_leaf")

    def _append(self, messages: list[Message], id: str | None, expected_leaf: str | EllipsisType | None) -> list[str]:
        texts = [text_of(plain(dict(message))) for message in messages]
        if id is not None and _OURS.fullmatch(checked_id(id)):
            raise StoreError("ids such as m1 and c1 are reserved for the store", code="bad_id", path="id")
        if not texts:
            return []
        with self._database.writing() as connection:
            if id is not None:
                self._locked(connection)
                query = sa.select(MESSAGES.c.message).where(self._is(MESSAGES), MESSAGES.c.id == id)
                there = connection.execute(query).scalar_one_or_none()
                if there is not None:
                    if json.loads(there) != json.loads(texts[0]):
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
        fields = event_fields(event)
        with self._database.writing() as connection:
            seq, last_round = self._locked(connection)
            query = sa.select(COMPACTIONS.c.event).where(self._is(COMPACTIONS), COMPACTIONS.c.round == event.round)
            stored = connection.execute(query).scalar_one_or_none()
            if stored is not None and event_from(json.loads(stored), 0) == event_from(fields, 0):
                return
            if event.round <= last_round:
                raise StoreError("a compaction of this round is already stored", code="stale_round")
            self._check_leaf(connection, expected_leaf)
            active = self._active(connection)
            appended = {each.id: each.message for each in self._originals(connection)}
            was = [StoredMessage(*each) for each in appended.items()] if originals else active
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
            connection.execute(row.values(next_seq=seq + 1, round=event.round))

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
        self._insert_all(connection, MARKS, ({"message_id": each, "compaction_seq": seq} for each in gone))

    def _insert_all(self, connection: sa.Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
        listed = [{"session_id": self._session, **row} for row in rows]
        for at in range(0, len(listed), _BATCH_ROWS):
            connection.execute(table.insert(), listed[at : at + _BATCH_ROWS])


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
