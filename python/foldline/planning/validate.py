"""Validation against a provider's API, and the structure of messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foldline import _core
from foldline._core import LiveSnapshot, LiveTranscript
from foldline.planning.plan import listed, pin_indices
from foldline.typing import Messages, Pin, Problem

__all__ = ["analyze", "validate"]


def validate(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    provider: str,
    *,
    alternate: bool = False,
    single_system: bool = False,
    partial: bool = False,
    format: str = "auto",
) -> list[Problem]:
    """Problems that a provider's API would reject, in message order; empty if valid.

    Args:
        messages: The messages.
        provider: ``"openai"``, ``"responses"``, ``"anthropic"`` or ``"gemini"``.
        alternate: User and assistant must alternate, the user first, as chat templates of open models require. Calls,
            results with a role of their own, reasoning and system messages are skipped.
        single_system: At most one system message is allowed, as the first.
        partial: Responses: earlier items are stored at the provider (``previous_response_id``), so outputs may answer
            calls that are not in the list.
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
        listed(messages), provider, alternate=alternate, single_system=single_system, partial=partial, format=format
    )
    return [Problem(index, code, detail) for index, code, detail in found]


def analyze(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot, *, pins: Iterable[Pin] = (), format: str = "auto"
) -> dict[str, Any]:
    """The structure of messages: groups, turns, calls and legal cuts.

    Returns:
        A dict: ``format``, ``head`` (number of leading messages that always stay), ``groups`` (lists of indices),
        ``turns`` (half-open ranges), ``open_calls`` and ``orphan_results`` (indices of their messages), ``summaries``
        (of earlier folds), ``legal_cuts``, ``lone_surrogates``.
    """
    given = listed(messages)
    return _core.analyze(given, pin_indices(given, pins), format)
