"""The result of a measure, its target and its formatting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

#: Required and desired values. For a ratio: how many times better than the fastest exact peer of the same run.
TARGETS: dict[str, tuple[float | None, float | None]] = {
    "1 MB documents": (2.0, 2.5),
    "1 MB documents, multilingual": (1.8, 2.5),
    "1 MB, tokenizer files": (1.5, 2.0),
    "200 B, one call each": (2.0, 3.0),
    "2 KB, one call each": (2.0, 3.0),
    "batch of 2 KB": (2.0, 3.0),
    "messages, exact": (2.0, 4.0),
    "estimates of dicts": (1.0, 4.0),
    "estimates of JSONL": (8.0, None),
    "first megabyte": (2.5, 4.0),
    "threads against peers": (2.0, 3.0),
}
#: Bounds of foldline's own value, independent of peers.
BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "first count, CPU ms": (5.0, 3.0),
    "resident, MB": (12.0, 6.0),
    "threads, speed-up": (1.8, 1.95),
    "linear, t(2n)/t(n)": (2.5, 2.2),
    "hostile megabyte, s": (0.5, 0.05),
}


@dataclass
class Row:
    """One measure on one sample. ``values`` are those of foldline and the peers, in ``unit``."""

    measure: str
    sample: str
    unit: str
    higher_is_better: bool
    values: dict[str, float]
    target: str = ""
    not_exact: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    """Measured, but not a peer here: its result is a different number."""

    @property
    def ours(self) -> float:
        """foldline's value."""
        return self.values["foldline"]

    def fastest(self) -> str | None:
        """The best exact peer."""
        left_out = {"foldline", *self.not_exact, *self.beside}
        peers = {name: value for name, value in self.values.items() if name not in left_out}
        if not peers:
            return None
        return (max if self.higher_is_better else min)(peers, key=peers.__getitem__)

    def ratio(self) -> float | None:
        """How many times better foldline is than the best exact peer."""
        best = self.fastest()
        if best is None or not self.ours or not self.values[best]:
            return None
        return self.ours / self.values[best] if self.higher_is_better else self.values[best] / self.ours

    def verdict(self) -> dict[str, Any]:
        """Must and moonshot, and whether they were reached."""
        if self.target in TARGETS:
            must, moonshot = TARGETS[self.target]
            ratio = self.ratio()
            reached = [ratio is not None and goal is not None and ratio >= goal for goal in (must, moonshot)]
        elif self.target in BOUNDS:
            must, moonshot = BOUNDS[self.target]
            better = (lambda a, b: a >= b) if self.higher_is_better else (lambda a, b: a <= b)
            reached = [goal is not None and better(self.ours, goal) for goal in (must, moonshot)]
        else:
            return {}
        return {"must": must, "moonshot": moonshot, "must_reached": reached[0], "moonshot_reached": reached[1]}

    def as_json(self) -> dict[str, Any]:
        """The whole result with derived values."""
        return asdict(self) | {"fastest": self.fastest(), "ratio": self.ratio()} | self.verdict()


def agree(
    contenders: dict[str, Callable[[], Any]], expected: Any, equal: Callable[[Any, Any], bool] = lambda a, b: a == b
) -> list[str]:
    """The contenders with an unexpected result, before anything is measured. foldline's must be exact.

    A contender that raises is removed from the contenders, too.
    """
    wrong = []
    for name, work in list(contenders.items()):
        try:
            right = equal(work(), expected)
        except Exception:
            right = False
            del contenders[name]
        if not right:
            wrong.append(name)
    if "foldline" in wrong:
        raise SystemExit("foldline does not give the expected counts: nothing is measured")
    return wrong
