"""Types that foldline takes and gives: messages, problems, completions, and who writes a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ORIGINS",
    "ArrowArray",
    "ArrowStream",
    "Completion",
    "Conversation",
    "Message",
    "Messages",
    "Origin",
    "Pin",
    "Problem",
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

#: Where a message comes from: ``original``, ``compacted_synthetic``, ``compacted_modified``, ``retrieved_history``.
Origin: TypeAlias = str

#: The origins there are.
ORIGINS = ("original", "compacted_synthetic", "compacted_modified", "retrieved_history")


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
        meta: What stood around them: ``path``, ``line``, and by format ``entry_ids``, ``compact_boundaries``,
            ``summaries``, ``tools``, ``system`` (``instructions`` of Responses, ``systemInstruction`` of Gemini).
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
    """

    text: str
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str = "stop"
    evidence: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SummarizeRequest:
    """What is to be summarised.

    Attributes:
        messages: The whole list.
        folded: Indices of the messages that the summary will stand for, ascending.
        max_tokens: Room for the text, by ``count``.
        count: Prices a text with the caller's counter.
        format: The dialect of the messages.
    """

    messages: Messages
    folded: Sequence[int]
    max_tokens: int
    count: Callable[[str], int]
    format: str


@runtime_checkable
class Summarizer(Protocol):
    """Writes the summary of folded messages."""

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Summarises, within ``request.max_tokens``."""
        ...


#: The simplest summarizer: folded messages in, text out.
SummaryFunction: TypeAlias = "Callable[[list[Message]], str | Completion]"
