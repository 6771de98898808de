"""Options shared by commands, and their values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from foldline._beside import beside_arguments
from foldline._cli.sources import STDIN, is_pattern
from foldline._core import Plan, TokenCounter
from foldline.batch import BatchCompactor
from foldline.errors import ConfigError, FoldlineError
from foldline.planning import (
    FitTokens,
    Infeasible,
    Keep,
    KeepFraction,
    KeepIterations,
    KeepMessages,
    KeepTokens,
    KeepTurns,
    plan,
)
from foldline.typing import StoredTranscript, Summarizer, Thinking

__all__ = [
    "PATHS",
    "Folding",
    "budget_option",
    "check_pins",
    "checked_paths",
    "counter_options",
    "database_options",
    "folding_options",
    "json_option",
    "make_counter",
    "pin_option",
    "placing_options",
    "running_options",
]

DEFAULT_KEEP_TOKENS = 20_000
DEFAULT_SUMMARY_TOKENS = 1_000


def _number(value: Any) -> int:
    """A token or message count. Below 2^53, so that it is exact as a float."""
    return int(click.IntRange(0, 2**53 - 1).convert(value, None, None))


class _PathOrPattern(click.Path):
    """An existing path, or a pattern for shells that do not expand patterns."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, str) and is_pattern(value) else super().convert(value, param, ctx)


#: A file, folder, pattern or standard input. Unreadable files are reported with the other problems.
PATHS: click.Path = _PathOrPattern(exists=True, readable=False, allow_dash=True)

F = TypeVar("F", bound=Callable[..., Any])

_KEEPS: dict[str, Callable[[Any], Keep]] = {
    "keep_tokens": KeepTokens,
    "keep_fraction": KeepFraction,
    "keep_messages": KeepMessages,
    "keep_turns": KeepTurns,
    "keep_iterations": KeepIterations,
    "fit": FitTokens,
}


def _all(options: Iterable[Callable[[F], F]]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(list(options)):
            function = option(function)
        return function

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines, one object per result.")

counter_options = _all(
    [
        click.option("--encoding", metavar="NAME", help="Count with this encoding.  [default: o200k_base]"),
        click.option("--model", metavar="NAME", help="Count with the encoding of this model."),
        click.option("--heuristic", metavar="NAME", help="Estimate with this formula, such as chars/4."),
    ]
)

pin_option = click.option(
    "--pin", "pins", type=_number, metavar="I", multiple=True, help="Keep message I, from 0; repeatable."
)

budget_option = click.option(
    "--fit", type=_number, metavar="N", required=True, help="The most tokens of a request, all included."
)

folding_options = _all(
    [
        click.option(
            "--keep-tokens", type=_number, metavar="N", help="Keep at least the N newest tokens.  [the default]"
        ),
        click.option("--keep-fraction", type=float, metavar="F", help="Keep at least this fraction of the tokens."),
        click.option("--keep-messages", type=_number, metavar="N", help="Keep at least the N newest messages."),
        click.option("--keep-turns", type=_number, metavar="N", help="Keep the N newest turns."),
        click.option(
            "--keep-iterations", type=_number, metavar="N", help="Keep the N newest calls with their results."
        ),
        click.option(
            "--fit", type=_number, metavar="N", help="Fold, clear and shorten until all takes at most N tokens."
        ),
        click.option(
            "--context-window", type=_number, metavar="N", help="Context window; without a keep option, fit into it."
        ),
        click.option(
            "--reserve-tokens", type=_number, metavar="N", default=0, help="Tokens of the window to leave free."
        ),
        pin_option,
        click.option(
            "--summary-tokens",
            type=_number,
            metavar="N",
            default=DEFAULT_SUMMARY_TOKENS,
            show_default=True,
            help="Token limit of the summary.",
        ),
        click.option(
            "--min-gain-tokens",
            type=_number,
            metavar="N",
            default=0,
            help="Do not fold if it saves fewer tokens; a budget is met in any case.",
        ),
        click.option(
            "--thinking",
            type=click.Choice(["keep", "strip", "fold"]),
            default="keep",
            show_default=True,
            help="Treatment of thinking after a summary, which Anthropic's newer models reject.",
        ),
    ]
)

database_options = _all(
    [
        click.option(
            "--database",
            metavar="URL",
            help="Also read a database: sessions of foldline, or the rows of --table or --query.",
        ),
        click.option("--table", metavar="NAME", help="A table or view with a column messages, optionally id."),
        click.option("--query", metavar="SQL", help="A query with a column messages, optionally id."),
    ]
)

placing_options = _all(
    [
        click.option(
            "--jobs",
            type=click.IntRange(1, 1024),
            metavar="N",
            help="Files to fold at once.  [default: 1; on Ray all processors]",
        ),
        click.option(
            "--engine",
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
            help="Worker processes here, or actors of the Ray cluster at RAY_ADDRESS (else a local one).",
        ),
        click.option(
            "--compress",
            type=click.Choice(["auto", "gz", "zst", "none"]),
            default="auto",
            show_default=True,
            help="Compression of results; auto: like their sources. Parquet files stay Parquet.",
        ),
        click.option("--resume", is_flag=True, help="Continue an earlier run into DIR, however it ended."),
    ]
)

running_options = _all(
    [
        placing_options,
        click.option(
            "--max-requests",
            type=click.IntRange(0),
            metavar="N",
            help="Maximum calls of the model, resumed runs included.",
        ),
        click.option(
            "--max-cost",
            type=click.FloatRange(0),
            metavar="USD",
            help="Maximum cost of these calls, resumed runs included.",
        ),
        click.option("--dry-run", is_flag=True, help="Show the model requests and their cost; write nothing."),
        click.option(
            "--report",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Write figures of the run as JSON, and show them; records get facts and warnings.",
        ),
        click.option(
            "--samples",
            type=click.IntRange(0),
            metavar="N",
            default=0,
            help="With --report: pages of N transcripts of each outcome, with their texts.",
        ),
    ]
)


def checked_paths(context: click.Context, parameter: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Checks that the paths can be read together."""
    del context
    if STDIN in paths and sys.stdin is None:
        raise click.BadParameter("standard input is closed", param=parameter)
    if paths.count(STDIN) > 1:
        raise click.BadParameter("standard input can be read only once", param=parameter)
    return paths


def check_pins(pins: tuple[int, ...], longest: int) -> None:
    """Checks that every pin, ascending, is an index of the longest transcript.

    Raises:
        click.UsageError: A pin is not.
    """
    if longest and pins and pins[-1] >= longest:
        raise click.BadParameter(f"no transcript has a message {pins[-1]}", param_hint="--pin")


def make_counter(encoding: str | None, model: str | None, heuristic: str | None) -> TokenCounter:
    """The requested counter.

    Raises:
        click.UsageError: Several counters, or an unknown one.
    """
    given = [name for name, value in (("encoding", encoding), ("model", model), ("heuristic", heuristic)) if value]
    if len(given) > 1:
        raise click.UsageError(f"--{given[0]} and --{given[1]} exclude each other")
    try:
        counter = TokenCounter.for_model(model) if model else TokenCounter(encoding or heuristic or "o200k_base")
    except FoldlineError as error:
        detail = error.detail.replace("neither a callable nor one of", "not one of")
        raise click.BadParameter(detail, param_hint=f"--{given[0]}") from None
    if heuristic and counter.kind != "estimated":
        raise click.BadParameter("not a heuristic; did you mean --encoding?", param_hint="--heuristic")
    return counter


@dataclass(frozen=True, slots=True)
class Folding:
    """Folding options: the arguments of `plan` and `compact`.

    Attributes:
        keep: How much to keep. None: as much as fits into the window.
        counter: The token counter.
        context_window: The model's context window.
        reserve_tokens: Tokens of the window to leave free.
        pins: Indices of pinned messages.
        summary_tokens: Token limit of the summary.
        min_gain_tokens: Minimum saving of a fold.
        thinking: Treatment of thinking after a summary.
    """

    keep: Keep | None
    counter: TokenCounter
    context_window: int | None
    reserve_tokens: int
    pins: tuple[int, ...]
    summary_tokens: int
    min_gain_tokens: int
    thinking: Thinking

    @classmethod
    def of(
        cls,
        *,
        counter: TokenCounter,
        context_window: int | None,
        reserve_tokens: int,
        pins: tuple[int, ...],
        summary_tokens: int,
        min_gain_tokens: int,
        thinking: Thinking,
        **keeps: float | None,
    ) -> Folding:
        """The folding options of a command.

        Raises:
            click.UsageError: Options contradict each other, or one is out of range.
        """
        given = [name for name, value in keeps.items() if value is not None]
        if len(given) > 1:
            raise click.UsageError(f"{_option(given[0])} and {_option(given[1])} exclude each other")
        keep: Keep | None = None if context_window is not None else KeepTokens(DEFAULT_KEEP_TOKENS)
        try:
            if given:
                keep = _KEEPS[given[0]](keeps[given[0]])
            # An empty conversation has nothing to plan, so that an error here is an error of the options.
            plan(
                [],
                keep,
                counter=counter,
                context_window=context_window,
                reserve_tokens=reserve_tokens,
                summary_tokens=summary_tokens,
            )
        except ConfigError as error:
            is_keep = given and error.path in ("n", "f", "keep")
            name = _option(given[0]) if is_keep else _option(error.path)
            raise click.BadParameter(error.detail, param_hint=name) from None
        unique = tuple(sorted(set(pins)))
        return cls(keep, counter, context_window, reserve_tokens, unique, summary_tokens, min_gain_tokens, thinking)

    def plan(self, transcript: StoredTranscript) -> Plan | Infeasible:
        """The plan of a transcript."""
        arguments = self.arguments(transcript)
        return plan(transcript.messages, self.keep, format=transcript.format, **arguments)

    def page(self, transcript: StoredTranscript, planned: Plan | Infeasible, *, content: bool) -> str:
        """The plan as an HTML page."""
        from foldline.folding.result import FoldInput
        from foldline.report import plan_html

        tools = self.arguments(transcript)["tools"]
        keep = self.keep or FitTokens((self.context_window or 0) - self.reserve_tokens)
        given = FoldInput(transcript.messages, self.counter, keep, transcript.format, tools)
        return plan_html(planned, given, transcript=transcript, content=content)

    def check_pins(self, longest: int) -> None:
        """Checks that every pin is an index of the longest transcript.

        Raises:
            click.UsageError: A pin is not.
        """
        check_pins(self.pins, longest)

    def arguments(self, transcript: StoredTranscript) -> dict[str, Any]:
        """Keyword arguments of `plan` for a transcript; pins beyond its end are ignored."""
        return {
            "counter": self.counter,
            "context_window": self.context_window,
            "reserve_tokens": self.reserve_tokens,
            "pins": [pin for pin in self.pins if pin < len(transcript.messages)],
            "summary_tokens": self.summary_tokens,
            "min_gain_tokens": self.min_gain_tokens,
            "thinking": self.thinking,
            **beside_arguments(transcript),
        }

    def compactor(self, summarizer: Summarizer, *, facts: bool = False) -> BatchCompactor:
        """A compactor with these options."""
        return BatchCompactor(
            self.keep,
            summarizer=summarizer,
            counter=self.counter,
            context_window=self.context_window,
            reserve_tokens=self.reserve_tokens,
            pins=self.pins,
            summary_tokens=self.summary_tokens,
            min_gain_tokens=self.min_gain_tokens,
            thinking=self.thinking,
            facts=facts,
        )

    def record(self) -> dict[str, Any]:
        """The options as recorded in a manifest."""
        keep = self.keep or FitTokens((self.context_window or 0) - self.reserve_tokens)
        amount = {"f": keep.f, "of": keep.of} if isinstance(keep, KeepFraction) else {"n": keep.n}
        return {
            "keep": {"kind": type(keep).__name__, **amount},
            "counter": self.counter.name,
            "context_window": self.context_window,
            "reserve_tokens": self.reserve_tokens,
            "pins": list(self.pins),
            "summary_tokens": self.summary_tokens,
            "min_gain_tokens": self.min_gain_tokens,
            "thinking": self.thinking,
        }


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
