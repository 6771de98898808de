"""The storage folder of opencode: a file for each session, message and part, put together one session at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from foldline.reading._sessions import Entry, session_transcripts
from foldline.typing import Problem, StoredTranscript

__all__ = ["is_session", "is_storage", "sessions_of", "stored_transcripts"]

OnProblem = Callable[[Problem], None]

#: Larger files are a problem instead of read into memory.
_MAX_FILE_BYTES = 256 << 20


def is_storage(folder: Path) -> bool:
    """Whether a folder has the messages and the parts of sessions in folders of their own."""
    return (folder / "message").is_dir() and (folder / "part").is_dir()


def is_session(folder: Path) -> bool:
    """Whether a folder has the messages of one session of a storage folder."""
    return folder.parent.name == "message" and is_storage(folder.parent.parent)


def sessions_of(storage: Path) -> list[Path]:
    """The folders with the messages of each session, by name."""
    return sorted(path for path in (storage / "message").iterdir() if path.is_dir() and not path.name.startswith("."))


def stored_transcripts(session: Path, report: OnProblem) -> Iterator[StoredTranscript]:
    """The transcript of one session.

    Args:
        session: The folder with its messages, in the folder ``message`` of a storage folder.
        report: Called with each problem; its path is the file.
    """
    storage = session.parent.parent
    messages = [(path, value) for path in _files(session) if (value := _object(path, report)) is not None]
    messages.sort(key=lambda each: (_created(each[1]), str(each[1].get("id", ""))))
    entries: list[Entry] = []
    for path, info in messages:
        parts = [part for file in _files(storage / "part" / path.stem) if (part := _object(file, report)) is not None]
        entries.append((1, 0, {"info": info, "parts": parts}))

    def report_entry(code: str, line: int, offset: int, index: int | None) -> None:
        report(Problem(index, code, "", str(messages[index or 0][0]), line, offset))

    meta: dict[str, Any] = {"path": str(session)}
    places = (*storage.glob(f"session/*/{session.name}.json"), storage / "info" / f"{session.name}.json")
    for path in places:
        if path.is_file() and (about := _object(path, report)) is not None:
            meta["info"] = about
    yield from session_transcripts("opencode", entries, session.name, meta, report_entry)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix == ".json" and path.is_file())


def _object(path: Path, report: OnProblem) -> dict[str, Any] | None:
    """The object in a file; None, and a problem, if there is none."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            report(Problem(None, "file_too_large", "", str(path)))
            return None
        value = json.loads(path.read_bytes())
    except OSError as error:
        report(Problem(None, "unreadable_file", type(error).__name__, str(path)))
        return None
    except (ValueError, RecursionError):
        report(Problem(None, "bad_json", "", str(path), 1, 0))
        return None
    if isinstance(value, dict):
        return value
    report(Problem(None, "not_an_object", "", str(path), 1, 0))
    return None


def _created(info: dict[str, Any]) -> float:
    time = info.get("time")
    created = time.get("created") if isinstance(time, dict) else None
    return created if isinstance(created, (int, float)) else 0
