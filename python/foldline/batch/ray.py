"""Folds on Ray: a pool of actors writes one file per block of a dataset. Needs the extra ``ray``.

Progress is recorded in the files themselves (`foldline.batch._fragments`), not in checkpoints of the engine: a killed
worker or driver loses only the blocks in progress.
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
    """The outcome of a dataset.

    Attributes:
        out: The output folder.
        fragments: Its files, in the order of the blocks.
        problems: Source files, or parts of them, that could not be read; all others were folded.
    """

    out: Path
    fragments: tuple[Fragment, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def paths(self) -> list[str]:
        """Paths of the files, to read them as one dataset."""
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
    """Folds Parquet files or a `ray.data.Dataset` into Parquet files, one per block, on a pool of actors.

    A file appears once its block is folded, written and synced. If a worker dies, its block is folded again; after a
    second death its rows are written unchanged (``worker_died``). If this process dies, the same call with
    ``resume=True`` folds the blocks without a complete file, and removes files of the earlier run that are not part of
    this one.

    Blocks are identified by their content. Blocks of Parquet files are deterministic: whole row groups, in order.
    Blocks of a dataset are made by Ray, whose readers may group rows differently each time; then finished blocks are
    not recognized and are folded again. Unreadable files are listed in ``problems``; the others are folded.

    For summaries that cost money, use a `foldline.batch.cache.CachedSummarizer` on a file shared by all workers, so
    that summaries of a lost block are not paid for twice.

    Args:
        source: Parquet files (a path, a pattern, a folder, or several of them), or a dataset. Rows have the columns
            that the compactor names, one transcript each. Without an id column, rows are named by the id in their
            messages value, or by an index that restarts every `ROWS_AT_A_TIME` rows.
        compactor: Folds the rows; must be picklable.
        out: Output folder that all workers reach under this path.
        resume: Continue an earlier call. Default: remove its files first.
        block_rows: Row groups of a file are combined up to at least this number of rows.
        workers: Maximum number of actors. Default: processors of the cluster, divided by ``cpus_per_worker``.
        cpus_per_worker: Processors per actor.
        on_fragment: Called for each file as its block finishes.

    Raises:
        ConfigError: Ray is missing, an option is out of range, or the messages column is missing.
        StoreError: Another run uses the folder, or a link is in place of a folder.
        FoldlineError: The engine failed (``engine_failed``). Finished files stay.
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
                if number > 1:  # equal blocks have one file: each further one gets a copy
                    fragment = _twin(folder, fragment, number)
                fragments.append(fragment)
                if on_fragment is not None:
                    on_fragment(fragment)
        # Files of an earlier run made from sources unreadable today must be kept.
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
    """The blocks of files, in order: whole row groups, at least ``block_rows`` rows each if the file has them.

    A file that is missing or not Parquet is a problem.
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
    """An actor: takes a block, returns the record of its file.

    Ray calls it in a separate thread; a call must not wait for another one.
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
            except FoldlineError as error:  # Ray would lose its type
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
    """The files as their blocks finish, and problems of unreadable sources.

    Raises:
        FoldlineError: An error of a worker, or the engine failed. The engine's message may contain row content and is
            not repeated.
        OSError: A worker could not write.
    """
    import ray

    rows = iter(folded.iter_rows())
    while True:
        try:
            row = next(rows, None)
        except ray.exceptions.RayError as error:
            raise FoldlineError(f"Ray failed: {type(error).__name__}", code="engine_failed") from error
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
    """Removes temporary files of killed workers, and our files that are not wanted: all with None, none with ``()``."""
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
    """The module ``ray``, connected: to an existing connection, to ``RAY_ADDRESS``, or to a new local instance.

    A local instance runs without a dashboard. If Ray was not imported before, it sends no usage statistics and listens
    only on the loopback address.

    Args:
        processors: Processors of a local instance. Default: all.

    Raises:
        ConfigError: Ray is missing.
        FoldlineError: Ray does not start, or no cluster answers (``engine_failed``).
    """
    # Disables usage statistics. The second variable, read when Ray is imported, binds a local instance to the loopback
    # address; it must not apply to a remote cluster.
    if "ray" not in sys.modules and not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # the default of 30 is too short on a busy machine
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
