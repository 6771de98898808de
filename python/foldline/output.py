"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from foldline.errors import StoreError

__all__ = ["TEMPORARY", "make_folder", "replacing"]

#: Temporary files begin with this; a dot, so that whoever reads the folder passes them over.
TEMPORARY = ".foldline-"


def make_folder(root: Path, relative: Path) -> Path:
    """Makes ``root / relative`` with all folders on the way. Below ``root`` no link is followed.

    Raises:
        StoreError: A link lies on the way.
        OSError: A folder cannot be made, or a file stands in its place.
    """
    root.mkdir(parents=True, exist_ok=True)
    folder = root
    for part in relative.parts:
        folder /= part
        if folder.is_symlink():
            raise StoreError("a link stands where a folder should be", code="linked_folder")
        folder.mkdir(exist_ok=True)
    return folder


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A stream whose bytes become the file ``path`` when the block ends well.

    Until then they lie in a temporary file of the same folder, which is removed whatever goes wrong, Ctrl-C included:
    ``path`` is its old self or the complete new one, after a power cut too. If it is a link, the link is replaced and
    what it leads to is left alone.

    Args:
        path: The file; its folder must exist.
        mode: Its permissions, before the umask.
    """
    temporary = path.parent / f"{TEMPORARY}{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, mode), "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # Not every file system can.
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
