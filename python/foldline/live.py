"""Transcripts that grow: append a message, ask what it costs, plan a fold, and nothing is read or counted twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from foldline import _core
from foldline._core import Plan, TokenCounter
from foldline.errors import ConfigError, MessageError
from foldline.planning import (
    Infeasible,
    Keep,
    as_counter,
    _whole,
    _keep_arguments,
    pin_indices,
    resolved_keep,
    _scores,
    _summaries,
)
from foldline.typing import Message, Messages, Origin, Pin

if TYPE_CHECKING:
    Base = _core.LiveTranscript | _core.LiveSnapshot

__all__ = ["Transcript", "TranscriptSnapshot"]


def _plan(
    transcript: Base,
    keep: Keep | None,
    messages: Messages | None,
    window: int | None,
    reserve: int,
    pins: Iterable[Pin] | Callable[[Message], bool],
    importance: Mapping[int, float] | None,
    origins: Mapping[int, Origin] | None,
    summary_tokens: int,
) -> Plan | Infeasible:
    if messages is not None:
        index = transcript.check(messages)
        if index is not None:
            detail = "the list is not the one that was appended; sync reads it again from here"
            raise MessageError(detail, code="stale_transcript", index=index)
    kind, amount, of = _keep_arguments(resolved_keep(keep, window, reserve))
    answer = transcript.make_plan(
        kind,
        amount,
        of,
        _whole(summary_tokens, "summary_tokens") if summary_tokens else 0,
        window,
        pin_indices(transcript.messages if callable(pins) or pins else (), pins) if pins else [],
        _scores(importance) if importance else [],
        _summaries(origins) if origins else [],
    )
    return Infeasible(*answer) if isinstance(answer, tuple) else answer


class Transcript(_core.LiveTranscript):
    """A conversation that grows at its end, with all that counting and planning need to know of it.

    Appending reads, counts and hashes the new message once. A plan is found by halving in sums that are kept, so that it
    costs the same however long the conversation is and wherever the cut falls. What comes out is what `foldline.plan`
    gives for the same messages: equal plans, which `apply` takes.

    The messages stay the caller's own objects. They are not to be changed once they were appended: `check` finds what
    was, `sync` reads it again, and `Plan.apply` refuses a list that is not the one that was planned for.

    Methods may be called from several threads; one waits for another. `snapshot` gives one that needs no waiting.

    Args:
        messages: The first messages.
        counter: A `TokenCounter`, its name, or a function from text to tokens; o200k_base without one.
        format: The dialect, or ``"auto"`` to judge by content. A message that shows another dialect than those before it
            spoke for has all of them read again.
        tools: Tool schemas that are sent beside the messages; they count as overhead.

    Raises:
        ConfigError: The format or counter is unknown.
        MessageError: A message cannot be read; ``index`` says which.
        LimitExceeded: A message is nested beyond 128 levels, or too large.

    Complexity: ``append`` O(message). ``plan`` O(log messages) and the results that it may clear, plus the messages from
        the first on whose group has changed since the last plan (as a rule the newest call), plus two bytes a message
        to write down. ``total_tokens``, ``fits``, ``pin``, ``importance``: O(1). Memory: about 200 bytes a message above
        its text.

    Examples:
        >>> import foldline as fl
        >>> live = fl.Transcript(counter="chars/4")
        >>> for step in range(4):
        ...     live.append({"role": "user", "content": "word " * 40})
        >>> live.total_tokens, live.plan(fl.KeepMessages(1)).cut
        (200, 3)
        >>> live.plan(fl.KeepMessages(1)) == fl.plan(live.messages, fl.KeepMessages(1), counter="chars/4")
        True
    """

    __slots__ = ()

    def __new__(
        cls,
        messages: Iterable[Message] = (),
        *,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        format: str = "auto",
        tools: Messages | None = None,
    ) -> Transcript:
        return super().__new__(cls, messages, as_counter(counter), tools, format)

    def plan(
        self,
        keep: Keep | None = None,
        *,
        messages: Messages | None = None,
        window: int | None = None,
        reserve: int = 0,
        pins: Iterable[Pin] | Callable[[Message], bool] = (),
        importance: Mapping[int, float] | None = None,
        origins: Mapping[int, Origin] | None = None,
        summary_tokens: int = 0,
    ) -> Plan | Infeasible:
        """Decides what happens to each message, as `foldline.plan` does.

        Args:
            keep: How much stays. Without it, what fits into ``window - reserve``.
            messages: The caller's list; where given it is checked first, which costs its text.
            window: The model's context window in tokens; a keep larger than it is an error.
            reserve: Tokens of the window that are left for the answer.
            pins: Pins beside those of `pin`; with them, importance or origins a plan costs O(messages).
            importance: Scores beside those of `set_importance`.
            origins: Origins beside those of `set_origin`.
            summary_tokens: Tokens set aside for the summary; `FitTokens` counts them.

        Raises:
            ConfigError: An option is out of range; ``path`` names it.
            MessageError: ``stale_transcript``: ``messages`` is not the list that was appended.
        """
        return _plan(self, keep, messages, window, reserve, pins, importance, origins, summary_tokens)

    def snapshot(self) -> TranscriptSnapshot:
        """The transcript as it is now: it never changes, and many threads may plan from it at once.

        O(messages): numbers are copied, text is shared.
        """
        return TranscriptSnapshot(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.messages)

    def __repr__(self) -> str:
        return f"Transcript(messages={len(self)}, total_tokens={self.total_tokens}, kind={self.kind!r})"


class TranscriptSnapshot(_core.LiveSnapshot):
    """A `Transcript` as it was when `Transcript.snapshot` was called. Safe to use from many threads."""

    __slots__ = ()

    def __new__(cls, transcript: Transcript) -> TranscriptSnapshot:
        if not isinstance(transcript, Transcript):
            raise ConfigError("is made of a Transcript", code="bad_transcript", path="transcript")
        return super().__new__(cls, transcript)

    def plan(
        self,
        keep: Keep | None = None,
        *,
        messages: Messages | None = None,
        window: int | None = None,
        reserve: int = 0,
        pins: Iterable[Pin] | Callable[[Message], bool] = (),
        importance: Mapping[int, float] | None = None,
        origins: Mapping[int, Origin] | None = None,
        summary_tokens: int = 0,
    ) -> Plan | Infeasible:
        """As `Transcript.plan`, for the messages of the snapshot."""
        return _plan(self, keep, messages, window, reserve, pins, importance, origins, summary_tokens)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.messages)

    def __repr__(self) -> str:
        return f"TranscriptSnapshot(messages={len(self)}, total_tokens={self.total_tokens}, kind={self.kind!r})"
