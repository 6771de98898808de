"""The superuser bound by the permissions of files, as everybody else is: without two capabilities of Linux."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VERSION_3, _DROP_FROM_BOUNDING_SET = 0x20080522, 24
#: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
_CAPABILITIES = (1, 2)
_IS_SUPERUSER = hasattr(os, "geteuid") and os.geteuid() == 0
_LIBC = ctypes.CDLL(None, use_errno=True) if _IS_SUPERUSER and sys.platform == "linux" else None

#: For tests of files that may not be read or written.
needs_permissions = pytest.mark.skipif(
    not hasattr(os, "geteuid") or (_IS_SUPERUSER and _LIBC is None), reason="needs permissions that bind the user"
)


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def _call(name: str, *arguments: object) -> None:
    if getattr(_LIBC, name)(*arguments):
        raise OSError(ctypes.get_errno(), name)


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Bind this thread by the permissions of files."""
    if _LIBC is None:
        yield
        return
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    _call("capget", ctypes.byref(header), sets)
    before = sets[0].effective
    for capability in _CAPABILITIES:
        sets[0].effective &= ~(1 << capability)
    _call("capset", ctypes.byref(header), sets)
    try:
        yield
    finally:
        sets[0].effective = before
        _call("capset", ctypes.byref(header), sets)


def bind_by_permissions() -> None:
    """For `preexec_fn`: bind the program that is started next."""
    if _LIBC is None:
        return
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    _call("capget", ctypes.byref(header), sets)
    for capability in _CAPABILITIES:
        _call("prctl", _DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
        sets[0].inheritable &= ~(1 << capability)
    _call("capset", ctypes.byref(header), sets)
