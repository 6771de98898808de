"""Finds files named in a text without foldline: no code of the library judges its own results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["Names", "holds_verbatim"]


class Names:
    """The files of a set that a text names.

    A file is named by the shortest suffix of its path that no other file of the set has, whole words, case-sensitive:
    ``cli.rs`` if there is one such file, ``src/mod.rs`` and ``tests/mod.rs`` if there are two. A longer suffix or
    the whole path names it too.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = sorted(set(paths))
        ends = Counter(end for path in self.paths for end in _ends(path))
        self._shortest = {path: next(end for end in (*_ends(path), path) if ends[end] <= 1) for path in self.paths}

    def named_in(self, text: str) -> list[str]:
        """The files that ``text`` names, sorted."""
        return [path for path in self.paths if self._pattern(path).search(text)]

    def _pattern(self, path: str) -> re.Pattern[str]:
        # A file name must not continue, and must not be the end of another name.
        return re.compile(r"(?<![\w.-])" + re.escape(self._shortest[path].lstrip("/")) + r"(?![\w-]|\.\w)")


def _ends(path: str) -> Sequence[str]:
    parts = [part for part in path.split("/") if part]
    return ["/".join(parts[-n:]) for n in range(1, len(parts) + 1)]


def holds_verbatim(text: str, constraint: str) -> bool:
    """Whether a text contains the words of a constraint, ignoring spaces and case."""
    return " ".join(constraint.split()).casefold() in " ".join(text.split()).casefold()
