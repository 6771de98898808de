"""The commands and their exit codes."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from foldline._beside import system_beside, tools_beside
from foldline._cli.check import check_command
from foldline._cli.databases import database_sources
from foldline._cli.estimate import predict
from foldline._cli.fold_file import BOOKKEEPING
from foldline._cli.known_models import models_command
from foldline._cli.models import make_predictor, make_summarizer
from foldline._cli.options import (
    PATHS,
    Folding,
    checked_paths,
    counter_options,
    database_options,
    folding_options,
    json_option,
    make_counter,
    running_options,
)
from foldline._cli.progress import Column, Reporter, Table, os_error, printable, write_json
from foldline._cli.restore import restore
from foldline._cli.run import Compacting
from foldline._cli.see import audit_command, diff_command, show_command, write_page
from foldline._cli.sources import STDIN, Source
from foldline._cli.trim import trim_command
from foldline._cli.walk import each_transcript, paths_argument
from foldline._core import FORMATS, Plan, TokenCounter, __version__
from foldline.errors import FoldlineError
from foldline.planning import Infeasible
from foldline.typing import FormatOption, Problem, StoredTranscript

__all__ = ["run"]

_INTERRUPTED = 130
_PIPE_CLOSED = 141

_FORMATS = ("auto", *FORMATS)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; an error is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # file names may contain characters that the terminal cannot encode
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _cli.main(arguments, prog_name="foldline", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return _PIPE_CLOSED
    except OSError as error:
        _forget_stdout()
        click.echo(f"foldline: stopped: {os_error(error)}", err=True)
        return 1
    except FoldlineError as error:
        place = f"{printable(error.path)}: " if error.path else ""
        click.echo(f"foldline: stopped: {place}{error.detail}", err=True)
        return 1
    except MemoryError:
        click.echo("foldline: out of memory", err=True)
        return 1
    return code if isinstance(code, int) else 0


def _forget_stdout() -> None:
    """Redirects standard output to the null device, so that Python's flush at exit does not fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


class _Commands(click.Group):
    """A group with its own exit code for a closed pipe: click's is 1, which means problems in the data."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _forget_stdout()
            return _PIPE_CLOSED


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="foldline")
def _cli() -> None:
    """Counts the tokens of LLM conversations, plans where to fold them, and folds them.

    PATH is a file, a folder (read recursively, without hidden files) or - for standard input; formats are detected by
    content. Results go to standard output, everything else to standard error.

    Exit codes: 0 success; 1 problems in the data, which are listed, while everything else was processed; 2 wrong
    usage.
    """


_cli.add_command(restore)
_cli.add_command(trim_command)
_cli.add_command(models_command)
_cli.add_command(show_command)
_cli.add_command(audit_command)
_cli.add_command(diff_command)
_cli.add_command(check_command)


# count


@_cli.command()
@paths_argument
@counter_options
@click.option(
    "--format",
    type=click.Choice(_FORMATS),
    default="auto",
    show_default=True,
    help="Count the messages in this dialect.",
)
@json_option
def count(
    paths: tuple[str, ...],
    encoding: str | None,
    model: str | None,
    heuristic: str | None,
    format: FormatOption,
    as_json: bool,
) -> int:
    """Counts the tokens of transcripts.

    Tokens are those of the messages and of the provider's framing. Tool schemas and system text stored next to the
    messages in the file are counted separately (tokens_beside).
    """
    counter = make_counter(encoding, model, heuristic)
    columns = [Column("path"), Column("id"), Column("format"), Column("messages", "right")]
    columns += [Column("tokens", "right"), Column("tokens_beside", "right"), Column("kind")]
    table = Table(columns, as_json=as_json)
    sums = {"messages": 0, "tokens": 0, "tokens_beside": 0}
    kinds = set()
    rows = 0
    with Reporter() as reporter:
        for source, transcript in each_transcript(paths, reporter):
            try:
                row = _counted(transcript, counter, transcript.format if format == "auto" else format)
            except FoldlineError as error:
                reporter.error(error, source.path, transcript.id)
                continue
            table.add({"path": source.path} | row)
            rows += 1
            sums = {key: total + row[key] for key, total in sums.items()}
            kinds.add(row["kind"])
    if rows > 1 and not as_json:
        table.add({"path": "total"} | sums | {"kind": kinds.pop() if len(kinds) == 1 else "mixed"})
    table.close()
    return reporter.exit_code


def _counted(transcript: StoredTranscript, counter: TokenCounter, format: FormatOption) -> dict[str, Any]:
    messages = transcript.messages
    counts = counter.count_messages(messages, format=format)
    head, tools = system_beside(transcript), tools_beside(transcript)
    whole = counts.total
    if tools or head:
        whole = counter.count_messages([*head, *messages], tools or None, format=format).total
    return {
        "id": transcript.id,
        "format": format,
        "messages": len(messages),
        "tokens": counts.total,
        "overhead": counts.overhead,
        "tokens_beside": whole - counts.total,
        "counter": counter.name,
        "kind": counts.kind,
    }


# plan


@_cli.command("plan")
@click.argument("path", type=PATHS)
@folding_options
@counter_options
@click.option("--html", "page", type=click.Path(dir_okay=False), metavar="FILE", help="Write the plan as a page.")
@click.option("--no-content", is_flag=True, help="No text of a message in the page.")
@click.option("--explain", "in_words", is_flag=True, help="Describe each plan in words: what stays, what goes and why.")
@json_option
def plan_command(
    path: str,
    encoding: str | None,
    model: str | None,
    heuristic: str | None,
    in_words: bool,
    page: str | None,
    no_content: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Shows what folding would do to each message. Changes nothing.

    A budget that cannot be met is a problem.
    """
    folding = Folding.of(counter=make_counter(encoding, model, heuristic), **options)
    longest = 0
    with Reporter() as reporter:
        for source, transcript in each_transcript(_paths_of(path), reporter):
            longest = max(longest, len(transcript.messages))
            try:
                planned = folding.plan(transcript)
            except FoldlineError as error:
                reporter.error(error, source.path, transcript.id)
                continue
            if page is not None:
                text = folding.page(transcript, planned, content=not no_content)
                write_page(page, text)
                page = None  # of the first transcript
            record = _plan_record(source, transcript, planned)
            if as_json:
                write_json(record)
            elif in_words and isinstance(planned, Plan):
                _show_name(record)
                click.echo(planned.explain())
            else:
                _show_plan(record)
            if isinstance(planned, Infeasible):
                reporter.problem(Problem(None, "infeasible", planned.why, source.path), transcript.id)
    folding.check_pins(longest)
    return reporter.exit_code


def _paths_of(path: str) -> tuple[str, ...]:
    if path == STDIN and sys.stdin is None:
        raise click.BadParameter("standard input is closed", param_hint="PATH")
    return (path,)


def _plan_record(source: Source, transcript: StoredTranscript, planned: Plan | Infeasible) -> dict[str, Any]:
    feasible = isinstance(planned, Plan)
    return {
        "path": source.path,
        "id": transcript.id,
        "format": transcript.format,
        "messages": len(transcript.messages),
        "status": ("folds" if planned else "unchanged") if feasible else "infeasible",
        "floor": planned.floor,
        "plan": json.loads(planned.to_json()) if isinstance(planned, Plan) else None,
        "why": None if isinstance(planned, Plan) else planned.why,
    }


def _show_name(record: dict[str, Any]) -> None:
    click.echo(f"{printable(record['id'])} ({record['format']}, {printable(record['path'])})")


def _show_plan(record: dict[str, Any]) -> None:
    _show_name(record)
    plan = record["plan"]
    if plan is None:
        click.echo(f"  {record['messages']} messages; infeasible: {record['why']}\n")
        return
    click.echo(
        f"  {len(plan['actions'])} messages, {plan['tokens_before']} tokens ({plan['count_kind']});"
        f" verbatim {plan['tokens_kept']}, around them {plan['overhead']}, floor {plan['floor']}"
    )
    if plan["cut"]:
        start, end = plan["turn_prefix"] or (0, 0)
        inside = f", inside a turn: {start}..{end - 1} are its beginning" if end else ""
        click.echo(f"  cut at {plan['cut']}{inside}; {plan['summary_tokens']} tokens are set aside for the summary")
    table = Table([Column("messages"), Column("action"), Column("reason")])
    begun = 0
    for (action, reason), run in itertools.groupby(zip(plan["actions"], plan["reasons"])):
        end = begun + len(list(run))
        span = f"{begun}..{end - 1}" if end - begun > 1 else str(begun)
        table.add({"messages": span, "action": action, "reason": reason})
        begun = end
    table.close()
    for warning in plan["warnings"]:
        place = "" if warning["index"] is None else f" (message {warning['index']})"
        click.echo(f"  {warning['code']}{place}")
    click.echo()


# compact


@_cli.command("compact")
@click.argument("paths", type=PATHS, nargs=-1, metavar="PATH…", callback=checked_paths)
@database_options
@click.option("--out", required=True, type=click.Path(file_okay=False), metavar="DIR", help="Output folder.")
@folding_options
@click.option(
    "--summarizer",
    metavar="NAME",
    default="extractive",
    show_default=True,
    help="Summarizer: extractive, or openai:MODEL for a model at OPENAI_BASE_URL (default: OpenAI).",
)
@running_options
@counter_options
@click.option("--strict", is_flag=True, help="Stop at the first problem; its file gives no output.")
@json_option
def compact_command(
    paths: tuple[str, ...],
    out: str,
    encoding: str | None,
    model: str | None,
    heuristic: str | None,
    summarizer: str,
    jobs: int | None,
    engine: str,
    compress: str,
    database: str | None,
    table: str | None,
    query: str | None,
    resume: bool,
    max_requests: int | None,
    max_cost: float | None,
    dry_run: bool,
    report: str | None,
    samples: int,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Folds transcripts into new files in a folder; sources are never modified.

    A file becomes DIR/NAME, a folder is mirrored, standard input becomes DIR/stdin.jsonl; names that end in .gz or .zst
    are compressed. A file is written completely or not at all; a transcript that cannot be folded is written unchanged.

    A transcript becomes a JSON object on a line, with id, format, messages, summary, tokens_before, tokens_after,
    actions, status (folded, unchanged, infeasible or failed), error, plan_hash, and meta: the fields around its
    messages. A file that is a JSON array of several transcripts stays one. foldline can read all outputs.

    A Parquet file (a column messages of JSON text, optionally a column id) becomes one. PATH may be a quoted pattern
    such as 'logs/**/*.jsonl'. Transcripts may also come from a database: --database.

    DIR/.foldline/run.json records the options of the run and the outcome of each file. After a kill, Ctrl-C or failed
    summaries, the same command with --resume continues: finished files are kept, and paid summaries are not requested
    again.

    --report FILE writes the figures of the run: outcomes by error, savings, facts without room, the slowest, largest
    and most lossy, costs.
    """
    if not out:
        raise click.BadParameter("an empty name", param_hint="--out")
    databases = database_sources(database, table, query)
    if not paths and not databases:
        raise click.UsageError("Missing argument 'PATH…', or --database.")
    if report is None and samples:
        raise click.UsageError("--samples goes with --report")
    folder = Path(out)
    folding = Folding.of(counter=make_counter(encoding, model, heuristic), **options)
    if dry_run:
        if report is not None:
            raise click.UsageError("--dry-run and --report exclude each other")
        predictor = make_predictor(summarizer)
        compactor = folding.compactor(predictor)
        return predict(
            paths, databases, folder, predictor, compactor, compress=compress, strict=strict, as_json=as_json
        )
    writer, cache = make_summarizer(
        summarizer,
        folder / BOOKKEEPING / "cache.sqlite",
        repr(folding.counter),
        max_requests=max_requests,
        max_cost=max_cost,
        with_costs=report is not None,
    )
    recorded = folding.record() | {"summarizer": summarizer, "strict": strict, "compress": compress}
    reporting = None
    if report is not None:
        from foldline._cli.batch_report import Reporting

        recorded["facts"] = True
        reporting = Reporting(Path(report), samples)
    run = Compacting(
        folder,
        compress,
        resume=resume,
        strict=strict,
        engine=engine,
        jobs=jobs,
        as_json=as_json,
        reporting=reporting,
    )
    compactor = folding.compactor(writer, facts=report is not None)
    return run.over(paths, databases, folding, compactor, recorded, cache)
