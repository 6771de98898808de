"""Computes the state of the next request, by counting or from a transcript's own counts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from foldline._core import LiveSnapshot, LiveTranscript
from foldline.context.state import ContextState, Stats
from foldline.context.usage import ContextUsage, TokenBudget
from foldline.errors import ConfigError

if TYPE_CHECKING:
    from foldline._core import TokenCounter
    from foldline.typing import Messages

__all__ = ["Live", "Requests", "messages_of"]

#: Transcripts with their own counts.
Live: TypeAlias = LiveTranscript | LiveSnapshot

_LIVE = (LiveTranscript, LiveSnapshot)


def messages_of(messages: Messages | Live) -> Messages:
    """The messages, or those of a transcript."""
    return messages.messages if isinstance(messages, _LIVE) else messages


class Requests:
    """Computes the states of one session's requests.

    Args:
        counter: Token counter.
        system: The system prompt, if it is outside the messages.
        tools: Tool schemas sent with the messages.
        context_window: The model's window; if given, states have a budget.
        reserve_tokens: Tokens reserved for the answer in that budget.
        format: The dialect of lists of messages.
    """

    __slots__ = ("_around", "_context_window", "_counter", "_format", "_reserve_tokens", "_system", "_tools")

    def __init__(
        self,
        counter: TokenCounter,
        *,
        system: str | None,
        tools: Messages | None,
        context_window: int | None,
        reserve_tokens: int,
        format: str,
    ) -> None:
        self._counter = counter
        self._system = system
        self._tools = tools
        self._context_window = context_window
        self._reserve_tokens = reserve_tokens
        self._format = format
        self._around: dict[str, int] = {}

    def state(self, messages: Messages | Live, given: ContextState | None = None) -> ContextState:
        """The given state, with its missing values computed.

        A transcript's own counts are used, in O(1); the tokens outside its messages (system prompt, tools, overhead of
        a request) are counted once per dialect. Lists of messages are counted, O(text).

        Raises:
            ConfigError: The given state is not a `ContextState`.
            MessageError: A message cannot be read.
        """
        known: object = given
        if known is not None and not isinstance(known, ContextState):
            raise ConfigError("must be a ContextState", code="bad_state", path="state")
        if isinstance(messages, _LIVE):
            return self._of_live(messages, given)
        return self._of_messages(messages, ContextState() if given is None else given)

    def is_known(self, messages: Messages | Live, given: ContextState | None = None) -> bool:
        """Whether the state needs no counting."""
        return isinstance(messages, _LIVE) or (isinstance(given, ContextState) and self._is_whole(given))

    def _is_whole(self, state: ContextState) -> bool:
        return state.tokens is not None and (state.budget is not None or self._context_window is None)

    def _of_messages(self, messages: Messages, state: ContextState) -> ContextState:
        if state.message_count is None:
            state = dataclasses.replace(state, message_count=len(messages))
        if self._is_whole(state):
            return state
        counted = ContextState.of(
            messages,
            counter=self._counter,
            system=self._system,
            tools=self._tools,
            context_window=self._context_window,
            reserve_tokens=self._reserve_tokens,
            format=self._format,
        )
        budget = state.budget or counted.budget
        if state.usage is not None and budget is not None:
            in_messages = max(0, state.usage.tokens - budget.system_tokens)
            budget = dataclasses.replace(budget, message_tokens=in_messages)
        return dataclasses.replace(state, usage=state.usage or counted.usage, budget=budget)

    def _of_live(self, live: Live, given: ContextState | None) -> ContextState:
        is_whole = given is not None and self._is_whole(given)
        if given is not None and is_whole and given.message_count is not None:
            return given
        format_ = live.format
        around = self._around.get(format_)
        if around is None:
            around = self._around[format_] = self._counted_around(format_)
        usage = None if given is None else given.usage
        if usage is None and not is_whole:
            total = around + live.total_tokens - live.overhead
            usage = _made_usage(total, 0, total, live.kind)
        budget = None if given is None else given.budget
        if budget is None and usage is not None and self._context_window is not None:
            in_messages = max(0, usage.tokens - around)
            budget = _made_budget(self._context_window, around, in_messages, self._reserve_tokens)
        return _made_state(given, usage, budget, len(live))

    def _counted_around(self, format: str) -> int:
        """Tokens outside the messages in a dialect."""
        lead = [{"role": "system", "content": self._system}] if self._system else []
        return self._counter.count_messages(lead, self._tools, format=format).total


# Builds frozen dataclasses without their checks: the values are valid, and checking takes longer than deciding.

_new = object.__new__
_put = object.__setattr__


def _made_usage(tokens: int, usage_tokens: int, trailing_tokens: int, kind: str) -> ContextUsage:
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
