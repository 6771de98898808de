"""An `os` module whose n-th call fails: the stores write through it."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

#: The file calls of the stores.
CALLS: Final = ("open", "fstat", "lseek", "read", "write", "fsync", "fdatasync", "ftruncate", "close")

#: The possible faults of a call; `short` applies only to writes.
FAULTS: Final = ("EIO", "ENOSPC", "EINTR", "short", "interrupt", "kill")


class FailingOs(ModuleType):
    """Counts the calls and fails the n-th; if `sticky`, also all later ones with the same name."""

    def __init__(self, at: int = 0, fault: str = "", *, sticky: bool = False) -> None:
        super().__init__("os")
        self.calls: list[str] = []
        self._at = at
        self._fault = fault
        self._sticky = sticky
        self._bad: str | None = None

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)
        return self._counted(name, function) if name in CALLS else function

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) == self._at or (self._sticky and name == self._bad and name != "close"):
                self._bad = name
                return self._gone_wrong(name, function, arguments)
            return function(*arguments)

        return call

    def _gone_wrong(self, name: str, function: Callable[..., Any], arguments: Any) -> Any:
        if name == "close":  # the descriptor is closed nevertheless
            function(*arguments)
        match self._fault:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "short" if name == "write":
                descriptor, data = arguments
                return function(descriptor, bytes(data)[: max(1, len(data) // 2)])
            case "short":
                return function(*arguments)
            case "interrupt":
                raise KeyboardInterrupt
            case "ENOSPC" if name == "write":  # like a nearly full disk
                descriptor, data = arguments
                function(descriptor, bytes(data)[: len(data) // 3])
        number = getattr(errno, self._fault)
        raise OSError(number, os.strerror(number))
