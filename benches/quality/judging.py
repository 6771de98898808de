"""Who is named in a text, judged without foldline: no code of the library decides how well it does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["Names", "holds_verbatim"]


class Names:
    """Which of some files a text names.

    A file is named by the shortest end of its path that no other file of the set has, whole words, case as it is:
    ``cli.rs`` where there is one such file, ``src/mod.rs`` and ``tests/mod.rs`` where there are two. A longer end or
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
        # A file's name must not go on, and must not be the end of another name.
        return re.compile(r"(?<![\w.-])" + re.escape(self._shortest[path].lstrip("/")) + r"(?![\w-]|\.\w)")


def _ends(path: str) -> Sequence[str]:
    parts = [part for part in path.split("/") if part]
    return ["/".join(parts[-n:]) for n in range(1, len(parts) + 1)]


def holds_verbatim(text: str, constraint: str) -> bool:
    """Whether the words of a constraint stand in a text, spaces and case aside."""
    return " ".join(constraint.split()).casefold() in " ".join(text.split()).casefold()
