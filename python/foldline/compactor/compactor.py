"""The compactor: runs a strategy when a trigger fires, checks and stores the result."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foldline import _core
from foldline._core import LiveSnapshot, TokenCounter
from foldline._util.checks import token_number
from foldline._util.threads import in_thread
from foldline.compactor._commit import checked_store, saved
from foldline.compactor._guard import CommitToken, LoopGuard, bounded, checked_seconds
from foldline.compactor._request import Live, Requests, messages_of
from foldline.compactor._tasks import Task, arun_task, run_task
from foldline.compactor.events import (
    CompactBoundary,
    CompactionFailed,
    Event,
    Hooks,
    PreCompact,
    SessionStart,
    Subscribers,
)
from foldline.compactor.events import TriggerKind as Kind
from foldline.compactor.result import (
    CompactionResult,
    NoProgress,
    event_of,
    metadata_after,
    no_progress,
    state_after,
    unchanged_result,
)
from foldline.context.metadata import ROUND, Metadata
from foldline.context.state import COMPACTIONS, ContextState, checked_number
from foldline.counting.counters import as_counter
from foldline.errors import CompactionError, ConfigError, FoldlineError, FoldlineWarning, SummaryError
from foldline.folding.redact import Redact, as_redactor
from foldline.planning import KeepTokens
from foldline.planning.plan import pin_indices
from foldline.strategies import (
    BaseStrategy,
    ClearToolResults,
    Deadline,
    Shaped,
    Strategy,
    StrategyRequest,
    StrategyResult,
    TruncateOldest,
    as_strategy,
)
from foldline.strategies._note import is_valid_as
from foldline.triggers import Trigger, as_trigger, instructions_of, reason_of, threshold_of
from foldline.typing import CompactionEvent, CompactionStore, Message, Messages, Pin, SessionStore

__all__ = ["CompactionResult", "Compactor", "NoProgress"]

_POLICIES = ("unchanged", "raise", "truncate", "clear")


@dataclass(frozen=True, slots=True)
class _Run:
    """A running compaction."""

    messages: Messages
    request: StrategyRequest
    kind: Kind
    reason: str
    tokens_before: int
    started_s: float
    ids: Sequence[int | str]
    commit_token: CommitToken


@dataclass(frozen=True, slots=True)
class _Pending:
    """A checked compaction that is not committed yet."""

    run: _Run
    outcome: StrategyResult
    event: CompactionEvent
    error: FoldlineError | None


class Compactor:
    """Compacts the messages of a session by a strategy when its trigger fires.

    It never changes its input. On any failure the messages stay unchanged unless ``on_failure`` says otherwise,
    nothing is stored, and the trigger is not notified. A compactor belongs to one session: it counts its rounds and
    unsuccessful tries. Thread-safe; model calls run outside its lock.

    Args:
        trigger: Decides when to compact.
        strategy: Decides how; a function gets messages and a `strategies.StrategyRequest` and returns a list.
        counter: Token counter or its name. Default: `o200k_base`.
        store: Stores compactions; a store that also keeps messages needs their ``ids`` with every call.
        on_failure: ``"unchanged"`` returns the messages with a typed error and a warning; ``"raise"`` raises it;
            ``"truncate"`` drops the oldest messages instead, ``"clear"`` clears tool results, both with the error in
            the result and a warning.
        hooks: Functions called during a compaction; see `events.Hooks`.
        system: The system prompt, if it is outside the messages.
        tools: Tool schemas sent with the messages.
        context_window: The model's window, for a budget if the state has none.
        reserve_tokens: Tokens reserved for the answer in that budget.
        timeout_s: Time limit of a whole compaction.
        hysteresis: Lighter steps continue until the request is this share below the trigger's threshold; after
            repeated unsuccessful tries, the next waits until the context has grown by this share.
        format: The dialect of the messages.
        clock: Returns seconds, for durations and deadlines.
        redact: Applied to every text before a summarizer sees it and before it enters a summary. If it raises, no
            summarizer is called and the compaction fails (``redact_failed``).

    Raises:
        ConfigError: An option is out of range; ``path`` names it.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}. " + "word " * 60} for i in range(6)]
        >>> compactor = Compactor(
        ...     fl.triggers.MessageCount(5),
        ...     fl.strategies.Summarize(lambda messages: "Steps 0 to 3 were done.", keep_recent=2),
        ... )
        >>> result = compactor.compact(messages)
        >>> result.compacted, result.reason, len(result.messages), result.event.messages_removed
        (True, 'message_count', 3, 4)
        >>> compactor.compact(result.messages).reason
        'not_triggered'
    """

    def __init__(
        self,
        trigger: Trigger,
        strategy: Strategy | Callable[[list[Any], StrategyRequest], list[Any]],
        *,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        store: CompactionStore | SessionStore | None = None,
        on_failure: Literal["unchanged", "raise", "truncate", "clear"] = "unchanged",
        hooks: Hooks | Mapping[str, Any] | None = None,
        system: str | None = None,
        tools: Messages | None = None,
        context_window: int | None = None,
        reserve_tokens: int = 0,
        timeout_s: float | None = None,
        hysteresis: float = 0.10,
        format: str = "auto",
        clock: Callable[[], float] = time.monotonic,
        redact: Redact | None = None,
    ) -> None:
        self.trigger = as_trigger(trigger)
        self.strategy = as_strategy(strategy)
        self.counter = as_counter(counter)
        self.store = checked_store(store)
        if on_failure not in _POLICIES:
            raise ConfigError(f"must be one of {', '.join(_POLICIES)}", code="bad_policy", path="on_failure")
        self.on_failure = on_failure
        self.system = system
        self.tools = tools
        self.context_window = None if context_window is None else token_number(context_window, "context_window")
        self.reserve_tokens = token_number(reserve_tokens, "reserve_tokens")
        if self.context_window is not None and self.reserve_tokens >= self.context_window > 0:
            raise ConfigError("must be smaller than the window", code="reserve_over_window", path="reserve_tokens")
        self.timeout_s = checked_seconds(timeout_s)
        if not 0 <= checked_number(hysteresis, "hysteresis") < 1:
            raise ConfigError("must lie in [0, 1)", code="bad_share", path="hysteresis")
        self.hysteresis = hysteresis
        self.format = format
        self._redact = as_redactor(redact)
        self._clock = clock
        self._lock = threading.RLock()
        self._guard = LoopGuard(hysteresis)
        self._round = 0
        self._requests = Requests(
            self.counter,
            system=system,
            tools=tools,
            context_window=self.context_window,
            reserve_tokens=self.reserve_tokens,
            format=format,
        )
        self._subscribers = Subscribers(Hooks.of(hooks))

    def __repr__(self) -> str:
        return f"Compactor({self.trigger!r}, {self.strategy!r}, on_failure={self.on_failure!r})"

    def subscribe(self, subscriber: Callable[[Event], Any]) -> Callable[[], None]:
        """Calls a function with every later event; the returned function ends the subscription."""
        return self._subscribers.subscribe(subscriber)

    def should_compact(self, messages: Messages | Live, state: ContextState | None = None) -> str | None:
        """The trigger's reason to compact now; None if it does not fire. Changes nothing.

        Args:
            messages: The messages of the next request, or the `Transcript` that contains them.
            state: That request and the run, as for `compact`.

        Raises:
            ConfigError: An option is out of range.
            MessageError: A message cannot be read.

        Complexity: With a `Transcript` O(1), a few microseconds: it uses the transcript's counts. With messages O(text)
            of the messages that must be counted.

        Examples:
            >>> import foldline as fl
            >>> compactor = Compactor(fl.triggers.ReserveTokens(100, 10), fl.strategies.SlidingWindow(10))
            >>> live = fl.Transcript([{"role": "user", "content": "Good day."}])
            >>> compactor.should_compact(live), compactor.should_compact(live.messages)
            (None, None)
            >>> live.append({"role": "user", "content": "word " * 100})
            >>> compactor.should_compact(live)
            'reserve'
        """
        return reason_of(self.trigger, self._requests.state(messages, state))

    def compact(
        self,
        messages: Messages | Live,
        state: ContextState | None = None,
        *,
        force: bool = False,
        instructions: str | None = None,
        pins: Iterable[Pin] | Callable[[Message], bool] = (),
        metadata: Metadata | None = None,
        ids: Sequence[int | str] | None = None,
        timeout_s: float | None = None,
        cancel: threading.Event | None = None,
    ) -> CompactionResult:
        """Compacts if the trigger fires.

        Args:
            messages: The messages of the next request, or the `Transcript` that contains them, whose counts the trigger
                then uses. They are not changed; ``transcript.sync(result.messages)`` updates the transcript.
            state: That request as it will be sent, and the run; missing values are counted.
            force: Compacts regardless of the trigger and of earlier tries.
            instructions: Instructions for the summary.
            pins: Messages that stay verbatim, with their groups: indices, predicates, or both.
            metadata: Metadata of the messages; the result has that of the new ones.
            ids: Ids of the messages, for the event. Default: their indices.
            timeout_s: Time limit of this call. Default: the compactor's.
            cancel: Cancels the compaction when set; the messages then stay unchanged.

        Returns:
            The new messages, with the reason, the counts, the event, and the failure if any.

        Raises:
            ConfigError: An option is out of range.
            MessageError: A message cannot be read.
            FoldlineError: With ``on_failure="raise"``, the failure.
        """
        run = run_task(self._begun(messages, state, force, instructions, pins, metadata, ids, timeout_s, cancel))
        if isinstance(run, CompactionResult):
            return run
        try:
            outcome = bounded(
                lambda: self.strategy.run(run.messages, run.request), run.request.deadline, run.commit_token
            )
            pending = self._checked(run, outcome)
            if isinstance(pending, CompactionResult):
                return pending
            self._save(pending)
        except Exception as error:  # noqa: BLE001 - a strategy and a store may raise anything
            return self._failed(run, error)
        return self._concluded(pending)

    async def acompact(
        self,
        messages: Messages | Live,
        state: ContextState | None = None,
        *,
        force: bool = False,
        instructions: str | None = None,
        pins: Iterable[Pin] | Callable[[Message], bool] = (),
        metadata: Metadata | None = None,
        ids: Sequence[int | str] | None = None,
        timeout_s: float | None = None,
        cancel: threading.Event | None = None,
    ) -> CompactionResult:
        """`compact` without blocking the event loop, with the same arguments.

        Summarizers with ``asummarize``, triggers, hooks and subscribers run on the loop; counting, checking, pins that
        are functions, other summarizers, strategies and stores in threads. Cancelling the task leaves everything
        unchanged, unless the compaction is already being stored: then it is committed before the task ends.
        """
        run = await arun_task(self._begun(messages, state, force, instructions, pins, metadata, ids, timeout_s, cancel))
        if isinstance(run, CompactionResult):
            return run
        try:
            outcome = await self._strategy_outcome(run)
            pending = await in_thread(lambda: self._checked(run, outcome))
            if isinstance(pending, CompactionResult):
                return pending
            saving = asyncio.ensure_future(in_thread(lambda: self._save(pending)))
            try:
                await asyncio.shield(saving)
            except asyncio.CancelledError:
                await saving
                self._concluded(pending)
                raise
        except asyncio.CancelledError:
            run.commit_token.abandon()
            raise
        except Exception as error:  # noqa: BLE001 - a strategy and a store may raise anything
            return self._failed(run, error)
        return self._concluded(pending)

    async def _strategy_outcome(self, run: _Run) -> StrategyResult:
        """The strategy's outcome, within the time left."""
        strategy, deadline = self.strategy, run.request.deadline
        if isinstance(strategy, BaseStrategy):
            work = asyncio.ensure_future(strategy.arun(run.messages, run.request))
        else:
            work = asyncio.ensure_future(in_thread(lambda: strategy.run(run.messages, run.request)))
        try:
            while True:
                wait_s = deadline.remaining_s()
                if run.commit_token.can_be_cancelled:
                    wait_s = min(0.02, wait_s) if wait_s is not None else 0.02
                done, _ = await asyncio.wait([work], timeout=wait_s)
                if done:
                    return work.result()
                deadline.check()
        finally:
            if not work.done():
                work.cancel()
                run.commit_token.abandon()

    # --- Before ---------------------------------------------------------------------------------------

    def _begun(
        self,
        messages: Messages | Live,
        state: ContextState | None,
        force: bool,
        instructions: str | None,
        pins: Iterable[Pin] | Callable[[Message], bool],
        metadata: Metadata | None,
        ids: Sequence[int | str] | None,
        timeout_s: float | None,
        cancel: threading.Event | None,
    ) -> Task[_Run | CompactionResult]:
        """Everything before the strategy: the run, or the result if nothing is to be done."""
        started_s = self._clock()
        timeout_s = self.timeout_s if timeout_s is None else checked_seconds(timeout_s)
        commit_token = CommitToken(cancel)
        deadline = Deadline(
            None if timeout_s is None else started_s + timeout_s, self._clock, commit_token.is_cancelled
        )
        if ids is not None and len(ids) != len(messages):
            raise ConfigError("must be one for each message", code="bad_ids", path="ids")
        given, said = messages, state
        if self._requests.is_known(given, said):
            state = self._requests.state(given, said)
        else:
            state = yield lambda: self._requests.state(given, said)
        messages = messages_of(given)
        metadata = Metadata() if metadata is None else metadata
        if not isinstance(metadata, Metadata):
            raise ConfigError("must be Metadata", code="bad_metadata", path="metadata")
        request = StrategyRequest(state, self.counter, metadata=metadata, tools=self.tools, format=self.format)
        tokens = state.tokens or 0
        if commit_token.is_cancelled():
            return unchanged_result(messages, request, tokens, "cancelled")
        with self._lock:
            why = reason_of(self.trigger, state)
            if why is None and not force:
                self._guard.helped()
                return unchanged_result(messages, request, tokens, "not_triggered")
            limit = None if force else threshold_of(self.trigger, state)
            if not force and self._guard.blocks(tokens):
                as_it_was = unchanged_result(messages, request, tokens, "no_progress")
                return no_progress(as_it_was, None, limit, self._guard.tries)
        kind: Kind = "manual" if force or why == "manual" else "auto"
        instructions = instructions or instructions_of(self.trigger)
        found: tuple[LiveSnapshot, Messages, tuple[int, ...]] = yield lambda: self._prepared(given, pins)
        prepared, listed, pinned = found
        dialect, counted = prepared.format, prepared.total_tokens
        around = max(0, tokens - counted)
        before = counted + around
        request = StrategyRequest(
            state,
            self.counter,
            pins=pinned,
            metadata=metadata,
            instructions=instructions,
            round=self._next_round(metadata),
            threshold_tokens=limit,
            # After an overflow the count was too low, and the limit alone would be met without any work.
            target_tokens=None if limit is None else int(min(limit, before) * (1 - self.hysteresis)),
            overhead_tokens=around,
            tools=self.tools,
            format=dialect,
            deadline=deadline,
            redact=self._redact,
            prepared=(listed, prepared),
        )
        if not self._subscribers.emit(PreCompact(kind, why or "forced", before, len(listed), instructions)):
            return unchanged_result(listed, request, before, "vetoed")
        ids = range(len(listed)) if ids is None else ids
        return _Run(listed, request, kind, why or "forced", before, started_s, ids, commit_token)

    def _prepared(
        self, given: Messages | Live, pins: Iterable[Pin] | Callable[[Message], bool]
    ) -> tuple[LiveSnapshot, Messages, tuple[int, ...]]:
        """The messages, read and counted (a transcript as given), their list, and pinned indices."""
        prepared = _core.prepare(given, self.counter, tools=self.tools or (), format=self.format)
        # The snapshot's list: another thread may append to the transcript meanwhile.
        messages = given if isinstance(given, (list, tuple)) else prepared.messages
        return prepared, messages, tuple(pin_indices(messages, pins))

    def _next_round(self, metadata: Metadata) -> int:
        """The next round: one after the highest known to compactor, metadata and store."""
        known = [self._round, *(metadata.get(index, ROUND, 0) for index in metadata)]
        last_round = getattr(self.store, "last_round", None)
        if callable(last_round):
            known.append(token_number(last_round() or 0, "last_round"))
        return max(known) + 1

    # --- After ----------------------------------------------------------------------------------------

    def _checked(
        self, run: _Run, outcome: StrategyResult, error: FoldlineError | None = None
    ) -> _Pending | CompactionResult:
        """The checked compaction, or the result if nothing is to be committed."""
        given: object = outcome
        if not isinstance(given, StrategyResult) or len(given.sources) != len(given.messages):
            raise CompactionError("the strategy returned no Outcome", code="bad_outcome")
        if not outcome.changed:
            as_it_was = unchanged_result(run.messages, run.request, run.tokens_before, "nothing_to_fold", outcome)
            if outcome.floor is None:
                return as_it_was
            return no_progress(as_it_was, outcome.floor, run.request.threshold_tokens, self._guard.tries)
        if not is_valid_as(outcome.messages, run.messages, run.request.format):
            raise CompactionError("a provider would reject the result", code="invalid_result")
        if outcome.tokens is None:
            after = run.request.tokens_of(outcome.messages)
        else:
            after = outcome.tokens + run.request.overhead_tokens
        if after >= run.tokens_before:
            with self._lock:
                self._guard.did_not_help(run.tokens_before)
            return unchanged_result(run.messages, run.request, run.tokens_before, "no_gain", outcome)
        event = event_of(
            outcome,
            run.request,
            run.ids,
            (run.tokens_before, after),
            duration_s=self._clock() - run.started_s,
            trigger=run.kind,
            reason=run.reason,
            fallback=None if error is None else self.on_failure,
        )
        return _Pending(run, outcome, event, error)

    def _save(self, pending: _Pending) -> None:
        """Commits the compaction: saves it to the store, if any."""
        pending.run.commit_token.commit(pending.run.request.deadline)
        if self.store is not None:
            saved(self.store, pending.event, pending.outcome, pending.run.ids)

    def _concluded(self, pending: _Pending) -> CompactionResult:
        """Updates counters and guard, notifies the trigger, and emits the events."""
        run, outcome, event = pending.run, pending.outcome, pending.event
        before = run.request.state
        before.stats.incr(COMPACTIONS)
        state = state_after(before, event)
        with self._lock:
            self._round = max(self._round, event.round)
            limit = run.request.threshold_tokens
            if limit is not None and event.tokens_after > limit:
                self._guard.did_not_help(event.tokens_after)
            else:
                self._guard.helped()
            try:
                self.trigger.notify_compacted(state)
            except Exception as error:  # noqa: BLE001 - the compaction is committed, whatever the trigger does
                _warn(f"the trigger raised {type(error).__name__} in notify_compacted")
        for each in (event, SessionStart(), CompactBoundary(run.kind, run.tokens_before)):
            self._subscribers.emit(each)
        if pending.error is not None:
            self._subscribers.emit(CompactionFailed(pending.error, event.fallback))
        evidence = outcome.evidence
        if evidence is None:
            evidence = next((c.evidence for c in reversed(outcome.completions) if c.evidence is not None), None)
        return CompactionResult(
            outcome.messages,
            compacted=True,
            reason=run.reason,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
            state=state,
            summary=outcome.summary,
            plan=outcome.plan,
            error=pending.error,
            fallback=event.fallback,
            evidence=evidence,
            event=event,
            metadata=metadata_after(run.request.metadata, outcome, event.round),
            sources=outcome.sources,
            dropped=outcome.dropped,
            completions=outcome.completions,
            steps=outcome.steps,
        )

    def _failed(self, run: _Run, failure: Exception) -> CompactionResult:
        """Applies the failure policy."""
        error = failure
        if not isinstance(error, FoldlineError):
            error = CompactionError(f"the strategy raised {type(failure).__name__}", code="strategy_failed")
            error.__cause__ = failure
        if error.code == "cancelled" and isinstance(error, SummaryError):
            self._subscribers.emit(CompactionFailed(error))
            if self.on_failure == "raise":
                raise error
            return dataclasses.replace(
                unchanged_result(run.messages, run.request, run.tokens_before, "cancelled"), error=error
            )
        with self._lock:
            self._guard.did_not_help(run.tokens_before)
        if self.on_failure == "raise":
            self._subscribers.emit(CompactionFailed(error))
            raise error
        if self.on_failure in ("truncate", "clear"):
            result = self._fallen_back(run, error)
            if result is not None:
                _warn(f"compacted by {self.on_failure} instead: {error}")
                return result
        self._subscribers.emit(CompactionFailed(error))
        _warn(f"not compacted, the messages are unchanged: {error}")
        return dataclasses.replace(
            unchanged_result(run.messages, run.request, run.tokens_before, "failed"), error=error
        )

    def _fallen_back(self, run: _Run, error: FoldlineError) -> CompactionResult | None:
        """Runs the fallback instead of the strategy; None if it does not help either."""
        keep = getattr(self.strategy, "keep", None)
        fallback: BaseStrategy
        if self.on_failure == "truncate":
            fallback = TruncateOldest(keep)
        else:
            fallback = ClearToolResults(KeepTokens(20_000) if keep is None else keep)
        if isinstance(self.strategy, Shaped):
            fallback = self.strategy.reshaped(fallback)
        # The fallback calls no model and is fast, so it gets no deadline: it may run because of a timeout.
        run = dataclasses.replace(
            run, request=dataclasses.replace(run.request, deadline=Deadline()), commit_token=CommitToken()
        )
        try:
            pending = self._checked(run, fallback.run(run.messages, run.request), error)
            if isinstance(pending, CompactionResult):
                return None
            self._save(pending)
        except FoldlineError:
            return None
        return self._concluded(pending)


def _warn(message: str) -> None:
    warnings.warn(message, FoldlineWarning, stacklevel=4)
