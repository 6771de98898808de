"""A fold as one HTML page that loads nothing."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from foldline import _core
from foldline._core import Plan
from foldline._html import number, share
from foldline._util.files import replacing
from foldline.errors import ConfigError
from foldline.folding.redact import as_redactor
from foldline.folding.result import FoldInput, FoldResult
from foldline.planning import Infeasible, KeepFraction
from foldline.report._checks import checks_of, verdicts_of
from foldline.report._figures import Prices, categories_of, cost_of, models_of, prices_of
from foldline.report._picture import HEIGHT, WIDTH, Picture, picture_of
from foldline.report._sections import (
    STATES,
    chart_of,
    cost_rows,
    dollars_short,
    fact_rows,
    stops_of,
    summary_pieces,
)
from foldline.report._texts import FATES, REASONS, Texts
from foldline.report._view import View, view_of
from foldline.typing import StoredTranscript

__all__ = ["html", "plan_html", "save"]

_SIGNS = {"ok": "✓", "bad": "×", "warn": "!", "same": "="}
#: An id of hexadecimal digits, as programs give their sessions.
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")

_ROLES = ("system", "user", "assistant", "tool")
_ROLE_NAMES = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool result"}

Redact: TypeAlias = Callable[[str], str]


def save(
    result: FoldResult,
    path: str | os.PathLike[str],
    *,
    transcript: StoredTranscript | None = None,
    content: bool = True,
    full: bool = False,
    redact: Redact | None = None,
    prices: Prices | None = None,
) -> None:
    """Writes the report of a fold into a file: whole or not at all, readable by its owner only.

    Args:
        result: The result of `compact`, `trim` or a compactor.
        path: The HTML file; it is replaced.
        transcript: Where the messages came from; it names the session, what was billed, and the way back.
        content: Whether texts of messages are in the page. False: indices, roles, kinds, codes and numbers alone.
        full: Whether the page has every message in full. Default: 160 characters, and 2,000 of messages with facts.
        redact: Applied to every text that the page shows.
        prices: Prices of the model that reads the context. Default: of the model that the transcript names, if the
            package genai-prices knows it; without prices the page has no costs.

    Raises:
        ConfigError: The result does not know its list; the package Jinja2 is missing.
        OSError: The file cannot be written.
    """
    text = html(result, transcript=transcript, content=content, full=full, redact=redact, prices=prices)
    with replacing(Path(path)) as stream:
        stream.write(text.encode())


def html(
    result: FoldResult,
    *,
    transcript: StoredTranscript | None = None,
    content: bool = True,
    full: bool = False,
    redact: Redact | None = None,
    prices: Prices | None = None,
) -> str:
    """The report of a fold as a text; the arguments are those of `save`.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}. " + "Do it well. " * 40} for i in range(9)]
        >>> result = fl.compact(messages, fl.KeepMessages(2), counter="chars/4", summary_tokens=200)
        >>> page = fl.report.html(result)
        >>> page.startswith("<!doctype html>"), "https://" in page
        (True, False)
    """
    texts = Texts(content, as_redactor(redact))
    try:
        view = view_of(result, texts, transcript=transcript, full=full)
    except ValueError as error:
        raise ConfigError(str(error), code="unknown_list", path="result") from None
    return _page(view, texts, prices)


def plan_html(
    planned: Plan | Infeasible,
    given: FoldInput,
    *,
    transcript: StoredTranscript | None = None,
    content: bool = True,
    full: bool = False,
    redact: Redact | None = None,
    prices: Prices | None = None,
) -> str:
    """The report of a plan, before anything is folded."""
    texts = Texts(content, as_redactor(redact))
    view = view_of(None, texts, plan=planned, given=given, transcript=transcript, full=full)
    return _page(view, texts, prices)


def _page(view: View, texts: Texts, prices: Prices | None) -> str:
    style, script = _asset("page.css"), _asset("page.js")
    checks = checks_of(view)
    model = _model(view)
    known = prices if prices is not None or model is None else prices_of(model)
    cost = cost_of(view, known)
    categories = categories_of(view)
    picture = picture_of(view)
    counts = {state: sum(fact.state == state for fact in view.facts) for state in "kad"}
    kind = view.snapshot.kind if view.result is None or view.result.kind is None else view.result.kind
    context: dict[str, Any] = {
        "version": _core.__version__,
        "policy": _policy(style, script),
        "style": _markup(style),
        "script": _markup(script),
        "data": _markup(_data(view)),
        "title": f"{number(view.before)} to {number(view.after)} tokens: fold report",
        "number": number,
        "view": view,
        "kind": kind,
        "meta": _meta(view, texts, kind),
        "saving": _saving(view),
        "asked": _asked(view),
        "pinned": _pinned(view),
        "writer": _writer(view, texts),
        "verdicts": verdicts_of(view, checks),
        "checks": checks,
        "signs": _SIGNS,
        "states": STATES,
        "slides": view.can_slide,
        "cuts": len(view.cuts),
        "stops": stops_of(view),
        "cut_label": _cut_label(view),
        "after_label": _after_label(view),
        "width": WIDTH,
        "height": HEIGHT,
        "picture": picture,
        "before_x": view.before * WIDTH / max(view.before, view.after, 1),
        "free_x": max(picture.end_x, picture.budget_x or 0) + 26,
        "ribbons": _ribbons(view, picture),
        "categories": categories,
        "most": max([*(max(row.before, row.after) for row in categories), view.summary_tokens, 1]),
        "billed": _billed(view),
        "facts": fact_rows(view.facts),
        "fact_counts": counts,
        # A fold of foldline adds what it has room for; an agent does not.
        "lost_name": "lost" if view.plan is None else "no room",
        "cost": None if cost is None else cost_rows(cost),
        "chart": None if cost is None else chart_of(cost),
        "price_line": "" if cost is None else _price_line(cost.prices),
        "summary": summary_pieces(view, texts),
        "summary_size": _summary_size(view),
        "summary_hint": _summary_hint(view),
        "filters": _filters(view),
        "way_back": _way_back(view, texts),
        "foot": _foot(view),
    }
    return str(_template().render(context))


def _markup(text: str) -> Any:
    """A text that the template writes as it is."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - the package's own files, and JSON without < > &


@functools.cache
def _template() -> Any:
    try:
        import jinja2
    except ImportError:
        needs = "a report needs the package Jinja2: pip install 'foldline[report]'"
        raise ConfigError(needs, code="missing_package", path="report") from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(_asset("page.html"))


@functools.cache
def _asset(name: str) -> str:
    return (files("foldline.report") / "assets" / name).read_text(encoding="utf-8").strip()


def _policy(style: str, script: str) -> str:
    """A policy that allows the page's own style and script, and nothing else."""

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _data(view: View) -> str:
    """The page's data as JSON that no reader of HTML takes for markup. Columns, not objects."""
    reasons = [] if view.plan is None or view.is_undone else view.plan.reasons
    codes = list(dict.fromkeys(reasons))
    start = next((i for i, fact in enumerate(view.facts) if fact.state == "d" and fact.message is not None), None)
    if start is None:
        start = next((i for i, fact in enumerate(view.facts) if fact.message is not None), -1)
    kinds = sorted({fact.kind for fact in view.facts})
    data = {
        "width": WIDTH,
        "height": HEIGHT,
        "before": view.before,
        "after": view.after,
        "overhead": view.before - sum(view.tokens),
        "room": 0 if view.plan is None or view.counted("d") else view.plan.summary_tokens,
        "summary": view.summary_tokens,
        "budget": view.budget,
        "head": 0 if view.plan is None else view.plan.head,
        "cut": view.cut,
        "cuts": view.cuts if view.can_slide else [],
        "slides": view.can_slide,
        "fixed": view.fixed,
        "tokens": view.tokens,
        "role": [_ROLES.index(role) for role in view.roles],
        "roles": [_ROLE_NAMES[role] for role in _ROLES],
        "short": _ROLES,
        "fate": "".join(view.fates),
        "fates": FATES,
        "reasons": codes,
        "reason": [codes.index(reason) for reason in reasons] or [-1] * view.count,
        "words": REASONS,
        "now": [view.now.get(i, -1) for i in range(view.count)],
        "preview": view.previews,
        "detail": view.details,
        "states": STATES,
        "kinds": kinds,
        "facts": {
            "kind": [kinds.index(fact.kind) for fact in view.facts],
            "state": "".join(fact.state for fact in view.facts),
            "message": [-1 if fact.message is None else fact.message for fact in view.facts],
            "text": [fact.text for fact in view.facts],
            "weight": [fact.weight for fact in view.facts],
            "tokens": [fact.tokens for fact in view.facts],
        },
        "start": [0 if start < 0 else view.facts[start].message, start],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _model(view: View) -> str | None:
    """The model that reads the context, if the transcript names one."""
    usage = () if view.transcript is None else view.transcript.usage
    return next((each.model for each in reversed(usage) if each.model), None) or view.given.counter.model


def _meta(view: View, texts: Texts, kind: str) -> list[dict[str, str]]:
    found = []
    stored = view.transcript
    if stored is not None and texts.content:
        found.append({"label": "Session", "code": _short(texts.name(stored.id)), "rest": ""})
    if stored is not None:
        program = str(stored.meta.get("session_format", "")).replace("_", " ")
        day = _day(stored) if texts.content else ""
        named = ", ".join(each for each in (program.title(), day) if each)
        if named:
            found.append({"label": texts.name(named) or named, "code": "", "rest": ""})
    found.append({"label": f"{number(view.count)} message{'' if view.count == 1 else 's'}", "code": "", "rest": ""})
    counter = view.given.counter
    bound = counter.error_bound
    rest = f", {kind}" + (f" within {share(bound, 1)}" if bound and kind != "exact" else "")
    found.append({"label": "counter", "code": texts.name(counter.model or counter.name) or "given", "rest": rest})
    return found


def _short(name: str) -> str:
    """The name of a session; of a long id its beginning."""
    return name[:8] if _UUID.fullmatch(name) else name[:40]


def _day(stored: StoredTranscript) -> str:
    """The day of the first entry that has a time."""
    entries = stored.meta.get("entries")
    for entry in entries[:50] if isinstance(entries, list) else ():
        time = entry.get("timestamp") if isinstance(entry, dict) else None
        if isinstance(time, str) and len(time) >= 10 and time[:4].isdigit():
            return time[:10]
    return ""


def _saving(view: View) -> str:
    if view.after < view.before:
        return f"{share(view.before - view.after, view.before)} less."
    if view.after > view.before:
        return f"{share(view.after - view.before, view.before)} more."
    return "Nothing saved."


def _asked(view: View) -> str:
    keep = view.keep
    if keep is None:
        return ""
    if isinstance(keep, KeepFraction):
        return f"KeepFraction({keep.f:g})"
    return f"{type(keep).__name__}({number(keep.n)})"


def _pinned(view: View) -> str:
    if view.plan is None:
        return ""
    pinned = [str(i) for i, reason in enumerate(view.plan.reasons) if reason == "pinned"]
    if not pinned:
        return ""
    if len(pinned) > 4:
        return f"{number(len(pinned))} messages"
    named = " and ".join([", ".join(pinned[:-1]), pinned[-1]] if len(pinned) > 1 else pinned)
    return f"message{'' if len(pinned) == 1 else 's'} {named}"


def _writer(view: View, texts: Texts) -> dict[str, str] | None:
    result = view.result
    if result is None or not view.summary_tokens:
        return (
            {"before": "Summary of at most ", "name": f"{number(view.summary_tokens)} tokens", "after": ""}
            if view.is_plan_only and view.summary_tokens
            else None
        )
    models = ["a function" if "<" in name else name for name in models_of(result)]
    added = any(fact.state == "a" for fact in view.facts)
    if not models:
        return {"before": "Summary written from the messages, ", "name": "without a model", "after": "."}
    return {
        "before": "Summary by ",
        "name": texts.name(models[-1]) or "a model",
        "after": ", completed by foldline." if added else ".",
    }


def _cut_label(view: View) -> str:
    gone = view.counted("fd")
    verb = "drop" if view.counted("d") and not view.counted("f") else "fold"
    if not view.cut:
        return f"{number(gone)} messages {verb}" if gone else "No message goes"
    where = f"Cut before message {view.cut}" if view.cut < view.count else "All that may fold"
    return f"{where}: {number(gone)} messages {verb}, {number(view.after)} tokens stay"


def _after_label(view: View) -> str:
    parts = ["the summary"] if view.summary_tokens else []
    parts += [f"{number(view.counted(fate))} {FATES[fate][1]}" for fate in "pcs" if view.counted(fate)]
    if view.counted("k"):
        parts.append(f"{number(view.counted('k'))} kept")
    return f"{number(view.after)} tokens: {', '.join(parts) or 'nothing'}"


def _ribbons(view: View, picture: Picture) -> dict[str, str]:
    def ribbon(a: float, b: float, p: float, q: float) -> str:
        middle = (51 + 156) / 2
        return (
            f"M{a:.2f} 51C{a:.2f} {middle} {p:.2f} {middle} {p:.2f} 156H{q:.2f}"
            f"C{q:.2f} {middle} {b:.2f} {middle} {b:.2f} 51Z"
        )

    folded = kept = ""
    if picture.cut_x and picture.summary_width and view.counted("f"):
        start = 0.0 if view.plan is None else sum(view.tokens[: view.plan.head]) * WIDTH / max(view.before, 1)
        folded = ribbon(0, picture.cut_x, start, start + picture.summary_width)
    if picture.kept is not None:
        a, b, p, q = picture.kept
        kept = ribbon(a, b, p, q)
    return {"folded": folded, "kept": kept}


def _billed(view: View) -> str:
    """What the provider billed for the newest request, beyond what the file holds."""
    usage = () if view.transcript is None else view.transcript.usage
    last = next((each for each in reversed(usage) if each.message < view.count), None)
    if last is None:
        return ""
    held = sum(view.tokens[: last.message])
    beyond = last.input_tokens - held
    text = f"The provider billed {number(last.input_tokens)} for the last request."
    if beyond > 0 and view.snapshot.kind != "exact":
        text += f" About {number(round(beyond, -2))} of it, system prompt and tools, are not in the file and stay."
    elif beyond > 0:
        text += f" {number(beyond)} of it are not in the file and stay."
    return text


def _price_line(prices: Prices) -> str:
    parts = [f"{dollars_short(prices.input)} read", f"{dollars_short(prices.cached)} cached"]
    if prices.cache_write is not None:
        parts.append(f"{dollars_short(prices.cache_write)} written to the cache")
    if prices.output:
        parts.append(f"{dollars_short(prices.output)} answered")
    return f"A million tokens: {', '.join(parts)}."


def _summary_size(view: View) -> str:
    room = 0 if view.plan is None else view.plan.summary_tokens
    return f"{number(view.summary_tokens)} tokens" + (f" of {number(room)}" if room >= view.summary_tokens > 0 else "")


def _summary_hint(view: View) -> str:
    if not any(fact.place is not None for fact in view.facts):
        return ""
    return "Marked: a fact, with the number of its message. Darker: added by foldline."


def _filters(view: View) -> list[dict[str, str]]:
    found = [{"key": "all", "name": "All"}]
    names = {fate: f"{sign} {name.capitalize()}" for fate, (sign, name, _) in FATES.items()}
    present = [fate for fate in "fpkcsd" if view.counted(fate) or (view.can_slide and fate in "fk")]
    found += [{"key": fate, "name": names[fate]} for fate in present]
    if view.facts:
        found.append({"key": "e", "name": "★ With facts"})
    return found


def _way_back(view: View, texts: Texts) -> dict[str, Any]:
    stored = view.transcript
    gone = [i for i, fate in enumerate(view.fates) if fate in "fd"]
    if not gone:
        return {"title": "Nothing is gone", "lines": ["Every message is in the new list."], "command": ""}
    if stored is None:
        lines = ["The list that was folded is unchanged; the caller still has it."]
        return {"title": "Nothing is gone", "lines": lines, "command": ""}
    sources = stored.meta.get("sources")
    lines = ["The source was not written to."]
    command = ""
    if isinstance(sources, list) and len(sources) == view.count:
        entries = [entry for i in gone for entry in sources[i]]
        if entries:
            span = f"entries {min(entries)} to {max(entries)}"
            lines.append(f"The folded messages are among its {span}.")
            path = texts.name(str(stored.meta.get("path", "")).rsplit("/", 1)[-1])
            command = f"{path or 'SESSION'}  {span}"
    return {"title": "Nothing is gone", "lines": lines, "command": command}


def _foot(view: View) -> str:
    plan = f"Plan {view.plan.fingerprint}, " if view.plan is not None else ""
    return f"{plan}foldline {_core.__version__}. This page asks the network for nothing."
