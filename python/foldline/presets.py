"""Presets: four `Compactor` setups with trigger, strategy, counter, policy and shape.

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
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack

from foldline._core import TokenCounter
from foldline._util.checks import token_number
from foldline.compactor import Compactor
from foldline.compactor.events import Hooks
from foldline.context.state import ITERATIONS, SCRATCHPAD
from foldline.errors import ConfigError
from foldline.folding._ask import arequest_summary, request_summary
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
from foldline.summarizers import Extractive, Prompted
from foldline.summarizers.rendering import text_of
from foldline.triggers import Never, ReserveTokens, StatThreshold, TokenThreshold, Trigger, Utilization
from foldline.typing import (
    AsyncSummarizer,
    ChatModel,
    CompactionStore,
    Completion,
    FailurePolicy,
    FormatOption,
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

#: First line of a summary of `budgeted`.
COMPACT_SUMMARY = "[COMPACT SUMMARY]"
#: The model's reply to a summary of `budgeted`.
UNDERSTOOD = "Understood."
#: Heading of a summary of `layer`.
SESSION_SUMMARY = "## Session Summary"

#: Summarizers of a preset.
Writer: TypeAlias = "Summarizer | AsyncSummarizer | ChatModel | SummaryFunction | None"

_MOST_SUMMARY_TOKENS = 4_000
#: Limits of `layer` in characters: results longer than the first are shortened to the second for the summarizer.
_HUGE_CHARS, _LEFT_OF_HUGE_CHARS = 10_000, 2_000


class CompactorOptions(TypedDict, total=False):
    """Options of `Compactor` that every preset accepts; presets set their own defaults."""

    counter: TokenCounter | str | Callable[[str], int] | None
    store: CompactionStore | SessionStore | None
    on_failure: FailurePolicy
    hooks: Hooks | Mapping[str, Any] | None
    system: str | Messages | None
    tools: Messages | None
    max_output_tokens: int
    timeout_s: float | None
    hysteresis: float
    format: FormatOption
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
    """Compacts by statistics of the run; a failure ends the run.

    Fires after 10 iterations, or when the history has 20 groups (the counter ``iterations`` and the gauge
    ``scratchpad``, which `AgentLoop` keeps). The result is the summary, the pinned messages, and the newest
    iterations. Errors are raised; `AgentLoop` then ends with ``compaction_failed``.

    Args:
        summarizer: The summarizer. Default: `summarizers.Extractive`.
        keep_recent: Iterations that stay verbatim; 0 folds everything into the summary.
        trigger: Replaces the trigger of the preset.
        prompt: Prompt of a model; see `summarizers.Prompted`.
        summary_tokens: Room for the summary.
        mend: Whether facts missing from the summary are added to it.
        **options: As for `Compactor`.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.
    """
    if trigger is None:
        trigger = StatThreshold().on_counter(ITERATIONS, 10).on_gauge(SCRATCHPAD, 20)
    keep_recent = token_number(keep_recent, "keep_recent")
    strategy = Summarize(
        summarizer,
        keep_recent=keep_recent,
        summary_tokens=summary_tokens,
        prompt=prompt,
        mend=mend,
        may_grow=True,
    )
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
    """Compacts when the request exceeds the window less the reserve; keeps the newest tokens.

    Fires above ``context_window - reserve_tokens``, counted by ``chars/4`` unless the provider reported usage. The cut
    falls on the start of a turn, or inside the newest turn if that alone is larger than ``keep_recent_tokens``. The
    result is the system prompt, the summary as a user message, and everything from the first kept message on.

    Args:
        summarizer: The summarizer. Default: `summarizers.Extractive`.
        context_window: The model's window; 0 if unknown, and then it never fires.
        reserve_tokens: Tokens reserved for the answer.
        keep_recent_tokens: The newest tokens that stay verbatim.
        prompt: Prompt of a model; see `summarizers.Prompted`.
        summary_tokens: Room for the summary. Default: a tenth of the window, at most 4,000.
        mend: Whether facts missing from the summary are added to it.
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
    writer = _formed(summarizer, prompt, "document")
    strategy = Summarize(writer, KeepTokens(keep), summary_tokens=room, prompt=prompt, mend=mend, may_grow=True)
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
    """Compacts by the share of the budget that messages use.

    If a summary fails, the oldest messages are dropped. Fires above ``threshold`` of the room for messages (window less
    system prompt and 16,384 tokens for the answer), and from ``critical`` on after a truncated answer. The result is a
    user message that begins with ``[COMPACT SUMMARY]``, the reply ``Understood.``, and the kept messages. If the first
    kept message is the model's and turns must alternate (Gemini), the reply is left out.

    Args:
        summarizer: The summarizer. Default: `summarizers.Extractive`.
        context_limit: The model's window; 0 if unknown, and then it never fires.
        threshold: The share to fire above, in (0, 1].
        critical: The share to fire from after a truncated answer, in (0, 1].
        preserve: The share that is kept, in [0, 1].
        of: Unit of ``preserve``: tokens or messages.
        prune_recent: Number of newest messages whose tool results stay. Before summarizing, tool results over 1,000
            characters in older messages are shortened; if that is enough, nothing is summarized.
        prompt: Prompt of a model; see `summarizers.Prompted`.
        summary_tokens: Room for the summary. Default: a tenth of the window, at most 4,000.
        mend: Whether facts missing from the summary are added to it.
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
    strategy: Strategy = Summarize(summarizer, keep, summary_tokens=room, prompt=prompt, mend=mend, may_grow=True)
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
        context_window=context_limit or None,
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

    Fires from ``floor((limit - reserves) * threshold)`` message tokens on, if there are more than
    ``keep_messages + 1`` messages. The result is the system message, a message of the model that begins with
    ``## Session Summary (Compaction Round N)`` (of the user, if a conversation must begin with the user), and the kept
    messages. Any failure leaves the messages unchanged.

    Args:
        summarizer: The summarizer. Default: `summarizers.Extractive`. Tool results over 10,000 characters are
            shortened to head and tail for it. A model gets the prompt of this preset (``form="session"`` of
            `summarizers.Prompted`), at temperature 0.3 if it accepts one.
        model_context_limit: The model's window; see `models.context_limit`. Only this preset has a default window.
        system_reserve: Tokens reserved for system prompt and tools.
        output_reserve: Tokens reserved for the answer.
        safety_buffer: Tokens reserved for the error of the estimate.
        threshold: The share of the remaining tokens, in (0, 1].
        keep_messages: The newest messages that stay verbatim.
        prompt: Prompt of a model; see `summarizers.Prompted`.
        summary_tokens: Room for the summary.
        mend: Whether facts missing from the summary are added to it.
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
    keep, writer = KeepMessages(keep_messages), _formed(summarizer, prompt, "session")
    strategy = Summarize(writer, keep, summary_tokens=summary_tokens, prompt=prompt, mend=mend, may_grow=True)
    strategy.summarizer = _Trimmed(strategy.summarizer)
    options.setdefault("max_output_tokens", output_reserve)
    shaped = Shaped(strategy, _SessionSummary())
    return _compactor(trigger, shaped, options, counter="utf16/4+2", context_window=model_context_limit)


def _formed(summarizer: Writer, prompt: str | None, form: Literal["document", "session"]) -> Writer:
    """The summarizer of a preset, with the headings of its seed: of a model without a prompt, or without a model."""
    if summarizer is None or (type(summarizer) is Extractive and summarizer.form is None):
        return Extractive(form)
    if prompt is not None or isinstance(summarizer, (Summarizer, AsyncSummarizer)):
        return summarizer
    return Prompted(summarizer, form=form) if isinstance(summarizer, ChatModel) else summarizer


def _room(summary_tokens: int | None, window: int) -> int:
    if summary_tokens is not None:
        return token_number(summary_tokens, "summary_tokens")
    return min(_MOST_SUMMARY_TOKENS, window // 10) if window else _MOST_SUMMARY_TOKENS


#: Options that the presets and the settings file name as the seeds do: the argument of `Compactor` for each.
_ARGUMENTS: Final = {"context_limit": "context_window", "max_output_tokens": "reserve_tokens"}
_OPTIONS: Final = {argument: option for option, argument in _ARGUMENTS.items()}


def _compactor(trigger: Trigger, strategy: Strategy, options: CompactorOptions, **defaults: Any) -> Compactor:
    """A compactor with a preset's defaults, overridden by the caller's options."""
    unknown = set(options) - CompactorOptions.__optional_keys__
    if unknown:
        raise ConfigError("unknown option", code="unknown_option", path=min(unknown))
    arguments = {_ARGUMENTS.get(name, name): value for name, value in {**defaults, **options}.items()}
    try:
        return Compactor(trigger, as_strategy(strategy), **arguments)
    except ConfigError as error:
        raise ConfigError(error.detail, code=error.code, path=_OPTIONS.get(error.path, error.path)) from None


# --- Shapes ---------------------------------------------------------------------------------------------


#: Dialects whose provider rejects two messages of the model in a row, with the role of the model.
_ALTERNATING = {"gemini": "model", "bedrock_converse": "assistant"}
#: Dialects whose provider requires a user message first.
_USER_FIRST = frozenset(_ALTERNATING) | {"anthropic"}


class _CompactSummary:
    """A tagged user message and the model's reply to it."""

    def messages(self, text: str, request: StrategyRequest, following: Message | None) -> Sequence[Message]:
        body = text.strip().removeprefix(COMPACT_SUMMARY).strip()
        told = message_of("user", f"{COMPACT_SUMMARY}\n{body}", request.format)
        answer = message_of("assistant", UNDERSTOOD, request.format)
        speaker = _ALTERNATING.get(request.format)
        is_models = speaker is not None and following is not None and following.get("role") == speaker
        return [told] if is_models else [told, answer]

    def text(self, message: Message) -> str | None:
        if message.get("role") != "user":
            return None
        return _behind(COMPACT_SUMMARY, text_of(message))

    def is_rest(self, message: Message) -> bool:
        return message.get("role") in ("assistant", "model") and text_of(message) == UNDERSTOOD


class _SessionSummary:
    """A message of the model with a heading that states the round."""

    #: The heading as models write it: at any level, with or without the round.
    HEADING = re.compile(r"\A#{1,6} Session Summary\b[^\n]*(\n|\Z)")

    def messages(self, text: str, request: StrategyRequest, following: Message | None) -> Sequence[Message]:
        del following
        heading = f"{SESSION_SUMMARY} (Compaction Round {request.round})"
        body = self.HEADING.sub("", text.strip(), count=1).strip()
        # These require a user message first.
        role = "user" if request.format in _USER_FIRST else "assistant"
        return [message_of(role, f"{heading}\n\n{body}", request.format)]

    def text(self, message: Message) -> str | None:
        if message.get("role") not in ("assistant", "model", "user"):
            return None
        text = text_of(message)
        return self.HEADING.sub("", text, count=1).strip() if text.startswith(SESSION_SUMMARY) else None

    def is_rest(self, message: Message) -> bool:
        # Only at Bedrock, whose blocks have no type, does a filler follow the summary.
        content = message.get("content")
        first = content[0] if isinstance(content, list) and content else None
        is_bedrock = isinstance(first, Mapping) and "type" not in first
        return is_bedrock and message.get("role") == "assistant" and text_of(message) == UNDERSTOOD


def _behind(mark: str, text: str) -> str | None:
    return text.removeprefix(mark).strip() if text.startswith(mark) else None


class _Trimmed:
    """A summarizer that sees huge tool results shortened."""

    def __init__(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        self.summarizer = summarizer
        self._clear = ClearToolResults(KeepMessages(0), min_chars=_HUGE_CHARS + 1, shorten_to_chars=_LEFT_OF_HUGE_CHARS)

    def __repr__(self) -> str:
        return repr(self.summarizer)

    def summarize(self, request: SummarizeRequest) -> Completion:
        return request_summary(self.summarizer, self._trimmed(request))

    async def asummarize(self, request: SummarizeRequest) -> Completion:
        return await arequest_summary(self.summarizer, self._trimmed(request))

    def _trimmed(self, request: SummarizeRequest) -> SummarizeRequest:
        asked = StrategyRequest(counter=TokenCounter("chars/4"), format=request.format)
        return dataclasses.replace(request, messages=self._clear.run(request.messages, asked).messages)
