"""What tests need beside foldline: a PostgreSQL server, engines, and stores that can be opened again."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from foldline.stores import JsonlSession, SqlStore

#: The stores that last; the tests of the last one need a server.
LASTING: Final = ("jsonl", "sqlite", pytest.param("postgresql", marks=pytest.mark.service))
DATABASES: Final = LASTING[1:]


def postgres_url() -> str:
    """The address of the server; tests that need it are marked `service`."""
    url = os.environ.get("FOLDLINE_TEST_POSTGRES_URL")
    if not url:
        pytest.fail("needs PostgreSQL: scripts/postgres.sh pytest ...")
    return url


def database_url(kind: str, folder: Path) -> str:
    """The address of a database."""
    return postgres_url() if kind == "postgresql" else f"sqlite:///{folder / 'sessions.db'}"


def reopening(kind: str, folder: Path) -> Callable[[], Any]:
    """What opens a new session, and opens it again after that."""
    if kind == "jsonl":
        return lambda: JsonlSession(folder / "session.jsonl")
    url, session = database_url(kind, folder), f"test-{uuid.uuid4()}"
    return lambda: SqlStore(url, session=session)
