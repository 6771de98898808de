"""Places outputs from a separate thread, several per sync, while the next files are folded."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from types import TracebackType
from typing import Self

from foldline._cli.fold_file import FoldedFile, place_files
from foldline._cli.progress import FileReport, ProgressSink
from foldline._util.files import Outputs

__all__ = ["Placing"]

#: Outputs that may wait: bounds the work lost if the process is killed.
_MOST_WAITING = 32


class Placing:
    """Places folded files in the order in which they are added.

    Leaving the block waits for pending files. If it is left by a `BaseException` such as Ctrl-C, pending files are
    left to their `Outputs`.

    Args:
        outputs: Owner of the temporary files.
        reporter: Receives problems, in the placing thread.
        placed: Called with the report of each placed file, in the placing thread.
        failed: Called in the placing thread after a failure, since no further file may be added to report it.
    """

    def __init__(
        self,
        outputs: Outputs,
        reporter: ProgressSink,
        placed: Callable[[FileReport], None],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self._outputs = outputs
        self._reporter = reporter
        self._placed = placed
        self._failed = failed
        self._waiting: deque[FoldedFile] = deque()
        self._room = Semaphore(_MOST_WAITING)
        self._pool = ThreadPoolExecutor(1, "foldline-place")
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            self._failure = self._failure or error
        self._pool.shutdown()
        if error is None and self._failure is not None:
            raise self._failure

    def add(self, file: FoldedFile) -> None:
        """Adds a file; blocks while `_MOST_WAITING` files are pending.

        Raises:
            BaseException: The failure of an earlier file; no further files are placed.
        """
        self._room.acquire()
        self._waiting.append(file)
        self._pool.submit(self._place_waiting)
        if self._failure is not None:
            raise self._failure

    def _place_waiting(self) -> None:
        files: list[FoldedFile] = []
        try:
            while self._waiting:
                files.append(self._waiting.popleft())
            if self._failure is None:
                place_files(files, self._outputs, self._reporter, self._check)
                for file in files:
                    self._placed(file.report)
        except BaseException as failure:  # noqa: BLE001 - `add` or `__exit__` raises it
            if self._failure is None:
                self._failure = failure
                with contextlib.suppress(OSError):  # the reader has gone
                    self._failed()
        finally:
            for _ in files:
                self._room.release()

    def _check(self) -> bool:
        return self._failure is None
