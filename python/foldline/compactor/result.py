"""The result of a compactor."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foldline._core import LiveSnapshot
from foldline.context.metadata import ROUND, Metadata
from foldline.context.state import ContextState
from foldline.context.usage import ContextUsage, TokenBudget
from foldline.folding.result import FoldInput, FoldResult
from foldline.planning import Keep
from foldline.strategies.base import StrategyRequest, StrategyResult
from foldline.typing import CompactionEvent, Fallback, TriggerKind

__all__ = ["CompactionResult", "event_of", "given_of", "metadata_after", "state_after"]


class Storable(Protocol):
    """What can be kept as JSON text."""

    def to_json(self) -> str:
        """The JSON text."""
        ...


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class CompactionResult(FoldResult):
    """The result of `Compactor.compact` and `Compactor.prepare`: a `FoldResult` and more.

    Attributes:
        state: The state of the next request, with the new messages.
        event: The emitted event; None if nothing was compacted.
        metadata: Metadata of the new messages.
        steps: The strategies that changed something.
        fallback: The fallback taken: ``"truncate"`` or ``"clear"``.
        threshold_tokens: With the reason ``no_progress``: the most tokens at which the trigger does not fire, if known.
        tries: With the reason ``no_progress``: number of consecutive unsuccessful tries.
        stored_fold: By `Compactor.prepare`: the fold that the request begins with; None without one.
    """

    state: ContextState
    event: CompactionEvent | None = None
    metadata: Metadata = field(default_factory=Metadata)
    steps: tuple[str, ...] = ()
    fallback: Fallback | None = None
    threshold_tokens: int | None = None
    tries: int = 0
    stored_fold: Storable | None = field(default=None, compare=False)

    @property
    def fold(self) -> str | None:
        """The fold that the request begins with, as JSON text for `Compactor.restore`; None without one.

        Raises:
            StoreError: A message that it holds cannot be written as JSON.
        """
        return None if self.stored_fold is None else self.stored_fold.to_json()

    @property
    def trigger(self) -> TriggerKind:
        """``"manual"`` if the caller requested it, else ``"auto"``."""
        return "manual" if self.event is not None and self.event.trigger == "manual" else "auto"


def given_of(request: StrategyRequest, prepared: LiveSnapshot, keep: Keep | None) -> FoldInput:
    """What a compaction was given."""
    return FoldInput(prepared.messages, request.counter, keep, prepared.format, request.tools, request.system)


def event_of(
    outcome: StrategyResult, request: StrategyRequest, ids: Sequence[int | str], tokens: tuple[int, int], **more: Any
) -> CompactionEvent:
    """The event of a compaction with these tokens before and after."""
    kept = {source for source in outcome.sources if source is not None}
    gone = [index for index in range(len(ids)) if index not in kept]
    first_kept = min((index for index in kept if gone and index > gone[-1]), default=None)
    return CompactionEvent(
        round=request.round,
        tokens_before=tokens[0],
        tokens_after=tokens[1],
        length_before=len(ids),
        length_after=len(outcome.messages),
        summary=outcome.summary,
        compacted_ids=tuple(ids[index] for index in gone),
        first_kept_id=None if first_kept is None else ids[first_kept],
        model=outcome.completions[-1].model if outcome.completions else "",
        strategy=", ".join(outcome.steps),
        read_files=_files(outcome, changed=False),
        modified_files=_files(outcome, changed=True),
        prompt_version=outcome.completions[-1].prompt_version if outcome.completions else "",
        **more,
    )


def _files(outcome: StrategyResult, *, changed: bool) -> tuple[str, ...]:
    """Paths in the evidence: the changed ones, or the ones that were only read."""
    found: dict[str, None] = {}
    for completion in outcome.completions:
        listed = completion.evidence.get("files", ()) if completion.evidence is not None else ()
        for file in listed if isinstance(listed, (list, tuple)) else ():
            path = file.get("path") if isinstance(file, Mapping) else None
            if isinstance(path, str) and changed == any(each != "read" for each in file.get("actions", ())):
                found[path] = None
    return tuple(found)


def state_after(state: ContextState, event: CompactionEvent) -> ContextState:
    """The state of the next request after a compaction."""
    budget = state.budget
    if budget is not None:
        messages = max(0, event.tokens_after - budget.system_tokens)
        budget = TokenBudget(budget.context_limit, budget.system_tokens, messages, budget.max_output_tokens)
    kind = "estimated" if state.usage is None else state.usage.kind
    return dataclasses.replace(
        state,
        usage=ContextUsage(event.tokens_after, 0, event.tokens_after, kind),
        budget=budget,
        message_count=event.length_after,
        stop_reason=None,
        error=None,
    )


def metadata_after(metadata: Metadata, outcome: StrategyResult, round: int) -> Metadata:
    """Metadata of the new messages."""
    moved = metadata.moved(outcome.sources)
    edited = set(outcome.edited)
    for new, old in enumerate(outcome.sources):
        if old is None:
            moved.set_origin(new, "compacted_synthetic")
            moved.set(new, ROUND, round)
        elif old in edited:
            moved.set_origin(new, "compacted_modified")
    return moved
