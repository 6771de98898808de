"""What a run of `foldline compact` leaves in ``OUT/.foldline``, and how another goes on from there."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from foldline._cli.fold_file import BOOKKEEPING, source_name
from foldline._cli.inputs import sha256_of
from foldline._cli.progress import FileReport, Reporter, totals
from foldline._cli.sources import STDIN, Source
from foldline._core import __version__
from foldline._util.files import hold, make_folder, remove_stale, replacing
from foldline.errors import StoreError
from foldline.typing import Problem

__all__ = ["Run", "begun", "tell_resumed"]

_MANIFEST = "run.json"
#: Files that are finished, a line each, while a run goes on. At its end the manifest says it.
_JOURNAL = "finished.jsonl"
#: Seconds for which it may wait to be made durable. Outputs never wait.
_SYNC_EVERY_S = 1.0


class Run:
    """The bookkeeping of one run. It holds the output folder for itself: a second run there is refused.

    Args:
        out: The output folder.
        options: How the run was called.

    Raises:
        click.UsageError: Another run writes there.
        StoreError: A link stands in the place of the folder.
        OSError: The folder cannot be used.
    """

    def __init__(self, out: Path, options: Mapping[str, Any]) -> None:
        self.out = out
        self.options = json.loads(json.dumps(options))
        self.folder = make_folder(out, BOOKKEEPING)
        self._journal: int | None = None
        self._synced_s = 0.0
        try:
            self._held = hold(self.folder)
        except StoreError as error:
            raise click.UsageError(f"{out}: {error.detail}") from None

    def close(self) -> None:
        """Lets go of the folder."""
        for descriptor in (self._held, self._journal):
            if descriptor is not None:
                os.close(descriptor)
        self._held = self._journal = None

    def begin(self, names: Mapping[Source, Path]) -> None:
        """A new run: nothing is done yet, and what killed runs left half written goes."""
        self._sweep(names.values())
        # First of all, or what another run finished would be taken for this one's.
        (self.folder / _JOURNAL).unlink(missing_ok=True)
        self.write([], complete=False)

    def resumed(self, sources: Sequence[Source], names: Mapping[Source, Path]) -> dict[Source, FileReport]:
        """What an earlier run finished: inputs and outputs that are still the bytes that they were.

        Raises:
            click.UsageError: That run was called otherwise, or by another version.
        """
        manifest = self._manifest()
        if manifest is None:
            self.begin(names)
            return {}
        if manifest.get("foldline") != __version__:
            raise click.UsageError(f"--resume: the run was begun by version {manifest.get('foldline')}")
        before = manifest.get("options")
        if before != self.options:
            before = before if isinstance(before, dict) else {}
            keys = [key for key in {**before, **self.options} if before.get(key) != self.options.get(key)]
            raise click.UsageError(f"--resume: the run was begun with other options: {', '.join(sorted(keys))}")
        known = {record.get("source"): record for record in [*manifest["files"], *self._journal_records()]}
        done = {}
        for source in sources:
            record = known.get(source_name(source))
            report = _still_true(record, source, self.out, names[source]) if record else None
            if report is not None:
                done[source] = report
        self._sweep(names.values())
        # Before the journal begins anew: what it says must not get lost.
        self.write(list(done.values()), complete=False)
        return done

    def finished(self, report: FileReport) -> None:
        """Remembers a file whose output lies in its place. What a power cut takes of it is folded once more."""
        if self._journal is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
            self._journal = os.open(self.folder / _JOURNAL, flags, 0o600)
        line = json.dumps(report.record()).encode() + b"\n"
        while line:
            line = line[os.write(self._journal, line) :]
        if time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
            os.fsync(self._journal)
            self._synced_s = time.monotonic()

    def write(self, files: Sequence[FileReport], *, complete: bool) -> None:
        """Writes ``run.json``: how the run was called and what became of each file. Equal runs, equal bytes."""
        manifest = {
            "foldline": __version__,
            "command": "compact",
            "options": self.options,
            "complete": complete,
            "totals": totals(files),
        }
        with replacing(self.folder / _MANIFEST) as stream:
            # A line for each file: there may be a million.
            stream.write(json.dumps(manifest, indent=2).removesuffix("\n}").encode() + b',\n  "files": [')
            for index, report in enumerate(files):
                stream.write((b",\n    " if index else b"\n    ") + json.dumps(report.record()).encode())
            stream.write(b"\n  ]\n}\n" if files else b"]\n}\n")
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None
        (self.folder / _JOURNAL).unlink(missing_ok=True)

    def _manifest(self) -> dict[str, Any] | None:
        try:
            manifest = json.loads((self.folder / _MANIFEST).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            manifest = None
        if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), list):
            raise click.UsageError(f"--resume: {self.folder / _MANIFEST} is no manifest of a run")
        return manifest

    def _journal_records(self) -> Iterator[dict[str, Any]]:
        """The lines that were written whole."""
        with contextlib.suppress(FileNotFoundError):
            for line in (self.folder / _JOURNAL).read_bytes().splitlines():
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if isinstance(record, dict):
                        yield record

    def _sweep(self, names: Iterable[Path]) -> None:
        """Removes what killed writers left half written."""
        remove_stale([self.folder, *(self.out / name.parent for name in names)])


@contextlib.contextmanager
def begun(out: Path, options: Mapping[str, Any]) -> Iterator[Run]:
    """The bookkeeping of a run, in an output folder that can be written to."""
    try:
        with replacing(make_folder(out, BOOKKEEPING) / "probe"):
            pass
        (out / BOOKKEEPING / "probe").unlink()
        run = Run(out, options)
    except OSError as error:
        raise click.BadParameter(f"cannot be written to: {error.strerror}", param_hint="--out") from None
    except StoreError as error:
        raise click.BadParameter(error.detail, param_hint="--out") from None
    try:
        yield run
    finally:
        run.close()


def tell_resumed(finished: Mapping[Source, FileReport], reporter: Reporter) -> None:
    """Problems of files that an earlier run finished are problems still."""
    for source, report in finished.items():
        reporter.advance(files=1, transcripts=report.transcripts)
        if report.problems:
            detail = f"{report.problems} problems were told by the run that is resumed"
            reporter.problem(Problem(None, "told_before", detail, source.path))


def _still_true(record: Mapping[str, Any], source: Source, out: Path, name: Path) -> FileReport | None:
    """The report of a file that need not be folded again; None where it must."""
    if source.path == STDIN or record.get("retry"):
        return None
    try:
        report = FileReport(**record)
    except TypeError:
        return None
    with contextlib.suppress(OSError):
        if sha256_of(Path(source.path)) != (report.input_bytes, report.input_sha256):
            return None
        if report.output is None:
            return report
        place = out / name
        if report.output == name.as_posix() and not place.is_symlink():
            return report if sha256_of(place) == (report.output_bytes, report.output_sha256) else None
    return None
