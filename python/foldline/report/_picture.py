"""The picture of a fold: two strips on one scale, what becomes of each piece, pins, budget and free room.

The page's script moves what depends on the cut; the strips themselves are drawn once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foldline._html import joined_pieces, number
from foldline.report._view import View

__all__ = ["HEIGHT", "STRIP", "TOP", "WIDTH", "Picture", "picture_of"]

WIDTH, HEIGHT = 1120, 240
#: Where the strips begin, and how high they are.
TOP, BOTTOM, STRIP = 9, 156, 42
#: Width below which neighbours are joined, and least width of a piece with a name.
_THIN, _NAMED = 0.7, 62
_MOST_LABELS, _MOST_PINS = 24, 80
#: Units of a letter in a strip.
_LETTER = 5.7


@dataclass(frozen=True, slots=True)
class Picture:
    """Paths and positions of the picture at the chosen cut.

    Attributes:
        before: Paths of the strip before, by role.
        fixed: Path of messages that stay at every cut, in the strip before.
        after: Paths of the strip after, by class.
        hatch: Path of the stripes of what is folded.
        labels: Position and text of the names in the strip.
        pins: Middle of each pinned message before and after.
        cut_x: Where the cut lies; None without a cut.
        summary_width: Width of the summary.
        kept: Start and end of the kept part before and after.
        end_x: End of the strip after.
        budget_x: Where the budget lies.
        title: The picture in words.
    """

    before: dict[str, str]
    fixed: str
    after: dict[str, str]
    hatch: str
    labels: list[tuple[float, str]]
    pins: list[tuple[float, float]]
    cut_x: float | None
    summary_width: float
    kept: tuple[float, float, float, float] | None
    end_x: float
    budget_x: float | None
    title: str


def _path(runs: Iterable[tuple[float, float]], top: float) -> str:
    return "".join(f"M{x:.2f} {top}h{w:.2f}v{STRIP}h{-w:.2f}z" for x, w in runs)


def _role(role: str) -> str:
    return {"assistant": "a", "tool": "t"}.get(role, "u")


def picture_of(view: View) -> Picture:
    """Draws the picture."""
    scale = WIDTH / max(view.before, view.after, 1)
    starts, x = [], 0.0
    for tokens in view.tokens:
        starts.append(x)
        x += tokens * scale
    widths = [tokens * scale for tokens in view.tokens]
    roles = [_role(role) for role in view.roles]
    before = joined_pieces(zip(roles, starts, widths), least=_THIN, gap=0.6)
    fixed = set(view.fixed)
    stays = joined_pieces((("k", starts[i], widths[i]) for i in sorted(fixed) if view.fates[i] == "k"), least=_THIN)
    summary = view.summary_tokens * scale
    at, after_starts, pieces = 0.0, {}, []
    is_placed = summary == 0
    for i in range(view.count):
        if view.fates[i] in "fd":
            continue
        if not is_placed and i >= _first_after_summary(view):
            pieces.append(("s", at, summary))
            at, is_placed = at + summary, True
        width = view.tokens_after[i] * scale
        after_starts[i] = at
        pieces.append((_class(view.fates[i], roles[i]), at, width))
        at += width
    if not is_placed:
        pieces.append(("s", at, summary))
        at += summary
    after = joined_pieces(pieces, least=_THIN, gap=0.6)
    kept = [i for i in sorted(view.now) if view.fates[i] != "p" and i >= view.cut and i not in fixed]
    ribbon = None
    if kept and view.folds:
        first, last = kept[0], kept[-1]
        end = after_starts[last] + view.tokens_after[last] * scale
        ribbon = (starts[first], starts[last] + widths[last], after_starts[first], end)
    pins = [
        (starts[i] + widths[i] / 2, after_starts[i] + view.tokens_after[i] * scale / 2)
        for i in sorted(view.now)
        if view.fates[i] == "p"
    ]
    cut_x = None
    if view.cut:
        cut_x = starts[view.cut] if view.cut < view.count else x
    return Picture(
        before={role: _path(runs, TOP) for role, runs in before.items()},
        fixed="".join(_path(runs, TOP) for runs in stays.values()),
        after={name: _path(runs, BOTTOM) for name, runs in after.items()},
        hatch=_hatch(x),
        labels=_labels(view, starts, widths),
        pins=pins[:_MOST_PINS],
        cut_x=cut_x,
        summary_width=summary,
        kept=ribbon,
        end_x=at,
        budget_x=None if view.budget is None else min(view.budget * scale, float(WIDTH)),
        title=_title(view),
    )


def _first_after_summary(view: View) -> int:
    """The first message that stands after the summary, by the new list."""
    if view.result is None:
        return 0 if view.plan is None else view.plan.head
    new = next((place for place, source in enumerate(view.result.sources) if source is None), 0)
    return next((old for old, place in sorted(view.now.items()) if place > new), view.count)


def _class(fate: str, role: str) -> str:
    return "p" if fate == "p" else f"e r-{role}" if fate in "cs" else f"k r-{role}"


def _hatch(end: float) -> str:
    """Stripes from the lower left to the upper right."""
    lines = []
    for start in range(-STRIP, round(end), 9):
        left, right = max(start, 0), min(start + STRIP, end)
        if right > left:
            lines.append(f"M{left} {TOP + STRIP - (left - start)}L{right:.1f} {TOP + STRIP - (right - start):.1f}")
    return "".join(lines)


def _labels(view: View, starts: Sequence[float], widths: Sequence[float]) -> list[tuple[float, str]]:
    found = []
    for i, text in view.labels.items():
        room = int((widths[i] - 14) / _LETTER)
        if widths[i] >= _NAMED and room > 4:
            found.append((starts[i] + 5, text if len(text) <= room else text[: room - 1].rstrip() + "…"))
    return sorted(found)[:_MOST_LABELS]


def _title(view: View) -> str:
    stays = len(view.now) + (view.summary_tokens > 0)
    parts = [f"{number(view.counted('f'))} folded into a summary of {number(view.summary_tokens)} tokens"]
    parts += [f"{number(view.counted('d'))} dropped"] if view.counted("d") else []
    parts += [f"{number(view.counted('cs'))} cleared or shortened"] if view.counted("cs") else []
    parts += [f"{number(view.counted('p'))} pinned", f"{number(view.counted('k'))} kept"]
    if not view.counted("f"):
        parts = parts[1:]
    return (
        f"{number(view.count)} messages of {number(view.before)} tokens become {number(stays)} of "
        f"{number(view.after)}: {', '.join(parts)}."
    )
