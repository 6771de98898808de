"""The sections of a report's page, as the template writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from foldline._html import number, shown
from foldline.report._figures import Cost
from foldline.report._texts import KIND_NAMES, Texts, cut
from foldline.report._view import ShownFact, View

__all__ = ["STATES", "Chart", "FactRow", "Piece", "chart_of", "fact_rows", "stops_of", "summary_pieces"]

#: The states of facts: sign, meaning, and class of the colour.
STATES = {
    "k": ("✓", "in the summary as written", "ok"),
    "a": ("+", "missing; foldline added it", "warn"),
    "d": ("×", "not in the summary", "bad"),
}

#: Squares of a row; facts without room are the first to be counted instead of shown.
_MOST_SQUARES = 40
_LABEL_CHARS = 160

_STOPS = {
    "turn_start": "start of a turn",
    "shallower": "shallower",
    "deeper": "deeper",
    "everything": "all that may fold",
    "chosen": "chosen",
}

#: A citation of a message in a summary.
_CITED = re.compile(r"\[(\d{1,9})\]")


@dataclass(frozen=True, slots=True)
class Square:
    """A fact as a square: its index, its state, and what it says."""

    index: int
    state: str
    label: str


@dataclass(frozen=True, slots=True)
class FactRow:
    """The facts of a kind; ``more`` are counted, not shown."""

    name: str
    squares: list[Square]
    more: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the summary: plain, the place of a fact, or a citation of a message."""

    text: str
    fact: int | None = None
    state: str = ""
    message: int | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """A cut that the plan names."""

    cut: int
    name: str
    why: str
    figures: str
    chosen: bool


#: Least distance of the lines of the chart at its right edge, for a label between them.
_LABEL_ROOM = 34


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart of costs: lines, levels and labels."""

    title: str
    without: str
    with_it: str
    levels: list[tuple[float, str]]
    requests: list[tuple[float, str]]
    meets: tuple[float, float] | None
    without_at: tuple[float, float]
    with_at: float
    saved: str
    saved_label: tuple[str, float] | None


def fact_rows(facts: list[ShownFact]) -> list[FactRow]:
    """Facts by kind: kept ones first, then added ones, then those without room."""
    rows = []
    for kind, name in KIND_NAMES.items():
        found = [(fact, i) for i, fact in enumerate(facts) if fact.kind == kind]
        found.sort(key=lambda pair: ("kad".index(pair[0].state), -pair[0].weight if pair[0].state == "d" else 0))
        if not found:
            continue
        squares = [Square(i, fact.state, _label(name, fact)) for fact, i in found[:_MOST_SQUARES]]
        rows.append(FactRow(name, squares, len(found) - len(squares)))
    return rows


def _label(name: str, fact: ShownFact) -> str:
    origin = "from an earlier summary" if fact.message is None else f"message {fact.message}"
    return f"{name}, {STATES[fact.state][1]}, {origin}: {cut(fact.text, _LABEL_CHARS)}"


def summary_pieces(view: View, texts: Texts) -> list[Piece]:
    """The summary in pieces: every fact is marked at its place, every citation of a message is a link."""
    if not view.summary or view.result is None:
        return []
    numbers = view.snapshot.numbers()
    index_of = {each: index for index, each in enumerate(numbers) if each is not None}
    if texts.redact is not None:
        return list(_cited(view.summary, index_of))
    text, at = view.result.summary, 0
    pieces: list[Piece] = []
    placed = [(fact.place, i) for i, fact in enumerate(view.facts) if fact.place is not None]
    for (start, end), i in sorted(placed, key=lambda each: (each[0][0], -each[0][1])):
        if start < at:  # inside the place of another fact
            continue
        pieces += _cited(text[at:start], index_of)
        fact, marked = view.facts[i], shown(text[start:end])
        label = f"{cut(marked, _LABEL_CHARS)}, from " + (
            "an earlier summary" if fact.message is None else f"message {fact.message}"
        )
        pieces.append(Piece(marked, i, fact.state, fact.message, label))
        at = end
    pieces += _cited(text[at:], index_of)
    return pieces


def _cited(text: str, index_of: dict[int, int]) -> Iterator[Piece]:
    """A text with its citations of known messages."""
    at = 0
    for match in _CITED.finditer(text):
        message = index_of.get(int(match[1]))
        if message is None:
            continue
        if match.start() > at:
            yield Piece(shown(text[at : match.start()]))
        yield Piece(match[0], message=message)
        at = match.end()
    if at < len(text):
        yield Piece(shown(text[at:]))


def stops_of(view: View) -> list[Stop]:
    """The cuts that the plan names, with the chosen one."""
    plan = view.plan
    if plan is None or not plan.cut:
        return []
    found = {each.cut: (each.tokens_after, each.folded, each.why) for each in plan.alternatives}
    found[plan.cut] = (view.after, view.counted("fd"), "chosen")
    return [
        Stop(
            at,
            "All" if at == view.count else f"Before {at}",
            _STOPS.get(why, why),
            f"{number(after)} tokens, " + _beyond(after, folded, view.budget),
            why == "chosen",
        )
        for at, (after, folded, why) in sorted(found.items())
    ]


def _beyond(after: int, folded: int, budget: int | None) -> str:
    if budget is not None and after > budget:
        return f"{number(after - budget)} over"
    return f"folds {number(folded)}"


def dollars(value: float) -> str:
    """An amount of dollars with as many digits as it needs."""
    sign, amount = "-" if value < 0 else "", abs(value)
    if amount == 0 or amount >= 1:
        return f"{sign}${amount:,.2f}"
    return f"{sign}${amount:.3f}" if amount >= 0.001 else f"{sign}${amount:.6f}"


def cost_rows(cost: Cost) -> list[dict[str, Any]]:
    """The table of costs."""
    pays = "never" if cost.pays_from is None else number(cost.pays_from)
    rows = [
        ("Summary call", dollars(cost.summary)),
        (f"Billed again: {number(cost.rebilled_tokens)} tokens", dollars(cost.rebilled)),
        ("Saved at each request", dollars(cost.saving)),
    ]
    return [{"name": name, "value": value, "strong": False} for name, value in rows] + [
        {"name": "Pays from request", "value": pays, "strong": True}
    ]


def chart_of(cost: Cost) -> Chart:
    """The chart of the cumulative costs."""
    left, right, top, bottom = 42.0, 320.0, 10.0, 126.0
    last = len(cost.without) - 1
    highest = max(*cost.without, *cost.with_it, 1e-9)

    def point(request: float, value: float) -> tuple[float, float]:
        across = left + (right - left) * request / last
        return round(across, 1), round(bottom - (bottom - top) * value / highest, 1)

    def line(values: list[float]) -> str:
        return f"M{_pair(point(0, values[0]))}L{_pair(point(last, values[last]))}"

    step = _step(highest)
    levels = [(point(0, each)[1], dollars_short(each)) for each in _levels(step, highest)]
    every = max(1, last // 4)
    requests = [(point(each, 0)[0], number(each)) for each in range(0, last + 1, every)]
    meets = None
    if cost.pays_from is not None and cost.pays_from <= last:
        meets = point(cost.pays_from, cost.with_it[cost.pays_from])
    pays = "it never pays" if cost.pays_from is None else f"it pays from request {cost.pays_from} on"
    once = cost.rebilled + cost.summary
    without_y, with_y = point(last, cost.without[-1])[1], point(last, cost.with_it[-1])[1]
    saved, saved_label = "", None
    if cost.saving > 0 and once / cost.saving < last:
        crossing = point(once / cost.saving, cost.without[-1] * once / cost.saving / last)
        saved = f"M{_pair(crossing)}L{right} {without_y}V{with_y}Z"
        if with_y - without_y >= _LABEL_ROOM:
            saved_label = (f"{dollars(cost.saved)} saved", (without_y + with_y) / 2 + 8)
    above, below = (without_y - 4, with_y + 14) if without_y <= with_y else (without_y + 14, with_y - 4)
    return Chart(
        title=f"The fold costs {dollars(once)} and saves {dollars(cost.saving)} a request; {pays}.",
        without=line(cost.without),
        with_it=line(cost.with_it),
        levels=levels,
        requests=requests,
        meets=meets,
        without_at=(right - 60, min(max(above + 14, top + 6), bottom - 4)),
        with_at=min(max(below, top + 6), bottom - 4),
        saved=saved,
        saved_label=saved_label,
    )


def _pair(point: tuple[float, float]) -> str:
    return f"{point[0]} {point[1]}"


def _step(highest: float) -> float:
    """A round distance of about half of the highest value."""
    power = 1.0
    while power > highest:
        power /= 10
    while power * 10 <= highest:
        power *= 10
    return next(power * each for each in (5, 2, 1, 0.5) if power * each <= highest / 1.9 or each == 0.5)


def _levels(step: float, highest: float) -> Iterable[float]:
    return [step * k for k in range(4) if step * k <= highest]


def dollars_short(value: float) -> str:
    """An amount of dollars as a label: whole, or with cents or more."""
    short = f"{value:g}" if value < 1_000 else f"{value:,.0f}"
    return f"${value:.2f}" if "." in short and value >= 0.01 and round(value, 2) == value else f"${short}"
