"""Reads the rows of one session within a transaction. Damaged rows are left out and named."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from foldline.errors import StoreError
from foldline.stores._damage import MAX_NUMBER, DamagedRow, Damages, id_of, message_of, number_of, object_of
from foldline.stores._records import RecordedCompaction, event_from
from foldline.stores._schema import COMPACTIONS, CONTEXTS, FOLDS, MARKS, MESSAGES, SESSIONS
from foldline.typing import CompactionEvent, StoredMessage

__all__ = ["SessionRows", "newest_seq"]

#: Greatest round: the column has 32 bits.
_MAX_ROUND = 2**31 - 2


class SessionRows:
    """The rows of a session.

    Args:
        connection: A connection within a transaction.
        session: The session's id.

    Attributes:
        damages: The damaged rows met so far.
    """

    def __init__(self, connection: sa.Connection, session: str) -> None:
        self._connection = connection
        self._session = session
        self.damages = Damages(session)

    def messages(self, after: int | None = None) -> list[StoredMessage]:
        """The appended messages in order: all, or those after a sequence number."""
        return [message for _, message in self._numbered(after)]

    def _numbered(self, after: int | None = None) -> list[tuple[int, StoredMessage]]:
        """The appended messages with their sequence numbers."""
        query = sa.select(MESSAGES.c.seq, MESSAGES.c.id, MESSAGES.c.message).where(self._is(MESSAGES))
        if after is not None:
            query = query.where(MESSAGES.c.seq > after)
        found = []
        for seq, name, text in self._connection.execute(query.order_by(MESSAGES.c.seq)):
            try:
                found.append((number_of(seq), StoredMessage(id_of(name), message_of(text))))
            except DamagedRow as damage:
                self.damages.add(MESSAGES.name, seq, damage.code)
        return found

    def active(self) -> list[StoredMessage]:
        """The context: that of the newest compaction, then the messages appended since."""
        last = self._newest_context()
        found: dict[str, StoredMessage] = {}
        for table, position, each in (*self._context(last), *self._since(last)):
            if each.id in found:
                self.damages.add(table, position, "duplicate_id")
            else:
                found[str(each.id)] = each
        return list(found.values())

    def _since(self, last: int) -> Iterator[tuple[str, object, StoredMessage]]:
        for each in self.messages(after=last):
            yield MESSAGES.name, None, each

    def _context(self, seq: int) -> Iterator[tuple[str, object, StoredMessage]]:
        """The context after a compaction, with table and position of each message."""
        if not seq:
            return
        is_message = sa.and_(MESSAGES.c.session_id == CONTEXTS.c.session_id, MESSAGES.c.id == CONTEXTS.c.message_id)
        query = (
            sa.select(
                CONTEXTS.c.position, CONTEXTS.c.message_id, CONTEXTS.c.message, MESSAGES.c.seq, MESSAGES.c.message
            )
            .select_from(CONTEXTS.outerjoin(MESSAGES, is_message))
            .where(self._is(CONTEXTS), CONTEXTS.c.compaction_seq == seq)
            .order_by(CONTEXTS.c.position)
        )
        for position, name, own, original, appended in self._connection.execute(query):
            table, place = CONTEXTS.name, position
            try:
                number_of(position, 0)
                id_of(name)
                if own is None and original is None:
                    raise DamagedRow("missing_entry")
                if own is None:
                    table, place = MESSAGES.name, original
                yield table, place, StoredMessage(name, message_of(appended if own is None else own))
            except DamagedRow as damage:
                self.damages.add(table, place, damage.code)

    def _newest_context(self) -> int:
        """Number of the newest compaction whose context is stored; 0 without one."""
        query = sa.select(COMPACTIONS.c.seq).where(self._is(COMPACTIONS)).order_by(COMPACTIONS.c.seq.desc())
        for limit in (1, None):  # the newest one is usually whole
            for seq in self._connection.execute(query.limit(limit)).scalars():
                try:
                    if self._is_whole(number_of(seq)):
                        return int(seq)
                except DamagedRow as damage:
                    self.damages.add(COMPACTIONS.name, seq, damage.code)
        return 0

    def _is_whole(self, seq: int) -> bool:
        """Whether the context of a compaction is stored, or it left nothing.

        Raises:
            DamagedRow: Neither: its row has another number than its context (``missing_entry``), or is damaged.
        """
        context = sa.select(sa.literal(1)).where(self._is(CONTEXTS), CONTEXTS.c.compaction_seq == seq)
        if self._connection.execute(context.limit(1)).first() is not None:
            return True
        event = sa.select(COMPACTIONS.c.event).where(self._is(COMPACTIONS), COMPACTIONS.c.seq == seq)
        if object_of(self._connection.execute(event).scalar_one()).get("lengthAfter") == 0:
            return True
        raise DamagedRow("missing_entry")

    def events(self) -> list[CompactionEvent]:
        """All compactions, oldest first."""
        query = sa.select(COMPACTIONS.c.seq, COMPACTIONS.c.event).where(self._is(COMPACTIONS))
        found = []
        for seq, text in self._connection.execute(query.order_by(COMPACTIONS.c.seq)):
            try:
                number_of(seq)
                found.append(event_from(object_of(text), 0))
            except DamagedRow as damage:
                self.damages.add(COMPACTIONS.name, seq, damage.code)
        return found

    def compactions(self) -> list[RecordedCompaction]:
        """All compactions, oldest first, each with its place and the context after it."""
        numbers = [number for number, _ in self._numbered()]
        query = sa.select(COMPACTIONS.c.seq, COMPACTIONS.c.event, COMPACTIONS.c.created_at)
        found = []
        for seq, text, time in self._connection.execute(query.where(self._is(COMPACTIONS)).order_by(COMPACTIONS.c.seq)):
            try:
                fields = object_of(text) | {"context": self._listed(number_of(seq))}
            except DamagedRow as damage:
                self.damages.add(COMPACTIONS.name, seq, damage.code)
                continue
            found.append(RecordedCompaction(bisect.bisect_left(numbers, seq), time, event_from(fields, 0), fields))
        return found

    def _listed(self, seq: int) -> list[dict[str, Any]]:
        """The context after a compaction as a session file lists it: ids, and messages that are new or edited."""
        query = sa.select(CONTEXTS.c.position, CONTEXTS.c.message_id, CONTEXTS.c.message).where(
            self._is(CONTEXTS), CONTEXTS.c.compaction_seq == seq
        )
        listed = []
        for position, name, own in self._connection.execute(query.order_by(CONTEXTS.c.position)):
            try:
                message = {} if own is None else {"message": message_of(own)}
                listed.append({"id": str(id_of(name))} | message)
            except DamagedRow as damage:
                self.damages.add(CONTEXTS.name, position, damage.code)
        return listed

    def event_of(self, round: int) -> CompactionEvent | None:
        """The compaction of a round, if it is stored and can be read."""
        query = sa.select(COMPACTIONS.c.event).where(self._is(COMPACTIONS), COMPACTIONS.c.round == round)
        text = self._connection.execute(query).scalar_one_or_none()
        try:
            return None if text is None else event_from(object_of(text), 0)
        except DamagedRow:
            return None

    def message(self, id: str) -> dict[str, Any] | None:
        """The message appended with an id; None without one.

        Raises:
            StoreError: Its row is damaged (``corrupt``).
        """
        query = sa.select(MESSAGES.c.message).where(self._is(MESSAGES), MESSAGES.c.id == id)
        row = self._connection.execute(query).one_or_none()
        try:
            return None if row is None else message_of(row[0])
        except DamagedRow as damage:
            detail = f"the row of the message with this id is damaged: {damage.code}"
            raise StoreError(detail, code="corrupt", path="id") from None

    def marks(self) -> frozenset[int | str]:
        """Ids of the messages marked as compacted."""
        found = set()
        for name in self._connection.execute(sa.select(MARKS.c.message_id).where(self._is(MARKS))).scalars():
            try:
                found.add(id_of(name))
            except DamagedRow as damage:
                self.damages.add(MARKS.name, None, damage.code)
        return frozenset(found)

    def folds(self, history: str, limit: int) -> list[str]:
        """The newest folds of a history, oldest first."""
        query = sa.select(FOLDS.c.seq, FOLDS.c.fold).where(self._is(FOLDS), FOLDS.c.history == history)
        return self._fold_texts(query.order_by(FOLDS.c.seq.desc()).limit(limit))[::-1]

    def _fold_texts(self, query: sa.Select[Any]) -> list[str]:
        found = []
        for seq, text in self._connection.execute(query):
            try:
                number_of(seq)
                object_of(text)
                found.append(text)
            except DamagedRow as damage:
                self.damages.add(FOLDS.name, seq, damage.code)
        return found

    def leaf(self) -> str | None:
        """Id of the newest message or compaction; None if the session is empty."""
        newest: list[tuple[int, str]] = []
        for table, name, letter in ((MESSAGES, MESSAGES.c.id, "m"), (COMPACTIONS, sa.literal(None), "c")):
            query = sa.select(table.c.seq, name).where(self._is(table), table.c.seq.between(1, MAX_NUMBER))
            row = self._connection.execute(query.order_by(table.c.seq.desc()).limit(1)).one_or_none()
            if row is not None:
                newest.append((int(row[0]), row[1] if isinstance(row[1], str) else f"{letter}{int(row[0])}"))
        return max(newest, default=(0, None))[1]

    def last_round(self) -> int:
        """Round of the last compaction; 0 before the first. Not less than that of any compaction stored."""
        query = sa.select(SESSIONS.c.round).where(SESSIONS.c.id == self._session)
        row = self._connection.execute(query).one_or_none()
        last = 0 if row is None else row[0]
        if not isinstance(last, int) or not 0 <= last <= _MAX_ROUND:
            self.damages.add(SESSIONS.name, None, "bad_number")
            last = 0
        stored = sa.select(COMPACTIONS.c.round).where(self._is(COMPACTIONS), COMPACTIONS.c.round.between(1, _MAX_ROUND))
        newest = self._connection.execute(stored.order_by(COMPACTIONS.c.round.desc()).limit(1)).scalar_one_or_none()
        return max(last, int(newest or 0))

    def check(self) -> None:
        """Reads everything, to name all damaged rows."""
        self.messages()
        self.active()
        self.events()
        self.marks()
        self._fold_texts(sa.select(FOLDS.c.seq, FOLDS.c.fold).where(self._is(FOLDS)))
        self.last_round()
        query = sa.select(SESSIONS.c.next_seq, newest_seq(self._connection, self._session))
        for following, newest in self._connection.execute(query.where(SESSIONS.c.id == self._session)):
            try:
                if number_of(following) <= newest:
                    raise DamagedRow("bad_number")
            except DamagedRow as damage:
                self.damages.add(SESSIONS.name, None, damage.code)

    def _is(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return table.c.session_id == self._session


def newest_seq(connection: sa.Connection, session: str) -> sa.ColumnElement[int]:
    """The greatest sequence number that a row of the session has; 0 without rows. Each table answers from its index."""
    greatest = sa.func.greatest if connection.dialect.name == "postgresql" else sa.func.max
    numbers = []
    for table, column in (
        (MESSAGES, MESSAGES.c.seq),
        (COMPACTIONS, COMPACTIONS.c.seq),
        (CONTEXTS, CONTEXTS.c.compaction_seq),
        (FOLDS, FOLDS.c.seq),
    ):
        query = sa.select(column).where(table.c.session_id == session, column.between(1, MAX_NUMBER))
        numbers.append(sa.func.coalesce(query.order_by(column.desc()).limit(1).scalar_subquery(), 0))
    return greatest(*numbers)
