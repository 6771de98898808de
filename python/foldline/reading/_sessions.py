"""Sessions of agents, out of the entries of a file: what is a message is decided in the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from foldline import _core
from foldline._core import FORMATS
from foldline.errors import FoldlineError
from foldline.typing import StoredTranscript

__all__ = ["DIALECTS", "Entry", "dialect_of", "session_transcripts"]

#: An entry with its line and its offset in the file.
Entry = tuple[int, int, Any]

#: The dialect of the messages of each kind of session, in the order in which the sessions of a file are given.
DIALECTS = {
    "claude_code": "anthropic",
    "pi": "pi",
    "codex": "openai_responses",
    "gemini_cli": "gemini",
    "gemini_cli_log": "gemini",
    "swe_agent": "openai_chat",
    "swe_agent_steps": "openai_chat",
    "dialogue": "openai_chat",
}

#: What a kind is called in ``meta``, where two kinds are one to the reader.
_NAMES = {"gemini_cli_log": "gemini_cli", "swe_agent_steps": "swe_agent"}

#: Sessions in one document: their entries have no lines of their own.
_DOCUMENTS = {"gemini_cli", "swe_agent", "swe_agent_steps", "dialogue"}

#: Sessions that are transcripts without a message too: what opens them is theirs alone, and says which they are.
_SESSIONS_WITHOUT_WORDS = _DOCUMENTS | {"gemini_cli_log"}

#: What an entry may have as its own id.
_IDS = {"claude_code": "uuid", "pi": "id", "gemini_cli": "id", "gemini_cli_log": "id"}


def session_transcripts(
    kind: str,
    entries: list[Entry],
    name: str,
    meta: dict[str, Any],
    report: Callable[[str, int, int, int | None], None],
) -> Iterator[StoredTranscript]:
    """The conversations of a session: the main one, and those beside it.

    Args:
        kind: One of `DIALECTS`.
        entries: Its entries, each with its place. Entries of one document have the document's.
        name: What it is called where its entries have no id.
        meta: What is known of it already.
        report: Called with code, line, offset, and the index where entries of one document share a place.

    Cost: O(entries). The messages are made of the entries' own objects.
    """
    values = [value for _, _, value in entries]
    session = _core.assemble_session(kind, values)
    is_document = kind in _DOCUMENTS
    for index, code in session["problems"]:
        line, offset, _ = entries[index]
        report(code, line, offset, index if is_document else None)
    name = session["id"] or name
    shared: dict[str, Any] = {"session_format": _NAMES.get(kind, kind), "skipped_entries": session["skipped"]}
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
            key = _IDS.get(kind)
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
        yield StoredTranscript(name + suffix, dialect, thread["messages"], around)


def dialect_of(entries: list[Any], messages: list[Any]) -> str:
    """The dialect of a session in pi's format: pi's own, or where foldline wrote it that of who used foldline."""
    header = next((each for each in entries if isinstance(each, dict) and each.get("type") == "session"), {})
    ours = header.get("foldline")
    if not isinstance(ours, dict):
        return DIALECTS["pi"]
    if ours.get("format") in FORMATS:
        return str(ours["format"])
    try:
        return _core.detect_format(messages)[0]
    except FoldlineError:
        return DIALECTS["pi"]


def _entry_ids(entries: list[Any], sources: list[int], key: str | None) -> list[str]:
    ids = [entries[source].get(key) for source in sources] if key else []
    return list(dict.fromkeys(i for i in ids if isinstance(i, str)))


def _instructions(entries: list[Any]) -> dict[str, Any]:
    """The instructions that a newer Codex sent beside its items."""
    for entry in entries:
        payload = entry.get("payload") if isinstance(entry, dict) else None
        given = payload.get("base_instructions") if isinstance(payload, dict) else None
        if isinstance(given, dict) and isinstance(given.get("text"), str):
            return {"instructions": given["text"]}
    return {}
