"""The results as JSON and as tables for the documents."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from results import TARGETS, Row


def number(value: float) -> str:
    """Three significant digits."""
    if value == 0:
        return "gives up"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def conditions(versions: dict[str, str], missing: dict[str, str], wheel: str, command: str) -> dict[str, Any]:
    """Date, system and versions."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "command": command,
        "processor": _processor(),
        "python": platform.python_version(),
        "wheel": wheel,
        "versions": versions,
        "missing": missing,
    }


def as_json(rows: list[Row], about: dict[str, Any]) -> str:
    """The whole result."""
    return json.dumps(about | {"rows": [row.as_json() for row in rows]}, indent=1, ensure_ascii=False) + "\n"


def as_markdown(rows: list[Row], about: dict[str, Any]) -> str:
    """One table per measure."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    out = [
        f"`{about['command']}`, {about['date']}, {about['processor']}, Python {about['python']}, {about['wheel']}.",
        f"{versions}.",
    ]
    out += [f"Missing: {name} ({why})." for name, why in about["missing"].items()]
    out += [
        "CPU time, one thread, best of interleaved rounds; a ratio is to the fastest exact peer. ✓ reached, ✗ not.",
        "",
    ]
    out += _summary(rows)
    for measure, unit in dict.fromkeys((row.measure, row.unit) for row in rows):
        out += _table(measure, unit, [row for row in rows if (row.measure, row.unit) == (measure, unit)])
    return "\n".join(out) + "\n"


def _summary(rows: list[Row]) -> list[str]:
    """One line per target: the worst sample and the best, ready for TRUST.md."""
    out = ["| measure | worst | best | must | moonshot |", "|---|---|---|---:|---:|"]
    for target in dict.fromkeys(row.target for row in rows if row.verdict()):
        judged = [row for row in rows if row.target == target]
        if target in TARGETS:
            ranked = sorted((row for row in judged if row.ratio() is not None), key=lambda row: row.ratio() or 0.0)
        else:
            ranked = sorted(judged, key=lambda row: row.ours, reverse=not judged[0].higher_is_better)
        if not ranked:
            continue
        # A target missed by the worst sample is missed by the measure.
        verdict = ranked[0].verdict()
        ends = [_end(row, by_ratio=target in TARGETS) for row in (ranked[0], ranked[-1])]
        out.append(f"| {target} | {ends[0]} | {ends[1]} | {_goal(verdict, 'must')} | {_goal(verdict, 'moonshot')} |")
    return [*out, ""] if len(out) > 2 else []


def _end(row: Row, *, by_ratio: bool) -> str:
    """One end of a measure: its value, sample and fastest peer."""
    if not by_ratio:
        return f"{number(row.ours)} ({row.sample})"
    best = row.fastest() or ""
    values = f"{number(row.ours)} to {number(row.values[best])} {row.unit}"
    return f"**{row.ratio():.2f}** ({row.sample}: {values}, {best})"


def _table(measure: str, unit: str, rows: list[Row]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    judged = any(row.verdict() for row in rows)
    compared = any(row.ratio() for row in rows)
    head = [f"{measure}, {unit}", *names, *(["ratio"] if compared else []), *(["must", "moonshot"] if judged else [])]
    out = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for row in rows:
        cells = [row.sample, *(_cell(row, name) for name in names)]
        if compared:
            ratio = row.ratio()
            cells.append(f"**{ratio:.2f}** ({row.fastest()})" if ratio else "")
        if judged:
            verdict = row.verdict()
            cells += [_goal(verdict, "must"), _goal(verdict, "moonshot")]
        out.append("| " + " | ".join(cells) + " |")
    return [*out, ""]


def _cell(row: Row, name: str) -> str:
    if name not in row.values:
        return "fails" if name in row.not_exact else ""
    text = number(row.values[name])
    return f"{text} (not exact)" if name in row.not_exact and row.values[name] else text


def _goal(verdict: dict[str, Any], name: str) -> str:
    if not verdict or verdict[name] is None:
        return ""
    return f"{verdict[name]:g} {'✓' if verdict[f'{name}_reached'] else '✗'}"
