"""Folds in one call: plan, summarize, apply, and check the result."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal

from foldline import _core
from foldline._core import Fold, LiveSnapshot, LiveTranscript, Plan, TokenCounter
from foldline._util.lists import same
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, FoldlineError, FoldlineWarning, SummaryError
from foldline.folding._ask import arequest_summary, request_for, request_summary
from foldline.folding._finish import Finished, finish, shown_messages
from foldline.folding.redact import Redact, as_redactor
from foldline.folding.result import FoldResult, edited_by, fold_result, warn_unfit
from foldline.planning import Keep
from foldline.planning.keeps import limit_of
from foldline.planning.opening import checked_system, opened
from foldline.planning.plan import Pins, answered, plan_options, unchanged_reason
from foldline.summarizers import Extractive, as_summarizer
from foldline.typing import (
    AsyncSummarizer,
    ChatModel,
    Completion,
    FormatOption,
    Messages,
    Metadata,
    Origin,
    Summarizer,
    SummarizeRequest,
    SummaryFunction,
    Thinking,
)

__all__ = ["acompact", "compact"]


def compact(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    keep: Keep | None = None,
    *,
    summarizer: Summarizer | ChatModel | SummaryFunction | None = None,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
    pins: Pins = (),
    importance: Mapping[int, float] | None = None,
    origins: Mapping[int, Origin] | None = None,
    metadata: Mapping[int, Metadata] | None = None,
    summary_tokens: int = 1_000,
    min_gain_tokens: int = 0,
    thinking: Thinking = "keep",
    context_window: int | None = None,
    reserve_tokens: int = 0,
    tools: Messages | None = None,
    system: str | Messages | None = None,
    alternate: bool = False,
    format: FormatOption = "auto",
    on_failure: Literal["unchanged", "raise"] = "unchanged",
    instructions: str | None = None,
    mend: bool = True,
    redact: Redact | None = None,
) -> FoldResult:
    """Replaces the messages that a plan folds by one summary after the head.

    The input is never changed, and must not be changed while a summarizer runs: it is read once, at the beginning. If
    the summary fails (the summarizer raises, or its text is empty, longer than the messages it replaces, or breaks a
    `FitTokens` budget), the messages stay unchanged and the result carries the error.

    Args:
        messages: The messages in their provider's form, the bytes of a JSON array of them, or a `Transcript`, which is
            not changed and not read or counted again.
        keep: How much stays. Default: the most that fits into ``context_window - reserve_tokens``.
        summarizer: The summarizer: a model such as `summarizers.OpenAICompatible`, or a function from the folded
            messages to a text. Default: `summarizers.Extractive` (no network, deterministic).
        counter: As for `plan`. Default for a `Transcript`: its own; with another counter it is read as a list.
        pins: As for `plan`.
        importance: As for `plan`.
        origins: As for `plan`.
        metadata: As for `plan`.
        summary_tokens: Room for the summary message, its label included.
        min_gain_tokens: As for `plan`.
        thinking: As for `plan`.
        context_window: As for `plan`.
        reserve_tokens: As for `plan`.
        tools: As for `plan`.
        system: As for `plan`.
        alternate: As for `Plan.apply`: folding never makes two messages of one side neighbours.
        format: As for `plan`.
        on_failure: ``"unchanged"`` returns the messages with a typed error and a warning; ``"raise"`` raises it.
        instructions: Instructions for the summary.
        mend: Whether facts missing from the summary are added to it, as far as ``summary_tokens`` allows.
        redact: Applied to every text before a summarizer sees it and before it enters the result. If it raises, no
            summarizer is called.

    Returns:
        The folded messages, with the outcome, the plan, the counts, and the failure if any. A request that stays over
        its budget (`FitTokens`, or window less reserve) has ``fits`` False, and a `FoldlineWarning`.

    Raises:
        ConfigError: An option is out of range.
        MessageError: A message cannot be read.
        LimitExceeded: A message is nested beyond 128 levels, or too large.
        SummaryError: With ``on_failure="raise"``, the summary failed.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}. " + "Do it well. " * 40} for i in range(9)]
        >>> result = fl.compact(messages, fl.KeepMessages(2), counter="chars/4", summary_tokens=200)
        >>> result.outcome, len(result.messages), result.tokens_after < result.tokens_before
        ('folded', 3, True)
    """
    started_s = time.perf_counter()
    if on_failure not in ("unchanged", "raise"):
        raise ConfigError("must be unchanged or raise", code="bad_policy", path="on_failure")
    writer = Extractive() if summarizer is None else as_summarizer(summarizer)
    redact = as_redactor(redact)
    given, counted = opened(messages)
    unchanged = same(given)  # before a summarizer gets the list
    options = plan_options(
        given,
        keep,
        context_window=context_window,
        reserve_tokens=reserve_tokens,
        pins=pins,
        importance=importance,
        origins=origins,
        metadata=metadata,
        summary_tokens=summary_tokens,
        min_gain_tokens=min_gain_tokens,
        thinking=thinking,
    )
    fold = _core.begin_fold(
        counted,
        None if counted is not given and counter is None else as_counter(counter),
        options,
        alternate=alternate,
        tools=tools,
        system=checked_system(system),
        format=format,
    )
    planned = answered(fold.plan)
    limits = (limit_of(options.keep), None if context_window is None else context_window - reserve_tokens)
    limit = min((each for each in limits if each is not None), default=None)

    def result(*what: Any, **more: Any) -> FoldResult:
        folded = fold_result(fold, planned, limit, started_s, *what, **more)
        if folded.error is None:
            warn_unfit(folded, stacklevel=3)
        return folded

    if not isinstance(planned, Plan):
        return result("infeasible", "over_floor", unchanged, fold.tokens_before)
    if not planned:
        return result("unchanged", unchanged_reason(planned, options.keep), unchanged, fold.tokens_before)
    try:
        done = _finished(given, fold, planned, writer, instructions, mend=mend, redact=redact)
    except FoldlineError as failure:
        if failure.code == "no_gain":  # the summary saves nothing
            return result("unchanged", "no_gain", unchanged, fold.tokens_before, plan=fold.unfolded())
        if on_failure == "raise" and isinstance(failure, SummaryError):
            raise
        error = failure if isinstance(failure, SummaryError) else _as_summary_error(failure)
        if on_failure == "raise":
            raise error from failure
        warnings.warn(f"not folded, the messages are unchanged: {error}", FoldlineWarning, stacklevel=2)
        return result("failed", error.code, unchanged, fold.tokens_before, error=error)
    return result(
        "folded",
        "requested",
        done.messages,
        done.tokens,
        sources=tuple(done.sources),
        edited=edited_by(planned),
        summary=done.text,
        completions=done.completions,
        evidence=done.evidence,
    )


async def acompact(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    keep: Keep | None = None,
    *,
    summarizer: Summarizer | AsyncSummarizer | ChatModel | SummaryFunction | None = None,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
    pins: Pins = (),
    importance: Mapping[int, float] | None = None,
    origins: Mapping[int, Origin] | None = None,
    metadata: Mapping[int, Metadata] | None = None,
    summary_tokens: int = 1_000,
    min_gain_tokens: int = 0,
    thinking: Thinking = "keep",
    context_window: int | None = None,
    reserve_tokens: int = 0,
    tools: Messages | None = None,
    system: str | Messages | None = None,
    alternate: bool = False,
    format: FormatOption = "auto",
    on_failure: Literal["unchanged", "raise"] = "unchanged",
    instructions: str | None = None,
    mend: bool = True,
    redact: Redact | None = None,
) -> FoldResult:
    """`compact` off the event loop, with the same arguments.

    A summarizer with ``asummarize``, or a model with ``acomplete``, is awaited on the event loop, and cancelled with
    the call.
    """
    writer: Any = summarizer
    if summarizer is not None and not isinstance(summarizer, AsyncSummarizer):
        writer = as_summarizer(summarizer)
    awaited = _Awaited(writer, asyncio.get_running_loop()) if isinstance(writer, AsyncSummarizer) else None
    work = functools.partial(
        compact,
        messages,
        keep,
        summarizer=writer if awaited is None else awaited,
        counter=counter,
        pins=pins,
        importance=importance,
        origins=origins,
        metadata=metadata,
        summary_tokens=summary_tokens,
        min_gain_tokens=min_gain_tokens,
        thinking=thinking,
        context_window=context_window,
        reserve_tokens=reserve_tokens,
        tools=tools,
        system=system,
        alternate=alternate,
        format=format,
        on_failure=on_failure,
        instructions=instructions,
        mend=mend,
        redact=redact,
    )
    try:
        return await asyncio.to_thread(work)
    finally:
        if awaited is not None:
            awaited.abandon()


class _Awaited:
    """Adapts an asynchronous summarizer to a thread: each call is awaited on the event loop."""

    def __init__(self, writer: AsyncSummarizer, loop: asyncio.AbstractEventLoop) -> None:
        self._writer = writer
        self._loop = loop
        self._future: concurrent.futures.Future[Completion] | None = None

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Runs the summarizer on the event loop and waits for it."""
        self._future = asyncio.run_coroutine_threadsafe(arequest_summary(self._writer, request), self._loop)
        try:
            return self._future.result()
        except concurrent.futures.CancelledError:
            raise SummaryError("the call was cancelled", code="cancelled") from None

    def abandon(self) -> None:
        """Cancels the running call, if any."""
        if self._future is not None:
            self._future.cancel()


def _as_summary_error(failure: FoldlineError) -> SummaryError:
    """A failure after the summarizer ran, such as messages that it changed."""
    return SummaryError(failure.detail, code=failure.code, index=failure.index, path=failure.path)


def _finished(
    messages: Messages,
    fold: Fold,
    planned: Plan,
    writer: Summarizer,
    instructions: str | None,
    *,
    mend: bool,
    redact: Redact | None,
) -> Finished:
    """Requests the summary if the plan needs one, and finishes the fold."""
    if not planned.cut:
        return Finished.of(fold.finish())
    shown = shown_messages(messages, fold, planned, redact)
    request = request_for(
        fold, planned, shown, planned.folded, fold.room_tokens, instructions=instructions, mend=mend, redact=redact
    )
    answer = request_summary(writer, request)
    return finish(fold, planned, answer.text, [answer], shown, mend=mend, redact=redact)
