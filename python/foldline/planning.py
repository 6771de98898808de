"""Planning: how much stays, what happens to each message, what a provider would reject."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from foldline import _core
from foldline._core import Plan, TokenCounter
from foldline.errors import ConfigError
from foldline.typing import ORIGINS, Message, Messages, Origin, Pin, Problem

__all__ = [
    "FitTokens",
    "Infeasible",
    "Keep",
    "KeepFraction",
    "KeepIterations",
    "KeepMessages",
    "KeepTokens",
    "KeepTurns",
    "analyze",
    "as_counter",
    "plan",
    "validate",
]


def _whole(value: object, field: str) -> int:
    """A whole number from 0, or a `ConfigError` that names the field."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError("must be a whole number", code="bad_number", path=field) from None
    if number < 0:
        raise ConfigError("must not be negative", code="bad_number", path=field)
    if number >= 2**53:
        raise ConfigError("larger than any transcript", code="bad_number", path=field)
    return number


@dataclass(frozen=True, slots=True)
class _Counted:
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _whole(self.n, "n"))


@dataclass(frozen=True, slots=True)
class KeepTokens(_Counted):
    """At least ``n`` recent tokens stay verbatim; a turn larger than that is split."""


@dataclass(frozen=True, slots=True)
class KeepMessages(_Counted):
    """At least ``n`` recent messages stay verbatim."""


@dataclass(frozen=True, slots=True)
class KeepTurns(_Counted):
    """At least ``n`` recent turns stay verbatim."""


@dataclass(frozen=True, slots=True)
class KeepIterations(_Counted):
    """At least ``n`` recent groups (a call with its results, or a message alone) stay verbatim."""


@dataclass(frozen=True, slots=True)
class FitTokens(_Counted):
    """At most ``n`` tokens in all after folding; results are cleared and shortened where that is not enough."""


@dataclass(frozen=True, slots=True)
class KeepFraction:
    """At least the fraction ``f`` of what counts stays verbatim, ``of`` tokens or messages."""

    f: float
    of: Literal["tokens", "messages"] = "tokens"

    def __post_init__(self) -> None:
        f: object = self.f
        if isinstance(f, bool) or not isinstance(f, numbers.Real) or f != f:
            raise ConfigError("must be a number", code="bad_fraction", path="f")
        if not 0 <= self.f <= 1:
            raise ConfigError("must lie in [0, 1]", code="bad_fraction", path="f")
        if self.of not in ("tokens", "messages"):
            raise ConfigError("must be tokens or messages", code="bad_keep", path="of")


Keep: TypeAlias = KeepTokens | KeepFraction | KeepMessages | KeepTurns | KeepIterations | FitTokens

_KINDS: dict[type, str] = {
    KeepTokens: "tokens",
    KeepMessages: "messages",
    KeepTurns: "turns",
    KeepIterations: "iterations",
    FitTokens: "fit",
}


@dataclass(frozen=True, slots=True)
class Infeasible:
    """A budget that cannot be met: a result, not an exception. Falsy.

    Attributes:
        floor: The least that could be reached, in tokens.
        why: What stands in the way, in words without content.
    """

    floor: int
    why: str

    def __bool__(self) -> bool:
        return False


def as_counter(counter: TokenCounter | str | Callable[[str], int] | None) -> TokenCounter:
    """A counter from what callers may give: a counter, its name, a function; o200k_base without any."""
    if isinstance(counter, TokenCounter):
        return counter
    return TokenCounter("o200k_base" if counter is None else counter)


def plan(
    messages: Messages | bytes,
    keep: Keep | None = None,
    *,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
    window: int | None = None,
    reserve: int = 0,
    pins: Iterable[Pin] | Callable[[Message], bool] = (),
    importance: Mapping[int, float] | None = None,
    origins: Mapping[int, Origin] | None = None,
    summary_tokens: int = 0,
    tools: Messages | None = None,
    format: str = "auto",
) -> Plan | Infeasible:
    """Decides what happens to each message. Pure: nothing is changed, nothing is called but your counter.

    Args:
        messages: The messages, in their provider's form, or the bytes of a JSON array of them.
        keep: How much stays. Without it, what fits into ``window - reserve``.
        counter: A `TokenCounter`, its name, or a function from text to tokens; o200k_base without one.
        window: The model's context window in tokens; a keep larger than it is an error.
        reserve: Tokens of the window that are left for the answer.
        pins: Messages that stay verbatim with their whole group: indices, predicates over messages, or both.
        importance: Scores in [-10, 10] by index; from 10 on a message is pinned.
        origins: Origins by index; ``"compacted_synthetic"`` marks the summary of an earlier fold.
        summary_tokens: Tokens set aside for the summary; `FitTokens` counts them.
        tools: Tool schemas that are sent beside the messages; they count as overhead.
        format: ``"openai_chat"``, ``"openai_responses"``, ``"anthropic"``, ``"gemini"``, ``"pi"``, ``"ai_sdk"``,
            ``"langchain"``, ``"gent"``, or ``"auto"`` to judge by content (see `detect_format`).

    Returns:
        A `Plan`, falsy where nothing is to be done, or `Infeasible`.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.
        MessageError: A message cannot be read.
        LimitExceeded: A message is nested beyond 128 levels, or too large.

    Complexity: O(text) to count, O(messages) to plan.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": "word " * 40} for _ in range(4)]
        >>> plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4")
        >>> plan.cut, plan.actions
        (3, ['summarize', 'summarize', 'summarize', 'keep'])
    """
    kind, amount, of = _keep_arguments(resolved_keep(keep, window, reserve))
    answer = _core.plan(
        messages,
        as_counter(counter),
        kind,
        amount,
        of,
        summary_tokens=_whole(summary_tokens, "summary_tokens"),
        window=window,
        pins=pin_indices(messages, pins),
        importance=_scores(importance),
        summaries=_summaries(origins),
        tools=tools,
        format=format,
    )
    return Infeasible(*answer) if isinstance(answer, tuple) else answer


def resolved_keep(keep: Keep | None, window: int | None, reserve: int) -> Keep:
    """The keep; without one what fits into the window less the reserve. Checks window and reserve on the way."""
    if window is not None:
        window = _whole(window, "window")
        if _whole(reserve, "reserve") >= window:
            raise ConfigError("must be smaller than the window", code="reserve_over_window", path="reserve")
    elif reserve:
        raise ConfigError("a reserve needs a window", code="missing_window", path="reserve")
    if keep is not None:
        return keep
    if window is None:
        raise ConfigError("give a keep or a window", code="missing_keep", path="keep")
    return FitTokens(window - reserve)


def _keep_arguments(keep: Keep) -> tuple[str, float, str]:
    if isinstance(keep, KeepFraction):
        return "fraction", float(keep.f), keep.of
    kind = _KINDS.get(type(keep))
    if kind is None:
        raise ConfigError("not a keep", code="bad_keep", path="keep")
    return kind, float(keep.n), ""


def pin_indices(messages: Messages | bytes, pins: Iterable[Pin] | Callable[[Message], bool]) -> list[int]:
    """The pinned indices that pins of all kinds stand for."""
    found = []
    try:
        given = [pins] if callable(pins) else list(pins)
    except TypeError:
        raise ConfigError("must be indices or predicates", code="bad_pin", path="pins") from None
    for pin in given:
        if callable(pin):
            if isinstance(messages, bytes):
                raise ConfigError("a predicate needs messages, not bytes", code="bad_pin", path="pins")
            found += [i for i, message in enumerate(messages) if pin(message)]
        else:
            found.append(_whole(pin, "pins"))
    return found


def _scores(importance: Mapping[int, object] | None) -> list[tuple[int, float]]:
    """Scores that are numbers; anything else is neutral."""
    found = []
    for index, score in _items(importance, "importance"):
        if score is not True and score is not False and isinstance(score, numbers.Real):
            try:
                found.append((index, float(score)))
            except OverflowError:
                raise ConfigError("lies in [-10, 10]", code="bad_importance", path="importance") from None
    return found


def _summaries(origins: Mapping[int, Origin] | None) -> list[int]:
    """Indices of the summaries of earlier folds."""
    found = []
    for index, origin in _items(origins, "origins"):
        if origin not in ORIGINS:
            raise ConfigError(f"is one of {', '.join(ORIGINS)}", code="bad_origin", path="origins")
        if origin == "compacted_synthetic":
            found.append(index)
    return found


def _items(mapping: object, field: str) -> list[tuple[int, object]]:
    if mapping is None:
        return []
    if not isinstance(mapping, Mapping):
        raise ConfigError("must map indices to values", code="bad_mapping", path=field)
    return [(_whole(index, field), value) for index, value in mapping.items()]


def validate(messages: Messages | bytes, provider: str, *, format: str = "auto") -> list[Problem]:
    """What a provider's API would reject, in the order of the messages; empty where all is well.

    Args:
        messages: The messages.
        provider: ``"openai"``, ``"responses"``, ``"anthropic"`` or ``"gemini"``.
        format: The dialect, or ``"auto"``.

    Raises:
        ConfigError: The provider or format is unknown.
        MessageError: A message cannot be read.

    Examples:
        >>> import foldline as fl
        >>> fl.validate([{"role": "tool", "tool_call_id": "a", "content": "42"}], "openai")[0].code
        'result_without_call'
    """
    found = _core.validate(messages, provider, format)
    return [Problem(index, code, detail) for index, code, detail in found]


def analyze(messages: Messages | bytes, *, pins: Iterable[Pin] = (), format: str = "auto") -> dict[str, Any]:
    """How messages hang together.

    Returns:
        A dict: ``format``, ``head`` (number of leading messages that always stay), ``groups`` (lists of indices),
        ``turns`` (half-open ranges), ``open_calls`` and ``orphan_results`` (indices of their messages), ``summaries``
        (of earlier folds), ``legal_cuts``, ``lone_surrogates``.
    """
    return _core.analyze(messages, pin_indices(messages, pins), format)
