"""Context usage: the token budget, the provider's report, and the tokens counted since."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foldline._core import COUNT_KINDS, TokenCounter
from foldline._util.checks import token_number
from foldline.context.calibration import Calibration
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError
from foldline.planning.detect import dialect_for
from foldline.typing import CountKind, FormatOption, Message, Messages

__all__ = ["Calibration", "ContextUsage", "TokenBudget", "read_and_written", "reported_tokens"]


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How the tokens of a context window are spent.

    Args:
        context_limit: The model's window.
        system_tokens: Tokens of the system prompt.
        message_tokens: Tokens of the messages.
        max_output_tokens: Tokens reserved for the answer.

    Raises:
        ConfigError: A number is negative or not whole; ``path`` names it.

    Examples:
        >>> budget = TokenBudget(200_000, 3_616, 150_000, 16_384)
        >>> budget.available, round(budget.utilization, 3), budget.is_overflow
        (30000, 0.833, False)
    """

    context_limit: int
    system_tokens: int
    message_tokens: int
    max_output_tokens: int

    def __post_init__(self) -> None:
        for field in ("context_limit", "system_tokens", "message_tokens", "max_output_tokens"):
            object.__setattr__(self, field, token_number(getattr(self, field), field))

    @property
    def room(self) -> int:
        """Tokens available to messages; negative if system prompt and answer exceed the window."""
        return self.context_limit - self.system_tokens - self.max_output_tokens

    @property
    def available(self) -> int:
        """Remaining tokens; negative after an overflow."""
        return self.room - self.message_tokens

    @property
    def utilization(self) -> float:
        """Message tokens divided by the room for them; above 1 exactly on overflow.

        Without room the quotient would be negative or undefined, and no threshold would ever be exceeded: then it is
        infinite, or 0 if both room and messages are 0.
        """
        if self.room > 0:
            return self.message_tokens / self.room
        return math.inf if self.is_overflow else 0.0

    @property
    def is_overflow(self) -> bool:
        """Whether the budget is exceeded."""
        return self.available < 0


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """Tokens in the context: those of the provider's last report, and those counted since.

    Attributes:
        tokens: The sum.
        usage_tokens: Tokens of the provider's last report: the request and the response.
        trailing_tokens: Counted tokens of the messages since.
        kind: Accuracy of ``tokens``, as counters give it: ``"exact"``, ``"reconstructed"``, ``"calibrated"`` or
            ``"estimated"``.
    """

    tokens: int
    usage_tokens: int
    trailing_tokens: int
    kind: CountKind = "estimated"

    def __post_init__(self) -> None:
        for field in ("tokens", "usage_tokens", "trailing_tokens"):
            object.__setattr__(self, field, token_number(getattr(self, field), field))
        if self.kind not in COUNT_KINDS:
            raise ConfigError(f"must be one of {', '.join(COUNT_KINDS)}", code="bad_kind", path="kind")

    @classmethod
    def from_messages(
        cls,
        messages: Messages,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        usage: int | Mapping[str, Any] | None = None,
        usage_index: int | None = None,
        calibration: Calibration | None = None,
        *,
        format: FormatOption = "auto",
    ) -> ContextUsage:
        """The usage of a conversation.

        Args:
            messages: All messages.
            counter: Token counter for unreported messages. Default: ``"chars/4"``.
            usage: Usage reported with the last response: its total, or the usage object (see `reported_tokens`).
                Without it, everything is counted, including the overhead of the request.
            usage_index: Index of this response. Default: the last message of the model.
            calibration: Corrects counted tokens.
            format: The dialect of the messages, or ``"auto"``.

        Raises:
            ConfigError: The index is out of range, or the usage is invalid.
            MessageError: A message cannot be read.

        Complexity: O(messages) to find the dialect, O(text) of the messages after the response.

        Examples:
            >>> messages = [
            ...     {"role": "user", "content": "Read the log."},
            ...     {"role": "assistant", "content": "Which one?"},
            ...     {"role": "user", "content": "The newest, in /var/log."},
            ... ]
            >>> ContextUsage.from_messages(messages, usage={"prompt_tokens": 11, "completion_tokens": 3})
            ContextUsage(tokens=20, usage_tokens=14, trailing_tokens=6, kind='estimated')
        """
        if usage is None:
            if usage_index is not None:
                raise ConfigError("usage_index needs usage", code="missing_usage", path="usage")
            reported, trailing = 0, messages
        else:
            reported = reported_tokens(usage)
            trailing = messages[_response(messages, usage_index) + 1 :]
        kind: CountKind = "exact"
        counted = 0
        if trailing or usage is None:
            dialect = dialect_for(messages, format)
            counts = as_counter("chars/4" if counter is None else counter).count_messages(trailing, format=dialect)
            counted = int(counts.per_message.sum()) + (counts.overhead if usage is None else 0)
            kind = counts.kind
            if calibration is not None and calibration.samples:
                counted, kind = calibration.apply(counted, messages=len(trailing)), "calibrated"
        return cls(reported + counted, reported, counted, kind)


def _response(messages: Sequence[Message], index: int | None) -> int:
    """Index of the last response."""
    if index is not None:
        if token_number(index, "usage_index") >= len(messages):
            raise ConfigError("no such message", code="bad_index", path="usage_index")
        return index
    for at in range(len(messages) - 1, -1, -1):
        if _is_of_the_model(messages[at]):
            return at
    raise ConfigError("no message is the model's; give the index", code="bad_index", path="usage_index")


_OF_THE_MODEL = ("reasoning", "ai", "AIMessageChunk")


def _is_of_the_model(message: Message) -> bool:
    """Whether the model wrote a message, by role, or by type (items of Responses, LangChain)."""
    kind = message.get("type")
    is_item = "role" not in message and isinstance(kind, str) and (kind.endswith("_call") or kind in _OF_THE_MODEL)
    return is_item or message.get("role") in ("assistant", "model")


#: Fields of a usage that add up to its total: OpenAI chat; Anthropic and OpenAI Responses; Gemini (twice); pi.
_PARTS = (
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"),
    ("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"),
    ("prompt_token_count", "tool_use_prompt_token_count", "candidates_token_count", "thoughts_token_count"),
    ("input", "cacheRead", "cacheWrite", "output"),
)
#: The fields for output tokens.
_WRITTEN = frozenset(
    (
        *("completion_tokens", "output_tokens", "output", "candidatesTokenCount", "thoughtsTokenCount"),
        *("candidates_token_count", "thoughts_token_count"),
    )
)
_TOTALS = ("total_tokens", "totalTokenCount", "total_token_count", "totalTokens")


def reported_tokens(usage: int | Mapping[str, Any]) -> int:
    """The tokens of a request with its response, from a provider's usage report.

    Reads the usage of OpenAI (chat and Responses), Anthropic, Gemini and pi, as dicts; a whole number is returned as
    it is. Uses the total if present, else the sum of the parts (Anthropic reports cached input separately).

    Raises:
        ConfigError: The usage has another form.

    Examples:
        >>> reported_tokens({"input_tokens": 9, "cache_read_input_tokens": 1_000, "output_tokens": 50})
        1059
    """
    if not isinstance(usage, Mapping):
        return token_number(usage, "usage")
    for name in _TOTALS:
        if usage.get(name) is not None:
            return token_number(usage[name], f"usage.{name}")
    for names in _PARTS:
        if usage.get(names[0]) is not None:
            return sum(token_number(usage[name], f"usage.{name}") for name in names if usage.get(name) is not None)
    raise ConfigError("not a usage of a known provider", code="bad_usage", path="usage")


def read_and_written(usage: int | Mapping[str, Any] | None) -> tuple[int | None, int | None]:
    """Tokens that the model read and wrote; None if the usage does not separate them.

    Examples:
        >>> read_and_written({"input_tokens": 9, "cache_read_input_tokens": 1_000, "output_tokens": 50})
        (1009, 50)
    """
    if isinstance(usage, Mapping):
        for names in _PARTS:
            if usage.get(names[0]) is not None:
                found = {n: token_number(usage[n], f"usage.{n}") for n in names if usage.get(n) is not None}
                written = sum(count for name, count in found.items() if name in _WRITTEN)
                return sum(found.values()) - written, written
    return None, None
