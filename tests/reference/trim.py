"""`trim` of the design, by brute force: every legal cut, its list, its price.

A cut is admissible if it drops a message, leaves one besides the head, and begins as the options and the provider ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from .counters import Counter
from .model import ANTHROPIC, BEDROCK, GEMINI, RawMessage
from .parts import Message, Text
from .planner import Planner
from .rules import HEAD_ROLES

FILLERS: Final = {"user": "Go on.", "assistant": "Understood."}
"""Between two messages of the other side that were no neighbours."""


@dataclass(frozen=True)
class Options:
    """The switches of a trim."""

    keep_newest_user: bool = True
    start_on_user: bool = False
    whole_turns: bool = False
    clear: bool = True
    shorten: bool = True


@dataclass(frozen=True)
class Trimmed:
    """The answer: dropped and edited messages and the tokens; `fits` is False where there is none."""

    floor: int
    fits: bool = True
    dropped: list[int] = field(default_factory=list)
    edited: list[int] = field(default_factory=list)
    tokens: int = 0


def trim(
    messages: Sequence[RawMessage],
    most: int,
    counter: Counter,
    format: str,
    pins: Iterable[int] = (),
    options: Options | None = None,
) -> Trimmed:
    """Trims one list of messages."""
    options = options or Options()
    pins = tuple(pins)
    attempts = [_Attempt(messages, counter, format, pins, None, options)]
    newest = attempts[0].newest_user()
    if options.keep_newest_user and newest is not None and attempts[0].rules.counting[newest]:
        attempts.insert(0, _Attempt(messages, counter, format, pins, newest, options))
    floor = min(attempt.least() for attempt in attempts)
    if attempts[0].tokens_before <= most:
        return Trimmed(floor, tokens=attempts[0].tokens_before)
    for attempt in attempts:
        found = attempt.within(most)
        if found is not None:
            dropped, edited, tokens = found
            return Trimmed(floor, True, dropped, edited, tokens)
    assert floor > most, "the floor promised that this fits"
    return Trimmed(floor, False)


class _Attempt(Planner):
    """A trim with the newest user message pinned, or without that pin."""

    def __init__(
        self,
        messages: Sequence[RawMessage],
        counter: Counter,
        format: str,
        pins: tuple[int, ...],
        implied: int | None,
        options: Options,
    ) -> None:
        super().__init__(messages, counter, format, pins if implied is None else (*pins, implied))
        # What the caller pinned, without the pin that only this attempt adds.
        by_caller = self.rules_type(self.read, pins).pinned
        self.by_caller = by_caller
        self.options = options

    def newest_user(self) -> int | None:
        """The newest user message that is neither a result nor a summary."""
        users = [i for i in range(self.n) if self.is_users(i) and not self.rules.is_summary(i)]
        return max(users, default=None)

    def is_users(self, index: int) -> bool:
        """Whether a message is the user's own."""
        return self.read[index].role == "user" and not self.rules.is_tool_result(index)

    def dropped(self, cut: int) -> list[int]:
        """The messages that a cut drops, earlier summaries included."""
        return [index for index in range(cut) if self.rules.counting[index]]

    def kept(self, cut: int) -> list[int]:
        """The messages that a cut leaves."""
        gone = self.dropped(cut)
        return [index for index in range(self.n) if index not in gone]

    def begins_well(self, kept: Sequence[int]) -> bool:
        """The first message after head and pins is the user's, if that is asked."""
        stays = self.by_caller | self.rules.held
        free = [i for i in kept if i >= self.rules.head and i not in stays]
        return not self.options.start_on_user or not free or self.is_users(free[0])

    def is_accepted(self, kept: Sequence[int]) -> bool:
        """Anthropic, Gemini and Bedrock: the first message after the instructions is a user's, or a compaction."""
        spoken = [i for i in kept if self.read[i].role not in HEAD_ROLES]
        if self.format not in (ANTHROPIC, GEMINI, BEDROCK) or (spoken and spoken[0] < self.rules.head):
            return True
        return bool(spoken) and (self.read[spoken[0]].role == "user" or spoken[0] == self.rules.compaction)

    def admissible(self) -> list[int]:
        """Every cut that may be made."""
        return [
            cut
            for cut in self.legal
            if self.dropped(cut)
            and any(index >= self.rules.head for index in self.kept(cut))
            and (not self.options.whole_turns or cut in self.rules.turn_starts())
            and self.begins_well(self.kept(cut))
            and self.is_accepted(self.kept(cut))
        ]

    def fillers(self, kept: Sequence[int]) -> list[str]:
        """The role of each filler: after a turn of Gemini's model, at Bedrock between any two of one side."""
        if self.format not in (GEMINI, BEDROCK):
            return []
        spoken = [index for index in kept if self.read[index].role not in HEAD_ROLES]
        every = [index for index in range(self.n) if self.read[index].role not in HEAD_ROLES]
        parted = [pair for pair in pairwise(spoken) if every.index(pair[1]) != every.index(pair[0]) + 1]
        if self.format == GEMINI:
            parted = [(one, other) for one, other in parted if self.read[one].binding == "turn"]
            return ["user" for _, other in parted if self.read[other].role == "assistant"]
        sides = [(self.read[one].role == "assistant", self.read[other].role == "assistant") for one, other in parted]
        return ["user" if other else "assistant" for one, other in sides if one == other]

    def price(self, cut: int) -> int:
        """All tokens sent with this cut."""
        kept = self.kept(cut)
        between = [Message(role, (Text(FILLERS[role]),)) for role in self.fillers(kept)]
        return self.overhead + sum(self.tokens[index] for index in kept) + sum(map(self.counter.message, between))

    def sparing(self) -> list[int]:
        """The admissible cuts that spare the newest group."""
        limit = min(self.newest_group(), default=self.n)
        return [cut for cut in self.admissible() if cut <= limit]

    def shrinking(self) -> tuple[int, int, list[int], list[int]] | None:
        """The cut at which results change, its tokens, and the results; None if no list may be returned there."""
        cuts = self.sparing()
        if not cuts and not self.begins_well(range(self.n)):
            return None
        cut = max(cuts, default=0)
        total = self.price(cut) if cuts else self.tokens_before
        clearable = self.clearable(cut) if self.options.clear else []
        return cut, total, clearable, self.shortenable() if self.options.shorten else []

    def least(self) -> int:
        """The least number of tokens of any list."""
        found = [self.tokens_before, *(self.price(cut) for cut in self.admissible())]
        shrinking = self.shrinking()
        if shrinking is not None:
            _, total, clearable, shortenable = shrinking
            found.append(total - sum(self.saving(index) for index in [*clearable, *shortenable]))
        return min(found)

    def within(self, most: int) -> tuple[list[int], list[int], int] | None:
        """Dropped and edited messages of the first stage that fits, and its tokens."""
        spared = self.sparing()
        for cut in spared:
            if self.price(cut) <= most:
                return self.dropped(cut), [], self.price(cut)
        shrinking = self.shrinking()
        if shrinking is not None:
            cut, total, clearable, shortenable = shrinking
            edited = []
            for index in clearable:
                if total > most:
                    edited.append(index)
                    total -= self.saving(index)
            for index in shortenable:
                if total > most:
                    edited.append(index)
                    texts = self.shortened_to(index, most - (total - self.tokens[index]))
                    total += self.tokens_with(index, texts) - self.tokens[index]
            if total <= most:
                return self.dropped(cut), sorted(edited), total
        for cut in self.admissible():
            if cut not in spared and self.price(cut) <= most:
                return self.dropped(cut), [], self.price(cut)
        return None
