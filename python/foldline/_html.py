"""Small pictures and texts of folds as HTML: what every ``_repr_html_`` draws, without a script."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "block",
    "counts_html",
    "escaped",
    "joined_pieces",
    "number",
    "plan_html",
    "result_html",
    "share",
    "shown",
    "strip",
]

#: Characters that a page shows by their number: controls but for line ends and tabs, zero-width and direction signs.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)

#: The colours of a strip: of folded messages, of the summary, and of what stays.
_COLORS = {"fold": "#918877", "summary": "#c2610c", "keep": "#0b8074", "pin": "#7c4ddb", "edge": "#918877"}

_WIDTH, _HEIGHT, _CELL = 640, 16, 4


def shown(text: str) -> str:
    """A text in which nothing is hidden: control, zero-width and direction signs become ``‹202e›``."""
    return _HIDDEN.sub(lambda sign: f"‹{ord(sign.group()):x}›", text)


def escaped(text: object) -> str:
    """A text for HTML, with nothing hidden."""
    return html.escape(shown(str(text)))


def number(value: float) -> str:
    """A whole number with separators.

    Examples:
        >>> number(119910)
        '119,910'
    """
    return f"{round(value):,}"


def share(part: float, whole: float) -> str:
    """A share in whole percent; below one percent it says so.

    Examples:
        >>> share(84, 100), share(1, 1000), share(0, 5), share(1, 0)
        ('84 %', '<1 %', '0 %', '0 %')
    """
    if not part or not whole:
        return "0 %"
    percent = round(100 * part / whole)
    return f"{percent} %" if percent else "<1 %"


def joined_pieces(
    pieces: Iterable[tuple[str, float, float]], *, least: float, gap: float = 0.0
) -> dict[str, list[tuple[float, float]]]:
    """Pieces of a strip by class, each as start and width.

    Neighbours that are too thin to see are joined, so that a strip of any length has as many pieces as are visible.

    Args:
        pieces: Class, start and width of each piece, in order.
        least: Width below which a piece joins its neighbour.
        gap: Space left free after wider pieces.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    run: tuple[str, float, float] | None = None

    def flush() -> None:
        if run is not None:
            name, start, width = run
            found.setdefault(name, []).append((start, max(width - (gap if width > 2 else 0.0), min(least, 0.5))))

    for name, start, width in pieces:
        if width <= 0:
            continue
        is_next = run is not None and abs(run[1] + run[2] - start) < 1e-6
        if run is not None and is_next and (run[2] < least or (width < least and run[0] == name)):
            # The wider of two neighbours gives the class.
            run = (name if width > run[2] else run[0], run[1], run[2] + width)
            continue
        flush()
        run = (name, start, width)
    flush()
    return found


def strip(label: str, parts: Sequence[tuple[str, float]], scale: float) -> str:
    """A strip of one line: parts by class (``fold``, ``summary``, ``keep``, ``pin``) with their tokens."""
    at = 0.0
    pieces = []
    for name, tokens in parts:
        pieces.append((name, at, tokens * scale))
        at += tokens * scale
    paths = "".join(
        f'<path fill="{_COLORS[name]}" d="'
        + "".join(f"M{start:.0f} 0h{max(width, 1):.0f}v{_HEIGHT}h{-max(width, 1):.0f}z" for start, width in runs)
        + '"/>'
        for name, runs in joined_pieces(pieces, least=_CELL).items()
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" height="{_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(label)}">{paths}<path fill="none" stroke="{_COLORS["edge"]}" '
        f'd="M0 .5h{_WIDTH - 1}v{_HEIGHT - 1}H.5z"/></svg>'
    )


def scale_of(tokens: float) -> float:
    """Units of a strip's width for each token."""
    return _WIDTH / tokens if tokens else 0.0


def block(strips: Iterable[str], line: str, details: Iterable[tuple[str, Sequence[str]]] = ()) -> str:
    """Strips, one line of verdicts, and lists that unfold. All texts must be escaped."""
    lists = "".join(
        f"<details><summary>{title}</summary><ul>{''.join(f'<li>{item}</li>' for item in items)}</ul></details>"
        for title, items in details
        if items
    )
    return f'<div class="foldline">{"".join(strips)}<p>{line}</p>{lists}</div>'


def counts_html(counts: Any) -> str:
    """Counts as HTML: one line, and tokens by kind of part."""
    rows = [f"{escaped(name)}: {number(tokens)}" for name, tokens in counts.by_part.items() if tokens]
    rows.append(f"overhead: {number(counts.overhead)}")
    line = f"<b>{number(counts.total)} tokens</b> of {number(len(counts))} messages, {escaped(counts.kind)}"
    return block((), line, [("By part", rows)])


def plan_html(plan: Any) -> str:
    """A plan as HTML: two strips, one line, and the reasons."""
    scale = scale_of(max(plan.tokens_before, plan.tokens_after))
    tokens, actions = plan.message_tokens, plan.actions
    names = {"summarize": "fold", "drop": "fold", "pin": "pin"}
    before = [(names.get(action, "keep"), each) for action, each in zip(actions, tokens)]
    gone = sum(name == "fold" for name, _ in before)
    summary = plan.tokens_after - plan.tokens_kept - plan.overhead
    after = [("summary", summary), *(each for each in before if each[0] != "fold")]
    strips = [
        strip(f"Before: {number(plan.tokens_before)} tokens", before, scale),
        strip(f"After: {number(plan.tokens_after)} tokens", after, scale),
    ]
    line = (
        f"<b>{number(plan.tokens_before)} → {number(plan.tokens_after)} tokens</b> ({escaped(plan.kind)}), "
        f"{share(plan.tokens_before - plan.tokens_after, plan.tokens_before)} less: {number(gone)} of "
        f"{number(len(actions))} messages go, cut before {plan.cut}"
    )
    counted = Counter(zip(actions, plan.reasons))
    reasons = [f"{number(count)} {escaped(action)}: {escaped(why)}" for (action, why), count in counted.most_common(12)]
    warnings = [escaped(f"{code} (message {index})") for code, index in plan.warnings[:8]]
    return block(strips, line, [("Reasons", reasons), ("Warnings", warnings)])


def result_html(result: Any) -> str:
    """The result of a fold as HTML: two strips, one line of verdicts, reasons and facts."""
    plan, facts = result.plan, result.facts
    kept = {source for source in result.sources if source is not None}
    tokens = getattr(plan, "message_tokens", None)
    strips = []
    if tokens and result.changed and max(kept, default=-1) < len(tokens):
        scale = scale_of(max(result.tokens_before, result.tokens_after))
        pinned = {result.sources[new] for new in result.pins if new < len(result.sources)}
        before = [("pin" if i in pinned else "keep" if i in kept else "fold", each) for i, each in enumerate(tokens)]
        stays = [each for each in before if each[0] != "fold"]
        rest = result.tokens_after - sum(each for _, each in stays)
        strips = [
            strip(f"Before: {number(result.tokens_before)} tokens", before, scale),
            strip(f"After: {number(result.tokens_after)} tokens", [("summary", max(rest, 0)), *stays], scale),
        ]
    fits = {True: ", within its budget", False: ", over its budget", None: ""}[result.fits]
    line = (
        f"<b>{escaped(result.outcome)}</b> ({escaped(result.reason)}): {number(result.tokens_before)} → "
        f"{number(result.tokens_after)} tokens, {number(len(result.messages))} messages{fits}"
    )
    found = len(facts.kept) + len(facts.added) + len(facts.dropped)
    if found:
        line += f"; facts: {len(facts.kept)} kept, {len(facts.added)} added, {len(facts.dropped)} without room"
    lost = Counter(fact.kind for fact in facts.dropped).most_common(12)
    reasons = Counter(getattr(plan, "reasons", ())).most_common(12)
    return block(
        strips,
        line,
        [
            ("Reasons", [f"{number(count)} {escaped(why)}" for why, count in reasons]),
            ("Facts without room", [f"{number(count)} {escaped(kind)}" for kind, count in lost]),
        ],
    )
