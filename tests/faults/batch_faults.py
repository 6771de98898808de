"""Runs `foldline compact` with one failing system call on its output, in forks of one process.

LD_PRELOAD=failing_calls.so python batch_faults.py OUT -- ARGUMENTS

Reads JSON lines ``[at, fault]`` and writes ``[exit code or minus the signal, calls, standard error]``.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import sys
from pathlib import Path

FAULTS = ("", "EIO", "ENOSPC", "EINTR", "short", "kill")


def main() -> None:
    """Answers the input lines in order."""
    out, arguments = sys.argv[1], sys.argv[3:]
    from foldline.cli import main as foldline

    preloaded = ctypes.CDLL(None)
    preloaded.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
    preloaded.fault_calls.restype = ctypes.c_long
    for line in sys.stdin:
        at, fault = json.loads(line)
        told, calls = Path(f"{out}.told"), Path(f"{out}.calls")
        told.unlink(missing_ok=True)
        calls.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            code = 70
            sys.stdout = io.StringIO()
            with told.open("w") as sys.stderr:
                preloaded.fault_arm(os.fsencode(out), at, FAULTS.index(fault))
                try:
                    code = foldline(arguments) or 0
                except SystemExit as end:
                    code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
                finally:
                    counted = preloaded.fault_calls()
                    preloaded.fault_arm(b"", 0, 0)
                    sys.stderr.flush()
                    calls.write_text(str(counted))
                    os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        counted = int(calls.read_text()) if calls.exists() else 0
        print(json.dumps([status, counted, told.read_text()]), flush=True)


if __name__ == "__main__":
    main()
