"""Folds the bundled sessions and shows what became of them: ``make demo``.

Needs the extra ``cli`` for its tables, no network and no model. Results are written to ``out/demo`` in the project.
"""

from __future__ import annotations

import itertools
import json
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
    """Sessions of a file, and how they are folded."""

    file: str
    sessions: slice
    keep: fl.Keep
    summary_tokens: int
    pins_task: bool
    why: str


SAMPLES = [
    Sample("claude-code-session.jsonl", slice(1), fl.KeepTokens(20_000), 1_500, True, "at least 20,000 tokens stay"),
    Sample("pi-session.jsonl", slice(1), fl.FitTokens(30_000), 1_500, True, "all fits into 30,000 tokens"),
    Sample("openai-tools.jsonl", slice(3, 4), fl.KeepTurns(2), 600, True, "the newest 2 turns stay"),
    Sample("openai-tools.jsonl", slice(5, 6), fl.FitTokens(2_200), 600, False, "all fits into 2,200 tokens"),
    Sample("chinese-dialogues.jsonl", slice(2), fl.KeepMessages(6), 250, False, "the newest 6 messages stay"),
]


@dataclass(frozen=True)
class Folded:
    """A session and what became of it."""

    sample: Sample
    session: fl.StoredTranscript
    pins: list[int]
    result: fl.FoldResult

    def write(self) -> None:
        """Writes the folded messages; `foldline.read` reads them again."""
        record = {"id": self.session.id, "format": self.session.format, "messages": self.result.messages}
        with (OUT / self.sample.file).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def groups(self) -> tuple[int, int]:
        """How many groups (a message, or a call with its results) stay, and how many there were."""
        groups = fl.analyze(self.session.messages, format=self.session.format)["groups"]
        folded = set(self.result.plan.folded) if isinstance(self.result.plan, fl.Plan) else set()
        return sum(not folded & set(group) for group in groups), len(groups)

    def actions(self) -> Counter[str]:
        """How often which action was taken."""
        return Counter(self.result.plan.actions if isinstance(self.result.plan, fl.Plan) else [])


def fold(counter: fl.TokenCounter) -> Iterator[Folded]:
    """Folds the samples, one session after the other."""
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
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("session", overflow="fold", max_width=34)
    table.add_column("format")
    table.add_column("wanted", overflow="fold", max_width=18)
    for heading in ("messages", "tokens", "groups kept", "pinned", "folded", "cleared", "shortened"):
        table.add_column(heading, justify="right", no_wrap=heading in ("messages", "tokens"))
    for it in sessions:
        actions = it.actions()
        kept, groups = it.groups()
        name = Text(f"{it.sample.file}\n")
        name.append(it.session.id, style="dim")
        table.add_row(
            name,
            it.session.format,
            it.sample.why,
            f"{len(it.session.messages)} → {len(it.result.messages)}",
            f"{it.result.tokens_before:,} → {it.result.tokens_after:,}",
            f"{kept} of {groups}",
            str(actions["pin"]),
            str(actions["summarize"]),
            str(actions["clear"]),
            str(actions["shorten"]),
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

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    console.print(overview(sessions))
    first = sessions[0]
    lines = first.result.summary.splitlines()
    console.print(
        Text(f"\nThe summary of {first.session.id}, {min(SUMMARY_LINES, len(lines))} of {len(lines)} lines:\n")
    )
    for line in lines[:SUMMARY_LINES]:
        console.print(Text(f"  {line}"), soft_wrap=True)
    before = sum(it.result.tokens_before for it in sessions)
    after = sum(it.result.tokens_after for it in sessions)
    console.print(
        Text(f"\n{len(sessions)} sessions, {before:,} → {after:,} tokens, read, folded and written in {took_s:.2f} s.")
    )
    console.print(Text(f"The folded sessions are in {OUT.relative_to(PROJECT)}/ (in the folder of the project)."))


if __name__ == "__main__":
    main()
