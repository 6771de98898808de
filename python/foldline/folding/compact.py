"""Folding in one call: plan, summarise, apply, and check what came out."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from foldline._core import Plan, TokenCounter
from foldline._util.lists import same
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, FoldlineError, FoldlineWarning, MessageError, SummaryError
from foldline.folding._ask import (
    aask,
    ask,
    earlier_summary,
    refuse_longer,
    refuse_over_budget,
    refuse_over_room,
    refuse_without_gain,
    room_for_summary,
    splitter,
)
from foldline.folding._finish import finish, target_for
from foldline.folding.redact import Redact, as_redactor, redacted_messages, redacted_text
from foldline.planning import ByMetadata, FitTokens, Infeasible, Keep, plan
from foldline.planning.keeps import resolved_keep
from foldline.summarizers import Extractive, as_summarizer
from foldline.typing import (
    AsyncSummarizer,
    ChatModel,
    Completion,
    Message,
    Messages,
    Metadata,
    Origin,
    Pin,
    Summarizer,
    SummarizeRequest,
    SummaryFunction,
)

__all__ = ["FoldResult", "acompact", "compact"]


@dataclass(frozen=True, slots=True)
class FoldResult:
    """What folding gave.

    Attributes:
        messages: The folded list; the messages as they were where nothing was done or something failed.
        summary: The text of the summary; empty where nothing was folded.
        plan: The plan, or `Infeasible`.
        tokens_before: Tokens of the request before, overhead included.
        tokens_after: Tokens of the request after.
        error: What failed, if anything; then the messages are as they were.
        completion: What the summarizer answered, with its usage.
        evidence: What the summary must not lose: lists of requests, files, commands, errors and more. Of what was
            held against it, ``kept`` is in the summary as it was written, ``mended`` was added to it, and for
            ``dropped`` there was no room.
    """

    messages: list[Any]
    summary: str
    plan: Plan | Infeasible
    tokens_before: int
    tokens_after: int
    error: FoldlineError | None = None
    completion: Completion | None = None
    evidence: Mapping[str, Any] | None = None

    @property
    def changed(self) -> bool:
        """Whether the list is another one than before."""
        return self.error is None and bool(self.plan)


def compact(
    messages: Messages,
    keep: Keep | None = None,
    *,
    summarizer: Summarizer | ChatModel | SummaryFunction | None = None,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
    pins: Iterable[Pin | ByMetadata] | Callable[[Message], bool] | ByMetadata = (),
    importance: Mapping[int, float] | None = None,
    origins: Mapping[int, Origin] | None = None,
    metadata: Mapping[int, Metadata] | None = None,
    summary_tokens: int = 1_000,
    min_gain_tokens: int = 0,
    thinking: Literal["keep", "strip", "fold"] = "keep",
    window: int | None = None,
    reserve: int = 0,
    tools: Messages | None = None,
    alternate: bool = False,
    format: str = "auto",
    on_failure: Literal["unchanged", "raise"] = "unchanged",
    instructions: str | None = None,
    mend: bool = True,
    redact: Redact | None = None,
) -> FoldResult:
    """Folds a list of messages: what the plan lets go becomes one summary behind the head.

    The input is never changed. Where the summary fails (the summarizer raises, answers with nothing, with more than
    it replaces, or with so much that a `FitTokens` budget is broken), the messages stay as they were and the result
    carries the error.

    Args:
        messages: The messages in their provider's form.
        keep: How much stays; without it, what fits into ``window - reserve``.
        summarizer: Who writes the summary: `summarizers.Extractive` by default (no network, deterministic), a model
            such as `summarizers.OpenAICompatible`, or a function that gets the folded messages and returns a text.
        counter: As for `plan`.
        pins: As for `plan`.
        importance: As for `plan`.
        origins: As for `plan`.
        metadata: As for `plan`.
        summary_tokens: Room for the summary message, its label included.
        min_gain_tokens: As for `plan`.
        thinking: As for `plan`.
        window: As for `plan`.
        reserve: As for `plan`.
        tools: As for `plan`.
        alternate: As for `Plan.apply`: no two messages of one side become neighbours, whatever is folded between them.
        format: As for `plan`.
        on_failure: ``"unchanged"`` gives the messages back with a typed error and a warning; ``"raise"`` raises it.
        instructions: What the summary is to mind.
        mend: Whether facts that the summary lacks are added to it, as far as ``summary_tokens`` has room for them.
        redact: What every text goes through before a summarizer sees it and before it stands in the result. Where it
            raises, nobody is asked.

    Returns:
        The folded messages and everything about them.

    Raises:
        ConfigError: An option is out of range.
        MessageError: A message cannot be read.
        LimitExceeded: A message is nested beyond 128 levels, or too large.
        SummaryError: With ``on_failure="raise"``, no usable summary came out.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}. " + "Do it well. " * 40} for i in range(9)]
        >>> result = fl.compact(messages, fl.KeepMessages(2), counter="chars/4", summary_tokens=200)
        >>> len(result.messages), result.tokens_after < result.tokens_before
        (3, True)
    """
    keep = resolved_keep(keep, window, reserve)
    if not isinstance(messages, (list, tuple)):
        raise MessageError("messages must be a list of objects", code="not_a_list")
    if on_failure not in ("unchanged", "raise"):
        raise ConfigError("must be unchanged or raise", code="bad_policy", path="on_failure")
    writer = Extractive() if summarizer is None else as_summarizer(summarizer)
    counter = as_counter(counter)
    options = _Options(summary_tokens, min_gain_tokens, tools, alternate, instructions, mend, as_redactor(redact))
    planned = plan(
        messages,
        keep,
        counter=counter,
        window=window,
        reserve=reserve,
        pins=pins,
        importance=importance,
        origins=origins,
        metadata=metadata,
        summary_tokens=summary_tokens,
        min_gain_tokens=min_gain_tokens,
        thinking=thinking,
        tools=tools,
        format=format,
    )
    if not planned:
        before = counter.count_messages(messages, tools, format=format).total
        return FoldResult(same(messages), "", planned, before, before)
    assert isinstance(planned, Plan)  # noqa: S101 - for the type checker: Infeasible is falsy
    try:
        budget = keep.n if isinstance(keep, FitTokens) else None
        return _fold(messages, planned, writer, counter, budget, options)
    except FoldlineError as failure:
        if on_failure == "raise" and isinstance(failure, SummaryError):
            raise
        error = failure if isinstance(failure, SummaryError) else _as_summary_error(failure)
        if on_failure == "raise":
            raise error from failure
        warnings.warn(f"not folded, the messages are unchanged: {error}", FoldlineWarning, stacklevel=2)
        before = planned.tokens_before
        return FoldResult(same(messages), "", planned, before, before, error=error)


async def acompact(messages: Messages, keep: Keep | None = None, **options: Any) -> FoldResult:
    """`compact` off the event loop, with the same arguments.

    A summarizer with ``asummarize``, or a model with ``acomplete``, is awaited on the event loop, and cancelled with
    the call.
    """
    summarizer = options.get("summarizer")
    if summarizer is not None and not isinstance(summarizer, AsyncSummarizer):
        summarizer = as_summarizer(summarizer)
    if not isinstance(summarizer, AsyncSummarizer):
        return await asyncio.to_thread(functools.partial(compact, messages, keep, **options))
    awaited = _Awaited(summarizer, asyncio.get_running_loop())
    try:
        return await asyncio.to_thread(functools.partial(compact, messages, keep, **{**options, "summarizer": awaited}))
    finally:
        awaited.give_up()


class _Awaited:
    """A summarizer for a thread that is awaited on an event loop."""

    def __init__(self, writer: AsyncSummarizer, loop: asyncio.AbstractEventLoop) -> None:
        self._writer = writer
        self._loop = loop
        self._future: concurrent.futures.Future[Completion] | None = None

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Waits for it."""
        self._future = asyncio.run_coroutine_threadsafe(aask(self._writer, request), self._loop)
        try:
            return self._future.result()
        except concurrent.futures.CancelledError:
            raise SummaryError("the call was cancelled", code="cancelled") from None

    def give_up(self) -> None:
        """Nobody waits any more."""
        if self._future is not None:
            self._future.cancel()


def _as_summary_error(failure: FoldlineError) -> SummaryError:
    """What failed once the summarizer had run, such as messages that it changed."""
    return SummaryError(failure.detail, code=failure.code, index=failure.index, path=failure.path)


@dataclass(frozen=True, slots=True)
class _Options:
    """What `compact` was asked for, beside the plan."""

    summary_tokens: int
    min_gain_tokens: int
    tools: Messages | None
    alternate: bool
    instructions: str | None
    mend: bool
    redact: Redact | None


def _fold(
    messages: Messages,
    planned: Plan,
    writer: Summarizer,
    counter: TokenCounter,
    budget: int | None,
    options: _Options,
) -> FoldResult:
    completion, text, evidence = None, None, None
    written, room = "", 0
    if planned.cut:
        room = room_for_summary(messages, planned, counter, options.summary_tokens)
        shown = redacted_messages(messages, options.redact)
        reasons = planned.reasons
        previous = [i for i in planned.folded if reasons[i] == "earlier_summary"]
        request = SummarizeRequest(
            shown,
            planned.folded,
            room,
            counter.count,
            planned.format,
            previous=previous,
            previous_summary=earlier_summary(shown, previous) or None,
            instructions=redacted_text(options.instructions, options.redact),
            target_tokens=target_for(room, mend=options.mend),
            redact=options.redact,
            split=splitter(planned, planned.folded),
        )
        answered = ask(writer, request)
        written = answered.text
        finished = finish(
            written,
            [answered],
            shown,
            planned,
            counter,
            room=room,
            mend=options.mend,
            redact=options.redact,
        )
        (completion,), text, evidence = finished.completions, finished.text, finished.evidence
        refuse_longer(text, planned, counter)
    folded = planned.apply(
        messages, text, model=str(completion.model or "") if completion else "", alternate=options.alternate
    )
    tokens_after = counter.count_messages(folded, options.tools, format=planned.format).total
    if completion:
        refuse_over_budget(tokens_after, budget)
        refuse_over_room(written, room, counter)
        refuse_without_gain(planned, tokens_after, options.min_gain_tokens)
    return FoldResult(
        folded,
        text or "",
        planned,
        planned.tokens_before,
        tokens_after,
        completion=completion,
        evidence=evidence,
    )
