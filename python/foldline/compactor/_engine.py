"""Runs one compaction: the trigger, the counted request, the strategy, and folds of the background."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from foldline._core import LiveSnapshot, LiveTranscript
from foldline._util.checks import token_number
from foldline._util.threads import in_thread
from foldline._util.turns import Work, in_turn, small
from foldline.compactor._background import Job, begin, begin_async
from foldline.compactor._checks import never_met
from foldline.compactor._guard import bounded
from foldline.compactor._outcomes import Outcomes, warn
from foldline.compactor._parts import Parts
from foldline.compactor._request import Live, Surroundings
from foldline.compactor._run import Asked, Decided, Pending, Run
from foldline.compactor._session import Session
from foldline.compactor._tasks import Task, arun_task, run_task
from foldline.compactor.events import CompactionFailed, PreCompact
from foldline.compactor.result import CompactionResult
from foldline.context.metadata import ROUND
from foldline.context.state import ContextState
from foldline.errors import CompactionError, FoldlineError
from foldline.strategies import BaseStrategy, Deadline, Strategy, StrategyRequest, StrategyResult
from foldline.strategies.pipeline import then
from foldline.triggers import instructions_of, messages_threshold_of, reason_of, threshold_of
from foldline.typing import Messages, TriggerKind

__all__ = ["Engine"]

#: Share of the trigger's threshold above which a fold is begun in the background.
SOFT_SHARE = 0.9

_POLL_S = 0.02

#: Begins a strategy in the background.
BeginJob: TypeAlias = "Callable[[Run, Strategy, Messages, StrategyRequest], Job[Run]]"


class Engine:
    """Runs compactions. Keeps no state of a session: that is in `Session`."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._outcomes = Outcomes(parts)

    def decide(
        self, live: Live, state: ContextState | None, around: Surroundings, session: Session
    ) -> CompactionResult | Decided:
        """For a transcript without pins: the result if the trigger does not fire, else why it fires.

        A few microseconds, and a copy of the list: this runs before every request.
        """
        started_s = self.parts.clock()
        known, _ = self.parts.requests.state(live, state, around)
        with session.lock:
            why = reason_of(self.parts.trigger, known)
            if why is not None:
                return Decided(known, why)
            session.guard.helped()
        return self._outcomes.as_it_was(live.messages, known, started_s, known.tokens or 0, "not_triggered")

    def run(self, asked: Asked) -> CompactionResult:
        """Compacts if the trigger fires."""
        run = run_task(self._begun(asked, begin))
        if isinstance(run, CompactionResult):
            return run
        try:
            result = self._ran(run)
        except BaseException as error:
            self._outcomes.close(run, error)
            raise
        return self._outcomes.close(run, result)

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
                outcome = bounded(lambda: self.parts.strategy.run(*rest), asked.deadline, asked.commit_token)
                outcome = outcome if known is None else then(known, outcome)
            pending = self._outcomes.checked(run, outcome)
            if isinstance(pending, Pending):
                self._outcomes.save(pending)
        except Exception as error:  # noqa: BLE001 - a strategy and a store may raise anything
            self._put_back(run, job)
            return self._outcomes.failed(run, error)
        return self._outcomes.ended(run, pending)

    async def arun(self, asked: Asked) -> CompactionResult:
        """`run` without blocking the event loop."""
        work = self._work(asked)
        run = await arun_task(self._begun(asked, begin_async), work)
        if isinstance(run, CompactionResult):
            return run
        try:
            result = await self._aran(run, work)
        except BaseException as error:
            self._outcomes.close(run, error)
            raise
        return self._outcomes.close(run, result)

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
            pending = await work(lambda: self._outcomes.checked(run, outcome))
            if isinstance(pending, Pending) and asked.save is None and self.parts.store is None:
                self._outcomes.save(pending)
            elif isinstance(pending, Pending):
                committed = pending
                saving = asyncio.ensure_future(in_thread(lambda: self._outcomes.save(committed)))
                try:
                    await asyncio.shield(saving)
                except asyncio.CancelledError:
                    await saving
                    self._outcomes.concluded(committed)
                    raise
        except asyncio.CancelledError:
            self._put_back(run, job)
            asked.commit_token.abandon()
            raise
        except Exception as error:  # noqa: BLE001 - a strategy and a store may raise anything
            self._put_back(run, job)
            return self._outcomes.failed(run, error)
        return self._outcomes.ended(run, pending)

    def _work(self, asked: Asked) -> Work:
        """Runs the stages of a request on an event loop: in threads if they call functions, or if it is large."""
        if asked.calls_functions or self.parts.redact is not None or self.parts.counter.name == "callable":
            return in_thread
        given = asked.given.messages if isinstance(asked.given, (LiveTranscript, LiveSnapshot)) else asked.given
        return functools.partial(in_turn, is_small=small(given, asked.around.tools, asked.around.system))

    async def _strategy_outcome(self, run: Run, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """The strategy's outcome, within the time left."""
        strategy, deadline, commit_token = self.parts.strategy, run.asked.deadline, run.asked.commit_token
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
        elif self.parts.requests.is_known(given, asked.state):
            counted = self.parts.requests.state(given, asked.state, around)
        else:
            counted = yield lambda: self.parts.requests.state(given, asked.state, around)
        state, known = counted
        request = StrategyRequest(
            state,
            self.parts.counter,
            metadata=asked.metadata,
            tools=around.tools,
            system=around.system,
            format=self.parts.format,
            redact=self.parts.redact,
        )
        tokens = state.tokens or 0
        with session.lock:
            why = reason_of(self.parts.trigger, state) if asked.decided is None else asked.decided.reason
            if why is None and not asked.force:
                session.guard.helped()
            limit = None if asked.force else threshold_of(self.parts.trigger, state)
            is_blocked = why is not None and not asked.force and session.guard.blocks(tokens)
            tries = session.guard.tries
            job = session.job if self.parts.background else None
        is_early = why is None and not asked.force
        begins = is_early and job is None and self._is_soon(state, tokens, session)
        is_cancelled = asked.commit_token.is_cancelled()
        waits = is_early and not begins and (job is None or not job.is_done)
        if waits or is_blocked or is_cancelled:
            is_pinning = asked.is_pinning or known is not None
            pinned = (yield lambda: self._prepared(asked, known)[2]) if is_pinning else ()
            reason = "cancelled" if is_cancelled else "not_triggered" if waits else "no_progress"
            is_no_progress = reason == "no_progress"
            return self._outcomes.unchanged(
                asked,
                request,
                tokens,
                reason,
                pins=pinned,
                threshold_tokens=limit if is_no_progress else None,
                tries=tries if is_no_progress else 0,
            )
        unmet = None if asked.force else never_met(self.parts.trigger, self.parts.strategy, state)
        if unmet is not None:
            warn(f"the keep cannot meet the threshold: {unmet}")
        kind: TriggerKind = "manual" if asked.force or why == "manual" else "auto"
        instructions = asked.instructions or instructions_of(self.parts.trigger)
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
            target_tokens=None if limit is None else int(min(limit, before) * (1 - self.parts.hysteresis)),
            threshold_messages=messages_threshold_of(self.parts.trigger, state),
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
        if not self.parts.subscribers.emit(PreCompact(kind, reason, before, len(listed), instructions)):
            vetoed = self._outcomes.unchanged(asked, request, before, "vetoed", messages=listed, pins=pinned)
            return self._outcomes.close(run, vetoed)
        if not begins:
            return run
        # The strategy outlives this call, so it gets neither its deadline nor its flag.
        fixed = tuple(listed)  # the caller may append to its list meanwhile
        free = dataclasses.replace(request, deadline=Deadline(), prepared=(fixed, prepared))
        begun = dataclasses.replace(run, messages=fixed, request=free)
        job = begin_job(begun, self.parts.strategy, fixed, free)
        with session.lock:
            session.job = job
        return self._not_triggered(run)

    def _is_soon(self, state: ContextState, tokens: int, session: Session) -> bool:
        """Whether a fold is begun in the background: the request is close to the trigger's threshold."""
        if not self.parts.background:
            return False
        limit = threshold_of(self.parts.trigger, state)
        return limit is not None and tokens > limit * SOFT_SHARE and tokens >= session.begins_from_tokens

    def _reason_soon(self, state: ContextState, limit: int | None) -> str:
        """The reason that the trigger will have just above its threshold."""
        if limit is None or state.usage is None:
            return "requested"
        usage = dataclasses.replace(state.usage, tokens=limit + 1)
        budget = state.budget
        if budget is not None:
            budget = dataclasses.replace(budget, message_tokens=max(0, limit + 1 - budget.system_tokens))
        return reason_of(self.parts.trigger, dataclasses.replace(state, usage=usage, budget=budget)) or "requested"

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
        return self._outcomes.unchanged(
            run.asked, run.request, run.tokens_before, "not_triggered", messages=run.messages, pins=run.request.pins
        )

    def _not_begun(self, run: Run) -> CompactionResult:
        """The result where a fold of the background is of no use, before the trigger fires."""
        with run.asked.session.lock:
            # Another one is begun only after the context has grown.
            run.asked.session.begins_from_tokens = run.tokens_before * (1 + self.parts.hysteresis)
        return self._not_triggered(run)

    def _continued(self, job: Job[Run], run: Run) -> StrategyResult | None:
        """The outcome of a fold of the background for the list as it is now; None if it is of no use."""
        if job.error is not None:
            error = job.error
            if not isinstance(error, FoldlineError):
                error = CompactionError(f"the strategy raised {type(error).__name__}", code="strategy_failed")
            self.parts.subscribers.emit(CompactionFailed(error))
            warn(f"a fold in the background failed: {error}")
        return run.taking_over(job)

    def _suffices(self, outcome: StrategyResult, run: Run) -> bool:
        """Whether a fold of the background leaves the list, as it has grown, below threshold and budget."""
        tokens = (outcome.tokens or 0) + run.request.overhead_tokens
        limits = (run.request.threshold_tokens, self.parts.budget)
        return run.is_early or all(limit is None or tokens <= limit for limit in limits)

    def _prepared(self, asked: Asked, known: LiveSnapshot | None) -> tuple[LiveSnapshot, Messages, tuple[int, ...]]:
        """The messages, read and counted (a transcript as given), their list, and pinned indices."""
        prepared = self.parts.requests.prepare(asked.given, asked.around) if known is None else known
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
        last_round = getattr(self.parts.store, "last_round", None)
        if callable(last_round) and asked.save is None:
            known.append(token_number(last_round() or 0, "last_round"))
        return max(known) + 1
