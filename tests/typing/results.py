"""The types of results: outcomes, reasons, plans, events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, assert_type

import numpy as np
from numpy.typing import NDArray

import foldline as fl
from foldline.typing import Action, CompactionEvent, Completion, CountKind, Fact, Fallback, Format, Outcome

MESSAGES = [{"role": "user", "content": "Go on."}]


def counts() -> None:
    counter = fl.TokenCounter.for_model("gpt-5")
    assert_type(counter, fl.TokenCounter)
    assert_type(counter.count("hello"), int)
    assert_type(counter.fits(MESSAGES, 100), bool)
    assert_type(counter.kind, CountKind)
    assert_type(counter.error_bound, float | None)
    assert_type(counter.count_batch(["a", "b"]), NDArray[np.int64])
    found = counter.count_messages(MESSAGES)
    assert_type(found, fl.Counts)
    assert_type(found.per_message, NDArray[np.int64])
    assert_type(found.total, int)
    assert_type(found.kind, CountKind)
    assert_type(found.by_part, dict[str, int])
    assert_type(fl.count_tokens("hello"), int)
    counter.count(b"hello")  # type: ignore[arg-type]
    counter.count_messages(MESSAGES, format="morse")  # type: ignore[arg-type]


def plans() -> None:
    planned = fl.plan(MESSAGES, fl.FitTokens(4_000), pins=[0])
    assert_type(planned, fl.Plan | fl.Infeasible)
    assert_type(planned.cut, int)
    assert_type(planned.floor, int)
    assert_type(planned.feasible, bool)
    if isinstance(planned, fl.Infeasible):
        assert_type(planned.why, str)
        assert_type(planned.feasible, Literal[False])
        assert_type(bool(planned), bool)
    else:
        assert_type(planned, fl.Plan)
        assert_type(planned.feasible, Literal[True])
        assert_type(planned.actions, list[Action])
        assert_type(planned.reasons, list[str])
        assert_type(planned.turn_prefix, tuple[int, int] | None)
        assert_type(planned.legal_cuts, list[int])
        assert_type(planned.warnings, list[tuple[str, int | None]])
        assert_type(planned.chunks(1_000), list[fl.planning.Chunk])
        assert_type(planned.alternatives, list[fl.planning.Alternative])
        assert_type(planned.cache_effect(2.5, 0.25), fl.planning.CacheEffect)
        assert_type(planned.apply(MESSAGES, "So far."), list[Any])
        assert_type(fl.Plan.from_json(planned.to_json()), fl.Plan)
    fl.plan(MESSAGES, 4_000)  # type: ignore[arg-type]
    fl.plan(MESSAGES, fl.FitTokens(4_000), thinking="drop")  # type: ignore[arg-type]
    fl.plan("Go on.", fl.FitTokens(4_000))  # type: ignore[arg-type]
    planned.why  # type: ignore[union-attr]


def folds() -> None:
    result = fl.compact(MESSAGES, fl.KeepTokens(100))
    assert_type(result, fl.FoldResult)
    assert_type(fl.trim(MESSAGES, 100), fl.FoldResult)
    assert_type(result.messages, list[Any])
    assert_type(result.outcome, Outcome)
    assert_type(result.reason, str)
    assert_type(result.changed, bool)
    assert_type(result.fits, bool | None)
    assert_type(result.sources, Sequence[int | None])
    assert_type(result.pins, tuple[int, ...])
    assert_type(result.dropped, tuple[int, ...])
    assert_type(result.edited, tuple[int, ...])
    assert_type(result.floor, int | None)
    assert_type(result.plan, fl.Plan | fl.Infeasible | None)
    assert_type(result.error, fl.errors.FoldlineError | None)
    assert_type(result.completion, Completion | None)
    assert_type(result.facts.dropped, tuple[Fact, ...])
    assert_type(result.duration_s, float)
    result.outcome = "folded"  # type: ignore[misc]


def every_outcome_is_handled(result: fl.FoldResult) -> int:
    """Without a last return: the outcomes are a closed list."""
    match result.outcome:
        case "folded" | "fallback":
            return 1
        case "unchanged":
            return 2
        case "infeasible":
            return 3
        case "failed":
            return 4


def compactions(compactor: fl.Compactor) -> None:
    result = compactor.compact(MESSAGES)
    assert_type(result, fl.CompactionResult)
    taken: fl.FoldResult = result
    assert_type(taken.outcome, Outcome)
    assert_type(result.event, CompactionEvent | None)
    assert_type(result.state, fl.ContextState)
    assert_type(result.metadata, fl.context.Metadata)
    assert_type(result.fallback, Fallback | None)
    assert_type(result.trigger, Literal["auto", "manual"])
    assert_type(result.tries, int)
    if result.event is not None:
        assert_type(result.event.compacted_ids, tuple[int | str, ...])
        assert_type(result.event.trigger, Literal["auto", "manual"])


def evidence() -> None:
    found = fl.evidence(MESSAGES)
    assert_type(found, fl.Evidence)
    assert_type(found.check("So far.").dropped, tuple[Fact, ...])


def structure() -> None:
    found = fl.analyze(MESSAGES)
    assert_type(found, fl.Analysis)
    assert_type(found.format, Format)
    assert_type(found.turns, list[tuple[int, int]])
    assert_type(fl.detect_format(MESSAGES).candidates, tuple[Format, ...])
    assert_type(fl.validate(MESSAGES, "anthropic"), list[fl.Problem])
    assert_type(fl.repair(MESSAGES, "gemini"), fl.planning.Repair)
    for session in fl.read("sessions"):
        assert_type(session, fl.StoredTranscript)
        assert_type(session.format, Format)
        fl.analyze(session.messages, format=session.format)
    fl.validate(MESSAGES, "openai_chat")  # type: ignore[arg-type]
    fl.repair(MESSAGES, "claude")  # type: ignore[arg-type]
    fl.repair(MESSAGES, "openai", orphans="drop")  # type: ignore[arg-type]
    found["head"]  # type: ignore[index]
