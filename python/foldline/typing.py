"""Types that foldline takes and gives: messages, problems, completions, and who writes a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from foldline._core import ORIGINS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from foldline._core import RangeEvidence

__all__ = [
    "ORIGINS",
    "ArrowArray",
    "ArrowStream",
    "AsyncSummarizer",
    "ChatModel",
    "CompactionEvent",
    "CompactionStore",
    "Completion",
    "ContextEntry",
    "Conversation",
    "Message",
    "Messages",
    "Metadata",
    "Origin",
    "Pin",
    "Problem",
    "SessionStore",
    "StoredMessage",
    "StoredTranscript",
    "SummarizeRequest",
    "Summarizer",
    "SummaryFunction",
    "Texts",
]

#: A message in its provider's own form. foldline reads it and never writes to it.
Message: TypeAlias = Mapping[str, Any]

#: A list of messages.
Messages: TypeAlias = Sequence[Message]


class ArrowArray(Protocol):
    """An array with the Arrow C interface, such as pyarrow's."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Capsules of its type and its data."""
        ...


class ArrowStream(Protocol):
    """A column in chunks with the Arrow C interface, such as a Polars series."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule of the stream of its chunks."""
        ...


#: A batch of texts: strings, a numpy array of them, or an Arrow column of a type of texts.
Texts: TypeAlias = "Iterable[str] | NDArray[np.str_] | NDArray[np.object_] | ArrowArray | ArrowStream"

#: A pinned message: its index, or a predicate over messages.
Pin: TypeAlias = "int | Callable[[Message], bool]"

#: What is known of a message beside the list: ``pinned``, ``importance``, ``origin``, and whatever the caller likes.
Metadata: TypeAlias = Mapping[str, Any]

#: Where a message comes from, one of `ORIGINS`.
Origin: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with messages or with a file.

    Attributes:
        index: The message, where one is concerned.
        code: A stable code.
        detail: What is wrong, without content.
        path: The file, where one is concerned.
        line: Its line, from 1.
        offset: Where the trouble begins in it, in bytes.
    """

    index: int | None
    code: str
    detail: str = ""
    path: str | None = None
    line: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        place = [self.path] if self.path else []
        if self.line is not None:
            place.append(f"line {self.line}, offset {self.offset}")
        if self.index is not None:
            place.append(f"message {self.index}")
        return ": ".join([", ".join(place), self.code] if place else [self.code]) + (
            f" ({self.detail})" if self.detail else ""
        )


@dataclass(frozen=True, slots=True)
class StoredTranscript:
    """A conversation out of a file.

    Attributes:
        id: The session's or conversation's own id, or one made from the name of the file and its place in it.
        format: The dialect of the messages: ``openai_chat``, ``openai_responses``, ``anthropic``, ``gemini``, ``pi``,
            ``ai_sdk``, ``langchain`` or ``gent``.
        messages: The messages in their provider's form.
        meta: What stood around them: ``path``, ``line``, and by format ``tools``, ``system`` (``instructions`` of
            Responses, ``systemInstruction`` of Gemini). Of sessions also ``session_format``, ``entries`` (the entries
            of the file as they are), ``sources`` (of each message the indices of its entries), ``entry_ids``,
            ``skipped_entries``, ``compact_boundaries``, ``summaries``, and where there are any ``branches`` (each with
            ``from_entry``, ``messages``, ``sources``) and ``demonstrations``.
    """

    id: str
    format: str
    messages: list[dict[str, Any]]
    meta: dict[str, Any] = field(default_factory=dict)


#: A transcript to count: messages, their JSON bytes, an object that holds messages, or a stored transcript.
Conversation: TypeAlias = "Messages | bytes | Mapping[str, Any] | StoredTranscript"


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model, or what stands in for one, wrote.

    Attributes:
        text: The text.
        model: Who wrote it.
        input_tokens: Tokens read, where known.
        output_tokens: Tokens written, where known.
        finish_reason: Why it stopped: ``"stop"`` where it came to its end.
        evidence: What the summary is made of, where it was extracted: lists of requests, files, commands, errors.
        prompt_version: The version of the prompt behind it, as ``document/1``; empty where there was none.
        notes: What was noticed and let pass, as codes: ``asked_again``, ``other_script`` (it is written in another
            script than the conversation), ``marks_neutralized`` (it held marks of roles or tools).
    """

    text: str
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str = "stop"
    evidence: Mapping[str, Any] | None = None
    prompt_version: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SummarizeRequest:
    """What is to be summarised.

    Attributes:
        messages: The whole list.
        folded: Indices of the messages that the summary will stand for, ascending.
        max_tokens: Room for the text, by ``count``.
        count: Prices a text with the caller's counter.
        format: The dialect of the messages.
        previous: Those of ``folded`` that are summaries of earlier compactions.
        previous_summary: What these say, without their labels: to be merged into the new one, not stacked.
        instructions: What the caller wants the summary to mind.
        round: The round of the compaction, from 1.
        part: What is summarised: the ``"whole"``, or where a turn is split its ``"turn_prefix"`` and the ``"history"``
            before it, each by itself.
        timeout_s: What is left of the time for all of it.
        target_tokens: How long the text is to be: less than ``max_tokens`` where facts that it lacks are added
            afterwards.
        redact: What every text goes through before it is sent anywhere; ``messages`` went through it already. It
            raises a `SummaryError` where it cannot do its work.
        split: Divides ``folded`` at legal cuts into stretches that have at most so many tokens each, by the tokens of
            every message of the list as it will be sent. A stretch that no legal cut divides may have more.
        evidence: The facts of the folded messages, extracted once for everybody who asks.
    """

    messages: Messages
    folded: Sequence[int]
    max_tokens: int
    count: Callable[[str], int]
    format: str
    previous: Sequence[int] = ()
    previous_summary: str | None = None
    instructions: str | None = None
    round: int = 1
    part: Literal["whole", "history", "turn_prefix"] = "whole"
    timeout_s: float | None = None
    target_tokens: int | None = None
    redact: Callable[[str], str] | None = None
    split: Callable[[int, Sequence[int]], list[list[int]]] | None = None
    evidence: RangeEvidence | None = None


@runtime_checkable
class Summarizer(Protocol):
    """Writes the summary of folded messages."""

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Summarises, within ``request.max_tokens``."""
        ...


@runtime_checkable
class AsyncSummarizer(Protocol):
    """Writes the summary of folded messages without blocking the event loop."""

    async def asummarize(self, request: SummarizeRequest) -> Completion:
        """Summarises, within ``request.max_tokens``."""
        ...


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers messages of text. It may have a twin ``acomplete``."""

    def complete(self, messages: Messages, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
        """Answers, in at most ``max_tokens`` tokens and ``timeout_s`` seconds in all."""
        ...


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """A compaction that succeeded.

    Attributes:
        round: Which one of its session, from 1.
        tokens_before: Tokens of the request before.
        tokens_after: Tokens of the request after.
        length_before: Messages before.
        length_after: Messages after.
        summary: The text of the summary; empty where there is none.
        compacted_ids: Ids of the messages that are gone (in the summary, or dropped); their indices where no ids were
            given.
        duration_s: How long it took.
        trigger: ``"auto"``, or ``"manual"`` where somebody asked for it.
        reason: Why, as the trigger says.
        first_kept_id: The first message behind those that are gone; None where none is left.
        model: Who wrote the summary.
        fallback: What was done instead where the strategy failed.
        strategy: Which strategies did something.
        read_files: Files that were read in what is gone, where the summarizer collected them.
        modified_files: Files that were changed in it.
        prompt_version: The version of the prompt behind the summary; empty where there was none.
    """

    round: int
    tokens_before: int
    tokens_after: int
    length_before: int
    length_after: int
    summary: str
    compacted_ids: tuple[int | str, ...]
    duration_s: float
    trigger: str = "auto"
    reason: str = ""
    first_kept_id: int | str | None = None
    model: str = ""
    fallback: str | None = None
    strategy: str = ""
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    prompt_version: str = ""

    @property
    def messages_removed(self) -> int:
        """Messages that are gone."""
        return len(self.compacted_ids)


@runtime_checkable
class CompactionStore(Protocol):
    """Remembers compactions. It may have ``last_round()``, the round of the last one it knows."""

    def save_compaction(self, event: CompactionEvent) -> None:
        """Remembers one, whole or not at all. Called before anybody is told of it.

        Raises:
            StoreError: It could not; then nothing is compacted.
        """
        ...


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A message of the context after a compaction.

    Attributes:
        id: Its id, where it was there before; None for a new one.
        message: The message, where it is new or its results were cleared or shortened; None where it is as it was.
    """

    id: int | str | None
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message that a store holds, with its id."""

    id: int | str
    message: Message


@runtime_checkable
class SessionStore(Protocol):
    """Holds the messages of a session, and what compactions made of them. Nothing is ever deleted from it."""

    def append(self, message: Message) -> int | str:
        """Adds a message behind the others; its id comes back.

        Raises:
            StoreError: It could not.
        """
        ...

    def active(self) -> Sequence[StoredMessage]:
        """The context: what the next request is made of."""
        ...

    def save_context(self, event: CompactionEvent, context: Sequence[ContextEntry]) -> None:
        """Remembers a compaction, and what the context is from now on: both in one step, or neither.

        What the context does not name is marked as compacted; what was appended meanwhile stays behind it.

        Raises:
            StoreError: It could not; then nothing is compacted.
        """
        ...

    def last_round(self) -> int:
        """The round of the last compaction; 0 before the first."""
        ...


#: The simplest summarizer: folded messages in, text out.
SummaryFunction: TypeAlias = "Callable[[list[Message]], str | Completion]"
