"""The details of a plan beyond its keep, by brute force: gain, thinking, chunks, alternatives, the cached prefix.

All results are found by exhaustive search, on the raw messages where possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from .model import ANTHROPIC, RawMessage, read
from .planner import CLEARED, Infeasible, Keep, Planned, Planner, applied

THINKING: Final = ("thinking", "redacted_thinking")

# --- thinking and gain ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decided:
    """A plan with its stripped thinking, and the reason if nothing is folded."""

    planned: Planned
    tokens_kept: int
    tokens_after: int
    stripped: list[int] = field(default_factory=list)
    warnings: list[tuple[str, int | None]] = field(default_factory=list)


def thinks(message: RawMessage) -> bool:
    """Whether a raw message contains a block of thinking."""
    content = message.get("content")
    return isinstance(content, list) and any(block["type"] in THINKING for block in content)


def without_thinking(message: RawMessage) -> dict[str, Any]:
    """A copy of a raw message without its thinking, or with a placeholder if nothing else remains."""
    blocks = [block for block in message["content"] if block["type"] not in THINKING]
    return {**message, "content": blocks or [{"type": "text", "text": CLEARED}]}


def decide(planner: Planner, keep: Keep, thinking: str = "keep", min_gain: int = 0) -> Decided | Infeasible:
    """The plan for a keep, then with its cut moved, its thinking stripped, or nothing folded."""
    planned = planner.plan(keep)
    if isinstance(planned, Infeasible):
        return planned
    is_budget = keep.kind == "fit_tokens"
    blocked = None
    if thinking == "fold" and planned.cut and not planned.cleared and not planned.shortened:
        cuts = [cut for cut in folding_thinking(planner, planned.cut) if not bound(planner, planner.finish(cut))]
        if cuts:
            planned = planner.finish(min(cuts))
        elif not is_budget:
            blocked = in_the_way(planner, planned.cut)
            planned = planner.finish(None)
    decided = treated(planner, planned, thinking)
    gain = planner.tokens_before - decided.tokens_after
    if planned.cut and not is_budget and min_gain > 0 and gain < min_gain:
        decided = treated(planner, planner.finish(None), thinking)
        decided.warnings.append(("gain_too_small", None))
    if blocked is not None:
        decided.warnings.append(("thinking_blocks_fold", blocked))
    return decided


def folding_thinking(planner: Planner, cut: int) -> list[int]:
    """The cut itself, and the later ones that keep the newest group."""
    limit = min(planner.newest_group(), default=planner.n)
    return [cut, *(later for later in planner.legal if cut < later <= limit)]


def bound(planner: Planner, planned: Planned) -> list[int]:
    """Messages whose thinking stays if an earlier message changes."""
    changed = first_changed(planner, planned)
    if planner.format != ANTHROPIC or changed is None:
        return []
    gone = planner.rules.folded(planned.cut)
    return [index for index in range(changed, planner.n) if index not in gone and thinks(planner.raw[index])]


def in_the_way(planner: Planner, cut: int) -> int:
    """Thinking that stays for every fold, otherwise the first that the cut keeps."""
    found = [index for index in range(planner.rules.head, planner.n) if thinks(planner.raw[index])]
    fixed = [index for index in found if not planner.rules.counting[index]]
    return min(fixed) if fixed else min(index for index in found if index >= cut)


def in_loop(planner: Planner) -> int | None:
    """The latest model message, if it called tools and only results follow it."""
    latest = max((index for index in range(planner.n) if planner.read[index].role == "assistant"), default=None)
    if latest is None or not isinstance(planner.raw[latest].get("content"), list):
        return None
    calls = any(block["type"] == "tool_use" for block in planner.raw[latest]["content"])
    results = all(planner.rules.is_tool_result(index) for index in range(latest + 1, planner.n))
    return latest if calls and results else None


def treated(planner: Planner, planned: Planned, thinking: str) -> Decided:
    """A plan with the removable thinking stripped, and the first that remains."""
    stripped, left = [], []
    kept = planned.tokens_kept
    for index in bound(planner, planned):
        bare = read([without_thinking(planner.raw[index])], planner.format)[0]
        tokens = planner.counter.message(bare)
        if thinking != "strip" or index == in_loop(planner) or tokens > planner.tokens[index]:
            left.append(index)
        else:
            stripped.append(index)
            kept += tokens - planner.tokens[index]
    after = kept + planner.overhead + (planner.summary_tokens if planned.cut else 0)
    warnings: list[tuple[str, int | None]] = [("thinking_bound", left[0])] if left else []
    return Decided(planned, kept, after, stripped, warnings)


# --- chunks --------------------------------------------------------------------------------------------------


def bounds(planner: Planner, cut: int) -> list[int]:
    """The legal cuts inside the folded range, with its start and its end."""
    gone = planner.rules.folded(cut)
    return [gone[0], *(k for k in planner.legal if gone[0] < k < cut), cut] if gone else []


def chunks(
    planner: Planner, cut: int, max_tokens: int, sizes: Sequence[int] | None = None
) -> list[tuple[int, int, int, bool]]:
    """Chunks as (start, stop, tokens, whether too large): each ends at the farthest legal cut that fits."""
    gone, ends = planner.rules.folded(cut), bounds(planner, cut)
    sizes = planner.tokens if sizes is None else sizes

    def folded(start: int, stop: int) -> list[int]:
        return [index for index in gone if start <= index < stop]

    def size(start: int, stop: int) -> int:
        return sum(sizes[index] for index in folded(start, stop))

    found: list[tuple[int, int, int, bool]] = []
    start = ends[0] if ends else cut
    while start < cut:
        fitting = [end for end in ends if end > start and size(start, end) <= max_tokens]
        stop = max(fitting) if fitting else min(end for end in ends if end > start)
        # Kept messages are not sent, so they may be in any chunk: they end the one before.
        stop = max(end for end in ends if end >= stop and not folded(stop, end))
        found.append((start, stop, size(start, stop), size(start, stop) > max_tokens))
        start = stop
    return found


def fewest(planner: Planner, cut: int, max_tokens: int) -> int:
    """The smallest possible number of chunks, by trying every division."""
    ends = bounds(planner, cut)
    gone = planner.rules.folded(cut)
    best = {cut: 0}
    for at in reversed(ends[:-1]):
        following = [end for end in ends if end > at]
        ways = []
        for end in following:
            tokens = sum(planner.tokens[index] for index in gone if at <= index < end)
            if tokens <= max_tokens or end == following[0] or not any(following[0] <= i < end for i in gone):
                ways.append(best[end] + any(at <= index < end for index in gone))
        best[at] = min(ways)
    return best[ends[0]] if ends else 0


# --- alternative cuts ------------------------------------------------------------------------------------------


def alternatives(planner: Planner, cut: int) -> list[tuple[int, int, int, int, bool, str]]:
    """Alternative cuts as (cut, tokens kept, tokens after, messages folded, whether inside a turn, why), ascending."""
    gone = planner.rules.folded(cut) if cut else []
    others = [k for k in planner.legal if planner.rules.folded(k) and planner.rules.folded(k) != gone]
    starts = [k for k in others if k in planner.rules.turn_starts()]
    named = [
        (max((k for k in others if k < cut), default=None), "shallower"),
        (min((k for k in others if k > cut), default=None), "deeper"),
        (min(starts, key=lambda k: (abs(k - cut), k), default=None), "turn_start"),
        (max(planner.legal) if max(planner.legal, default=0) in others else None, "everything"),
    ]
    found: dict[int, str] = {}
    for k, why in named:
        if k is not None:
            found.setdefault(k, why)
    return [
        (
            k,
            planner.finish(k).tokens_kept,
            planner.stays(k),
            len(planner.rules.folded(k)),
            planner.turn_prefix(k) is not None,
            found[k],
        )
        for k in sorted(found)
    ]


# --- the cached prefix ------------------------------------------------------------------------------------------


def first_changed(planner: Planner, planned: Planned) -> int | None:
    """The first index of the folded list whose message differs from the original."""
    new = applied(planner.raw, planned, {"role": "user", "content": "the summary"}, planner.format)
    if len(new) == planner.n and all(one is other for one, other in zip(new, planner.raw, strict=True)):
        return None
    return next(at for at, one in enumerate(new) if at >= planner.n or one is not planner.raw[at])


def bills(
    before: int, after: int, prefix: int, prices: Sequence[Fraction], once: Fraction
) -> Iterator[tuple[Fraction, Fraction]]:
    """The cumulative cost of all requests without the fold and with it, request by request.

    `prices` are those of a cached token and of one written to the cache; `once` is the summariser's call.
    """
    cached, written = prices
    without, within = Fraction(0), once
    yield without, within + (after - prefix) * (written - cached)
    for turn in range(10_000):
        without += before * cached
        within += prefix * cached + (after - prefix) * written if turn == 0 else after * cached
        yield without, within


def turns_until_paid(
    before: int, after: int, prefix: int, prices: Sequence[Fraction], once: Fraction, patience: int = 10_000
) -> int | None:
    """The first number of requests after which the fold does not cost more; None if the limit is reached first."""
    for turn, (without, within) in enumerate(bills(before, after, prefix, prices, once)):
        if within <= without:
            return turn
        if turn >= patience:
            break
    return None
