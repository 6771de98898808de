"""Agent sessions from the entries of a file; the core decides which entries are messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from foldline import _core
from foldline._core import FORMATS, SESSIONS
from foldline.errors import FoldlineError
from foldline.typing import Format, ReportedUsage, StoredCompaction, StoredTranscript

__all__ = [
    "DIALECTS",
    "DOCUMENTS",
    "TAKERS",
    "TASKS",
    "TASK_FILES",
    "Entry",
    "dialect_of",
    "goose_rows",
    "session_transcripts",
]

#: An entry with its line and offset in the file.
Entry = tuple[int, int, Any]

#: Dialect of the messages of each kind of session, in the order in which a file's sessions are yielded.
DIALECTS: dict[str, Format] = {kind: dialect for kind, (_, dialect, _, _) in SESSIONS.items()}

#: Sessions in one document: their entries share the document's line.
DOCUMENTS = {kind for kind, (_, _, is_document, _) in SESSIONS.items() if is_document}

#: Sessions whose messages have no envelopes: loose messages after their first entry belong to them.
TAKERS = ("codex", "goose_lines")

#: Files of a task of Cline or Roo Code, and what tells its transcripts apart.
TASK_FILES = ("api_conversation_history", "ui_messages")
TASKS = {"cline": "", "roo_code": "", "cline_log": "#log"}

#: Sessions yielded even without messages: their opening entry identifies them unambiguously.
_SESSIONS_WITHOUT_WORDS = DOCUMENTS | {"gemini_cli_log"}


def session_transcripts(
    kind: str,
    entries: list[Entry],
    name: str,
    meta: dict[str, Any],
    report: Callable[[str, int, int, int | None], None],
) -> Iterator[StoredTranscript]:
    """The conversations of a session: the main thread and its side threads.

    Args:
        kind: One of `DIALECTS`.
        entries: The entries with their places. Entries of one document have the document's place.
        name: Name of the session if its entries do not have an id.
        meta: Metadata of the file.
        report: Called with code, line, offset, and the index if entries share a document's place.

    Cost: O(entries). The messages share the entries' objects.
    """
    values = [value for _, _, value in entries]
    session = _core.assemble_session(kind, values)
    program, _, is_document, key = SESSIONS[kind]
    for index, code in session["problems"]:
        line, offset, _ = entries[index]
        report(code, line, offset, index if is_document else None)
    name = session["id"] or name
    shared: dict[str, Any] = {
        "session_format": program,
        "skipped_entries": session["skipped"],
        "skipped_kinds": session["skipped_kinds"],
    }
    if session["unread"]:
        shared["unread"] = [{"entry": entry, "reason": reason} for entry, reason in session["unread"]]
    if kind == "dialogue":
        shared = {"roles": "assumed"}
    else:
        shared["entries"] = values
    if kind == "codex":
        shared |= _instructions(values)
    for thread in session["threads"]:
        if not thread["messages"] and not thread["branches"] and kind not in _SESSIONS_WITHOUT_WORDS:
            continue
        around = meta | shared
        if kind != "dialogue":
            around |= {
                "sources": thread["sources"],
                "entry_ids": [_entry_ids(values, sources, key) for sources in thread["sources"]],
                "compact_boundaries": thread["compact_boundaries"],
                "summaries": thread["summaries"],
            }
        if thread["branches"]:
            around["branches"] = thread["branches"]
        if thread["demonstrations"]:
            around["demonstrations"] = thread["demonstrations"]
        suffix = f"#{thread['name']}" if thread["name"] else ""
        dialect = DIALECTS[kind] if kind != "pi" else dialect_of(values, thread["messages"])
        usage = tuple(
            ReportedUsage(message, tokens[0], tokens[1], tokens[2], tokens[3], model)
            for message, model, tokens in thread["usage"]
        )
        compactions = tuple(
            StoredCompaction(before, entry, trigger, time, tokens[0], tokens[1], summary, is_encrypted)
            for before, entry, trigger, time, tokens, summary, is_encrypted in thread["compactions"]
        )
        yield StoredTranscript(name + suffix, dialect, thread["messages"], around, usage, compactions)


def goose_rows(rows: list[Any]) -> dict[str, list[Any]]:
    """The rows of goose's table of messages by session, with their JSON texts parsed; a bad text stays as it is."""
    sessions: dict[str, list[Any]] = {}
    for row in rows:
        each = row
        if isinstance(row, dict):
            parsed = {name: _parsed(row.get(f"{name}_json")) for name in ("content", "metadata")}
            each = row | {name: value for name, value in parsed.items() if value is not None}
        name = each.get("session_id") if isinstance(each, dict) else None
        sessions.setdefault(name if isinstance(name, str) else "", []).append(each)
    return sessions


def _parsed(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def dialect_of(entries: list[Any], messages: list[Any]) -> Format:
    """The dialect of a session in pi's format: pi's, or the recorded or detected one if foldline wrote the file."""
    header = next((each for each in entries if isinstance(each, dict) and each.get("type") == "session"), {})
    ours = header.get("foldline")
    if not isinstance(ours, dict):
        return DIALECTS["pi"]
    recorded = next((each for each in FORMATS if each == ours.get("format")), None)
    if recorded is not None:
        return recorded
    try:
        return _core.detect_format(messages)[0]
    except FoldlineError:
        return DIALECTS["pi"]


def _entry_ids(entries: list[Any], sources: list[int], key: str | None) -> list[str]:
    ids = [entries[source].get(key) for source in sources] if key else []
    return list(dict.fromkeys(i for i in ids if isinstance(i, str)))


def _instructions(entries: list[Any]) -> dict[str, Any]:
    """The instructions that newer Codex versions send next to their items."""
    for entry in entries:
        payload = entry.get("payload") if isinstance(entry, dict) else None
        given = payload.get("base_instructions") if isinstance(payload, dict) else None
        if isinstance(given, dict) and isinstance(given.get("text"), str):
            return {"instructions": given["text"]}
    return {}
