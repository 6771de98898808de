"""The module under test. FOLDLINE_ENGINE=reference tries the tests on the oracle itself instead of foldline."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from depth import cases

TESTS = Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))


@pytest.fixture(scope="session")
def on_reference() -> bool:
    """Whether the tests are being tried on the oracle."""
    return os.environ.get("FOLDLINE_ENGINE") == "reference"


@pytest.fixture(scope="session")
def fl(on_reference: bool) -> Any:
    """The module under test."""
    if on_reference:
        return importlib.import_module("reference.engine").Engine()
    return importlib.import_module("foldline")


@pytest.fixture(scope="session")
def oracle_cases() -> int:
    """How many seeded random transcripts are compared with the oracle."""
    return cases("oracle_cases")
