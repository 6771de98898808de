"""Rows of the table in docs/integrations.md, written by the runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from adapter_checks import Record


@pytest.fixture
def row() -> Callable[[str, str, Record], None]:
    """Adds a row: the framework, its package, and what a run showed."""

    def add(name: str, package: str, record: Record, **more: Any) -> None:
        out = os.environ.get("FOLDLINE_INTEGRATIONS_OUT")
        if out:
            line = {
                "framework": name,
                "package": package,
                "version": version(package),
                "folds": record.folds,
                "calls": len(record.requests),
                "most_tokens": record.most_tokens,
                "window": record.window,
                "summaries": record.summaries,
                "copies": sorted(record.copies),
                **more,
            }
            with Path(out).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    return add
