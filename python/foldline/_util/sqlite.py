"""SQLite as stores and caches set it: written ahead, on the disk when a commit returns."""

from __future__ import annotations

import sqlite3
import time
from typing import Final

__all__ = ["set_durable"]

_STEP_S: Final = 0.005


def set_durable(connection: sqlite3.Connection, lock_timeout_s: float) -> None:
    """Sets a connection so that readers and a writer work at once and what is committed stays.

    Only the first connection to a new file changes how the file is written. SQLite does not wait for others at that
    step, whatever the connection's timeout (two that waited for each other would never end): it says busy at once. So
    we try again until the time is up.

    Args:
        connection: Outside a transaction.
        lock_timeout_s: How long a step waits for others.

    Raises:
        sqlite3.OperationalError: Busy for too long, or what else SQLite said.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(lock_timeout_s * 1000)}").close()
    ends_s = time.monotonic() + lock_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
            break
        except sqlite3.OperationalError as error:
            # The low byte is the code, what is above it says more (SQLite, "Result and Error Codes").
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= ends_s:
                raise
        time.sleep(_STEP_S)
    # NORMAL, which is enough for a file to stay whole, may lose the newest commits in a power cut.
    connection.execute("PRAGMA synchronous = FULL").close()
