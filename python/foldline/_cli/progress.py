"""Output of commands: results on standard output, problems and progress on standard error."""

from __future__ import annotations

import contextlib
import json
import sys
import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import click

from foldline._cli.pace import Pace, size_of
from foldline._util.checks import fields_of
from foldline._util.files import failed_path
from foldline._util.problems import FirstProblems
from foldline.errors import FoldlineError
from foldline.typing import Problem

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = [
    "COUNTS",
    "Column",
    "FileProblems",
    "FileReport",
    "Position",
    "ProgressSink",
    "Reporter",
    "Stop",
    "Table",
    "os_error",
    "printable",
    "totals",
    "write_json",
]

#: Counts of a file, in display order.
COUNTS = (
    "transcripts",
    "folded",
    "unchanged",
    "infeasible",
    "failed",
    "problems",
    "tokens_before",
    "tokens_after",
)

#: Delay of the progress bar; shorter work does not show one.
_BAR_AFTER_S = 1.0

#: Interval of updates of the bar, and of progress lines without a terminal.
_DRAW_EVERY_S, _LINE_EVERY_S = 0.1, 30.0


class Stop(Exception):
    """The first problem of a strict run."""


def printable(text: str) -> str:
    """A text safe for a terminal: control characters and lone surrogates are escaped."""
    if text.isprintable():
        return text
    return "".join(
        ch if unicodedata.category(ch) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else ascii(ch)[1:-1] for ch in text
    )


def os_error(error: OSError) -> str:
    """An error on one line: the file, if it is known, and what is wrong."""
    path = failed_path(error)
    what = error.strerror or type(error).__name__
    return what if path is None else f"{printable(path)}: {what}"


def write_json(record: object) -> None:
    """Writes one JSON document as a line of standard output; ASCII, which every terminal and pipe can encode."""
    click.echo(json.dumps(record))


@dataclass(slots=True)
class FileReport:
    """The outcome of a file."""

    source: str
    output: str | None = None
    transcripts: int = 0
    folded: int = 0
    unchanged: int = 0
    infeasible: int = 0
    failed: int = 0
    problems: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    longest: int = 0
    retry: int = 0
    input_bytes: int | None = None
    input_sha256: str | None = None
    output_bytes: int | None = None
    output_sha256: str | None = None
    #: Seconds of folding it, if a report is wanted.
    seconds: float | None = field(default=None, compare=False)

    def add(self, status: str, tokens_before: int | None, tokens_after: int | None, messages: int) -> None:
        """Adds the counts of a written transcript."""
        self.transcripts += 1
        setattr(self, status, getattr(self, status) + 1)
        self.tokens_before += tokens_before or 0
        self.tokens_after += tokens_after or 0
        self.longest = max(self.longest, messages)

    @classmethod
    def of(cls, record: object) -> FileReport | None:
        """The report of which `record` made a record; None if the record is another one, or damaged."""
        known = fields_of(cls, record)
        if known is None or known.keys() | {"seconds"} != {field.name for field in fields(cls)}:
            return None
        return cls(**known)

    def record(self) -> dict[str, Any]:
        """All fields as a dict: counts, longest transcript, summaries to retry, sizes and hashes."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return known if self.seconds is not None else {name: known[name] for name in known if name != "seconds"}


def totals(files: Sequence[FileReport]) -> dict[str, int]:
    """The sums over all files."""
    return {key: sum(getattr(report, key) for report in files) for key in COUNTS}


#: How many bytes of a file were read so far.
Position: TypeAlias = "Callable[[], int]"


def _nowhere() -> int:
    return 0


class ProgressSink(ABC):
    """Receives problems and progress."""

    problems = 0

    @abstractmethod
    def problem(self, problem: Problem, transcript: str | None = None) -> None:
        """Reports a problem."""

    @abstractmethod
    def advance(self, *, files: int = 0, transcripts: int = 0) -> None:
        """Reports progress."""

    def begin(self, path: str, position: Position = _nowhere) -> None:  # noqa: B027 - some sinks have no use for it
        """Notes the file in progress, and how to learn how many of its bytes were read so far."""

    def end(self, size_bytes: int | None) -> None:  # noqa: B027
        """Notes that the file in progress is done, and its size."""

    def error(self, error: FoldlineError, path: str, transcript: str | None = None) -> None:
        """Reports an error as a problem."""
        detail = f"{error.detail}, at {error.path}" if error.path else error.detail
        self.problem(Problem(error.index, error.code, detail, path), transcript)


class FileProblems(ProgressSink):
    """Passes on the first problems of a file in detail, and at its end counts by code: bounds messages and memory.

    Args:
        sink: Receives problems and progress.
        path: The file.
        position: How many bytes of the file were read so far; without it they are not reported.

    Attributes:
        problems: All problems of the file.
    """

    def __init__(self, sink: ProgressSink, path: str, position: Position = _nowhere) -> None:
        self.problems = 0
        self._sink = sink
        self._shown = FirstProblems(path)
        sink.begin(path, position)

    def problem(self, problem: Problem, transcript: str | None = None) -> None:
        """Reports a problem."""
        self.problems += 1
        if self._shown.admits(problem):
            self._sink.problem(problem, transcript)

    def advance(self, *, files: int = 0, transcripts: int = 0) -> None:
        """Reports progress."""
        self._sink.advance(files=files, transcripts=transcripts)

    def end(self, size_bytes: int | None = None) -> None:
        """Reports the number of problems that were not shown, and the size of the file."""
        self._sink.end(size_bytes)
        for problem in self._shown.rest():
            self._sink.problem(problem)


class Reporter(ProgressSink):
    """Writes problems and progress to standard error."""

    def __init__(self, *, strict: bool = False) -> None:
        self.problems = 0
        self.files = 0
        self.strict = strict
        self._begun = self._reported_at = time.monotonic()
        self._may_draw = sys.stderr is not None and sys.stderr.isatty()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._files = self._transcripts = self._bytes = 0
        self._bytes_total: int | None = None
        self._waiting: list[str] | None = None
        self._current, self._position = "", _nowhere
        self._shown: FirstProblems | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def exit_code(self) -> int:
        """1 if there were problems, else 0."""
        return 1 if self.problems else 0

    def problem(self, problem: Problem, transcript: str | None = None) -> None:
        """Reports a problem.

        Raises:
            Stop: In a strict run.
        """
        self.problems += 1
        if self._shown is not None and not self._shown.admits(problem):
            return
        if transcript is not None:
            problem = replace(problem, path=f"{problem.path}: {transcript}")
        self.say(str(problem))
        if self.strict:
            raise Stop

    @contextlib.contextmanager
    def of_file(self, path: str) -> Iterator[None]:
        """Within the block, shows the first problems of each code in detail, and at its end the number of others."""
        self._shown = FirstProblems(path)
        self._current = path
        try:
            yield
            self._bytes += size_of([path]) or 0
            for problem in self._shown.rest():
                self.say(str(problem))
        finally:
            self._shown = None

    def say(self, text: str) -> None:
        """Writes a line to standard error, above the progress bar."""
        if self._bar is not None:
            self._bar.console.print(printable(text), markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(printable(text), err=True)

    def expect(self, files: int, waiting: Iterable[str]) -> None:
        """Says how much there is to do: all files, and the paths of those that no earlier run finished."""
        self.files = files
        self._waiting = list(waiting)

    def begin(self, path: str, position: Position = _nowhere) -> None:
        """Notes the file in progress."""
        self._current, self._position = path, position

    def end(self, size_bytes: int | None) -> None:
        """Notes that the file in progress is done."""
        self.have_read(size_bytes or 0)
        self._position = _nowhere

    def have_read(self, size_bytes: int) -> None:
        """Notes bytes that were read elsewhere."""
        self._bytes += size_bytes

    def advance(self, *, files: int = 0, transcripts: int = 0) -> None:
        """Advances the bar, shown after `_BAR_AFTER_S`. Without a terminal, writes a line per `_LINE_EVERY_S`."""
        self._files += files
        self._transcripts += transcripts
        now = time.monotonic()
        if not self._may_draw:
            if now - self._reported_at >= _LINE_EVERY_S:
                self._reported_at = now
                self.say(self._pace(now).line())
            return
        if self._bar is None:
            if now - self._begun < _BAR_AFTER_S:
                return
            self._bar, self._task = _new_bar()
            self._reported_at = 0.0
        assert self._task is not None  # noqa: S101 - for the type checker: created with the bar
        if now - self._reported_at < _DRAW_EVERY_S and self._files < self.files:
            return
        self._reported_at = now
        pace = self._pace(now)
        current = printable(pace.current)
        self._bar.update(
            self._task, completed=pace.share, done=pace.done, rate=pace.rate, eta=pace.eta, current=current
        )

    def _pace(self, now: float) -> Pace:
        if self._waiting is not None:  # as late as here: of a million files it takes seconds
            self._bytes_total, self._waiting = size_of(self._waiting), None
        return Pace(
            self.files,
            self._files,
            self._transcripts,
            now - self._begun,
            self._bytes_total,
            self._bytes + self._position(),
            self._current,
        )


def _new_bar() -> tuple[Bar, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column as BarCell

    def cell(name: str) -> TextColumn:
        return TextColumn("{task.fields[" + name + "]}", markup=False)

    file = TextColumn(
        "{task.fields[current]}", markup=False, table_column=BarCell(ratio=1, no_wrap=True, overflow="ellipsis")
    )
    bar = Progress(
        BarColumn(20),
        cell("done"),
        cell("rate"),
        cell("eta"),
        file,
        console=Console(stderr=True),
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.start()
    return bar, bar.add_task("", total=1.0, done="", rate="", eta="", current="")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the key of its values and their alignment."""

    key: str
    align: Literal["left", "right"] = "left"


class Table:
    """Records with equal keys: a table on a terminal, tab-separated lines elsewhere, or JSON lines.

    Lines are written at once; a table is printed by `close`.
    """

    def __init__(self, columns: Sequence[Column], *, as_json: bool = False) -> None:
        self._columns = columns
        self._as_json = as_json
        self._rows: list[list[str]] | None = [] if not as_json and sys.stdout and sys.stdout.isatty() else None
        self._has_header = False

    def add(self, record: Mapping[str, Any]) -> None:
        """Adds a record. A table shows the values of its columns, JSON all."""
        if self._as_json:
            write_json(record)
            return
        cells = [_cell(record.get(column.key)) for column in self._columns]
        if self._rows is not None:
            self._rows.append(cells)
            return
        if not self._has_header:
            self._has_header = True
            click.echo("\t".join(column.key for column in self._columns))
        click.echo("\t".join(cells))

    def close(self) -> None:
        """Prints the table on a terminal."""
        if not self._rows:
            return
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=None, pad_edge=False, header_style="bold")
        for column in self._columns:
            is_number = column.align == "right"
            heading = column.key.replace("_", "\n")
            table.add_column(heading, justify=column.align, overflow="fold", no_wrap=is_number)
        for cells in self._rows:
            table.add_row(*(Text(cell) for cell in cells))
        Console(highlight=False).print(table)


def _cell(value: object) -> str:
    return "-" if value is None else printable(str(value))
