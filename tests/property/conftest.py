"""Hypothesis profiles, and the module under test.

HYPOTHESIS_PROFILE=ci (default, fast, derandomised) | deep (on demand)
FOLDLINE_ORACLE_CASES   seeded random transcripts in the comparison with the oracle, default 5000
FOLDLINE_ENGINE=reference   tries the tests on the oracle itself instead of foldline
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

settings.register_profile(
    "ci", max_examples=100, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


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
    return int(os.environ.get("FOLDLINE_ORACLE_CASES", "5000"))
