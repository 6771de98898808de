"""The commands that show what is in a context and what compactions did: show, audit, diff."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from foldline._cli.databases import session_sources
from foldline._cli.options import PATHS, checked_paths, counter_options, json_option, make_counter
from foldline._cli.progress import Reporter, printable, write_json
from foldline._cli.terminal import Screen, short, span
from foldline._cli.walk import each_transcript
from foldline._core import TokenCounter
from foldline.errors import FoldlineError, StoreError
from foldline.folding.result import FoldInput, FoldResult
from foldline.report import CATEGORIES, Audit, ContextNow, FoldAudit, audit, context_now, difference, html
from foldline.report._audit import CHECK, counter_of, result_of
from foldline.report._diff import Difference, Span
from foldline.typing import Problem, StoredTranscript

__all__ = ["audit_command", "diff_command", "show_command"]

#: Names of programs that are not their words with capitals.
_PROGRAMS = {"pi": "pi", "gemini_cli": "Gemini CLI"}

#: Losses of a finding that are listed without -v.
_SHOWN = 3

_UNREADABLE = {
    "encrypted": "its content is encrypted",
    "no_summary": "no summary was recorded",
    "no_originals": "what it replaced is not in the file; see foldline diff",
}

_CODE_WORDS = {
    "request_lost": "requests",
    "constraint_lost": "constraints",
    "error_open": "errors",
    "file_changed_lost": "changed files",
    "file_absent": "files",
    "command_lost": "commands",
    "pin_lost": "pinned messages",
}


def _given(encoding: str | None, model: str | None, heuristic: str | None) -> TokenCounter | None:
    return make_counter(encoding, model, heuristic) if encoding or model or heuristic else None


def _found(
    paths: Sequence[str], reporter: Reporter, database: str | None = None
) -> Iterator[tuple[str, StoredTranscript]]:
    """The main conversations of paths, and the sessions of a database."""
    try:
        for source, each in each_transcript(paths, reporter, more=session_sources(database)):
            if "#" not in each.id:
                yield source.path, each
    except StoreError as error:
        reporter.error(error, error.path or "")


def _program(name: str) -> str:
    return _PROGRAMS.get(name, name.replace("_", " ").title())


def _id(name: str) -> str:
    return name[:8] if len(name) == 36 and name.count("-") == 4 else name


page_options = (
    click.option("--html", "page", type=click.Path(dir_okay=False), metavar="FILE", help="Write a page of it."),
    click.option("--no-content", is_flag=True, help="No text of a message in the page."),
)


database_option = click.option(
    "--database", metavar="URL", help="Also read the sessions of foldline in a database, with their compactions."
)


def _with_pages(function: Any) -> Any:
    for option in reversed((database_option, *page_options)):
        function = option(function)
    return function


def _check_given(paths: Sequence[str], database: str | None) -> None:
    if not paths and database is None:
        raise click.UsageError("Missing argument 'PATH…', or --database.")


@click.command("show")
@click.argument("paths", type=PATHS, nargs=-1, metavar="PATH…", callback=checked_paths)
@counter_options
@click.option("--context-window", type=click.IntRange(1), metavar="N", help="Context window of the model.")
@_with_pages
@json_option
def show_command(
    paths: tuple[str, ...],
    encoding: str | None,
    model: str | None,
    heuristic: str | None,
    context_window: int | None,
    database: str | None,
    page: str | None,
    no_content: bool,
    as_json: bool,
) -> int:
    """Shows what the context of a session holds now, and each of its compactions.

    Tokens are those that the provider reported, where the session recorded them; the categories are counted, by the
    counter of the session's model.
    """
    _check_given(paths, database)
    counter, screen = _given(encoding, model, heuristic), Screen.here()
    with Reporter() as reporter:
        for path, transcript in _found(paths, reporter, database):
            try:
                audited = audit(transcript, counter=counter)
                now = context_now(transcript, counter or counter_of(transcript), context_window)
            except FoldlineError as error:
                reporter.error(error, path, transcript.id)
                continue
            if page is not None:
                write_page(page, _page(transcript, counter or counter_of(transcript), content=not no_content))
                page = None  # of the first session
            if as_json:
                write_json({"path": path, "context": now.to_dict()} | audited.to_dict())
            else:
                _show(screen, audited, now)
    return reporter.exit_code


def _page(transcript: StoredTranscript, counter: TokenCounter, *, content: bool) -> str:
    """The newest compaction of a session as a page; of a session without one its context."""
    if transcript.compactions:
        result, replaced = result_of(transcript, len(transcript.compactions) - 1, counter)
        return html(result, transcript=replaced, content=content)
    given = FoldInput(transcript.messages, counter, None, transcript.format)
    tokens = counter.count_messages(transcript.messages, format=transcript.format).total
    result = FoldResult(
        messages=transcript.messages,
        outcome="unchanged",
        reason="nothing_to_fold",
        tokens_before=tokens,
        tokens_after=tokens,
        sources=range(len(transcript.messages)),
        given=given,
    )
    return html(result, transcript=transcript, content=content)


def _show(screen: Screen, audited: Audit, now: ContextNow) -> None:
    names = [_id(audited.id), _program(audited.program), f"{audited.messages:,} messages", now.model or ""]
    screen.line("  ".join(screen.text(name) for name in names if name))
    screen.line()
    whole = now.window or now.tokens
    source = "reported" if now.is_reported else now.kind
    if now.window is None:
        screen.line(f"Context now: {now.tokens:,} tokens ({source})")
    else:
        free = f"{max(now.window - now.tokens, 0):,} free"
        percent = round(100 * now.tokens / now.window)
        screen.line(f"Context now: {now.tokens:,} of {now.window:,} tokens ({source}), {percent}%, {free}")
    click.echo(screen.bar(list(now.parts.items()), max(whole, now.tokens)))
    rows = [(letter, CATEGORIES[letter], tokens) for letter, tokens in now.parts.items()]
    if now.window is not None and now.window > now.tokens:
        rows.append((".", "free", now.window - now.tokens))
    half = (len(rows) + 1) // 2
    for k in range(half):
        pair = [rows[k], *rows[k + half : k + half + 1]]
        cells = [f"{letter} {name:<14}{tokens:>9,}{round(100 * tokens / whole):>5}%" for letter, name, tokens in pair]
        screen.line("        ".join(cells))
    screen.line()
    if not audited.folds:
        screen.line("No folds")
        screen.line()
        return
    screen.line("Folds")
    for number, fold in enumerate(audited.folds, 1):
        screen.line(_fold_row(screen, number, fold))
    screen.line()


def _fold_row(screen: Screen, number: int, fold: FoldAudit) -> str:
    saved = round(100 * (1 - fold.tokens_after / fold.tokens_before)) if fold.tokens_before else 0
    again = [loss for each in fold.findings if each.code in ("read_again", "read_superseded") for loss in each.losses]
    tokens = sum(loss.tokens for loss in again)
    if fold.unreadable:
        facts = f"cannot be read: {fold.unreadable.replace('_', ' ')}"
    else:
        facts = f"kept {fold.kept} facts, lost {fold.lost}"
    if not screen.is_wide:
        sizes = f"{short(fold.tokens_before)} → {short(fold.tokens_after)}  -{saved}%"
        reread = f"  {len(again)} reread, {short(tokens)}" if again else ""
        return f"{number:>2}  before {fold.before}  {sizes}  {facts}{reread}"
    when = (fold.time or "")[:16].replace("T", " ")
    who = ", ".join(each for each in (fold.by, fold.trigger) if each)
    sizes = f"{fold.tokens_before:,} → {fold.tokens_after:,} -{saved}%"
    reread = f"  {len(again)} reread, {tokens:,}" if again else ""
    return f"{number:>2}  before {fold.before}  {screen.text(when)}  {screen.text(who)}  {sizes}  {facts}{reread}"


@click.command("audit")
@click.argument("paths", type=PATHS, nargs=-1, metavar="PATH…", callback=checked_paths)
@counter_options
@click.option(
    "--fail-on",
    type=click.Choice(["lost", "warn", "never"]),
    default="lost",
    show_default=True,
    help="Findings for which the exit code is 1.",
)
@click.option("-v", "--verbose", is_flag=True, help="List everything that was lost.")
@_with_pages
@json_option
def audit_command(
    paths: tuple[str, ...],
    encoding: str | None,
    model: str | None,
    heuristic: str | None,
    fail_on: Literal["lost", "warn", "never"],
    verbose: bool,
    database: str | None,
    page: str | None,
    no_content: bool,
    as_json: bool,
) -> int:
    """Checks every compaction of sessions, also an agent's own, against the facts of what it replaced.

    Exit code 1: a finding at --fail-on, or a compaction that cannot be read. That a file is read again proves no
    forgetting.
    """
    _check_given(paths, database)
    counter, screen = _given(encoding, model, heuristic), Screen.here()
    failed = False
    with Reporter() as reporter:
        for path, transcript in _found(paths, reporter, database):
            try:
                audited = audit(transcript, counter=counter)
            except FoldlineError as error:
                reporter.error(error, path, transcript.id)
                continue
            if page is not None:
                write_page(page, _page(transcript, counter or counter_of(transcript), content=not no_content))
                page = None  # of the first session
            failed = failed or any(fold.fails(fail_on) for fold in audited.folds)
            if as_json:
                write_json({"path": path, "fails": any(f.fails(fail_on) for f in audited.folds)} | audited.to_dict())
            else:
                _show_audit(screen, audited, fail_on, verbose=verbose)
    return 1 if failed else reporter.exit_code


def _show_audit(screen: Screen, audited: Audit, fail_on: Literal["lost", "warn", "never"], *, verbose: bool) -> None:
    if not audited.folds:
        screen.line(f"{screen.text(_id(audited.id))}  no compaction in {audited.messages:,} messages")
    for number, fold in enumerate(audited.folds, 1):
        screen.line(
            f"{screen.text(_id(audited.id))}  fold {number} of {len(audited.folds)}, before message {fold.before}, "
            f"by {'the agent' if fold.by == 'agent' else 'foldline'}"
        )
        if fold.unreadable:
            screen.line(f"Cannot be read: {_UNREADABLE[fold.unreadable]}")
            screen.line()
            continue
        counted = f"{fold.tokens_before:,} → {fold.tokens_after:,} tokens ({fold.kind})"
        facts = f"{counted}   {fold.kept} facts kept  {fold.lost} lost   "
        room = min(24, screen.width - len(facts)) if fold.kept + fold.lost else 0
        squares = round(room * fold.kept / max(fold.kept + fold.lost, 1))
        screen.line(facts + "+" * squares + "x" * (room - squares))
        screen.line()
        clean = []
        for finding in fold.findings:
            if not finding.losses:
                clean.append(f"{finding.code} 0 of {finding.of}")
                continue
            sign = "x" if finding.severity == "lost" else "!"
            colored = screen.colored(f"{finding.code:<17}", "red" if sign == "x" else "yellow")
            click.echo(f" {sign} {colored} {_head(finding.code, fold, finding.of, finding.losses)}")
            width = screen.width - 10
            shown = finding.losses if verbose else finding.losses[:_SHOWN]
            for loss in shown:
                _show_loss(screen, loss, width)
            rest = finding.losses[len(shown) :]
            if rest:
                tokens = sum(loss.tokens for loss in rest)
                amount = f"{tokens:>9,}  " if tokens else ""
                screen.line(f"          {amount}{len(rest)} more (-v)")
        for at in range(0, len(clean), 2):
            screen.line(" + " + "     ".join(f"{each:<24}" for each in clean[at : at + 2]))
        screen.line()
        worst = ("lost",) if fail_on == "lost" else ("lost", "warn")
        found = sum(bool(each.losses) and each.severity in worst for each in fold.findings)
        findings = f"{found} finding{'' if found == 1 else 's'}"
        screen.line(f"Exit {int(fold.fails(fail_on))}: {findings} at --fail-on {fail_on}.")
        if fold.entries:
            screen.line(f"All originals are in the file: entries {fold.entries[0]}-{fold.entries[1]}.")
        screen.line()


def _head(code: str, fold: FoldAudit, of: int, losses: Sequence[Any]) -> str:
    if code in ("read_again", "read_superseded"):
        tokens = sum(loss.tokens for loss in losses)
        share = f": {round(100 * tokens / fold.since_tokens)} % of the context since" if fold.since_tokens else ""
        changed = ", changed meanwhile" if code == "read_superseded" else ""
        plural = "" if len(losses) == 1 else "s"
        return f"{len(losses)} read{plural}, {tokens:,} tokens{share}{changed}"
    words = _CODE_WORDS.get(code, "facts")
    if code == "error_open":
        return f"{len(losses)} of {of} {words}: nothing resolved them"
    checks = sum(loss.note == CHECK for loss in losses)
    of_these = f", {checks} of them checks" if checks else ""
    return f"{len(losses)} of {of} {words}{of_these}"


def _show_loss(screen: Screen, loss: Any, width: int) -> None:
    number = "" if loss.message is None else str(loss.message)
    if loss.tokens:
        path = screen.cut_start(loss.text, width - 12)
        screen.line(f"    {number:>5}  {loss.tokens:>7,}  {path}")
    elif loss.note and loss.note != CHECK:
        path = screen.cut_start(loss.text, width - len(loss.note) - 4)
        screen.line(f"    {number:>5}  {path}   {loss.note}")
    else:
        screen.line(f"    {number:>5}  {screen.cut(loss.text, width)}")


@click.command("diff")
@click.argument("before", type=PATHS)
@click.argument("after", type=PATHS)
@counter_options
@json_option
def diff_command(
    before: str, after: str, encoding: str | None, model: str | None, heuristic: str | None, as_json: bool
) -> int:
    """Compares a conversation with its folded form: what stayed, what was folded, edited, or is gone.

    Exit code 1: a message is gone without a summary, or was edited.
    """
    counter = make_counter(encoding, model, heuristic)
    screen = Screen.here()
    with Reporter() as reporter:
        pair = [list(_found((path,), reporter)) for path in (before, after)]
        for path, found in zip((before, after), pair):
            if len(found) != 1:
                reporter.problem(Problem(None, "not_one", f"{len(found)} conversations, not one", path))
        if any(len(found) != 1 for found in pair):
            return 1
        try:
            compared = difference(pair[0][0][1], pair[1][0][1], counter)
        except FoldlineError as error:
            reporter.error(error, before, pair[0][0][1].id)
            return 1
    if as_json:
        write_json(dataclasses.asdict(compared) | {"is_safe": compared.is_safe})
    else:
        _show_diff(screen, compared)
    return reporter.exit_code or int(not compared.is_safe)


def _show_diff(screen: Screen, compared: Difference) -> None:
    before, after = compared.tokens_before, compared.tokens_after
    change = round(100 * (after - before) / before) if before else 0
    screen.line(f"before {compared.messages_before:>6,} messages {before:>9,} tokens ({compared.kind})")
    screen.line(f"after  {compared.messages_after:>6,} messages {after:>9,} tokens   {change:+d} %")
    screen.line()
    screen.line(f"   {'before':<10}{'after':<10}{'msgs':>6}{'tokens':>11}   what")
    summaries = [each for each in compared.spans if each.what == "summary"]
    into = "" if not summaries or summaries[0].after is None else f" into {summaries[0].after[0]}"
    for each in compared.spans:
        screen.line(_diff_row(compared, each, into))
    screen.line()
    kept, edited, gone = (compared.counted(what) for what in ("kept", "edited", "gone"))
    screen.line(
        f"{kept:,} messages identical, {edited} edited, {gone} gone without a summary. "
        f"Exit {int(not compared.is_safe)}."
    )


def _diff_row(compared: Difference, each: Span, into: str) -> str:
    sign = {"kept": "=", "folded": "-", "gone": "x", "edited": "~", "summary": "+", "new": "+"}[each.what]
    words = {"folded": f"folded{into}", "gone": "gone without a summary", "new": "new"}.get(each.what, each.what)
    if each.what == "summary":
        lost = f", {compared.facts_lost} lost"
        words = f"summary: facts {compared.facts_kept} kept, {compared.facts_added} added{lost}"
    before = "" if each.before is None else span(*each.before)
    after = "" if each.after is None else span(*each.after)
    return f" {sign} {before:<10}{after:<10}{each.messages:>6,}{each.tokens:>11,}   {words}"


def write_page(path: str, text: str) -> None:
    """Writes a page: whole or not at all, readable by its owner only."""
    from foldline._util.files import replacing

    with replacing(Path(path)) as stream:
        stream.write(text.encode())
    click.echo(f"wrote {printable(path)}", err=True)
