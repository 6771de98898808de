"""Folding many stored transcripts: one row in, one row out, whatever is in it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from foldline import _core
from foldline._beside import beside_arguments
from foldline._core import FORMATS, Plan, RowFolder, TokenCounter
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, FoldlineError, FoldlineWarning, InternalError, MessageError, SummaryError
from foldline.folding import compact
from foldline.planning import Keep, plan
from foldline.planning.plan import plan_options
from foldline.reading import transcript_of
from foldline.summarizers import Extractive, as_summarizer
from foldline.typing import ChatModel, StoredTranscript, Summarizer, SummaryFunction

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchCompactor", "CompactedRow", "error_record", "json_text"]

Status = Literal["folded", "unchanged", "infeasible", "failed"]


@dataclass(frozen=True, slots=True)
class CompactedRow:
    """What became of one transcript.

    Attributes:
        id: Its name.
        format: The dialect of its messages; empty where it could not be read.
        messages: The folded list; the messages as they were where nothing was done or something failed.
        summary: The text of the summary; None where there is none.
        tokens_before: Tokens of the request before, overhead included; None where they could not be counted.
        tokens_after: Tokens of the request after.
        actions: What happens to each message of the list before; None without a plan.
        status: ``folded``, ``unchanged``, ``infeasible`` (the budget cannot be met) or ``failed``.
        error: Why it is infeasible or failed; else None.
        plan_hash: The fingerprint of the plan; None without one.
    """

    id: str
    format: str
    messages: list[Any]
    summary: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    actions: list[str] | None = None
    status: Status = "failed"
    error: FoldlineError | None = None
    plan_hash: str | None = None

    @property
    def retry(self) -> bool:
        """Whether another try may do better: no summary came."""
        return isinstance(self.error, SummaryError)


class BatchCompactor:
    """Folds transcripts, each as `compact` does; a function of record batches for engines that work on many.

    It holds configuration alone and can be pickled where its summarizer can: counter and clients are made where it is
    used. What goes wrong with a transcript stands in its row, and the others go on.

    Args:
        keep: How much stays; without it, what fits into ``context_window - reserve_tokens``.
        summarizer: As for `compact`; `Extractive` by default.
        counter: As for `plan`. To be pickled it must have a name or be a function that can be.
        context_window: As for `plan`.
        reserve_tokens: As for `plan`.
        pins: Indices that are pinned in each transcript; those beyond its end pin nothing.
        summary_tokens: Room for the summary message, its label included.
        min_gain_tokens: As for `plan`.
        thinking: As for `plan`.
        format: The dialect of all transcripts, or ``"auto"`` for what each of them is.
        messages_column: The column that holds the messages.
        id_column: The column that holds the names; where there is none, a row is named by what its messages say or by
            its index in the batch.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.

    Examples:
        >>> import foldline as fl
        >>> compactor = fl.BatchCompactor(fl.KeepMessages(1), counter="chars/4", summary_tokens=100)
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
        thinking: Literal["keep", "strip", "fold"] = "keep",
        format: str = "auto",
        messages_column: str = "messages",
        id_column: str = "id",
    ) -> None:
        if format != "auto" and format not in FORMATS:
            raise ConfigError(f"must be auto or one of {', '.join(FORMATS)}", code="bad_format", path="format")
        self.keep = keep
        self.summarizer: Summarizer = Extractive() if summarizer is None else as_summarizer(summarizer)
        self.format = format
        self.messages_column = messages_column
        self.id_column = id_column
        self.pins = tuple(pins)
        self._options: dict[str, Any] = {
            "context_window": context_window,
            "reserve_tokens": reserve_tokens,
            "summary_tokens": summary_tokens,
            "min_gain_tokens": min_gain_tokens,
            "thinking": thinking,
        }
        self._given_counter: TokenCounter | str | Callable[[str], int] | _Named | None = counter
        self._counter: TokenCounter | None = as_counter(counter)
        # An empty conversation has nothing to plan: what is wrong now is wrong with the options.
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
        """Who counts."""
        if self._counter is None:
            given = self._given_counter
            self._counter = given.counter() if isinstance(given, _Named) else as_counter(given)
        return self._counter

    @property
    def options(self) -> dict[str, Any]:
        """How it plans: the options of `plan` that hold for every transcript."""
        return dict(self._options)

    def row_folder(self, threads: int | None = 1) -> RowFolder | None:
        """What folds lines of JSON into the same records without a Python object for each message.

        None where Python has a part in it: a summarizer other than `Extractive`, a counter that is a function.

        Args:
            threads: How many may fold at once, 1 to 1024; ``None`` for one a processor.
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
            max_line_bytes=_core.LineScanner().max_line_bytes,  # either way the same lines are too long
        )

    def compact_rows(self, transcripts: Iterable[StoredTranscript]) -> Iterator[CompactedRow]:
        """Folds transcripts one at a time, as they are asked for. Of what is in them, nothing is raised."""
        for transcript in transcripts:
            yield self.compact_row(transcript)

    def compact_row(self, transcript: StoredTranscript) -> CompactedRow:
        """Folds one transcript."""
        name, messages = transcript.id, transcript.messages
        format_ = transcript.format if self.format == "auto" else self.format
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FoldlineWarning)  # The row says it too.
                result = compact(
                    messages,
                    self.keep,
                    summarizer=self.summarizer,
                    counter=self.counter,
                    format=format_,
                    pins=[pin for pin in self.pins if pin < len(messages)],
                    **beside_arguments(transcript),
                    **self._options,
                )
        except FoldlineError as error:
            return CompactedRow(name, format_, messages, error=error)
        except MemoryError:
            raise  # of the machine, not of the row
        except Exception as error:  # noqa: BLE001 - a row never ends the others
            return CompactedRow(name, format_, messages, error=InternalError(f"{type(error).__name__} was raised"))
        before, after = result.tokens_before, result.tokens_after
        if not isinstance(result.plan, Plan):
            why = FoldlineError(result.plan.why, code="infeasible")
            return CompactedRow(name, format_, messages, None, before, after, None, "infeasible", why)
        actions, plan_hash = list(result.plan.actions), result.plan.fingerprint
        if result.error is not None:
            return CompactedRow(
                name, format_, messages, None, before, after, actions, "failed", result.error, plan_hash
            )
        status: Status = "folded" if result.changed else "unchanged"
        summary = result.summary or None
        return CompactedRow(name, format_, result.messages, summary, before, after, actions, status, None, plan_hash)

    def __call__(self, batch: Any) -> Any:
        """Folds a `pyarrow.RecordBatch` or `pyarrow.Table`, one transcript a row; the same kind comes back.

        The messages are JSON text (a list of messages, or an object that holds one), or a list of structs, of which
        members that are null count as missing. The answer has the columns of `schema`, and no others; a null or what
        holds no transcript gives a row with the status ``failed`` and the text as it was.

        Raises:
            ConfigError: There is no column of messages, or the extra ``arrow`` is missing.
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

    @staticmethod
    def schema() -> pa.Schema:
        """The columns of every batch that comes back.

        ``id``, ``messages`` (JSON text), ``summary``, ``tokens_before``, ``tokens_after``, ``actions``, ``status``,
        ``error`` (JSON text with code, detail, index and path) and ``plan_hash``.
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
            ]
        )

    def _arrow_row(self, value: Any, name: object, index: int) -> dict[str, Any]:
        fallback = str(index) if name is None else str(name)
        text = value if isinstance(value, str) else None
        try:
            if isinstance(value, (str, bytes)):
                value = json.loads(value)
            elif isinstance(value, list):
                value = _without_nulls(value)
            transcript = transcript_of(value, fallback)
        except FoldlineError as error:
            failed = CompactedRow(fallback, "", [], error=error)
        except (ValueError, RecursionError):
            failed = CompactedRow(fallback, "", [], error=MessageError("it is no JSON", code="bad_json"))
        else:
            if name is not None:
                transcript = StoredTranscript(fallback, transcript.format, transcript.messages, transcript.meta)
            row = self.compact_row(transcript)
            return arrow_record(row, json_text(row.messages))
        return arrow_record(failed, text)


@dataclass(frozen=True, slots=True)
class _Named:
    """A counter by its name."""

    name: str
    model: str | None

    def counter(self) -> TokenCounter:
        return TokenCounter(self.name) if self.model is None else TokenCounter.for_model(self.model)


def arrow_record(row: CompactedRow, messages: str | None) -> dict[str, Any]:
    """A row as the columns of `BatchCompactor.schema` hold it."""
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
    }


def error_record(error: FoldlineError) -> dict[str, Any]:
    """An error as data."""
    return {"code": error.code, "detail": error.detail, "index": error.index, "path": error.path}


def json_text(value: object) -> str:
    """JSON on one line, legible where it can be: text with lone surrogates has no UTF-8, and is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def _storable(text: str) -> str:
    """A text that has UTF-8: lone surrogates become U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without_nulls(value: Any) -> Any:
    """A struct of Arrow has every member of its type: what is null was not there."""
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
