"""The command `trim`: drops the oldest messages of transcripts, without a summary."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import click

from foldline._beside import beside_arguments
from foldline._cli.databases import database_sources
from foldline._cli.options import (
    PATHS,
    budget_option,
    check_pins,
    checked_paths,
    counter_options,
    database_options,
    json_option,
    make_counter,
    pin_option,
    placing_options,
)
from foldline._cli.run import Compacting
from foldline._core import TokenCounter
from foldline.batch import BatchCompactor
from foldline.folding import FoldResult, trim
from foldline.planning import FitTokens
from foldline.typing import FormatOption, StoredTranscript

__all__ = ["trim_command"]


@dataclass(frozen=True, slots=True)
class Trimming:
    """The arguments of `trim` for all transcripts of a run.

    Attributes:
        max_tokens: The most tokens of a request.
        pins: Indices of pinned messages.
        keep_newest_user: Whether the newest user message stays wherever that fits.
        start_on_user: Whether the first message after head and pins must be the user's.
        whole_turns: Whether only whole turns are dropped.
        clear: Whether results may be cleared.
        shorten: Whether results of the newest group may be shortened.
    """

    max_tokens: int
    pins: tuple[int, ...]
    keep_newest_user: bool
    start_on_user: bool
    whole_turns: bool
    clear: bool
    shorten: bool

    def check_pins(self, longest: int) -> None:
        """Checks that every pin is an index of the longest transcript.

        Raises:
            click.UsageError: A pin is not.
        """
        check_pins(self.pins, longest)

    def record(self) -> dict[str, Any]:
        """The options as recorded in a manifest."""
        return asdict(self) | {"pins": list(self.pins)}


class Trimmer(BatchCompactor):
    """Trims transcripts, each as `trim` does. Can be pickled.

    Args:
        trimming: The options.
        counter: The token counter.
    """

    def __init__(self, trimming: Trimming, counter: TokenCounter) -> None:
        super().__init__(FitTokens(trimming.max_tokens), counter=counter, pins=trimming.pins)
        self.trimming = trimming

    def fold(self, transcript: StoredTranscript, format: str) -> FoldResult:
        """Trims one transcript."""
        options = self.trimming.record()
        pins = [pin for pin in options.pop("pins") if pin < len(transcript.messages)]
        tools = beside_arguments(transcript)["tools"]
        return trim(
            transcript.messages,
            counter=self.counter,
            format=cast("FormatOption", format),
            pins=pins,
            tools=tools,
            **options,
        )


@click.command("trim")
@click.argument("paths", type=PATHS, nargs=-1, metavar="PATH…", callback=checked_paths)
@database_options
@click.option("--out", required=True, type=click.Path(file_okay=False), metavar="DIR", help="Output folder.")
@budget_option
@pin_option
@click.option(
    "--keep-newest-user/--no-keep-newest-user",
    default=True,
    show_default=True,
    help="Keep the newest user message wherever that fits.",
)
@click.option("--start-on-user", is_flag=True, help="The first message after system prompt and pins is the user's.")
@click.option("--whole-turns", is_flag=True, help="Drop only whole turns.")
@click.option("--clear/--no-clear", default=True, show_default=True, help="Clear results where dropping is not enough.")
@click.option(
    "--shorten/--no-shorten", default=True, show_default=True, help="Then shorten results of the newest group."
)
@placing_options
@counter_options
@click.option("--strict", is_flag=True, help="Stop at the first problem; its file gives no output.")
@json_option
def trim_command(
    paths: tuple[str, ...],
    out: str,
    fit: int,
    encoding: str | None,
    model: str | None,
    heuristic: str | None,
    pins: tuple[int, ...],
    jobs: int | None,
    engine: str,
    compress: str,
    database: str | None,
    table: str | None,
    query: str | None,
    resume: bool,
    strict: bool,
    as_json: bool,
    **switches: bool,
) -> int:
    """Drops the oldest messages of transcripts until each takes at most N tokens; writes no summary.

    Sources are never modified. Calls stay with their results; system prompts, pins and open calls stay. Outputs,
    records and --resume are those of compact; a transcript that cannot meet the budget is written unchanged.
    """
    if not out:
        raise click.BadParameter("an empty name", param_hint="--out")
    databases = database_sources(database, table, query)
    if not paths and not databases:
        raise click.UsageError("Missing argument 'PATH…', or --database.")
    counter = make_counter(encoding, model, heuristic)
    trimming = Trimming(fit, tuple(sorted(set(pins))), **switches)
    recorded = trimming.record() | {"counter": counter.name, "strict": strict, "compress": compress}
    run = Compacting(
        Path(out), compress, resume=resume, strict=strict, engine=engine, jobs=jobs, as_json=as_json, command="trim"
    )
    return run.over(paths, databases, trimming, Trimmer(trimming, counter), recorded, None)
