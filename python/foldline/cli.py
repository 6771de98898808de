"""Entry point of the command line; `foldline._cli` implements it. Needs the extra ``cli``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code.

    0: success. 1: problems in the data, listed on standard error; everything else was processed. 2: wrong usage.
    130: interrupted by Ctrl-C. 141: the reader of standard output closed it.

    Args:
        arguments: Arguments after the program name. Default: those of the process.
    """
    try:
        missing = [package for package in ("click", "rich") if find_spec(package) is None]
        if missing:
            needs = f"the command line needs {' and '.join(missing)}: pip install 'foldline[cli]'"
            print(f"foldline: {needs}", file=sys.stderr)
            return 2
        from foldline._cli.commands import run

        return run(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED
