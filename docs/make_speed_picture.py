"""Draws docs/speed.svg: ``.venv-bench/bin/python docs/make_speed_picture.py out/peers/peers.json``.

Three panels from the results of ``make bench-peers``: speed on documents, the lowest ratio of each measure to the
fastest exact peer, and hostile text, with a cross at the left for a library that panics or takes over 20 s.
Dark on a light card: legible on light and dark pages. Standard library only.
"""

from __future__ import annotations

import json
import math
import sys
from html import escape
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).resolve().parent / "speed.svg"

WIDTH = 960
LEFT = 190
RIGHT = 40
BAR = 11
ROW = 22
INK, FAINT, GRID, CARD = "#1e1e1e", "#5f5f5f", "#dcdcdc", "#fafafa"
COLOURS = {
    "foldline": "#0b57c2",
    "gigatoken": "#d97a1e",
    "fastokens": "#2b8f5c",
    "splintr": "#8a55cc",
    "rs-bpe": "#b8396a",
    "bpe-openai": "#8f7f12",
    "tiktoken": "#6e6e6e",
}
FONT = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"

Row = dict[str, Any]


class Canvas:
    """The shapes, and the position of the next panel."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = 0.0

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK, style: str = "") -> None:
        """A line of text."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" {style}>{escape(text)}</text>'
        )

    def bar(self, x: float, y: float, width: float, height: float, colour: str, *, hollow: bool = False) -> None:
        """A bar; hollow for an inexact count."""
        fill = f'fill="{CARD}" stroke="{colour}"' if hollow else f'fill="{colour}"'
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {fill}/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, *, style: str = "") -> None:
        """A line."""
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        self.parts.append(f'<line {ends} stroke="{colour}" {style}/>')

    def dot(self, x: float, y: float, colour: str, *, hollow: bool, large: bool) -> None:
        """A value on a scale; hollow for an inexact count."""
        radius = 5.5 if large else 4
        fill = f'fill="{CARD}" stroke="{colour}" stroke-width="1.5"' if hollow else f'fill="{colour}"'
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {fill}/>')

    def cross(self, x: float, y: float, colour: str) -> None:
        """A mark for a missing value."""
        for sign in (1, -1):
            self.line(x - 3.5, y - 3.5 * sign, x + 3.5, y + 3.5 * sign, colour, style='stroke-width="1.8"')

    def heading(self, text: str, below: str) -> None:
        """Begins a panel."""
        self.y += 34
        self.text(20, self.y, text, style='font-size="15" font-weight="600"')
        self.y += 17
        self.text(20, self.y, below, colour=FAINT)
        self.y += 14

    def svg(self) -> str:
        """The picture."""
        height = self.y + 14
        card = f'width="{WIDTH - 1}" height="{height - 1:.1f}" rx="8" fill="{CARD}" stroke="{GRID}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="{FONT}" '
            f'font-size="12" role="img" aria-label="Speed of foldline beside other tokenizers">\n'
            f'<rect x="0.5" y="0.5" {card}/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def number(value: float) -> str:
    """Rounded to significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def legend(canvas: Canvas, names: list[str]) -> None:
    """The colours."""
    x = float(LEFT)
    canvas.y += 6
    for name in names:
        canvas.bar(x, canvas.y - 9, 10, 10, COLOURS[name])
        canvas.text(x + 15, canvas.y, name)
        x += 32 + 7 * len(name)
    canvas.y += 8


def present(rows: list[Row]) -> list[str]:
    """The libraries with values, in the order of the colours."""
    return [name for name in COLOURS if any(name in row["values"] for row in rows)]


def documents(canvas: Canvas, rows: list[Row]) -> None:
    """Grouped bars."""
    names = present(rows)
    most = max(max(row["values"].values()) for row in rows)
    canvas.heading("Counting documents of 1 MB, MB/s", "Warm, one thread, CPU time. More is better.")
    legend(canvas, names)
    for row in rows:
        top = canvas.y + 8
        canvas.text(LEFT - 10, top + BAR * len(names) / 2 + 4, row["sample"].replace("_base", ""), anchor="end")
        for i, name in enumerate(names):
            value = row["values"].get(name, 0)
            width = value / most * (WIDTH - LEFT - RIGHT - 60)
            hollow = name in row["not_exact"]
            canvas.bar(LEFT, top + i * BAR, width, BAR - 2, COLOURS[name], hollow=hollow)
            said = f"{value:,.0f}" + (" (not exact)" if hollow else "")
            style = 'font-size="10"' + (' font-weight="600"' if name == "foldline" else "")
            canvas.text(LEFT + width + 5, top + i * BAR + 8.5, said, style=style)
        canvas.y = top + BAR * len(names)


def scale(low: float, high: float) -> Any:
    """A logarithmic scale from values to positions."""
    a, b = math.log10(low), math.log10(high)

    def place(value: float) -> float:
        at = (math.log10(min(max(value, low), high)) - a) / (b - a)
        return LEFT + 20 + at * (WIDTH - LEFT - RIGHT - 80)

    return place


def grid(canvas: Canvas, place: Any, marks: list[float], height: float) -> None:
    """Vertical lines with their values above."""
    for mark in marks:
        canvas.line(place(mark), canvas.y + 6, place(mark), canvas.y + 6 + height, GRID)
        canvas.text(place(mark), canvas.y + 2, f"{mark:g}", anchor="middle", colour=FAINT, style='font-size="10"')
    canvas.y += 8


def ratios(canvas: Canvas, rows: list[Row]) -> None:
    """The lowest ratio of each measure, and that of its best sample as a thin line."""
    by_measure: dict[str, list[Row]] = {}
    for row in rows:
        if row["ratio"]:
            by_measure.setdefault(row["measure"], []).append(row)
    if not by_measure:
        return
    canvas.heading(
        "Times better than the fastest exact peer",
        "The dot is the worst sample of the measure, the line reaches to its best. The peer is named; 1 is a tie.",
    )
    canvas.y += 6
    values = [row["ratio"] for group in by_measure.values() for row in group]
    low, high = min(*values, 0.5) / 2.5, max(values) * 1.5
    marks = [mark * 10.0**power for power in range(-2, 4) for mark in (1, 2, 5) if low <= mark * 10.0**power <= high]
    place = scale(marks[0], max(marks[-1], *values))
    tie = place(1)
    canvas.line(tie, canvas.y + 6, tie, canvas.y + 6 + ROW * len(by_measure), FAINT, style='stroke-width="2"')
    grid(canvas, place, [mark for mark in marks if mark != 1], ROW * len(by_measure))
    canvas.text(tie, canvas.y - 6, "1", anchor="middle", style='font-size="10"')
    for measure, group in by_measure.items():
        y = canvas.y + ROW / 2
        worst, best = min(group, key=lambda r: r["ratio"]), max(group, key=lambda r: r["ratio"])
        canvas.text(LEFT - 10, y + 4, measure, anchor="end")
        canvas.line(place(worst["ratio"]), y, place(best["ratio"]), y, COLOURS["foldline"], style='stroke-width="2"')
        canvas.dot(place(worst["ratio"]), y, COLOURS["foldline"], hollow=False, large=True)
        canvas.text(
            place(best["ratio"]) + 9, y + 4, f"{number(worst['ratio'])} ({worst['fastest']})", style='font-size="10"'
        )
        canvas.y += ROW


def hostile(canvas: Canvas, rows: list[Row]) -> None:
    """One dot per library for each family."""
    names = present(rows)
    canvas.heading(
        "Hostile text: a megabyte of one kind, o200k_base, MB/s",
        "Logarithmic. Hollow: not the count that most agree on. A cross: panics, or does not end within 20 s.",
    )
    legend(canvas, names)
    canvas.y += 8
    values = [value for row in rows for value in row["values"].values() if value]
    marks = [
        10.0**power for power in range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    ]
    place = scale(marks[0], marks[-1])
    grid(canvas, place, marks, ROW * len(rows))
    for row in rows:
        y = canvas.y + ROW / 2
        canvas.text(LEFT - 10, y + 4, row["sample"].partition(" ")[2], anchor="end")
        crossed = 0
        for name in reversed(names):
            value = row["values"].get(name)
            if value:
                canvas.dot(place(value), y, COLOURS[name], hollow=name in row["not_exact"], large=name == "foldline")
            elif value is not None:
                canvas.cross(LEFT - 2 + 10 * crossed, y, COLOURS[name])
                crossed += 1
        canvas.y += ROW


def draw(found: dict[str, Any]) -> str:
    """The picture of a file of results."""
    rows: list[Row] = found["rows"]
    canvas = Canvas()
    documents_rows = [row for row in rows if row["measure"] == "1 MB documents"]
    if documents_rows:
        documents(canvas, documents_rows)
    ratios(canvas, rows)
    if hostile_rows := [row for row in rows if row["measure"] == "hostile 1 MB"]:
        hostile(canvas, hostile_rows)
    canvas.y += 26
    where = f"{found['command']}, {found['date']}, {found['processor']}, Python {found['python']}"
    canvas.text(20, canvas.y, where, colour=FAINT, style='font-size="10"')
    canvas.y += 14
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    canvas.text(20, canvas.y, versions, colour=FAINT, style='font-size="10"')
    return canvas.svg()


def main() -> None:
    """Reads the given file and writes the picture."""
    found = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    PICTURE.write_text(draw(found), encoding="utf-8")
    print(f"docs/{PICTURE.name}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
