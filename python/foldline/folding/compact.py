"""Folds in one call: plan, summarize, apply, and check the result."""

from __future__ import annotations

import asyncio
import functools
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from foldline import _core
from foldline._core import Fold, LiveSnapshot, LiveTranscript, Plan, TokenCounter
from foldline._util.lists import same
from foldline._util.threads import in_thread
from foldline._util.turns import Work, in_turn, now, small
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, FoldlineError, FoldlineWarning, SummaryError
from foldline.folding._ask import arequest_summary, request_for, request_summary
from foldline.folding._finish import Finished, Shown, finish, shown_messages
from foldline.folding.redact import Redact, as_redactor
from foldline.folding.result import FoldInput, FoldResult, edited_by, fold_result, warn_unfit
from foldline.planning import Keep
from foldline.planning.keeps import limit_of
from foldline.planning.opening import checked_system, opened
from foldline.planning.plan import Pins, PlanOptions, answered, plan_options, unchanged_reason
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
    writer = Extractive() if summarizer is None else as_summarizer(summarizer)
    folding = _folded(
        now,
        messages,
        keep,
        writer,
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
        folding.send(None)  # it never waits
    except StopIteration as end:
        result: FoldResult = end.value
    else:
        raise AssertionError
    _announce(result)
    return result


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
    """`compact` for an event loop, with the same arguments.

    Small work is done in place, in turns with the loop's other tasks; large work, and functions of the caller (counter,
    pins, ``redact``, a summarizer that blocks), in threads. A summarizer with ``asummarize``, or a model with
    ``acomplete``, is awaited on the event loop, and cancelled with the call.
    """
    writer: Any = Extractive() if summarizer is None else summarizer
    if not isinstance(writer, AsyncSummarizer):
        writer = as_summarizer(writer)
    work: Work
    is_live = isinstance(messages, (LiveTranscript, LiveSnapshot))
    if redact is not None or _calls_functions(messages if is_live and counter is None else counter, pins):
        work = in_thread
    else:
        listed = opened(messages)[0] if is_live else messages
        work = functools.partial(in_turn, is_small=small(listed, tools, system))
    result = await _folded(
        work,
        messages,
        keep,
        writer,
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
    _announce(result)
    return result


def _calls_functions(counter: object, pins: object) -> bool:
    """Whether a fold calls functions of the caller, which may take any time."""
    if isinstance(counter, (LiveTranscript, LiveSnapshot)):
        is_core = counter.kind != "estimated"  # one by a function is estimated
    elif isinstance(counter, TokenCounter):
        is_core = counter.name != "callable"
    else:
        is_core = counter is None or (isinstance(counter, str) and not counter.endswith(".json"))
    return not is_core or callable(pins) or not isinstance(pins, (list, tuple)) or any(map(callable, pins))


def _announce(result: FoldResult) -> None:
    """Warns the caller's caller of a failure, and of a request over its limit."""
    if result.error is None:
        warn_unfit(result, stacklevel=3)
    else:
        detail = f"not folded, the messages are unchanged: {result.error}"
        warnings.warn(detail, FoldlineWarning, stacklevel=3)


async def _folded(
    work: Work,
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    keep: Keep | None,
    writer: Summarizer | AsyncSummarizer,
    *,
    counter: TokenCounter | str | Callable[[str], int] | None,
    alternate: bool,
    tools: Messages | None,
    system: str | Messages | None,
    format: FormatOption,
    on_failure: Literal["unchanged", "raise"],
    instructions: str | None,
    mend: bool,
    redact: Redact | None,
    **planning: Any,
) -> FoldResult:
    """Folds in pieces of work; between them the summary is requested. Waits only where ``work`` does."""
    started_s = time.perf_counter()
    if on_failure not in ("unchanged", "raise"):
        raise ConfigError("must be unchanged or raise", code="bad_policy", path="on_failure")
    redact = as_redactor(redact)

    def begin() -> tuple[Messages, list[Any], PlanOptions, Fold]:
        given, counted = opened(messages)
        unchanged = same(given)  # before a summarizer gets the list
        options = plan_options(given, keep, **planning)
        fold = _core.begin_fold(
            counted,
            None if counted is not given and counter is None else as_counter(counter),
            options,
            alternate=alternate,
            tools=tools,
            system=checked_system(system),
            format=format,
        )
        return given, unchanged, options, fold

    given, unchanged, options, fold = await work(begin)
    planned = answered(fold.plan)
    window, reserve = planning["context_window"], planning["reserve_tokens"]
    limits = (limit_of(options.keep), None if window is None else window - reserve)
    limit = min((each for each in limits if each is not None), default=None)
    known = FoldInput(unchanged, fold.counter, options.keep, format, tools, system)
    result = functools.partial(fold_result, fold, planned, limit, started_s, given=known)
    if not isinstance(planned, Plan):
        return result("infeasible", "over_floor", unchanged, fold.tokens_before)
    if not planned:
        return result("unchanged", unchanged_reason(planned, options.keep), unchanged, fold.tokens_before)
    try:
        asked = {"instructions": instructions, "tools": tools, "system": system}
        done = await _finished(work, given, fold, planned, writer, asked, mend=mend, redact=redact)
    except FoldlineError as failure:
        if failure.code == "no_gain":  # the summary saves nothing
            return result("unchanged", "no_gain", unchanged, fold.tokens_before, plan=fold.unfolded())
        if on_failure == "raise" and isinstance(failure, SummaryError):
            raise
        error = failure if isinstance(failure, SummaryError) else _as_summary_error(failure)
        if on_failure == "raise":
            raise error from failure
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


async def _finished(
    work: Work,
    messages: Messages,
    fold: Fold,
    planned: Plan,
    writer: Summarizer | AsyncSummarizer,
    asked: Mapping[str, Any],
    *,
    mend: bool,
    redact: Redact | None,
) -> Finished:
    """Requests the summary if the plan needs one, and finishes the fold."""
    if not planned.cut:
        return cast(Finished, await work(lambda: Finished.of(fold.finish())))

    def shown_request() -> tuple[Shown, SummarizeRequest]:
        shown = shown_messages(messages, fold, planned, redact)
        room = fold.room_tokens
        return shown, request_for(fold, planned, shown, planned.folded, room, mend=mend, redact=redact, **asked)

    def ended(shown: Shown, answer: Completion) -> Finished:
        return finish(fold, planned, answer.text, [answer], shown, mend=mend, redact=redact)

    def at_once() -> Finished:
        shown, request = shown_request()
        return ended(shown, request_summary(writer, request))

    if work is now or type(writer) is Extractive:
        return cast(Finished, await work(at_once))
    shown, request = await work(shown_request)
    answer = await _awaited(writer, request)
    return cast(Finished, await work(lambda: ended(shown, answer)))


async def _awaited(writer: Summarizer | AsyncSummarizer, request: SummarizeRequest) -> Completion:
    """The summary, requested on the event loop, or in a thread from a summarizer that blocks.

    Raises:
        SummaryError: As `request_summary`; also if the summarizer was cancelled, but not this call (``cancelled``).
    """
    try:
        return await arequest_summary(writer, request)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
    raise SummaryError("the call was cancelled", code="cancelled")


def _as_summary_error(failure: FoldlineError) -> SummaryError:
    """A failure after the summarizer ran, such as messages that it changed."""
    return SummaryError(failure.detail, code=failure.code, index=failure.index, path=failure.path)
