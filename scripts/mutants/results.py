"""The result of each mutant, stored in a file so that a run can be stopped and resumed."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants import Mutant

EQUIVALENT = Path(__file__).resolve().parent / "equivalent.toml"

KILLED, SURVIVED, UNBUILDABLE = "killed", "survived", "unbuildable"


@dataclass(frozen=True)
class Result:
    """The result of one mutant; valid while its function is unchanged."""

    key: str
    outcome: str
    by: str  # the test that failed
    seconds: float
    name: str


class Results:
    """The file of results; the last line of a mutant counts."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self.path = path
        self.of: dict[str, Result] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                result = Result(**json.loads(line))
                self.of[result.key] = result

    def add(self, mutant: Mutant, outcome: str, by: str, seconds: float) -> None:
        """Append one result at once."""
        result = Result(mutant.key, outcome, by, round(seconds, 2), mutant.name)
        self.of[mutant.key] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")

    def outcome(self, mutant: Mutant) -> str | None:
        """The known result, or None."""
        result = self.of.get(mutant.key)
        return result.outcome if result else None

    def open(self, mutants: list[Mutant]) -> list[Mutant]:
        """Mutants without a result, and survivors that can be built."""
        return [mutant for mutant in mutants if self.outcome(mutant) not in (KILLED, UNBUILDABLE)]


def equivalents(mutants: list[Mutant]) -> dict[int, str]:
    """Reasons why some mutants are equivalent to the original, by number.

    Raises SystemExit for an entry that is no longer in the list of mutants: its reason may not hold.
    """
    by_place = {(m.file, m.function, m.change, m.line, m.nth): m for m in mutants}
    found, lost = {}, []
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    for entry in entries:
        place = (entry["file"], entry["function"], entry["change"], entry["line"], entry.get("nth", 1))
        if place in by_place and entry["reason"].strip():
            found[by_place[place].number] = entry["reason"]
        else:
            lost.append(" | ".join(map(str, place)))
    if lost:
        raise SystemExit(f"{EQUIVALENT.name}: not in the list of mutants, or without a reason:\n" + "\n".join(lost))
    return found


def summary(mutants: list[Mutant], results: Results, reasons: dict[int, str]) -> str:
    """The figures, and every mutant that is neither killed nor explained."""
    counted = Counter(
        "equivalent" if m.number in reasons and results.outcome(m) == SURVIVED else results.outcome(m) or "not judged"
        for m in mutants
    )
    wrong = [m for m in mutants if m.number in reasons and results.outcome(m) == KILLED]
    alive = [m for m in mutants if m.number not in reasons and results.outcome(m) == SURVIVED]
    lines = [f"survived: {m.name}" for m in alive]
    lines += [f"said to be equivalent, but killed by {results.of[m.key].by}: {m.name}" for m in wrong]
    figures = ", ".join(f"{counted[what]} {what}" for what in sorted(counted))
    return "\n".join([*lines, f"{len(mutants)} mutants: {figures}"])
