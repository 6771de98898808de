"""The report of a run of `foldline compact`: figures in a file and on the terminal, and pages of samples."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from foldline._cli.parquet import is_parquet, row_transcripts
from foldline._cli.progress import FileReport, os_error, printable
from foldline._cli.sources import STDIN, Source, transcripts
from foldline._cli.terminal import Screen
from foldline._util.files import make_folder, remedy, replacing
from foldline.batch import BatchCompactor
from foldline.batch.report import BatchReport, Sample, rows_of
from foldline.errors import FoldlineError, FoldlineWarning, StoreError
from foldline.report import html
from foldline.typing import StoredTranscript

__all__ = ["Reporting"]

#: Width of the longest bar of the histogram.
_BAR = 30

#: Entries of each list that are shown; the file has all.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Reporting:
    """Where the report of a run is written.

    Attributes:
        path: The file of the figures.
        samples: Pages of samples of each outcome; 0: none.
    """

    path: Path
    samples: int = 0

    @property
    def folder(self) -> Path:
        """The folder of the pages."""
        return self.path.with_name(f"{self.path.stem}-samples")

    def write(
        self,
        out: Path,
        files: Mapping[Source, FileReport],
        compactor: BatchCompactor,
        cost: Mapping[str, float] | None,
        *,
        as_json: bool,
    ) -> None:
        """Writes the figures of the outputs below ``out``, and shows them.

        Raises:
            click.UsageError: The file or a page cannot be written.
            StoreError: An output is not one of this command, although its hash was recorded.
        """
        report = BatchReport(max(self.samples, 1))
        for each in files.values():
            rows = () if each.output is None else rows_of(out / each.output)
            try:
                report.add_file(each.record(), rows)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                detail = "is no output of this command; run it without --resume"
                raise StoreError(detail, code="bad_output", path=str(out / str(each.output))) from None
        try:
            pages = self._pages(report.samples(), files, compactor, is_paid=cost is not None) if self.samples else {}
            figures = report.to_dict(cost, pages)
            with replacing(self.path) as stream:
                stream.write(json.dumps(figures, indent=2).encode() + b"\n")
        except OSError as error:
            detail = f"cannot be written: {os_error(error)}; {remedy(error)}"
            raise click.BadParameter(detail, param_hint="--report") from None
        except StoreError as error:
            raise click.BadParameter(f"{printable(error.path)}: {error.detail}", param_hint="--report") from None
        if as_json:
            click.echo(json.dumps({"report": figures}))
        else:
            show(Screen.here(), figures)

    def _pages(
        self,
        samples: Sequence[Sample],
        files: Mapping[Source, FileReport],
        compactor: BatchCompactor,
        *,
        is_paid: bool,
    ) -> dict[Sample, str]:
        """Writes the pages of samples: each is folded again, from its source. A paid summary comes from the cache."""
        sources = {report.source: source for source, report in files.items()}
        wanted: dict[str, dict[int, Sample]] = {}
        for sample in samples:
            if is_paid and sample.status == "failed":
                continue  # it would be asked for again
            wanted.setdefault(sample.source, {})[sample.place] = sample
        folder = make_folder(self.path.parent, Path(self.folder.name))
        pages: dict[Sample, str] = {}
        for name, places in wanted.items():
            if sources[name].path == STDIN:
                continue
            for place, transcript in enumerate(_transcripts(sources[name], compactor)):
                if place in places:
                    sample = places.pop(place)
                    if transcript is None:
                        continue
                    with contextlib.suppress(FoldlineError), warnings.catch_warnings():
                        warnings.simplefilter("ignore", FoldlineWarning)
                        result = compactor.fold(transcript, transcript.format)
                        text = html(result, transcript=transcript)
                        page = f"{len(pages) + 1:03}-{_file_name(sample.id)}.html"
                        with replacing(folder / page) as stream:
                            stream.write(text.encode())
                        pages[sample] = f"{folder.name}/{page}"
                if not places:
                    break
        return pages


def _transcripts(source: Source, compactor: BatchCompactor) -> Iterator[StoredTranscript | None]:
    if is_parquet(source.path):
        return row_transcripts(source.path, compactor)
    return transcripts(source, lambda _: None)


def _file_name(name: str) -> str:
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name[:60])
    return safe.strip(".") or "transcript"


def show(screen: Screen, figures: Mapping[str, Any]) -> None:
    """Writes the figures on the terminal."""
    before, after = figures["tokens_before"], figures["tokens_after"]
    change = f", {round(100 * (after - before) / before):+d} %" if after != before else ""
    screen.line()
    screen.line(
        f"{figures['transcripts']:,} transcripts of {figures['files']:,} files, {figures['problems']:,} problems"
    )
    screen.line(f"{before:,} → {after:,} tokens{change}")
    screen.line()
    screen.line("Outcomes")
    for each in figures["outcomes"]:
        screen.line(f" {each['transcripts']:>9,}  {each['status']:<11}{each['code'] or ''}")
    folded = sum(each["folded"] for each in figures["savings"])
    if folded:
        screen.line()
        screen.line(f"Saved, of {folded:,} folded")
        most = max(each["folded"] for each in figures["savings"])
        for each in figures["savings"]:
            span = f"{each['from_percent']}..{each['to_percent']} %"
            bar = "#" * -(-_BAR * each["folded"] // most)
            screen.line(f" {each['folded']:>9,}  {span:<11}{bar}")
    facts = figures["facts"]
    if facts["kept"] or facts["added"] or facts["dropped"]:
        screen.line()
        screen.line(f"Facts: {facts['kept']:,} kept, {facts['added']:,} added, {facts['dropped']:,} without room")
        for kind, count in facts["dropped_by_kind"].items():
            screen.line(f" {count:>9,}  {kind.replace('_', ' ')}")
    for code, count in figures["warnings"].items():
        screen.line(f"Warning {code}: {count:,} transcripts")
    _extremes(
        screen,
        "Slowest files",
        [(f"{each['seconds']:,.3f} s", each["source"]) for each in figures["slowest"]],
    )
    _extremes(
        screen,
        "Largest",
        [(f"{each['tokens_before']:,}", f"{each['source']}  {each['id']}") for each in figures["largest"]],
    )
    _extremes(
        screen,
        "Most facts lost",
        [(f"{each['dropped']} of {each['facts']}", f"{each['source']}  {each['id']}") for each in figures["most_lost"]],
    )
    if figures["cost"] is not None:
        cost = figures["cost"]
        screen.line()
        dollars = f", {cost['cost']:.4f} US dollars" if "cost" in cost else ""
        screen.line(
            f"Summaries: {cost['requests']:,.0f} requests, {cost['cache_hits']:,.0f} from the cache, "
            f"{cost['input_tokens']:,.0f} tokens in, {cost['output_tokens']:,.0f} out{dollars}"
        )
    pages = [each["page"] for each in figures["samples"] if each["page"]]
    if pages:
        screen.line()
        screen.line(f"Samples to read: {len(pages)} pages in {os.path.dirname(pages[0])}")  # noqa: PTH120 - a name


def _extremes(screen: Screen, title: str, entries: Sequence[tuple[str, str]]) -> None:
    if not entries:
        return
    screen.line()
    screen.line(title)
    for figure, name in entries[:_SHOWN]:
        screen.line(f" {figure:>12}  {screen.cut_start(name, screen.width - 16)}")
