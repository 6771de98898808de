"""Folds old messages into a summary."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal

from foldline import _core
from foldline._core import Fold, LiveSnapshot, Plan
from foldline._util.checks import token_number
from foldline.errors import CompactionError, ConfigError, SummaryError
from foldline.folding._ask import earlier_summary, request_for
from foldline.folding._finish import Finished, Shown, finish, shown_messages
from foldline.planning import FitTokens, Infeasible, Keep, KeepIterations, KeepMessages, KeepTokens
from foldline.planning.plan import answered
from foldline.strategies.base import (
    BaseStrategy,
    Call,
    Steps,
    StrategyRequest,
    StrategyResult,
    checked_keep,
    options_for,
)
from foldline.summarizers import Extractive, Prompted, as_summarizer
from foldline.typing import (
    AsyncSummarizer,
    ChatModel,
    Completion,
    Message,
    Messages,
    Summarizer,
    SummaryFunction,
)

__all__ = ["TURN_HEADING", "Summarize"]

#: Heading between the summary of the history and that of the turn that the cut splits.
TURN_HEADING = "## Beginning of the current turn"

_HISTORY_SHARE = 2 / 3

#: Recent tokens that stay if neither keep, trigger nor window says how many.
_KEEP_TOKENS = 20_000


class Summarize(BaseStrategy):
    """Folds the messages before a cut into one summary directly after the head.

    It stands after a compaction of the provider that the cut passes. Pinned messages stay after it. An earlier summary
    is given to the summarizer to be merged, and is replaced. If ``keep`` is `KeepTokens` and the newest turn alone is
    larger, the cut lies inside it: the history before the turn and the beginning of the turn are summarized separately,
    and joined. If even an empty summary would leave the request above the trigger's threshold, no summarizer is called.

    Args:
        summarizer: A summarizer (one with only ``asummarize`` needs an event loop), a model (called through
            `summarizers.Prompted`), or a function from messages to a text. Default: `summarizers.Extractive`.
        keep: How much stays. Default: at most half of the tokens that the trigger allows (half of its messages, if it
            counts messages), else of the window less the reserve; the newest 20,000 tokens if none is known.
        keep_recent: Instead of ``keep``, the number of iterations that stay; 0 folds everything into the summary.
        summary_tokens: Room for the summary message, its label included.
        prompt: Prompt of a model; see `summarizers.Prompted`.
        split_turns: Whether the beginning of a split turn is summarized separately. Default: if ``keep`` is
            `KeepTokens`.
        shape: Makes the messages that replace the folded ones from the summary and the request: at least one. Default:
            a user message with a label by which it is recognized.
        is_summary: Whether a message is the summary of an earlier compaction, for shapes without that label.
        mend: Whether facts missing from the summary are added to it, as far as ``summary_tokens`` allows. The
            summarizer then gets four fifths of the room.
        may_grow: Whether even a tiny list is folded, whose summary has more tokens than it, as the systems do that
            `presets` reproduces.
        alternate: As for `Plan.apply`: folding never makes two messages of one side neighbours.

    Raises:
        ConfigError: An option is out of range, or ``keep`` and ``keep_recent`` are both given.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}. " + "word " * 60} for i in range(6)]
        >>> strategy = Summarize(lambda messages: f"{len(messages)} steps were done.", keep_recent=2, mend=False)
        >>> outcome = strategy.run(messages, fl.strategies.StrategyRequest())
        >>> outcome.summary, len(outcome.messages), outcome.sources
        ('4 steps were done.', 3, (None, 4, 5))
    """

    keep: Keep | None

    def __init__(
        self,
        summarizer: Summarizer | AsyncSummarizer | ChatModel | SummaryFunction | None = None,
        keep: Keep | None = None,
        *,
        keep_recent: int | None = None,
        summary_tokens: int = 1_000,
        prompt: str | None = None,
        split_turns: bool | None = None,
        shape: Callable[[str, StrategyRequest], Sequence[Message]] | None = None,
        is_summary: Callable[[Any], bool] | None = None,
        mend: bool = True,
        may_grow: bool = False,
        alternate: bool = False,
    ) -> None:
        if keep is not None and keep_recent is not None:
            raise ConfigError("cannot be combined with keep", code="conflicting_keeps", path="keep_recent")
        if keep_recent is not None:
            keep = KeepIterations(token_number(keep_recent, "keep_recent"))
        self.keep = keep
        if keep is not None:
            checked_keep(keep)
        self.summary_tokens = token_number(summary_tokens, "summary_tokens")
        self.split_turns = isinstance(self.keep, KeepTokens) if split_turns is None else split_turns
        for name, function in (("shape", shape), ("is_summary", is_summary)):
            if function is not None and not callable(function):
                raise ConfigError("must be a function", code="bad_function", path=name)
        self.shape = shape
        self.is_summary = is_summary
        self.mend = bool(mend)
        self.may_grow = bool(may_grow)
        self.alternate = bool(alternate)
        self.summarizer: Summarizer | AsyncSummarizer
        if prompt is None and isinstance(summarizer, AsyncSummarizer):
            self.summarizer = summarizer
        elif prompt is None:
            given: Any = summarizer
            self.summarizer = Extractive() if given is None else as_summarizer(given)
        elif isinstance(summarizer, ChatModel) and not isinstance(summarizer, Summarizer):
            self.summarizer = Prompted(summarizer, prompt)
        else:
            raise ConfigError("a prompt requires a model", code="bad_prompt", path="prompt")

    def __repr__(self) -> str:
        return f"Summarize({self.summarizer!r}, {self.keep})"

    def calls_functions(self) -> bool:
        """Whether it has a function for shapes or earlier summaries, or is of a subclass elsewhere."""
        return super().calls_functions() or self.is_summary is not None or self.shape is not None

    def steps(self, messages: Messages, request: StrategyRequest) -> Steps:
        """Plans, requests the summary, applies the plan, and checks the result."""
        if self.is_summary is not None:
            request = _knowing(messages, request, self.is_summary)
        prepared = request.prepare(messages)
        fold, keep = self._begun(prepared, request)
        planned = answered(fold.plan)
        floor = fold.floor + request.overhead_tokens
        if not isinstance(planned, Plan) or not planned:
            not_folded = StrategyResult.not_folded(messages, planned, keep, request)
            return dataclasses.replace(not_folded, floor=floor)
        least = planned.tokens_kept + planned.overhead + request.overhead_tokens
        if request.threshold_tokens is not None and least > request.threshold_tokens:
            return StrategyResult.unchanged(messages, planned, reason="no_progress", floor=floor)
        if not planned.cut:  # results are cleared, nothing is summarized
            done = Finished.of(fold.finish())
            return StrategyResult.of_plan(
                planned, done.messages, done.sources, steps=(self.name,), tokens=done.tokens, floor=floor
            )
        shown = shown_messages(messages, fold, planned, request.redact)
        text, answers = yield from self._written(fold, planned, shown, request)
        try:
            done = finish(fold, planned, text, answers, shown, mend=self.mend, redact=request.redact)
        except SummaryError as error:
            if error.code != "no_gain":
                raise
            unchanged = StrategyResult.unchanged(messages, fold.unfolded(), reason="no_gain", floor=floor)
            if request.redact is not None:  # the refused texts were not redacted
                answers = tuple(dataclasses.replace(each, text="", evidence=None) for each in answers)
            return dataclasses.replace(unchanged, completions=answers)
        new, sources, tokens = list(done.messages), list(done.sources), None if self.shape else done.tokens
        if self.shape is not None:
            shaped = list(self.shape(done.text, request))
            if not shaped:
                raise CompactionError("the shape returned no message", code="bad_shape")
            new[planned.head : planned.head + 1] = shaped
            sources[planned.head : planned.head + 1] = [None] * len(shaped)
        return StrategyResult.of_plan(
            planned,
            new,
            sources,
            summary=done.text,
            summarized=tuple(planned.folded),
            completions=done.completions,
            steps=(self.name,),
            evidence=done.evidence,
            tokens=tokens,
            floor=floor,
        )

    def _begun(self, prepared: LiveSnapshot, request: StrategyRequest) -> tuple[Fold, Keep]:
        """The fold, and its keep. A derived budget that is out of reach is replaced by the nearest one in reach."""
        keep = self.keep_for(request)
        fold = self._begin(prepared, keep, request)
        planned = answered(fold.plan)
        if self.keep is None and isinstance(planned, Infeasible) and isinstance(keep, FitTokens):
            most = request.threshold_tokens if request.threshold_tokens is not None else request.window_tokens
            reachable = planned.floor + request.overhead_tokens
            if most is None or reachable <= most:
                keep = FitTokens(reachable)
                fold = self._begin(prepared, keep, request)
        if isinstance(planned, Plan) and request.threshold_tokens is not None and not isinstance(keep, FitTokens):
            # A summary that leaves no room below the threshold would trigger the next fold at once.
            least = planned.tokens_kept + planned.overhead + request.overhead_tokens
            room = request.threshold_tokens - least
            if 0 < room < self.summary_tokens:
                fold = self._begin(prepared, keep, request, room)
        return fold, keep

    def _begin(
        self, prepared: LiveSnapshot, keep: Keep, request: StrategyRequest, summary_tokens: int | None = None
    ) -> Fold:
        most = self.summary_tokens if summary_tokens is None else summary_tokens
        options = options_for(prepared, keep, request, summary_tokens=most)
        return _core.begin_fold(
            prepared,
            None,
            options,
            alternate=self.alternate,
            tools=None,
            system=None,
            format="auto",
            may_grow=self.may_grow,
        )

    def keep_for(self, request: StrategyRequest) -> Keep:
        """The keep of a fold: the given one, or one that leaves at most half of what the trigger or window allows."""
        if self.keep is not None:
            return self.keep
        limit = request.window_tokens if request.threshold_tokens is None else request.threshold_tokens
        if limit is not None:
            return FitTokens(limit // 2)
        if request.threshold_messages is not None:
            return KeepMessages(max(0, request.threshold_messages // 2 - 1))  # one less: the summary counts
        return KeepTokens(_KEEP_TOKENS)

    def _written(
        self, fold: Fold, planned: Plan, shown: Shown, request: StrategyRequest
    ) -> Generator[Call, Completion, tuple[str, tuple[Completion, ...]]]:
        """The text of the summary, and the answers it comes from."""
        folded, reasons, room = planned.folded, planned.reasons, fold.room_tokens
        start = planned.turn_prefix[0] if planned.turn_prefix and self.split_turns else None
        history = folded if start is None else [i for i in folded if i < start]
        prefix = [] if start is None else [i for i in folded if i >= start]
        earlier = [i for i in folded if reasons[i] == "earlier_summary"]

        def call(part: Literal["whole", "history", "turn_prefix"], indices: Sequence[int], max_tokens: int) -> Call:
            asked = request_for(
                fold,
                planned,
                shown,
                indices,
                max_tokens,
                part=part,
                instructions=request.instructions,
                round=request.round,
                mend=self.mend,
                redact=request.redact,
                tools=request.tools,
                system=request.system,
            )
            return Call(self.summarizer, asked)

        if not prefix:
            completion = yield call("whole", history, room)
            return completion.text, (completion,)
        if not history:
            completion = yield call("turn_prefix", prefix, room)
            return completion.text, (completion,)
        room -= request.counter.count(f"\n\n{TURN_HEADING}\n\n")
        written: list[Completion] = []
        of_history = earlier_summary(shown.messages, history) if set(history) <= set(earlier) else ""
        share = int(room * _HISTORY_SHARE)
        # Without new messages before the turn their summary is reused, unless it leaves the turn no room.
        if not of_history or request.counter.count(of_history) > share:
            first = yield call("history", history, share)
            of_history = first.text
            written.append(first)
            if not request.counter.fits(of_history, fold.room_tokens):  # refused before the second call is paid for
                return of_history, (first,)
        second = yield call("turn_prefix", prefix, room - request.counter.count(of_history))
        if not of_history.strip():
            raise SummaryError("the summary is empty", code="empty_summary")
        return f"{of_history}\n\n{TURN_HEADING}\n\n{second.text}", (*written, second)


def _knowing(messages: Messages, request: StrategyRequest, is_summary: Callable[[Any], bool]) -> StrategyRequest:
    """The request with earlier summaries marked as such."""
    metadata = request.metadata.copy()
    for index, message in enumerate(messages):
        if is_summary(message):
            metadata.set_origin(index, "compacted_synthetic")
    return dataclasses.replace(request, metadata=metadata)
