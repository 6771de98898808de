"""Stop reasons of answers, in the providers' own words."""

from __future__ import annotations

__all__ = ["is_max_tokens_stop", "is_window_stop"]

#: OpenAI chat; Anthropic, Gemini (in capitals), Bedrock; OpenAI Responses; Mistral.
_MAX_TOKENS = {"length", "max_tokens", "max_output_tokens", "model_length"}
#: Anthropic, Bedrock: the answer filled the window.
_WINDOW = {"model_context_window_exceeded", "context_window_exceeded"}


def _word(stop_reason: str | None) -> str:
    return stop_reason.lower().removeprefix("finishreason.") if isinstance(stop_reason, str) else ""


def is_max_tokens_stop(stop_reason: str | None) -> bool:
    """Whether an answer ended at its token limit.

    Examples:
        >>> is_max_tokens_stop("length"), is_max_tokens_stop("MAX_TOKENS"), is_max_tokens_stop("end_turn")
        (True, True, False)
    """
    return _word(stop_reason) in _MAX_TOKENS or is_window_stop(stop_reason)


def is_window_stop(stop_reason: str | None) -> bool:
    """Whether an answer ended because the context window was full."""
    return _word(stop_reason) in _WINDOW
