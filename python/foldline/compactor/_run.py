"""A running compaction: the request, the run, the outcome that it takes over from the background, what is committed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from foldline._core import LiveSnapshot
from foldline.compactor._background import Job
from foldline.compactor._guard import CommitToken
from foldline.compactor._request import Live, Surroundings
from foldline.compactor._session import Session
from foldline.context.metadata import Metadata
from foldline.context.state import ContextState
from foldline.errors import FoldlineError
from foldline.strategies import Deadline, StrategyRequest, StrategyResult
from foldline.typing import CompactionEvent, Messages, TriggerKind

__all__ = ["Asked", "Decided", "Pending", "Run", "Save"]

#: Saves a compaction: its event, its outcome, and the ids of the messages.
Save: TypeAlias = Callable[[CompactionEvent, StrategyResult, Sequence["int | str"]], None]


@dataclass(frozen=True, slots=True)
class Decided:
    """The state of a request, and the reason of the trigger that fires for it."""

    state: ContextState
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request to compact.

    Attributes:
        given: The messages, or the transcript that contains them.
        state: The state as the caller gave it.
        session: The memory of the session.
        session_name: Its name, if it has one.
        pins_of: Finds the pinned messages of the list, once it is counted.
        save: Saves the compaction; by default the store does.
        decided: The state and the trigger's reason, if known.
        is_pinning: Whether there are pins to remember, or to name in the result, also if nothing is compacted.
        calls_functions: Whether `pins_of` or `save` may call functions of the caller, or wait.
        remembers: Whether the pins are remembered for the next call.
    """

    given: Messages | Live
    state: ContextState | None
    session: Session
    session_name: str | None = None
    pins_of: Callable[[LiveSnapshot, Messages], tuple[int, ...]]
    around: Surroundings
    force: bool = False
    instructions: str | None = None
    metadata: Metadata
    ids: Sequence[int | str] | None = None
    deadline: Deadline
    commit_token: CommitToken
    started_s: float
    save: Save | None = None
    decided: Decided | None = None
    is_pinning: bool = False
    calls_functions: bool = True
    remembers: bool = True


@dataclass(frozen=True, slots=True)
class Run:
    """A running compaction."""

    asked: Asked
    messages: Messages
    request: StrategyRequest
    kind: TriggerKind
    reason: str
    tokens_before: int
    ids: Sequence[int | str]
    #: Whether the trigger does not fire yet: the run takes over a fold of the background, or does nothing.
    is_early: bool = False

    @property
    def prepared(self) -> LiveSnapshot:
        return self.request.prepare(self.messages)

    def rest(self, known: StrategyResult | None) -> tuple[Messages, StrategyRequest]:
        """The messages that the strategy runs on, and its request: the list, or that of a fold of the background."""
        if known is None:
            return self.messages, self.request
        return known.messages, self.request.moved(known.sources)

    def taking_over(self, job: Job[Run]) -> StrategyResult | None:
        """The outcome of a fold of the background for the list as it is; None if its prefix or pins have changed."""
        outcome, begun = job.outcome, job.run
        count = len(begun.messages)
        if outcome is None or not outcome.changed or outcome.tokens is None or len(self.messages) < count:
            return None
        if self.prepared.format != begun.request.format or self.prepared.hashes()[:count] != begun.prepared.hashes():
            return None
        edited = set(outcome.edited)
        kept = {source for source in outcome.sources if source is not None} - edited
        if not all(pin >= count or pin in kept for pin in self.request.pins):
            return None
        messages = [
            new if source is None or source in edited else self.messages[source]
            for new, source in zip(outcome.messages, outcome.sources)
        ]
        return dataclasses.replace(
            outcome,
            messages=[*messages, *self.messages[count:]],
            sources=(*outcome.sources, *range(count, len(self.messages))),
            plan=None,  # it was for the prefix
            tokens=outcome.tokens + self.prepared.total_tokens - begun.prepared.total_tokens,
        )


@dataclass(frozen=True, slots=True)
class Pending:
    """A checked compaction that is not committed yet."""

    run: Run
    outcome: StrategyResult
    event: CompactionEvent
    error: FoldlineError | None
