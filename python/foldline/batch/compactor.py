"""Folds many stored transcripts: each row in gives one row out, even for invalid input."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from foldline import _core
from foldline._beside import beside_arguments
from foldline._core import FORMATS, Plan, RowFolder, TokenCounter
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, FoldlineError, FoldlineWarning, InternalError, MessageError, SummaryError
from foldline.folding import FoldResult, compact
from foldline.planning import Infeasible, Keep, plan
from foldline.planning.plan import plan_options
from foldline.reading import transcript_of
from foldline.summarizers import Extractive, as_summarizer
from foldline.typing import (
    Action,
    ChatModel,
    Facts,
    FormatOption,
    StoredTranscript,
    Summarizer,
    SummaryFunction,
    Thinking,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchCompactor", "CompactedRow", "arrow_record", "error_record", "facts_record", "json_text"]

Status = Literal["folded", "unchanged", "infeasible", "failed"]


@dataclass(frozen=True, slots=True)
class CompactedRow:
    """The outcome of one transcript.

    Attributes:
        id: Its name.
        format: Dialect of its messages; empty if unreadable.
        messages: The folded list; the input messages if unchanged or failed.
        summary: Text of the summary, or None.
        tokens_before: Tokens of the request before, overhead included; None if not counted.
        tokens_after: Tokens of the request after.
        actions: Action for each input message; None without a plan.
        status: ``folded``, ``unchanged``, ``infeasible`` (the budget cannot be met) or ``failed``.
        error: Why it is infeasible or failed; else None.
        plan_hash: Fingerprint of the plan; None without one.
        facts: The facts that the summary holds and lacks; None without a summary, or if they were not requested.
        warnings: Code and message of each warning of the plan, if facts were requested.
    """

    id: str
    format: str
    messages: list[Any]
    summary: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    actions: list[Action] | None = None
    status: Status = "failed"
    error: FoldlineError | None = None
    plan_hash: str | None = None
    facts: Facts | None = None
    warnings: tuple[tuple[str, int | None], ...] = ()

    @property
    def retry(self) -> bool:
        """Whether a retry may succeed: the summary failed."""
        return isinstance(self.error, SummaryError)


class BatchCompactor:
    """Folds transcripts, each as `compact` does; callable on record batches for data engines.

    Contains only configuration, and is picklable if its summarizer is: counter and clients are created on first use.
    An error in a transcript is stored in its row; the other rows are folded.

    Args:
        keep: How much to keep. Default: as much as fits into ``context_window - reserve_tokens``.
        summarizer: As for `compact`. Default: `Extractive`.
        counter: As for `plan`. To pickle, use a name or a picklable function.
        context_window: As for `plan`.
        reserve_tokens: As for `plan`.
        pins: Indices pinned in each transcript; indices beyond its end are ignored.
        summary_tokens: Token limit of the summary message, its label included.
        min_gain_tokens: As for `plan`.
        thinking: As for `plan`.
        format: Dialect of all transcripts, or ``"auto"`` to detect each.
        messages_column: Name of the messages column.
        id_column: Name of the id column. Without it, the name is the id found in the messages value, or the row's index
            in the batch.
        facts: Whether rows and records have the facts of each summary and the warnings of its plan.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.

    Examples:
        >>> import foldline as fl
        >>> compactor = fl.batch.BatchCompactor(fl.KeepMessages(1), counter="chars/4", summary_tokens=100)
        >>> talk = [{"role": "user", "content": "Mind the tests. " * 40} for _ in range(4)]
        >>> rows = compactor.compact_rows(fl.StoredTranscript(name, "openai_chat", talk) for name in "ab")
        >>> [(row.id, row.status, len(row.messages)) for row in rows]
        [('a', 'folded', 2), ('b', 'folded', 2)]
    """

    def __init__(
        self,
        keep: Keep | None = None,
        *,
        summarizer: Summarizer | ChatModel | SummaryFunction | None = None,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        context_window: int | None = None,
        reserve_tokens: int = 0,
        pins: Iterable[int] = (),
        summary_tokens: int = 1_000,
        min_gain_tokens: int = 0,
        thinking: Thinking = "keep",
        format: FormatOption = "auto",
        messages_column: str = "messages",
        id_column: str = "id",
        facts: bool = False,
    ) -> None:
        if format != "auto" and format not in FORMATS:
            raise ConfigError(f"must be auto or one of {', '.join(FORMATS)}", code="bad_format", path="format")
        self.keep = keep
        self.summarizer: Summarizer = Extractive() if summarizer is None else as_summarizer(summarizer)
        self.format: FormatOption = format
        self.messages_column = messages_column
        self.id_column = id_column
        self.pins = tuple(pins)
        self.facts = facts
        self._options: dict[str, Any] = {
            "context_window": context_window,
            "reserve_tokens": reserve_tokens,
            "summary_tokens": summary_tokens,
            "min_gain_tokens": min_gain_tokens,
            "thinking": thinking,
        }
        self._given_counter: TokenCounter | str | Callable[[str], int] | _Named | None = counter
        self._counter: TokenCounter | None = as_counter(counter)
        # An empty conversation has nothing to plan, so that an error here is an error of the options.
        plan([], keep, counter=self._counter, pins=[], **self._options)

    def __repr__(self) -> str:
        return f"BatchCompactor({self.keep!r}, summarizer={self.summarizer!r}, counter={self.counter!r})"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"_counter": None}
        given = self._given_counter
        if isinstance(given, TokenCounter):
            state["_given_counter"] = _Named(given.name, given.model)
            if given.model is None:
                try:
                    TokenCounter(given.name)
                except FoldlineError:
                    detail = "a counter around a function cannot be pickled; give the function"
                    raise ConfigError(detail, code="not_picklable", path="counter") from None
        return state

    @property
    def counter(self) -> TokenCounter:
        """The token counter, created on first use."""
        if self._counter is None:
            given = self._given_counter
            self._counter = given.counter() if isinstance(given, _Named) else as_counter(given)
        return self._counter

    @property
    def options(self) -> dict[str, Any]:
        """The options of `plan` shared by all transcripts."""
        return dict(self._options)

    def row_folder(self, threads: int | None = 1) -> RowFolder | None:
        """A folder of JSON lines in the core: the same records without a Python object per message.

        None if Python code takes part: another summarizer than `Extractive`, or a counter that is a function.

        Args:
            threads: Number of threads, 1 to 1024. ``None``: one per processor.
        """
        is_ours = type(self) is BatchCompactor and type(self.summarizer) is Extractive
        name = self.counter.name
        has_core_counter = name != "callable" and not name.endswith("tokenizer.json")
        if not is_ours or not has_core_counter or not all(type(pin) is int and pin >= 0 for pin in self.pins):
            return None
        return RowFolder(
            self.counter,
            plan_options((), self.keep, pins=self.pins, **self._options),
            format=self.format,
            threads=threads,
            max_line_bytes=_core.LineScanner().max_line_bytes,  # the same limit as the Python path
            with_facts=self.facts,
        )

    def compact_rows(self, transcripts: Iterable[StoredTranscript]) -> Iterator[CompactedRow]:
        """Folds transcripts lazily, one at a time. Errors in their content are stored in rows, not raised."""
        for transcript in transcripts:
            yield self.compact_row(transcript)

    def compact_row(self, transcript: StoredTranscript) -> CompactedRow:
        """Folds one transcript."""
        name, messages = transcript.id, transcript.messages
        format_ = transcript.format if self.format == "auto" else self.format
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FoldlineWarning)  # the row records it
                result = self.fold(transcript, format_)
        except FoldlineError as error:
            return CompactedRow(name, format_, messages, error=error)
        except MemoryError:
            raise  # an error of the machine, not of the row
        except Exception as error:  # noqa: BLE001 - a row never ends the others
            return CompactedRow(name, format_, messages, error=InternalError(f"{type(error).__name__} was raised"))
        row = self._row(name, format_, messages, result)
        return self._with_facts(row, result) if self.facts else row

    def _row(self, name: str, format: str, messages: list[Any], result: FoldResult) -> CompactedRow:
        before, after = result.tokens_before, result.tokens_after
        planned = result.plan
        if isinstance(planned, Infeasible):
            why = FoldlineError(planned.why, code="infeasible")
            return CompactedRow(name, format, messages, None, before, after, None, "infeasible", why)
        actions, plan_hash = (None, None) if planned is None else (planned.actions, planned.fingerprint)
        if result.error is not None:
            return CompactedRow(name, format, messages, None, before, after, actions, "failed", result.error, plan_hash)
        status: Status = "folded" if result.changed else "unchanged"
        summary = result.summary or None
        return CompactedRow(name, format, result.messages, summary, before, after, actions, status, None, plan_hash)

    def _with_facts(self, row: CompactedRow, result: FoldResult) -> CompactedRow:
        """The row with the facts that the fold has checked."""
        facts = None if row.summary is None or result.evidence is None else result.facts
        found = result.plan.warnings if isinstance(result.plan, Plan) else ()
        return replace(row, facts=facts, warnings=tuple(found))

    def fold(self, transcript: StoredTranscript, format: FormatOption) -> FoldResult:
        """Folds one transcript as `compact` does; raises what it raises."""
        messages = transcript.messages
        return compact(
            messages,
            self.keep,
            summarizer=self.summarizer,
            counter=self.counter,
            format=format,
            pins=[pin for pin in self.pins if pin < len(messages)],
            **beside_arguments(transcript),
            **self._options,
        )

    def __call__(self, batch: Any) -> Any:
        """Folds a `pyarrow.RecordBatch` or `pyarrow.Table`, one transcript a row; returns the same type.

        The messages are JSON text (a list of messages, or an object that contains one), or a list of structs, whose
        null members are ignored. The result has exactly the columns of `schema`. A null or a value without a transcript
        gives a row with status ``failed`` and the input text.

        Raises:
            ConfigError: The messages column or the extra ``arrow`` is missing.
        """
        arrow = _pyarrow()
        columns = batch.schema.names
        if self.messages_column not in columns:
            raise ConfigError("the batch has no such column", code="missing_column", path="messages_column")
        given = batch.column(self.messages_column)
        names = batch.column(self.id_column) if self.id_column in columns else None
        rows = [
            self._arrow_row(given[i].as_py(), None if names is None else names[i].as_py(), i) for i in range(len(given))
        ]
        schema = self.schema()
        if isinstance(batch, arrow.Table):
            return arrow.Table.from_pylist(rows, schema=schema)
        return arrow.RecordBatch.from_pylist(rows, schema=schema)

    def schema(self) -> pa.Schema:
        """The schema of the returned batches.

        ``id``, ``messages`` (JSON text), ``summary``, ``tokens_before``, ``tokens_after``, ``actions``, ``status``,
        ``error`` (JSON text with code, detail, index and path) and ``plan_hash``; with facts also ``facts`` and
        ``warnings``, both JSON text.
        """
        arrow = _pyarrow()
        text, number = arrow.large_string(), arrow.int64()
        return arrow.schema(
            [
                arrow.field("id", text, nullable=False),
                ("messages", text),
                ("summary", text),
                ("tokens_before", number),
                ("tokens_after", number),
                ("actions", arrow.list_(text)),
                arrow.field("status", text, nullable=False),
                ("error", text),
                ("plan_hash", text),
                *((("facts", text), ("warnings", text)) if self.facts else ()),
            ]
        )

    def transcript_of_row(self, value: Any, name: object, index: int) -> StoredTranscript:
        """The transcript of a row of Arrow or Parquet.

        Args:
            value: The value of the column of messages.
            name: That of the column of names; None: the index.
            index: The place of the row.

        Raises:
            MessageError: The value is not JSON, or has no transcript.
        """
        fallback = str(index) if name is None else str(name)
        try:
            if isinstance(value, (str, bytes)):
                value = json.loads(value)
            elif isinstance(value, list):
                value = _without_nulls(value)
        except (ValueError, RecursionError):
            raise MessageError("it is not JSON", code="bad_json") from None
        transcript = transcript_of(value, fallback)
        if name is None:
            return transcript
        return StoredTranscript(fallback, transcript.format, transcript.messages, transcript.meta)

    def _arrow_row(self, value: Any, name: object, index: int) -> dict[str, Any]:
        try:
            transcript = self.transcript_of_row(value, name, index)
        except FoldlineError as error:
            failed = CompactedRow(str(index) if name is None else str(name), "", [], error=error)
            return arrow_record(failed, value if isinstance(value, str) else None)
        row = self.compact_row(transcript)
        return arrow_record(row, json_text(row.messages))


@dataclass(frozen=True, slots=True)
class _Named:
    """A counter by its name, for pickling."""

    name: str
    model: str | None

    def counter(self) -> TokenCounter:
        return TokenCounter(self.name) if self.model is None else TokenCounter.for_model(self.model)


def arrow_record(row: CompactedRow, messages: str | None) -> dict[str, Any]:
    """A row with the columns of `BatchCompactor.schema`; a batch without facts leaves out those of facts."""
    about = facts_record(row)
    return {
        "id": _storable(row.id),
        "messages": messages,
        "summary": None if row.summary is None else _storable(row.summary),
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "actions": row.actions,
        "status": row.status,
        "error": None if row.error is None else json_text(error_record(row.error)),
        "plan_hash": row.plan_hash,
        "facts": None if row.facts is None else _storable(json_text(about["facts"])),
        "warnings": json_text(about["warnings"]),
    }


def facts_record(row: CompactedRow) -> dict[str, Any]:
    """The facts and warnings of a row as data."""
    facts = None
    if row.facts is not None:
        facts = {
            name: [{"kind": fact.kind, "text": fact.text, "message": fact.message} for fact in getattr(row.facts, name)]
            for name in ("kept", "added", "dropped")
        }
    return {"facts": facts, "warnings": [{"code": code, "index": index} for code, index in row.warnings]}


def error_record(error: FoldlineError) -> dict[str, Any]:
    """An error as a dict."""
    return {"code": error.code, "detail": error.detail, "index": error.index, "path": error.path}


def json_text(value: object) -> str:
    """JSON on one line, unescaped if possible; text with lone surrogates cannot be UTF-8 and is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def _storable(text: str) -> str:
    """A text that can be UTF-8: lone surrogates become U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without_nulls(value: Any) -> Any:
    """A value without null members: Arrow structs contain every member of their type."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        detail = "record batches need the package pyarrow: pip install 'foldline[arrow]'"
        raise ConfigError(detail, code="missing_extra", path="batch") from None
    return pa
