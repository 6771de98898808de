"""The results as JSON and as the published table."""

from __future__ import annotations

import collections
import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conversations import Conversation
from runs import Row

COLUMNS = [
    ("answered", "answers"),
    ("valid_for_foldline", "valid (foldline)"),
    ("valid_for_script", "valid (script)"),
    ("within", "within budget"),
    ("system", "system kept"),
    ("user", "newest user kept"),
    ("everything", "all of it"),
]

READING = """\
{conversations} conversations in the form of OpenAI Chat ({sources}), each at {budgets} budgets from almost none to
almost all of its tokens: {runs} runs. In {feasible} of them the system message and the newest user message fit, so an
answer exists. In the others no list meets the budget, and the right answer is to say so.

- **answers**: share of the runs with an answer in which a list was returned; an exception or a refusal is not one.
  The next five columns are shares of these lists.
- **valid**: by `foldline.validate`, and by the script's own validator, written after OpenAI's published rules.
- **within budget**: tokens of o200k_base by tiktoken over every text, name and argument, 4 a message, 3 a request.
- **system kept**, **newest user kept**: whole. A library that promises neither is not at fault, but an agent that runs
  on it loses the message.
- **all of it**: share of the runs with an answer in which the list has all of these. † receives no budget in tokens,
  and is not judged by one.
- **says so**: share of the runs without an answer that ended in a refusal or an exception.
- **CPU ms**: median of a call over all runs. Turning dicts into a library's own objects is not timed. A counter of
  foldline caches the counts of messages, as it does in use.
"""

LATE = """\
## Results after other messages

The API rejects such lists, so validity is not judged. But shortening must not separate a call from its result. Share of
the answers in which every pair stayed or went whole.
"""


def processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def conditions(
    command: str, versions: dict[str, str], missing: dict[str, str], options: dict[str, str], build: str
) -> dict[str, Any]:
    """Date, system, versions and options."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "command": command,
        "processor": processor(),
        "python": platform.python_version(),
        "build": build,
        "versions": versions,
        "missing": missing,
        "options": options,
    }


def percent(share: float | None) -> str:
    """A share, never rounded up to all or down to none."""
    if share is None:
        return "–"
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    return f"{min(99.9, max(0.1, share * 100)):.1f}%"


def milliseconds(value: float | None) -> str:
    """Three significant digits."""
    return "–" if value is None else f"{value:.3g}"


def as_json(
    rows: Sequence[Row], late: Sequence[Row], conversations: Sequence[Conversation], about: dict[str, Any]
) -> str:
    """The whole result."""
    found = about | {
        "conversations": [
            {"name": each.name, "source": each.source, "messages": len(each.messages)} for each in conversations
        ],
        "rows": [row.as_json() for row in rows],
        "late": [row.as_json() for row in late],
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def as_markdown(
    rows: Sequence[Row], late: Sequence[Row], conversations: Sequence[Conversation], about: dict[str, Any]
) -> str:
    """The published table."""
    return (
        "\n".join(
            [
                *_opening(rows, conversations, about),
                *_table(rows),
                *_by_kind(rows, conversations),
                *_late(late),
                *_options(about),
            ]
        )
        + "\n"
    )


def _opening(rows: Sequence[Row], conversations: Sequence[Conversation], about: dict[str, Any]) -> list[str]:
    sources = collections.Counter(each.source for each in conversations)
    every = len(rows[0].all_runs()) if rows else 0
    machine = f"{about['processor']}, Python {about['python']}"
    return [
        "# Conformance: what libraries return for the same conversations",
        "",
        f"Written by `{about['command']}` on {about['date']}: {machine}, {about['build']}.",
        "",
        ", ".join(f"{name} {version}" for name, version in about["versions"].items()) + ".",
        "",
        *[f"Not measured: {name} ({why}).\n" for name, why in about["missing"].items()],
        READING.format(
            conversations=len(conversations),
            sources=", ".join(f"{count} of {source}" for source, count in sources.items()),
            budgets=every // max(1, len(conversations)),
            runs=every,
            feasible=len(rows[0].feasible()) if rows else 0,
        ),
    ]


def _table(rows: Sequence[Row]) -> list[str]:
    head = ["library", *(title for _, title in COLUMNS), "says so", "CPU ms"]
    out = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for row in rows:
        shares = row.shares()
        cells = [row.name + ("" if row.counts_tokens else " †")]
        cells += [percent(shares[key]) if row.counts_tokens or key != "within" else "not asked" for key, _ in COLUMNS]
        out.append("| " + " | ".join([*cells, percent(shares["said_so"]), milliseconds(row.milliseconds())]) + " |")
    notes = []
    for row in rows:
        if row.raised():
            types = ", ".join(f"{name} {count} times" for name, count in row.raised().items())
            notes.append(f"- {row.name} raised where an answer exists: {types}.")
        if row.refused():
            notes.append(f"- {row.name} refused in {row.refused()} runs where an answer exists.")
        if row.changed_input:
            notes.append(f"- {row.name} wrote into the messages that it was given.")
    return [*out, "", *notes, *([""] if notes else [])]


def _by_kind(rows: Sequence[Row], conversations: Sequence[Conversation]) -> list[str]:
    """All shares by conversation: recorded ones by source, generated ones each."""
    kinds: dict[str, list[str]] = {}
    for each in conversations:
        kinds.setdefault(each.name if each.source == "generated" else each.source, []).append(each.name)
    out = ["## All of it, by conversation", "", "| conversation | " + " | ".join(row.name for row in rows) + " |"]
    out.append("|---" + "|---:" * len(rows) + "|")
    for kind, names in kinds.items():
        cells = []
        for row in rows:
            part = Row(row.name, row.counts_tokens, {name: row.runs[name] for name in names if name in row.runs})
            cells.append(percent(part.everything()))
        out.append(f"| {kind} | " + " | ".join(cells) + " |")
    return [*out, ""]


def _late(rows: Sequence[Row]) -> list[str]:
    out = [LATE]
    names = list(rows[0].runs) if rows else []
    out += ["| library | " + " | ".join(names) + " |", "|---" + "|---:" * len(names) + "|"]
    for row in rows:
        parts = [Row(row.name, row.counts_tokens, {name: row.runs[name]}) for name in names]
        out.append(f"| {row.name} | " + " | ".join(percent(part.shares()["paired"]) for part in parts) + " |")
    return [*out, ""]


def _options(about: dict[str, Any]) -> list[str]:
    out = ["## Options", "", "Those that each library's documentation recommends for its purpose.", ""]
    return out + [f"- **{name}**: {options}." for name, options in about["options"].items()]
