"""Growing transcripts: every message is read and counted once, for any number of plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from foldline import _core
from foldline._core import Plan, TokenCounter
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, MessageError
from foldline.planning import Infeasible, Keep
from foldline.planning.plan import Pins, answered, plan_options
from foldline.typing import Folded, FormatOption, Message, Messages, Metadata, Origin, Thinking

if TYPE_CHECKING:
    Base = _core.LiveTranscript | _core.LiveSnapshot

__all__ = ["Transcript", "TranscriptSnapshot"]


def _plan(
    transcript: Base,
    keep: Keep | None,
    messages: Messages | None,
    context_window: int | None,
    reserve_tokens: int,
    pins: Pins,
    importance: Mapping[int, float] | None,
    origins: Mapping[int, Origin] | None,
    metadata: Mapping[int, Metadata] | None,
    summary_tokens: int,
    min_gain_tokens: int,
    thinking: Thinking,
) -> Plan | Infeasible:
    if messages is not None:
        index = transcript.check(messages)
        if index is not None:
            detail = "the list differs from the appended messages; sync reads it again from this index"
            raise MessageError(detail, code="stale_transcript", index=index)
    options = plan_options(
        () if isinstance(pins, tuple) and not pins else transcript.messages,
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
    return answered(transcript.make_plan(options))


class Transcript(_core.LiveTranscript):
    """A conversation that grows at its end, with its counts and the structure for planning.

    Appending reads, counts and hashes the new message once. A cut is found by binary search in stored prefix sums. A
    plan equals that of `foldline.plan` for the same messages, and `apply` takes it.

    The messages stay the caller's own objects and must not change after they are appended: `check` finds a changed
    message, `sync` reads again from there, and `Plan.apply` refuses a list other than the planned one.

    Thread-safe, but threads wait for each other; a `snapshot` needs no waiting.

    Args:
        messages: The first messages.
        counter: Token counter, its name, or a function from text to tokens. Default: `o200k_base`.
        format: The dialect, or ``"auto"`` to detect it by content. A message that contradicts the dialect detected so
            far causes all messages to be read again.
        tools: Tool schemas sent with the messages; they count as overhead.

    Raises:
        ConfigError: The format or counter is unknown.
        MessageError: A message cannot be read; ``index`` gives its index.
        LimitExceeded: A message is nested beyond 128 levels, or too large.

    Complexity: ``append`` O(message). ``plan`` O(log messages) and the results that it may clear, plus the messages
        from the first whose group changed since the last plan (usually the newest call), plus six to ten bytes per
        message of output. ``total_tokens``, ``fits``, ``pin``, ``importance``: O(1). ``check``: all text of the
        list. ``fold``: kept messages are read again but not counted again.

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

    def __new__(  # noqa: D102 - documented by the class
        cls,
        messages: Iterable[Message] = (),
        *,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        format: FormatOption = "auto",
        tools: Messages | None = None,
    ) -> Self:
        return super().__new__(cls, messages, as_counter(counter), tools, format)

    def plan(
        self,
        keep: Keep | None = None,
        *,
        messages: Messages | None = None,
        context_window: int | None = None,
        reserve_tokens: int = 0,
        pins: Pins = (),
        importance: Mapping[int, float] | None = None,
        origins: Mapping[int, Origin] | None = None,
        metadata: Mapping[int, Metadata] | None = None,
        summary_tokens: int = 0,
        min_gain_tokens: int = 0,
        thinking: Thinking = "keep",
    ) -> Plan | Infeasible:
        """Decides the action for each message, as `foldline.plan`.

        Args:
            keep: How much stays. Default: the most that fits into ``context_window - reserve_tokens``.
            messages: The caller's list. If given, it is checked first, which costs reading its text.
            context_window: The model's context window in tokens; a keep larger than it is an error.
            reserve_tokens: Tokens of the window reserved for the answer.
            pins: Pins in addition to those of `pin`. With pins, importance or origins a plan costs O(messages).
            importance: Scores in addition to those of `set_importance`.
            origins: Origins in addition to those of `set_origin`.
            metadata: As for `foldline.plan`.
            summary_tokens: Tokens reserved for the summary; `FitTokens` counts them.
            min_gain_tokens: As for `foldline.plan`.
            thinking: As for `foldline.plan`.

        Raises:
            ConfigError: An option is out of range; ``path`` names it.
            MessageError: ``stale_transcript``: ``messages`` differs from the appended messages.
        """
        more = (summary_tokens, min_gain_tokens, thinking)
        return _plan(self, keep, messages, context_window, reserve_tokens, pins, importance, origins, metadata, *more)

    def fold(self, plan: Plan | Folded, summary: str | None = None) -> list[Any]:
        """Continues with a folded list, which it returns.

        Args:
            plan: The result of a fold of this transcript, with whose messages and pins it continues; or a plan for it.
            summary: With a plan: the summary of the messages that it folds.

        Raises:
            MessageError: The result or plan is of other messages (``plan_mismatch``).
            ConfigError: A summary is missing.

        Complexity: Kept messages are read again but not counted again.

        Examples:
            >>> import foldline as fl
            >>> live = fl.Transcript({"role": "user", "content": f"Step {i}. " + "word " * 80} for i in range(6))
            >>> result = fl.compact(live, fl.KeepMessages(2), pins=[1])
            >>> live.fold(result) == result.messages, live.total_tokens == result.tokens_after, live.is_pinned(1)
            (True, True, True)
        """
        if isinstance(plan, Plan):
            return super().fold(plan, summary)
        if not plan.changed:
            return self.messages
        kept = [(new, old) for new, old in enumerate(plan.sources) if old is not None and old not in plan.edited]
        mine = self.messages
        if any(old >= len(mine) or plan.messages[new] is not mine[old] for new, old in kept):
            raise MessageError("the result is of other messages", code="plan_mismatch")
        return self.replace(plan.messages, plan.sources, list(plan.pins))

    def snapshot(self) -> TranscriptSnapshot:
        """An immutable copy of the current transcript; threads may plan from it concurrently.

        O(messages): numbers are copied, text is shared.
        """
        return TranscriptSnapshot(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.messages)

    def __repr__(self) -> str:
        return f"Transcript(messages={len(self)}, total_tokens={self.total_tokens}, kind={self.kind!r})"


class TranscriptSnapshot(_core.LiveSnapshot):
    """A `Transcript` at the time of `Transcript.snapshot`. Thread-safe."""

    __slots__ = ()

    def __new__(cls, transcript: Transcript) -> Self:  # noqa: D102 - documented by the class
        if not isinstance(transcript, Transcript):
            raise ConfigError("must be a Transcript", code="bad_transcript", path="transcript")
        return super().__new__(cls, transcript)

    def plan(
        self,
        keep: Keep | None = None,
        *,
        messages: Messages | None = None,
        context_window: int | None = None,
        reserve_tokens: int = 0,
        pins: Pins = (),
        importance: Mapping[int, float] | None = None,
        origins: Mapping[int, Origin] | None = None,
        metadata: Mapping[int, Metadata] | None = None,
        summary_tokens: int = 0,
        min_gain_tokens: int = 0,
        thinking: Thinking = "keep",
    ) -> Plan | Infeasible:
        """As `Transcript.plan`, for the messages of the snapshot."""
        more = (summary_tokens, min_gain_tokens, thinking)
        return _plan(self, keep, messages, context_window, reserve_tokens, pins, importance, origins, metadata, *more)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.messages)

    def __repr__(self) -> str:
        return f"TranscriptSnapshot(messages={len(self)}, total_tokens={self.total_tokens}, kind={self.kind!r})"
