"""`foldline restore`: the original messages of a compacted session."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import click

from foldline._cli.progress import Reporter, Stop, write_json
from foldline._util.files import replacing
from foldline.errors import FoldlineError
from foldline.reading._sessions import dialect_of
from foldline.stores import JsonlSession
from foldline.typing import Problem

__all__ = ["restore"]


@click.command()
@click.argument("session", type=click.Path(exists=True, dir_okay=False, readable=False), metavar="SESSION.jsonl")
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Output file. Default: standard output.")
@click.option("--leaf", metavar="ID", help="Last entry of the branch. Default: the newest entry.")
@click.option("--strict", is_flag=True, help="Stop at the first problem, and write nothing.")
def restore(session: str, out: str | None, leaf: str | None, strict: bool) -> int:
    """Writes the original messages of a session file, as if it had never been compacted.

    The session is one of pi or of foldline (stores.JsonlSession); it is never modified. The output is one line: an
    object with id, format and messages, which every command reads. Corrupt lines are listed and skipped; a compaction
    whose covered messages have changed is listed as covered_changed, a session without messages as no_transcript.
    """
    if out is not None and os.path.exists(out) and os.path.samefile(out, session):  # noqa: PTH110, PTH121 - the path as given
        raise click.BadParameter("is the session itself", param_hint="--out")
    with Reporter(strict=strict) as reporter, contextlib.suppress(Stop):
        try:
            # A link named by the user is followed.
            store = JsonlSession(os.path.realpath(session), readonly=True)
            if leaf is not None and leaf not in {entry.id for entry in store.entries}:
                raise click.BadParameter("no such entry", param_hint="--leaf")
            for problem in store.check():
                reporter.problem(problem)
            record = _record(store, leaf)
            if not record["messages"]:
                reporter.problem(Problem(None, "no_transcript", "this session contains no message", session))
        except FoldlineError as error:
            reporter.error(error, session)
            return reporter.exit_code
        if out is None:
            write_json(record)
            return reporter.exit_code
        try:
            mode = os.stat(session).st_mode & 0o777  # noqa: PTH116 - the path as given
            with replacing(Path(out), mode=mode) as stream:
                stream.write(json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise click.BadParameter(f"cannot be written: {error.strerror}", param_hint="--out") from None
    return reporter.exit_code


def _record(store: JsonlSession, leaf: str | None) -> dict[str, Any]:
    messages = store.restore(leaf)
    values = [store.header, *(entry.value for entry in store.entries)]
    return {"id": store.id, "format": dialect_of(values, messages), "messages": messages}
