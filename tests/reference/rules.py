"""The rules of the design, one function each: pairing, groups, pins, turns, legal cuts, earlier summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from .counters import scalars
from .model import Call, Message, Result

SUMMARY_LABEL: Final = "<foldline-history "
HEAD_ROLES: Final = ("system", "developer")
CLEARED: Final = "[cleared]"

Place = tuple[int, int]
"""A call or result: index of its message, ordinal among the calls (or results) of that message."""


@dataclass(frozen=True)
class Pairing:
    """The call that each result answers (None for an orphan), and the unanswered calls."""

    answers: dict[Place, Place | None]
    unanswered: frozenset[Place]


def pair(messages: Sequence[Message]) -> Pairing:
    """Binds every result, in order, to the nearest preceding unanswered call with its id.

    A result without id takes a call without id, or one that may be answered by name: of the nearest message that
    has an unanswered one (of its name, if the result has a name), the first. In a closed unit results take calls of
    the same unit, and its unanswered calls are not open.
    """
    waiting: list[tuple[Place, Call]] = []
    answers: dict[Place, Place | None] = {}
    for index, message in enumerate(messages):
        calls = results = 0
        for part in message.parts:
            if isinstance(part, Call):
                waiting.append(((index, calls), part))
                calls += 1
            elif isinstance(part, Result):
                near = [call for call in waiting if message.binding != "closed" or call[0][0] == index]
                place = _answered(part, near)
                answers[index, results] = place
                waiting = [(other, call) for other, call in waiting if other != place]
                results += 1
        if message.binding == "closed":
            waiting = [call for call in waiting if call[0][0] != index]
    return Pairing(answers, frozenset(place for place, _ in waiting))


def _answered(result: Result, waiting: Sequence[tuple[Place, Call]]) -> Place | None:
    if result.id is not None:
        fitting = [place for place, call in waiting if call.id == result.id]
        return fitting[-1] if fitting else None
    fitting = [
        place
        for place, call in waiting
        if (call.id is None or call.takes_names) and (result.name is None or call.name == result.name)
    ]
    nearest = max((index for index, _ in fitting), default=None)
    return next((place for place in fitting if place[0] == nearest), None)


class Rules:
    """All rules applied to one list of messages and its pins."""

    pairing_of = staticmethod(pair)
    """The pairing of results and calls; replaced if a test breaks it on purpose."""

    def __init__(self, messages: Sequence[Message], pins: Iterable[int] = ()) -> None:
        """Computes everything at once; the lists are small."""
        self.messages = list(messages)
        self.n = len(self.messages)
        self.pairing = self.pairing_of(self.messages)
        own_pins = (index for index, message in enumerate(self.messages) if message.is_pinned)
        self.explicit_pins = frozenset((*pins, *own_pins))
        self.group_of = self._groups()
        self.head = self._head()
        self.open = self._open()
        self.pinned = self._grown(self._with_followers(self.explicit_pins))
        self.compaction = self._compaction()
        self.held = frozenset() if self.compaction is None else self._grown([self.compaction])
        stays = self.pinned | self.open | self.held
        self.counting = [index >= self.head and index not in stays for index in range(self.n)]

    # --- groups and pins ---

    def _groups(self) -> list[int]:
        """For each message the smallest index of its group: joined by results that answer calls, and by binding."""
        label = list(range(self.n))
        joined = [(at, answered[0]) for (at, _), answered in self.pairing.answers.items() if answered is not None]
        joined += [(index, index + 1) for index in range(self.n - 1) if self._is_bound(index)]
        for one, other in joined:
            old, new = max(label[one], label[other]), min(label[one], label[other])
            label = [new if each == old else each for each in label]
        return label

    def _is_bound(self, index: int) -> bool:
        """Whether a message stays with the next: reasoning with the model's next message, a call with the next call."""
        this, following = self.messages[index], self.messages[index + 1]
        if this.binding == "reasoning":
            return following.role == "assistant" and following.binding != "compaction"
        return this.binding == following.binding == "call"

    def _with_followers(self, indexes: Iterable[int]) -> frozenset[int]:
        """Pins, and the message after every pinned model turn that no result follows anyway."""
        pins = set(indexes)
        for index in range(self.n - 1):
            if index in pins and self.messages[index].binding == "turn":
                pins.add(index + 1)
        return frozenset(pins)

    def group(self, index: int) -> list[int]:
        """The members of the group of a message, in order."""
        return [other for other in range(self.n) if self.group_of[other] == self.group_of[index]]

    def groups(self) -> list[list[int]]:
        """All groups, in the order of their first members."""
        return [self.group(index) for index in range(self.n) if self.group_of[index] == index]

    def _grown(self, indexes: Iterable[int]) -> frozenset[int]:
        return frozenset(member for index in indexes for member in self.group(index))

    def _open(self) -> frozenset[int]:
        """Groups with an unanswered call."""
        return self._grown(index for index, _ in self.pairing.unanswered)

    def _head(self) -> int:
        """The number of leading system and developer messages and provider compactions."""
        size = 0
        while size < self.n and (self.messages[size].role in HEAD_ROLES or self.messages[size].binding == "compaction"):
            size += 1
        return size

    def _compaction(self) -> int | None:
        """The newest compaction of the provider outside the head. It replaces what is before it, and stays."""
        found = [i for i in range(self.head, self.n) if self.messages[i].binding == "compaction"]
        return max(found, default=None)

    # --- results ---

    def orphans(self) -> list[Place]:
        """Results that answer no call."""
        unanswering = [place for place, answered in self.pairing.answers.items() if answered is None]
        return [place for place in unanswering if self.messages[place[0]].binding != "closed"]

    def foreign_results(self, index: int) -> list[int]:
        """Ordinals of the results of a message that do not answer a call of the same message."""
        return [
            ordinal
            for ordinal in range(len(self.messages[index].results))
            if (answered := self.pairing.answers[index, ordinal]) is None or answered[0] != index
        ]

    def replaceable_results(self, index: int) -> list[int]:
        """Ordinals of the replaceable results that are longer than the placeholder."""
        results = self.messages[index].results
        is_closed = self.messages[index].binding == "closed"
        wanted = range(len(results)) if is_closed else self.foreign_results(index)
        return [
            ordinal
            for ordinal in wanted
            if not results[ordinal].is_fixed and len(scalars("\n".join(results[ordinal].texts))) > len(CLEARED)
        ]

    def is_tool_result(self, index: int) -> bool:
        """Whether the message contains a result of a call in another message, orphans included."""
        return self.messages[index].binding != "closed" and bool(self.foreign_results(index))

    # --- turns ---

    def turn_starts(self) -> list[int]:
        """The starts of turns: the end of the head, and every user message that is not a tool result."""
        return [
            index
            for index in range(self.head, self.n)
            if index == self.head or (self.messages[index].role == "user" and not self.is_tool_result(index))
        ]

    def turns(self) -> list[range]:
        """The turns, oldest first."""
        return [range(start, end) for start, end in pairwise([*self.turn_starts(), self.n])]

    def turn_at(self, index: int) -> range:
        """The turn that contains a message."""
        return next(turn for turn in self.turns() if index in turn)

    # --- cuts and summaries ---

    def is_legal(self, cut: int) -> bool:
        """Whether the history may be cut before this message."""
        if self.compaction is not None and cut > self.compaction and not self._may_pass(cut):
            return False
        if cut == self.n:
            return True
        if self.is_tool_result(cut):
            return False
        return not any(
            group[0] < cut <= group[-1]
            for group in self.groups()
            if group[0] not in self.pinned | self.open | self.held
        )

    def _may_pass(self, cut: int) -> bool:
        """Whether the summary of a cut after the compaction may stand after its group."""
        end = max(self.held) + 1
        stay = [group for group in self.groups() if group[0] in self.pinned | self.open]
        return cut >= end and not any(group[0] < end <= group[-1] for group in stay)

    def summary_index(self, cut: int) -> int:
        """The summary stands after the head, and after the group of a compaction that the cut passes."""
        end = max(self.held, default=self.n) + 1
        return end if end <= cut else self.head

    def legal_cuts(self) -> list[int]:
        """All legal cuts from the end of the head on."""
        return [cut for cut in range(self.head, self.n + 1) if self.is_legal(cut)]

    def is_summary(self, index: int) -> bool:
        """Whether the message is an earlier summary, recognized by its label."""
        message = self.messages[index]
        is_labelled = bool(message.texts) and message.texts[0].startswith(SUMMARY_LABEL)
        return message.is_synthetic or (message.role == "user" and is_labelled)

    def folded(self, cut: int) -> list[int]:
        """The messages that a cut folds: none, if it would fold only earlier summaries."""
        gone = [index for index in range(cut) if self.counting[index]]
        return gone if any(not self.is_summary(index) for index in gone) else []
