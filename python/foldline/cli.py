"""The command line. What it does lies in `foldline._cli`, which needs the extra ``cli``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and gives its exit code.

    0: fine. 1: there are problems in the data; they are listed on standard error, and everything that could be done
    was done. 2: wrong usage. 130: stopped with Ctrl-C. 141: who read standard output has gone.

    Args:
        arguments: What stands behind the name of the program; without it, what the program was called with.
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
