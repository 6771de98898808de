"""Worker processes and the placement of outputs: a crash, failure or stop costs only its own file."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline._cli import workers
from foldline._cli.finalize import Placing
from foldline._cli.fold_file import FoldedFile, place_files
from foldline._cli.progress import FileReport, Reporter, Stop
from foldline._cli.sources import Source
from foldline._cli.workers import compact_all
from foldline._util.files import Outputs
from foldline.typing import Problem


class Told(Reporter):
    """Records problems."""

    def __init__(self, *, strict: bool = False) -> None:
        super().__init__(strict=strict)
        self.codes: list[str] = []

    def problem(self, problem: Problem, transcript: str | None = None) -> None:
        self.problems += 1
        self.codes.append(problem.code)
        if self.strict:
            raise Stop

    def advance(self, *, files: int = 0, transcripts: int = 0) -> None:
        pass


class Deadly(fl.batch.BatchCompactor):
    """Ends its process at transcripts with a certain id."""

    def row_folder(self, threads: int = 1) -> None:
        return None

    def compact_row(self, transcript: Any, *arguments: Any, **options: Any) -> Any:
        if transcript.id == "deadly":
            os._exit(9)
        return super().compact_row(transcript, *arguments, **options)


def write(folder: Path, names: dict[str, str]) -> list[Source]:
    """Writes a file with one transcript for each id."""
    folder.mkdir()
    for name, transcript in names.items():
        record = {"id": transcript, "messages": [{"role": "user", "content": "hi " * 40}]}
        (folder / name).write_text(json.dumps(record) + "\n")
    return [Source(str(folder / name), Path(name)) for name in names]


def staged(outputs: Outputs, path: Path, text: bytes = b"new") -> FoldedFile:
    with outputs.staging(path) as (output, stream):
        stream.write(text)
    return FoldedFile(FileReport(path.name, output=path.name), output)


# Workers


@pytest.mark.parametrize("place", [0, 5, 11])
def test_a_file_that_kills_its_workers_affects_no_other_file(place: int, tmp_path: Path) -> None:
    names = {f"{i:02}.jsonl": "deadly" if i == place else f"t{i}" for i in range(12)}
    sources, out = write(tmp_path / "in", names), tmp_path / "out"
    reporter = Told()
    done = dict(
        compact_all(
            sources,
            {source: source.name for source in sources},
            out,
            Deadly(fl.KeepMessages(2)),
            reporter,
            2,
        )
    )
    assert reporter.codes == ["worker_died"]
    assert {source.name.name for source in done} == set(names) - {f"{place:02}.jsonl"}
    assert {path.name for path in out.glob("*.jsonl")} == set(names) - {f"{place:02}.jsonl"}
    assert all(report.transcripts == 1 and report.output_sha256 for report in done.values())


def test_reports_arrive_in_any_order_and_each_once(tmp_path: Path) -> None:
    sources = write(tmp_path / "in", {f"{i:03}.jsonl": f"t{i}" for i in range(90)})
    names = {source: source.name for source in sources}
    with Reporter() as reporter:
        found = list(
            compact_all(sources, names, tmp_path / "out", fl.batch.BatchCompactor(fl.KeepMessages(2)), reporter, 3)
        )
    assert sorted(source.name for source, _ in found) == sorted(source.name for source in sources)
    assert all(report.source == source.name.as_posix() for source, report in found)


class Untellable(type(Path())):  # type: ignore[misc]
    """A name whose report cannot be pickled."""

    def as_posix(self) -> Any:
        return lambda: None


def test_a_worker_that_cannot_send_its_report_does_not_hang(tmp_path: Path) -> None:
    sources = write(tmp_path / "in", {f"{i}.jsonl": f"t{i}" for i in range(8)})
    names = {source: source.name for source in sources} | {sources[7]: Untellable("7.jsonl")}
    reporter = Told()
    done = list(compact_all(sources, names, tmp_path / "out", fl.batch.BatchCompactor(fl.KeepMessages(2)), reporter, 2))
    assert reporter.codes == ["worker_died"]
    assert sorted(source.name.name for source, _ in done) == [f"{i}.jsonl" for i in range(7)]


class Pipe:
    """Records the files sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, task: Any) -> None:
        self.sent.append(task)


@pytest.mark.parametrize(
    ("files", "shares"),
    [(1, [1, 0, 0]), (3, [1, 1, 1]), (5, [1, 1, 1]), (6, [2, 1, 1]), (7, [2, 2, 1]), (9, [2, 2, 2])],
)
def test_files_are_prefetched_only_while_every_worker_has_enough(files: int, shares: list[int], tmp_path: Path) -> None:
    sources = write(tmp_path / "in", {f"{i}.jsonl": f"t{i}" for i in range(files)})
    names = {source: source.name for source in sources}
    without_model = fl.batch.BatchCompactor(fl.KeepMessages(2))
    for compactor, expected in ((without_model, shares), (Deadly(fl.KeepMessages(2)), [min(n, 1) for n in shares])):
        crew = workers._Crew(sources, names, tmp_path / "out", compactor, Told())
        crew._workers = [workers._Worker(None, Pipe()) for _ in range(3)]  # type: ignore[arg-type]
        crew._share()
        assert [len(worker.sources) for worker in crew._workers] == expected
        assert [[task[0] for task in worker.pipe.sent] for worker in crew._workers] == [  # type: ignore[attr-defined]
            list(worker.sources) for worker in crew._workers
        ]


def test_a_special_file_is_not_treated_as_small(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("{}")
    found = [workers._is_small(Source(str(tmp_path / name), Path(name))) for name in ("pipe", "file", "missing")]
    assert found == [False, True, False]


@pytest.mark.parametrize("bad", [4, 11])
def test_a_strict_run_keeps_the_outputs_before_the_problem(bad: int, tmp_path: Path) -> None:
    sources = write(tmp_path / "in", {f"{i:02}.jsonl": f"t{i}" for i in range(12)})
    Path(sources[bad].path).write_text("{x}\n")
    reporter = Told(strict=True)
    names = {source: source.name for source in sources}
    done: list[str] = []

    def work() -> None:
        for source, _ in compact_all(
            sources, names, tmp_path / "out", fl.batch.BatchCompactor(fl.KeepMessages(2)), reporter, 2
        ):
            done.append(source.name.name)

    with pytest.raises(Stop):
        work()
    # All that started before it, except the file in work at the other process and the report sent at the same moment.
    assert len(done) >= bad - 2
    assert set(done) <= {path.name for path in (tmp_path / "out").glob("*.jsonl")}
    assert list((tmp_path / "out").glob("*.tmp")) == []


# Placement


def test_files_of_a_folder_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [tmp_path / name for name in ("a/1", "a/2", "b/3", "a/4")]
    with Outputs() as outputs:
        files = [staged(outputs, path) for path in paths]
        monkeypatch.setattr(
            os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_ino), fsync(descriptor))
        )
        assert not any(path.exists() for path in paths)
        place_files(files, outputs, Told())
    inodes = [path.stat().st_ino for path in (*paths, tmp_path / "a", tmp_path / "b")]
    assert synced == inodes
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["1", "2", "3", "4"]


def test_one_failed_placement_does_not_affect_the_others(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    reporter = Told()
    with Outputs() as outputs:
        files = [staged(outputs, tmp_path / name) for name in ("first", "taken", "last")]
        place_files(files, outputs, reporter)
    assert [file.report.output for file in files] == ["first", None, "last"]
    assert [(file.report.problems, file.report.retry) for file in files] == [(0, 0), (1, 1), (0, 0)]
    assert reporter.codes == ["cannot_write"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "last", "taken"]


@pytest.mark.parametrize("end", [None, OSError, KeyboardInterrupt, SystemExit])
def test_outputs_that_are_not_placed_are_removed(end: type[BaseException] | None, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    with contextlib.suppress(BaseException), Outputs() as outputs:
        staged(outputs, tmp_path / "old")
        staged(outputs, tmp_path / "new")
        assert len(list(tmp_path.iterdir())) == 3
        if end is not None:
            raise end
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "old")]


def test_pending_outputs_are_placed_at_the_end_in_order(tmp_path: Path) -> None:
    reports: list[str] = []
    threads: set[int] = set()

    def note(report: FileReport) -> None:
        threads.add(threading.get_ident())
        reports.append(report.source)

    with Outputs() as outputs, Placing(outputs, Told(), note) as placing:
        for i in range(100):
            placing.add(staged(outputs, tmp_path / f"{i}"))
    assert reports == [str(i) for i in range(100)]
    assert threads.isdisjoint({threading.get_ident()})
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"new"}


def test_an_interrupted_placement_leaves_no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        go_on.wait(20)
        fsync(descriptor)

    def stop() -> None:
        with Outputs() as outputs, Placing(outputs, Told(), lambda report: None) as placing:
            for i in range(8):
                placing.add(staged(outputs, tmp_path / f"{i}"))
            threading.Timer(0.1, go_on.set).start()
            raise SystemExit(1)

    monkeypatch.setattr(os, "fsync", slow)
    with pytest.raises(SystemExit):
        stop()
    # Outputs already being placed are complete; the others leave no file.
    assert all(path.read_bytes() == b"new" for path in tmp_path.iterdir())
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_an_error_of_the_listener_ends_the_placement(tmp_path: Path) -> None:
    def fail(report: FileReport) -> None:
        raise BrokenPipeError

    failed: list[bool] = []

    def add_all() -> None:
        with Outputs() as outputs, Placing(outputs, Told(), fail, lambda: failed.append(True)) as placing:
            for i in range(200):
                placing.add(staged(outputs, tmp_path / f"{i}"))

    with pytest.raises(BrokenPipeError):
        add_all()
    assert failed == [True]
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []
