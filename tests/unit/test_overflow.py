"""Errors of providers: which report a request that was too long. The texts are those that people reported in public."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.triggers import Overflow, overflow_kind

ROOT = Path(__file__).resolve().parents[2]
REPORTED: dict[str, list[dict[str, Any]]] = json.loads(
    (ROOT / "tests/unit/data/overflow.json").read_text(encoding="utf-8")
)
TABLE = json.loads((ROOT / "python/foldline/_util/overflow.json").read_text(encoding="utf-8"))
PATTERNS = [row["pattern"] for kind in ("context", "request_size") for row in TABLE[kind]]


def rows(kind: str) -> list[Any]:
    return [pytest.param(row["error"], id=f"{row['who']} {i}") for i, row in enumerate(REPORTED[kind])]


@pytest.mark.parametrize("error", rows("context"))
def test_a_reported_overflow_is_recognised(error: object) -> None:
    assert overflow_kind(error) == "context"
    assert Overflow().reason(fl.ContextState(error=error)) == "context_overflow"


@pytest.mark.parametrize("error", rows("request_size"))
def test_a_reported_request_of_too_many_bytes_is_recognised(error: object) -> None:
    assert overflow_kind(error) == "request_size"


@pytest.mark.parametrize("error", rows("other"))
def test_other_reported_errors_are_not_overflow(error: object) -> None:
    assert overflow_kind(error) is None
    assert not Overflow().should_compact(fl.ContextState(error=error))


@pytest.mark.parametrize("error", rows("context")[::7])
@pytest.mark.parametrize(
    "wrap", [str, json.dumps, RuntimeError, lambda error: {"body": [error]}], ids=["str", "JSON", "exception", "body"]
)
def test_an_overflow_is_recognised_however_an_sdk_wraps_it(error: object, wrap: Any) -> None:
    assert overflow_kind(wrap(error)) == "context"


PERIOD = "Request too large for m on tokens per min (TPM): Limit {limit}, {used}Requested {requested}.{wait}"


@pytest.mark.parametrize(
    ("limit", "used", "requested", "wait", "expected"),
    [
        ("30000", "", "30001", "", "context"),
        ("30000", "", "30000", "", None),
        ("30,000", "", "45,210", "", "context"),
        ("30000", "Used 29000, ", "1500", " Please try again in 1s.", None),
        ("30000", "Used 100, ", "40000", "", "context"),
        ("30000", "", "40000", " Please try again in 20s.", None),
    ],
)
def test_a_request_over_the_tokens_of_a_minute_by_itself_is_an_overflow(
    limit: str, used: str, requested: str, wait: str, expected: str | None
) -> None:
    text = PERIOD.format(limit=limit, used=used, requested=requested, wait=wait)
    assert overflow_kind({"error": {"message": text, "code": "rate_limit_exceeded"}}) == expected
    assert overflow_kind(text.replace("per min (TPM)", "per day (TPD)")) == expected


def test_at_least_sixty_wordings_and_fifteen_others_were_collected_with_their_sources() -> None:
    assert len(REPORTED["context"]) >= 60
    assert len(REPORTED["other"]) >= 15
    for row in [row for kind in ("context", "request_size", "other") for row in REPORTED[kind]]:
        assert row["source"].startswith("https://"), row
        assert re.fullmatch(r"20\d\d-\d\d", row["date"]), row
    for row in [*TABLE["context"], *TABLE["request_size"]]:
        assert row["providers"], row
        assert re.fullmatch(r"20\d\d-\d\d", row["date"]), row
        assert row["source"].startswith("https://"), row


def test_every_pattern_of_the_table_is_needed() -> None:
    """Each matches a reported text or one of the ledger, so that none is kept for nothing."""
    from tests.unit.ledger.test_ABT_when import SAYINGS

    texts = [json.dumps(row["error"]) for kind in ("context", "request_size") for row in REPORTED[kind]]
    texts += [*SAYINGS.values(), *UNREPORTED]
    unused = [pattern for pattern in PATTERNS if not any(re.search(pattern, text, re.IGNORECASE) for text in texts)]
    assert unused == []


#: Texts without a public thread: codes and documentation.
UNREPORTED = [
    "max_input_tokens_exceeded",
    "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
    "The estimated number of input and maximum output tokens (33000) exceeded this model context window limit (32768).",
    "Total tokens of image and text exceed max message tokens",
    "Request Entity Too Large",
]


@pytest.mark.parametrize("text", UNREPORTED)
def test_documented_texts_are_recognised(text: str) -> None:
    assert overflow_kind(text) is not None


HOSTILE = [
    "context length ", "prompt contains 9 tokens ", "1" * 12 + " ", "exceeds the model's ",
    "request body too large for ", "number of input tokens ", "tokens per min limit 9 ", "total tokens of ",
    "input length 1 + 1 ",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_recognition_is_linear_in_the_text(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.thread_time()
        overflow_kind(text)
        return time.thread_time() - start

    overflow_kind("")  # reads the table
    small, large = (min(seconds(size) for _ in range(3)) for size in (20_000, 80_000))
    assert large < 6 * small + 0.02
