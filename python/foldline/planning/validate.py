"""Validation against a provider's API, and the structure of messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foldline import _core
from foldline._core import LiveSnapshot, LiveTranscript
from foldline.planning.plan import listed, pin_indices
from foldline.typing import Format, FormatOption, Messages, Pin, Problem, Provider

__all__ = ["Analysis", "analyze", "validate"]


def validate(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    provider: Provider,
    *,
    alternate: bool = False,
    single_system: bool = False,
    partial: bool = False,
    allow_prefill: bool = True,
    format: FormatOption = "auto",
) -> list[Problem]:
    """Problems that a provider's API would reject, in message order; empty if valid.

    Args:
        messages: The messages.
        provider: ``"openai"``, ``"responses"``, ``"anthropic"``, ``"gemini"``, ``"bedrock"``, ``"mistral"`` or
            ``"cohere"``.
        alternate: User and assistant must alternate, the user first, as chat templates of open models require. Calls,
            results with a role of their own, reasoning and system messages are skipped.
        single_system: At most one system message is allowed, as the first.
        partial: Responses: earlier items are stored at the provider (``previous_response_id``), so outputs may answer
            calls that are not in the list.
        allow_prefill: The last message may be the assistant's, for the model to go on with. False for models that
            refuse it; a paused turn of Anthropic may end the list in either case.
        format: The dialect, or ``"auto"``.

    Raises:
        ConfigError: The provider or format is unknown.
        MessageError: A message cannot be read.

    Examples:
        >>> import foldline as fl
        >>> fl.validate([{"role": "tool", "tool_call_id": "a", "content": "42"}], "openai")[0].code
        'result_without_call'
    """
    found = _core.validate(
        listed(messages),
        provider,
        alternate=alternate,
        single_system=single_system,
        partial=partial,
        allow_prefill=allow_prefill,
        format=format,
    )
    return [Problem(index, code, detail) for index, code, detail in found]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The structure of messages.

    Attributes:
        format: Their dialect.
        head: Number of leading messages that always stay.
        groups: Messages kept or removed together, as lists of indices.
        turns: Half-open ranges, each from one user message to the next.
        open_calls: Messages with calls that are not answered.
        orphan_results: Messages with results that answer no call.
        summaries: Summaries of earlier folds.
        legal_cuts: Legal cuts, ascending.
        lone_surrogates: Messages with half of a UTF-16 pair.
    """

    format: Format
    head: int
    groups: list[list[int]]
    turns: list[tuple[int, int]]
    open_calls: list[int]
    orphan_results: list[int]
    summaries: list[int]
    legal_cuts: list[int]
    lone_surrogates: list[int]


def analyze(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    *,
    pins: Iterable[Pin] = (),
    format: FormatOption = "auto",
) -> Analysis:
    """The structure of messages: groups, turns, calls and legal cuts. O(text).

    Raises:
        ConfigError: The format is unknown, or a pin is out of range.
        MessageError: A message cannot be read.

    Examples:
        >>> import foldline as fl
        >>> found = fl.analyze([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}])
        >>> found.head, found.turns, found.legal_cuts
        (1, [(1, 2)], [0, 1, 2])
    """
    given = listed(messages)
    pinned, matched = pin_indices(given, pins)
    return Analysis(**_core.analyze(given, [*pinned, *matched], format))
