"""Folds the bundled sessions and shows the results: ``make demo``.

Needs the extra ``cli`` for its tables, but no network and no model. Results are written to ``out/demo`` in the project.
"""

from __future__ import annotations

import io
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import foldline as fl

PROJECT = Path(__file__).resolve().parent.parent
DATA = PROJECT / "examples" / "data"
OUT = PROJECT / "out" / "demo"

SUMMARY_LINES = 25


@dataclass(frozen=True)
class Sample:
    """The sessions of a file, and the options to fold them."""

    file: str
    sessions: slice
    keep: fl.KeepTokens | fl.KeepTurns | fl.KeepMessages | fl.FitTokens
    summary_tokens: int
    pins_task: bool


SAMPLES = [
    Sample("claude-code-session.jsonl", slice(1), fl.KeepTokens(20_000), 1_500, True),
    Sample("pi-session.jsonl", slice(1), fl.FitTokens(30_000), 1_500, True),
    Sample("openai-tools.jsonl", slice(3, 4), fl.FitTokens(2_100), 600, True),
    Sample("openai-tools.jsonl", slice(5, 6), fl.KeepTurns(2), 600, False),
    Sample("chinese-dialogues.jsonl", slice(2), fl.KeepMessages(6), 250, False),
]


@dataclass(frozen=True)
class Folded:
    """A session and its fold."""

    sample: Sample
    session: fl.StoredTranscript
    pins: list[int]
    result: fl.FoldResult

    def write(self) -> None:
        """Writes the folded messages; `foldline.read` can read them."""
        record = {"id": self.session.id, "format": self.session.format, "messages": self.result.messages}
        with (OUT / self.sample.file).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def groups(self) -> tuple[int, int]:
        """How many groups (a message, or a call with its results) stay, and how many there were."""
        groups = fl.analyze(self.session.messages, format=self.session.format).groups
        folded = set(self.result.plan.folded) if isinstance(self.result.plan, fl.Plan) else set()
        return sum(not folded & set(group) for group in groups), len(groups)

    def actions(self) -> Counter[str]:
        """The number of messages for each action."""
        return Counter(self.result.plan.actions if isinstance(self.result.plan, fl.Plan) else [])


def fold(counter: fl.TokenCounter) -> Iterator[Folded]:
    """Folds the samples in order."""
    for sample in SAMPLES:
        for session in itertools.islice(fl.read(DATA / sample.file), sample.sessions.start, sample.sessions.stop):
            task = next(i for i, message in enumerate(session.messages) if message["role"] == "user")
            pins = [task] if sample.pins_task else []
            result = fl.compact(
                session.messages,
                sample.keep,
                summarizer=fl.summarizers.Extractive(),
                counter=counter,
                pins=pins,
                summary_tokens=sample.summary_tokens,
                format=session.format,
                on_failure="raise",
            )
            yield Folded(sample, session, pins, result)


def overview(sessions: list[Folded]) -> Table:
    """A row for each session."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("session\n  id", no_wrap=True)
    table.add_column("format\n  kept", no_wrap=True)
    table.add_column("messages\n→ after", justify="right", no_wrap=True)
    table.add_column("tokens\n→ after", justify="right", no_wrap=True)
    table.add_column("groups\nkept of", justify="right", no_wrap=True)
    for heading in ("pinned", "folded", "cleared,\nshortened"):
        table.add_column(heading, justify="right")
    for it in sessions:
        actions = it.actions()
        kept, groups = it.groups()
        number = it.sample.keep.n
        table.add_row(
            f"{it.sample.file}\n  {it.session.id:.24}",
            f"{it.session.format}\n  {type(it.sample.keep).__name__}({number})",
            f"{len(it.session.messages)}\n→ {len(it.result.messages)}",
            f"{it.result.tokens_before:,}\n→ {it.result.tokens_after:,}",
            f"{kept}\nof {groups}",
            str(actions["pin"]),
            str(actions["summarize"]),
            f"{actions['clear']}\n{actions['shorten']}",
        )
    return table


def main() -> None:
    """Folds the samples, writes them and shows a table and a summary."""
    begun = time.perf_counter()
    counter = fl.TokenCounter("o200k_base")
    OUT.mkdir(parents=True, exist_ok=True)
    for sample in SAMPLES:
        (OUT / sample.file).unlink(missing_ok=True)
    sessions = []
    for folded in fold(counter):
        folded.write()
        sessions.append(folded)
    took_s = time.perf_counter() - begun

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # The sessions contain many scripts.
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 100
    console.print(overview(sessions))
    first = sessions[0]
    lines = first.result.summary.splitlines()
    shown = lines[:SUMMARY_LINES]
    console.print(Text(f"\nThe summary of {first.sample.file}, the first {len(shown)} of {len(lines)} lines:\n"))
    for line in shown:
        console.print(Text(f"  {line}"), soft_wrap=True)
    before = sum(it.result.tokens_before for it in sessions)
    after = sum(it.result.tokens_after for it in sessions)
    console.print(
        Text(f"\n{len(sessions)} sessions, {before:,} → {after:,} tokens, read, folded and written in {took_s:.2f} s.")
    )
    console.print(Text(f"The folded sessions are in {OUT.relative_to(PROJECT)}/ (in the folder of the project)."))


if __name__ == "__main__":
    main()
