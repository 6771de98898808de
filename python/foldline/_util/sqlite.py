"""SQLite settings shared by stores and caches: write-ahead log, durable commits."""

from __future__ import annotations

import sqlite3
import time
from typing import Final

__all__ = ["set_durable"]

_STEP_S: Final = 0.005


def set_durable(connection: sqlite3.Connection, lock_timeout_s: float) -> None:
    """Configures a connection for concurrent readers and durable commits.

    Only the first connection to a new file changes the journal mode. At that step SQLite ignores the busy timeout and
    returns ``SQLITE_BUSY`` at once, since two waiting connections would deadlock. So the step is retried until the
    timeout.

    Args:
        connection: A connection outside a transaction.
        lock_timeout_s: Timeout of a step that waits for a lock.

    Raises:
        sqlite3.OperationalError: Busy until the timeout, or another error of SQLite.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(lock_timeout_s * 1000)}").close()
    ends_s = time.monotonic() + lock_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
            break
        except sqlite3.OperationalError as error:
            # The low byte is the primary code, higher bytes extend it (SQLite, "Result and Error Codes").
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= ends_s:
                raise
        time.sleep(_STEP_S)
    # NORMAL keeps the file consistent but may lose the newest commits in a power cut.
    connection.execute("PRAGMA synchronous = FULL").close()
