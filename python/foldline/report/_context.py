"""What a session's context holds now, by category."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from foldline import _core
from foldline._core import TokenCounter
from foldline.counting import models
from foldline.errors import UnknownModelError
from foldline.report._steps import steps_of
from foldline.typing import CountKind, StoredTranscript

__all__ = ["CATEGORIES", "ContextNow", "context_now"]

#: Letters of the categories with their names.
CATEGORIES = {
    "R": "tool results",
    "C": "calls",
    "A": "assistant",
    "T": "thinking",
    "U": "user",
    "S": "summary",
    "P": "pictures",
    "F": "framing",
    "o": "not in file",
}


@dataclass(frozen=True, slots=True)
class ContextNow:
    """The context of the next request.

    Attributes:
        tokens: Its tokens: reported by the provider where the session recorded that, else counted.
        is_reported: Whether the provider reported them.
        window: The model's window, if known.
        model: The model, if known.
        kind: The kind of the counts by category.
        start: Index of its first message.
        parts: Tokens by letter of `CATEGORIES`.
    """

    tokens: int
    is_reported: bool
    window: int | None
    model: str | None
    kind: CountKind
    start: int
    parts: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The context as JSON-ready values."""
        named = {CATEGORIES[letter].replace(" ", "_"): tokens for letter, tokens in self.parts.items()}
        return {
            "tokens": self.tokens,
            "is_reported": self.is_reported,
            "context_window": self.window,
            "model": self.model,
            "kind": self.kind,
            "from_message": self.start,
            "parts": named,
        }


def context_now(transcript: StoredTranscript, counter: TokenCounter, window: int | None = None) -> ContextNow:
    """What the context holds now: what the newest compaction left, and the messages since. O(text)."""
    start, since, after, is_new = 0, 0, list[Any](), list[bool]()
    if transcript.compactions:
        whole = _core.prepare(transcript.messages, counter, tools=None, format=transcript.format)
        step = steps_of(transcript, whole)[-1]
        since, after, is_new = step.since.start, step.messages_after(transcript), step.is_new
        start = min([since, *step.stayed, *step.summaries])
    messages = [*after, *transcript.messages[since:]]
    prepared = _core.prepare(messages, counter, tools=None, format=transcript.format)
    outline = _core.outline(prepared, 80)
    summaries = {i for i, each in enumerate(is_new) if each} | set(prepared.summaries())
    tokens: list[int] = prepared.per_message.tolist()

    def counted(chosen: list[int]) -> dict[str, int]:
        return counter.count_messages([messages[i] for i in chosen], format=transcript.format).by_part

    others = [i for i in range(len(messages)) if i not in summaries]
    parts = counted(others)
    assistant = counted([i for i in others if outline[i][0] == "assistant"]).get("text", 0)
    text = parts.get("text", 0)
    found = {
        "R": parts.get("tool_result", 0),
        "C": parts.get("tool_call", 0),
        "A": min(assistant, text),
        "T": parts.get("reasoning", 0),
        "U": max(text - assistant, 0),
        "S": sum(tokens[i] for i in summaries),
        "P": parts.get("image", 0) + parts.get("unknown", 0),
    }
    total = prepared.total_tokens
    found["F"] = max(0, total - sum(found.values()))
    last = next((each for each in reversed(transcript.usage) if each.message >= since), None)
    reported = None if last is None else last.input_tokens + last.output_tokens
    if reported is not None and last is not None:
        reported += sum(tokens[len(after) + last.message + 1 - since :])
    if reported is not None and reported > total:
        found["o"] = reported - total
    model = next((each.model for each in reversed(transcript.usage) if each.model), None) or counter.model
    if window is None and model is not None:
        with contextlib.suppress(UnknownModelError):
            window = models.lookup(model).context_window
    return ContextNow(
        tokens=total if reported is None or reported < total else reported,
        is_reported=reported is not None and reported >= total,
        window=window,
        model=model,
        kind=prepared.kind,
        start=start,
        parts={letter: tokens for letter, tokens in found.items() if tokens},
    )
