"""The record of an attempt to compact, from its result or its exception."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from foldline._core import TokenCounter
from foldline.compactor._run import Run
from foldline.compactor.events import AttemptEnded
from foldline.compactor.result import CompactionResult
from foldline.errors import FoldlineError
from foldline.typing import Completion

__all__ = ["attempt_of"]


def attempt_of(
    run: Run, ended: CompactionResult | BaseException, counter: TokenCounter, duration_s: float
) -> AttemptEnded:
    """The record of an attempt. It holds no content."""
    result = ended if isinstance(ended, CompactionResult) else None
    failure = ended if result is None else result.error
    error = failure.code if isinstance(failure, FoldlineError) else type(failure).__name__ if failure else None
    completions: tuple[Completion, ...] = () if result is None else result.completions
    usage = run.request.state.usage
    return AttemptEnded(
        id=uuid.uuid4().hex,
        session=run.asked.session_name,
        trigger=run.kind,
        outcome="failed" if result is None else result.outcome,
        reason=(error or "failed") if result is None else result.reason,
        error=error,
        tokens_before=run.tokens_before if result is None else result.tokens_before,
        tokens_after=run.tokens_before if result is None else result.tokens_after,
        length_before=len(run.messages),
        length_after=len(run.messages if result is None else result.messages),
        floor=None if result is None else result.floor,
        fits=None if result is None else result.fits,
        counter=counter.name,
        counter_kind=run.prepared.kind if usage is None else usage.kind,
        round=None if result is None or result.event is None else result.event.round,
        strategy="" if result is None else ", ".join(result.steps),
        fallback=None if result is None else result.fallback,
        model=completions[-1].model if completions else "",
        calls=len(completions),
        input_tokens=_sum(each.input_tokens for each in completions),
        output_tokens=_sum(each.output_tokens for each in completions),
        cache_read_tokens=_sum(each.cache_read_tokens for each in completions),
        cache_write_tokens=_sum(each.cache_write_tokens for each in completions),
        duration_s=duration_s,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of the reported counts; None if none is reported."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
