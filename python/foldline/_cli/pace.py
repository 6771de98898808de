"""How far long work is, how fast, and how long it will take."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Pace", "size_of"]


def size_of(paths: Iterable[str]) -> int | None:
    """Bytes of all files; None if one of them is no regular file, so that its size is unknown."""
    total = 0
    for path in paths:
        try:
            known = os.stat(path)  # noqa: PTH116 - the path as given
        except OSError:
            return None
        if not stat.S_ISREG(known.st_mode):
            return None
        total += known.st_size
    return total


@dataclass(frozen=True, slots=True)
class Pace:
    """The state of some work.

    Attributes:
        files_total: Files in all.
        files: Files that are done.
        transcripts: Transcripts that are done.
        elapsed_s: Seconds since the beginning.
        bytes_total: Bytes in all, without those of files that an earlier run finished; None if unknown.
        bytes_done: Bytes that are done.
        current: The file in progress.
    """

    files_total: int
    files: int
    transcripts: int
    elapsed_s: float
    bytes_total: int | None = None
    bytes_done: int = 0
    current: str = ""

    @property
    def share(self) -> float:
        """The share that is done, from 0 to 1: of the bytes if they are known, else of the files."""
        done, total = (self.bytes_done, self.bytes_total) if self.bytes_total else (self.files, self.files_total)
        return min(done / total, 1.0) if total else 0.0

    @property
    def rate(self) -> str:
        """Megabytes a second; empty if nothing is measured yet."""
        if not self.bytes_done or self.elapsed_s <= 0:
            return ""
        return f"{self.bytes_done / self.elapsed_s / 1e6:.1f} MB/s"

    @property
    def eta(self) -> str:
        """The time that the rest takes at the rate so far; empty if nothing is measured yet."""
        if not self.share or self.elapsed_s <= 0:
            return ""
        seconds = round(self.elapsed_s * (1 - self.share) / self.share)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02} left" if hours else f"{minutes}:{seconds:02} left"

    @property
    def done(self) -> str:
        """Files and transcripts that are done."""
        return f"{self.files:,} of {self.files_total:,} files, {self.transcripts:,} transcripts"

    def line(self) -> str:
        """All of it on one line."""
        return ", ".join(each for each in (self.done, self.rate, self.eta, self.current) if each)
