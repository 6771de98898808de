"""Plans a fold: the action for each message, and the pinned messages."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from foldline import _core
from foldline._core import LiveSnapshot, LiveTranscript, Plan, TokenCounter
from foldline._util.checks import message_index, whole_number
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError
from foldline.planning.keeps import FitTokens, Keep, checked_keep, resolved_keep
from foldline.planning.opening import checked_system
from foldline.typing import ORIGINS, FormatOption, Message, Messages, Metadata, Origin, Pin, Thinking, UnchangedReason

__all__ = ["ByMetadata", "Infeasible", "Pins", "plan"]


@dataclass(frozen=True, slots=True)
class Infeasible:
    """A budget that cannot be met: a result, not an exception. Falsy.

    Attributes:
        floor: The fewest tokens that could be reached.
        why: The obstacle, in words without content.
        cut: 0: nothing is folded.
        feasible: False.
    """

    floor: int
    why: str
    cut: ClassVar[Literal[0]] = 0
    feasible: ClassVar[Literal[False]] = False

    def __bool__(self) -> Literal[False]:
        return False


@dataclass(frozen=True, slots=True)
class ByMetadata:
    """A pin by metadata: pins the messages for whose metadata ``predicate`` is true.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": "word " * 40} for _ in range(4)]
        >>> known = {1: {"tags": ["spec"]}}
        >>> pin = fl.planning.ByMetadata(lambda about: "spec" in about["tags"])
        >>> fl.plan(messages, fl.KeepMessages(1), counter="chars/4", pins=[pin], metadata=known).actions
        ['summarize', 'pin', 'summarize', 'keep']
    """

    predicate: Callable[[Metadata], bool]


#: Pinned messages: indices, predicates over messages or their metadata, or one predicate.
Pins: TypeAlias = "Iterable[Pin | ByMetadata] | Callable[[Any], bool] | ByMetadata"


def plan(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    keep: Keep | None = None,
    *,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
    context_window: int | None = None,
    reserve_tokens: int = 0,
    pins: Pins = (),
    importance: Mapping[int, float] | None = None,
    origins: Mapping[int, Origin] | None = None,
    metadata: Mapping[int, Metadata] | None = None,
    summary_tokens: int = 0,
    min_gain_tokens: int = 0,
    thinking: Thinking = "keep",
    tools: Messages | None = None,
    system: str | Messages | None = None,
    format: FormatOption = "auto",
) -> Plan | Infeasible:
    """Decides the action for each message.

    Pure: changes nothing, and calls only your counter and predicates.

    Args:
        messages: The messages in their provider's form, the bytes of a JSON array of them, or a `Transcript`, of which
            nothing is read or counted again.
        keep: How much stays. Default: the most that fits into ``context_window - reserve_tokens``.
        counter: Token counter, its name, or a function from text to tokens. Default: `o200k_base`.
        context_window: The model's context window in tokens; a keep larger than it is an error.
        reserve_tokens: Tokens of the window reserved for the answer.
        pins: Messages that stay verbatim with their whole group: indices, predicates over messages, `ByMetadata`, or
            several of these.
        importance: Scores in [-10, 10] by index; a score of 10 pins the message.
        origins: Origins by index; ``"compacted_synthetic"`` marks the summary of an earlier fold.
        metadata: Facts about messages, by index: mappings in which ``"pinned"`` (true), ``"importance"`` and
            ``"origin"`` act as the options of these names, which override them; `ByMetadata` reads the other keys.
        summary_tokens: Tokens reserved for the summary; `FitTokens` counts them.
        min_gain_tokens: If folding would save fewer tokens, nothing is folded and the plan has the warning
            ``gain_too_small``; 0 disables the check. An exceeded budget (`FitTokens`) is met all the same.
        thinking: Treatment of thinking that stays after a summary or a cleared result. Newer models of Anthropic bind
            thinking to everything before it and reject the request. ``"keep"``: it stays, the warning
            ``thinking_bound`` names the first message and `Plan.request_fields` the field with which the provider drops
            it. ``"strip"``: it is removed from the kept messages (pinned ones too), except from the latest message of
            the model within a tool loop, whose thinking must not change. ``"fold"``: the cut moves on until no kept
            thinking follows it, so that less stays than the keep requests; if no such cut exists
            (``thinking_blocks_fold`` names the message), nothing is folded, or under `FitTokens` the fold is as with
            ``"keep"``.
        tools: Tool schemas sent with the messages; they count as overhead.
        system: The system prompt, if it is outside the messages: a text, or content blocks of the dialect. It counts as
            overhead, as a leading system message would, and is never inserted.
        format: ``"openai_chat"``, ``"openai_responses"``, ``"anthropic"``, ``"gemini"``, ``"pi"``, ``"ai_sdk"``,
            ``"langchain"``, ``"gent"``, ``"sharegpt"``, ``"bedrock_converse"``, ``"ai_sdk_ui"``, ``"mistral"``,
            ``"cohere"``, or ``"auto"`` to detect it by
            content (see `detect_format`).

    Returns:
        A `Plan`, falsy if nothing is to be done, or `Infeasible`.

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
    options = plan_options(
        listed(messages),
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
    if isinstance(messages, (LiveTranscript, LiveSnapshot)):
        own = None if counter is None else as_counter(counter)
        prepared = _core.prepare(messages, own, tools=tools, system=checked_system(system), format=format)
        return answered(prepared.make_plan(options))
    return answered(
        _core.plan(messages, as_counter(counter), options, tools=tools, system=checked_system(system), format=format)
    )


@dataclass(slots=True)
class PlanOptions:
    """The options of a plan, checked, as the core reads them."""

    keep: Keep
    summary_tokens: int
    context_window: int | None
    min_gain_tokens: int
    thinking: Thinking
    pins: list[int]
    matched_pins: list[int]
    importance: list[tuple[int, float]]
    summaries: list[int]


def plan_options(
    messages: Iterable[Message] | bytes,
    keep: Keep | None = None,
    *,
    context_window: int | None = None,
    reserve_tokens: int = 0,
    pins: Pins = (),
    importance: Mapping[int, float] | None = None,
    origins: Mapping[int, Origin] | None = None,
    metadata: Mapping[int, Metadata] | None = None,
    summary_tokens: int = 0,
    min_gain_tokens: int = 0,
    thinking: Thinking = "keep",
) -> PlanOptions:
    """Checks the options of `plan`; reads ``messages`` only if a pin is a predicate.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.
    """
    keep = resolved_keep(keep, context_window, reserve_tokens)
    checked_keep(keep)
    if not isinstance(thinking, str):
        raise ConfigError("must be one of keep, strip, fold", code="bad_thinking", path="thinking")
    known = {} if metadata is None else _checked_metadata(metadata)
    has_pins = bool(known) or not (isinstance(pins, tuple) and not pins)
    return PlanOptions(
        keep,
        whole_number(summary_tokens, "summary_tokens"),
        context_window,
        whole_number(min_gain_tokens, "min_gain_tokens"),
        thinking,
        *(pin_indices(messages, pins, known) if has_pins else ([], [])),
        _scores(_overlaid(known, "importance", importance)) if known or importance is not None else [],
        _summaries(_overlaid(known, "origin", origins, "origins")) if known or origins is not None else [],
    )


def listed(messages: Messages | bytes | LiveTranscript | LiveSnapshot) -> Messages | bytes:
    """The list of messages, or that of the transcript."""
    return messages.messages if isinstance(messages, (LiveTranscript, LiveSnapshot)) else messages


def answered(answer: Plan | tuple[int, str]) -> Plan | Infeasible:
    """The plan, or an `Infeasible` from its floor and reason."""
    return Infeasible(*answer) if isinstance(answer, tuple) else answer


def unchanged_reason(planned: Plan, keep: Keep) -> UnchangedReason:
    """Why a plan changes nothing: ``fits``, ``no_gain``, ``gain_too_small``, ``keep_unmet`` or ``nothing_to_fold``."""
    reasons = set(planned.reasons)
    if isinstance(keep, FitTokens) and "no_gain" not in reasons:
        return "fits"
    found: tuple[UnchangedReason, ...] = ("no_gain", "gain_too_small", "keep_unmet")
    return next((reason for reason in found if reason in reasons), "nothing_to_fold")


def pin_indices(
    messages: Iterable[Message] | bytes,
    pins: Pins,
    metadata: Mapping[int, Metadata] | None = None,
) -> tuple[list[int], list[int]]:
    """The messages pinned by index, and those matched by a predicate, of which summaries are not pinned."""
    known = metadata or {}
    matched: list[int] = []
    found = [index for index, about in known.items() if about.get("pinned") is True]
    try:
        given = [pins] if callable(pins) or isinstance(pins, ByMetadata) else list(pins)
    except TypeError:
        raise ConfigError("must be indices or predicates, such as pins=[index]", code="bad_pin", path="pins") from None
    for pin in given:
        if isinstance(pin, ByMetadata):
            found += [index for index, about in known.items() if pin.predicate(about)]
        elif callable(pin):
            if isinstance(messages, bytes):
                raise ConfigError("a predicate needs messages, not bytes", code="bad_pin", path="pins")
            matched += [i for i, message in enumerate(messages) if pin(message)]
        else:
            found.append(_pinned_index(pin))
    return found, matched


def _pinned_index(pin: object) -> int:
    if isinstance(pin, Mapping):
        raise ConfigError("a message is pinned by its index or a predicate", code="bad_number", path="pins")
    return message_index(pin, "pins")


def _checked_metadata(metadata: object) -> dict[int, Metadata]:
    """Metadata by index, checked."""
    found: dict[int, Metadata] = {}
    for index, about in _items(metadata, "metadata"):
        if not isinstance(about, Mapping):
            raise ConfigError("must map indices to mappings", code="bad_mapping", path="metadata")
        found[index] = about
    return found


def _overlaid(known: Mapping[int, Metadata], key: str, given: object, field: str | None = None) -> Mapping[int, Any]:
    """A value for each message by index: the given one, else that of its metadata."""
    found = {index: about[key] for index, about in known.items() if key in about}
    return found | dict(_items(given, field or key))


def _scores(importance: Mapping[int, object] | None) -> list[tuple[int, float]]:
    """Numeric scores; other values are skipped, which leaves the message neutral."""
    found = []
    for index, score in _items(importance, "importance"):
        if score is not True and score is not False and isinstance(score, numbers.Real):
            try:
                found.append((index, float(score)))
            except OverflowError:
                raise ConfigError("must lie in [-10, 10]", code="bad_importance", path="importance") from None
    return found


def _summaries(origins: Mapping[int, Origin] | None) -> list[int]:
    """Indices of the summaries of earlier folds."""
    found = []
    for index, origin in _items(origins, "origins"):
        if origin not in ORIGINS:
            raise ConfigError(f"must be one of {', '.join(ORIGINS)}", code="bad_origin", path="origins")
        if origin == "compacted_synthetic":
            found.append(index)
    return found


def _items(mapping: object, field: str) -> list[tuple[int, object]]:
    if mapping is None:
        return []
    if not isinstance(mapping, Mapping):
        raise ConfigError("must map indices to values", code="bad_mapping", path=field)
    return [(message_index(index, field), value) for index, value in mapping.items()]
