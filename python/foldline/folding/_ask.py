"""Requests summaries, and turns every failure into a `SummaryError`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from foldline._core import Fold, Plan, summary_body
from foldline._util.threads import in_thread
from foldline.errors import FoldlineError, SummaryError
from foldline.folding._finish import Shown, target_for
from foldline.folding.redact import Redact, redacted_text
from foldline.summarizers._checks import is_refusal, is_within, refuse_tool_call, usable
from foldline.summarizers.rendering import text_of
from foldline.typing import AsyncSummarizer, Completion, Messages, Summarizer, SummarizeRequest

__all__ = [
    "arequest_summary",
    "earlier_summary",
    "request_summary",
    "splitter",
]

T = TypeVar("T")


def request_for(
    fold: Fold,
    planned: Plan,
    shown: Shown,
    indices: Sequence[int],
    max_tokens: int,
    *,
    part: Literal["whole", "history", "turn_prefix"] = "whole",
    instructions: str | None = None,
    round: int = 1,
    mend: bool = True,
    redact: Redact | None = None,
    tools: Messages | None = None,
    system: str | Messages | None = None,
) -> SummarizeRequest:
    """The request to summarize some of the messages that a plan folds.

    Raises:
        SummaryError: ``redact`` failed.
    """
    reasons = planned.reasons
    previous = [i for i in indices if reasons[i] == "earlier_summary"]
    room = max(1, max_tokens)
    return SummarizeRequest(
        shown.messages,
        indices,
        room,
        fold.counter.count,
        planned.format,
        previous=previous,
        previous_summary=earlier_summary(shown.messages, previous) or None,
        instructions=redacted_text(instructions, redact),
        round=round,
        part=part,
        target_tokens=target_for(room, mend=mend),
        redact=redact,
        split=splitter(planned, indices),
        evidence=shown.evidence.over(list(indices)),
        numbers=fold.numbers(),
        tools=tools,
        system=system,
        request_tokens=fold.tokens_before,
    )


def splitter(planned: Plan, folded: Sequence[int]) -> Callable[[int, Sequence[int]], list[list[int]]]:
    """Makes `SummarizeRequest.split` for some of the messages that a plan folds."""

    def split(max_tokens: int, sizes: Sequence[int]) -> list[list[int]]:
        chunks = planned.chunks(max_tokens, size=sizes)
        parts = [[i for i in folded if chunk.start <= i < chunk.stop] for chunk in chunks]
        return [part for part in parts if part]

    return split


def earlier_summary(messages: Messages, indices: Sequence[int]) -> str:
    """The texts of earlier summaries without their labels; empty if there are none."""
    texts = (summary_body(text_of(messages[index]).strip()).strip() for index in indices)
    return "\n\n".join(text for text in texts if text)


def request_summary(writer: Summarizer | AsyncSummarizer, request: SummarizeRequest) -> Completion:
    """Requests the summary; every failure is a `SummaryError`.

    With ``redact``, an error of the summarizer is not kept as the cause: it may contain the text that was sent.
    """
    if not isinstance(writer, Summarizer):
        raise SummaryError("the summarizer needs an event loop", code="async_summarizer")
    try:
        completion: object = writer.summarize(request)
    except SummaryError:
        raise
    except Exception as error:
        if request.redact is None:
            raise _as_summary_error(error) from error
        failure = _as_summary_error(error)
    else:
        return _checked(completion, request)
    raise failure


async def arequest_summary(writer: Summarizer | AsyncSummarizer, request: SummarizeRequest) -> Completion:
    """`request_summary` without blocking the event loop: by ``asummarize`` if present, else in a thread."""
    try:
        completion: object
        if isinstance(writer, AsyncSummarizer):
            completion = await writer.asummarize(request)
        else:
            completion = await in_thread(lambda: writer.summarize(request))
    except SummaryError:
        raise
    except Exception as error:
        if request.redact is None:
            raise _as_summary_error(error) from error
        failure = _as_summary_error(error)
    else:
        # In a thread: the counter may be the caller's own, which may block.
        return await in_thread(lambda: _checked(completion, request))
    raise failure


def _as_summary_error(error: Exception) -> SummaryError:
    if isinstance(error, FoldlineError):
        return SummaryError(f"the summarizer failed: {error.code}", code="summarizer_failed")
    return SummaryError(f"the summarizer raised {type(error).__name__}", code="summarizer_failed")


def _checked(completion: object, request: SummarizeRequest) -> Completion:
    answered = usable(completion)
    if request.part == "whole" and not is_within(answered.text, request.max_tokens, request.count):
        return answered  # the fold refuses it, before anything reads it
    refuse_tool_call(answered.text)
    if answered.evidence is None and is_refusal(answered.text):
        raise SummaryError("the summarizer refused", code="refused")
    return answered
