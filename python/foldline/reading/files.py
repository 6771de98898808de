"""Reads transcripts from files: formats are detected by content, and problems are reported.

A file may contain a JSON array of messages, conversations (JSON documents, or one a line), one message a line, or a
session of an agent (see docs/data.md); plain or compressed. A bad line never stops the rest.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import logging
import sys
import zlib
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from foldline import _core
from foldline._core import FORMATS
from foldline.errors import FoldlineError, MessageError
from foldline.reading._opencode import is_session, is_storage, sessions_of, stored_transcripts
from foldline.reading._opening import MAX_DOCUMENT_BYTES, Opening
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
from foldline.typing import Problem, StoredTranscript

__all__ = ["FORMATS", "MAX_DOCUMENT_BYTES", "read", "read_stream", "transcript_of"]

_CHUNK_BYTES = 1 << 20

#: Most lines of a chunk: bounds the memory of what is found in it, such as a problem for each line.
MAX_CHUNK_LINES = 1 << 14

_LOG = logging.getLogger(__name__)
# As is usual for libraries: silent unless the application configures logging. Set up here, next to the only logger,
# so that other modules need not import `logging`.
logging.getLogger("foldline").addHandler(logging.NullHandler())

_MAX_HELD_PROBLEMS = 10_000

#: Most entries of unknown types kept until an entry says which session they belong to.
_MAX_HELD_ENTRIES = 1_000

OnProblem = Callable[[Problem], None]

#: JSON values with line and offset, and problems with line, offset and code.
_Found: TypeAlias = tuple[list[tuple[int, int, bytes]], list[tuple[int, int, str]]]

_BOM = b"\xef\xbb\xbf"

#: Codes of lines that are not JSON.
BAD_LINES = ("bad_json", "torn_line")


def read(path: str | Path, on_problem: OnProblem | None = None, *, strict: bool = False) -> Iterator[StoredTranscript]:
    r"""Reads the transcripts of a file, a folder or standard input (``"-"``).

    Conversations and lists of messages come with the fields around them; agent sessions in their provider's message
    format, with their branches and all entries in ``meta`` (see `StoredTranscript`).

    A folder is read recursively, by name, without hidden files. In the storage folder of opencode, the files of each
    session are read as one.

    Conversations are yielded as they are read; a session is yielded at the end of its file.

    Args:
        path: The file or folder.
        on_problem: Called with each `Problem` (path, line from 1, offset in bytes, code). Default: log it.
        strict: Raise an error at the first problem.

    Raises:
        OSError: The path cannot be opened. Inside a folder that is a problem instead.
        MessageError: With ``strict``, the first problem.

    Examples:
        >>> import tempfile, pathlib, foldline as fl
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "chat.jsonl"
        >>> _ = file.write_text('{"id": "a", "messages": [{"role": "user", "content": "hi"}]}\nnot JSON\n')
        >>> [(t.id, t.format, len(t.messages)) for t in fl.read(file, on_problem=lambda p: print(p.line, p.code))]
        2 bad_json
        [('a', 'openai_chat', 1)]
    """

    def report(problem: Problem) -> None:
        if on_problem is not None:
            on_problem(problem)
        else:
            _LOG.warning("%s", problem)
        if strict:
            raise MessageError(str(problem), code=problem.code)

    if str(path) == "-":
        yield from _File("-", report, strict=strict).transcripts(sys.stdin.buffer)
        return
    path = Path(path)
    if not path.is_dir():
        with path.open("rb") as stream:
            yield from _File(str(path), report, strict=strict).transcripts(stream)
        return
    if is_session(path):
        yield from stored_transcripts(path, report)
        return
    for file in _below(path):
        if file.is_dir():
            yield from stored_transcripts(file, report)
            continue
        try:
            with file.open("rb") as stream:
                yield from _File(str(file), report, strict=strict).transcripts(stream)
        except OSError as error:
            report(Problem(None, "unreadable_file", type(error).__name__, str(file)))


def read_stream(stream: IO[bytes], path: str, on_problem: OnProblem) -> Iterator[StoredTranscript]:
    """The transcripts of an open file, as `read` yields them.

    Args:
        stream: Its bytes.
        path: Its name in problems and metadata.
        on_problem: Called with each problem.

    Raises:
        OSError: It cannot be read.
    """
    yield from _File(str(Path(path)), on_problem, strict=False).transcripts(stream)


def transcript_of(value: Any, name: str) -> StoredTranscript:
    """The one transcript in a JSON value: a list of messages, or an object that contains one.

    Args:
        value: The parsed JSON.
        name: Name of the transcript if it does not contain one.

    Raises:
        MessageError: No transcript (with the code of the problem found), or several.
    """
    problems: list[Problem] = []
    file = _File(name, problems.append, strict=False)
    file.stem = name
    found = [*file._sort(value, 1, 0), *file._leftovers()]
    file.tell_held()
    if len(found) == 1:
        transcript = found[0]
        if not transcript.id.startswith(f"{name}:"):
            return transcript
        return StoredTranscript(name, transcript.format, transcript.messages, transcript.meta)
    if found:
        raise MessageError(f"{len(found)} transcripts instead of one", code="several_transcripts")
    first = problems[0] if problems else Problem(None, "no_transcript", "it contains no conversation")
    raise MessageError(first.detail or "it contains no conversation", code=first.code, index=first.index)


def _below(folder: Path) -> list[Path]:
    """The files below a folder by name, without hidden ones; of a storage folder of opencode the sessions."""
    found = [each for each in folder.rglob("*") if not _is_hidden(each, folder)]
    storages = {each.parent for each in found if each.name == "message" and is_storage(each.parent)}
    files = [file for file in found if file.is_file() and storages.isdisjoint(file.parents)]
    return sorted([*files, *(session for storage in storages for session in sessions_of(storage))])


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


class _File:
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
        yield from self.in_chunks(self.chunks(raw))

    def in_chunks(self, chunks: Iterator[bytes]) -> Iterator[StoredTranscript]:
        """The transcripts in the decompressed bytes of the file."""
        for value in self._values(chunks):
            yield from self.in_value(*value)
        yield from self.at_end()

    def in_value(self, line: int, offset: int, text: bytes) -> Iterator[StoredTranscript]:
        """The transcripts in one JSON value, except those complete only at the end of the file."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            self.problem("bad_json", line, offset)
            return
        yield from self._sort(value, line, offset)

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
        yield from self._leftovers()
        if not self.found:
            self.problem("no_transcript", detail="this file contains no message")

    # From bytes to values.

    def _values(self, chunks: Iterator[bytes]) -> Iterator[tuple[int, int, bytes]]:
        """JSON values with line and offset: one a line, or multi-line documents if the first line is not JSON."""
        scanner = _core.LineScanner()
        opening: Opening[_Found] | None = Opening()
        for chunk in chunks:
            found = scanner.feed(chunk)
            if opening is None:
                yield from self._report(*found)
                continue
            kind = _add(opening, chunk, found)
            if kind == "document":
                yield from self._document(opening, chunks)
                return
            if kind == "lines":
                for each in opening.found:
                    yield from self._report(*each)
                opening = None
        found = scanner.finish()
        if opening is None:
            yield from self._report(*found)
        elif _add(opening, b"", found) == "document":
            yield from self._document(opening, iter(()))
        else:
            for each in opening.found:
                yield from self._report(*each)

    def _report(
        self, values: list[tuple[int, int, bytes]], problems: list[tuple[int, int, str]]
    ) -> Iterator[tuple[int, int, bytes]]:
        for line, offset, code in problems:
            self.problem(code, line, offset)
        yield from values

    def in_document(self, opening: Opening[Any], chunks: Iterator[bytes]) -> Iterator[StoredTranscript]:
        """The transcripts of a file whose first line is not JSON."""
        for value in self._document(opening, chunks):
            yield from self.in_value(*value)
        yield from self.at_end()

    def _document(self, opening: Opening[Any], chunks: Iterator[bytes]) -> Iterator[tuple[int, int, bytes]]:
        """The file as concatenated documents; line by line if it does not begin with one, or is too large."""
        begun = opening.chunks
        if self._holds_document(begun, chunks):
            document = b"".join(begun)
            ranges, bad = _core.document_ranges(document)
            if ranges:
                places = _Places(document)
                # Reports problems in the order of their offsets, as for lines.
                whole = [(begin, end, "") for begin, end in ranges]
                for begin, end, code in sorted([*whole, *((at, at, code) for at, code in bad)], key=itemgetter(0)):
                    line, offset = places.line(begin) + opening.skipped_lines, begin + opening.skipped_bytes
                    if code:
                        self.problem(code, line, offset)
                    else:
                        yield line, offset, document[begin:end]
                return
        scanner = _core.LineScanner()
        for chunk in itertools.chain(begun, chunks, (None,)):
            for piece in (None,) if chunk is None else in_few_lines(chunk):
                found, problems = scanner.finish() if piece is None else scanner.feed(piece)
                for line, offset, what in problems:
                    self.problem(what, line + opening.skipped_lines, offset + opening.skipped_bytes)
                for line, offset, text in found:
                    yield line + opening.skipped_lines, offset + opening.skipped_bytes, text

    @staticmethod
    def _holds_document(begun: list[bytes], chunks: Iterator[bytes]) -> bool:
        """Reads a document to its end; False as soon as it cannot be one, or is too large."""
        size = looked_at = sum(map(len, begun))
        if not _may_be_document(begun):
            return False
        for chunk in chunks:
            begun.append(chunk)
            size += len(chunk)
            if size > MAX_DOCUMENT_BYTES:
                return False
            if size >= 2 * looked_at:  # at twice the size, so that the cost is linear
                looked_at = size
                if not _may_be_document(begun):
                    return False
        return True

    def chunks(self, raw: IO[bytes]) -> Iterator[bytes]:
        """The decompressed bytes of the file; of a corrupt archive the readable beginning."""
        head = raw.read(4)
        stream = cast(IO[bytes], _Rewound(head, raw))
        if head[:2] == b"\x1f\x8b":
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=stream))
        elif head == b"\x28\xb5\x2f\xfd":
            try:
                import zstandard
            except ImportError:
                self.problem("unsupported_compression", detail="reading zstd needs the package zstandard")
                return
            stream = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
        elif head == b"PK\x03\x04":
            detail = "this is an archive of files: read each of them; of an Inspect log, `inspect log dump` prints JSON"
            self.problem("unsupported_format", detail=detail)
            return
        errors: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error)
        with contextlib.suppress(ImportError):
            import zstandard

            errors += (zstandard.ZstdError,)
        # `read` of a decompressor fills a whole chunk and loses it if the archive is truncated; `read1` does not.
        read = getattr(stream, "read1", stream.read)
        offset = 0
        while True:
            try:
                chunk = read(_CHUNK_BYTES)
            except errors:
                self.problem("corrupt_compression", None, offset)
                return
            if not chunk:
                return
            offset += len(chunk)
            yield from in_few_lines(chunk)

    # From values to transcripts.

    def _sort(self, value: Any, line: int, offset: int) -> Iterator[StoredTranscript]:
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
                    yield from self._sort(item, line, offset)
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

    def _leftovers(self) -> Iterator[StoredTranscript]:
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


class _Places:
    """Line numbers of ascending offsets."""

    def __init__(self, document: bytes) -> None:
        self._document = document
        self._offset = 0
        self._line = 1

    def line(self, offset: int) -> int:
        self._line += self._document.count(b"\n", self._offset, offset)
        self._offset = offset
        return self._line


def _add(opening: Opening[_Found], chunk: bytes, found: _Found) -> str:
    values, problems = found
    return opening.add(
        chunk,
        [found],
        value_line=values[0][0] if values else None,
        bad_line=next((line for line, _, code in problems if code in BAD_LINES), None),
        has_other=any(code not in BAD_LINES for _, _, code in problems),
    )


def in_few_lines(chunk: bytes) -> Iterator[bytes]:
    """A chunk in pieces of at most `MAX_CHUNK_LINES` lines, each of which ends with a line."""
    if chunk.count(b"\n") <= MAX_CHUNK_LINES:
        yield chunk
        return
    begin = 0
    while begin < len(chunk):
        end = chunk.rfind(b"\n", begin, begin + MAX_CHUNK_LINES) + 1 or chunk.find(b"\n", begin) + 1 or len(chunk)
        yield chunk[begin:end]
        begin = end


def _may_be_document(begun: list[bytes]) -> bool:
    """Whether the beginning of a file is that of a JSON document, complete or not."""
    text = b"".join(begun)
    # Whole lines, so that no word and no character is cut; as one line, for which the scanner decides.
    scanner = _core.LineScanner()
    values, _ = scanner.feed(text[: text.rfind(b"\n") + 1].removeprefix(_BOM).replace(b"\n", b" "))
    rest, problems = scanner.finish()
    return bool(values or rest) or all(code in ("torn_line", "line_too_long") for _, _, code in problems)


class _Rewound:
    """A stream whose first bytes were already read."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._rest.read(size)
        if size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read()
        head, self._head = self._head[:size], self._head[size:]
        return head
