"""The strategy protocol, its request and outcome, and the base classes."""

from __future__ import annotations

import dataclasses
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from foldline import _core
from foldline._core import LiveSnapshot, Plan, TokenCounter
from foldline._util.lists import same
from foldline._util.threads import in_thread
from foldline.context.metadata import Metadata
from foldline.context.state import ContextState
from foldline.errors import SummaryError
from foldline.folding._ask import arequest_summary, request_summary
from foldline.folding.redact import Redact
from foldline.planning import Infeasible, Keep
from foldline.planning.keeps import checked_keep
from foldline.planning.plan import PlanOptions, answered, plan_options
from foldline.typing import AsyncSummarizer, Completion, Messages, Summarizer, SummarizeRequest

__all__ = [
    "BaseStrategy",
    "Call",
    "Deadline",
    "DirectStrategy",
    "Steps",
    "Strategy",
    "StrategyRequest",
    "StrategyResult",
    "checked_keep",
    "options_for",
    "plan_for",
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
        overhead_tokens: Tokens of the whole request that are in neither messages nor tools, such as a system prompt
            outside the messages.
        tools: Tool schemas sent with the messages.
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
    overhead_tokens: int = 0
    tools: Messages | None = None
    format: str = "auto"
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
        return _core.prepare(messages, self.counter, tools=self.tools, format=self.format)

    def tokens_of(self, messages: Messages) -> int:
        """Tokens of the whole request with these messages."""
        counts = self.counter.count_messages(messages, self.tools, format=self.format)
        return counts.total + self.overhead_tokens

    def moved(self, sources: Sequence[int | None]) -> StrategyRequest:
        """The request for a new list, whose messages had the indices ``sources`` in the old one."""
        places = {old: new for new, old in enumerate(sources) if old is not None}
        pins = tuple(sorted(places[pin] for pin in self.pins if pin in places))
        return dataclasses.replace(self, pins=pins, metadata=_marked(self.metadata.moved(sources), sources))


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
        floor: If nothing was done because the limit is out of reach: the fewest tokens it would have reached.
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
        cls, messages: Messages, planned: Plan | Infeasible | None = None, *, floor: int | None = None
    ) -> StrategyResult:
        """An outcome without changes."""
        return cls(same(messages), range(len(messages)), planned, floor=floor)

    @classmethod
    def of_plan(cls, planned: Plan, new: list[Any], **more: Any) -> StrategyResult:
        """The outcome of applying a plan; new messages of ``new`` are directly after the head."""
        folded = set(planned.folded)
        sources: list[int | None] = [i for i in range(len(planned)) if i not in folded]
        sources[planned.head : planned.head] = [None] * (len(new) - len(sources))
        shrunk = {i for i, action in enumerate(planned.actions) if action in ("clear", "shorten")}
        edited = tuple(sorted(shrunk.union(getattr(planned, "stripped", ()))))
        return cls(new, tuple(sources), planned, edited=edited, **more)


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

    #: The keep, if the strategy has one; a fallback uses the same.
    keep: Keep | None = None

    @property
    def name(self) -> str:
        """Its name in outcomes."""
        return type(self).__name__

    @abstractmethod
    def steps(self, messages: Messages, request: StrategyRequest) -> Steps:
        """Runs the strategy; yields the calls of summarizers."""

    def run(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Runs the strategy."""
        steps = self.steps(messages, request)
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

    async def arun(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """`run` without blocking the event loop: ``asummarize`` on the loop, the rest in threads."""
        steps = self.steps(messages, request)
        try:
            call = await in_thread(lambda: _next_of(lambda: next(steps)))
            while isinstance(call, Call):
                request.deadline.check()
                writer, summary = call.writer, _timed(call, request)
                try:
                    completion = await arequest_summary(writer, summary)
                except SummaryError as error:
                    call = await in_thread(_thrown(steps, error))
                    continue
                _count(completion, request)
                request.deadline.check()
                call = await in_thread(_sent(steps, completion))
            return call
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
        """Runs the strategy in a thread."""
        return await in_thread(lambda: self.run(messages, request))


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
        keep,
        pins=request.pins,
        importance=request.metadata.importances(count),
        origins=request.metadata.origins(count),
        summary_tokens=summary_tokens,
    )
