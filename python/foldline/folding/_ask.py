"""Asking for a summary, and what of the answers is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from foldline._core import SUMMARY_LABEL, Plan, TokenCounter
from foldline._util.threads import in_thread
from foldline.errors import FoldlineError, SummaryError
from foldline.summarizers._checks import is_refusal, usable
from foldline.summarizers.rendering import text_of
from foldline.typing import AsyncSummarizer, Completion, Messages, Summarizer, SummarizeRequest

__all__ = [
    "aask",
    "ask",
    "earlier_summary",
    "refuse_longer",
    "refuse_over_budget",
    "refuse_over_room",
    "refuse_without_gain",
    "room_for_summary",
    "splitter",
]

T = TypeVar("T")

_END = "</foldline-summary>"


def _folded_tokens(planned: Plan) -> int:
    """Tokens of what the summary replaces."""
    tokens = planned.message_tokens
    return sum(tokens[index] for index in planned.folded)


def _label_tokens(messages: Messages, planned: Plan, counter: TokenCounter) -> int:
    """Tokens of a summary message that are not the summary: its label and what goes around a message."""
    probe = planned.apply(messages, "x", model="x" * 16)[planned.head]
    return int(counter.count_messages([probe], format=planned.format).per_message[0])


def room_for_summary(messages: Messages, planned: Plan, counter: TokenCounter, summary_tokens: int) -> int:
    """Tokens that the text of a summary may have, so that its message takes no more than was set aside."""
    folded, label = _folded_tokens(planned), _label_tokens(messages, planned, counter)
    # With its label the summary is to be smaller than what it replaces, unless that is next to nothing.
    worth = folded - label if folded > 2 * label else folded
    return max(1, min(summary_tokens - label, worth))


def refuse_longer(text: str, planned: Plan, counter: TokenCounter) -> None:
    """Refuses a summary that is larger than what it replaces.

    Raises:
        SummaryError: It is (``summary_too_long``).
    """
    if counter.count(text) > _folded_tokens(planned):
        raise SummaryError("the summary is larger than what it replaces", code="summary_too_long")


def refuse_over_budget(tokens_after: int, budget: int | None) -> None:
    """Refuses a summary with which the request does not fit.

    Raises:
        SummaryError: It is more than the budget (``summary_over_budget``).
    """
    if budget is not None and tokens_after > budget:
        detail = f"with the summary it is {tokens_after} tokens, where the budget is {budget}"
        raise SummaryError(detail, code="summary_over_budget")


def refuse_over_room(written: str, room: int, counter: TokenCounter) -> None:
    """Refuses what was written over the room that there was for it.

    Raises:
        SummaryError: It is (``summary_over_room``).
    """
    if counter.count(written) > room:
        raise SummaryError(f"the summary is larger than its room of {room} tokens", code="summary_over_room")


def refuse_without_gain(planned: Plan, tokens_after: int, min_gain_tokens: int) -> None:
    """Refuses a summary that saves less than was asked for.

    Raises:
        SummaryError: It does (``gain_too_small``).
    """
    if min_gain_tokens and planned.tokens_before - tokens_after < min_gain_tokens:
        detail = f"with the summary {planned.tokens_before - tokens_after} tokens are saved, not {min_gain_tokens}"
        raise SummaryError(detail, code="gain_too_small")


def splitter(planned: Plan, folded: Sequence[int]) -> Callable[[int, Sequence[int]], list[list[int]]]:
    """`SummarizeRequest.split` of a plan, for some of the messages that it folds."""

    def split(max_tokens: int, sizes: Sequence[int]) -> list[list[int]]:
        chunks = planned.chunks(max_tokens, size=sizes)
        parts = [[i for i in folded if chunk.start <= i < chunk.stop] for chunk in chunks]
        return [part for part in parts if part]

    return split


def earlier_summary(messages: Messages, indices: Sequence[int]) -> str:
    """What summaries of earlier compactions say, without their labels; empty where there are none."""
    texts = []
    for index in indices:
        text = text_of(messages[index]).strip()
        if text.startswith(SUMMARY_LABEL):
            text = text.partition("\n")[2].removesuffix(_END).strip()
            note, _, rest = text.partition("\n")
            text = rest.strip() if note.startswith("(") and note.endswith(")") else text
        texts.append(text)
    return "\n\n".join(text for text in texts if text)


def ask(writer: Summarizer | AsyncSummarizer, request: SummarizeRequest) -> Completion:
    """Asks for the summary; whatever goes wrong is a `SummaryError`.

    Where texts are redacted, an error of the summarizer's own is not kept as the cause: it may hold what it was sent.
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
        return _checked(completion)
    raise failure


async def aask(writer: Summarizer | AsyncSummarizer, request: SummarizeRequest) -> Completion:
    """`ask` without blocking the event loop: by ``asummarize`` where there is one, else in a thread."""
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
        return _checked(completion)
    raise failure


def _as_summary_error(error: Exception) -> SummaryError:
    if isinstance(error, FoldlineError):
        return SummaryError(f"the summarizer failed: {error.code}", code="summarizer_failed")
    return SummaryError(f"the summarizer raised {type(error).__name__}", code="summarizer_failed")


def _checked(completion: object) -> Completion:
    answered = usable(completion)
    if answered.evidence is None and is_refusal(answered.text):
        raise SummaryError("the summarizer refused", code="refused")
    return answered
