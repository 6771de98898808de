"""Reads transcripts from files: formats are detected by content, and problems are reported.

A file may contain a JSON array of messages, conversations (JSON documents, or one a line), one message a line, or a
session of an agent (see docs/data.md); plain or compressed. A bad line never stops the rest.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from foldline._core import FORMATS
from foldline._util.problems import FirstProblems
from foldline.errors import MessageError
from foldline.reading._opencode import is_session, is_storage, sessions_of, stored_transcripts
from foldline.reading._opening import MAX_DOCUMENT_BYTES
from foldline.reading._reader import FileReader, OnProblem
from foldline.typing import Problem, StoredTranscript

__all__ = ["FORMATS", "MAX_DOCUMENT_BYTES", "read", "read_stream", "transcript_of"]

_LOG = logging.getLogger(__name__)
# As is usual for libraries: silent unless the application configures logging. Set up here, next to the only logger,
# so that other modules need not import `logging`.
logging.getLogger("foldline").addHandler(logging.NullHandler())


def read(path: str | Path, on_problem: OnProblem | None = None, *, strict: bool = False) -> Iterator[StoredTranscript]:
    r"""Reads the transcripts of a file, a folder or standard input (``"-"``).

    Conversations and lists of messages come with the fields around them; agent sessions in their provider's message
    format, with their branches and all entries in ``meta`` (see `StoredTranscript`).

    A folder is read recursively, by name, without hidden files. In the storage folder of opencode, the files of each
    session are read as one.

    Conversations are yielded as they are read; a session is yielded at the end of its file.

    Args:
        path: The file or folder.
        on_problem: Called with each `Problem` (path, line from 1, offset in bytes, code). Default: log the first ten of
            each code in a file, and then how many more there are.
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
    if on_problem is not None:
        yield from _read(path, on_problem, strict=strict)
        return
    log = _ProblemLog()
    try:
        yield from _read(path, log.add, strict=strict)
    finally:
        log.end_file()


class _ProblemLog:
    """Logs the first problems of each file in detail, and at its end the number of others."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._first = FirstProblems("")

    def add(self, problem: Problem) -> None:
        if problem.path != self._path:
            self.end_file()
            self._path, self._first = problem.path, FirstProblems(problem.path or "")
        if self._first.admits(problem):
            _LOG.warning("%s", problem)

    def end_file(self) -> None:
        for problem in self._first.rest():
            _LOG.warning("%s", problem)
        self._path, self._first = None, FirstProblems("")


def _read(path: str | Path, on_problem: OnProblem, *, strict: bool) -> Iterator[StoredTranscript]:
    def report(problem: Problem) -> None:
        on_problem(problem)
        if strict:
            raise MessageError(str(problem), code=problem.code)

    if str(path) == "-":
        yield from FileReader("-", report, strict=strict).transcripts(sys.stdin.buffer)
        return
    path = Path(path)
    if not path.is_dir():
        with path.open("rb") as stream:
            yield from FileReader(str(path), report, strict=strict).transcripts(stream)
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
                yield from FileReader(str(file), report, strict=strict).transcripts(stream)
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
    yield from FileReader(str(Path(path)), on_problem, strict=False).transcripts(stream)


def transcript_of(value: Any, name: str) -> StoredTranscript:
    """The one transcript in a JSON value: a list of messages, or an object that contains one.

    Args:
        value: The parsed JSON.
        name: Name of the transcript if it does not contain one.

    Raises:
        MessageError: No transcript (with the code of the problem found), or several.
    """
    problems: list[Problem] = []
    file = FileReader(name, problems.append, strict=False)
    file.stem = name
    found = [*file.sort(value, 1, 0), *file.leftovers()]
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
