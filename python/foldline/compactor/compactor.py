"""The compactor: folds a session when its trigger fires, as a folded list or as a view of a whole history."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, Unpack

from foldline import _core
from foldline._core import TokenCounter
from foldline._util.checks import token_number
from foldline._util.threads import in_thread
from foldline.compactor._calls import Call, Calls, checked_session
from foldline.compactor._checks import check_keep
from foldline.compactor._commit import checked_store
from foldline.compactor._defaults import Writer, defaults_for
from foldline.compactor._engine import Engine
from foldline.compactor._folds import Histories, StoredFold
from foldline.compactor._guard import LoopGuard, checked_seconds
from foldline.compactor._options import CompactorOptions
from foldline.compactor._parts import Parts
from foldline.compactor._pins import Pins, as_predicates
from foldline.compactor._request import Live, Requests, Surroundings
from foldline.compactor._run import Decided
from foldline.compactor._session import Session
from foldline.compactor.events import AttemptEnded, Event, Hooks, Subscribers
from foldline.compactor.result import CompactionResult
from foldline.context.metadata import Metadata
from foldline.context.state import ContextState, checked_number
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError
from foldline.folding.redact import Redact, as_redactor
from foldline.planning import Keep
from foldline.planning.opening import checked_system
from foldline.strategies import Strategy, StrategyRequest, as_strategy
from foldline.triggers import Trigger, as_trigger, reason_of
from foldline.typing import CompactionStore, FailurePolicy, FoldStore, FormatOption, Messages, SessionStore

__all__ = ["CompactionResult", "Compactor"]

_POLICIES = ("unchanged", "raise", "truncate", "clear")
_POLL_S = 0.005


class Compactor:
    """Compacts the messages of a session by a strategy when its trigger fires.

    `compact` serves loops whose list is the folded one; `prepare` serves hooks that see the whole history at each call.
    Neither changes its input. On any failure the messages stay unchanged unless ``on_failure`` says otherwise, nothing
    is stored, and the trigger is not notified. Thread-safe; model calls run outside its lock.

    For `compact`, a compactor belongs to one session: it counts its rounds and unsuccessful tries, and remembers its
    pinned messages. `prepare` keeps a memory for each session.

    Args:
        trigger: Decides when to compact.
        strategy: Decides how; a function gets messages and a `strategies.StrategyRequest` and returns a list.
        counter: Token counter or its name. Default: `o200k_base`.
        context_window: The model's window, for a budget if the state has none.
        reserve_tokens: Tokens reserved for the answer in that budget.
        store: Stores compactions; a store that also keeps messages needs their ``ids`` with every call. `prepare`
            stores folds in it.
        on_failure: ``"unchanged"`` returns the messages with a typed error and a warning; ``"raise"`` raises it;
            ``"truncate"`` drops the oldest messages instead, ``"clear"`` clears tool results, both with the error in
            the result and a warning.
        hooks: Functions called during a compaction; see `events.Hooks`.
        pins: Predicates: the messages for which one is true stay verbatim, with their groups, in every call.
        background: Whether a fold is begun before it is needed: above 90 % of the trigger's threshold the strategy runs
            in the background on the messages so far, and a later call takes the result over if these are still the
            beginning of its list. When the trigger fires, it is awaited.
        tools: Tool schemas sent with the messages, for calls that give none.
        system: The system prompt, if it is outside the messages, for calls that give none: a text, or content blocks of
            the dialect. It is counted as a leading system message and never inserted.
        timeout_s: Time limit of a whole compaction.
        redact: Applied to every text before a summarizer sees it and before it enters a summary. If it raises, no
            summarizer is called and the compaction fails (``redact_failed``).
        format: The dialect of the messages.
        hysteresis: Lighter steps continue until the request is this share below the trigger's threshold; after
            repeated unsuccessful tries, the next waits until the context has grown by this share.
        clock: Returns seconds, for durations and deadlines.
        max_folds: `prepare` keeps this many folds of a session, the newest.
        max_sessions: `prepare` keeps this many sessions, least recently used first out.

    Raises:
        ConfigError: An option is out of range; ``path`` names it. Or every fold would leave more than the trigger
            allows (``keep_over_threshold``).

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}. " + "word " * 60} for i in range(6)]
        >>> compactor = Compactor(
        ...     fl.triggers.MessageCount(5),
        ...     fl.strategies.Summarize(lambda messages: "Steps 0 to 3 were done.", keep_recent=2),
        ... )
        >>> result = compactor.compact(messages)
        >>> result.outcome, result.reason, len(result.messages), result.event.messages_removed
        ('folded', 'message_count', 3, 4)
        >>> compactor.compact(result.messages).reason
        'not_triggered'
    """

    def __init__(
        self,
        trigger: Trigger,
        strategy: Strategy | Callable[[list[Any], StrategyRequest], list[Any]],
        *,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        context_window: int | None = None,
        reserve_tokens: int = 0,
        store: CompactionStore | SessionStore | FoldStore | None = None,
        on_failure: FailurePolicy = "unchanged",
        hooks: Hooks | Mapping[str, Any] | None = None,
        pins: Iterable[Callable[[Any], bool]] | Callable[[Any], bool] = (),
        background: bool = False,
        tools: Messages | None = None,
        system: str | Messages | None = None,
        timeout_s: float | None = None,
        redact: Redact | None = None,
        format: FormatOption = "auto",
        hysteresis: float = 0.10,
        clock: Callable[[], float] = time.monotonic,
        max_folds: int = 8,
        max_sessions: int = 1_000,
    ) -> None:
        trigger, strategy, store = as_trigger(trigger), as_strategy(strategy), checked_store(store)
        self.counter = as_counter(counter)
        if on_failure not in _POLICIES:
            raise ConfigError(f"must be one of {', '.join(_POLICIES)}", code="bad_policy", path="on_failure")

        self.context_window = None if context_window is None else token_number(context_window, "context_window")
        self.reserve_tokens = token_number(reserve_tokens, "reserve_tokens")
        if self.context_window is not None and self.reserve_tokens >= self.context_window > 0:
            raise ConfigError("must be smaller than the window", code="reserve_over_window", path="reserve_tokens")
        self.timeout_s = checked_seconds(timeout_s)
        if not 0 <= checked_number(hysteresis, "hysteresis") < 1:
            raise ConfigError("must lie in [0, 1)", code="bad_share", path="hysteresis")
        self.hysteresis = hysteresis
        self.tools = tools
        self.system = checked_system(system)
        self.format: FormatOption = format
        self.background = bool(background)
        check_keep(trigger, strategy, self.context_window, self.reserve_tokens)
        for name, number in (("max_folds", max_folds), ("max_sessions", max_sessions)):
            if token_number(number, name) < 1:
                raise ConfigError("must be at least 1", code="bad_number", path=name)
        lasting = as_predicates(pins)
        self._clock = clock
        self._session = self._new_session()
        self._histories = Histories(
            self._new_session,
            store if isinstance(store, FoldStore) else None,
            max_folds=max_folds,
            max_sessions=max_sessions,
        )
        self._requests = Requests(
            self.counter,
            Surroundings(tools, self.system),
            context_window=self.context_window,
            reserve_tokens=self.reserve_tokens,
            format=format,
        )
        self._calls = Calls(self._requests, self._session, self._histories, store=store, lasting=lasting, clock=clock)
        self._subscribers = Subscribers(Hooks.of(hooks))
        self._parts = Parts(
            trigger=trigger,
            strategy=strategy,
            counter=self.counter,
            requests=self._requests,
            subscribers=self._subscribers,
            store=store,
            on_failure=on_failure,
            hysteresis=hysteresis,
            format=format,
            clock=clock,
            redact=as_redactor(redact),
            background=self.background,
        )
        self._engine = Engine(self._parts)

    @classmethod
    def for_model(
        cls,
        model: str,
        *,
        summarizer: Writer = None,
        store: CompactionStore | SessionStore | FoldStore | None = None,
        trigger: Trigger | None = None,
        strategy: Strategy | None = None,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        context_window: int | None = None,
        reserve_tokens: int | None = None,
        keep: Keep | None = None,
        summary_tokens: int | None = None,
        alternate: bool = False,
        **options: Unpack[CompactorOptions],
    ) -> Self:
        """A compactor for a model, with these choices; each keyword overrides one.

        Args:
            model: Name of the model.
            summarizer: The summarizer. Default: `summarizers.Extractive`.
            store: As for `Compactor`.
            trigger: Default: 80 % of the window less the reserve, or an overflow reported by the provider.
            strategy: Default: clear the tool results before the newest 2 turns if that saves a sixteenth of the window;
                then, unless half of the threshold is reached, summarize all but ``keep``.
            counter: Default: the model's, by the registry.
            context_window: Default: the model's, by the registry.
            reserve_tokens: Default: an eighth of the window, at most 16,384.
            keep: How much the summary leaves. Default: the newest fifth of the window, at most 20,000 tokens.
            summary_tokens: Room for the summary. Default: a sixteenth of the window, at most 4,000.
            alternate: As for `Plan.apply`: folding never makes two messages of one side neighbours.
            **options: As for `Compactor`.

        Raises:
            UnknownModelError: The model is unknown, and ``context_window`` and ``counter`` are not both given.
            ConfigError: An option is out of range.

        Examples:
            >>> import foldline as fl
            >>> compactor = fl.Compactor.for_model("gpt-4o")
            >>> compactor.context_window, compactor.reserve_tokens
            (128000, 16000)
        """
        found = defaults_for(
            model,
            summarizer=summarizer,
            trigger=trigger,
            strategy=strategy,
            counter=counter,
            context_window=context_window,
            reserve_tokens=reserve_tokens,
            keep=keep,
            summary_tokens=summary_tokens,
            alternate=alternate,
        )
        return cls(
            found.trigger,
            found.strategy,
            counter=found.counter,
            context_window=found.context_window,
            reserve_tokens=found.reserve_tokens,
            store=store,
            **options,
        )

    def __repr__(self) -> str:
        return f"Compactor({self.trigger!r}, {self.strategy!r}, on_failure={self.on_failure!r})"

    @property
    def trigger(self) -> Trigger:
        """Decides when to compact."""
        return self._parts.trigger

    @trigger.setter
    def trigger(self, trigger: Trigger) -> None:
        self._parts.trigger = as_trigger(trigger)

    @property
    def strategy(self) -> Strategy:
        """Decides how."""
        return self._parts.strategy

    @property
    def store(self) -> CompactionStore | SessionStore | FoldStore | None:
        """Stores compactions and folds."""
        return self._parts.store

    @property
    def on_failure(self) -> FailurePolicy:
        """What happens if a compaction fails."""
        return self._parts.on_failure

    def subscribe(self, subscriber: Callable[[Event], Any]) -> Callable[[], None]:
        """Calls a function with every later event; the returned function ends the subscription."""
        return self._subscribers.subscribe(subscriber)

    def watch(self, watcher: Callable[[AttemptEnded], Any]) -> Callable[[], None]:
        """Calls a function at the end of every later attempt to compact, whatever came of it; see `AttemptEnded`.

        An attempt begins when the trigger fires, or by ``force``. The returned function ends the calls.
        """
        return self._subscribers.watch(watcher)

    def unpin(self, predicate: Callable[[Any], bool]) -> None:
        """Ends the pins of all messages for which a predicate is true, from the next call on.

        Pins given with a later call hold nevertheless.

        Raises:
            ConfigError: The argument is not a predicate.
        """
        self._calls.unpinned += as_predicates(predicate, "predicate")

    def restore(self, folds: Iterable[str], *, session: str | None = None) -> None:
        """Takes over folds that `prepare` made, here or in another process, as ``result.fold`` gave them.

        For callers that keep them in a place of their own, such as a checkpoint; those of the ``store`` are found
        without it. A fold that is known already, or that is of another history, does no harm.

        Args:
            folds: The folds, oldest first.
            session: As for `prepare`.

        Raises:
            ConfigError: The session is not a name.
            StoreError: One of them is not a fold.
        """
        checked_session(session)
        self._histories.restore(session, [StoredFold.from_json(each) for each in folds])

    def should_compact(
        self,
        messages: Messages | Live,
        state: ContextState | None = None,
        *,
        tools: Messages | None = None,
        system: str | Messages | None = None,
    ) -> str | None:
        """The trigger's reason to compact now; None if it does not fire. Changes nothing.

        Args:
            messages: The messages of the next request, or the `Transcript` that contains them.
            state: That request and the run, as for `compact`.
            tools: Tool schemas sent with the messages. Default: the compactor's.
            system: The system prompt, if it is outside the messages. Default: the compactor's.

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
        known, _ = self._requests.state(messages, state, self._requests.around_of(tools, system))
        return reason_of(self.trigger, known)

    def compact(
        self,
        messages: Messages | Live,
        state: ContextState | None = None,
        *,
        force: bool = False,
        instructions: str | None = None,
        pins: Pins = (),
        tools: Messages | None = None,
        system: str | Messages | None = None,
        metadata: Metadata | None = None,
        ids: Sequence[int | str] | None = None,
        timeout_s: float | None = None,
        cancel: threading.Event | None = None,
    ) -> CompactionResult:
        """Compacts if the trigger fires. For loops whose list is the folded one.

        Args:
            messages: The messages of the next request, or the `Transcript` that contains them, whose counts the trigger
                then uses. They are not changed; ``transcript.fold(result)`` takes the result over.
            state: That request as it will be sent, and the run; missing values are counted.
            force: Compacts regardless of the trigger and of earlier tries.
            instructions: Instructions for the summary.
            pins: Messages that stay verbatim, with their groups: indices of this list, predicates, or both. They stay
                pinned in later calls, until `unpin`; ``result.pins`` gives their new indices.
            tools: Tool schemas sent with the messages. Default: the compactor's.
            system: The system prompt, if it is outside the messages. Default: the compactor's.
            metadata: Metadata of the messages; the result has that of the new ones.
            ids: Ids of the messages, for the event. Default: their indices.
            timeout_s: Time limit of this call. Default: the compactor's.
            cancel: Cancels the compaction when set; the messages then stay unchanged.

        Returns:
            The new messages, with the outcome, the reason, the counts, the event, and the failure if any. A request
            that stays over its window has ``fits`` False, and a `FoldlineWarning`.

        Raises:
            ConfigError: An option is out of range, or a pin is the index of a summary that this compactor has not made
                (``pin_on_summary``).
            MessageError: A message cannot be read.
            FoldlineError: With ``on_failure="raise"``, the failure.
        """
        decided: Decided | None = None
        if not self.background and self._calls.is_plain(messages, force, pins, (metadata, ids, timeout_s, cancel)):
            around = self._requests.around_of(tools, system)
            found = self._engine.decide(messages, state, around, self._session)  # type: ignore[arg-type]
            if isinstance(found, CompactionResult):
                return found
            decided = found
        call = Call(
            messages, state, force, instructions, pins, tools, system, metadata, self._limit_s(timeout_s), cancel
        )
        return self._engine.run(self._calls.asked(call, ids, decided))

    async def acompact(
        self,
        messages: Messages | Live,
        state: ContextState | None = None,
        *,
        force: bool = False,
        instructions: str | None = None,
        pins: Pins = (),
        tools: Messages | None = None,
        system: str | Messages | None = None,
        metadata: Metadata | None = None,
        ids: Sequence[int | str] | None = None,
        timeout_s: float | None = None,
        cancel: threading.Event | None = None,
    ) -> CompactionResult:
        """`compact` without blocking the event loop, with the same arguments.

        Summarizers with ``asummarize``, triggers, hooks and subscribers run on the loop, and so does the work on small
        lists, in turns with the loop's other tasks. The work on large lists, pins and counters that are functions,
        ``redact``, other summarizers and strategies, and stores run in threads. Cancelling the task leaves everything
        unchanged, unless the compaction is already being stored: then it is committed before the task ends.
        """
        call = Call(
            messages, state, force, instructions, pins, tools, system, metadata, self._limit_s(timeout_s), cancel
        )
        return await self._engine.arun(self._calls.asked(call, ids))

    def prepare(
        self,
        messages: Messages | Live,
        *,
        session: str | None = None,
        state: ContextState | None = None,
        force: bool = False,
        instructions: str | None = None,
        pins: Pins = (),
        tools: Messages | None = None,
        system: str | Messages | None = None,
        metadata: Metadata | None = None,
        timeout_s: float | None = None,
        cancel: threading.Event | None = None,
    ) -> CompactionResult:
        """The request for a whole history, which is never changed. For hooks that see everything at each call.

        Folds that were made for the beginning of the history are found by its hash, in memory or in the store, and
        applied without a model call. If the trigger fires for the result, it is folded on from there. An edited or
        branched history falls back to the longest beginning that still holds.

        Args:
            messages: The whole history, or the `Transcript` that contains it.
            session: The session. Two calls of one session at a time: the second waits. Default: folds made without a
                session are found, by the beginning of the history alone.
            state: As for `compact`, about the request.
            force: Folds regardless of the trigger and of earlier tries.
            instructions: Instructions for the summary.
            pins: As for `compact`; indices are of the whole history.
            tools: Tool schemas sent with the messages. Default: the compactor's.
            system: The system prompt, if it is outside the messages. Default: the compactor's.
            metadata: Metadata of the history.
            timeout_s: Time limit of this call. Default: the compactor's.
            cancel: Cancels the compaction when set.

        Returns:
            The messages of the request. ``sources``, ``dropped`` and ``edited`` are indices of the history. If a known
            fold was applied and nothing was folded on, outcome and reason are those of that fold, and ``event`` is
            None.

        Raises:
            ConfigError: An option is out of range.
            MessageError: A message cannot be read.
            StoreError: The folds of the store cannot be read.
            FoldlineError: With ``on_failure="raise"``, the failure.

        Complexity: Reading and hashing the history, and counting the request.

        Examples:
            >>> import foldline as fl
            >>> compactor = fl.Compactor(fl.triggers.MessageCount(8), fl.strategies.Summarize(keep_recent=2))
            >>> history = [{"role": "user", "content": f"Step {i}. " + "word " * 80} for i in range(9)]
            >>> first = compactor.prepare(history, session="a")
            >>> history.append({"role": "user", "content": "Go on."})
            >>> again = compactor.prepare(history, session="a")
            >>> len(first.messages), len(again.messages), again.messages[0] == first.messages[0], again.sources
            (3, 4, True, (None, 7, 8, 9))
        """
        started_s = self._clock()
        hashes = _core.hash_history(messages, self.counter, format=self.format)
        given = Call(
            messages, state, force, instructions, pins, tools, system, metadata, self._limit_s(timeout_s), cancel
        )
        call = self._calls.of_history(given, hashes, session, started_s)
        with call.history.lock:
            try:
                return call.result(self._engine.run(call.asked()))
            finally:
                self._histories.leave(call.history)

    async def aprepare(
        self,
        messages: Messages | Live,
        *,
        session: str | None = None,
        state: ContextState | None = None,
        force: bool = False,
        instructions: str | None = None,
        pins: Pins = (),
        tools: Messages | None = None,
        system: str | Messages | None = None,
        metadata: Metadata | None = None,
        timeout_s: float | None = None,
        cancel: threading.Event | None = None,
    ) -> CompactionResult:
        """`prepare` without blocking the event loop, with the same arguments; see `acompact`."""
        started_s = self._clock()
        hashes = await in_thread(lambda: _core.hash_history(messages, self.counter, format=self.format))
        given = Call(
            messages, state, force, instructions, pins, tools, system, metadata, self._limit_s(timeout_s), cancel
        )
        call = self._calls.of_history(given, hashes, session, started_s)
        try:
            # Polled: a cancelled task must not leave a thread that takes the lock later.
            while not call.history.lock.acquire(blocking=False):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S)
            try:
                asked = await in_thread(call.asked)
                result = await self._engine.arun(asked)
                return await in_thread(lambda: call.result(result))
            finally:
                call.history.lock.release()
        finally:
            self._histories.leave(call.history)

    def _new_session(self) -> Session:
        return Session(LoopGuard(self.hysteresis))

    def _limit_s(self, timeout_s: float | None) -> float | None:
        """The time limit of a call."""
        return self.timeout_s if timeout_s is None else timeout_s
