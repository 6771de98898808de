"""Which problems of a file are reported in detail: a file may have millions."""

from __future__ import annotations

from typing import Final

from foldline.typing import Problem

__all__ = ["FirstProblems"]

#: Problems of each code that are reported in detail, for each file.
_DETAILED: Final = 10


class FirstProblems:
    """Admits the first problems of each code in a file and counts the others.

    Args:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._counts: dict[str, int] = {}

    def admits(self, problem: Problem) -> bool:
        """Counts a problem; whether to report it."""
        count = self._counts[problem.code] = self._counts.get(problem.code, 0) + 1
        return count <= _DETAILED

    def rest(self) -> list[Problem]:
        """For each code, how many problems were not admitted."""
        rest = {code: count - _DETAILED for code, count in self._counts.items() if count > _DETAILED}
        return [Problem(None, code, f"{count} more", self._path) for code, count in rest.items()]
