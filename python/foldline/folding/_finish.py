"""From what was written to what stands in the list: redacted, neutralised, held against the evidence, mended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foldline import _core
from foldline._core import Plan, TokenCounter
from foldline.folding.redact import Redact, redacted_value
from foldline.summarizers._checks import other_script, talk_of
from foldline.summarizers._sanitize import neutralized, settled
from foldline.typing import Completion, Messages

__all__ = ["MEND_SHARE", "Finished", "finish", "target_for"]

#: The share of a summary's room that its writer is not told of: it is left for what the summary lacks.
MEND_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Finished:
    """A summary as it stands in the list.

    Attributes:
        text: Its text.
        completions: What was answered, with the texts that were let through.
        evidence: What it must not lose, with what it ``kept``, what was added (``mended``) and what it lacks
            (``dropped``).
    """

    text: str
    completions: tuple[Completion, ...] = ()
    evidence: Mapping[str, Any] | None = None


def target_for(room: int, *, mend: bool) -> int:
    """What a writer is told of the room of a summary, in tokens."""
    return max(1, room - int(room * MEND_SHARE)) if mend else room


def finish(
    text: str,
    completions: Sequence[Completion],
    messages: Messages,
    planned: Plan,
    counter: TokenCounter,
    *,
    room: int,
    mend: bool = True,
    redact: Redact | None = None,
) -> Finished:
    """Makes of a text that somebody wrote the summary of the folded messages.

    Args:
        text: What was written, of one completion or put together of several.
        completions: Those.
        messages: The list, redacted where there is a ``redact``.
        planned: What is folded of it.
        counter: Who counts.
        room: The most tokens of the text when facts are added to it.
        mend: Whether facts that it lacks are added.
        redact: What every text goes through.

    Raises:
        SummaryError: ``redact`` failed.
    """
    text, had_marks = neutralized(text if redact is None else redact(text))
    notes = ["marks_neutralized"] if had_marks else []
    folded = planned.folded
    # What was put together from evidence needs no mending, and knows best what it holds.
    has_own = bool(completions) and all(each.evidence is not None for each in completions)
    evidence: Mapping[str, Any] | None = None
    if not has_own:
        if _is_in_other_script(text, messages, planned):
            notes.append("other_script")
        if mend:
            text, evidence = _mended(text, messages, folded, planned.format, room, counter, redact)
    else:
        evidence = completions[-1].evidence
    if redact is not None and evidence is not None:
        evidence = redacted_value(evidence, redact, is_payload=True)
    let_through = [_let_through(each, redact, evidence if has_own else each.evidence) for each in completions]
    if let_through:
        known = let_through[-1].notes
        let_through[-1] = _with_notes(let_through[-1], [note for note in notes if note not in known])
    return Finished(text, tuple(let_through), evidence)


def _mended(
    text: str,
    messages: Messages,
    folded: Sequence[int],
    format: str,
    room: int,
    counter: TokenCounter,
    redact: Redact | None,
) -> tuple[str, Mapping[str, Any]]:
    """The text with what it lacks, and everything that it must not lose."""
    indices = list(folded)

    def write(count: Callable[[str], int]) -> tuple[str, str]:
        return _core.mend_summary(messages, indices, format, text, room, count)

    def safe(text: str) -> str:
        return neutralized(text if redact is None else redact(text))[0]

    mended, report = settled(write, counter.count, room, safe)
    evidence: dict[str, Any] = json.loads(_core.extract_evidence(messages, indices, format))
    return mended, {**evidence, **json.loads(report)}


def _is_in_other_script(text: str, messages: Messages, planned: Plan) -> bool:
    reasons = planned.reasons
    return other_script(text, talk_of(messages, [i for i in planned.folded if reasons[i] != "earlier_summary"]))


def _let_through(completion: Completion, redact: Redact | None, evidence: Mapping[str, Any] | None) -> Completion:
    return completion if redact is None else replace(completion, text=redact(completion.text), evidence=evidence)


def _with_notes(completion: Completion, notes: Sequence[str]) -> Completion:
    return replace(completion, notes=(*completion.notes, *notes)) if notes else completion
