"""What a report shows of a fold, gathered from its result: every figure once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foldline import _core
from foldline._core import LiveSnapshot, Plan
from foldline.folding.result import FoldInput, FoldResult
from foldline.planning import FitTokens, Infeasible, Keep
from foldline.report._texts import Texts, cut
from foldline.typing import Fact, StoredTranscript

__all__ = ["ShownFact", "View", "view_of"]

#: Characters of a preview, and of the text of a message with facts.
PREVIEW_CHARS = 160
DETAIL_CHARS = 2_000
_ALL_CHARS = 1 << 30

#: Messages with a longer text in a strip: those of at least this share of all tokens.
_LABEL_SHARE = 0.05

#: Fates by the actions of a plan.
_OF_ACTION = {"keep": "k", "pin": "p", "clear": "c", "shorten": "s", "summarize": "f", "drop": "d"}

#: Reasons for which a message stays at every cut.
_FIXED = ("head", "compaction", "pinned", "pinned_group", "open_call")


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A fact on the page.

    Attributes:
        kind: Its kind.
        state: ``k`` in the summary as written, ``a`` added, ``d`` no room.
        message: Index of its message in the list before; None if it comes from an earlier summary.
        text: Its text as shown.
        weight: Its value.
        tokens: Its cost.
        place: Its place in the summary.
    """

    kind: str
    state: str
    message: int | None
    text: str
    weight: int
    tokens: int
    place: tuple[int, int] | None


@dataclass(slots=True, kw_only=True)
class View:
    """A fold as a page shows it.

    Attributes:
        given: What the fold was given.
        snapshot: Its list, counted.
        plan: The plan, if it is one for this list.
        infeasible: Why a budget cannot be met.
        keep: What was asked for.
        result: The result; None if there is only a plan.
        tokens: Tokens of each message before.
        tokens_after: Tokens of each message that stays, as it stays.
        fates: The fate of each message, as a letter of `FATES`.
        now: The new index of each message that stays.
        roles: The role of each message.
        previews: The start of each text, on one line.
        details: The texts of messages with facts; with ``full`` of all.
        labels: What wide pieces of the strip are called.
        facts: The facts, in the order of their messages.
        summary: The text of the summary as shown.
        summary_tokens: Tokens of new messages, or those reserved for the summary if there is only a plan.
    """

    given: FoldInput
    snapshot: LiveSnapshot
    plan: Plan | None
    infeasible: Infeasible | None
    keep: Keep | None
    result: FoldResult | None
    transcript: StoredTranscript | None
    tokens: list[int]
    before: int
    after: int
    tokens_after: dict[int, int]
    fates: list[str]
    now: dict[int, int]
    roles: list[str]
    previews: list[str]
    details: dict[int, str]
    labels: dict[int, str]
    facts: list[ShownFact] = field(default_factory=list)
    summary: str = ""
    summary_tokens: int = 0
    is_plan_only: bool = False

    @property
    def count(self) -> int:
        """Messages before."""
        return len(self.tokens)

    @property
    def budget(self) -> int | None:
        """The tokens that a `FitTokens` allows."""
        return self.keep.n if isinstance(self.keep, FitTokens) else None

    @property
    def folds(self) -> bool:
        """Whether anything changes."""
        return any(fate not in "kp" for fate in self.fates)

    @property
    def is_undone(self) -> bool:
        """Whether the plan folds, but the list is unchanged, since its summary failed."""
        return self.result is not None and self.plan is not None and self.plan.cut > 0 and not self.folds

    @property
    def cut(self) -> int:
        """The cut; 0 if nothing goes. Without a plan it lies after the last message that is gone."""
        if self.plan is not None:
            return 0 if self.is_undone else self.plan.cut
        return max((i + 1 for i, fate in enumerate(self.fates) if fate in "fd"), default=0)

    @property
    def fixed(self) -> list[int]:
        """Messages that stay at every cut, ascending."""
        if self.plan is None:
            return []
        return [i for i, reason in enumerate(self.plan.reasons) if reason in _FIXED]

    @property
    def can_slide(self) -> bool:
        """Whether other cuts can be shown: their tokens are sums where nothing but a summary changes the list."""
        return self.plan is not None and self.cut > 0 and set(self.fates) <= set("kpfd") and not self.plan.stripped

    @property
    def cuts(self) -> list[int]:
        """The legal cuts that fold something, ascending."""
        if self.plan is None:
            return []
        fixed = set(self.fixed)
        first = next((i for i in range(self.count) if i not in fixed), self.count)
        return [each for each in self.plan.legal_cuts if each > first]

    def counted(self, fates: str) -> int:
        """Number of messages with one of these fates."""
        return sum(fate in fates for fate in self.fates)


def view_of(
    result: FoldResult | None,
    texts: Texts,
    *,
    plan: Plan | Infeasible | None = None,
    given: FoldInput | None = None,
    transcript: StoredTranscript | None = None,
    full: bool = False,
) -> View:
    """Gathers what a page shows: of a result, or of a plan for the list that was given. O(text).

    Raises:
        ValueError: The result does not know what it was given.
    """
    given = given if result is None else result.given
    if given is None:
        raise ValueError("the result does not know its list: a report needs one of compact, trim or a compactor")
    snapshot = _core.prepare(
        list(given.messages), given.counter, tools=given.tools, system=given.system, format=given.format
    )
    planned = plan if result is None else result.plan
    tokens: list[int] = snapshot.per_message.tolist()
    known = planned if isinstance(planned, Plan) and planned.message_tokens == tokens else None
    fates, now = _of_plan(planned, len(tokens)) if result is None else _of_result(result, known, len(tokens))
    after_tokens = {i: tokens[i] for i in now}
    is_edited = result is not None and (result.edited or (known is not None and known.stripped))
    if result is not None and is_edited:
        counted = _core.prepare(result.messages, given.counter, tools=None, format=snapshot.format)
        after_tokens = {old: int(counted.per_message[new]) for old, new in now.items()}
    before = snapshot.total_tokens if result is None else result.tokens_before
    after = before
    if result is not None:
        after = result.tokens_after
    elif isinstance(planned, Plan):
        after = planned.tokens_after
    new = after - (before - sum(tokens)) - sum(after_tokens.values()) if any(fate in "fd" for fate in fates) else 0
    facts = [] if result is None else _facts(result, snapshot, texts)
    with_facts = {fact.message for fact in facts}
    outline = _core.outline(snapshot, _ALL_CHARS if full else DETAIL_CHARS)
    previews, details = [], {}
    for i, (_, text, is_cut, media) in enumerate(outline):
        pictures = f"[{media} media] " if media and texts.content else ""
        previews.append(pictures + texts.line(text[: 4 * PREVIEW_CHARS], PREVIEW_CHARS))
        if texts.content and (full or i in with_facts) and (len(text) > PREVIEW_CHARS or "\n" in text):
            details[i] = texts.whole(text) + (" …" if is_cut else "")
    return View(
        given=given,
        snapshot=snapshot,
        plan=known,
        infeasible=planned if isinstance(planned, Infeasible) else None,
        keep=given.keep,
        result=result,
        transcript=transcript,
        tokens=tokens,
        before=before,
        after=after,
        tokens_after=after_tokens,
        fates=fates,
        now=now,
        roles=[role for role, *_ in outline],
        previews=previews,
        details=details,
        labels=_labels(snapshot, tokens, texts),
        facts=facts,
        summary="" if result is None else texts.whole(result.summary),
        summary_tokens=max(new, 0),
        is_plan_only=result is None,
    )


def _of_plan(planned: Plan | Infeasible | None, count: int) -> tuple[list[str], dict[int, int]]:
    """Fates and new indices by a plan."""
    if not isinstance(planned, Plan):
        return ["k"] * count, {i: i for i in range(count)}
    fates = [_OF_ACTION[action] for action in planned.actions]
    staying = [i for i, fate in enumerate(fates) if fate not in "fd"]
    summaries = int("f" in fates)
    head = planned.head
    return fates, {old: new + (summaries if old >= head else 0) for new, old in enumerate(staying)}


def _of_result(result: FoldResult, planned: Plan | None, count: int) -> tuple[list[str], dict[int, int]]:
    """Fates and new indices by the result itself, which several steps may have made."""
    now = {old: new for new, old in enumerate(result.sources) if old is not None}
    pinned = set(result.pins)
    edited, dropped = set(result.edited), set(result.dropped)
    actions: Mapping[int, str] = dict(enumerate(planned.actions)) if planned is not None else {}
    fates = []
    for i in range(count):
        action = actions.get(i)
        if i not in now:
            fates.append("d" if i in dropped else "f")
        elif i in edited and action in (None, "clear", "shorten"):
            fates.append("s" if action == "shorten" else "c")
        else:
            fates.append("p" if action == "pin" or now[i] in pinned else "k")
    return fates, now


def _facts(result: FoldResult, snapshot: LiveSnapshot, texts: Texts) -> list[ShownFact]:
    """The facts of a result, by message; their numbers become indices."""
    index_of = {number: index for index, number in enumerate(snapshot.numbers()) if number is not None}
    facts = result.facts
    has_places = texts.content and texts.redact is None
    found = []
    for state, group in (("k", facts.kept), ("a", facts.added), ("d", facts.dropped)):
        for fact in group:
            place = _shown_place(fact, result.summary) if has_places else None
            message = None if fact.message is None else index_of.get(fact.message)
            text = texts.fact(fact.kind, fact.text)
            found.append(ShownFact(fact.kind, state, message, text, fact.weight, fact.tokens, place))
    return sorted(found, key=lambda fact: -1 if fact.message is None else fact.message)


def _shown_place(fact: Fact, summary: str) -> tuple[int, int] | None:
    """The place of a fact in the summary as it is; None if it lies outside."""
    if fact.place is None or not 0 <= fact.place[0] < fact.place[1] <= len(summary):
        return None
    return fact.place


def _labels(snapshot: LiveSnapshot, tokens: Sequence[int], texts: Texts) -> dict[int, str]:
    """Names for the widest messages: the calls that they make or answer."""
    if not texts.content:
        return {}
    wide = {i for i, each in enumerate(tokens) if each >= _LABEL_SHARE * max(sum(tokens), 1)}
    found: dict[int, list[str]] = {}
    for call in json.loads(_core.calls(snapshot)):
        for message in {call["message"], call["result"]} & wide:
            found.setdefault(message, []).append(texts.call(call))
    return {message: cut(", ".join(names), 120) for message, names in found.items()}


def calls_of(snapshot: LiveSnapshot) -> list[dict[str, Any]]:
    """The calls of a list, in order."""
    found: list[dict[str, Any]] = json.loads(_core.calls(snapshot))
    return found
