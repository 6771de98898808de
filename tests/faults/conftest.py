"""Fixtures of the fault tests."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faults.model_server import Behaviour, ModelServer


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    """Starts servers and stops them at the end."""
    servers: list[ModelServer] = []

    def start(*script: Behaviour) -> ModelServer:
        servers.append(ModelServer(*script).__enter__())
        return servers[-1]

    yield start
    for each in servers:
        each.__exit__()


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a Ray of its own, all of whose processes are gone at the end."""
    mark = uuid.uuid4().hex
    (tmp_path / "home").mkdir()
    wanted = {"FOLDLINE_RAY_TEST": mark, "HOME": str(tmp_path / "home")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    yield {**kept, **wanted}
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"FOLDLINE_RAY_TEST={mark}".encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
