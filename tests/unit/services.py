"""What tests need beside foldline: a PostgreSQL server, engines, and stores that can be opened again."""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from foldline.stores import JsonlSession, SqlStore

#: The stores that last; of the last one the tests are left out where there is no server.
LASTING: Final = ("jsonl", "sqlite", pytest.param("postgresql", marks=pytest.mark.service))
DATABASES: Final = LASTING[1:]


def postgres_url() -> str:
    """The address of a server that tests may use; skips the test where there is none, or fails it in CI."""
    url = os.environ.get("FOLDLINE_TEST_POSTGRES_URL")
    if not url:
        reason = "needs PostgreSQL: scripts/postgres.sh make test"
        if os.environ.get("FOLDLINE_REQUIRE_SERVICES"):
            pytest.fail(reason)
        pytest.skip(reason)
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


def engine(package: str) -> Any:
    """An engine that tests may use; skips the test where it is not installed, or fails it in CI."""
    try:
        return importlib.import_module(package)
    except ImportError:
        reason = f"needs {package}: make ENGINES=1 test"
        if os.environ.get("FOLDLINE_REQUIRE_ENGINES"):
            pytest.fail(reason)
        pytest.skip(reason)
