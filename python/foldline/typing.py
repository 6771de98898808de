"""Public types: messages, problems, completions, protocols of summarizers and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from foldline._core import ORIGINS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from foldline._core import RangeEvidence

__all__ = [
    "ORIGINS",
    "UNCHANGED_REASONS",
    "Action",
    "ArrowArray",
    "ArrowStream",
    "AsyncSummarizer",
    "Certainty",
    "ChatModel",
    "CompactionEvent",
    "CompactionStore",
    "Completion",
    "ContextEntry",
    "Conversation",
    "CountKind",
    "Fact",
    "Facts",
    "FailurePolicy",
    "Fallback",
    "FoldStore",
    "Folded",
    "Format",
    "FormatOption",
    "Message",
    "Messages",
    "Metadata",
    "Origin",
    "Outcome",
    "Pin",
    "Problem",
    "Provider",
    "RequestModel",
    "SessionFormat",
    "SessionStore",
    "StoredMessage",
    "StoredTranscript",
    "SummarizeRequest",
    "Summarizer",
    "SummaryFunction",
    "SummaryPart",
    "Texts",
    "Thinking",
    "TriggerKind",
    "UnchangedReason",
]

#: The dialect of messages.
Format: TypeAlias = Literal[
    "openai_chat",
    "openai_responses",
    "anthropic",
    "gemini",
    "pi",
    "ai_sdk",
    "langchain",
    "gent",
    "sharegpt",
    "bedrock_converse",
    "ai_sdk_ui",
    "mistral",
    "cohere",
]

#: How sure the detection of a dialect is.
Certainty: TypeAlias = Literal["certain", "likely", "assumed"]

#: A program whose session files `read` knows: ``meta["session_format"]``.
SessionFormat: TypeAlias = Literal[
    "claude_code", "pi", "codex", "gemini_cli", "swe_agent", "opencode", "cline", "goose", "inspect", "dialogue"
]

#: A dialect, or ``"auto"`` to detect it by content.
FormatOption: TypeAlias = Format | Literal["auto"]

#: A provider whose rules `validate` and `repair` know.
Provider: TypeAlias = Literal["openai", "responses", "anthropic", "gemini", "bedrock", "mistral", "cohere"]

#: The accuracy of a count. ``"exact"``: by the provider's own tokenizer. ``"reconstructed"``: by a reconstruction of a
#: tokenizer that is not published. ``"calibrated"``: fitted, with a stated bound.
#: ``"estimated"``.
CountKind: TypeAlias = Literal["exact", "reconstructed", "calibrated", "estimated"]

#: The action of a plan on a message.
Action: TypeAlias = Literal["keep", "pin", "clear", "shorten", "summarize", "drop"]

#: What came of a request to fold.
Outcome: TypeAlias = Literal["folded", "unchanged", "infeasible", "failed", "fallback"]

#: Why nothing was folded.
UnchangedReason: TypeAlias = Literal[
    "not_triggered",
    "fits",
    "nothing_to_fold",
    "no_gain",
    "gain_too_small",
    "no_progress",
    "keep_unmet",
    "vetoed",
    "cancelled",
]
UNCHANGED_REASONS: tuple[UnchangedReason, ...] = get_args(UnchangedReason)

#: What happens to thinking that stays after a summary or a cleared result.
Thinking: TypeAlias = Literal["keep", "strip", "fold"]

#: What a compactor does if its strategy fails.
FailurePolicy: TypeAlias = Literal["unchanged", "raise", "truncate", "clear"]

#: What replaced a strategy that failed.
Fallback: TypeAlias = Literal["truncate", "clear"]

#: Whether the trigger or the caller requested a compaction.
TriggerKind: TypeAlias = Literal["auto", "manual"]

#: The part of the folded messages that one summary covers.
SummaryPart: TypeAlias = Literal["whole", "history", "turn_prefix"]

#: A message in its provider's form. foldline reads it and never writes to it.
Message: TypeAlias = Mapping[str, Any]

#: A list of messages.
Messages: TypeAlias = Sequence[Message]


class ArrowArray(Protocol):
    """An array with the Arrow C interface, such as pyarrow's arrays."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Capsules of the schema and the data."""
        ...


class ArrowStream(Protocol):
    """A chunked column with the Arrow C interface, such as a Polars series."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule of the stream of chunks."""
        ...


#: A batch of texts: strings, a numpy array of strings, or an Arrow column of a string type.
Texts: TypeAlias = "Iterable[str] | NDArray[np.str_] | NDArray[np.object_] | ArrowArray | ArrowStream"

#: A pinned message: its index, or a predicate over messages.
Pin: TypeAlias = "int | Callable[[Any], bool]"

#: Facts about a message, stored outside the list: ``pinned``, ``importance``, ``origin``, and keys of the caller.
Metadata: TypeAlias = Mapping[str, Any]

#: Origin of a message.
Origin: TypeAlias = Literal["original", "compacted_synthetic", "compacted_modified", "retrieved_history"]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of the evidence.

    Attributes:
        kind: Its kind: ``"request"``, ``"file"``, ``"command"``, ``"error"``, and others.
        text: Its text, as a summary contains it.
        message: The number of its message in the whole history; None if it comes from the summary of an earlier fold.
        weight: Its value, from 0 to 1,000.
        tokens: Its cost as an item of a summary.
        place: Where the text holds it: start and end, as indices of the string. None if it does not, if its words are
            spread over the text, or if the text was changed after the check.
    """

    kind: str
    text: str
    message: int | None
    weight: int = 0
    tokens: int = 0
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of the evidence, by what became of them in a summary.

    Attributes:
        kept: Facts that the text contains as it was written.
        added: Facts that were missing and added.
        dropped: Facts that it lacks.
    """

    kept: tuple[Fact, ...] = ()
    added: tuple[Fact, ...] = ()
    dropped: tuple[Fact, ...] = ()

    @classmethod
    def of(cls, evidence: Mapping[str, Any] | None) -> Facts:
        """The checked facts of the evidence of a summary; none without a check."""
        known = evidence or {}
        return cls(*(tuple(map(_fact, known.get(name, ()))) for name in ("kept", "added", "dropped")))


def _fact(item: Mapping[str, Any]) -> Fact:
    place = item.get("place")
    return Fact(
        item["kind"],
        item["text"],
        item["message"],
        item.get("weight", 0),
        item.get("tokens", 0),
        None if place is None else (place[0], place[1]),
    )


class Folded(Protocol):
    """The result of a fold, as `Transcript.fold` continues with it."""

    @property
    def messages(self) -> list[Any]:
        """The new list."""
        ...

    @property
    def changed(self) -> bool:
        """Whether it differs from the old one."""
        ...

    @property
    def sources(self) -> Sequence[int | None]:
        """For each new message its old index; None for a new one."""
        ...

    @property
    def edited(self) -> tuple[int, ...]:
        """Old indices of messages whose results were cleared or shortened."""
        ...

    @property
    def pins(self) -> tuple[int, ...]:
        """New indices of pinned messages."""
        ...


@dataclass(frozen=True, slots=True)
class Problem:
    """A defect in messages or in a file.

    Attributes:
        index: Index of the message, if one is concerned.
        code: A stable code.
        detail: The defect, without content.
        path: The file, or the session of a database, if one is concerned.
        line: The line of the file, from 1; the sequence number or position of a row.
        offset: Byte offset of the defect in the file.
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
            place.append(f"line {self.line}" + ("" if self.offset is None else f", offset {self.offset}"))
        if self.index is not None:
            place.append(f"message {self.index}")
        return ": ".join([", ".join(place), self.code] if place else [self.code]) + (
            f" ({self.detail})" if self.detail else ""
        )


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """The usage that a provider reported for one request, as a session recorded it.

    Attributes:
        message: Index of the message that is the answer.
        input_tokens: Tokens of the whole request, cached ones included.
        output_tokens: Tokens of the answer.
        cache_read_tokens: Those of the input that were read from the provider's cache.
        cache_write_tokens: Those of the input that were written to it.
        model: The model, if recorded.
    """

    message: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    model: str | None = None


@dataclass(frozen=True, slots=True)
class StoredCompaction:
    """A compaction by the program of a session, as it was recorded.

    Attributes:
        before: Index of the message before which it took place.
        entry: Index of its entry in ``meta["entries"]``, if it has one.
        trigger: ``"auto"`` or ``"manual"``, if recorded.
        time: When it took place, as recorded.
        tokens_before: Tokens of the context before, as reported.
        tokens_after: Tokens of the context after, as reported.
        summary: The text of the summary, if it is not a message.
        is_encrypted: Whether its content is encrypted, which only the provider can read.
    """

    before: int
    entry: int | None = None
    trigger: str | None = None
    time: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    summary: str | None = None
    is_encrypted: bool = False


@dataclass(frozen=True, slots=True)
class StoredTranscript:
    """A conversation from a file.

    Attributes:
        id: The id of the session or conversation, or one derived from the file name and the position in the file.
        format: The dialect of the messages: ``openai_chat``, ``openai_responses``, ``anthropic``, ``gemini``, ``pi``,
            ``ai_sdk``, ``langchain``, ``gent``, ``sharegpt``, ``bedrock_converse``, ``ai_sdk_ui``,
            ``mistral`` or ``cohere``.
        messages: The messages in their provider's form.
        meta: The data around them: ``path``, ``line``, and by format ``tools``, ``system`` (``instructions`` of
            Responses, ``systemInstruction`` of Gemini). Sessions add ``session_format``, ``entries`` (the entries of
            the file, unchanged), ``sources`` (for each message the indices of its entries), ``entry_ids``,
            ``skipped_entries``, ``skipped_kinds`` (their number by kind), ``compact_boundaries``, ``summaries``, and if
            present ``branches`` (each with ``from_entry``, ``messages``, ``sources``), ``demonstrations`` and
            ``unread`` (skipped entries with text, each with ``entry`` and ``reason``).
        usage: The usage that the provider reported, by answer; empty where the session recorded none.
        compactions: The compactions by the program of the session itself, in order.
    """

    id: str
    format: Format
    messages: list[dict[str, Any]]
    meta: dict[str, Any] = field(default_factory=dict)
    usage: tuple[ReportedUsage, ...] = ()
    compactions: tuple[StoredCompaction, ...] = ()


#: A transcript to count: messages, their JSON bytes, an object that contains messages, or a stored transcript.
Conversation: TypeAlias = "Messages | bytes | Mapping[str, Any] | StoredTranscript"


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a model, or of a function in its place.

    Attributes:
        text: The text.
        model: Name of the model.
        input_tokens: Tokens read, if known.
        output_tokens: Tokens written, if known.
        finish_reason: Why the answer ended; ``"stop"`` if it is complete.
        cache_read_tokens: Those of ``input_tokens`` read from the provider's cache, if known.
        cache_write_tokens: Those of ``input_tokens`` written to the provider's cache, if known.
        evidence: The extracted evidence of the summary, if any: lists of requests, files, commands, errors.
        prompt_version: Version of the prompt, as ``document/1``; empty if no prompt was used.
        notes: Codes of accepted irregularities: ``asked_again``, ``other_script`` (the summary uses another script
            than the conversation), ``marks_neutralized`` (it contained tags of roles or tools).
    """

    text: str
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str = "stop"
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    evidence: Mapping[str, Any] | None = None
    prompt_version: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SummarizeRequest:
    """A request to summarize messages.

    Attributes:
        messages: The whole list.
        folded: Indices of the messages that the summary replaces, ascending.
        max_tokens: Room for the text, by ``count``.
        count: Counts the tokens of a text with the caller's counter.
        format: The dialect of the messages.
        previous: Those of ``folded`` that are summaries of earlier compactions.
        previous_summary: Their texts without labels, to be merged into the new summary.
        instructions: The caller's instructions for the summary.
        round: The round of the compaction, from 1.
        part: The part to summarize: the ``"whole"``; for a split turn, separately its ``"turn_prefix"`` and the
            ``"history"`` before it.
        timeout_s: Seconds left for the whole request.
        target_tokens: Length to aim at: less than ``max_tokens`` if missing facts are added afterwards.
        redact: Applied to every text before it is sent anywhere; ``messages`` are already redacted. Raises a
            `SummaryError` if it fails.
        split: Divides ``folded`` at legal cuts into chunks of at most the given number of tokens each, by the size of
            every message of the list as it will be sent. A chunk without a legal cut inside may be larger.
        evidence: The facts of the folded messages, extracted once and shared by all summarizers.
        numbers: The number of every message in the whole history, by which texts cite it; None for a message without
            one (an earlier summary, a message that it carried). Default: the indices.
        tools: Tool schemas that the agent sends with the messages.
        system: The agent's system prompt, if it is outside the messages.
        request_tokens: Tokens of the agent's request with all messages, if known.
    """

    messages: Messages
    folded: Sequence[int]
    max_tokens: int
    count: Callable[[str], int]
    format: FormatOption
    previous: Sequence[int] = ()
    previous_summary: str | None = None
    instructions: str | None = None
    round: int = 1
    part: SummaryPart = "whole"
    timeout_s: float | None = None
    target_tokens: int | None = None
    redact: Callable[[str], str] | None = None
    split: Callable[[int, Sequence[int]], list[list[int]]] | None = None
    evidence: RangeEvidence | None = None
    numbers: Sequence[int | None] | None = None
    tools: Messages | None = None
    system: str | Messages | None = None
    request_tokens: int | None = None


@runtime_checkable
class Summarizer(Protocol):
    """Writes the summary of folded messages."""

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Summarizes within ``request.max_tokens``."""
        ...


@runtime_checkable
class AsyncSummarizer(Protocol):
    """Writes the summary of folded messages without blocking the event loop."""

    async def asummarize(self, request: SummarizeRequest) -> Completion:
        """Summarizes within ``request.max_tokens``."""
        ...


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers text messages. It may also have an asynchronous ``acomplete``."""

    def complete(self, messages: Messages, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
        """Answers in at most ``max_tokens`` tokens and ``timeout_s`` seconds in all."""
        ...


@runtime_checkable
class RequestModel(Protocol):
    """A model that also answers an agent's own request, tools and system prompt included."""

    @property
    def dialect(self) -> Format:
        """The dialect of the messages that it takes."""
        ...

    def complete(
        self,
        messages: Messages,
        *,
        max_tokens: int,
        timeout_s: float | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
    ) -> Completion:
        """Answers with a text. ``tools`` are sent, but no tool may be called."""
        ...


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """A successful compaction.

    Attributes:
        round: Its number in the session, from 1.
        tokens_before: Tokens of the request before.
        tokens_after: Tokens of the request after.
        length_before: Messages before.
        length_after: Messages after.
        summary: The text of the summary; empty if there is no summary.
        compacted_ids: Ids of the removed messages (summarized or dropped); their indices if no ids were given.
        duration_s: Duration in seconds.
        trigger: ``"auto"``, or ``"manual"`` if the caller requested it.
        reason: The trigger's reason.
        first_kept_id: The first message after the removed ones; None if no message follows them.
        model: The model that wrote the summary.
        fallback: The fallback taken after the strategy failed.
        strategy: The strategies that changed something.
        read_files: Files read in the removed messages, if the summarizer collected them.
        modified_files: Files changed in the removed messages.
        prompt_version: Version of the prompt of the summary; empty if no prompt was used.
    """

    round: int
    tokens_before: int
    tokens_after: int
    length_before: int
    length_after: int
    summary: str
    compacted_ids: tuple[int | str, ...]
    duration_s: float
    trigger: TriggerKind = "auto"
    reason: str = ""
    first_kept_id: int | str | None = None
    model: str = ""
    fallback: Fallback | None = None
    strategy: str = ""
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    prompt_version: str = ""

    @property
    def messages_removed(self) -> int:
        """Number of removed messages."""
        return len(self.compacted_ids)


@runtime_checkable
class CompactionStore(Protocol):
    """Stores compactions. It may have ``last_round()``, the round of the last one stored."""

    def save_compaction(self, event: CompactionEvent) -> None:
        """Stores one compaction, whole or not at all. Called before any subscriber sees the event.

        Raises:
            StoreError: Saving failed; the compaction does not take effect.
        """
        ...


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A message of the context after a compaction.

    Attributes:
        id: Its id, if it was there before; None for a new message.
        message: The message if it is new or its results were cleared or shortened; None if it is unchanged.
    """

    id: int | str | None
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message in a store, with its id."""

    id: int | str
    message: Message


@runtime_checkable
class SessionStore(Protocol):
    """Stores the messages of a session and its compactions. Nothing is ever deleted from it."""

    def append(self, message: Message) -> int | str:
        """Appends a message and returns its id.

        Raises:
            StoreError: Appending failed.
        """
        ...

    def active(self) -> Sequence[StoredMessage]:
        """The context: the messages of the next request."""
        ...

    def save_context(self, event: CompactionEvent, context: Sequence[ContextEntry]) -> None:
        """Stores a compaction and the new context in one step, or neither.

        Messages that the context does not name are marked as compacted; messages appended meanwhile follow it.

        Raises:
            StoreError: Saving failed; the compaction does not take effect.
        """
        ...

    def last_round(self) -> int:
        """Round of the last compaction; 0 before the first."""
        ...


@runtime_checkable
class FoldStore(Protocol):
    """Stores the folds of whole histories, as `Compactor.prepare` makes them, but not the histories."""

    def save_fold(self, session: str, fold: str) -> None:
        """Stores a fold, a JSON text, of a session; ``""`` for histories without a session.

        Raises:
            StoreError: Saving failed; the fold does not take effect.
        """
        ...

    def load_folds(self, session: str, limit: int) -> Sequence[str]:
        """The newest ``limit`` folds of a session, oldest first."""
        ...


#: The simplest summarizer: a function from the folded messages to a text.
SummaryFunction: TypeAlias = "Callable[[list[Any]], str | Completion]"
