"""Fixtures of the fault tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
