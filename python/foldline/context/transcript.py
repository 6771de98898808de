"""Transcripts that grow: append a message, ask what it costs, plan a fold, and nothing is read or counted twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from foldline import _core
from foldline._core import Plan, TokenCounter
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, MessageError
from foldline.planning import ByMetadata, Infeasible, Keep
from foldline.planning.plan import answered, plan_options
from foldline.typing import Message, Messages, Metadata, Origin, Pin

if TYPE_CHECKING:
    Base = _core.LiveTranscript | _core.LiveSnapshot

__all__ = ["Transcript", "TranscriptSnapshot"]


def _plan(
    transcript: Base,
    keep: Keep | None,
    messages: Messages | None,
    window: int | None,
    reserve: int,
    pins: Iterable[Pin | ByMetadata] | Callable[[Message], bool] | ByMetadata,
    importance: Mapping[int, float] | None,
    origins: Mapping[int, Origin] | None,
    metadata: Mapping[int, Metadata] | None,
    summary_tokens: int,
    min_gain_tokens: int,
    thinking: str,
) -> Plan | Infeasible:
    if messages is not None:
        index = transcript.check(messages)
        if index is not None:
            detail = "the list is not the one that was appended; sync reads it again from here"
            raise MessageError(detail, code="stale_transcript", index=index)
    options = plan_options(
        () if isinstance(pins, tuple) and not pins else transcript.messages,
        keep,
        window=window,
        reserve=reserve,
        pins=pins,
        importance=importance,
        origins=origins,
        metadata=metadata,
        summary_tokens=summary_tokens,
        min_gain_tokens=min_gain_tokens,
        thinking=thinking,
    )
    return answered(transcript.make_plan(options))


class Transcript(_core.LiveTranscript):
    """A conversation that grows at its end, with all that counting and planning need to know of it.

    Appending reads, counts and hashes the new message once. A cut is found by halving in sums that are kept, wherever
    it falls. What comes out is what `foldline.plan` gives for the same messages: equal plans, which `apply` takes.

    The messages stay the caller's own objects. They are not to be changed once they were appended: `check` finds what
    was, `sync` reads it again, and `Plan.apply` refuses a list that is not the one that was planned for.

    Methods may be called from several threads; one waits for another. `snapshot` gives one that needs no waiting.

    Args:
        messages: The first messages.
        counter: A `TokenCounter`, its name, or a function from text to tokens; o200k_base without one.
        format: The dialect, or ``"auto"`` to judge by content. A message that shows another dialect than those before
            it spoke for has all of them read again.
        tools: Tool schemas that are sent beside the messages; they count as overhead.

    Raises:
        ConfigError: The format or counter is unknown.
        MessageError: A message cannot be read; ``index`` says which.
        LimitExceeded: A message is nested beyond 128 levels, or too large.

    Complexity: ``append`` O(message). ``plan`` O(log messages) and the results that it may clear, plus the messages
        from the first on whose group has changed since the last plan (as a rule the newest call), plus six to ten bytes
        a message to write down. ``total_tokens``, ``fits``, ``pin``, ``importance``: O(1). ``check``: all text of the
        list. ``fold``: what stays is read again and not counted again.

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

    def __new__(  # noqa: D102 - the class says it
        cls,
        messages: Iterable[Message] = (),
        *,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        format: str = "auto",
        tools: Messages | None = None,
    ) -> Self:
        return super().__new__(cls, messages, as_counter(counter), tools, format)

    def plan(
        self,
        keep: Keep | None = None,
        *,
        messages: Messages | None = None,
        window: int | None = None,
        reserve: int = 0,
        pins: Iterable[Pin | ByMetadata] | Callable[[Message], bool] | ByMetadata = (),
        importance: Mapping[int, float] | None = None,
        origins: Mapping[int, Origin] | None = None,
        metadata: Mapping[int, Metadata] | None = None,
        summary_tokens: int = 0,
        min_gain_tokens: int = 0,
        thinking: Literal["keep", "strip", "fold"] = "keep",
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
            metadata: As for `foldline.plan`.
            summary_tokens: Tokens set aside for the summary; `FitTokens` counts them.
            min_gain_tokens: As for `foldline.plan`.
            thinking: As for `foldline.plan`.

        Raises:
            ConfigError: An option is out of range; ``path`` names it.
            MessageError: ``stale_transcript``: ``messages`` is not the list that was appended.
        """
        more = (summary_tokens, min_gain_tokens, thinking)
        return _plan(self, keep, messages, window, reserve, pins, importance, origins, metadata, *more)

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

    def __new__(cls, transcript: Transcript) -> Self:  # noqa: D102 - the class says it
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
        pins: Iterable[Pin | ByMetadata] | Callable[[Message], bool] | ByMetadata = (),
        importance: Mapping[int, float] | None = None,
        origins: Mapping[int, Origin] | None = None,
        metadata: Mapping[int, Metadata] | None = None,
        summary_tokens: int = 0,
        min_gain_tokens: int = 0,
        thinking: Literal["keep", "strip", "fold"] = "keep",
    ) -> Plan | Infeasible:
        """As `Transcript.plan`, for the messages of the snapshot."""
        more = (summary_tokens, min_gain_tokens, thinking)
        return _plan(self, keep, messages, window, reserve, pins, importance, origins, metadata, *more)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.messages)

    def __repr__(self) -> str:
        return f"TranscriptSnapshot(messages={len(self)}, total_tokens={self.total_tokens}, kind={self.kind!r})"
