"""Outputs are put in their places by a thread of its own, several with one sync, while the next files are folded."""

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

#: Outputs that may wait: so much work is done anew if the process is killed.
_MOST_WAITING = 32


class Placing:
    """Puts folded files in their places, in the order in which they come.

    Leaving its block waits for those that still wait. What ends it by force, a signal for one, leaves them to their
    `Outputs`.

    Args:
        outputs: Where the temporary files belong.
        reporter: Who is told of problems, by that thread.
        placed: Gets the report of each file whose output lies in its place, in that thread.
        failed: Called in that thread when it can go on no more: nobody might hand over another file.
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
        """Hands a file over; waits where many wait already.

        Raises:
            BaseException: What an earlier one met; then nothing is put in its place any more.
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
        except BaseException as failure:  # noqa: BLE001 - whoever adds or ends is told
            if self._failure is None:
                self._failure = failure
                with contextlib.suppress(OSError):  # nobody listens any more
                    self._failed()
        finally:
            for _ in files:
                self._room.release()

    def _check(self) -> bool:
        return self._failure is None
