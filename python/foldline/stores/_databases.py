"""Durable SQLite and PostgreSQL connections, with errors translated to `StoreError`."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import event, exc

from foldline._util.files import ensure_private
from foldline._util.sqlite import set_durable
from foldline.errors import ConfigError, StoreError

__all__ = ["Database", "store_error"]

_WRITES: Final = "foldline_writes"

_SQLITE_CODES: Final = {
    "SQLITE_BUSY": "busy",
    "SQLITE_LOCKED": "busy",
    "SQLITE_FULL": "store_full",
    "SQLITE_READONLY": "not_writable",
    "SQLITE_PERM": "not_writable",
    "SQLITE_CANTOPEN": "no_file",
    "SQLITE_IOERR": "io_error",
    "SQLITE_CORRUPT": "corrupt",
    "SQLITE_NOTADB": "corrupt",
    "SQLITE_ERROR": "bad_query",
}

#: Prefixes of PostgreSQL's SQLSTATE codes, the longest first.
_POSTGRES_CODES: Final = {
    "55P03": "busy",
    "57014": "busy",
    "53100": "store_full",
    "53": "unreachable",
    "25006": "not_writable",
    "42501": "not_writable",
    "40": "conflict",
    "42": "bad_query",
    "08": "unreachable",
    "28": "unreachable",
    "3D": "unreachable",
    "57P": "unreachable",
    "58": "io_error",
    "22021": "corrupt",  # bytes that are invalid in the database's encoding
    "XX001": "corrupt",
    "XX002": "corrupt",
}

#: Longest wait of a fork for transactions to end.
_FORK_WAIT_S: Final = 10.0

#: SQLite files that were in a transaction of the parent when this process was forked. SQLite's own state of them is a
#: copy of the parent's, so that it takes them for locked.
_INHERITED: Final[set[str]] = set()


class Database:
    """An engine and its transactions. Thread-safe.

    A fork waits until no transaction is open, and closes idle connections of SQLite. A child opens its own connections
    and lets go of its parent's, so that they end with the parent. If a transaction did not end within `_FORK_WAIT_S`, a
    SQLite database cannot be used in the child (``forked``).

    Args:
        url: ``sqlite:///path`` or ``postgresql://…``.
        lock_timeout_s: Timeout for taking a lock.

    Raises:
        ConfigError: The URL is invalid or not supported.
        StoreError: The file is a link, or cannot be created.
    """

    def __init__(self, url: str, lock_timeout_s: float) -> None:
        try:
            parsed = sa.make_url(url)
        except exc.ArgumentError:
            raise ConfigError("is not the URL of a database", code="bad_url", path="url") from None
        kind = parsed.get_backend_name()
        options: dict[str, Any] = {}
        if kind in ("postgres", "postgresql"):
            kind = "postgresql"
            # The extra installs psycopg 3.
            parsed = parsed.set(drivername="postgresql+psycopg")
            options = {"pool_pre_ping": True, "connect_args": {"connect_timeout": max(2, int(lock_timeout_s))}}
        elif kind != "sqlite":
            raise ConfigError("must be sqlite or postgresql", code="unsupported_database", path="url")
        elif not parsed.database or parsed.database == ":memory:" or "mode=memory" in url:
            raise ConfigError("must be a file; MemoryStore is in memory", code="memory_database", path="url")
        else:
            _make_private(parsed.database)
            options = {"connect_args": {"timeout": lock_timeout_s}}
        self.kind = kind
        self._place = os.path.realpath(parsed.database) if kind == "sqlite" and parsed.database else ""
        self._changing = threading.Condition()
        self._active: dict[int, int] = {}  # open transactions of each thread
        self._is_forking = False
        self._raw: weakref.WeakSet[Any] = weakref.WeakSet()  # connections of PostgreSQL
        self._lock_timeout_ms = int(lock_timeout_s * 1000)
        # `hide_parameters`: errors and logs must not contain message content.
        self._engine = sa.create_engine(parsed, hide_parameters=True, **options)
        # First, since SQLAlchemy asks the server for its version and would get bytes from one without an encoding.
        event.listen(self._engine, "connect", self._connected, insert=True)
        event.listen(self._engine, "begin", self._begun)
        _DATABASES.add(self)

    def __repr__(self) -> str:
        return f"Database({self.kind})"

    def _connected(self, connection: Any, _: object) -> None:
        """Configures a new connection."""
        if self.kind == "sqlite":
            connection.isolation_level = None  # `_begun` starts transactions explicitly
            # Bytes that are no UTF-8 become lone surrogates, so that one damaged row does not end a query.
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            set_durable(connection, self._lock_timeout_ms / 1000)
            return
        settings = (
            ("lock_timeout", f"{self._lock_timeout_ms}ms"),
            ("synchronous_commit", "on"),  # only if the server acknowledges commits before they are on disk
        )
        self._raw.add(connection)
        _read_leniently(connection)
        connection.autocommit = True
        with connection.cursor() as cursor:
            for name, value in settings:
                cursor.execute(
                    "SELECT set_config(%s, %s, false) WHERE %s <> 'synchronous_commit'"
                    " OR current_setting('synchronous_commit') = 'off'",
                    (name, value, name),
                )
        connection.autocommit = False

    def _begun(self, connection: sa.Connection) -> None:
        if self.kind == "sqlite":
            writes = connection.get_execution_options().get(_WRITES, False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction with one consistent snapshot.

        Raises:
            StoreError: A database error.
        """
        options = {"isolation_level": "REPEATABLE READ"} if self.kind == "postgresql" else {}
        with self._translated(), self._connection(**options) as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A write transaction, durably committed if the block succeeds, else rolled back.

        Raises:
            StoreError: A database error. ``commit_unknown``: the connection broke during the commit, so the transaction
                may have been committed.
        """
        with self._translated(), self._connection(**{_WRITES: True}) as connection:
            transaction, process = connection.begin(), os.getpid()
            try:
                yield connection
            except BaseException:
                with contextlib.suppress(exc.SQLAlchemyError):
                    transaction.rollback()
                raise
            if process != os.getpid():
                raise StoreError("the process was forked within this transaction", code="forked")
            try:
                transaction.commit()
            except exc.DBAPIError as error:
                translated = store_error(error)
                with contextlib.suppress(exc.SQLAlchemyError):
                    transaction.rollback()
                if self.kind == "postgresql" and translated.code in ("unreachable", "store_failed"):
                    raise StoreError(translated.detail, code="commit_unknown") from None
                raise translated from None

    @contextlib.contextmanager
    def _connection(self, **options: Any) -> Iterator[sa.Connection]:
        if self._place in _INHERITED:
            raise StoreError("the process was forked during a transaction", code="forked")
        thread = threading.get_ident()
        with self._changing:
            while self._is_forking and not self._active.get(thread):
                self._changing.wait()
            self._active[thread] = self._active.get(thread, 0) + 1
        process = os.getpid()
        try:
            with self._engine.connect() as connection:
                yield connection.execution_options(**options)
        finally:
            if process == os.getpid():
                self._ended(thread)

    def _ended(self, thread: int) -> None:
        with self._changing:
            self._active[thread] -= 1
            if not self._active[thread]:
                del self._active[thread]
            self._changing.notify_all()

    # --- Forks ----------------------------------------------------------------------------------------

    def before_fork(self, deadline_s: float) -> None:
        """Waits until other threads have no transaction; closes idle connections of SQLite.

        Args:
            deadline_s: The end of the wait, by the monotonic clock.
        """
        own = threading.get_ident()
        self._changing.acquire()  # until `after_fork`
        self._is_forking = True
        while set(self._active) - {own} and (left_s := deadline_s - time.monotonic()) > 0:
            self._changing.wait(left_s)
        if self.kind == "sqlite" and not self._active:
            self._engine.dispose()

    def after_fork(self, *, in_child: bool) -> None:
        """Lets other threads go on; a child lets go of its parent's connections."""
        self._is_forking = False
        self._changing.notify_all()
        self._changing.release()
        if not in_child:
            return
        if self._active and self._place:
            _INHERITED.add(self._place)
        self._changing, self._active = threading.Condition(), {}
        for connection in self._raw:
            _let_go(connection)
        self._raw = weakref.WeakSet()
        self._engine.dispose(close=False)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except exc.SQLAlchemyError as error:
            # Not chained: a database error about a row may contain the row.
            raise store_error(error) from None
        except UnicodeDecodeError:  # an error of SQLite that quotes bytes of a damaged file
            raise StoreError("the database quotes bytes that are no UTF-8", code="corrupt") from None

    def close(self) -> None:
        """Closes the connections. Later use opens new ones."""
        self._engine.dispose()


_DATABASES: Final[weakref.WeakSet[Database]] = weakref.WeakSet()
_FORKING: Final[list[Database]] = []  # in the fork that is under way
_FORK_GUARD: Final = threading.RLock()  # one fork at a time


def _before_fork() -> None:
    _FORK_GUARD.acquire()
    deadline_s = time.monotonic() + _FORK_WAIT_S
    for database in list(_DATABASES):
        database.before_fork(deadline_s)
        _FORKING.append(database)


def _after_fork(*, in_child: bool) -> None:
    while _FORKING:
        _FORKING.pop().after_fork(in_child=in_child)
    _FORK_GUARD.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )


def _let_go(connection: Any) -> None:
    """Makes a parent's connection one to the null device in a child: it ends with the parent, without a word."""
    with contextlib.suppress(Exception):  # a closed connection has no socket
        null = os.open(os.devnull, os.O_RDWR)
        try:
            os.dup2(null, connection.pgconn.socket, inheritable=False)
        finally:
            os.close(null)


def _read_leniently(connection: Any) -> None:
    """Makes psycopg decode bytes that are invalid in the connection's encoding to lone surrogates, as for SQLite."""
    from psycopg.adapt import Loader

    named = connection.info.encoding
    encoding = "utf-8" if named == "ascii" else named  # SQL_ASCII: the bytes as they were written, in UTF-8

    class LenientText(Loader):
        """Decodes any bytes."""

        def load(self, data: Any) -> str:
            return bytes(data).decode(encoding, "surrogateescape")

    for name in ("text", "varchar", "bpchar", "name"):
        connection.adapters.register_loader(name, LenientText)


def store_error(error: exc.SQLAlchemyError) -> StoreError:
    """A database error as a `StoreError`, without message content."""
    original = getattr(error, "orig", None)
    name = getattr(original, "sqlite_errorname", None)
    if isinstance(name, str):
        found = next((code for begin, code in _SQLITE_CODES.items() if name.startswith(begin)), "store_failed")
        return StoreError(f"SQLite: {name}", code=found)
    if type(original).__module__ == "sqlite3":  # raised by the module itself: the file was reached
        return StoreError(f"SQLite: {type(original).__name__}")
    state = getattr(original, "sqlstate", None)
    if isinstance(state, str):
        found = next((code for begin, code in _POSTGRES_CODES.items() if state.startswith(begin)), "store_failed")
        return StoreError(f"PostgreSQL: {state}", code=found)
    if getattr(error, "connection_invalidated", False) or type(original).__name__ in (
        "OperationalError",
        "InterfaceError",
        "ConnectionTimeout",
    ):
        return StoreError("the database cannot be reached", code="unreachable")
    return StoreError(f"the database failed: {type(original or error).__name__}")


def _make_private(path: str) -> None:
    """Creates the file of a SQLite database with owner-only access.

    Raises:
        StoreError: The path is a link or not a regular file, or the file cannot be created.
    """
    try:
        ensure_private(path)
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            raise StoreError("a link is in place of the database", code="linked_file")
        if not stat.S_ISREG(mode):
            raise StoreError("not a regular file", code="not_a_file")
    except OSError as error:
        code = "no_file" if isinstance(error, (FileNotFoundError, NotADirectoryError)) else "not_writable"
        raise StoreError(f"the database cannot be created: {type(error).__name__}", code=code) from error
