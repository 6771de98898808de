"""Entry point of the command line; `foldline._cli` implements it. Needs the extra ``cli``."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # in the interpreter; `signal` imports others, and Ctrl-C waits for none
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

__all__ = ["main"]

_INTERRUPTED = 130

#: Delay of an interrupt that Python could not raise where it came.
_AGAIN_S = 0.001


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code.

    0: success. 1: problems in the data, listed on standard error; everything else was processed. 2: wrong usage.
    130: interrupted by Ctrl-C. 141: the reader of standard output closed it.

    Args:
        arguments: Arguments after the program name. Default: those of the process, whose handler of Ctrl-C is then
            replaced.
    """
    if arguments is None and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        return _Program().run()
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    return _commands()(arguments)


def _commands() -> Callable[[Sequence[str] | None], int]:
    """The function that runs a command."""
    from importlib.util import find_spec

    missing = [package for package in ("click", "rich") if find_spec(package) is None]
    if missing:
        needs = f"the command line needs {' and '.join(missing)}: pip install 'foldline[cli]'"
        print(f"foldline: {needs}", file=sys.stderr)
        return lambda _: 2
    from foldline._cli.commands import run

    return run


class _Program:
    """The process of a command: Ctrl-C ends it with `_INTERRUPTED` at any moment, and without a traceback.

    While modules are imported, and at the end, it ends at once: an exception there may become another one, or be
    printed and lost. While the command runs, it is a `KeyboardInterrupt`. If that comes where Python cannot raise it,
    such as in a callback of the garbage collector, it comes once more.
    """

    def __init__(self) -> None:
        self._is_running = False
        self._is_interrupted = False

    def run(self) -> int:
        """Runs the command of the process."""
        _signal.signal(_signal.SIGINT, self._interrupt)
        run = _commands()
        sys.unraisablehook = self._unraisable
        code = _INTERRUPTED
        try:
            try:
                self._is_running = True
                code = run(None)
            finally:
                self._is_running = False
        except KeyboardInterrupt:
            self._is_running = False
        except Exception:
            self._is_running = False
            if not self._is_interrupted:
                raise
        return code

    def _interrupt(self, signal: int, frame: FrameType | None) -> None:  # noqa: ARG002 - of a handler
        self._is_interrupted = True
        if not self._is_running:
            os._exit(_INTERRUPTED)
        raise KeyboardInterrupt

    def _unraisable(self, error: sys.UnraisableHookArgs) -> None:
        if issubclass(error.exc_type, KeyboardInterrupt):
            import _thread

            _thread.start_new_thread(_interrupt_again, (_thread.get_ident(),))
        else:
            sys.__unraisablehook__(error)


def _interrupt_again(thread: int) -> None:
    import _thread
    import time

    time.sleep(_AGAIN_S)
    if hasattr(_signal, "pthread_kill"):
        _signal.pthread_kill(thread, _signal.SIGINT)  # ends a system call that waits
    else:
        _thread.interrupt_main()
