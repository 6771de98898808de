"""The strategy protocol, its request and outcome, and the base classes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from foldline import _core
from foldline._core import LiveSnapshot, Plan, TokenCounter
from foldline._util.lists import same
from foldline._util.threads import in_thread
from foldline._util.turns import Work, in_turn, small
from foldline.context.metadata import PINNED_FROM, Metadata
from foldline.context.state import ContextState
from foldline.errors import SummaryError
from foldline.folding._ask import arequest_summary, request_summary
from foldline.folding.redact import Redact
from foldline.folding.result import edited_by
from foldline.planning import FitTokens, Infeasible, Keep
from foldline.planning.keeps import checked_keep, limit_of
from foldline.planning.plan import PlanOptions, answered, plan_options, unchanged_reason
from foldline.summarizers import Extractive
from foldline.typing import AsyncSummarizer, Completion, FormatOption, Messages, Summarizer, SummarizeRequest

__all__ = [
    "BaseStrategy",
    "Call",
    "Deadline",
    "DirectStrategy",
    "Steps",
    "Strategy",
    "StrategyRequest",
    "StrategyResult",
    "budget_of",
    "checked_keep",
    "counted",
    "keep_within",
    "options_for",
    "plan_for",
    "window_tokens_of",
]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time limit and a cancellation flag.

    Attributes:
        at: The limit as a reading of ``clock``; None for no limit.
        clock: Returns seconds.
        is_cancelled: Whether the caller cancelled the work.
    """

    at: float | None = None
    clock: Callable[[], float] = time.monotonic
    is_cancelled: Callable[[], bool] = bool

    def remaining_s(self) -> float | None:
        """Seconds left, not below 0; None without a limit."""
        return None if self.at is None else max(0.0, self.at - self.clock())

    def check(self) -> None:
        """Checks the limit and the flag.

        Raises:
            SummaryError: The limit has passed (``timeout``), or the work was cancelled (``cancelled``).
        """
        if self.is_cancelled():
            raise SummaryError("the compaction was cancelled", code="cancelled")
        if self.at is not None and self.clock() >= self.at:
            raise SummaryError("the compaction took too long", code="timeout")


@dataclass(frozen=True, slots=True)
class StrategyRequest:
    """The arguments of a strategy other than the messages.

    Attributes:
        state: The next request and the run: the same state that the trigger received.
        counter: Token counter.
        pins: Messages that stay verbatim, with their groups.
        metadata: Metadata of the messages.
        instructions: The caller's instructions for the summary.
        round: The round of the compaction, from 1.
        threshold_tokens: The most tokens of the whole request at which the trigger does not fire, if known: a
            compaction that cannot reach it is not worth a model call.
        target_tokens: Tokens of the whole request at which lighter steps suffice.
        threshold_messages: The most messages at which the trigger does not fire, if known.
        overhead_tokens: Tokens of the whole request that are in neither messages, tools nor system prompt, such as the
            difference to the usage that the provider reported.
        tools: Tool schemas sent with the messages.
        system: The system prompt, if it is outside the messages.
        format: The dialect of the messages.
        deadline: Time limit and cancellation flag.
        redact: Applied to every text before a summarizer sees it and before it enters a summary; raises a
            `SummaryError` if it fails.
        prepared: The messages given to the compactor and their read and counted form.
    """

    state: ContextState = field(default_factory=ContextState)
    counter: TokenCounter = field(default_factory=lambda: TokenCounter("o200k_base"))
    pins: tuple[int, ...] = ()
    metadata: Metadata = field(default_factory=Metadata)
    instructions: str | None = None
    round: int = 1
    threshold_tokens: int | None = None
    target_tokens: int | None = None
    threshold_messages: int | None = None
    overhead_tokens: int = 0
    tools: Messages | None = None
    system: str | Messages | None = None
    format: FormatOption = "auto"
    deadline: Deadline = field(default_factory=Deadline)
    redact: Redact | None = None
    prepared: tuple[Messages, LiveSnapshot] | None = None

    def prepare(self, messages: Messages) -> LiveSnapshot:
        """The messages, read and counted; the compactor's own form is reused for the same list.

        Raises:
            MessageError: A message cannot be read.
        """
        if self.prepared is not None and self.prepared[0] is messages:
            return self.prepared[1]
        return _core.prepare(messages, self.counter, tools=self.tools, system=self.system, format=self.format)

    def tokens_of(self, messages: Messages) -> int:
        """Tokens of the whole request with these messages."""
        return self.prepare(messages).total_tokens + self.overhead_tokens

    @property
    def window_tokens(self) -> int | None:
        """The window less the reserve, if the state has a budget."""
        return window_tokens_of(self.state)

    def moved(self, sources: Sequence[int | None]) -> StrategyRequest:
        """The request for a new list, whose messages had the indices ``sources`` in the old one."""
        places = {old: new for new, old in enumerate(sources) if old is not None}
        pins = tuple(sorted(places[pin] for pin in self.pins if pin in places))
        return dataclasses.replace(self, pins=pins, metadata=_marked(self.metadata.moved(sources), sources))


def window_tokens_of(state: ContextState) -> int | None:
    """The window less the reserve, if a state has a budget."""
    budget = state.budget
    return None if budget is None else max(0, budget.context_limit - budget.max_output_tokens)


def _marked(metadata: Metadata, sources: Sequence[int | None]) -> Metadata:
    """Marks the new messages of a list as summaries."""
    for new, old in enumerate(sources):
        if old is None:
            metadata.set_origin(new, "compacted_synthetic")
    return metadata


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """The result of a strategy.

    Attributes:
        messages: The new list, or the same messages.
        sources: For every message of it the index in the old list; None for a new one.
        plan: The plan it was made by, or `Infeasible`.
        summary: The text that replaces removed messages; empty if there is none.
        summarized: Indices of the messages that the summary replaces.
        dropped: Indices of messages removed without a summary.
        edited: Indices of messages whose results were cleared or shortened.
        completions: Answers of summarizers.
        steps: The strategies that changed something.
        reason: Why nothing was done, one of `typing.UNCHANGED_REASONS` or ``"over_floor"``.
        floor: The fewest tokens of the whole request that `FitTokens` reaches on the same list, if known.
        evidence: The facts that the summary must contain, with the result of the check.
        tokens: Tokens of the new list with tools and framing; None if unknown.
    """

    messages: list[Any]
    sources: Sequence[int | None]
    plan: Plan | Infeasible | None = None
    summary: str = ""
    summarized: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    edited: tuple[int, ...] = ()
    completions: tuple[Completion, ...] = ()
    steps: tuple[str, ...] = ()
    reason: str = "nothing_to_fold"
    floor: int | None = None
    evidence: Mapping[str, Any] | None = None
    tokens: int | None = None

    @property
    def changed(self) -> bool:
        """Whether the list was changed."""
        if isinstance(self.sources, range):  # `unchanged`
            return False
        return bool(self.summarized or self.dropped or self.edited or None in self.sources)

    @classmethod
    def unchanged(
        cls,
        messages: Messages,
        planned: Plan | Infeasible | None = None,
        *,
        reason: str = "nothing_to_fold",
        floor: int | None = None,
    ) -> StrategyResult:
        """An outcome without changes."""
        return cls(same(messages), range(len(messages)), planned, reason=reason, floor=floor)

    @classmethod
    def not_folded(
        cls, messages: Messages, planned: Plan | Infeasible, keep: Keep, request: StrategyRequest
    ) -> StrategyResult:
        """The outcome of a plan that changes nothing, or cannot meet its budget."""
        if isinstance(planned, Plan):
            return cls.unchanged(messages, planned, reason=unchanged_reason(planned, keep))
        return cls.unchanged(messages, planned, reason="over_floor", floor=planned.floor + request.overhead_tokens)

    @classmethod
    def of_plan(cls, planned: Plan, new: list[Any], sources: Sequence[int | None], **more: Any) -> StrategyResult:
        """The outcome of applying a plan."""
        return cls(new, tuple(sources), planned, edited=edited_by(planned), **more)


@runtime_checkable
class Strategy(Protocol):
    """Decides how to compact. Any object with this method is a strategy."""

    def run(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Compacts, without changing ``messages`` or its contents."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """A request of a running strategy for a summary."""

    writer: Summarizer | AsyncSummarizer
    request: SummarizeRequest


#: A running strategy: yields calls and receives completions, so the same code runs with and without an event loop.
Steps: TypeAlias = Generator[Call, Completion, StrategyResult]


class BaseStrategy(ABC):
    """A strategy that runs with and without an event loop. Subclasses implement `steps`."""

    #: The keep, if the strategy has one.
    keep: Keep | None = None
    #: Whether the result may have more tokens than the messages, as a rule of an earlier system demands.
    may_grow: bool = False

    def keep_for(self, request: StrategyRequest) -> Keep | None:
        """The keep of a fold; a fallback uses the same. Default: that of the strategy."""
        del request
        return self.keep

    @property
    def name(self) -> str:
        """Its name in outcomes."""
        return type(self).__name__

    @abstractmethod
    def steps(self, messages: Messages, request: StrategyRequest) -> Steps:
        """Runs the strategy; yields the calls of summarizers."""

    def checked_steps(self, messages: Messages, request: StrategyRequest) -> Steps:
        """`steps`, with the tokens of the result counted. A result that is not smaller becomes ``no_gain``."""
        outcome = yield from self.steps(messages, request)
        return counted(messages, outcome, request, keep=self.keep, may_grow=self.may_grow)

    def run(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Runs the strategy."""
        steps = self.checked_steps(messages, request)
        try:
            call = next(steps)
            while True:
                request.deadline.check()
                try:
                    completion = request_summary(call.writer, _timed(call, request))
                except SummaryError as error:
                    call = steps.throw(error)
                    continue
                _count(completion, request)
                request.deadline.check()
                call = steps.send(completion)
        except StopIteration as end:
            outcome: StrategyResult = end.value
            return outcome
        finally:
            steps.close()

    def calls_functions(self) -> bool:
        """Whether it calls functions of the caller, apart from its summarizer: then it runs in threads.

        Default: a strategy that is not of this package does.
        """
        return type(self).__module__.partition(".")[0] != __name__.partition(".")[0]

    def _work(self, messages: Messages, request: StrategyRequest) -> Work:
        """Runs its steps for an event loop."""
        if self.calls_functions() or request.redact is not None or request.counter.name == "callable":
            return in_thread
        return functools.partial(in_turn, is_small=small(messages))

    async def arun(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """`run` without blocking the event loop: ``asummarize`` and small steps on the loop, others in threads."""
        work = self._work(messages, request)
        steps = self.checked_steps(messages, request)
        try:
            call = await work(lambda: _next_of(lambda: next(steps)))
            while isinstance(call, Call):
                request.deadline.check()
                writer, summary = call.writer, _timed(call, request)
                try:
                    if type(writer) is Extractive:
                        completion = await work(functools.partial(request_summary, writer, summary))
                    else:
                        completion = await arequest_summary(writer, summary)
                except SummaryError as error:
                    call = await work(_thrown(steps, error))
                    continue
                _count(completion, request)
                request.deadline.check()
                call = await work(_sent(steps, completion))
            return cast(StrategyResult, call)
        finally:
            # A cancelled task may leave a thread in the middle of a step; the thread ends by itself.
            if inspect.getgeneratorstate(steps) != inspect.GEN_RUNNING:
                steps.close()


class DirectStrategy(BaseStrategy):
    """A strategy that calls no summarizer. Subclasses implement `outcome`."""

    @abstractmethod
    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Runs the strategy."""

    def steps(self, messages: Messages, request: StrategyRequest) -> Steps:
        """Runs the strategy, without a call."""
        yield from ()
        return self.outcome(messages, request)

    async def arun(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Runs the strategy, in a thread unless the work is small."""
        return cast(StrategyResult, await self._work(messages, request)(lambda: self.run(messages, request)))


def _next_of(resume: Callable[[], Call]) -> Call | StrategyResult:
    """The next call, or the outcome at the end: a `StopIteration` cannot leave a thread."""
    try:
        return resume()
    except StopIteration as end:
        outcome: StrategyResult = end.value
        return outcome


def _sent(steps: Steps, completion: Completion) -> Callable[[], Call | StrategyResult]:
    return lambda: _next_of(lambda: steps.send(completion))


def _thrown(steps: Steps, error: SummaryError) -> Callable[[], Call | StrategyResult]:
    return lambda: _next_of(lambda: steps.throw(error))


def _timed(call: Call, request: StrategyRequest) -> SummarizeRequest:
    return dataclasses.replace(call.request, timeout_s=request.deadline.remaining_s())


def _count(completion: Completion, request: StrategyRequest) -> None:
    """Counts the tokens of a summary toward the run, whether it is used or not."""
    request.state.stats.count_tokens(completion.model, completion.input_tokens, completion.output_tokens)


def counted(
    messages: Messages,
    outcome: StrategyResult,
    request: StrategyRequest,
    *,
    keep: Keep | None = None,
    may_grow: bool = False,
) -> StrategyResult:
    """The outcome with its tokens; without changes (``no_gain``) if it is not smaller than the messages.

    Raises:
        SummaryError: It is larger than the budget ``keep`` (``summary_over_budget``), as a summary in another shape may
            be.
    """
    if not outcome.changed:
        return outcome
    tokens = outcome.tokens
    if tokens is None:
        tokens = request.tokens_of(outcome.messages) - request.overhead_tokens
    budget = limit_of(keep) if keep is not None else None
    if budget is not None and tokens + request.overhead_tokens > budget:
        raise SummaryError("the result is larger than its budget", code="summary_over_budget")
    plan = outcome.plan
    is_whole = isinstance(plan, Plan) and len(plan) == len(messages)
    before = plan.tokens_before if is_whole else request.prepare(messages).total_tokens  # type: ignore[union-attr]
    if not may_grow and tokens >= before:
        unchanged = StrategyResult.unchanged(messages, outcome.plan, reason="no_gain", floor=outcome.floor)
        return dataclasses.replace(unchanged, completions=outcome.completions)
    return dataclasses.replace(outcome, tokens=tokens)


def budget_of(strategy: object) -> int | None:
    """The tokens of a strategy's `FitTokens`; of several strategies the fewest. None without one."""
    several = getattr(strategy, "strategies", None)
    if several is not None:
        budgets = [budget for each in several if (budget := budget_of(each)) is not None]
        return min(budgets, default=None)
    keep = getattr(strategy, "keep", None)
    return keep.n if isinstance(keep, FitTokens) else None


def keep_within(keep: Keep, request: StrategyRequest) -> Keep:
    """The keep for the counted part of a request: a budget is of the whole request."""
    if isinstance(keep, FitTokens) and request.overhead_tokens:
        return FitTokens(max(0, keep.n - request.overhead_tokens))
    return keep


def plan_for(
    prepared: LiveSnapshot, keep: Keep, request: StrategyRequest, *, summary_tokens: int = 0
) -> Plan | Infeasible:
    """The plan for a request, with its pins, importance and origins."""
    return answered(prepared.make_plan(options_for(prepared, keep, request, summary_tokens=summary_tokens)))


def options_for(
    prepared: LiveSnapshot, keep: Keep, request: StrategyRequest, *, summary_tokens: int = 0
) -> PlanOptions:
    """The options of that plan."""
    count = len(prepared)
    return plan_options(
        (),
        keep_within(keep, request),
        # By importance: a summary that its format or transcript pins is no error.
        importance=request.metadata.importances(count) | dict.fromkeys(request.pins, PINNED_FROM),
        origins=request.metadata.origins(count),
        summary_tokens=summary_tokens,
    )
