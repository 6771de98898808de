"""The result of a compactor."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foldline._core import Plan
from foldline.compactor.events import TriggerKind
from foldline.context.metadata import ROUND, Metadata
from foldline.context.state import ContextState
from foldline.context.usage import ContextUsage, TokenBudget
from foldline.errors import FoldlineError
from foldline.planning import Infeasible
from foldline.strategies.base import StrategyRequest, StrategyResult
from foldline.typing import CompactionEvent, Completion, Messages

__all__ = [
    "CompactionResult",
    "NoProgress",
    "event_of",
    "metadata_after",
    "no_progress",
    "state_after",
    "unchanged_result",
]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of `Compactor.compact`.

    Attributes:
        messages: The new list; the unchanged messages if nothing was compacted.
        compacted: Whether the messages were compacted.
        reason: The trigger's reason; or why nothing was compacted: ``not_triggered``, ``vetoed``, ``nothing_to_fold``,
            ``no_gain``, ``no_progress``, ``failed``, ``cancelled``.
        summary: The text of the summary; empty if there is none.
        plan: The plan; `Infeasible` or None if there was no plan.
        tokens_before: Tokens of the whole request before.
        tokens_after: Tokens of the whole request after.
        error: The failure, also if a fallback was taken.
        fallback: The fallback taken: ``"truncate"`` or ``"clear"``.
        evidence: The facts that the summary must contain: lists of requests, files, commands, errors and more. Of
            those checked, ``kept`` are in the summary as written, ``mended`` were added, and ``dropped`` did not fit.
        event: The emitted event; None if nothing was compacted.
        state: The state of the next request, with the new messages.
        metadata: Metadata of the new messages.
        sources: For every new message its index in the old list; None for a new one.
        dropped: Indices of messages removed without a summary.
        completions: Answers of summarizers.
        steps: The strategies that changed something.
    """

    messages: list[Any]
    compacted: bool
    reason: str
    tokens_before: int
    tokens_after: int
    state: ContextState
    summary: str = ""
    plan: Plan | Infeasible | None = None
    error: FoldlineError | None = None
    fallback: str | None = None
    evidence: Mapping[str, Any] | None = None
    event: CompactionEvent | None = None
    metadata: Metadata = field(default_factory=Metadata)
    sources: Sequence[int | None] = ()
    dropped: tuple[int, ...] = ()
    completions: tuple[Completion, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def trigger(self) -> TriggerKind:
        """``"manual"`` if the caller requested it, else ``"auto"``."""
        return "manual" if self.event is not None and self.event.trigger == "manual" else "auto"


@dataclass(frozen=True, slots=True)
class NoProgress(CompactionResult):
    """A compaction that was not tried because it would not help. The messages are unchanged.

    Attributes:
        floor: The fewest tokens of the whole request that it would have reached, if known.
        threshold_tokens: The limit that it would have had to reach.
        tries: Number of consecutive unsuccessful tries.
    """

    floor: int | None = None
    threshold_tokens: int | None = None
    tries: int = 0


def unchanged_result(
    messages: Messages, request: StrategyRequest, tokens: int, reason: str, outcome: StrategyResult | None = None
) -> CompactionResult:
    """A result without changes."""
    unchanged = StrategyResult.unchanged(messages)
    return CompactionResult(
        unchanged.messages,
        compacted=False,
        reason=reason,
        tokens_before=tokens,
        tokens_after=tokens,
        state=request.state,
        plan=None if outcome is None else outcome.plan,
        metadata=request.metadata,
        sources=unchanged.sources,
        completions=() if outcome is None else outcome.completions,
    )


def no_progress(as_it_was: CompactionResult, floor: int | None, limit: int | None, tries: int) -> NoProgress:
    """The same result, with the reason that no try was made."""
    fields = {field.name: getattr(as_it_was, field.name) for field in dataclasses.fields(as_it_was)}
    fields["reason"] = "no_progress"
    return NoProgress(**fields, floor=floor, threshold_tokens=limit, tries=tries)


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
