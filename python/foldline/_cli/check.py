"""The command that lists what a provider would reject."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace
from typing import Any

import click

from foldline._cli.options import json_option
from foldline._cli.progress import Column, Reporter, Stop, Table
from foldline._cli.walk import each_transcript, paths_argument
from foldline._core import PROVIDER_OF_FORMAT, PROVIDERS
from foldline.errors import FoldlineError
from foldline.planning import analyze, validate
from foldline.typing import Problem, Provider, StoredTranscript

__all__ = ["check_command"]


@click.command("check")
@paths_argument
@click.option("--provider", type=click.Choice(sorted(PROVIDERS)), help="Apply the rules of this API.")
@click.option("--alternate", is_flag=True, help="User and assistant must alternate, as some chat templates require.")
@click.option("--single-system", is_flag=True, help="Allow only one system message, as the first message.")
@click.option(
    "--no-prefill", is_flag=True, help="The last message must not be the assistant's, as some models require."
)
@click.option("--strict", is_flag=True, help="Stop at the first problem.")
@json_option
def check_command(
    paths: tuple[str, ...],
    provider: Provider | None,
    alternate: bool,
    single_system: bool,
    no_prefill: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Lists problems of files, and what a provider would reject in their messages.

    Without --provider the rules are those of the transcript's own dialect; in pi sessions, calls and results must
    match.
    """
    columns = [Column("path"), Column("id"), Column("format"), Column("messages", "right"), Column("problems", "right")]
    table = Table(columns, as_json=as_json)
    with Reporter(strict=strict) as reporter, contextlib.suppress(Stop):

        def of_file(problem: Problem) -> None:
            if as_json:
                table.add(_verdict(problem.path, None, None, [problem]))
            reporter.problem(problem)

        for source, transcript in each_transcript(paths, reporter, of_file):
            judge = provider or PROVIDER_OF_FORMAT.get(transcript.format)
            options = {"alternate": alternate, "single_system": single_system, "allow_prefill": not no_prefill}
            problems = _problems(transcript, judge, **options)
            verdict = _verdict(source.path, transcript, judge, problems)
            table.add(verdict if as_json else verdict | {"problems": len(problems)})
            for problem in problems:
                reporter.problem(replace(problem, path=source.path), transcript.id)
    table.close()
    return reporter.exit_code


def _verdict(
    path: str | None, transcript: StoredTranscript | None, judge: str | None, problems: list[Problem]
) -> dict[str, Any]:
    """The result for a transcript, or for a file itself."""
    keys = ("index", "line", "offset", "code", "detail")
    return {
        "path": path,
        "id": transcript and transcript.id,
        "format": transcript and transcript.format,
        "provider": judge,
        "messages": len(transcript.messages) if transcript else 0,
        "problems": [{key: getattr(problem, key) for key in keys} for problem in problems],
    }


def _problems(transcript: StoredTranscript, provider: Provider | None, **options: bool) -> list[Problem]:
    try:
        if provider is not None:
            return validate(transcript.messages, provider, format=transcript.format, **options)
        structure = analyze(transcript.messages, format=transcript.format)
    except FoldlineError as error:
        detail = f"{error.detail}, at {error.path}" if error.path else error.detail
        return [Problem(error.index, error.code, detail)]
    found = []
    for key, code, detail in (
        ("orphan_results", "orphan_result", "results without a call"),
        ("open_calls", "open_call", "calls without a result"),
    ):
        counts = Counter(getattr(structure, key))
        found += [(index, code, f"{detail}: {number}") for index, number in counts.items()]
    return [Problem(*problem) for problem in sorted(found)]
