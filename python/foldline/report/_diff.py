"""Two lists of messages: what stayed, what was folded, edited, or is gone."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from foldline import _core
from foldline._core import COUNT_KINDS, LiveSnapshot, TokenCounter
from foldline.typing import CountKind, StoredTranscript

__all__ = ["Difference", "Span", "difference"]

What: TypeAlias = Literal["kept", "folded", "gone", "edited", "summary", "new"]


@dataclass(frozen=True, slots=True)
class Span:
    """Messages in a row that had the same fate.

    Attributes:
        what: Their fate.
        before: First and last index before; None for new messages.
        after: First and last index after; None if they are not there.
        messages: Their number.
        tokens: Their tokens: as they are after, else as they were.
    """

    what: What
    before: tuple[int, int] | None
    after: tuple[int, int] | None
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a list.

    Attributes:
        messages_before: Messages before.
        messages_after: Messages after.
        tokens_before: Tokens before.
        tokens_after: Tokens after.
        kind: The kind of both counts: that of the less certain one.
        spans: What became of the messages, in order of the list before.
        facts_kept: Facts of the folded messages that the summary holds.
        facts_added: Those of them in the section that foldline adds.
        facts_lost: Those that it lacks.
    """

    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    kind: CountKind
    spans: tuple[Span, ...]
    facts_kept: int = 0
    facts_added: int = 0
    facts_lost: int = 0

    def counted(self, what: What) -> int:
        """Number of messages with a fate."""
        return sum(each.messages for each in self.spans if each.what == what)

    @property
    def is_safe(self) -> bool:
        """Whether nothing went without a summary, and nothing was edited."""
        return not self.counted("gone") and not self.counted("edited")


def difference(before: StoredTranscript, after: StoredTranscript, counter: TokenCounter) -> Difference:
    """Compares two lists of one conversation; messages are equal if their contents are. O(text)."""
    old = _core.prepare(before.messages, counter, tools=None, format=before.format)
    new = _core.prepare(after.messages, counter, tools=None, format=after.format)
    source = _matched(old.hashes(), new.hashes())
    summaries = set(new.summaries()) | set(after.meta.get("summaries", ()))
    edited = _edited(old, new, source, summaries)
    sources: dict[int, int] = source | edited
    missing = [i for i in range(len(old)) if i not in set(sources.values())]
    text = "\n\n".join(_core.outline(new, 1 << 30)[j][1] for j in sorted(summaries) if j not in source)
    fates: dict[int, What] = dict.fromkeys(missing, "folded" if text else "gone")
    kept = added = lost = 0
    if text and missing:
        checked = json.loads(old.evidence(missing).check(text, counter.count))
        section = text.find("## Kept from the originals")
        places = [fact["place"] for fact in checked["kept"]]
        added = sum(section >= 0 and place is not None and place[0] > section for place in places)
        kept, lost = len(places) - added, len(checked["dropped"])
    return Difference(
        len(old),
        len(new),
        old.total_tokens,
        new.total_tokens,
        max(old.kind, new.kind, key=COUNT_KINDS.index),
        tuple(_spans(old, new, sources, edited, fates, summaries - set(source))),
        kept,
        added,
        lost,
    )


def _matched(old: Sequence[int], new: Sequence[int]) -> dict[int, int]:
    """For each message after that is equal to one before, in order, its index before."""
    places: dict[int, list[int]] = {}
    for index, value in enumerate(old):
        places.setdefault(value, []).append(index)
    found: dict[int, int] = {}
    # From the end: a tail that stays as it is must not be matched with an equal message far before it.
    limit = len(old)
    for index in range(len(new) - 1, -1, -1):
        of_value = places.get(new[index], [])
        at = bisect.bisect_left(of_value, limit) - 1
        if at >= 0:
            limit = of_value[at]
            found[index] = limit
    return found


def _edited(old: LiveSnapshot, new: LiveSnapshot, source: dict[int, int], summaries: set[int]) -> dict[int, int]:
    """Messages after that stand in the place of one before with the same role and calls."""
    roles_old = [role for role, *_ in _core.outline(old, 1)]
    roles_new = [role for role, *_ in _core.outline(new, 1)]
    found: dict[int, int] = {}
    upper = len(old)
    for index in range(len(new) - 1, -1, -1):
        if index in source:
            upper = source[index]
            continue
        lower = next((source[k] for k in range(index - 1, -1, -1) if k in source), -1)
        if index in summaries:
            continue
        candidate = next((i for i in range(upper - 1, lower, -1) if roles_old[i] == roles_new[index]), None)
        if candidate is not None:
            found[index] = upper = candidate
    return found


def _spans(
    old: LiveSnapshot,
    new: LiveSnapshot,
    sources: dict[int, int],
    edited: dict[int, int],
    fates: dict[int, What],
    summaries: set[int],
) -> Iterator[Span]:
    """Rows in order of the list before; new messages stand where they are after."""
    now = {before: after for after, before in sources.items()}
    tokens_old, tokens_new = old.per_message.tolist(), new.per_message.tolist()
    rows: list[tuple[What, int | None, int | None, int]] = []
    fresh = sorted(set(range(len(new))) - set(sources))
    for i in range(len(old)):
        after = now.get(i)
        while fresh and after is not None and fresh[0] < after:
            rows.append(_new_row(fresh.pop(0), summaries, tokens_new))
        if after is None:
            rows.append((fates[i], i, None, tokens_old[i]))
        else:
            rows.append(("edited" if after in edited else "kept", i, after, tokens_new[after]))
    rows += [_new_row(index, summaries, tokens_new) for index in fresh]
    run: list[tuple[What, int | None, int | None, int]] = []
    for row in rows:
        if run and not _continues(run[-1], row):
            yield _span(run)
            run = []
        run.append(row)
    if run:
        yield _span(run)


def _new_row(index: int, summaries: set[int], tokens: Sequence[int]) -> tuple[What, int | None, int | None, int]:
    return ("summary" if index in summaries else "new", None, index, tokens[index])


def _continues(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    def follows(x: int | None, y: int | None) -> bool:
        return (x is None) == (y is None) and (x is None or y == x + 1)

    return bool(a[0] == b[0] and follows(a[1], b[1]) and follows(a[2], b[2]))


def _span(run: list[tuple[What, int | None, int | None, int]]) -> Span:
    first, last = run[0], run[-1]
    before = None if first[1] is None or last[1] is None else (first[1], last[1])
    after = None if first[2] is None or last[2] is None else (first[2], last[2])
    return Span(first[0], before, after, len(run), sum(row[3] for row in run))
