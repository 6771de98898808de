"""tiktoken without a network, and the shared transcripts where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[2]

# tiktoken looks here for its rank files and checks their hashes itself; `make` fills the folder.
os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(ROOT / ".venv" / "tiktoken-cache"))

settings.register_profile("compat", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the shared transcripts; tests that need it are skipped without it."""
    folder = Path(os.environ.get("FOLDLINE_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip("the shared transcripts are not on this machine (set FOLDLINE_SHARED)")
    return folder
