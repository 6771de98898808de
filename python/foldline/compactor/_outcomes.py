"""What comes of a strategy: checks, store, notification, the failure policy, and the result."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, TypedDict, TypeVar

from foldline._core import LiveSnapshot, LiveTranscript
from foldline._util.lists import same
from foldline.compactor._attempt import attempt_of
from foldline.compactor._commit import saved
from foldline.compactor._guard import CommitToken
from foldline.compactor._parts import Parts
from foldline.compactor._request import Live
from foldline.compactor._run import Asked, Pending, Run
from foldline.compactor.events import CompactBoundary, CompactionFailed, SessionStart
from foldline.compactor.result import CompactionResult, event_of, given_of, metadata_after, state_after
from foldline.context.state import COMPACTIONS, ContextState
from foldline.errors import CompactionError, FoldlineError, FoldlineWarning, SummaryError
from foldline.folding.result import moved_pins, warn_unfit, within
from foldline.planning import KeepTokens
from foldline.strategies import (
    BaseStrategy,
    ClearToolResults,
    Deadline,
    Shaped,
    StrategyRequest,
    StrategyResult,
    TruncateOldest,
)
from foldline.strategies._note import is_valid_as
from foldline.strategies.base import window_tokens_of
from foldline.triggers import budget_tokens_of
from foldline.typing import CompactionStore, Messages, Outcome, SessionStore

__all__ = ["Outcomes", "warn"]

#: How an attempt ends: with a result, or an exception.
Ended = TypeVar("Ended", CompactionResult, BaseException)


class _Unchanged(TypedDict):
    """What the results of a failure have in common."""

    messages: Messages
    pins: tuple[int, ...]
    error: FoldlineError


class Outcomes:
    """Checks and commits what strategies return, applies the failure policy, and makes the results."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def checked(
        self, run: Run, outcome: StrategyResult, error: FoldlineError | None = None
    ) -> Pending | StrategyResult:
        """The checked compaction, or the outcome if nothing is to be committed."""
        given: object = outcome
        if not isinstance(given, StrategyResult) or len(given.sources) != len(given.messages):
            raise CompactionError("the strategy returned no StrategyResult", code="bad_outcome")
        if not outcome.changed:
            return outcome
        if not is_valid_as(outcome.messages, run.messages, run.request.format):
            raise CompactionError("a provider would reject the result", code="invalid_result")
        if outcome.tokens is None:
            after = run.request.tokens_of(outcome.messages)
        else:
            after = outcome.tokens + run.request.overhead_tokens
        if after >= run.tokens_before and not getattr(self.parts.strategy, "may_grow", False):
            return dataclasses.replace(outcome, reason="no_gain")
        event = event_of(
            outcome,
            run.request,
            run.ids,
            (run.tokens_before, after),
            duration_s=self.parts.clock() - run.asked.started_s,
            trigger=run.kind,
            reason=run.reason,
            fallback=None if error is None else self.parts.on_failure,
        )
        return Pending(run, outcome, event, error)

    def close(self, run: Run, ended: Ended) -> Ended:
        """Tells the watchers that an attempt has ended, with a result or an exception; returns that."""
        if self.parts.subscribers.is_watched:
            self.parts.subscribers.end(
                attempt_of(run, ended, self.parts.counter, self.parts.clock() - run.asked.started_s)
            )
        return ended

    def ended(self, run: Run, pending: Pending | StrategyResult) -> CompactionResult:
        """The result of a strategy that did not fail."""
        return self.concluded(pending) if isinstance(pending, Pending) else self._not_folded(run, pending)

    def _not_folded(self, run: Run, outcome: StrategyResult) -> CompactionResult:
        """The result of a strategy that changed nothing."""
        session, reason = run.asked.session, outcome.reason
        with session.lock:
            if reason == "no_gain":
                session.guard.did_not_help(run.tokens_before)
            tries = session.guard.tries
        return self.unchanged(
            run.asked,
            run.request,
            run.tokens_before,
            reason,
            messages=run.messages,
            pins=run.request.pins,
            plan=outcome.plan,
            floor=_floor(outcome, run.request),
            completions=outcome.completions,
            threshold_tokens=run.request.threshold_tokens,
            tries=tries,
        )

    def save(self, pending: Pending) -> None:
        """Commits the compaction: saves it to the store, if any."""
        asked = pending.run.asked
        asked.commit_token.commit(pending.run.request.deadline)
        if asked.save is not None:
            asked.save(pending.event, pending.outcome, pending.run.ids)
        elif isinstance(self.parts.store, (CompactionStore, SessionStore)):
            saved(self.parts.store, pending.event, pending.outcome, pending.run.ids)

    def concluded(self, pending: Pending) -> CompactionResult:
        """Updates counters and guard, notifies the trigger, and emits the events."""
        run, outcome, event, session = pending.run, pending.outcome, pending.event, pending.run.asked.session
        before = run.request.state
        before.stats.incr(COMPACTIONS)
        state = state_after(before, event)
        with session.lock:
            session.round = max(session.round, event.round)
            limit = run.request.threshold_tokens
            if limit is not None and event.tokens_after > limit:
                session.guard.did_not_help(event.tokens_after)
            else:
                session.guard.helped()
            try:
                self.parts.trigger.notify_compacted(state)
            except Exception as error:  # noqa: BLE001 - the compaction is committed, whatever the trigger does
                warn(f"the trigger raised {type(error).__name__} in notify_compacted")
        if run.asked.remembers:
            session.folded(run.prepared, run.request.pins, outcome.sources, outcome.messages)
        for each in (event, SessionStart(), CompactBoundary(run.kind, run.tokens_before)):
            self.parts.subscribers.emit(each)
        if pending.error is not None:
            self.parts.subscribers.emit(CompactionFailed(pending.error, event.fallback))
        evidence = outcome.evidence
        if evidence is None:
            evidence = next((c.evidence for c in reversed(outcome.completions) if c.evidence is not None), None)
        grew = event.tokens_after >= event.tokens_before
        result = CompactionResult(
            messages=outcome.messages,
            outcome="folded" if pending.error is None else "fallback",
            reason="seed_rule" if grew else run.reason,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
            fits=within(event.tokens_after, *self._limits(run.request.state)),
            sources=tuple(outcome.sources),
            pins=moved_pins(run.request.pins, outcome.sources),
            dropped=outcome.dropped,
            edited=outcome.edited,
            floor=_floor(outcome, run.request),
            summary=outcome.summary,
            plan=outcome.plan,
            error=pending.error,
            completions=outcome.completions,
            evidence=evidence,
            duration_s=event.duration_s,
            kind=run.prepared.kind,
            given=given_of(run.request, run.prepared, self.parts.keep),
            state=state,
            event=event,
            metadata=metadata_after(run.request.metadata, outcome, event.round),
            steps=outcome.steps,
            fallback=event.fallback,
        )
        warn_unfit(result, stacklevel=4)
        return result

    def _limits(self, state: ContextState) -> tuple[int | None, int | None, int | None]:
        """The budgets of a request: that of the strategy, of the window, of the trigger's window."""
        return self.parts.budget, window_tokens_of(state), budget_tokens_of(self.parts.trigger, state)

    def unchanged(
        self,
        asked: Asked,
        request: StrategyRequest,
        tokens: int,
        reason: str,
        *,
        outcome: Outcome | None = None,
        messages: Messages | None = None,
        **more: Any,
    ) -> CompactionResult:
        """A result without changes."""
        new = _listed(asked.given) if messages is None else same(messages)
        more["metadata"] = request.metadata
        if request.prepared is not None:
            prepared = request.prepared[1]
            more |= {"kind": prepared.kind, "given": given_of(request, prepared, self.parts.keep)}
        return self.as_it_was(new, request.state, asked.started_s, tokens, reason, outcome, **more)

    def as_it_was(
        self,
        messages: list[Any],
        state: ContextState,
        started_s: float,
        tokens: int,
        reason: str,
        outcome: Outcome | None = None,
        **more: Any,
    ) -> CompactionResult:
        """The result with the messages of a request as they were."""
        limits = self._limits(state)
        result = CompactionResult(
            messages=messages,
            outcome=outcome or ("infeasible" if reason == "over_floor" else "unchanged"),
            reason=reason,
            tokens_before=tokens,
            tokens_after=tokens,
            fits=within(tokens, *limits),
            sources=range(len(messages)),
            state=state,
            duration_s=self.parts.clock() - started_s,
            **more,
        )
        # The strategy's own budget holds for what it folds, and it was not asked before the trigger fires.
        if (
            result.fits is False
            and result.error is None
            and (reason != "not_triggered" or within(tokens, *limits[1:]) is False)
        ):
            warn_unfit(result, stacklevel=5)
        return result

    def failed(self, run: Run, failure: Exception) -> CompactionResult:
        """Applies the failure policy."""
        error = failure
        if not isinstance(error, FoldlineError):
            error = CompactionError(f"the strategy raised {type(failure).__name__}", code="strategy_failed")
            error.__cause__ = failure
        unchanged: _Unchanged = {"messages": run.messages, "pins": run.request.pins, "error": error}
        if error.code == "cancelled" and isinstance(error, SummaryError):
            self.parts.subscribers.emit(CompactionFailed(error))
            if self.parts.on_failure == "raise":
                raise error
            return self.unchanged(run.asked, run.request, run.tokens_before, "cancelled", **unchanged)
        session = run.asked.session
        with session.lock:
            session.guard.did_not_help(run.tokens_before)
        if self.parts.on_failure == "raise":
            self.parts.subscribers.emit(CompactionFailed(error))
            raise error
        if self.parts.on_failure in ("truncate", "clear"):
            result = self._fallen_back(run, error)
            if result is not None:
                warn(f"compacted by {self.parts.on_failure} instead: {error}")
                return result
        self.parts.subscribers.emit(CompactionFailed(error))
        warn(f"not compacted, the messages are unchanged: {error}")
        return self.unchanged(run.asked, run.request, run.tokens_before, error.code, outcome="failed", **unchanged)

    def _fallen_back(self, run: Run, error: FoldlineError) -> CompactionResult | None:
        """Runs the fallback instead of the strategy; None if it does not help either."""
        keep = self.parts.strategy.keep_for(run.request) if isinstance(self.parts.strategy, BaseStrategy) else None
        fallback: BaseStrategy
        if self.parts.on_failure == "truncate":
            fallback = TruncateOldest(keep)
        else:
            fallback = ClearToolResults(KeepTokens(20_000) if keep is None else keep)
        if isinstance(self.parts.strategy, Shaped):
            fallback = self.parts.strategy.reshaped(fallback)
        # The fallback calls no model and is fast, so it gets no deadline: it may run because of a timeout.
        asked = dataclasses.replace(run.asked, deadline=Deadline(), commit_token=CommitToken())
        run = dataclasses.replace(run, asked=asked, request=dataclasses.replace(run.request, deadline=Deadline()))
        try:
            outcome = fallback.run(run.messages, run.request)
            if not outcome.changed:
                return None
            pending = self.checked(run, outcome, error)
            if not isinstance(pending, Pending):
                return None
            self.save(pending)
        except FoldlineError:
            return None
        return self.concluded(pending)


def _listed(given: Messages | Live) -> list[Any]:
    return given.messages if isinstance(given, (LiveTranscript, LiveSnapshot)) else same(given)


def _floor(outcome: StrategyResult, request: StrategyRequest) -> int | None:
    if outcome.floor is not None or outcome.plan is None:
        return outcome.floor
    return outcome.plan.floor + request.overhead_tokens


def warn(message: str) -> None:
    """Warns the caller of the compactor."""
    warnings.warn(message, FoldlineWarning, stacklevel=4)
