"""The verdicts at the top of a report, and the checks that they rest on."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from foldline._core import PROVIDER_OF_FORMAT
from foldline._html import number
from foldline.errors import FoldlineError
from foldline.planning import Infeasible, analyze, validate
from foldline.report._texts import FATES
from foldline.report._view import View
from foldline.typing import Problem, Provider

__all__ = ["Check", "checks_of", "verdicts_of"]

#: The warnings of a plan in words; ``{}`` is the message.
_WARNINGS = {
    "orphan_result": "Message {} has a result without a call",
    "open_call": "Message {} has a call without a result",
    "pin_grown": "Message {} stays because it belongs to a pinned one",
    "lone_surrogates": "Message {} has half of a character, which is counted as U+FFFD",
    "gain_too_small": "Folding would save less than the least gain",
    "thinking_bound": "Thinking from message {} on is bound to what stood before: newer models reject it unless they"
    " are asked to drop it",
    "thinking_blocks_fold": "Thinking of message {} forbids every cut that was asked for",
}

#: Names of providers that are not their word with a capital.
_PROVIDERS = {"openai": "OpenAI", "responses": "OpenAI Responses"}

_MOST_WARNINGS = 12


@dataclass(frozen=True, slots=True)
class Check:
    """A line of a list.

    Attributes:
        sign: ``ok``, ``bad``, ``warn`` or ``same``.
        text: The finding.
        detail: A code, or figures.
        href: The part of the page that shows more.
    """

    sign: str
    text: str
    detail: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class _Validity:
    """What a provider would reject before and after, by message of the list before."""

    provider: Provider
    before: list[Problem]
    after: list[Problem]
    new: list[Problem]


def verdicts_of(view: View, checks: Iterable[Check]) -> list[Check]:
    """The answers to "may I trust this fold?", losses last."""
    if view.infeasible is not None:
        return [_infeasible(view.infeasible)]
    result = view.result
    if result is not None and result.error is not None and result.outcome == "failed":
        return [Check("bad", "The summary failed, the messages are unchanged", result.reason)]
    checks = list(checks)
    found = []
    budget, fits = view.budget, None if result is None else result.fits
    if budget is not None:
        spare = budget - view.after
        if spare >= 0:
            found.append(Check("ok", f"Within the budget, {number(spare)} to spare"))
        else:
            found.append(Check("bad", f"Over the budget by {number(-spare)}"))
    elif fits is not None:
        found.append(Check("ok", "Within its window") if fits else Check("bad", "Over its window"))
    if not view.folds:
        found.append(Check("same", "Nothing was changed", "" if result is None else result.reason))
    accounted = next((check for check in checks if check.detail == "partition"), None)
    if accounted is not None:
        found.append(Check(accounted.sign, "Every message accounted for" if accounted.sign == "ok" else accounted.text))
    rules = next((check for check in checks if check.detail == "rules"), None)
    warnings = sum(check.sign in ("warn", "same") for check in checks)
    more = f"{number(warnings)} warning{'' if warnings == 1 else 's'}" if warnings else ""
    if rules is not None:
        text = "No provider rule newly broken" if rules.sign != "bad" else rules.text
        found.append(Check("bad" if rules.sign == "bad" else "ok", text, more, "#hk"))
    elif more:
        found.append(Check("warn", more, "", "#hk"))
    if view.facts:
        lost, whole = sum(fact.state == "d" for fact in view.facts), len(view.facts)
        if lost:
            verb = "is" if lost == 1 else "are"
            text = f"{number(lost)} of {number(whole)} facts {verb} not in the summary"
            found.append(Check("bad", text, "", "#he"))
        else:
            found.append(Check("ok", f"All {number(whole)} facts are in the summary", "", "#he"))
    return found


def _infeasible(infeasible: Infeasible) -> Check:
    return Check("bad", "The budget cannot be met", infeasible.why)


def checks_of(view: View) -> list[Check]:
    """Everything that can be checked of a fold."""
    if view.infeasible is not None:
        return [_infeasible(view.infeasible)]
    found = [*_partition(view), *_groups(view), *_rules(view), *_warnings(view)]
    kind = view.snapshot.kind if view.result is None or view.result.kind is None else view.result.kind
    floor = None if view.plan is None else view.plan.floor
    least = "" if floor is None else f"least that FitTokens could reach: {number(floor)}"
    if kind == "exact":
        found.append(Check("ok", "Counts are exact", least))
    else:
        found.append(Check("warn", f"Counts are {kind}", least))
    return found


def _partition(view: View) -> list[Check]:
    """Whether every message has one fate, the order is kept, and what stays is what it was."""
    parts = [f"{number(view.counted(fate))} {FATES[fate][1]}" for fate in "fkpcsd" if view.counted(fate)]
    stays = sorted(view.now.items())
    is_ordered = all(a[1] < b[1] for a, b in itertools.pairwise(stays))
    is_whole = len(view.now) + view.counted("fd") == view.count
    text = f"{number(view.count)} = {' + '.join(parts) or '0'}; order kept"
    result = view.result
    if result is not None:
        edited = set(result.edited)
        given = view.given.messages
        changed = [old for old, new in stays if old not in edited and result.messages[new] != given[old]]
        if changed:
            return [Check("bad", f"Message {changed[0]} was changed, and is not named as edited", "partition")]
        text += ", what stays is unchanged" if not edited else f", {number(len(edited))} edited, the others unchanged"
    if not (is_ordered and is_whole):
        return [Check("bad", "The new list is not made from the old one in order", "partition")]
    return [Check("ok", text, "partition")]


def _groups(view: View) -> list[Check]:
    try:
        groups = analyze(view.given.messages, format=view.snapshot.format).groups
    except FoldlineError:
        return []
    parted = [group for group in groups if len({view.fates[i] in "fd" for i in group}) > 1]
    if parted:
        return [Check("bad", f"A call is parted from its result at message {parted[0][0]}", "groups")]
    return [Check("ok", f"No call parted from its result: {number(len(groups))} groups, all whole")]


def _validity(view: View) -> _Validity | None:
    provider = PROVIDER_OF_FORMAT.get(view.snapshot.format)
    if provider is None or view.result is None:
        return None
    dialect = view.snapshot.format
    try:
        before = validate(view.given.messages, provider, format=dialect)
        after = validate(view.result.messages, provider, format=dialect)
    except FoldlineError:
        return None
    old_of = {new: old for old, new in view.now.items()}
    known = {(problem.index, problem.code) for problem in before}
    new = [each for each in after if (old_of.get(-1 if each.index is None else each.index), each.code) not in known]
    return _Validity(provider, before, after, new)


def _rules(view: View) -> list[Check]:
    found = _validity(view)
    if found is None:
        return []
    name = _PROVIDERS.get(found.provider, found.provider.capitalize())
    if found.new:
        first = found.new[0]
        text = f"{name} would reject the result: {first.code} at its message {first.index}"
        return [Check("bad", text, "rules")]
    if not found.before:
        return [Check("ok", f"Rules of {name}: no problem before, none after", "rules")]
    before, after = len(found.before), len(found.after)
    same = f"the same {after} after" if after == before else f"{number(after)} of them after"
    plural = "" if before == 1 else "s"
    return [Check("same", f"Rules of {name}: {number(before)} problem{plural} before, {same}", "rules")] + [
        Check("same", f"Before and after: {each.code}, message {each.index}") for each in found.after[:3]
    ]


def _warnings(view: View) -> list[Check]:
    if view.plan is None:
        return []
    found = []
    for code, index in view.plan.warnings[:_MOST_WARNINGS]:
        words = _WARNINGS.get(code, code)
        found.append(Check("warn", words.format("?" if index is None else index), code))
    rest = len(view.plan.warnings) - _MOST_WARNINGS
    if rest > 0:
        found.append(Check("warn", f"{number(rest)} more warnings"))
    return found
