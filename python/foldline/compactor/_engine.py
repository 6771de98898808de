"""Runs one compaction: trigger, plan and strategy, checks, store, notification, failure policy."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict, TypeVar

from foldline._core import LiveSnapshot, LiveTranscript, TokenCounter
from foldline._util.checks import token_number
from foldline._util.lists import same
from foldline._util.threads import in_thread
from foldline._util.turns import Work, in_turn, small
from foldline.compactor._attempt import attempt_of
from foldline.compactor._background import Job, begin, begin_async
from foldline.compactor._checks import never_met
from foldline.compactor._commit import saved
from foldline.compactor._guard import CommitToken, bounded
from foldline.compactor._request import Live, Requests, Surroundings
from foldline.compactor._run import Asked, Decided, Pending, Run
from foldline.compactor._session import Session
from foldline.compactor._tasks import Task, arun_task, run_task
from foldline.compactor.events import CompactBoundary, CompactionFailed, PreCompact, SessionStart, Subscribers
from foldline.compactor.result import CompactionResult, event_of, given_of, metadata_after, state_after
from foldline.context.metadata import ROUND
from foldline.context.state import COMPACTIONS, ContextState
from foldline.errors import CompactionError, FoldlineError, FoldlineWarning, SummaryError
from foldline.folding.redact import Redact
from foldline.folding.result import moved_pins, warn_unfit, within
from foldline.planning import KeepTokens
from foldline.strategies import (
    BaseStrategy,
    ClearToolResults,
    Deadline,
    Shaped,
    Strategy,
    StrategyRequest,
    StrategyResult,
    TruncateOldest,
)
from foldline.strategies._note import is_valid_as
from foldline.strategies.base import budget_of, window_tokens_of
from foldline.strategies.pipeline import then
from foldline.triggers import (
    Trigger,
    budget_tokens_of,
    instructions_of,
    messages_threshold_of,
    reason_of,
    threshold_of,
)
from foldline.typing import (
    CompactionStore,
    FailurePolicy,
    FoldStore,
    FormatOption,
    Messages,
    Outcome,
    SessionStore,
    TriggerKind,
)

__all__ = ["Engine"]

#: Share of the trigger's threshold above which a fold is begun in the background.
SOFT_SHARE = 0.9

_POLL_S = 0.02

#: How an attempt ends: with a result, or an exception.
Ended = TypeVar("Ended", CompactionResult, BaseException)

#: Begins a strategy in the background.
BeginJob: TypeAlias = "Callable[[Run, Strategy, Messages, StrategyRequest], Job[Run]]"


class _Unchanged(TypedDict):
    """What the results of a failure have in common."""

    messages: Messages
    pins: tuple[int, ...]
    error: FoldlineError


class Engine:
    """Runs compactions. Keeps no state of a session: that is in `Session`."""

    def __init__(
        self,
        trigger: Trigger,
        strategy: Strategy,
        counter: TokenCounter,
        requests: Requests,
        subscribers: Subscribers,
        *,
        store: CompactionStore | SessionStore | FoldStore | None,
        on_failure: FailurePolicy,
        hysteresis: float,
        format: FormatOption,
        clock: Callable[[], float],
        redact: Redact | None,
        background: bool,
    ) -> None:
        self.trigger = trigger
        self.strategy = strategy
        self.counter = counter
        self.requests = requests
        self.subscribers = subscribers
        self.store = store
        self.on_failure: FailurePolicy = on_failure
        self.hysteresis = hysteresis
        self.format: FormatOption = format
        self.clock = clock
        self.redact = redact
        self.background = background
        self._budget = budget_of(strategy)
        self._keep = getattr(strategy, "keep", None)

    def decide(
        self, live: Live, state: ContextState | None, around: Surroundings, session: Session
    ) -> CompactionResult | Decided:
        """For a transcript without pins: the result if the trigger does not fire, else why it fires.

        A few microseconds, and a copy of the list: this runs before every request.
        """
        started_s = self.clock()
        known, _ = self.requests.state(live, state, around)
        with session.lock:
            why = reason_of(self.trigger, known)
            if why is not None:
                return Decided(known, why)
            session.guard.helped()
        return self._as_it_was(live.messages, known, started_s, known.tokens or 0, "not_triggered")

    def run(self, asked: Asked) -> CompactionResult:
        """Compacts if the trigger fires."""
        run = run_task(self._begun(asked, begin))
        if isinstance(run, CompactionResult):
            return run
        try:
            result = self._ran(run)
        except BaseException as error:
            self._close(run, error)
            raise
        return self._close(run, result)

    def _ran(self, run: Run) -> CompactionResult:
        """The result of a run."""
        asked = run.asked
        job = self._taken_job(run)
        try:
            if job is not None and not job.is_done:
                job.wait(asked.deadline)
            known = None if job is None else self._continued(job, run)
            if known is None and run.is_early:
                return self._not_begun(run)
            outcome: Any = known
            if known is None or not self._suffices(known, run):
                rest = run.rest(known)
                outcome = bounded(lambda: self.strategy.run(*rest), asked.deadline, asked.commit_token)
                outcome = outcome if known is None else then(known, outcome)
            pending = self._checked(run, outcome)
            if isinstance(pending, Pending):
                self._save(pending)
        except Exception as error:  # noqa: BLE001 - a strategy and a store may raise anything
            self._put_back(run, job)
            return self._failed(run, error)
        return self._ended(run, pending)

    async def arun(self, asked: Asked) -> CompactionResult:
        """`run` without blocking the event loop."""
        work = self._work(asked)
        run = await arun_task(self._begun(asked, begin_async), work)
        if isinstance(run, CompactionResult):
            return run
        try:
            result = await self._aran(run, work)
        except BaseException as error:
            self._close(run, error)
            raise
        return self._close(run, result)

    async def _aran(self, run: Run, work: Work) -> CompactionResult:
        """`_ran` without blocking the event loop."""
        asked = run.asked
        job = self._taken_job(run)
        try:
            while job is not None and not (job.is_done or job.is_stopped):
                asked.deadline.check()
                await asyncio.sleep(_POLL_S)
            taken = job
            known = None if taken is None else await work(lambda: self._continued(taken, run))
            if known is None and run.is_early:
                return self._not_begun(run)
            outcome: Any = known
            if known is None or not self._suffices(known, run):
                outcome = await self._strategy_outcome(run, *run.rest(known))
                outcome = outcome if known is None else then(known, outcome)
            pending = await work(lambda: self._checked(run, outcome))
            if isinstance(pending, Pending) and asked.save is None and self.store is None:
                self._save(pending)
            elif isinstance(pending, Pending):
                committed = pending
                saving = asyncio.ensure_future(in_thread(lambda: self._save(committed)))
                try:
                    await asyncio.shield(saving)
                except asyncio.CancelledError:
                    await saving
                    self._concluded(committed)
                    raise
        except asyncio.CancelledError:
            self._put_back(run, job)
            asked.commit_token.abandon()
            raise
        except Exception as error:  # noqa: BLE001 - a strategy and a store may raise anything
            self._put_back(run, job)
            return self._failed(run, error)
        return self._ended(run, pending)

    def _work(self, asked: Asked) -> Work:
        """Runs the stages of a request on an event loop: in threads if they call functions, or if it is large."""
        if asked.calls_functions or self.redact is not None or self.counter.name == "callable":
            return in_thread
        given = asked.given.messages if isinstance(asked.given, (LiveTranscript, LiveSnapshot)) else asked.given
        return functools.partial(in_turn, is_small=small(given, asked.around.tools, asked.around.system))

    async def _strategy_outcome(self, run: Run, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """The strategy's outcome, within the time left."""
        strategy, deadline, commit_token = self.strategy, run.asked.deadline, run.asked.commit_token
        if isinstance(strategy, BaseStrategy):
            if deadline.at is None and not commit_token.can_be_cancelled:
                return await strategy.arun(messages, request)
            work = asyncio.ensure_future(strategy.arun(messages, request))
        else:
            work = asyncio.ensure_future(in_thread(lambda: strategy.run(messages, request)))
        try:
            while True:
                wait_s = deadline.remaining_s()
                if commit_token.can_be_cancelled:
                    wait_s = min(0.02, wait_s) if wait_s is not None else 0.02
                done, _ = await asyncio.wait([work], timeout=wait_s)
                if done:
                    return work.result()
                deadline.check()
        finally:
            if not work.done():
                work.cancel()
                commit_token.abandon()

    # --- Before ---------------------------------------------------------------------------------------

    def _begun(self, asked: Asked, begin_job: BeginJob) -> Task[Run | CompactionResult]:
        """Everything before the strategy: the run, or the result if nothing is to be done."""
        given, around, session = asked.given, asked.around, asked.session
        counted: tuple[ContextState, LiveSnapshot | None]
        if asked.decided is not None:
            counted = asked.decided.state, None
        elif self.requests.is_known(given, asked.state):
            counted = self.requests.state(given, asked.state, around)
        else:
            counted = yield lambda: self.requests.state(given, asked.state, around)
        state, known = counted
        request = StrategyRequest(
            state,
            self.counter,
            metadata=asked.metadata,
            tools=around.tools,
            system=around.system,
            format=self.format,
            redact=self.redact,
        )
        tokens = state.tokens or 0
        with session.lock:
            why = reason_of(self.trigger, state) if asked.decided is None else asked.decided.reason
            if why is None and not asked.force:
                session.guard.helped()
            limit = None if asked.force else threshold_of(self.trigger, state)
            is_blocked = why is not None and not asked.force and session.guard.blocks(tokens)
            tries = session.guard.tries
            job = session.job if self.background else None
        is_early = why is None and not asked.force
        begins = is_early and job is None and self._is_soon(state, tokens, session)
        is_cancelled = asked.commit_token.is_cancelled()
        waits = is_early and not begins and (job is None or not job.is_done)
        if waits or is_blocked or is_cancelled:
            is_pinning = asked.is_pinning or known is not None
            pinned = (yield lambda: self._prepared(asked, known)[2]) if is_pinning else ()
            reason = "cancelled" if is_cancelled else "not_triggered" if waits else "no_progress"
            is_no_progress = reason == "no_progress"
            return self._unchanged(
                asked,
                request,
                tokens,
                reason,
                pins=pinned,
                threshold_tokens=limit if is_no_progress else None,
                tries=tries if is_no_progress else 0,
            )
        unmet = None if asked.force else never_met(self.trigger, self.strategy, state)
        if unmet is not None:
            _warn(f"the keep cannot meet the threshold: {unmet}")
        kind: TriggerKind = "manual" if asked.force or why == "manual" else "auto"
        instructions = asked.instructions or instructions_of(self.trigger)
        found: tuple[LiveSnapshot, Messages, tuple[int, ...]] = yield lambda: self._prepared(asked, known)
        prepared, listed, pinned = found
        before = max(tokens, prepared.total_tokens)
        request = dataclasses.replace(
            request,
            pins=pinned,
            instructions=instructions,
            round=self._next_round(asked),
            threshold_tokens=limit,
            # After an overflow the count was too low, and the limit alone would be met without any work.
            target_tokens=None if limit is None else int(min(limit, before) * (1 - self.hysteresis)),
            threshold_messages=messages_threshold_of(self.trigger, state),
            overhead_tokens=before - prepared.total_tokens,
            format=prepared.format,
            deadline=asked.deadline,
            prepared=(listed, prepared),
        )
        reason = why or ("requested" if asked.force else self._reason_soon(state, limit))
        ids = range(len(listed)) if asked.ids is None else asked.ids
        run = Run(asked, listed, request, kind, reason, before, ids, is_early)
        if job is not None:  # announced when it was begun
            return run
        if not self.subscribers.emit(PreCompact(kind, reason, before, len(listed), instructions)):
            return self._close(run, self._unchanged(asked, request, before, "vetoed", messages=listed, pins=pinned))
        if not begins:
            return run
        # The strategy outlives this call, so it gets neither its deadline nor its flag.
        fixed = tuple(listed)  # the caller may append to its list meanwhile
        free = dataclasses.replace(request, deadline=Deadline(), prepared=(fixed, prepared))
        begun = dataclasses.replace(run, messages=fixed, request=free)
        job = begin_job(begun, self.strategy, fixed, free)
        with session.lock:
            session.job = job
        return self._not_triggered(run)

    def _is_soon(self, state: ContextState, tokens: int, session: Session) -> bool:
        """Whether a fold is begun in the background: the request is close to the trigger's threshold."""
        if not self.background:
            return False
        limit = threshold_of(self.trigger, state)
        return limit is not None and tokens > limit * SOFT_SHARE and tokens >= session.begins_from_tokens

    def _reason_soon(self, state: ContextState, limit: int | None) -> str:
        """The reason that the trigger will have just above its threshold."""
        if limit is None or state.usage is None:
            return "requested"
        usage = dataclasses.replace(state.usage, tokens=limit + 1)
        budget = state.budget
        if budget is not None:
            budget = dataclasses.replace(budget, message_tokens=max(0, limit + 1 - budget.system_tokens))
        return reason_of(self.trigger, dataclasses.replace(state, usage=usage, budget=budget)) or "requested"

    def _taken_job(self, run: Run) -> Job[Run] | None:
        """The fold of the background, which this run takes over."""
        session = run.asked.session
        with session.lock:
            job, session.job = session.job, None
        return job

    def _put_back(self, run: Run, job: Job[Run] | None) -> None:
        """Leaves a fold of the background that is still running to a later call."""
        if job is not None and not job.is_done:
            with run.asked.session.lock:
                run.asked.session.job = job

    def _not_triggered(self, run: Run) -> CompactionResult:
        return self._unchanged(
            run.asked, run.request, run.tokens_before, "not_triggered", messages=run.messages, pins=run.request.pins
        )

    def _not_begun(self, run: Run) -> CompactionResult:
        """The result where a fold of the background is of no use, before the trigger fires."""
        with run.asked.session.lock:
            # Another one is begun only after the context has grown.
            run.asked.session.begins_from_tokens = run.tokens_before * (1 + self.hysteresis)
        return self._not_triggered(run)

    def _continued(self, job: Job[Run], run: Run) -> StrategyResult | None:
        """The outcome of a fold of the background for the list as it is now; None if it is of no use."""
        if job.error is not None:
            error = job.error
            if not isinstance(error, FoldlineError):
                error = CompactionError(f"the strategy raised {type(error).__name__}", code="strategy_failed")
            self.subscribers.emit(CompactionFailed(error))
            _warn(f"a fold in the background failed: {error}")
        return run.taking_over(job)

    def _suffices(self, outcome: StrategyResult, run: Run) -> bool:
        """Whether a fold of the background leaves the list, as it has grown, below threshold and budget."""
        tokens = (outcome.tokens or 0) + run.request.overhead_tokens
        limits = (run.request.threshold_tokens, self._budget)
        return run.is_early or all(limit is None or tokens <= limit for limit in limits)

    def _prepared(self, asked: Asked, known: LiveSnapshot | None) -> tuple[LiveSnapshot, Messages, tuple[int, ...]]:
        """The messages, read and counted (a transcript as given), their list, and pinned indices."""
        prepared = self.requests.prepare(asked.given, asked.around) if known is None else known
        # The snapshot's list: another thread may append to the transcript meanwhile.
        messages = asked.given if isinstance(asked.given, (list, tuple)) else prepared.messages
        pinned = asked.pins_of(prepared, messages)
        if asked.remembers:
            asked.session.remember(prepared, pinned)
        return prepared, messages, pinned

    def _next_round(self, asked: Asked) -> int:
        """The next round: one after the highest known to session, metadata and store."""
        metadata = asked.metadata
        known = [asked.session.round, *(metadata.get(index, ROUND, 0) for index in metadata)]
        last_round = getattr(self.store, "last_round", None)
        if callable(last_round) and asked.save is None:
            known.append(token_number(last_round() or 0, "last_round"))
        return max(known) + 1

    # --- After ----------------------------------------------------------------------------------------

    def _checked(
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
        if after >= run.tokens_before and not getattr(self.strategy, "may_grow", False):
            return dataclasses.replace(outcome, reason="no_gain")
        event = event_of(
            outcome,
            run.request,
            run.ids,
            (run.tokens_before, after),
            duration_s=self.clock() - run.asked.started_s,
            trigger=run.kind,
            reason=run.reason,
            fallback=None if error is None else self.on_failure,
        )
        return Pending(run, outcome, event, error)

    def _close(self, run: Run, ended: Ended) -> Ended:
        """Tells the watchers that an attempt has ended, with a result or an exception; returns that."""
        if self.subscribers.is_watched:
            self.subscribers.end(attempt_of(run, ended, self.counter, self.clock() - run.asked.started_s))
        return ended

    def _ended(self, run: Run, pending: Pending | StrategyResult) -> CompactionResult:
        """The result of a strategy that did not fail."""
        return self._concluded(pending) if isinstance(pending, Pending) else self._not_folded(run, pending)

    def _not_folded(self, run: Run, outcome: StrategyResult) -> CompactionResult:
        """The result of a strategy that changed nothing."""
        session, reason = run.asked.session, outcome.reason
        with session.lock:
            if reason == "no_gain":
                session.guard.did_not_help(run.tokens_before)
            tries = session.guard.tries
        return self._unchanged(
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

    def _save(self, pending: Pending) -> None:
        """Commits the compaction: saves it to the store, if any."""
        asked = pending.run.asked
        asked.commit_token.commit(pending.run.request.deadline)
        if asked.save is not None:
            asked.save(pending.event, pending.outcome, pending.run.ids)
        elif isinstance(self.store, (CompactionStore, SessionStore)):
            saved(self.store, pending.event, pending.outcome, pending.run.ids)

    def _concluded(self, pending: Pending) -> CompactionResult:
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
                self.trigger.notify_compacted(state)
            except Exception as error:  # noqa: BLE001 - the compaction is committed, whatever the trigger does
                _warn(f"the trigger raised {type(error).__name__} in notify_compacted")
        if run.asked.remembers:
            session.folded(run.prepared, run.request.pins, outcome.sources, outcome.messages)
        for each in (event, SessionStart(), CompactBoundary(run.kind, run.tokens_before)):
            self.subscribers.emit(each)
        if pending.error is not None:
            self.subscribers.emit(CompactionFailed(pending.error, event.fallback))
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
            given=given_of(run.request, run.prepared, self._keep),
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
        return self._budget, window_tokens_of(state), budget_tokens_of(self.trigger, state)

    def _unchanged(
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
            more |= {"kind": prepared.kind, "given": given_of(request, prepared, self._keep)}
        return self._as_it_was(new, request.state, asked.started_s, tokens, reason, outcome, **more)

    def _as_it_was(
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
            duration_s=self.clock() - started_s,
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

    def _failed(self, run: Run, failure: Exception) -> CompactionResult:
        """Applies the failure policy."""
        error = failure
        if not isinstance(error, FoldlineError):
            error = CompactionError(f"the strategy raised {type(failure).__name__}", code="strategy_failed")
            error.__cause__ = failure
        unchanged: _Unchanged = {"messages": run.messages, "pins": run.request.pins, "error": error}
        if error.code == "cancelled" and isinstance(error, SummaryError):
            self.subscribers.emit(CompactionFailed(error))
            if self.on_failure == "raise":
                raise error
            return self._unchanged(run.asked, run.request, run.tokens_before, "cancelled", **unchanged)
        session = run.asked.session
        with session.lock:
            session.guard.did_not_help(run.tokens_before)
        if self.on_failure == "raise":
            self.subscribers.emit(CompactionFailed(error))
            raise error
        if self.on_failure in ("truncate", "clear"):
            result = self._fallen_back(run, error)
            if result is not None:
                _warn(f"compacted by {self.on_failure} instead: {error}")
                return result
        self.subscribers.emit(CompactionFailed(error))
        _warn(f"not compacted, the messages are unchanged: {error}")
        return self._unchanged(run.asked, run.request, run.tokens_before, error.code, outcome="failed", **unchanged)

    def _fallen_back(self, run: Run, error: FoldlineError) -> CompactionResult | None:
        """Runs the fallback instead of the strategy; None if it does not help either."""
        keep = self.strategy.keep_for(run.request) if isinstance(self.strategy, BaseStrategy) else None
        fallback: BaseStrategy
        if self.on_failure == "truncate":
            fallback = TruncateOldest(keep)
        else:
            fallback = ClearToolResults(KeepTokens(20_000) if keep is None else keep)
        if isinstance(self.strategy, Shaped):
            fallback = self.strategy.reshaped(fallback)
        # The fallback calls no model and is fast, so it gets no deadline: it may run because of a timeout.
        asked = dataclasses.replace(run.asked, deadline=Deadline(), commit_token=CommitToken())
        run = dataclasses.replace(run, asked=asked, request=dataclasses.replace(run.request, deadline=Deadline()))
        try:
            outcome = fallback.run(run.messages, run.request)
            if not outcome.changed:
                return None
            pending = self._checked(run, outcome, error)
            if not isinstance(pending, Pending):
                return None
            self._save(pending)
        except FoldlineError:
            return None
        return self._concluded(pending)


def _listed(given: Messages | Live) -> list[Any]:
    return given.messages if isinstance(given, (LiveTranscript, LiveSnapshot)) else same(given)


def _floor(outcome: StrategyResult, request: StrategyRequest) -> int | None:
    if outcome.floor is not None or outcome.plan is None:
        return outcome.floor
    return outcome.plan.floor + request.overhead_tokens


def _warn(message: str) -> None:
    warnings.warn(message, FoldlineWarning, stacklevel=4)
