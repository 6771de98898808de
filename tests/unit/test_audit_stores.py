"""The audit over foldline's own stores and outputs: what left the context, pins, what a file no longer has."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError
from foldline.report import FoldAudit, context_now
from foldline.stores import JsonlSession, MemoryStore, SqlStore
from foldline.typing import CompactionEvent, ContextEntry

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"

RULE = "Remember: the port of this service is 8431, and never touch the lock file."


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "foldline", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in ran.stderr
    return ran


def talk(turns: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"role": "user", "content": "Fix src/parser.py, please."},
        {"role": "assistant", "content": "I will. " * 30},
        {"role": "user", "content": RULE},
        {"role": "assistant", "content": "Understood. " * 30},
    ]
    for i in range(turns):
        found.append({"role": "user", "content": f"Now step {i} of the parser. " * 10})
        found.append({"role": "assistant", "content": f"Step {i} is done. " * 20})
    return found


Store = JsonlSession | SqlStore | MemoryStore


@pytest.fixture(params=["file", "database", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "file":
        yield JsonlSession(tmp_path / "session.jsonl")
        return
    if request.param == "memory":
        yield MemoryStore()
        return
    with SqlStore(f"sqlite:///{tmp_path / 's.db'}", session="42") as opened:
        yield opened


def compact(
    store: Store, summary: str, *, keep: int = 2, pins: Callable[[Any], bool] | None = None, mend: bool = False
) -> None:
    """Compacts the context with a summary of this text."""
    strategy = fl.strategies.Summarize(lambda _: summary, keep_recent=keep, mend=mend)
    chosen = [] if pins is None else [pins]
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4", pins=chosen)
    context = store.active()
    result = compactor.compact([each.message for each in context], ids=[each.id for each in context])
    assert result.outcome == "folded", result


def compact_elsewhere(store: Store, summary: str) -> None:
    """A compaction by a program that knows no pins: a summary and the two newest messages."""
    context = store.active()
    event = CompactionEvent(
        round=store.last_round() + 1,
        tokens_before=900,
        tokens_after=90,
        length_before=len(context),
        length_after=3,
        summary=summary,
        compacted_ids=tuple(each.id for each in context[:-2]),
        duration_s=0.1,
        first_kept_id=context[-2].id,
    )
    kept = [ContextEntry(each.id) for each in context[-2:]]
    store.save_context(event, [ContextEntry(None, {"role": "user", "content": summary}), *kept])


def is_rule(message: Any) -> bool:
    return bool(message["content"] == RULE)


def losses(fold: FoldAudit, code: str) -> list[int | None] | None:
    """The messages that a finding lists; None without the finding."""
    found = [each for each in fold.findings if each.code == code]
    return [loss.message for loss in found[0].losses] if found else None


def test_what_left_a_store_is_checked_against_its_context(store: Store) -> None:
    store.extend(talk(6))
    compact(store, "The user wants src/parser.py fixed.")
    store.extend(talk(4)[4:])
    compact(store, "Nothing of note.", keep=4)
    audited = fl.audit(store)
    assert (audited.program, audited.messages) == ("foldline", 24)
    first, second = audited.folds
    assert (first.by, first.trigger, first.before, second.before) == ("foldline", "auto", 16, 24)
    # The rule left with the first compaction. The second replaces what the first one had kept, and what came since.
    assert losses(first, "constraint_lost") == [2]
    counts = fl.TokenCounter("chars/4").count_messages([*talk(6), *talk(4)[4:]]).per_message
    audited = fl.audit(store, counter="chars/4")
    assert audited.folds[0].tokens_before == sum(counts[:14])
    assert audited.folds[1].tokens_before == sum(counts[14:20])


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither a session nor a store"):
        fl.audit(object())  # type: ignore[arg-type]


def test_the_audit_of_a_file_is_that_of_its_store(tmp_path: Path) -> None:
    store = JsonlSession(tmp_path / "session.jsonl")
    store.extend(talk(6))
    compact(store, "The user wants src/parser.py fixed.", pins=is_rule)
    assert fl.audit(tmp_path / "session.jsonl") == fl.audit(store)


def test_a_pinned_message_stays_and_is_no_loss(store: Store) -> None:
    store.extend(talk(6))
    for _ in range(2):
        compact(store, "Nothing of note.", pins=is_rule)
        store.extend(talk(3)[4:])
    first, second = fl.audit(store).folds
    assert losses(first, "constraint_lost") in (None, [])
    assert losses(first, "pin_lost") is None  # nothing was pinned before
    assert losses(second, "pin_lost") == []


def test_a_pinned_message_that_a_later_compaction_folds_is_lost(store: Store) -> None:
    store.extend(talk(6))
    compact(store, "Nothing of note.", pins=is_rule)
    store.extend(talk(3)[4:])
    compact_elsewhere(store, "Nothing of note.")
    first, second = fl.audit(store).folds
    assert not losses(first, "pin_lost")
    assert losses(second, "pin_lost") == [2]
    assert second.fails("lost")


def test_a_pinned_message_that_the_summary_has_word_for_word_is_not_lost(store: Store) -> None:
    store.extend(talk(6))
    compact(store, "Nothing of note.", pins=is_rule)
    store.extend(talk(3)[4:])
    compact_elsewhere(store, f"The user said: {RULE}")
    assert losses(fl.audit(store).folds[1], "pin_lost") == []


def test_an_open_call_that_was_carried_is_no_pin(store: Store) -> None:
    opened = [
        {"role": "user", "content": "Look at a.py. " * 20},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "a.py"}}],
        },
    ]
    rest = [
        {"role": ("assistant", "user")[i % 2], "content": [{"type": "text", "text": f"Step {i}. " * 40}]}
        for i in range(1, 9)
    ]
    ids = store.extend([*opened, *rest])
    compact(store, "Nothing of note.")
    carried = {each.id for each in store.active()}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x = 1"}]}
    store.extend([result, *rest])
    compact(store, "Still nothing.")
    first, second = fl.audit(store).folds
    assert ids[1] in carried  # the open call was kept over the cut
    assert losses(second, "pin_lost") is None
    assert not first.unreadable


def test_the_context_now_is_that_of_the_store(store: Store) -> None:
    store.extend(talk(6))
    compact(store, "The user wants src/parser.py fixed.", pins=is_rule)
    store.extend(talk(1)[4:])
    counter = fl.TokenCounter("chars/4")
    from foldline.report._sessions import of_store

    now = context_now(of_store(store), counter)
    assert now.tokens == counter.count_messages(store.messages()).total
    assert now.parts["S"] == counter.count_messages(store.messages()[:1]).total


@pytest.mark.parametrize("store", ["file", "database"], indirect=True)
def test_the_commands_read_files_and_databases_of_sessions(store: Store, tmp_path: Path) -> None:
    store.extend(talk(6))
    compact(store, "Nothing of note.", pins=is_rule)
    store.extend(talk(3)[4:])
    compact_elsewhere(store, "Nothing of note.")
    where = ["--database", f"sqlite:///{tmp_path / 's.db'}"]
    if isinstance(store, JsonlSession):
        where = [str(tmp_path / "session.jsonl")]
    shown = run("audit", *where)
    assert shown.returncode == 1
    assert "fold 2 of 2, before message 22, by foldline" in shown.stdout
    assert " x pin_lost          1 of 1 pinned messages" in shown.stdout
    assert "Exit 1: " in shown.stdout
    reported = json.loads(run("audit", *where, "--json").stdout)
    assert reported["folds"] == json.loads(json.dumps(fl.audit(store).to_dict()["folds"]))
    assert "Folds\n 1  before 16" in run("show", *where).stdout
    page = tmp_path / "page.html"
    run("audit", *where, "--html", page)
    assert page.read_text(encoding="utf-8").endswith("</html>")


def test_a_database_is_only_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    with SqlStore(url, session="42") as store:
        store.extend(talk(6))
        compact(store, "Nothing of note.")
    before = (tmp_path / "s.db").read_bytes()
    assert run("audit", "--database", url).returncode == 1
    assert (tmp_path / "s.db").read_bytes() == before
    assert run("audit").returncode == 2
    missing = run("show", "--database", f"sqlite:///{tmp_path / 'none.db'}")
    assert missing.returncode == 2


# Outputs


def test_an_output_with_facts_is_audited_by_them(tmp_path: Path) -> None:
    file = EXAMPLES / "claude-code-session.jsonl"
    options = ("--keep-tokens", 20_000, "--summary-tokens", 300)
    run("compact", file, "--out", tmp_path / "out", *options, "--report", tmp_path / "r.json")
    record = json.loads((tmp_path / "out" / file.name).read_text())
    (fold,) = fl.audit(tmp_path / "out" / file.name).folds
    facts = record["facts"]
    assert (fold.by, fold.kept, fold.lost) == ("foldline", len(facts["kept"]), len(facts["dropped"]))
    assert fold.tokens_before - fold.tokens_after == record["tokens_before"] - record["tokens_after"]
    requests = [fact["message"] for fact in facts["dropped"] if fact["kind"] in ("task", "request", "question")]
    assert [m for m in losses(fold, "request_lost") or [] if m in requests] == requests
    shown = run("audit", tmp_path / "out")
    assert shown.returncode == 1
    assert "by foldline" in shown.stdout


def test_an_output_without_facts_cannot_be_audited_and_says_so(tmp_path: Path) -> None:
    file = EXAMPLES / "claude-code-session.jsonl"
    run("compact", file, "--out", tmp_path / "out", "--keep-tokens", 20_000)
    (fold,) = fl.audit(tmp_path / "out" / file.name).folds
    assert (fold.unreadable, fold.findings) == ("no_originals", ())
    shown = run("audit", tmp_path / "out")
    assert shown.returncode == 1
    assert "Cannot be read: what it replaced is not in the file; see foldline diff" in shown.stdout


# Agents


def test_lost_commands_say_how_many_were_checks(shared: Path) -> None:
    (file,) = (shared / "claude-code-entire").glob("fc_99c919b212_0_full.jsonl")
    (fold,) = fl.audit(file).folds
    (found,) = (each for each in fold.findings if each.code == "command_lost")
    checks = [loss for loss in found.losses if loss.note == "check"]
    # What they are is in the commands themselves: builds, linters, formatters and tests.
    words = ("test", "lint", "fmt", "go build", "go vet")
    assert [any(word in loss.text for word in words) for loss in checks] == [True] * len(checks)
    assert f"{len(found.losses)} of {found.of} commands, {len(checks)} of them checks" in run("audit", file).stdout


#: The codes of the columns of the table in docs/report.md.
COLUMNS = ("request_lost", "constraint_lost", "error_open", "file_absent", "command_lost")


def row_of(audited: fl.report.Audit) -> list[str]:
    """An audit as a row of the table in docs/report.md."""
    (fold,) = audited.folds
    found = {each.code: each for each in fold.findings}
    counts = [f"{len(found[code].losses)} of {found[code].of}" if code in found else "" for code in COLUMNS]
    again = [loss for code in ("read_again", "read_superseded") for loss in found[code].losses]
    reads = f"{len(again)} read{'' if len(again) == 1 else 's'}, {sum(loss.tokens for loss in again):,} tokens"
    sizes = f"{fold.tokens_before:,} → {fold.tokens_after:,}"
    name = f"`{audited.id[:8]}`"
    return [name, sizes, str(fold.kept), str(fold.lost), *counts, reads if again else "none"]


def test_the_table_of_recorded_sessions_is_what_the_audit_says(shared: Path) -> None:
    files = sorted((shared / "claude-code-entire").glob("*.jsonl"))
    audits = [audited for file in files for audited in fl.report.audits(file) if audited.folds]
    text = (EXAMPLES.parents[1] / "docs" / "report.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if " → " in line]
    rows = [row for row in rows if row[0].startswith("`")]
    assert sorted(rows) == sorted(map(row_of, audits))


def test_a_second_compaction_of_pi_replaces_the_tail_of_the_first(tmp_path: Path) -> None:
    def message(name: str, parent: str | None, text: str) -> dict[str, Any]:
        return {"type": "message", "id": name, "parentId": parent, "message": {"role": "user", "content": text}}

    def compaction(name: str, parent: str, first: str) -> dict[str, Any]:
        summary = {"summary": "They want src/a.py fixed.", "firstKeptEntryId": first, "tokensBefore": 100}
        return {"type": "compaction", "id": name, "parentId": parent} | summary

    entries: list[dict[str, Any]] = [
        {"type": "session", "id": "p", "version": 3, "cwd": "/"},
        message("a", None, "Fix src/a.py, now."),
        message("b", "a", "Never edit src/b.py."),
        compaction("c", "b", "b"),
        message("d", "c", "Go on."),
        compaction("e", "d", "d"),
    ]
    file = tmp_path / "pi.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in entries))
    first, second = fl.audit(file).folds
    assert not losses(first, "constraint_lost")
    assert losses(second, "constraint_lost") == [1]
    assert losses(second, "pin_lost") is None


@pytest.mark.parametrize(
    ("summary", "lost"),
    [
        ("The user asked for the invoices: **integers in `cents`,\nsigned everywhere**, and nothing else.", False),
        ("The user asked for the invoices, stored as numbers.", True),
    ],
)
def test_an_answer_that_the_summary_tells_in_another_sentence_is_not_lost(
    store: Store, summary: str, lost: bool
) -> None:
    store.extend(
        [
            {"role": "user", "content": "Write the module for invoices, please."},
            {"role": "assistant", "content": "How shall the amounts be stored, as decimals or as integers?"},
            {"role": "user", "content": "Integers in cents, signed everywhere."},
            *talk(3)[4:],
        ]
    )
    compact(store, summary)
    folded = fl.audit(store).folds[0]
    texts = [loss.text for finding in folded.findings for loss in finding.losses]
    assert any("Integers in cents" in text for text in texts) is lost
