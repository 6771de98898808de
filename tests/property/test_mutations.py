"""No invariant is vacuous: each check fails on an oracle that has one rule broken.

Runs on the oracle alone, regardless of the module under test.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

import pytest

from reference import rules
from reference.engine import Engine, OraclePlan
from reference.model import Call, Message, Result
from reference.planner import Infeasible, Keep, Planned, Planner
from reference.rules import Rules

from . import invariants
from .strategies import KINDS_OF_KEEP, SENT, Sample, ladder, new_message, random_sample, seeded

# --- one broken rule each ---------------------------------------------------------------------------


class PinAlone(Rules):
    """A pin covers its message, not its group."""

    def _grown(self, indexes: Iterable[int]) -> frozenset[int]:
        return frozenset(indexes)


class CutAnywhere(Rules):
    """Every index is a legal cut."""

    def is_legal(self, cut: int) -> bool:
        return True


class CutAtResults(Rules):
    """A tool result may be cut off its call if the group is open or pinned, or it is an orphan."""

    def is_tool_result(self, index: int) -> bool:
        return False


class GlobalIds(Rules):
    """A call id means the same call at every occurrence."""

    def _groups(self) -> list[int]:
        label = super()._groups()
        first: dict[str, int] = {}
        for index, message in enumerate(self.messages):
            for call in message.calls:
                other = first.setdefault(call.id or "", index)
                label = [label[other] if each == label[index] else each for each in label]
        return [label.index(each) for each in label]


class FoldOpen(Rules):
    """Open groups are folded like any other."""

    def _open(self) -> frozenset[int]:
        return frozenset()


class Unbound(Rules):
    """Reasoning is folded without its call, calls without the others of their batch."""

    def _is_bound(self, index: int) -> bool:
        return False


class UnitsOpen(Rules):
    """Calls and results of a unit may belong to other units."""

    def __init__(self, messages: Sequence[Message], pins: Iterable[int] = ()) -> None:
        """No group is closed."""
        super().__init__([replace(each, binding=each.binding.replace("closed", "")) for each in messages], pins)


class UnitsUnpinned(Rules):
    """The origin and importance of a unit are ignored."""

    def __init__(self, messages: Sequence[Message], pins: Iterable[int] = ()) -> None:
        """Only the caller's pins apply."""
        super().__init__([replace(each, is_pinned=False, is_synthetic=False) for each in messages], pins)


class PinnedTurnAlone(Rules):
    """A pinned model turn does not keep the messages after it."""

    def _with_followers(self, indexes: Iterable[int]) -> frozenset[int]:
        return frozenset(indexes)


class AcrossCompactions(Rules):
    """A provider's compaction is folded like any other message."""

    def __init__(self, messages: Sequence[Message], pins: Iterable[int] = ()) -> None:
        bound = [replace(each, binding="") if each.binding == "compaction" else each for each in messages]
        super().__init__(bound, pins)


class SummaryUnknown(Rules):
    """Earlier summaries are not recognized."""

    def is_summary(self, index: int) -> bool:
        return False


def oldest(result: Result, waiting: Sequence[tuple[rules.Place, Call]]) -> rules.Place | None:
    """The oldest open call with the id of a result."""
    return next((place for place, call in waiting if call.id == result.id), None)


def pair_with_oldest(messages: Sequence[Message]) -> rules.Pairing:
    """Pairs by `oldest`."""
    with patch.object(rules, "_answered", oldest):
        return rules.pair(messages)


class OldestCall(Rules):
    """A result answers the oldest call with its id."""

    pairing_of = staticmethod(pair_with_oldest)


def planner_with(broken: type[Rules]) -> type[Planner]:
    """A planner with a broken rule."""
    return type("Broken", (Planner,), {"rules_type": broken})


class NoReserve(Planner):
    """The summary costs nothing."""

    def stays(self, cut: int) -> int:
        return super().stays(cut) - (self.summary_tokens if self.rules.folded(cut) else 0)


class NoReduction(Planner):
    """Infeasible although clearing would help."""

    def fit_tokens(self, amount: int) -> Planned | Infeasible:
        planned = super().fit_tokens(amount)
        changed = isinstance(planned, Planned) and (planned.cleared or planned.shortened)
        return Infeasible(self.floor()) if changed else planned


class Moody(Planner):
    """Refuses some budgets."""

    def fit_tokens(self, amount: int) -> Planned | Infeasible:
        return Infeasible(amount + 1) if amount % 3 == 1 else super().fit_tokens(amount)


class EarlierFit(Planner):
    """Folds as much as possible, not as little."""

    def fitting_cuts(self) -> list[int]:
        return super().fitting_cuts()[-1:]


class TooFew(Planner):
    """Keeps one message less than requested."""

    def cut_keep_messages(self, amount: int) -> int | None:
        return super().cut_keep_messages(max(0, amount - 1))


class Backwards(Planner):
    """Folds less as the list grows."""

    def cut_keep_messages(self, amount: int) -> int | None:
        return super().cut_keep_messages(amount + self.n % 2)


class Swapped(Planner):
    """Mixes up neighbouring amounts."""

    def cut_keep_messages(self, amount: int) -> int | None:
        return super().cut_keep_messages(amount ^ 1)


class NeverSplits(Planner):
    """Keeps whole turns even if one alone is too large."""

    def cut_keep_tokens(self, amount: int) -> int | None:
        cut = super().cut_keep_tokens(amount)
        return cut if cut is None or self.turn_prefix(cut) is None else self.rules.turn_at(cut).start


class SmallestFirst(Planner):
    """Clears and shortens in the order of the messages."""

    def by_saving(self, indexes: Iterable[int]) -> list[int]:
        return sorted(super().by_saving(indexes))


class Copies(OraclePlan):
    """Returns copies."""

    def apply(self, messages: Any, summary: str) -> list[Any]:
        return [dict(message) for message in super().apply(messages, summary)]


class Touches(OraclePlan):
    """Marks each message that it clears or shortens."""

    def apply(self, messages: Any, summary: str) -> list[Any]:
        originals = {id(message) for message in messages}
        folded = super().apply(messages, summary)
        return [each if id(each) in originals else {**each, "note": 1} for each in folded]


class Mutates(OraclePlan):
    """Writes into the caller's list."""

    def apply(self, messages: Any, summary: str) -> list[Any]:
        folded = super().apply(messages, summary)
        if self.planned.cut:
            messages[0]["seen"] = True
        return folded


class SummaryLast(OraclePlan):
    """Puts the summary one position too late."""

    def apply(self, messages: Any, summary: str) -> list[Any]:
        folded = super().apply(messages, summary)
        at = next((i for i, each in enumerate(folded) if not any(each is old for old in messages)), 0)
        if self.planned.cut and at + 1 < len(folded):
            folded[at], folded[at + 1] = folded[at + 1], folded[at]
        return folded


Check = Callable[[Any, Sample, Keep], bool]


def appended(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I8 with some message."""
    return invariants.appended(fl, sample, keep, new_message(random.Random(str(keep)), sample))


BROKEN: Final[list[tuple[Check, Any]]] = [
    (invariants.partition, planner_with(PinAlone)),
    (invariants.partition, planner_with(FoldOpen)),
    (invariants.partition, planner_with(GlobalIds)),
    (invariants.identity, Copies),
    (invariants.identity, Touches),
    (invariants.identity, Mutates),
    (invariants.whole_groups, planner_with(CutAnywhere)),
    (invariants.whole_groups, planner_with(PinAlone)),
    (invariants.whole_groups, SummaryLast),
    (invariants.budget, NoReserve),
    (invariants.budget, NoReduction),
    (invariants.budget, Moody),
    (invariants.never_less, TooFew),
    (invariants.same_as_oracle, planner_with(CutAtResults)),
    (invariants.same_as_oracle, planner_with(OldestCall)),
    (invariants.same_as_oracle, planner_with(SummaryUnknown)),
    (invariants.same_as_oracle, planner_with(Unbound)),
    (invariants.same_as_oracle, planner_with(PinnedTurnAlone)),
    (invariants.same_as_oracle, planner_with(AcrossCompactions)),
    (invariants.same_as_oracle, planner_with(UnitsOpen)),
    (invariants.same_as_oracle, planner_with(UnitsUnpinned)),
    (invariants.same_as_oracle, EarlierFit),
    (invariants.same_as_oracle, NeverSplits),
    (invariants.same_as_oracle, SmallestFirst),
    (invariants.idempotent, planner_with(SummaryUnknown)),
    (appended, Backwards),
    (appended, planner_with(FoldOpen)),
]


def engine_with(broken: type) -> Engine:
    """An engine with a broken planner or plan."""
    if issubclass(broken, OraclePlan):
        return Engine(plan_type=broken)
    assert issubclass(broken, Planner)
    return Engine(planner=broken)


@pytest.mark.parametrize(("check", "broken"), BROKEN)
def test_check_fails_on_broken_rule(check: Check, broken: type) -> None:
    """At least one of many transcripts detects the broken rule."""
    fl = engine_with(broken)
    with pytest.raises((AssertionError, StopIteration)):
        sum(check(fl, sample, keep) for sample, keep in seeded(1500, "broken"))


@pytest.mark.parametrize("broken", [Moody, Swapped])
def test_I7_fails_on_broken_rule(broken: type) -> None:
    """Monotonicity needs several plans."""
    fl = engine_with(broken)
    for number in range(400):
        sample = random_sample(random.Random(f"broken-{number}"))
        for kind in KINDS_OF_KEEP:
            try:
                invariants.monotone(fl, sample, ladder(sample, kind))
            except AssertionError:
                return
    pytest.fail("no ladder gave it away")


@pytest.mark.parametrize("broken", [CutAnywhere, Unbound, PinnedTurnAlone])
def test_I15_fails_on_broken_rule(broken: type[Rules]) -> None:
    """Cuts inside a group make the list invalid."""
    fl = engine_with(planner_with(broken))
    with pytest.raises(AssertionError):
        drawn = seeded(400, "broken", valid=True, formats=SENT)
        sum(invariants.still_valid(fl, sample, keep) for sample, keep in drawn)


def test_label_is_the_one_in_the_design() -> None:
    """The label that identifies a summary is defined once."""
    assert rules.SUMMARY_LABEL == "<foldline-history "
