"""From the JSON values of one file to its transcripts: conversations, loose messages, sessions of agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from foldline import _core
from foldline._core import FORMATS
from foldline.errors import FoldlineError
from foldline.reading._chunks import decompressed
from foldline.reading._opening import Opening
from foldline.reading._sessions import (
    DIALECTS,
    DOCUMENTS,
    TAKERS,
    TASK_FILES,
    TASKS,
    Entry,
    goose_rows,
    session_transcripts,
)
from foldline.reading._values import document_values, json_values
from foldline.typing import Problem, StoredTranscript

__all__ = ["FileReader", "OnProblem"]

_MAX_HELD_PROBLEMS = 10_000

#: Most entries of unknown types kept until an entry says which session they belong to.
_MAX_HELD_ENTRIES = 1_000

OnProblem = Callable[[Problem], None]


class FileReader:
    """Reads one file: sorts values into conversations, loose messages and session entries."""

    def __init__(self, path: str, report: OnProblem, *, strict: bool) -> None:
        self.path = path
        self._strict = strict
        self._report_now = report
        # Problems before the first record; a file without any record gets one summary problem instead.
        self._held: list[Problem] | None = []
        self.stem = "stdin" if path == "-" else Path(path).name.split(".")[0]
        self.found = 0
        self.messages: list[dict[str, Any]] = []
        self.entries: dict[str, list[Entry]] = {}
        # Entries of unknown types before the first known entry of a session.
        self._unsorted: list[Entry] = []

    def problem(
        self,
        code: str,
        line: int | None = None,
        offset: int | None = None,
        detail: str = "",
        index: int | None = None,
    ) -> None:
        problem = Problem(index, code, detail, self.path, line, offset)
        if self._held is None:
            self._report_now(problem)
        else:
            self._held.append(problem)
            if len(self._held) >= _MAX_HELD_PROBLEMS or self._strict:
                self.tell_held()

    def tell_held(self) -> None:
        """Reports the buffered problems; from now on each problem is reported at once."""
        held, self._held = self._held or [], None
        for problem in held:
            self._report_now(problem)

    def transcripts(self, raw: IO[bytes]) -> Iterator[StoredTranscript]:
        yield from self.in_chunks(decompressed(raw, self.problem))

    def in_chunks(self, chunks: Iterator[bytes]) -> Iterator[StoredTranscript]:
        """The transcripts in the decompressed bytes of the file."""
        for value in json_values(chunks, self.problem):
            yield from self.in_value(*value)
        yield from self.at_end()

    def in_document(self, opening: Opening[Any], chunks: Iterator[bytes]) -> Iterator[StoredTranscript]:
        """The transcripts of a file whose first line is not JSON."""
        for value in document_values(opening, chunks, self.problem):
            yield from self.in_value(*value)
        yield from self.at_end()

    def in_value(self, line: int, offset: int, text: bytes) -> Iterator[StoredTranscript]:
        """The transcripts in one JSON value, except those complete only at the end of the file."""
        if _core.has_too_many_values(text):
            self.problem("too_many_values", line, offset)
            return
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            self.problem("bad_json", line, offset)
            return
        yield from self.sort(value, line, offset)

    def at_end(self) -> Iterator[StoredTranscript]:
        """The transcripts complete only at the end of the file; reports a file without any."""
        self._sort_out()
        if self._held is not None:
            held, self._held = self._held, None
            lines = len(held)
            telling = [problem for problem in held if problem.code == "unsupported_format"] or held
            if lines == 1 or telling is not held:
                self._report_now(telling[0])
                return
            self.problem("no_transcript", detail=f"this file contains no conversation ({lines} problems)")
            return
        yield from self.leftovers()
        if not self.found:
            self.problem("no_transcript", detail="this file contains no message")

    def sort(self, value: Any, line: int, offset: int) -> Iterator[StoredTranscript]:
        """The transcripts in a value; loose messages and entries of sessions are kept for the end of the file."""
        kind, path = _core.classify(value)
        if kind == "entry":
            self._entry_of_unknown_type(value, line, offset)
            return
        if self._unsorted:
            self._sort_out(kind)
        if kind not in ("unknown", "unsupported"):
            self.tell_held()
        match kind:
            case "message" if (taker := next((each for each in TAKERS if each in self.entries), None)) is not None:
                self.entries[taker].append((line, offset, value))
            case "message":
                self.messages.append(value)
            case "message_list":
                yield from self._conversation(value, {}, line, offset)
            case "conversation":
                yield from self._conversation_object(value, path, line, offset)
            case "conversation_list":
                for item in value:
                    yield from self.sort(item, line, offset)
            case "inspect_log":
                yield from self._samples(value, line, offset)
            case _ if kind in DOCUMENTS:
                yield from self._session_document(kind, value, path, line, offset)
            case _ if kind in DIALECTS:
                self.entries.setdefault(kind, []).append((line, offset, value))
            case "unsupported":
                self.problem("unsupported_format", line, offset, path[0])
            case _:
                self.problem("unknown_record", line, offset)

    def _entry_of_unknown_type(self, value: Any, line: int, offset: int) -> None:
        """Adds an entry of a newer version to the only session of the file; elsewhere it is a problem."""
        if len(self.entries) == 1:
            (entries,) = self.entries.values()
            entries.append((line, offset, value))
        elif self.entries or self.messages or self.found or len(self._unsorted) == _MAX_HELD_ENTRIES:
            self._sort_out()
            self.problem("unknown_record", line, offset)
        else:
            self._unsorted.append((line, offset, value))

    def _sort_out(self, kind: str = "unknown") -> None:
        """Gives the held entries to the session that begins, or reports them."""
        held, self._unsorted = self._unsorted, []
        if kind in DIALECTS and kind not in DOCUMENTS:
            self.entries[kind] = held
            return
        for line, offset, _ in held:
            self.problem("unknown_record", line, offset)

    def _conversation_object(
        self, value: dict[str, Any], path: list[str], line: int, offset: int
    ) -> Iterator[StoredTranscript]:
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        rest = {key: item for key, item in holder.items() if key != path[-1]}
        if holder is not value:
            rest |= {key: item for key, item in value.items() if key != path[0] and key not in rest}
        messages = holder[path[-1]]
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        yield from self._conversation(messages, rest, line, offset, path[-1])

    def _conversation(
        self, messages: list[Any], around: dict[str, Any], line: int, offset: int, key: str | None = None
    ) -> Iterator[StoredTranscript]:
        given = next((around[key] for key in _core.ID_KEYS if key in around), None)
        number = self.found
        self.found += 1
        name = str(given) if isinstance(given, (str, int)) else f"{self.stem}:{number}"
        stored = str(around.get("format", "auto"))
        try:
            format_ = stored if stored in FORMATS else _core.detect_format(messages, key)[0]
        except FoldlineError as error:
            self.problem(error.code, line, offset, error.detail, error.index)
            return
        yield StoredTranscript(name, format_, messages, around | {"path": self.path, "line": line})

    def _session_document(
        self, kind: str, value: Any, path: list[str], line: int, offset: int
    ) -> Iterator[StoredTranscript]:
        if kind == "goose_rows":
            for name, rows in goose_rows(value).items():
                placed = [(line, offset, row) for row in rows]
                yield from self._session(kind, placed, name or self.stem, {"path": self.path, "line": line})
            return
        entries, rest = _taken_apart(value, path)
        given = next((rest[key] for key in (*_core.ID_KEYS, "sessionId") if key in rest), None)
        name = str(given) if isinstance(given, (str, int)) else f"{self.stem}:{self.found}"
        if kind in TASKS and self.stem in TASK_FILES:
            # The files of each task have the same names; its folder is named by its id.
            name = Path(self.path).resolve().parent.name + TASKS[kind]
        placed = [(line, offset, entry) for entry in entries]
        yield from self._session(kind, placed, name, rest | {"path": self.path, "line": line})

    def _samples(self, log: dict[str, Any], line: int, offset: int) -> Iterator[StoredTranscript]:
        """The samples of an Inspect log, each with the rest of it and of the log."""
        around = {key: item for key, item in log.items() if key != "samples"}
        for number, sample in enumerate(log["samples"]):
            if isinstance(sample, dict) and isinstance(sample.get("messages"), list):
                # The id of a sample is unique in its epoch alone.
                name = f"{sample.get('id', number)}.{sample.get('epoch', 1)}"
                each = {"log": around} | sample | {"id": name, "sample_id": sample.get("id")}
                yield from self._session_document("inspect", each, ["messages"], line, offset)
            else:
                self.problem("unknown_record", line, offset, index=number)

    def leftovers(self) -> Iterator[StoredTranscript]:
        """The transcripts of the loose messages and of the sessions."""
        if self.messages:
            yield from self._conversation(self.messages, {"id": self.stem}, 1, 0)
        for kind in DIALECTS:
            if entries := self.entries.get(kind):
                yield from self._session(kind, entries, self.stem, {"path": self.path, "line": entries[0][0]})

    def _session(self, kind: str, entries: list[Entry], name: str, meta: dict[str, Any]) -> Iterator[StoredTranscript]:
        def report(code: str, line: int, offset: int, index: int | None) -> None:
            self.problem(code, line, offset, index=index)

        for transcript in session_transcripts(kind, entries, name, meta, report):
            self.found += 1
            yield transcript


def _taken_apart(value: Any, path: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The list under a path, and the members around it; the value itself if the path is empty."""
    if not path:
        return value, {}
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    rest = {key: item for key, item in value.items() if key != path[0]}
    return holder[path[-1]], rest | {key: item for key, item in holder.items() if key != path[-1]}
