"""Errors that a summary calls open or resolved, against the judgement of readers.

Every recorded session is read as far as a sixth, two sixths … all of it; each error of the evidence, in each of its
two states, is one line, judged where it first has that state. `errors_judged.json` has what readers said of these
lines: they saw the session up to that message, the failed call and its line, and not what foldline says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import foldline as fl

__all__ = ["Row", "lines", "measure"]

#: The home folder in a path of a recorded session.
HOME = re.compile(r"/(?:Users|home)/[\w.-]+/")
JUDGED = Path(__file__).with_name("errors_judged.json")
#: The shortest session, and the shortest part of one, in messages.
LEAST_MESSAGES, LEAST_PART = 6, 4
PARTS = 6


@dataclass(frozen=True)
class Row:
    """The lines of one state: ``open`` or ``resolved``."""

    state: str
    lines: int
    agreed: int
    not_judged: int
    #: The lines that a reader judged otherwise, with the verdict and the reason.
    others: tuple[tuple[str, str, str], ...]


def lines(shared: Path) -> Iterator[dict[str, Any]]:
    """Each error in each state, with the session and the number of messages that were read."""
    for path in sorted((shared / "data").rglob("*.json*")):
        if path.name == "MANIFEST.json":
            continue
        for transcript in fl.read(path, on_problem=lambda problem: None):
            total = len(transcript.messages)
            seen = set()
            for part in (
                sorted({total * part // PARTS for part in range(1, PARTS + 1)}) if total >= LEAST_MESSAGES else []
            ):
                if part < LEAST_PART:
                    continue
                for error in fl.evidence(transcript.messages[:part], format=transcript.format)["errors"]:
                    state = "resolved" if error["is_resolved"] else "open"
                    place = {
                        "session": transcript.id,
                        "message": error["message"],
                        "subject": HOME.sub("~/", error["subject"]),
                    }
                    line = {**place, "text": HOME.sub("~/", error["text"]), "state": state}
                    if tuple(line.values()) not in seen:
                        seen.add(tuple(line.values()))
                        yield {**line, "messages_read": part}


def measure(shared: Path) -> list[Row]:
    """A row for each state."""
    judged = {_key(each): each for each in json.loads(JUDGED.read_text("utf-8"))}
    found = list(lines(shared))
    rows = []
    for state, verdict in (("open", "open"), ("resolved", "closed")):
        ours = [line for line in found if line["state"] == state]
        answers = [judged.get(_key(line)) for line in ours]
        others = tuple(
            (f"{each['subject']} — {each['text']}", each["verdict"], each["reason"])
            for each in answers
            if each is not None and each["verdict"] != verdict
        )
        agreed = sum(each is not None and each["verdict"] == verdict for each in answers)
        rows.append(Row(state, len(ours), agreed, answers.count(None), others))
    return rows


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("session", "message", "subject", "text", "messages_read"))
