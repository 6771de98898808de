"""Folding on Ray: blocks of a dataset on a pool of actors, a file for each. Needs the extra ``ray``.

What is done is known by its files (`foldline.batch._fragments`), not by checkpoints of the engine: a worker that is
killed costs its block, and so does a driver.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foldline import errors
from foldline._core import __version__
from foldline._util.files import TEMPORARY, hold, make_folder, replacing
from foldline.batch._fragments import BOOKKEEPING, SUMMED, TRIES, Fragment, FragmentWriter, options_of
from foldline.errors import ConfigError, FoldlineError
from foldline.typing import Problem

if TYPE_CHECKING:
    from foldline.batch.compactor import BatchCompactor

__all__ = ["DatasetReport", "compact_dataset", "running", "slices_of"]

_OURS = re.compile(r"part-[0-9a-f]{64}(-[0-9]+)?\.parquet")


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """What became of a dataset.

    Attributes:
        out: The output folder.
        fragments: Its files, in the order of the blocks.
        problems: Source files, or parts of them, that could not be read; the others were folded.
    """

    out: Path
    fragments: tuple[Fragment, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The files, to be read as one dataset."""
        return [str(self.out / fragment.name) for fragment in self.fragments]

    @property
    def totals(self) -> dict[str, int]:
        """The sums over all fragments."""
        return {key: sum(getattr(fragment, key) for fragment in self.fragments) for key in SUMMED}


def compact_dataset(
    source: Any,
    compactor: BatchCompactor,
    *,
    out: str | Path,
    resume: bool = False,
    block_rows: int = 1_024,
    workers: int | None = None,
    cpus_per_worker: float = 1.0,
    on_fragment: Callable[[Fragment], None] | None = None,
) -> DatasetReport:
    """Folds Parquet files or a `ray.data.Dataset` into a folder of Parquet files, one a block, on a pool of actors.

    A file appears when its block is folded, written and synced; until then there is none. If a worker dies, its block
    is folded again; if a second one does, its rows are written as they came (``worker_died``). If this process dies,
    the same call with ``resume=True`` folds what has no whole file, and removes files of the earlier run that are no
    part of this one.

    Blocks are known by their content. Of files that are named here, they are always the same: whole row groups, in
    order. Those of a dataset are Ray's, whose readers may group rows in another way each time; then what was done is
    not found, and is done again. Files that cannot be read are among the ``problems``; the others are folded.

    Give summaries that cost money a `foldline.batch.cache.CachedSummarizer` on a file that all workers share, so that
    those of a lost block are not paid for twice.

    Args:
        source: Parquet files: a path, a pattern, a folder, or several of them. Or a dataset. Rows have the columns that
            the compactor names, one transcript each. Give each a name: without a column of names rows are named by what
            their messages say, or by an index that begins anew every 64 rows.
        compactor: What folds; it must be picklable.
        out: A folder that all workers reach under this path.
        resume: Go on where an earlier call ended; else files of an earlier one are removed first.
        block_rows: Row groups of a file are put together until they have so many rows.
        workers: The most actors; by default as many as the cluster has processors.
        cpus_per_worker: Processors of each.
        on_fragment: Called for each file, as blocks are finished.

    Raises:
        ConfigError: Ray is missing, an option is out of range, or there is no column of messages.
        StoreError: Another run writes there, or a link stands in the place of a folder.
        FoldlineError: The engine gave up (``engine_failed``). What is finished stays.
        OSError: The folder cannot be used, or a worker could not write.
    """
    ray = _ray()
    if workers is not None and workers < 1:
        raise ConfigError("must be at least 1", path="workers")
    if block_rows < 1:
        raise ConfigError("must be at least 1", path="block_rows")
    if not cpus_per_worker > 0:
        raise ConfigError("must be greater than 0", path="cpus_per_worker")
    folder = Path(out).absolute()
    bookkeeping = make_folder(folder, BOOKKEEPING)
    held = hold(bookkeeping)
    try:
        _sweep(folder, () if resume else None)
        manifest = {"foldline": __version__, "command": "compact_dataset", "options": options_of(compactor)}
        _write(bookkeeping, manifest, [], complete=False)
        with running():
            most = workers or max(1, int(ray.cluster_resources().get("CPU", 1) / cpus_per_worker))
            unread: list[Problem] = []
            if not isinstance(source, ray.data.Dataset):
                slices = slices_of(source, block_rows, unread.append)
                source = ray.data.from_items(slices, override_num_blocks=max(1, len(slices)))
            folded = source.map_batches(
                _Worker,
                fn_constructor_args=(FragmentWriter(compactor, folder, resume=resume),),
                batch_size=None,
                batch_format="pyarrow",
                zero_copy_batch=True,
                compute=ray.data.ActorPoolStrategy(min_size=1, max_size=most),
                num_cpus=cpus_per_worker,
            )
            fragments: list[Fragment] = []
            problems: list[Problem] = list(unread)
            times: dict[str, int] = {}
            for fragment in _finished(folded):
                if isinstance(fragment, Problem):
                    problems.append(fragment)
                    continue
                number = times[fragment.name] = times.get(fragment.name, 0) + 1
                if number > 1:  # Equal blocks have one file: each of them gets its own.
                    fragment = _twin(folder, fragment, number)
                fragments.append(fragment)
                if on_fragment is not None:
                    on_fragment(fragment)
        # What an earlier run made of a file that cannot be read today is not to be lost.
        _sweep(folder, () if problems else {fragment.name for fragment in fragments})
        _write(bookkeeping, manifest | {"problems": list(map(str, problems))}, fragments, complete=True)
        return DatasetReport(folder, tuple(fragments), tuple(problems))
    finally:
        if held is not None:
            os.close(held)


_SLICE = ("foldline_path", "foldline_begin", "foldline_end")


def slices_of(
    paths: str | Path | Iterable[str | Path], block_rows: int, on_problem: Callable[[Problem], None]
) -> list[dict[str, Any]]:
    """The blocks of files, in order: whole row groups, each block of at least so many rows where there are as many.

    A file that is missing or no Parquet is a problem.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = []
    for path in _files([paths] if isinstance(paths, (str, Path)) else paths):
        try:
            metadata = pq.read_metadata(path)
        except (OSError, pa.ArrowException) as error:
            on_problem(Problem(None, "bad_parquet", type(error).__name__, str(path)))
            continue
        begin = rows = 0
        for index in range(metadata.num_row_groups):
            rows += metadata.row_group(index).num_rows
            if rows >= block_rows or (rows and index + 1 == metadata.num_row_groups):
                found.append(dict(zip(_SLICE, (str(path), begin, index + 1))))
                begin, rows = index + 1, 0
    return found


def _files(paths: Iterable[str | Path]) -> Iterator[Path]:
    for path in paths:
        place = Path(path).absolute()
        if place.is_dir():
            yield from sorted(file for file in place.rglob("*.parquet") if not file.name.startswith("."))
        elif place.exists() or not glob.has_magic(str(path)):
            yield place
        else:
            yield from sorted(Path(file).absolute() for file in glob.glob(str(path), recursive=True))  # noqa: PTH207


class _Worker:
    """An actor's work: a block in, the record of its file out.

    Ray calls it in a thread of its own; nothing here may wait for another call of it.
    """

    def __init__(self, writer: FragmentWriter) -> None:
        self._writer = writer

    def __call__(self, block: Any) -> Any:
        import pyarrow as pa

        told: list[str] = []
        for table in self._read(block, told) if block.column_names == list(_SLICE) else [block]:
            try:
                if table.num_rows:
                    told.append(json.dumps({"fragment": self._writer.write(table).record()}))
            except FoldlineError as error:  # In Ray's hands it would lose its type.
                told.append(json.dumps({"error": [type(error).__name__, error.detail, error.code, error.path]}))
            except OSError as error:
                told.append(json.dumps({"os_error": [error.errno, error.strerror or type(error).__name__]}))
        return pa.table({"told": pa.array(told, pa.large_string())})

    def _read(self, slices: Any, told: list[str]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {self._writer.compactor.id_column, self._writer.compactor.messages_column}
        for path, begin, end in (tuple(each.values()) for each in slices.to_pylist()):
            try:
                with pq.ParquetFile(path) as file:
                    wanted = [name for name in file.schema_arrow.names if name in columns]
                    table = file.read_row_groups(range(begin, end), columns=wanted)
            except (OSError, pa.ArrowException) as error:
                where = f"row groups {begin} to {end - 1}: {type(error).__name__}"
                told.append(json.dumps({"problem": ["bad_parquet", where, path]}))
            else:
                yield table


def _finished(folded: Any) -> Iterator[Fragment | Problem]:
    """The files, as they are finished, and what could not be read.

    Raises:
        FoldlineError: What a worker could not do, or that the engine gave up. What the engine says may hold what rows
            hold, and is not repeated.
        OSError: A worker could not write.
    """
    import ray

    rows = iter(folded.iter_rows())
    while True:
        try:
            row = next(rows, None)
        except ray.exceptions.RayError as error:
            raise FoldlineError(f"Ray gave up: {type(error).__name__}", code="engine_failed") from error
        if row is None:
            return
        told = json.loads(row["told"])
        if "error" in told:
            name, detail, code, path = told["error"]
            raise getattr(errors, name)(detail, code=code, path=path)
        if "os_error" in told:
            raise OSError(*told["os_error"])
        yield Problem(None, *told["problem"]) if "problem" in told else Fragment(**told["fragment"])


def _twin(folder: Path, fragment: Fragment, number: int) -> Fragment:
    name = f"{fragment.name.removesuffix('.parquet')}-{number}.parquet"
    with (folder / fragment.name).open("rb") as source, replacing(folder / name) as stream:
        shutil.copyfileobj(source, stream)
    return replace(fragment, name=name)


def _sweep(folder: Path, wanted: set[str] | tuple[()] | None) -> None:
    """Removes what killed workers left half written, and files of ours that are not wanted; of an empty tuple, none."""
    shutil.rmtree(folder / TRIES, ignore_errors=True)
    for path in folder.iterdir():
        is_left_over = path.name.startswith(TEMPORARY) and path.suffix == ".tmp"
        is_old = wanted != () and _OURS.fullmatch(path.name) is not None and path.name not in (wanted or ())
        if is_left_over or is_old:
            path.unlink(missing_ok=True)


def _write(folder: Path, manifest: Mapping[str, Any], fragments: list[Fragment], *, complete: bool) -> None:
    totals = {key: sum(getattr(fragment, key) for fragment in fragments) for key in SUMMED}
    told = dict(manifest) | {
        "complete": complete,
        "fragments": [fragment.record() for fragment in fragments],
        "totals": totals,
    }
    with replacing(folder / "run.json") as stream:
        stream.write(json.dumps(told, indent=2).encode() + b"\n")


@contextlib.contextmanager
def running(processors: int | None = None) -> Iterator[Any]:
    """The module ``ray``, connected: to what is connected already, to ``RAY_ADDRESS``, or to one started for the block.

    One that is started here has no dashboard. If Ray was not imported before, it sends no usage statistics and listens
    on the loopback address alone.

    Args:
        processors: How many it may use, where it is started here.

    Raises:
        ConfigError: Ray is missing.
        FoldlineError: It does not start, or no cluster answers (``engine_failed``).
    """
    # Nothing is told to Ray's makers. The second one, which is read when Ray is imported, keeps a Ray that is started
    # here on the loopback address of this machine; to a cluster elsewhere it must not apply.
    if "ray" not in sys.modules and not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # 30 are too few on a busy machine
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    try:
        if os.environ.get("RAY_ADDRESS"):
            ray.init(log_to_driver=False)
        else:
            ray.init(num_cpus=processors, include_dashboard=False, log_to_driver=False)
    except Exception as error:
        detail = f"Ray cannot be started, or reached at RAY_ADDRESS: {type(error).__name__}"
        raise FoldlineError(detail, code="engine_failed") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError:
        detail = "Ray needs the package ray: pip install 'foldline[ray]'"
        raise ConfigError(detail, code="missing_extra", path="ray") from None
    return ray
