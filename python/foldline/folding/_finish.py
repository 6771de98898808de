"""Finishes a fold: mending and checks by the core, redaction, notes of the completion."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foldline import _core
from foldline._core import FinishedFold, Fold, Plan, RangeEvidence, TokenCounter
from foldline._util.lists import same
from foldline.folding.redact import Redact, redacted_messages, redacted_value
from foldline.summarizers._checks import other_script, talk_of
from foldline.typing import Completion, Messages

__all__ = ["MEND_SHARE", "Finished", "Shown", "finish", "shown_messages", "target_for"]

#: Share of a summary's room that is withheld from its writer and reserved for missing facts.
MEND_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Shown:
    """The messages as the summarizer sees them.

    Attributes:
        messages: The list, redacted if there is a ``redact``.
        listed: Its messages, safe from changes that a summarizer makes to the list.
        evidence: The facts of the folded messages of that list.
    """

    messages: Messages
    listed: Messages
    evidence: RangeEvidence


def shown_messages(messages: Messages, fold: Fold, planned: Plan, redact: Redact | None) -> Shown:
    """The messages for a summarizer: the given ones, or redacted copies, which are read again.

    Raises:
        SummaryError: ``redact`` failed.
    """
    if redact is None:
        return Shown(messages, same(messages), fold.evidence())
    shown = redacted_messages(messages, redact)
    # The evidence needs no exact counts.
    prepared = _core.prepare(shown, TokenCounter("chars/4"), tools=None, format=planned.format)
    return Shown(shown, shown, prepared.evidence(list(planned.folded)))


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished fold.

    Attributes:
        messages: The folded list.
        sources: For each message of it its index in the old list; None for a new one.
        tokens: Its tokens, overhead included.
        text: The text of the summary.
        completions: The answers, with redacted texts.
        evidence: The facts that the summary must contain, with the lists ``kept`` (present), ``added`` and
            ``dropped`` (missing).
    """

    messages: list[Any]
    sources: Sequence[int | None]
    tokens: int
    text: str
    completions: tuple[Completion, ...] = ()
    evidence: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, done: FinishedFold, completions: Sequence[Completion] = (), evidence: Mapping[str, Any] | None = None
    ) -> Finished:
        """From the core's finished fold."""
        return cls(done.messages, done.sources, done.tokens, done.text, tuple(completions), evidence)


def target_for(room: int, *, mend: bool) -> int:
    """The target length in tokens for a summary with this room."""
    return max(1, room - int(room * MEND_SHARE)) if mend else room


def finish(
    fold: Fold,
    planned: Plan,
    text: str,
    completions: Sequence[Completion],
    shown: Shown,
    *,
    mend: bool = True,
    redact: Redact | None = None,
) -> Finished:
    """Finishes a fold with the text of its summary.

    Args:
        fold: The fold.
        planned: Its plan.
        text: The text, of one completion or composed of several.
        completions: The answers it comes from.
        shown: The messages that the summarizer saw.
        mend: Whether facts missing from the text are added.
        redact: Applied to every text.

    Raises:
        SummaryError: The summary is refused (``summary_too_long``, ``summary_over_budget``, ``no_gain``,
            ``summary_over_limit``, ``gain_too_small``), or ``redact`` failed.
    """
    # A text extracted from the evidence needs no mending, and its own report is the more precise one.
    has_own = bool(completions) and all(each.evidence is not None for each in completions)
    evidence = None if has_own or not mend else shown.evidence
    done = fold.finish(text, evidence=evidence, redact=redact)
    notes = ["marks_neutralized"] if done.is_sanitized else []
    if not has_own and _is_in_other_script(text, shown.listed, planned):
        notes.append("other_script")
    about: Mapping[str, Any] | None = completions[-1].evidence if has_own else None
    if done.report is not None:
        about = json.loads(done.report)
    if redact is not None and about is not None:
        about = redacted_value(about, redact, is_payload=True)
    passed = [_redacted(each, redact, about if has_own else each.evidence) for each in completions]
    if passed:
        known = passed[-1].notes
        passed[-1] = _with_notes(passed[-1], [note for note in notes if note not in known])
    return Finished.of(done, passed, about)


def _is_in_other_script(text: str, messages: Messages, planned: Plan) -> bool:
    reasons = planned.reasons
    return other_script(text, talk_of(messages, [i for i in planned.folded if reasons[i] != "earlier_summary"]))


def _redacted(completion: Completion, redact: Redact | None, evidence: Mapping[str, Any] | None) -> Completion:
    return completion if redact is None else replace(completion, text=redact(completion.text), evidence=evidence)


def _with_notes(completion: Completion, notes: Sequence[str]) -> Completion:
    return replace(completion, notes=(*completion.notes, *notes)) if notes else completion
