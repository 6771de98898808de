"""Runs every contender on every conversation at every budget."""

from __future__ import annotations

import collections
import copy
import hashlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contenders.base import RefusedError
from conversations import Conversation
from judging import Count, Message, Verdict, judge, least, tokens

#: Budgets per conversation, as shares of its tokens: 1/77 to 76/77.
BUDGETS = 76


@dataclass(slots=True)
class Run:
    """One conversation at one budget."""

    feasible: bool
    seconds: float
    verdict: Verdict | None = None
    refused: bool = False
    raised: str | None = None


@dataclass(slots=True)
class Row:
    """A contender over a set of conversations.

    Attributes:
        name: The contender.
        counts_tokens: Whether its budget is in tokens.
        runs: The results, by conversation.
        changed_input: Whether it modified the caller's messages.
    """

    name: str
    counts_tokens: bool
    runs: dict[str, list[Run]] = field(default_factory=dict)
    changed_input: bool = False

    def all_runs(self) -> list[Run]:
        """Those of all conversations."""
        return [run for runs in self.runs.values() for run in runs]

    def feasible(self) -> list[Run]:
        """Runs in which the system and the newest user message fit, so that an answer exists."""
        return [run for run in self.all_runs() if run.feasible]

    def infeasible(self) -> list[Run]:
        """Runs in which they do not fit."""
        return [run for run in self.all_runs() if not run.feasible]

    def answered(self) -> float | None:
        """The share of feasible runs that ended in an answer."""
        runs = self.feasible()
        return sum(run.verdict is not None for run in runs) / len(runs) if runs else None

    def share(self, holds: Callable[[Verdict], bool]) -> float | None:
        """The share of the answers of feasible runs for which the predicate holds."""
        verdicts = [run.verdict for run in self.feasible() if run.verdict is not None]
        return sum(map(holds, verdicts)) / len(verdicts) if verdicts else None

    def everything(self) -> float | None:
        """Of the feasible runs, the share with a faultless answer; a missing answer is a fault."""
        runs = self.feasible()
        good = [run for run in runs if run.verdict is not None and run.verdict.faultless(self.counts_tokens)]
        return len(good) / len(runs) if runs else None

    def said_so(self) -> float | None:
        """The share of infeasible runs that ended in a refusal or an exception."""
        runs = self.infeasible()
        return sum(run.verdict is None for run in runs) / len(runs) if runs else None

    def refused(self) -> int:
        """Refusals although an answer exists."""
        return sum(run.refused for run in self.feasible())

    def raised(self) -> dict[str, int]:
        """Exceptions although an answer exists, by type."""
        return dict(collections.Counter(run.raised for run in self.feasible() if run.raised))

    def milliseconds(self) -> float | None:
        """The median of a call, in CPU time of the process: a busy machine affects it least."""
        runs = self.all_runs()
        return statistics.median(run.seconds for run in runs) * 1000 if runs else None

    def as_json(self) -> dict[str, Any]:
        """The row and its parts by conversation."""
        parts = {}
        for name, runs in self.runs.items():
            part = Row(name, self.counts_tokens, {name: runs})
            parts[name] = part.shares() | {"feasible_runs": len(part.feasible()), "runs": len(runs)}
        return {
            "name": self.name,
            "counts_tokens": self.counts_tokens,
            "changed_input": self.changed_input,
            "runs": len(self.all_runs()),
            "feasible_runs": len(self.feasible()),
            **self.shares(),
            "refused": self.refused(),
            "raised": self.raised(),
            "milliseconds": self.milliseconds(),
            "conversations": parts,
        }

    def shares(self) -> dict[str, float | None]:
        """Every share by its name."""
        return {
            "answered": self.answered(),
            "valid_for_foldline": self.share(lambda v: v.valid_for_foldline),
            "valid_for_script": self.share(lambda v: v.valid_for_script),
            "paired": self.share(lambda v: v.paired),
            "within": self.share(lambda v: v.within),
            "system": self.share(lambda v: v.head),
            "user": self.share(lambda v: v.user),
            "everything": self.everything(),
            "said_so": self.said_so(),
        }


def build_of(package: Any) -> str:
    """Version, size and hash of the compiled module: a development build is larger than the release wheel's."""
    data = Path(package._core.__file__).read_bytes()
    digest = hashlib.sha256(data).hexdigest()[:12]
    return f"{package.__name__} {package.__version__} ({len(data) / 1e6:.0f} MB, sha256 {digest})"


def budgets_of(total: int, count: int = BUDGETS) -> list[tuple[int, float]]:
    """Budgets in tokens with their shares, ascending."""
    return [(total * i // (count + 1), i / (count + 1)) for i in range(1, count + 1)]


def run(
    contender: Any,
    conversations: Sequence[Conversation],
    count: Count,
    validate: Callable[[Any], list[Any]],
    *,
    budgets: int = BUDGETS,
    tokenizer: Count | None = None,
) -> Row:
    """Runs a contender on conversations. Only its own call is timed; it gets `tokenizer`, which caches nothing."""
    row = Row(contender.name, contender.counts_tokens)
    trimmer = contender.load(tokenizer or count)
    for conversation in conversations:
        before = conversation.messages
        least_tokens, total = least(before, count), tokens(before, count)
        runs = row.runs[conversation.name] = []
        for budget, share in budgets_of(total, budgets):
            messages = copy.deepcopy(before)
            one = Run(feasible=budget >= least_tokens, seconds=0.0)
            after = _call(trimmer, messages, budget, share, one)
            if after is not None:
                one.verdict = judge(before, after, budget, count, validate)
            row.changed_input |= messages != before
            runs.append(one)
    return row


def _call(trimmer: Any, messages: list[Message], budget: int, share: float, one: Run) -> list[Message] | None:
    """Calls and times; an exception is recorded by its type, without an answer."""
    try:
        call = trimmer.prepare(messages, budget, share)
        start = time.process_time()
        try:
            answer = call()
        finally:
            one.seconds = time.process_time() - start
        return list(trimmer.messages_of(answer, messages))
    except RefusedError:
        one.refused = True
    except Exception as error:
        one.raised = type(error).__name__
    return None
