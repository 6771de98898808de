"""Bookkeeping of `foldline compact` in ``OUT/.foldline``, and how another run resumes from it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from foldline._cli.fold_file import BOOKKEEPING, mode_of, source_name
from foldline._cli.inputs import sha256_of
from foldline._cli.progress import FileReport, Reporter, printable, totals
from foldline._cli.sources import STDIN, Source
from foldline._core import __version__
from foldline._util.files import (
    Outputs,
    create_private,
    failed_path,
    hold,
    make_folder,
    narrow,
    read_regular,
    remedy,
    remove_stale,
    replacing,
)
from foldline.errors import StoreError
from foldline.typing import Problem

__all__ = ["Run", "begun", "tell_earlier", "tell_resumed"]

_MANIFEST = "run.json"
#: Journal of finished files, a line each, during a run. At its end the manifest replaces it.
_JOURNAL = "finished.jsonl"
#: Interval between syncs of the journal, in seconds. Outputs are synced before they are recorded.
_SYNC_EVERY_S = 1.0
#: Warnings in detail; the rest is a number on standard error, and listed in the manifest.
_MOST_WARNINGS = 10
#: Longest version and name of an option, of those that a manifest has, in messages.
_LONGEST_NAME = 40


class Run:
    """The bookkeeping of one run. Locks the output folder: a second run there is refused.

    Args:
        out: The output folder.
        options: The options of the run.
        command: The command that started it.

    Raises:
        click.UsageError: Another run uses the folder.
        StoreError: A link is in place of the folder.
        OSError: The folder cannot be used.
    """

    def __init__(self, out: Path, options: Mapping[str, Any], command: str = "compact") -> None:
        self.out = out
        self.command = command
        self.options = json.loads(json.dumps(options))
        self.folder = make_folder(out, BOOKKEEPING)
        self._journal: int | None = None
        self._synced_s = 0.0
        #: Outputs of earlier runs that were there at the start of this one.
        self._earlier: set[str] = set()
        try:
            self._held = hold(self.folder)
        except StoreError as error:
            raise click.UsageError(f"{out}: {error.detail}") from None

    def close(self) -> None:
        """Releases the folder."""
        for descriptor in (self._held, self._journal):
            if descriptor is not None:
                os.close(descriptor)
        self._held = self._journal = None

    def probe(self) -> None:
        """Writes and removes a file.

        Raises:
            OSError: The folder cannot be written to.
        """
        with Outputs() as outputs, outputs.staging(self.folder / _MANIFEST):
            pass

    def begin(self, names: Mapping[Source, Path]) -> None:
        """Starts a new run: removes temporary files of killed runs and earlier records.

        Raises:
            StoreError: A file of the records cannot be used.
        """
        with contextlib.suppress(click.UsageError):  # no manifest, so nothing is known
            self._note_earlier(self._manifest())
        self._sweep(names.values())
        # Before everything else, so that files of an earlier run do not count as finished.
        self._remove_journal()
        self.write([], complete=False)

    def resumed(self, sources: Sequence[Source], names: Mapping[Source, Path]) -> dict[Source, FileReport]:
        """Files finished by an earlier run whose inputs and outputs still have the same bytes.

        Raises:
            click.UsageError: The earlier run had other options or another version.
            StoreError: A file of the records cannot be used.
        """
        manifest = self._manifest()
        if manifest is None:
            self.begin(names)
            return {}
        if manifest.get("foldline") != __version__:
            version = printable(str(manifest.get("foldline")))
            raise click.UsageError(f"--resume: the run was started by version {version[:_LONGEST_NAME]}")
        before = manifest.get("options")
        if before != self.options:
            before = before if isinstance(before, dict) else {}
            keys = [
                printable(key)[:_LONGEST_NAME]
                for key in {**before, **self.options}
                if before.get(key) != self.options.get(key)
            ]
            raise click.UsageError(f"--resume: the run was started with other options: {', '.join(sorted(keys))}")
        self._note_earlier(manifest)
        known = {report.source: report for report in map(FileReport.of, self._records(manifest)) if report is not None}
        done = {}
        for source in sources:
            report = known.get(source_name(source))
            if report is not None and _is_still_true(report, source, self.out, names[source]):
                done[source] = report
        self._sweep(names.values())
        # Before the journal restarts, so that its records are not lost.
        self.write(list(done.values()), complete=False)
        return done

    def finished(self, report: FileReport) -> None:
        """Records a file whose output is in place. A record lost in a power cut means folding the file again.

        Raises:
            StoreError: The record cannot be written.
        """
        with _using(self.folder / _JOURNAL) as path:
            if self._journal is None:
                # `begin` and `write` have removed an earlier one.
                self._journal = create_private(path, os.O_WRONLY | os.O_APPEND)
            line = json.dumps(report.record()).encode() + b"\n"
            while line:
                line = line[os.write(self._journal, line) :]
            if time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
                os.fsync(self._journal)
                self._synced_s = time.monotonic()

    def write(self, files: Sequence[FileReport], *, complete: bool) -> None:
        """Writes ``run.json``: the options of the run, the outcome of each file, older outputs. Deterministic.

        Raises:
            StoreError: It cannot be written.
        """
        manifest = {
            "foldline": __version__,
            "command": self.command,
            "options": self.options,
            "complete": complete,
            "totals": totals(files),
            "earlier_outputs": self.earlier_outputs(files),
        }
        with _using(self.folder / _MANIFEST) as path, replacing(path) as stream:
            # One line per file, since there may be a million.
            stream.write(json.dumps(manifest, indent=2).removesuffix("\n}").encode() + b',\n  "files": [')
            for index, report in enumerate(files):
                stream.write((b",\n    " if index else b"\n    ") + json.dumps(report.record()).encode())
            stream.write(b"\n  ]\n}\n" if files else b"]\n}\n")
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None
        self._remove_journal()

    def earlier_outputs(self, files: Iterable[FileReport]) -> list[str]:
        """Outputs of earlier runs that are not among those of these files, sorted. They are never removed."""
        return sorted(self._earlier.difference(report.output for report in files if report.output is not None))

    def _note_earlier(self, manifest: Mapping[str, Any] | None) -> None:
        """Notes the outputs that an earlier run recorded and that are still there."""
        if manifest is None:
            return
        outputs = [record.get("output") for record in self._records(manifest)]
        listed = manifest.get("earlier_outputs")
        outputs += listed if isinstance(listed, list) else []
        self._earlier = {name for name in outputs if isinstance(name, str) and os.path.isfile(self.out / name)}  # noqa: PTH113 - of a million

    def _manifest(self) -> dict[str, Any] | None:
        with _using(self.folder / _MANIFEST) as path:
            try:
                manifest = json.loads(read_regular(path))
            except FileNotFoundError:
                return None
            except (ValueError, RecursionError):
                manifest = None
        if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), list):
            raise click.UsageError(
                f"--resume: {path} is not a manifest of a run; without --resume the run starts from the beginning"
            )
        return manifest

    def _records(self, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The files finished by an earlier run, later records last."""
        return [record for record in (*manifest["files"], *self._journal_records()) if isinstance(record, dict)]

    def _journal_records(self) -> Iterator[Any]:
        """The complete lines of the journal."""
        with _using(self.folder / _JOURNAL) as path:
            try:
                lines = read_regular(path).splitlines()
            except FileNotFoundError:
                return
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                yield json.loads(line)

    def _remove_journal(self) -> None:
        with _using(self.folder / _JOURNAL) as path:
            path.unlink(missing_ok=True)

    def _sweep(self, names: Iterable[Path]) -> None:
        """Removes temporary files of killed writers."""
        remove_stale([self.folder, *(self.out / name.parent for name in names)])


@contextlib.contextmanager
def begun(out: Path, options: Mapping[str, Any], command: str) -> Iterator[Run]:
    """Bookkeeping of a run in a writable output folder.

    The lock comes first: of two runs started together, one reads that the other holds the folder, and only the holder
    writes there.
    """
    with contextlib.ExitStack() as stack:
        try:
            run = Run(out, options, command)
            stack.callback(run.close)
            run.probe()
        except OSError as error:
            place = failed_path(error) or str(out / BOOKKEEPING)
            detail = f"{printable(place)} cannot be written to: {error.strerror}; {remedy(error)}"
            raise click.BadParameter(detail, param_hint="--out") from None
        except StoreError as error:
            raise click.BadParameter(f"{printable(error.path)}: {error.detail}", param_hint="--out") from None
        yield run


@contextlib.contextmanager
def _using(path: Path) -> Iterator[Path]:
    """A file of the records, whose errors name it and say what to do.

    Raises:
        StoreError: In place of an `OSError`.
    """
    try:
        yield path
    except OSError as error:
        detail = f"cannot be used ({error.strerror or type(error).__name__}): {remedy(error)}"
        raise StoreError(detail, code="records_failed", path=str(path)) from None


def tell_resumed(finished: Mapping[Source, FileReport], reporter: Reporter) -> None:
    """Reports that files finished by an earlier run had problems."""
    for source, report in finished.items():
        reporter.advance(files=1, transcripts=report.transcripts)
        if report.problems:
            detail = f"{report.problems} problems were reported by the resumed run"
            reporter.problem(Problem(None, "told_before", detail, source.path))


def tell_earlier(run: Run, names: Mapping[Source, Path], files: Sequence[FileReport], reporter: Reporter) -> None:
    """Warns of outputs of earlier runs that this run has not written."""
    ours = {name.as_posix() for name in names.values()}
    earlier = run.earlier_outputs(files)
    for name in earlier[:_MOST_WARNINGS]:
        why = "nothing was written for its source" if name in ours else "its source is not among those of this run"
        reporter.say(f"warning: {run.out / name}: left from an earlier run; {why}")
    if len(earlier) > _MOST_WARNINGS:
        reporter.say(f"warning: {len(earlier) - _MOST_WARNINGS} more outputs are left from earlier runs")


def _is_still_true(report: FileReport, source: Source, out: Path, name: Path) -> bool:
    """Whether a file need not be folded again. Its output loses permissions that the source has lost since."""
    if source.path == STDIN or report.retry:
        return False
    with contextlib.suppress(OSError):
        if sha256_of(Path(source.path)) != (report.input_bytes, report.input_sha256):
            return False
        if report.output is None:
            return True
        place = out / name
        if report.output == name.as_posix() and not place.is_symlink():
            if sha256_of(place) != (report.output_bytes, report.output_sha256):
                return False
            narrow(place, mode_of(source))
            return True
    return False
