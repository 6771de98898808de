"""Computes the state of the next request, by counting or from a transcript's own counts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from foldline import _core
from foldline._core import LiveSnapshot, LiveTranscript
from foldline.context.state import ContextState, Stats
from foldline.context.usage import ContextUsage, TokenBudget
from foldline.errors import ConfigError
from foldline.planning.opening import checked_system

if TYPE_CHECKING:
    from foldline._core import TokenCounter
    from foldline.typing import CountKind, FormatOption, Messages

__all__ = ["Live", "Requests", "Surroundings"]

#: Transcripts with their own counts.
Live: TypeAlias = LiveTranscript | LiveSnapshot

_LIVE = (LiveTranscript, LiveSnapshot)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of a request other than its messages: tool schemas, and the system prompt outside the messages."""

    tools: Messages | None = None
    system: str | Messages | None = None


class Requests:
    """Computes the states of requests.

    Args:
        counter: Token counter.
        around: The parts of a request other than its messages, for calls that give none.
        context_window: The model's window; if given, states have a budget.
        reserve_tokens: Tokens reserved for the answer in that budget.
        format: The dialect of lists of messages.
    """

    __slots__ = ("_around_tokens", "_context_window", "_counter", "_format", "_reserve_tokens", "around")

    def __init__(
        self,
        counter: TokenCounter,
        around: Surroundings,
        *,
        context_window: int | None,
        reserve_tokens: int,
        format: FormatOption,
    ) -> None:
        self.around = around
        self._counter = counter
        self._context_window = context_window
        self._reserve_tokens = reserve_tokens
        self._format: FormatOption = format
        self._around_tokens: dict[str, int] = {}

    def around_of(self, tools: Messages | None, system: object) -> Surroundings:
        """The given parts of a request, else the defaults.

        Raises:
            ConfigError: The system prompt is neither a text nor content blocks.
        """
        if tools is None and system is None:
            return self.around
        return Surroundings(
            self.around.tools if tools is None else tools,
            self.around.system if system is None else checked_system(system),
        )

    def state(
        self, messages: Messages | Live, given: ContextState | None, around: Surroundings
    ) -> tuple[ContextState, LiveSnapshot | None]:
        """The given state, with its missing values computed, and the counted messages if they had to be counted.

        A transcript's own counts are used, in O(1); the tokens around its messages are counted once per dialect. Lists
        of messages are counted, O(text).

        Raises:
            ConfigError: The given state is not a `ContextState`.
            MessageError: A message cannot be read.
        """
        known: object = given
        if known is not None and not isinstance(known, ContextState):
            raise ConfigError("must be a ContextState", code="bad_state", path="state")
        if isinstance(messages, _LIVE):
            return self._of_live(messages, given, around), None
        return self._of_messages(messages, ContextState() if given is None else given, around)

    def is_known(self, messages: Messages | Live, given: ContextState | None = None) -> bool:
        """Whether the state needs no counting."""
        return isinstance(messages, _LIVE) or (isinstance(given, ContextState) and self._is_whole(given))

    def prepare(self, messages: Messages | Live, around: Surroundings) -> LiveSnapshot:
        """The messages, read and counted with the parts around them; a transcript is used as it is."""
        return _core.prepare(
            messages, self._counter, tools=around.tools or (), system=around.system, format=self._format
        )

    def _is_whole(self, state: ContextState) -> bool:
        return state.tokens is not None and (state.budget is not None or self._context_window is None)

    def _of_messages(
        self, messages: Messages, state: ContextState, around: Surroundings
    ) -> tuple[ContextState, LiveSnapshot | None]:
        if state.message_count is None:
            state = dataclasses.replace(state, message_count=len(messages))
        if self._is_whole(state):
            return state, None
        prepared = self.prepare(messages, around)
        usage = state.usage or _made_usage(prepared.total_tokens, 0, prepared.total_tokens, prepared.kind)
        budget = state.budget
        if budget is None and self._context_window is not None:
            in_messages = max(0, usage.tokens - prepared.overhead)
            budget = TokenBudget(self._context_window, prepared.overhead, in_messages, self._reserve_tokens)
        return dataclasses.replace(state, usage=usage, budget=budget), prepared

    def _of_live(self, live: Live, given: ContextState | None, around: Surroundings) -> ContextState:
        is_whole = given is not None and self._is_whole(given)
        if given is not None and is_whole and given.message_count is not None:
            return given
        overhead_tokens = self._tokens_around(live.format, around)
        usage = None if given is None else given.usage
        if usage is None and not is_whole:
            total = overhead_tokens + live.total_tokens - live.overhead
            usage = _made_usage(total, 0, total, live.kind)
        budget = None if given is None else given.budget
        if budget is None and usage is not None and self._context_window is not None:
            in_messages = max(0, usage.tokens - overhead_tokens)
            budget = _made_budget(self._context_window, overhead_tokens, in_messages, self._reserve_tokens)
        return _made_state(given, usage, budget, len(live))

    def _tokens_around(self, format: FormatOption, around: Surroundings) -> int:
        """Tokens around the messages in a dialect; counted once for the defaults."""
        if around is not self.around:
            return self._counted_around(format, around)
        tokens = self._around_tokens.get(format)
        if tokens is None:
            tokens = self._around_tokens[format] = self._counted_around(format, around)
        return tokens

    def _counted_around(self, format: FormatOption, around: Surroundings) -> int:
        empty = _core.prepare([], self._counter, tools=around.tools, system=around.system, format=format)
        return empty.total_tokens


# Builds frozen dataclasses without their checks: the values are valid, and checking takes longer than deciding.

_new = object.__new__
_put = object.__setattr__


def _made_usage(tokens: int, usage_tokens: int, trailing_tokens: int, kind: CountKind) -> ContextUsage:
    made = _new(ContextUsage)
    _put(made, "tokens", tokens)
    _put(made, "usage_tokens", usage_tokens)
    _put(made, "trailing_tokens", trailing_tokens)
    _put(made, "kind", kind)
    return made


def _made_budget(context_window: int, system_tokens: int, message_tokens: int, reserve_tokens: int) -> TokenBudget:
    made = _new(TokenBudget)
    _put(made, "context_limit", context_window)
    _put(made, "system_tokens", system_tokens)
    _put(made, "message_tokens", message_tokens)
    _put(made, "max_output_tokens", reserve_tokens)
    return made


def _made_state(
    given: ContextState | None, usage: ContextUsage | None, budget: TokenBudget | None, count: int
) -> ContextState:
    made = _new(ContextState)
    _put(made, "usage", usage)
    _put(made, "budget", budget)
    if given is None:
        _put(made, "stats", Stats())
        _put(made, "iteration", 0)
        _put(made, "message_count", count)
        _put(made, "stop_reason", None)
        _put(made, "error", None)
        return made
    _put(made, "stats", given.stats)
    _put(made, "iteration", given.iteration)
    _put(made, "message_count", count if given.message_count is None else given.message_count)
    _put(made, "stop_reason", given.stop_reason)
    _put(made, "error", given.error)
    return made
