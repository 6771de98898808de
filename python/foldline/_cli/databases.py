"""Reads transcripts from a database: rows of a table or query, or sessions of `SqlStore`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foldline._cli.sources import DatabaseSource, OnProblem
from foldline.errors import FoldlineError, StoreError
from foldline.reading import transcript_of
from foldline.typing import Problem, StoredTranscript

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["database_sources", "session_sources"]

#: Rows fetched at a time; bounds memory.
_ROWS = 64

_MESSAGES, _ID = "messages", "id"


def database_sources(url: str | None, table: str | None, query: str | None) -> list[DatabaseSource]:
    """The database source of the options; empty if no database was named.

    Raises:
        click.UsageError: The URL is invalid, its driver or SQLAlchemy is missing, or the options contradict each other.
            No message contains the password.
    """
    if url is None:
        if table is not None or query is not None:
            raise click.UsageError(f"{'--table' if table is not None else '--query'} goes with --database")
        return []
    if table is not None and query is not None:
        raise click.UsageError("--table and --query exclude each other")
    try:
        import sqlalchemy as sa
    except ImportError:
        raise click.UsageError("--database needs the package sqlalchemy: pip install 'foldline[sql]'") from None
    try:
        parsed = _parsed(url)
        sa.create_engine(parsed)
    except sa.exc.NoSuchModuleError:
        raise click.BadParameter("is of a kind that SQLAlchemy does not support", param_hint="--database") from None
    except (sa.exc.ArgumentError, ValueError):
        raise click.BadParameter("is not the URL of a database", param_hint="--database") from None
    except ImportError as error:
        raise click.BadParameter(f"needs the package {error.name}", param_hint="--database") from None
    if parsed.get_backend_name() == "sqlite" and not os.path.isfile(parsed.database or ""):  # noqa: PTH113 - the path as given
        raise click.BadParameter("there is no such file", param_hint="--database")
    name = "query" if query is not None else _file_name(table) if table is not None else "sessions"
    shown = parsed.set(query={}).render_as_string(hide_password=True)  # the query may contain a password, too
    return [DatabaseSource(shown, Path(f"{name}.jsonl"), url, table, query, rows)]


def session_sources(url: str | None) -> list[DatabaseSource]:
    """The sessions of foldline in a database, with their compactions.

    Raises:
        click.UsageError: Those of `database_sources`.
    """
    reading = functools.partial(rows, with_compactions=True)
    return [dataclasses.replace(source, rows=reading) for source in database_sources(url, None, None)]


def _file_name(table: str) -> str:
    """A table's name as a file name."""
    return "".join(ch if ch.isalnum() or ch in "-_." else "_" for ch in table).lstrip(".") or "table"


def _parsed(url: str) -> sa.URL:
    import sqlalchemy as sa

    parsed = sa.make_url(url)
    # The extra installs psycopg 3.
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername in ("postgres", "postgresql") else parsed


def rows(
    source: DatabaseSource, on_problem: OnProblem, *, with_compactions: bool = False
) -> Iterator[StoredTranscript]:
    """The transcripts of a database, streamed from the server. Read-only.

    A row without a transcript is a problem; reading continues with the next one.

    Raises:
        StoreError: The database cannot be read to its end, so the transcripts so far are incomplete. ``path`` is its
            URL without the password.
    """
    import sqlalchemy as sa

    from foldline.stores._databases import store_error

    engine = sa.create_engine(_parsed(source.url), hide_parameters=True, poolclass=sa.pool.NullPool)
    try:
        with engine.connect() as connection, connection.begin():
            _make_read_only(connection)
            if with_compactions:
                yield from _compacted_sessions(connection, source, on_problem)
            elif source.table is None and source.query is None:
                yield from _sessions(connection, source, on_problem)
            else:
                yield from _rows(connection, source, on_problem)
    # Not chained: a database error about a row may contain the row.
    except UnicodeDecodeError:
        raise StoreError("it contains text that is not UTF-8", code="corrupt", path=source.path) from None
    except sa.exc.SQLAlchemyError as error:
        found = store_error(error)
        raise StoreError(found.detail, code=found.code, path=source.path) from None
    except StoreError as error:
        raise StoreError(error.detail, code=error.code, path=source.path) from None
    finally:
        engine.dispose()


def _make_read_only(connection: sa.Connection) -> None:
    """Makes the transaction read-only, since a user's query may write, with one consistent snapshot."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")
    elif connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


def _streamed(connection: sa.Connection, statement: Any) -> Any:
    """The result of a statement, through a server-side cursor if supported."""
    return connection.execution_options(stream_results=True, yield_per=_ROWS).execute(statement)


def _statement(connection: sa.Connection, source: DatabaseSource) -> Any:
    import sqlalchemy as sa

    if source.query is not None:
        return sa.text(source.query.replace(":", "\\:"))  # `text` must not treat colons as parameters
    schema, _, name = (source.table or "").rpartition(".")
    try:
        found = {column["name"] for column in sa.inspect(connection).get_columns(name, schema or None)}
    except sa.exc.NoSuchTableError:
        raise StoreError("the database has no such table", code="missing_table") from None
    if _MESSAGES not in found:
        raise StoreError("there is no column messages", code="missing_column")
    columns: list[Any] = [sa.column(each) for each in (_ID, _MESSAGES) if each in found]
    return sa.select(*columns).select_from(sa.table(name, schema=schema or None))


def _rows(connection: sa.Connection, source: DatabaseSource, on_problem: OnProblem) -> Iterator[StoredTranscript]:
    answer = _streamed(connection, _statement(connection, source))
    keys = list(answer.keys()) if answer.returns_rows else []
    if _MESSAGES not in keys:
        raise StoreError("there is no column messages", code="missing_column")
    at, name_at = keys.index(_MESSAGES), keys.index(_ID) if _ID in keys else None
    for number, row in enumerate(answer, 1):
        name = None if name_at is None or row[name_at] is None else str(row[name_at])
        try:
            yield _transcript(row[at], name, number)
        except FoldlineError as error:
            on_problem(Problem(error.index, error.code, f"row {number}: {error.detail}", source.path))


def _transcript(value: Any, name: str | None, number: int) -> StoredTranscript:
    """A row's transcript, named by the row's id, the id in its messages value, or the row's number."""
    if isinstance(value, memoryview):
        value = value.tobytes()
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise FoldlineError("it is not JSON", code="bad_json") from None
    found = transcript_of(value, name or str(number))
    meta = {key: value for key, value in found.meta.items() if key not in ("path", "line")}  # keys of files
    return StoredTranscript(found.id if name is None else name, found.format, found.messages, meta)


def _check_schema(connection: sa.Connection) -> None:
    import sqlalchemy as sa

    from foldline.stores._schema import SCHEMA, VERSION

    if not sa.inspect(connection).has_table(SCHEMA.name):
        raise StoreError("the database has no sessions of foldline; name a --table or a --query", code="missing_table")
    version = connection.execute(sa.select(SCHEMA.c.version)).scalar_one()
    if version > VERSION:
        raise StoreError(f"the tables have version {version}, newer than {VERSION}", code="newer_schema")


def _sessions(connection: sa.Connection, source: DatabaseSource, on_problem: OnProblem) -> Iterator[StoredTranscript]:
    """The sessions of `SqlStore` by id, each with every appended message."""
    import sqlalchemy as sa

    from foldline.stores._damage import DamagedRow, Damages, message_of
    from foldline.stores._schema import MESSAGES

    _check_schema(connection)
    columns = (MESSAGES.c.session_id, MESSAGES.c.seq, MESSAGES.c.message)
    query = sa.select(*columns).order_by(MESSAGES.c.session_id, MESSAGES.c.seq)
    session: str | None = None
    messages: list[Any] = []
    damages = Damages("")
    number = 0

    def whole() -> Iterator[StoredTranscript]:
        if session is not None:
            with _reporting(on_problem, f"session {number}", source.path):
                yield _transcript(messages, session, number)
        for problem in damages.problems():
            on_problem(dataclasses.replace(problem, path=source.path))

    for name, seq, text in _streamed(connection, query):
        if str(name) != session:
            yield from whole()
            session, messages, number = str(name), [], number + 1
            damages = Damages(session)
        try:
            messages.append(message_of(text))
        except DamagedRow as damage:
            damages.add(f"messages of session {number}", seq, damage.code)
    yield from whole()


def _compacted_sessions(
    connection: sa.Connection, source: DatabaseSource, on_problem: OnProblem
) -> Iterator[StoredTranscript]:
    """The sessions of `SqlStore` with their compactions, one at a time."""
    import sqlalchemy as sa

    from foldline.report._sessions import of_rows
    from foldline.stores._rows import SessionRows
    from foldline.stores._schema import SESSIONS

    _check_schema(connection)
    names = connection.execute(sa.select(SESSIONS.c.id).order_by(SESSIONS.c.id)).scalars().all()
    for number, name in enumerate(names, 1):
        stored = SessionRows(connection, str(name))
        with _reporting(on_problem, f"session {number}", source.path):
            yield of_rows(str(name), stored.messages(), stored.compactions())
        for problem in stored.damages.problems():
            on_problem(dataclasses.replace(problem, path=source.path))


@contextlib.contextmanager
def _reporting(on_problem: OnProblem, where: str, path: str) -> Iterator[None]:
    try:
        yield
    except FoldlineError as error:
        on_problem(Problem(error.index, error.code, f"{where}: {error.detail}", path))
