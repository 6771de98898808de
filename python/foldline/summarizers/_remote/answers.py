"""Assembles a model's answer and classifies its end: a complete text, or a specific error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from foldline.errors import SummaryError
from foldline.typing import Completion

__all__ = ["Answer", "ChatAnswer"]

#: Finish reasons of the providers, in lower case.
_ENDS = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("model_context_window_exceeded", "context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "content_filtered", "safety", "recitation", "prohibited_content"), "filter"),
    **dict.fromkeys(("blocklist", "spii", "language", "image_safety", "guardrail_intervened"), "filter"),
    **dict.fromkeys(("refusal", "refused"), "refusal"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call", "malformed_function_call"), "tool_call"),
    **dict.fromkeys(("unexpected_tool_call", "too_many_tool_calls"), "tool_call"),
}
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


class Answer:
    """An answer that arrives in one or more pieces.

    Attributes:
        texts: Pieces of text so far.
        refused: Whether the provider's refusal field was set.
        called_tool: Whether the model called a tool.
        end: The provider's finish reason; None until received.
        size: Characters of text, if counted.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.texts: list[str] = []
        self.refused = False
        self.called_tool = False
        self.end: str | None = None
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cache_read_tokens: int | None = None
        self.cache_write_tokens: int | None = None
        self.size = 0

    def add_text(self, text: object) -> None:
        """Adds text: a string, or parts, of which those with text count."""
        if isinstance(text, str):
            self.texts.append(text)
        elif isinstance(text, (list, tuple)):
            parts = [part for part in text if isinstance(part, Mapping) and part.get("type") in (None, "text")]
            self.texts += [part["text"] for part in parts if isinstance(part.get("text"), str)]

    def add_usage(self, input_tokens: object, output_tokens: object) -> None:
        """Sets the total tokens read and written; non-numbers are ignored."""
        if _is_count(input_tokens):
            self.input_tokens = input_tokens
        if _is_count(output_tokens):
            self.output_tokens = output_tokens

    def add_cache_usage(self, read_tokens: object, write_tokens: object = None) -> None:
        """Sets those of the tokens read that came from the provider's cache, or were written to it."""
        if _is_count(read_tokens):
            self.cache_read_tokens = read_tokens
        if _is_count(write_tokens):
            self.cache_write_tokens = write_tokens

    def end_with(self, reason: object) -> None:
        """Sets the finish reason."""
        if isinstance(reason, str) and reason:
            self.end = reason

    def completion(self) -> Completion:
        """The answer, if it is a complete text.

        Raises:
            SummaryError: A tool call (``tool_call``), a refusal (``refused``), withheld by a filter
                (``content_filter``), without a finish reason (``incomplete_stream``), cut off at the output limit
                (``incomplete_summary``), with an unknown finish reason (``unknown_finish_reason``), or without text
                (``empty_summary``).
        """
        end = _ENDS.get(self.end.lower().removeprefix("finishreason."), "unknown") if self.end else None
        if self.called_tool or end == "tool_call":
            raise SummaryError("the model called a tool instead of writing", code="tool_call")
        if self.refused or end == "refusal":
            raise SummaryError("the model refused", code="refused")
        if end == "filter":
            raise SummaryError("the provider's filter withheld the answer", code="content_filter")
        if end is None:
            raise SummaryError("the answer broke off without a finish reason", code="incomplete_stream")
        if end == "length":
            raise SummaryError("the answer was cut off at the output limit", code="incomplete_summary")
        if end == "unknown":
            raise SummaryError("the answer has an unknown finish reason", code="unknown_finish_reason")
        text = _LONE_SURROGATES.sub("\ufffd", "".join(self.texts))
        if not text.strip():
            raise SummaryError("the answer is empty", code="empty_summary")
        return Completion(
            text,
            self.model,
            self.input_tokens,
            self.output_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
        )


class ChatAnswer(Answer):
    """An answer in the chat completions format: one object, or the chunks of a stream."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._has_choice = False

    def add(self, piece: Mapping[str, Any]) -> None:
        """Adds a response or a chunk."""
        if isinstance(piece.get("model"), str) and piece["model"]:
            self.model = piece["model"]
        usage = piece.get("usage")
        if isinstance(usage, Mapping):
            self.add_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"))
            details = usage.get("prompt_tokens_details")
            if isinstance(details, Mapping):
                self.add_cache_usage(details.get("cached_tokens"))
        choices = piece.get("choices")
        for choice in choices if isinstance(choices, (list, tuple)) else ():
            if isinstance(choice, Mapping) and not choice.get("index"):
                self._has_choice = True
                self._add_choice(choice)

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        self.end_with(choice.get("finish_reason"))
        for message in (choice.get("message"), choice.get("delta")):
            if isinstance(message, Mapping):
                self.add_text(message.get("content"))
                self.refused = self.refused or bool(message.get("refusal"))
                self.called_tool = self.called_tool or bool(message.get("tool_calls") or message.get("function_call"))

    def completion(self) -> Completion:
        """As `Answer.completion`.

        Raises:
            SummaryError: Also if the answer has no choice (``no_choices``).
        """
        if not self._has_choice:
            raise SummaryError("the provider answered without a choice", code="no_choices")
        return super().completion()


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
