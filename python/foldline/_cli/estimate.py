"""Estimates the model requests of a run, without calling the model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foldline._cli.fold_file import output_names, source_name
from foldline._cli.parquet import folded_batches, is_parquet
from foldline._cli.progress import Column, FileReport, ProgressSink, Reporter, Stop, Table
from foldline._cli.sources import STDIN, Source, find_sources, transcripts
from foldline.batch import BatchCompactor
from foldline.errors import StoreError
from foldline.summarizers import Extractive, Prompted
from foldline.typing import Completion, Problem, SummarizeRequest

__all__ = ["Prediction", "Predictor", "predict"]

_PREDICTED = ("transcripts", "to_fold", "requests", "input_tokens", "output_tokens_at_most", "cost_at_most")


@dataclass(slots=True)
class Prediction:
    """The estimated requests of a file."""

    source: str
    transcripts: int = 0
    to_fold: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens_at_most: int = 0
    cost_at_most: float | None = None

    def add(self, other: Prediction) -> None:
        """Adds another estimate."""
        for key in _PREDICTED[:-1]:
            setattr(self, key, getattr(self, key) + getattr(other, key))
        if other.cost_at_most is not None:
            self.cost_at_most = (self.cost_at_most or 0.0) + other.cost_at_most

    def record(self) -> dict[str, Any]:
        """All fields as a dict."""
        return asdict(self)


class Predictor:
    """A summarizer that measures prompts instead of sending them.

    Estimates one call per summary; retries with the reason are not included.

    Args:
        writer: Builds the prompts; None if no model is used.
        price: Cost of a number of input and output tokens, if known.
    """

    def __init__(self, writer: Prompted | None, price: Callable[[int, int], float] | None) -> None:
        self._writer = writer
        self._price = price
        self.prediction = Prediction("")

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Measures the prompt."""
        prediction = self.prediction
        if self._writer is None:
            return Extractive().summarize(request)
        read = sum(request.count(message["content"]) for message in self._writer.messages_for(request))
        prediction.requests += 1
        prediction.input_tokens += read
        prediction.output_tokens_at_most += request.max_tokens
        if self._price is not None:
            prediction.cost_at_most = (prediction.cost_at_most or 0.0) + self._price(read, request.max_tokens)
        return Completion("-", model="none")


def _predict_file(
    source: Source, predictor: Predictor, compactor: BatchCompactor, reporter: ProgressSink
) -> Prediction:
    """Estimates folding a file. Writes nothing.

    Raises:
        Stop: In a strict run.
    """
    prediction = predictor.prediction = Prediction(source_name(source))
    if is_parquet(source.path):
        report = FileReport(prediction.source)
        for _ in folded_batches(source.path, compactor, report, reporter):
            pass
        prediction.transcripts, prediction.to_fold = report.transcripts, report.folded
        return prediction
    try:
        for row in compactor.compact_rows(transcripts(source, reporter.problem)):
            prediction.transcripts += 1
            prediction.to_fold += row.status == "folded"
            reporter.advance(transcripts=1)
    except StoreError as error:
        reporter.problem(Problem(None, error.code, error.detail, error.path))
    return prediction


def predict(
    paths: Sequence[str],
    more: Sequence[Source],
    out: Path,
    predictor: Predictor,
    compactor: BatchCompactor,
    *,
    compress: str,
    strict: bool,
    as_json: bool,
) -> int:
    """Prints the estimate of a run; returns the exit code.

    Raises:
        click.UsageError: Outputs would collide.
    """
    table = Table([Column("source")] + [Column(key, "right") for key in _PREDICTED], as_json=as_json)
    total = Prediction("total")
    with Reporter(strict=strict) as reporter, contextlib.suppress(Stop):
        sources = [*find_sources(paths, reporter.problem), *more]
        output_names(sources, [path for path in paths if path != STDIN and Path(path).is_dir()], out, compress)
        reporter.expect(len(sources), (source.path for source in sources))
        for source in sources:
            with reporter.of_file(source.path):
                prediction = _predict_file(source, predictor, compactor, reporter)
            total.add(prediction)
            table.add(prediction.record())
            reporter.advance(files=1)
        if len(sources) > 1 and not as_json:
            table.add(total.record())
    table.close()
    return reporter.exit_code
