"""Four whole systems for compaction, each a `Compactor` with its trigger, strategy, counter, policy and shape.

Examples:
    >>> import foldline as fl
    >>> compactor = fl.presets.reserve(context_window=8_000, reserve_tokens=1_000, keep_recent_tokens=2_000)
    >>> messages = [{"role": "user", "content": f"Step {i}. " + "Mind the tests. " * 100} for i in range(20)]
    >>> result = compactor.compact(messages)
    >>> result.reason, result.tokens_before > 7_000 > result.tokens_after
    ('reserve', True)
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from foldline._core import TokenCounter
from foldline._util.checks import token_number
from foldline.compactor import Compactor
from foldline.compactor.events import Hooks
from foldline.context.state import ITERATIONS, SCRATCHPAD
from foldline.errors import ConfigError
from foldline.folding._ask import aask, ask
from foldline.folding.redact import Redact
from foldline.planning import KeepFraction, KeepMessages, KeepTokens
from foldline.strategies import (
    ClearToolResults,
    Pipeline,
    Shaped,
    Strategy,
    StrategyRequest,
    Summarize,
    as_strategy,
    message_of,
)
from foldline.summarizers import Prompted
from foldline.summarizers.rendering import text_of
from foldline.triggers import Never, ReserveTokens, StatThreshold, TokenThreshold, Trigger, Utilization
from foldline.typing import (
    AsyncSummarizer,
    ChatModel,
    CompactionStore,
    Completion,
    Message,
    Messages,
    SessionStore,
    Summarizer,
    SummarizeRequest,
    SummaryFunction,
)

__all__ = [
    "COMPACT_SUMMARY",
    "SESSION_SUMMARY",
    "UNDERSTOOD",
    "CompactorOptions",
    "budgeted",
    "gent",
    "layer",
    "reserve",
]

#: What a summary of `budgeted` begins with.
COMPACT_SUMMARY = "[COMPACT SUMMARY]"
#: What answers it.
UNDERSTOOD = "Understood."
#: What a summary of `layer` begins with.
SESSION_SUMMARY = "## Session Summary"

#: Who may write the summaries of a preset.
Writer: TypeAlias = "Summarizer | AsyncSummarizer | ChatModel | SummaryFunction | None"

_MOST_SUMMARY_TOKENS = 4_000
#: Results longer than this are cut to the second number before `layer` gives them to its summarizer, in characters.
_HUGE_CHARS, _LEFT_OF_HUGE_CHARS = 10_000, 2_000


class CompactorOptions(TypedDict, total=False):
    """Options of `Compactor` that every preset takes as well, and gives its own defaults to."""

    counter: TokenCounter | str | Callable[[str], int] | None
    store: CompactionStore | SessionStore | None
    on_failure: Literal["unchanged", "raise", "truncate", "clear"]
    hooks: Hooks | Mapping[str, Any] | None
    system: str | None
    tools: Messages | None
    max_output_tokens: int
    timeout_s: float | None
    hysteresis: float
    format: str
    clock: Callable[[], float]
    redact: Redact | None


def gent(
    summarizer: Writer = None,
    keep_recent: int = 0,
    *,
    trigger: Trigger | None = None,
    prompt: str | None = None,
    summary_tokens: int = _MOST_SUMMARY_TOKENS,
    mend: bool = True,
    **options: Unpack[CompactorOptions],
) -> Compactor:
    """Compacts by statistics of the run; a failure ends it.

    Fires after 10 iterations, or when the history has 20 groups (the counter ``iterations`` and the gauge
    ``scratchpad``, which `AgentLoop` keeps). What comes out is the summary, then what is pinned, then the newest
    iterations. Errors are raised; `AgentLoop` ends with ``compaction_failed`` then.

    Args:
        summarizer: Who writes the summary; `summarizers.Extractive` without one.
        keep_recent: Iterations that stay as they are; 0 folds everything into the summary.
        trigger: Another trigger.
        prompt: What a model is asked; see `summarizers.Prompted`.
        summary_tokens: Room for the summary.
        mend: Whether facts that the summary lacks are added to it.
        **options: As for `Compactor`.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.
    """
    if trigger is None:
        trigger = StatThreshold().on_counter(ITERATIONS, 10).on_gauge(SCRATCHPAD, 20)
    keep_recent = token_number(keep_recent, "keep_recent")
    strategy = Summarize(summarizer, keep_recent=keep_recent, summary_tokens=summary_tokens, prompt=prompt, mend=mend)
    return _compactor(trigger, strategy, options, on_failure="raise")


def reserve(
    summarizer: Writer = None,
    context_window: int = 200_000,
    reserve_tokens: int = 16_384,
    keep_recent_tokens: int = 20_000,
    *,
    prompt: str | None = None,
    summary_tokens: int | None = None,
    mend: bool = True,
    **options: Unpack[CompactorOptions],
) -> Compactor:
    """Compacts when the answer's reserve is touched, and keeps the newest tokens.

    Fires above ``context_window - reserve_tokens``, by ``chars/4`` where the provider's usage does not say. The cut
    falls on the beginning of a turn, or inside the newest one where that alone is larger than what is kept. What comes
    out is the system prompt, the summary as a message of the user, and everything from the first kept message on.

    Args:
        summarizer: Who writes the summary; `summarizers.Extractive` without one.
        context_window: The model's window; 0 where none is known, and then it never fires.
        reserve_tokens: What is left for the answer.
        keep_recent_tokens: The newest tokens that stay as they are.
        prompt: What a model is asked; see `summarizers.Prompted`.
        summary_tokens: Room for the summary; a tenth of the window without it, at most 4,000.
        mend: Whether facts that the summary lacks are added to it.
        **options: As for `Compactor`.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.
    """
    trigger = ReserveTokens(context_window, reserve_tokens)
    keep = token_number(keep_recent_tokens, "keep_recent_tokens")
    if context_window and keep > context_window - reserve_tokens:
        raise ConfigError(
            "more than the window without its reserve", code="keep_over_window", path="keep_recent_tokens"
        )
    room = _room(summary_tokens, context_window)
    strategy = Summarize(summarizer, KeepTokens(keep), summary_tokens=room, prompt=prompt, mend=mend)
    return _compactor(trigger if context_window else Never(), strategy, options, counter="chars/4")


def budgeted(
    summarizer: Writer = None,
    context_limit: int = 200_000,
    threshold: float = 0.80,
    critical: float = 0.95,
    preserve: float = 0.40,
    *,
    of: Literal["tokens", "messages"] = "tokens",
    prune_recent: int | None = None,
    prompt: str | None = None,
    summary_tokens: int | None = None,
    mend: bool = True,
    **options: Unpack[CompactorOptions],
) -> Compactor:
    """Compacts by the share of the budget that messages use; where a summary fails, the oldest messages are dropped.

    Fires above ``threshold`` of the room for messages (window less system prompt and 16,384 tokens for the answer), and
    from ``critical`` on after an answer that was cut off. What comes out is a message of the user that begins with
    ``[COMPACT SUMMARY]``, the answer ``Understood.``, and what is kept. Where what is kept begins with the model and
    turns must alternate (Gemini), there is no such answer.

    Args:
        summarizer: Who writes the summary; `summarizers.Extractive` without one.
        context_limit: The model's window; 0 where none is known, and then it never fires.
        threshold: The share to fire above, in (0, 1].
        critical: The share to fire from after a cut-off answer, in (0, 1].
        preserve: The share that is kept, in [0, 1].
        of: Of what: tokens, or messages.
        prune_recent: Before anything is summarised, results of tools over 1,000 characters are shortened but in so
            many of the newest messages; where that is enough, it is all.
        prompt: What a model is asked; see `summarizers.Prompted`.
        summary_tokens: Room for the summary; a tenth of the window without it, at most 4,000.
        mend: Whether facts that the summary lacks are added to it.
        **options: As for `Compactor`.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.
    """
    trigger = Utilization(threshold, critical)
    try:
        keep = KeepFraction(preserve, of)
    except ConfigError as error:
        raise ConfigError(error.detail, code=error.code, path="preserve" if error.path == "f" else "of") from None
    room = _room(summary_tokens, context_limit)
    strategy: Strategy = Summarize(summarizer, keep, summary_tokens=room, prompt=prompt, mend=mend)
    if prune_recent is not None:
        recent = KeepMessages(token_number(prune_recent, "prune_recent"))
        strategy = Pipeline(ClearToolResults(recent, shorten_to_chars=1_000), strategy)
    if context_limit:
        options.setdefault("max_output_tokens", 16_384)
    return _compactor(
        trigger if context_limit else Never(),
        Shaped(strategy, _CompactSummary()),
        options,
        counter="bytes/4+4",
        on_failure="truncate",
        context_limit=context_limit or None,
    )


def layer(
    summarizer: Writer = None,
    model_context_limit: int = 128_000,
    system_reserve: int = 2_000,
    output_reserve: int = 4_000,
    safety_buffer: int = 5_000,
    threshold: float = 0.80,
    keep_messages: int = 10,
    *,
    prompt: str | None = None,
    summary_tokens: int = 1_000,
    mend: bool = True,
    **options: Unpack[CompactorOptions],
) -> Compactor:
    """Compacts when the messages reach a share of the window, and keeps the newest messages.

    Fires from ``floor((limit - reserves) * threshold)`` tokens of messages on, while there are more than
    ``keep_messages + 1``. What comes out is the system message, a message of the model that begins with
    ``## Session Summary (Compaction Round N)`` (of the user, where a conversation must begin with one), and what is
    kept. Whatever fails, the messages are as they were.

    Args:
        summarizer: Who writes the summary; `summarizers.Extractive` without one. Results of tools over 10,000
            characters reach it with their heads and tails alone. A model is asked for the form of this system
            (``form="session"`` of `summarizers.Prompted`), at a temperature of 0.3 where it takes one.
        model_context_limit: The model's window; see `models.context_limit`. Here alone there is one that nobody chose.
        system_reserve: Set aside for system prompt and tools.
        output_reserve: Set aside for the answer.
        safety_buffer: Set aside for the error of the estimate.
        threshold: The share of what is left, in (0, 1].
        keep_messages: The newest messages that stay as they are.
        prompt: What a model is asked; see `summarizers.Prompted`.
        summary_tokens: Room for the summary.
        mend: Whether facts that the summary lacks are added to it.
        **options: As for `Compactor`.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.
    """
    trigger = TokenThreshold(
        model_context_limit,
        system_reserve=system_reserve,
        output_reserve=output_reserve,
        safety_buffer=safety_buffer,
        threshold=threshold,
        keep_messages=keep_messages,
    )
    if (
        prompt is None
        and isinstance(summarizer, ChatModel)
        and not isinstance(summarizer, (Summarizer, AsyncSummarizer))
    ):
        summarizer = Prompted(summarizer, form="session")
    keep = KeepMessages(keep_messages)
    strategy = Summarize(summarizer, keep, summary_tokens=summary_tokens, prompt=prompt, mend=mend)
    strategy.summarizer = _Trimmed(strategy.summarizer)
    options.setdefault("max_output_tokens", output_reserve)
    shaped = Shaped(strategy, _SessionSummary())
    return _compactor(trigger, shaped, options, counter="utf16/4+2", context_limit=model_context_limit)


def _room(summary_tokens: int | None, window: int) -> int:
    if summary_tokens is not None:
        return token_number(summary_tokens, "summary_tokens")
    return min(_MOST_SUMMARY_TOKENS, window // 10) if window else _MOST_SUMMARY_TOKENS


def _compactor(trigger: Trigger, strategy: Strategy, options: CompactorOptions, **defaults: Any) -> Compactor:
    """The compactor with a preset's defaults where the caller says nothing."""
    unknown = set(options) - CompactorOptions.__optional_keys__
    if unknown:
        raise ConfigError("no such option", code="unknown_option", path=min(unknown))
    return Compactor(trigger, as_strategy(strategy), **{**defaults, **options})


# --- Shapes ---------------------------------------------------------------------------------------------


class _CompactSummary:
    """A message of the user with a mark, and one of the model that says it has understood."""

    def messages(self, text: str, request: StrategyRequest, following: Message | None) -> Sequence[Message]:
        body = text.strip().removeprefix(COMPACT_SUMMARY).strip()
        told = message_of("user", f"{COMPACT_SUMMARY}\n{body}", request.format)
        answer = message_of("assistant", UNDERSTOOD, request.format)
        alternates = request.format == "gemini" and following is not None and following.get("role") == "model"
        return [told] if alternates else [told, answer]

    def text(self, message: Message) -> str | None:
        if message.get("role") != "user":
            return None
        return _behind(COMPACT_SUMMARY, text_of(message))

    def is_rest(self, message: Message) -> bool:
        return message.get("role") in ("assistant", "model") and text_of(message) == UNDERSTOOD


class _SessionSummary:
    """A message of the model with a heading that tells the round."""

    #: The heading as models write it: the mark at any level, with or without the round.
    HEADING = re.compile(r"\A#{1,6} Session Summary\b[^\n]*(\n|\Z)")

    def messages(self, text: str, request: StrategyRequest, following: Message | None) -> Sequence[Message]:
        del following
        heading = f"{SESSION_SUMMARY} (Compaction Round {request.round})"
        body = self.HEADING.sub("", text.strip(), count=1).strip()
        # Anthropic and Gemini want the first message from the user.
        role = "user" if request.format in ("anthropic", "gemini") else "assistant"
        return [message_of(role, f"{heading}\n\n{body}", request.format)]

    def text(self, message: Message) -> str | None:
        if message.get("role") not in ("assistant", "model", "user"):
            return None
        text = text_of(message)
        return self.HEADING.sub("", text, count=1).strip() if text.startswith(SESSION_SUMMARY) else None

    def is_rest(self, message: Message) -> bool:
        del message
        return False


def _behind(mark: str, text: str) -> str | None:
    return text.removeprefix(mark).strip() if text.startswith(mark) else None


class _Trimmed:
    """A summarizer that is spared huge results of tools."""

    def __init__(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        self.summarizer = summarizer
        self._clear = ClearToolResults(KeepMessages(0), min_chars=_HUGE_CHARS + 1, shorten_to_chars=_LEFT_OF_HUGE_CHARS)

    def __repr__(self) -> str:
        return repr(self.summarizer)

    def summarize(self, request: SummarizeRequest) -> Completion:
        return ask(self.summarizer, self._trimmed(request))

    async def asummarize(self, request: SummarizeRequest) -> Completion:
        return await aask(self.summarizer, self._trimmed(request))

    def _trimmed(self, request: SummarizeRequest) -> SummarizeRequest:
        asked = StrategyRequest(counter=TokenCounter("chars/4"), format=request.format)
        return dataclasses.replace(request, messages=self._clear.run(request.messages, asked).messages)
