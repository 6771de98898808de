"""Tables of a session database, their versions and migrations."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from foldline.errors import StoreError
from foldline.stores._damage import DamagedRow, object_of

__all__ = ["COMPACTIONS", "CONTEXTS", "FOLDS", "MARKS", "MESSAGES", "SESSIONS", "VERSION", "prepare"]

#: Schema version that this release reads and writes.
VERSION: Final = 3

#: Key of PostgreSQL's advisory lock around creation and migration. An arbitrary number.
_PREPARING: Final = 0x666F6C64

_METADATA: Final = sa.MetaData()
_ID: Final = sa.String(255)


def _table(name: str, *columns: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(f"foldline_{name}", _METADATA, *columns)


SCHEMA: Final = _table("schema", sa.Column("version", sa.Integer, primary_key=True, autoincrement=False))

#: One row per session. Writers lock the row first.
SESSIONS: Final = _table(
    "sessions",
    sa.Column("id", _ID, primary_key=True),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.Column("next_seq", sa.BigInteger, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
)

#: Every message appended. Rows are added, never changed.
MESSAGES: Final = _table(
    "messages",
    sa.Column("session_id", _ID, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", _ID, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.UniqueConstraint("session_id", "id", name="foldline_messages_id"),
)

#: Every compaction. Rows are added, never changed; an input is compacted once.
COMPACTIONS: Final = _table(
    "compactions",
    sa.Column("session_id", _ID, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("base", sa.String(16), nullable=False, server_default="context"),
    sa.Column("covered_from", _ID, nullable=False),
    sa.Column("covered_to", _ID, nullable=False),
    sa.Column("covered_count", sa.BigInteger, nullable=False),
    sa.Column("input_sha256", sa.String(64), nullable=False),
    sa.Column("tokens_before", sa.BigInteger, nullable=False),
    sa.Column("tokens_after", sa.BigInteger, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.UniqueConstraint("session_id", "round", name="foldline_compactions_round"),
    sa.UniqueConstraint(
        "session_id", "covered_from", "covered_to", "input_sha256", name="foldline_compactions_input"
    ),
)  # fmt: skip

#: The context after each compaction. A message is stored only if it differs from the appended one.
CONTEXTS: Final = _table(
    "contexts",
    sa.Column("session_id", _ID, primary_key=True),
    sa.Column("compaction_seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("message_id", _ID, nullable=False),
    sa.Column("message", sa.Text),
)

#: Messages compacted now and by which compaction: once in the context, but no longer.
MARKS: Final = _table(
    "marks",
    sa.Column("session_id", _ID, primary_key=True),
    sa.Column("message_id", _ID, primary_key=True),
    sa.Column("compaction_seq", sa.BigInteger, nullable=False),
)


#: Folds of whole histories. Rows are added, never changed.
FOLDS: Final = _table(
    "folds",
    sa.Column("session_id", _ID, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("history", _ID, nullable=False),
    sa.Column("fold", sa.Text, nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
)


def prepare(connection: sa.Connection) -> None:
    """Creates the tables, or migrates older ones, within the connection's transaction.

    Raises:
        StoreError: A newer release created them (``newer_schema``), or their version cannot be read (``corrupt``).
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_PREPARING)))
    if not sa.inspect(connection).has_table(SCHEMA.name):
        _METADATA.create_all(connection)
        connection.execute(SCHEMA.insert().values(version=VERSION))
        return
    versions = connection.execute(sa.select(SCHEMA.c.version)).scalars().all()
    version = versions[0] if len(versions) == 1 else None
    if not isinstance(version, int) or version < 1:
        raise StoreError("the version of the tables cannot be read", code="corrupt")
    if version > VERSION:
        raise StoreError(f"the tables have version {version}, newer than {VERSION}", code="newer_schema")
    for step in _STEPS[version - 1 :]:
        step(connection)
    if version < VERSION:
        connection.execute(SCHEMA.update().values(version=VERSION))


def _to_2(connection: sa.Connection) -> None:
    """Adds the table of marks, and the base of each compaction."""
    connection.execute(
        sa.text("ALTER TABLE foldline_compactions ADD COLUMN base VARCHAR(16) DEFAULT 'context' NOT NULL")
    )
    MARKS.create(connection)
    marks: dict[tuple[str, str], int] = {}
    before: dict[str, list[str]] = {}
    query = sa.select(COMPACTIONS.c.session_id, COMPACTIONS.c.seq, COMPACTIONS.c.event).order_by(
        COMPACTIONS.c.session_id, COMPACTIONS.c.seq
    )
    for session, seq, event in connection.execute(query).all():
        rows = connection.execute(
            sa.select(CONTEXTS.c.message_id)
            .where(CONTEXTS.c.session_id == session, CONTEXTS.c.compaction_seq == seq)
            .order_by(CONTEXTS.c.position)
        )
        now = list(rows.scalars())
        gone = [*before.get(session, ()), *_compacted_ids(event)]
        marks |= {(session, each): seq for each in gone if each not in set(now) and (session, each) not in marks}
        before[session] = now
    for (session, message), seq in marks.items():
        connection.execute(MARKS.insert().values(session_id=session, message_id=message, compaction_seq=seq))


def _compacted_ids(event: object) -> list[str]:
    """The ids that an event names; none if its row is damaged."""
    try:
        listed = object_of(event).get("compactedIds")
    except DamagedRow:
        return []
    return [str(each) for each in listed] if isinstance(listed, list) else []


def _to_3(connection: sa.Connection) -> None:
    """Adds the table of folds."""
    FOLDS.create(connection)


#: Migrations: from version 1 to 2, from 2 to 3, …
_STEPS: Final = (_to_2, _to_3)
