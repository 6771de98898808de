"""Builds the prompts of one summary, and splits them if they exceed the model's window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foldline import _core
from foldline._core import RangeEvidence
from foldline.errors import SummaryError
from foldline.summarizers._evidence import evidence_of
from foldline.summarizers._prompt.blocks import SEPARATOR, Block, block_of, cut, fitted
from foldline.summarizers._prompt.fencing import Fence, escaped
from foldline.summarizers._prompt.prompts import (
    AGAIN,
    FACTS_SECTION,
    TASK_SECTION,
    Form,
    Kind,
    custom_version,
    filled,
    messages_for,
    words_for,
)
from foldline.summarizers.rendering import text_of
from foldline.typing import SummarizeRequest

__all__ = ["ModelCall", "OutputBudget", "Prompt", "PromptTexts"]

#: Characters of the original task quoted in a prompt.
_TASK_CHARS = 4_000
#: Facts listed in a prompt: their share of the summary's limit, and their maximum in tokens.
_FACTS_SHARE, _MOST_FACTS_TOKENS = 0.5, 1_000
#: Tokens reserved for the framing of a request.
_AROUND_TOKENS = 16
#: Maximum tokens of a part's label and the line around it, and the least tokens of a part.
_LABEL_TOKENS, _LEAST_PART_TOKENS = 16, 32
_FIRST = "None (first compaction)."


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """The texts of a summarizer's prompts.

    Attributes:
        form: The built-in prompt.
        template: Custom prompt in place of the form.
        instructions: Instructions for every summary.
        focus: Topic that every summary treats in most detail.
        has_system: Whether the model accepts a system message.
    """

    form: Form
    template: str | None = None
    instructions: str | None = None
    focus: str | None = None
    has_system: bool = True

    @property
    def version(self) -> str:
        """The prompt version."""
        return self.form.version if self.template is None else custom_version(self.template)


@dataclass(frozen=True, slots=True)
class OutputBudget:
    """The output budget of a call, in tokens.

    Attributes:
        most: The enforced limit.
        target: The limit named in the prompt.
    """

    most: int
    target: int


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model.

    Attributes:
        messages: The messages to send.
        room: The output budget.
        request: The tool schemas and the system prompt to send with them, if they are the agent's own request; the
            model must call no tool.
    """

    messages: list[Any]
    room: OutputBudget
    request: Mapping[str, Any] = field(default_factory=dict)

    def again(self, why: str) -> ModelCall:
        """The same call with the reason for the retry. The rejected answer is not included."""
        *others, last = self.messages
        return replace(self, messages=[*others, {**last, "content": f"{last['content']}{AGAIN}{why}"}])


class Prompt:
    """The prompts of one request. All text from the conversation is fenced.

    Raises:
        SummaryError: The request's ``redact`` failed; nothing was sent.
    """

    def __init__(self, words: PromptTexts, request: SummarizeRequest) -> None:
        self.words = words
        self.request = request
        self._evidence: RangeEvidence | None = None
        earlier = set(request.previous)
        self.blocks: list[Block] = [
            block_of(request.messages[i], i, request.redact, numbers=request.numbers)
            for i in request.folded
            if i not in earlier
        ]
        self._previous = self._redacted(request.previous_summary)
        self._instructions = self._spoken()
        self._task = self._original_task()

    def _redacted(self, text: str | None) -> str | None:
        redact = self.request.redact
        return text if not text or redact is None else redact(text)

    def _spoken(self) -> str:
        """The caller's instructions and focus, as lines of the prompt."""
        focus, request = self._redacted(self.words.focus), self.request
        wanted = [self._redacted(each) for each in (self.words.instructions, request.instructions)]
        lines = [f"- Mind this above all: {each}\n" for each in wanted if each]
        return "".join([*lines, f"- Be most detailed about this: {focus}\n" if focus else ""])

    def _original_task(self) -> str:
        """The first user message; empty if an earlier summary or a kept message contains it."""
        request = self.request
        if request.previous_summary or request.part == "turn_prefix":
            return ""
        roles = ((i, each.get("role") or each.get("type")) for i, each in enumerate(request.messages))
        first = next((i for i, role in roles if role in ("user", "human")), None)
        if first is None:
            return ""
        # If pinned or kept, the agent still sees the message, so it is not repeated.
        if not any(block.index == first for block in self.blocks):
            return ""
        return cut(self._redacted(text_of(request.messages[first])) or "", _TASK_CHARS, 0.25)

    # --- Sizes -------------------------------------------------------------------------------------------

    def tokens(self, messages: Sequence[dict[str, str]]) -> int:
        """Tokens of a request, by the caller's counter."""
        return _AROUND_TOKENS + sum(self.request.count(message["content"]) for message in messages)

    def again_tokens(self, why: str) -> int:
        """Maximum tokens that a retry adds."""
        return self.request.count(AGAIN + why) + _LABEL_TOKENS

    def price(self, text: str) -> int:
        """Tokens of a text after escaping."""
        return self.request.count(escaped(text))

    def sizes(self) -> list[int]:
        """Tokens of each message as sent; 0 for messages not sent."""
        sizes = [0] * len(self.request.messages)
        for block in self.blocks:
            sizes[block.index] = self.request.count(block.text(self.words.form.limits) + SEPARATOR)
        return sizes

    def chunks(self, max_tokens: int) -> list[list[Block]]:
        """The blocks in runs of at most ``max_tokens`` each, split at legal cuts."""
        by_index = {block.index: block for block in self.blocks}
        divide = self.request.split or self._split
        chunks = [[by_index[i] for i in part if i in by_index] for part in divide(max_tokens, self.sizes())]
        return [chunk for chunk in chunks if chunk]

    def _split(self, max_tokens: int, sizes: Sequence[int]) -> list[list[int]]:
        """`SummarizeRequest.split` for a request without a plan."""
        request = self.request
        legal = set(_core.analyze(request.messages, [], request.format)["legal_cuts"])
        pieces: list[list[int]] = []
        for index in request.folded:
            if not pieces or index in legal:
                pieces.append([])
            pieces[-1].append(index)
        chunks: list[list[int]] = []
        used = 0
        for piece in pieces:
            size = sum(sizes[i] for i in piece)
            if chunks and used + size <= max_tokens:
                chunks[-1] += piece
                used += size
            else:
                chunks.append(list(piece))
                used = size
        return chunks

    # --- Prompts ------------------------------------------------------------------------------------------

    def model_call(
        self,
        kind: Kind,
        texts: Sequence[str],
        room: OutputBudget,
        indices: Sequence[int] = (),
        *,
        has_previous: bool | None = None,
    ) -> ModelCall:
        """One call about blocks or summaries of parts.

        Args:
            kind: The purpose of the prompt.
            texts: Texts to read, escaped.
            room: The output budget.
            indices: Messages whose facts are listed.
            has_previous: Whether to include the earlier summary. Default: for every kind except ``part``.
        """
        request, words, fence = self.request, self.words, Fence()
        previous = self._previous or ""
        if has_previous is None:
            has_previous = kind != "part"
        task, facts = self._task if self._shows_task(kind) else "", self._facts(indices, room)

        def around(kind: str, text: str) -> str:
            # A custom prompt has only one name for the marks.
            return fence.around("data" if words.template is not None else kind, text)

        slots: dict[str, Any] = {
            "nonce": fence.nonce,
            "fence": fence.name(),
            "existing_summary": around("summary", previous) if has_previous and previous else _FIRST,
            "new_messages": fence.around_escaped("data", SEPARATOR.join(texts)),
            "original_task": around("task", task) if task else "",
            "facts": around("facts", facts) if facts else "",
            "instructions": self._instructions,
            "max_tokens": room.target,
            "max_words": words_for(room.target),
            "round": request.round,
            "parts": len(texts),
            "visible": self._visible(kind),
        }
        slots["task_section"] = filled(TASK_SECTION, slots) if task else ""
        slots["facts_section"] = filled(FACTS_SECTION, slots) if facts else ""
        if words.template is not None:
            messages = [{"role": "user", "content": filled(words.template, slots)}]
        else:
            messages = messages_for(words.form, kind, slots, has_system=words.has_system)
        return ModelCall(messages, room)

    def _visible(self, kind: Kind) -> str:
        """A line that says which messages the agent still sees; empty where that is not known."""
        request = self.request
        if request.part != "whole" or kind not in ("first", "update"):
            return ""
        folded, numbers = set(request.folded), request.numbers
        kept = [i if numbers is None else numbers[i] for i in range(len(request.messages)) if i not in folded]
        known = _ranges([number for number in kept if number is not None])
        if not known:
            return ""
        return f"- Beside your summary the agent still sees the messages {known}; do not repeat them.\n"

    def _shows_task(self, kind: Kind) -> bool:
        """Whether to quote the original task separately: its message may be truncated, or in another call."""
        template = self.words.template
        if template is not None:
            return "{original_task}" in template
        return self.words.form.shows_task or kind in ("part", "merge")

    def _facts(self, indices: Sequence[int], room: OutputBudget) -> str:
        """The highest-ranked facts of some messages, one a line."""
        if not indices:
            return ""
        request = self.request
        most = min(_MOST_FACTS_TOKENS, int(room.most * _FACTS_SHARE))
        if most < 1:
            return ""
        if self._evidence is None:
            self._evidence = evidence_of(request)
        facts = self._evidence.over(list(indices)).bullets(most, request.count)
        return self._redacted(facts) or ""

    # --- Fitting ------------------------------------------------------------------------------------------

    def make_room(self, window: int) -> None:
        """Limits the earlier summary and the task to a share of the window."""
        self._previous = shortened(self._previous or "", window // 3, self.price)
        self._task = shortened(self._task, window // 8, self.price)

    def fitting(self, kind: Kind, blocks: Sequence[Block], room: OutputBudget, window: int) -> list[ModelCall]:
        """Calls about blocks that take at most ``window`` tokens each; one if shortening suffices.

        Messages are shortened; if too little of each would remain, the blocks are divided into several calls.

        Raises:
            SummaryError: The window is too small (``window_too_small``).
        """
        indices, texts = [block.index for block in blocks], self.texts(blocks)
        for facts in (indices, []):  # drops the facts before shortening messages
            whole = self.model_call(kind, texts, room, facts)
            if self.tokens(whole.messages) <= window:
                return [whole]
        left = window - self.tokens(self.model_call(kind, [""], room).messages)
        while left >= 1:
            short = fitted(blocks, self.words.form.limits, left, self.request.count)
            if short is None:
                middle = len(blocks) // 2
                halves = (blocks[:middle], blocks[middle:])
                return [call for half in halves for call in self.fitting(kind, half, room, window)]
            made = self.model_call(kind, short, room)
            over = self.tokens(made.messages) - window
            if over <= 0:
                return [made]
            left -= over
        raise SummaryError("the model's window is too small for the prompt", code="window_too_small")

    def texts(self, blocks: Sequence[Block]) -> list[str]:
        """The texts of blocks, within the form's limits."""
        return [block.text(self.words.form.limits) for block in blocks]

    def part_tokens(self, room: OutputBudget, window: int) -> int:
        """Tokens available for messages in a call about a part.

        Raises:
            SummaryError: The window is too small (``window_too_small``).
        """
        left = window - self.tokens(self.model_call("part", [""], room).messages) - int(room.most * _FACTS_SHARE)
        if left < 1:
            left = window - self.tokens(self.model_call("part", [""], room).messages)
        if left < 1:
            raise SummaryError("the model's window is too small for the prompt", code="window_too_small")
        return left

    def merging(self, texts: Sequence[str], room: OutputBudget, window: int) -> ModelCall | list[list[str]]:
        """The call that merges the summaries of parts, or the groups to merge first."""
        indices = [block.index for block in self.blocks]
        labelled = _labelled(texts)
        for facts in (indices, []):
            last = self.model_call("merge", labelled, room, facts)
            if self.tokens(last.messages) <= window:
                return last
        left = window - self.tokens(self.model_call("merge", [""], room).messages)
        if left < 2 * _LEAST_PART_TOKENS:
            raise SummaryError("the model's window is too small for the prompt", code="window_too_small")
        # At least two always fit into a group, so their number shrinks each round.
        half = left // 2 - _LABEL_TOKENS
        groups: list[list[str]] = []
        used = 0
        for text in texts:
            text = shortened(text, half, self.price)
            cost = self.price(text) + _LABEL_TOKENS
            if groups and used + cost <= left:
                groups[-1].append(text)
                used += cost
            else:
                groups.append([text])
                used = cost
        return groups

    def group(self, texts: Sequence[str], room: OutputBudget) -> ModelCall:
        """The call that merges the summaries of some parts among others."""
        return self.model_call("merge", _labelled(texts), room, has_previous=False)


def shortened(text: str, max_tokens: int, price: Callable[[str], int]) -> str:
    """A text of at most ``max_tokens``: its beginning, its end, and a note of the omitted length."""
    if price(text) <= max_tokens:
        return text
    low, high = 0, min(len(text), max(1, max_tokens) * 16)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if price(cut(text, middle, 0.25)) <= max_tokens else (low, middle)
    return cut(text, low, 0.25)


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, runs of them as ranges.

    Examples:
        >>> _ranges([0, 4, 5, 6, 9])
        '0, 4 to 6, 9'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first} to {last}" if first < last else str(first) for first, last in runs)


def _labelled(texts: Sequence[str]) -> list[str]:
    return [f"Part {number} of {len(texts)}:\n\n{escaped(text)}" for number, text in enumerate(texts, 1)]
