"""The result of a fold: the new list, what came of the request, and where each message came from."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foldline._core import Fold, Plan, TokenCounter
from foldline.errors import FoldlineError, FoldlineWarning
from foldline.planning import Infeasible, Keep
from foldline.typing import Completion, CountKind, Facts, FormatOption, Outcome

__all__ = ["FoldInput", "FoldResult", "edited_by", "fold_result", "moved_pins", "warn_unfit", "within"]


@dataclass(frozen=True, slots=True, repr=False)
class FoldInput:
    """What a fold was given, so that a report can show its list before and after.

    Attributes:
        messages: The messages before.
        counter: The counter.
        keep: How much was to stay, if one keep decided.
        format: The dialect of the messages.
        tools: Tool schemas sent with the messages.
        system: The system prompt outside the messages.
    """

    messages: Sequence[Any]
    counter: TokenCounter
    keep: Keep | None = None
    format: FormatOption = "auto"
    tools: Sequence[Any] | None = None
    system: str | Sequence[Any] | None = None

    def __repr__(self) -> str:
        return f"FoldInput({len(self.messages):,} messages, {self.counter.name})"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class FoldResult:
    """The result of a request to fold.

    Attributes:
        messages: The new list; the unchanged messages if nothing was folded or something failed.
        outcome: ``"folded"`` (also if results were only cleared, or messages only dropped), ``"unchanged"``,
            ``"infeasible"``, ``"failed"``, or ``"fallback"`` (the summary failed, and ``on_failure`` replaced it).
        reason: Why. Folded and fallback: the trigger's reason, ``"requested"`` or ``"seed_rule"``. Unchanged: one of
            `typing.UNCHANGED_REASONS`. Infeasible: ``"over_floor"``. Failed: the error's code.
        tokens_before: Tokens of the whole request before, system prompt and tools included.
        tokens_after: Tokens of the whole request after.
        fits: Whether the request after is within its `FitTokens` and its window less the reserve; None if neither was
            given.
        sources: For each new message its index in the old list; None for a new one.
        pins: Indices of the pinned messages in the new list.
        dropped: Indices, in the old list, of messages removed without a summary.
        edited: Indices, in the old list, of messages whose results were cleared or shortened.
        floor: The fewest tokens that `FitTokens` reaches on the same list; None if nothing was planned.
        summary: The text of the summary; empty if there is none.
        plan: The plan, or `Infeasible`; None if nothing was planned.
        error: The failure, also if a fallback was taken.
        completions: The summarizer's answers, with their usage.
        evidence: The facts that the summary must contain: lists of requests, files, commands, errors and more.
        duration_s: Duration in seconds.
        kind: The kind of both counts: that of the less certain one. A picture that is folded away leaves it as it was.
        given: What the fold was given; the messages themselves are shared, not copied.
    """

    messages: list[Any]
    outcome: Outcome
    reason: str
    tokens_before: int
    tokens_after: int
    fits: bool | None = None
    sources: Sequence[int | None] = range(0)
    pins: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    edited: tuple[int, ...] = ()
    floor: int | None = None
    summary: str = ""
    plan: Plan | Infeasible | None = None
    error: FoldlineError | None = None
    completions: tuple[Completion, ...] = ()
    evidence: Mapping[str, Any] | None = None
    duration_s: float = field(default=0.0, compare=False)
    kind: CountKind | None = None
    given: FoldInput | None = field(default=None, compare=False)

    @property
    def changed(self) -> bool:
        """Whether ``messages`` differ from the list given."""
        return not isinstance(self.sources, range)

    @property
    def completion(self) -> Completion | None:
        """The last of ``completions``; None without one."""
        return self.completions[-1] if self.completions else None

    @property
    def facts(self) -> Facts:
        """The facts of the evidence that the summary kept, that were added to it, and that did not fit."""
        return Facts.of(self.evidence)

    def _repr_html_(self) -> str:
        """The result for a notebook: no script, and no content."""
        from foldline._html import result_html

        return result_html(self)

    def __repr__(self) -> str:
        fits = "" if self.fits is None else ", fits" if self.fits else ", does not fit"
        return (
            f"{type(self).__name__}({self.outcome}, {self.reason}: {self.tokens_before:,} -> {self.tokens_after:,} "
            f"tokens, {len(self.messages):,} messages{fits})"
        )


def fold_result(
    fold: Fold,
    planned: Plan | Infeasible,
    limit: int | None,
    started_s: float,
    outcome: Outcome,
    reason: str,
    messages: list[Any],
    tokens_after: int,
    **more: Any,
) -> FoldResult:
    """The result of a fold with this limit, begun at ``started_s`` by `time.perf_counter`."""
    sources = more.pop("sources", range(len(messages)))
    return FoldResult(
        messages=messages,
        outcome=outcome,
        reason=reason,
        tokens_before=fold.tokens_before,
        tokens_after=tokens_after,
        fits=within(tokens_after, limit),
        sources=sources,
        pins=moved_pins(fold.pins, sources),
        floor=fold.floor,
        plan=more.pop("plan", planned),
        duration_s=time.perf_counter() - started_s,
        kind=fold.kind,
        **more,
    )


def within(tokens: int, *limits: int | None) -> bool | None:
    """Whether tokens are within all limits; None without a limit."""
    fits = None
    for limit in limits:
        if limit is not None:
            fits = tokens <= limit and fits is not False
    return fits


def moved_pins(pins: Iterable[int], sources: Sequence[int | None]) -> tuple[int, ...]:
    """The indices of pinned messages in the new list."""
    if isinstance(sources, range):
        return tuple(sorted(set(pins)))
    pinned = set(pins)
    return tuple(new for new, old in enumerate(sources) if old in pinned)


def edited_by(planned: Plan) -> tuple[int, ...]:
    """The messages whose results a plan clears or shortens, or whose thinking it strips."""
    shrunk = {i for i, action in enumerate(planned.actions) if action in ("clear", "shorten")}
    return tuple(sorted(shrunk.union(planned.stripped)))


def warn_unfit(result: FoldResult, *, stacklevel: int) -> None:
    """Warns of a request that stays over its limit."""
    if result.outcome == "infeasible" and isinstance(result.plan, Infeasible):
        warnings.warn(f"the budget cannot be met: {result.plan.why}", FoldlineWarning, stacklevel=stacklevel + 1)
    elif result.fits is False:
        detail = f"the request has {result.tokens_after:,} tokens, over its limit ({result.outcome}, {result.reason})"
        warnings.warn(detail, FoldlineWarning, stacklevel=stacklevel + 1)
