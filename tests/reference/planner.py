"""Every keep of the design, by brute force over all legal cuts.

`plan` returns a `Planned` or an `Infeasible`. The functions follow the design sentence by sentence; none is
meant to be fast. "Nothing folded" is cut 0: neither a keep that no legal cut meets nor a cut that would fold
only earlier summaries changes the list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from .counters import Counter, scalars
from .model import RawMessage, read, with_results
from .rules import CLEARED, Rules

MARKER: Final = "\n[... shortened ...]\n"

KeepKind = Literal["keep_tokens", "keep_fraction", "keep_messages", "keep_turns", "keep_iterations", "fit_tokens"]


@dataclass(frozen=True)
class Keep:
    """The amount to keep; `of` applies only to `keep_fraction`."""

    kind: KeepKind
    amount: float
    of: str = "tokens"


@dataclass(frozen=True)
class Planned:
    """The action of each message. `cut` is 0 if nothing is folded."""

    cut: int
    turn_prefix: tuple[int, int] | None
    actions: list[str]
    tokens_before: int
    tokens_kept: int
    floor: int
    cleared: list[int] = field(default_factory=list)
    shortened: dict[int, dict[int, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether the plan changes anything."""
        return any(action not in ("keep", "pin") for action in self.actions)


@dataclass(frozen=True)
class Infeasible:
    """No plan fits; `floor` is the least that `fit_tokens` reaches."""

    floor: int
    why: str = "everything that must stay is larger than the budget"

    def __bool__(self) -> bool:
        """False, like a plan that changes nothing."""
        return False


def plan(
    messages: Sequence[RawMessage],
    keep: Keep,
    counter: Counter,
    format: str,
    pins: Iterable[int] = (),
    summary_tokens: int = 0,
) -> Planned | Infeasible:
    """Plans one list of messages."""
    return Planner(messages, counter, format, pins, summary_tokens).plan(keep)


def shorten(text: str, kept: int) -> str:
    """The head and tail of a text around the marker, `kept` characters together."""
    head, tail = (kept + 1) // 2, kept // 2
    return text[:head] + MARKER + text[len(text) - tail :]


class Planner:
    """One transcript with its counts and rules; `plan` can be called for any number of keeps."""

    rules_type: type[Rules] = Rules
    """The rules in force; replaced if a test breaks one on purpose."""

    def __init__(
        self,
        messages: Sequence[RawMessage],
        counter: Counter,
        format: str,
        pins: Iterable[int] = (),
        summary_tokens: int = 0,
    ) -> None:
        """Reads and counts every message once."""
        self.raw = list(messages)
        self.format = format
        self.counter = counter
        self.summary_tokens = summary_tokens
        self.read = read(self.raw, format)
        self.rules = self.rules_type(self.read, pins)
        self.n = len(self.read)
        self.tokens = [counter.message(message) for message in self.read]
        self.overhead = counter.overhead()
        self.tokens_before = sum(self.tokens) + self.overhead
        self.legal = self.rules.legal_cuts()

    def plan(self, keep: Keep) -> Planned | Infeasible:
        """The plan for one keep."""
        amount = keep.amount
        if keep.kind == "fit_tokens":
            return self.fit_tokens(int(amount))
        if keep.kind == "keep_fraction":
            return self.finish(self.cut_keep_fraction(amount, keep.of))
        cuts = {
            "keep_tokens": self.cut_keep_tokens,
            "keep_messages": self.cut_keep_messages,
            "keep_turns": self.cut_keep_turns,
            "keep_iterations": self.cut_keep_iterations,
        }
        return self.finish(cuts[keep.kind](int(amount)))

    # --- counting messages ---

    def counted_tokens(self, indexes: Iterable[int]) -> int:
        """Tokens of the given messages that count toward a keep."""
        return sum(self.tokens[index] for index in indexes if self.rules.counting[index])

    def counted_messages(self, indexes: Iterable[int]) -> int:
        """Number of the given messages that count toward a keep."""
        return sum(self.rules.counting[index] for index in indexes)

    def latest_legal(self, cuts: Iterable[int]) -> int | None:
        """The latest legal cut among the given ones."""
        return max((cut for cut in cuts if cut in self.legal), default=None)

    # --- one cut per keep; None if no legal cut meets it ---

    def cut_keep_tokens(self, amount: int) -> int | None:
        """At least `amount` recent tokens stay; a turn of more than that is split."""
        reaching = [i for i in range(self.n + 1) if self.counted_tokens(range(i, self.n)) >= amount]
        if not reaching:
            return None
        i = max(reaching)
        if i == self.n:
            return self.latest_legal(range(self.n + 1))
        turn = self.rules.turn_at(i)
        start = turn.start
        if self.counted_tokens(turn) > amount:
            split = self.latest_legal(range(start + 1, i + 1))
            if split is not None:
                return split
        return start if start in self.legal else self.latest_legal(range(start))

    def cut_keep_fraction(self, fraction: float, of: str) -> int | None:
        """At least this share of the counting tokens or messages stays, rounded up."""
        measure = self.counted_tokens if of == "tokens" else self.counted_messages
        wanted = math.ceil(fraction * measure(range(self.n)))
        return self.latest_legal(k for k in range(self.n + 1) if measure(range(k, self.n)) >= wanted)

    def cut_keep_messages(self, amount: int) -> int | None:
        """At least `amount` counting messages stay."""
        return self.latest_legal(k for k in range(self.n + 1) if self.counted_messages(range(k, self.n)) >= amount)

    def cut_keep_turns(self, amount: int) -> int | None:
        """The start of the n-th newest turn with a counting message, or the latest legal cut before it."""
        if amount == 0:
            return self.latest_legal(range(self.n + 1))
        holding = [turn for turn in self.rules.turns() if self.counted_messages(turn)]
        if len(holding) < amount:
            return None
        return self.latest_legal(range(holding[-amount].start + 1))

    def cut_keep_iterations(self, amount: int) -> int | None:
        """At least `amount` counting groups begin at or after the cut."""
        begins = [group[0] for group in self.rules.groups() if self.rules.counting[group[0]]]
        return self.latest_legal(k for k in range(self.n + 1) if sum(begin >= k for begin in begins) >= amount)

    # --- fit ---

    def newest_group(self) -> list[int]:
        """The group of the last message, if it counts; a pinned or open group stays anyway."""
        if not self.n or not self.rules.counting[self.n - 1]:
            return []
        return self.rules.group(self.n - 1)

    def stays(self, cut: int) -> int:
        """All tokens sent with this cut, overhead and summary included."""
        gone = self.rules.folded(cut)
        kept = sum(self.tokens[index] for index in range(self.n) if index not in gone)
        return self.overhead + kept + (self.summary_tokens if gone else 0)

    def fit_tokens(self, amount: int) -> Planned | Infeasible:
        """At most `amount` tokens in all: fold, then clear, then shorten."""
        if self.tokens_before <= amount:
            return self.finish(None)
        if amount < self.floor():
            return Infeasible(self.floor())
        cuts = self.fitting_cuts()
        for cut in cuts:
            if self.rules.folded(cut) and self.stays(cut) <= amount:
                return self.finish(cut)
        return self.reduce(max(cuts), amount)

    def fitting_cuts(self) -> list[int]:
        """Legal cuts that keep the newest group; folding nothing is always possible."""
        limit = min(self.newest_group(), default=self.n)
        return sorted({self.rules.head, *(cut for cut in self.legal if cut <= limit)})

    def floor(self) -> int:
        """The smaller of the unchanged list and the last cut with all its results at the placeholder."""
        last = max(self.fitting_cuts())
        reduced = self.stays(last) - sum(self.saving(index) for index in [*self.clearable(last), *self.shortenable()])
        return min(self.tokens_before, reduced)

    def saving(self, index: int) -> int:
        """The tokens that a message loses if all its results become the placeholder."""
        return self.tokens[index] - self.tokens_with(index, self.placeholders(index))

    def placeholders(self, index: int) -> dict[int, str]:
        """The placeholder for every result of a message that may be changed."""
        return dict.fromkeys(self.rules.replaceable_results(index), CLEARED)

    def tokens_with(self, index: int, replaced: dict[int, str]) -> int:
        """The count of a message with some of its results replaced."""
        changed: Sequence[RawMessage] = [with_results(self.raw[index], replaced, self.format)]
        return self.counter.message(read(changed, self.format)[0])

    def by_saving(self, indexes: Iterable[int]) -> list[int]:
        """Messages that shrink with the placeholder: largest saving first, earlier first on a tie."""
        shrinking = [index for index in indexes if self.saving(index) > 0]
        return sorted(shrinking, key=lambda index: (-self.saving(index), index))

    def clearable(self, cut: int) -> list[int]:
        """Messages of the tail that may be cleared, in order."""
        newest = self.newest_group()
        return self.by_saving(
            index for index in range(cut, self.n) if self.rules.counting[index] and index not in newest
        )

    def shortenable(self) -> list[int]:
        """Messages of the newest group that may be shortened, in order."""
        return self.by_saving(self.newest_group())

    def reduce(self, cut: int, amount: int) -> Planned:
        """Clears at the last cut, then shortens the newest group; `amount` is not below the floor."""
        total = self.stays(cut)
        cleared: list[int] = []
        for index in self.clearable(cut):
            if total <= amount:
                break
            cleared.append(index)
            total -= self.saving(index)
        shortened: dict[int, dict[int, str]] = {}
        for index in self.shortenable():
            if total <= amount:
                break
            allowed = amount - (total - self.tokens[index])
            shortened[index] = self.shortened_to(index, allowed)
            total += self.tokens_with(index, shortened[index]) - self.tokens[index]
        assert total <= amount, "the floor promised that this fits"
        return self.finish(cut, sorted(cleared), shortened)

    def shortened_to(self, index: int, allowed: int) -> dict[int, str]:
        """Result texts that bring a message down to the allowed tokens, or all placeholders."""
        texts: dict[int, str] = {}
        ordinals = self.rules.replaceable_results(index)
        lengths = {each: len(scalars("\n".join(self.read[index].results[each].texts))) for each in ordinals}
        for each in sorted(ordinals, key=lambda ordinal: (-lengths[ordinal], ordinal)):
            if self.tokens_with(index, texts) <= allowed:
                break
            texts[each] = self.longest_fitting(index, each, texts, allowed)
        return texts

    def longest_fitting(self, index: int, ordinal: int, texts: dict[int, str], allowed: int) -> str:
        """As much of the head and tail of one result as fits, or the placeholder."""
        text = scalars("\n".join(self.read[index].results[ordinal].texts))
        for kept in range(len(text) - 1, 0, -1):
            candidate = shorten(text, kept)
            if self.tokens_with(index, {**texts, ordinal: candidate}) <= allowed:
                return candidate
        return CLEARED

    # --- the plan ---

    def finish(
        self,
        cut: int | None,
        cleared: Sequence[int] = (),
        shortened: dict[int, dict[int, str]] | None = None,
    ) -> Planned:
        """Actions, counts and turn prefix of a cut; None, or a cut that folds nothing, is cut 0."""
        shortened = shortened or {}
        gone = self.rules.folded(cut) if cut is not None else []
        cut = cut if gone and cut is not None else 0
        changed = {index: self.placeholders(index) for index in cleared} | shortened
        kept = sum(
            self.tokens_with(index, changed[index]) if index in changed else self.tokens[index]
            for index in range(self.n)
            if index not in gone
        )
        actions = [self.action(index, gone, cleared, shortened) for index in range(self.n)]
        return Planned(
            cut=cut,
            turn_prefix=self.turn_prefix(cut),
            actions=actions,
            tokens_before=self.tokens_before,
            tokens_kept=kept,
            floor=self.floor(),
            cleared=list(cleared),
            shortened=shortened,
        )

    def action(
        self, index: int, gone: Sequence[int], cleared: Sequence[int], shortened: dict[int, dict[int, str]]
    ) -> str:
        """The action of one message."""
        if index in self.rules.pinned:
            return "pin"
        if index in gone:
            return "summarize"
        if index in cleared:
            return "clear"
        return "shorten" if index in shortened else "keep"

    def turn_prefix(self, cut: int) -> tuple[int, int] | None:
        """The part of the cut turn before the cut, if the cut is inside a turn."""
        if not 0 < cut < self.n or cut in self.rules.turn_starts():
            return None
        return self.rules.turn_at(cut).start, cut


def applied(messages: Sequence[RawMessage], planned: Planned, summary: RawMessage, format: str) -> list[Any]:
    """The folded messages: the summary at its place, and all kept ones, the same objects if unchanged."""
    rules = Rules(read(messages, format))
    place = rules.summary_index(planned.cut)
    out: list[Any] = []
    for index, message in enumerate(messages):
        if index == place and planned.cut:
            out.append(summary)
        if index in planned.cleared:
            out.append(with_results(message, dict.fromkeys(rules.replaceable_results(index), CLEARED), format))
        elif index in planned.shortened:
            out.append(with_results(message, planned.shortened[index], format))
        elif planned.actions[index] != "summarize":
            out.append(message)
    if place == len(messages) and planned.cut:
        out.append(summary)
    return out
