"""Checks the compactions of a session against the facts of what they replaced, also those of an agent itself."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from foldline import _core
from foldline._core import LiveSnapshot, TokenCounter
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, UnknownModelError
from foldline.folding.result import FoldInput, FoldResult
from foldline.reading import read
from foldline.typing import Completion, CountKind, StoredCompaction, StoredTranscript

__all__ = ["CODES", "Audit", "Finding", "FoldAudit", "Loss", "audit", "audits", "counter_of", "result_of"]

Severity: TypeAlias = Literal["lost", "warn"]

#: Every code with its severity and the kinds of facts that it covers, worst first.
CODES: dict[str, tuple[Severity, tuple[str, ...]]] = {
    "request_lost": ("lost", ("task", "request", "question", "open_task")),
    "constraint_lost": ("lost", ("constraint", "correction", "statement")),
    "error_open": ("lost", ("error",)),
    "file_changed_lost": ("lost", ("modified_file",)),
    "file_absent": ("lost", ("read_file",)),
    "pin_lost": ("lost", ()),
    "command_lost": ("warn", ("command",)),
    "read_again": ("warn", ()),
    "read_superseded": ("warn", ()),
}

#: Actions of a call that show a file, and that change it.
_READS = ("read",)
_CHANGES = ("edited", "written", "created", "moved", "deleted")

_ALL_CHARS = 1 << 30


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that a compaction lost, or that cost again.

    Attributes:
        message: Index of its message in the transcript.
        text: The fact, or the path.
        note: Where it was read again, if it was.
        tokens: Tokens of reading it again.
    """

    message: int | None
    text: str
    note: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a compaction lost of one kind.

    Attributes:
        code: A code of `CODES`.
        severity: ``"lost"``, or ``"warn"`` where nothing may be lost.
        of: How many of this kind there were.
        losses: Those that are lost, by message.
    """

    code: str
    severity: Severity
    of: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldAudit:
    """A compaction against the facts of what it replaced.

    Attributes:
        before: Index of the message before which it took place.
        by: ``"agent"``, or ``"foldline"`` for a summary with its label.
        trigger: ``"auto"`` or ``"manual"``, if recorded.
        time: When it took place, if recorded.
        tokens_before: Tokens of the replaced messages.
        tokens_after: Tokens of what replaced them.
        reported_before: Tokens of the whole context before, as the session recorded it.
        kind: The kind of both counts.
        kept: Facts that the context after it holds.
        lost: Facts that it lacks.
        since_tokens: Tokens of the messages since.
        findings: The findings, worst first; those without a loss too.
        entries: The first and last entry of the replaced messages in the file.
        unreadable: Why it cannot be read: ``"encrypted"``, or ``"no_summary"``.
    """

    before: int
    by: Literal["agent", "foldline"]
    trigger: str | None
    time: str | None
    tokens_before: int
    tokens_after: int
    reported_before: int | None
    kind: CountKind
    kept: int
    lost: int
    since_tokens: int
    findings: tuple[Finding, ...]
    entries: tuple[int, int] | None = None
    unreadable: str | None = None

    def fails(self, severity: Literal["lost", "warn", "never"] = "lost") -> bool:
        """Whether anything is found at a severity, or the compaction cannot be read."""
        if severity == "never":
            return False
        worst = ("lost",) if severity == "lost" else ("lost", "warn")
        return self.unreadable is not None or any(each.losses and each.severity in worst for each in self.findings)


@dataclass(frozen=True, slots=True)
class Audit:
    """The compactions of a session.

    Attributes:
        id: Id of the session.
        program: The program that wrote it.
        messages: Number of its messages.
        folds: Its compactions, in order.
    """

    id: str
    program: str
    messages: int
    folds: tuple[FoldAudit, ...]

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON-ready values."""
        return dataclasses.asdict(self)

    def __repr__(self) -> str:
        lost = sum(fold.lost for fold in self.folds)
        return f"Audit({len(self.folds)} compactions of {self.messages:,} messages, {lost} facts lost)"


def audit(
    source: StoredTranscript | str | os.PathLike[str],
    *,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
) -> Audit:
    """Checks every compaction of a session against the facts of the messages that it replaced.

    A fact is lost if the context after the compaction does not hold it: neither the summary nor a message that
    stayed. That a file is read again proves no forgetting; its tokens are told.

    Args:
        source: The session, or the path of its file.
        counter: Token counter. Default: that of the session's model, else `o200k_base`.

    Raises:
        ConfigError: The file holds no session, or several.
        OSError: The file cannot be read.
    """
    if isinstance(source, StoredTranscript):
        return _audited(source, counter)
    found = list(audits(Path(source), counter=counter))
    if len(found) != 1:
        raise ConfigError(f"the file holds {len(found)} sessions, not one", code="bad_session", path="source")
    return found[0]


def audits(
    path: str | os.PathLike[str], *, counter: TokenCounter | str | Callable[[str], int] | None = None
) -> Iterable[Audit]:
    """The audits of the main conversations of a file or folder.

    Raises:
        OSError: The file cannot be read.
    """
    for transcript in read(Path(path)):
        if "#" not in transcript.id:
            yield _audited(transcript, counter)


def _audited(transcript: StoredTranscript, counter: TokenCounter | str | Callable[[str], int] | None) -> Audit:
    known = counter_of(transcript) if counter is None else as_counter(counter)
    prepared = _core.prepare(transcript.messages, known, tools=None, format=transcript.format)
    calls: list[dict[str, Any]] = json.loads(_core.calls(prepared))
    compactions = list(transcript.compactions) or _own_folds(prepared)
    folds = []
    for number, compaction in enumerate(compactions):
        start = compactions[number - 1].before if number else 0
        is_last = number + 1 == len(compactions)
        end = len(prepared) if is_last else compactions[number + 1].before
        folds.append(_fold(transcript, prepared, calls, compaction, start, end))
    program = str(transcript.meta.get("session_format", transcript.format))
    return Audit(transcript.id, program, len(prepared), tuple(folds))


def counter_of(transcript: StoredTranscript) -> TokenCounter:
    """The counter of the session's newest model."""
    model = next((each.model for each in reversed(transcript.usage) if each.model), None)
    try:
        return TokenCounter("o200k_base") if model is None else TokenCounter.for_model(model)
    except UnknownModelError:
        return TokenCounter("o200k_base")


def _own_folds(prepared: LiveSnapshot) -> list[StoredCompaction]:
    """The library's own folds in a list: their messages are gone, and only what they say of themselves is known."""
    return [StoredCompaction(index) for index in prepared.summaries()]


def _fold(
    transcript: StoredTranscript,
    prepared: LiveSnapshot,
    calls: Sequence[dict[str, Any]],
    compaction: StoredCompaction,
    start: int,
    end: int,
) -> FoldAudit:
    before = compaction.before
    outline = _core.outline(prepared, _ALL_CHARS)
    tokens: list[int] = prepared.per_message.tolist()
    written = _written(transcript, compaction)
    first_kept = _first_kept(transcript, compaction, before)
    summaries = [i for i in _summary_messages(transcript, before) if i < end]
    kept_texts = [outline[i][1] for i in range(first_kept, before)]
    text = "\n\n".join([*written, *(outline[i][1] for i in summaries), *kept_texts])
    counter = prepared.counter
    after = sum(counter.count(each) for each in written) + sum(tokens[i] for i in summaries)
    replaced = list(range(start, first_kept))
    unreadable = None
    if compaction.is_encrypted:
        unreadable = "encrypted"
    elif not text.strip():
        unreadable = "no_summary"
    checked = json.loads(prepared.evidence(replaced).check("" if unreadable else text, counter.count))
    is_own = any(outline[i][1].startswith(_core.SUMMARY_LABEL) for i in summaries)
    since = range(max([before, *(i + 1 for i in summaries)]), end)
    findings: tuple[Finding, ...] = ()
    if unreadable is None:
        evidence = json.loads(prepared.evidence(replaced).to_json())
        index_of = {number: index for index, number in enumerate(prepared.numbers()) if number is not None}
        found = [_lost(code, checked, evidence, calls, since, index_of) for code in CODES]
        findings = (*(each for each in found if each is not None), *_rereads(calls, range(start, before), since))
        findings = tuple(sorted(findings, key=lambda each: list(CODES).index(each.code)))
    sources = transcript.meta.get("sources")
    entries = None
    if isinstance(sources, list) and replaced and len(sources) == len(prepared):
        of_replaced = [entry for i in replaced for entry in sources[i]]
        entries = (min(of_replaced), max(of_replaced)) if of_replaced else None
    return FoldAudit(
        before=before,
        by="foldline" if is_own else "agent",
        trigger=compaction.trigger,
        time=compaction.time,
        tokens_before=sum(tokens[i] for i in replaced),
        tokens_after=after,
        reported_before=compaction.tokens_before,
        kind=prepared.kind,
        kept=0 if unreadable else len(checked["kept"]),
        lost=0 if unreadable else len(checked["dropped"]),
        since_tokens=sum(tokens[i] for i in since),
        findings=findings,
        entries=entries,
        unreadable=unreadable,
    )


def _summary_messages(transcript: StoredTranscript, before: int) -> list[int]:
    """The messages directly after a boundary that are its summary."""
    known = set(transcript.meta.get("summaries", ()))
    found = []
    while before in known:
        found.append(before)
        before += 1
    return found


def _written(transcript: StoredTranscript, compaction: StoredCompaction) -> list[str]:
    """Texts of the context after a compaction that are no messages: a summary beside them, repeated requests."""
    found = [compaction.summary] if compaction.summary else []
    entries = transcript.meta.get("entries")
    if compaction.entry is None or not isinstance(entries, list):
        return found
    payload = entries[compaction.entry].get("payload")
    if isinstance(payload, dict) and isinstance(payload.get("replacement_history"), list):
        found += list(_texts_in(payload["replacement_history"]))
    return found


def _texts_in(value: Any) -> Iterable[str]:
    """The texts of provider items."""
    if isinstance(value, dict):
        text = value.get("text")
        if isinstance(text, str):
            yield text
        value = value.get("content")
    if isinstance(value, list):
        for item in value:
            yield from _texts_in(item)


def _first_kept(transcript: StoredTranscript, compaction: StoredCompaction, before: int) -> int:
    """The first message before the boundary that stayed in the context: pi names it."""
    entries, ids = transcript.meta.get("entries"), transcript.meta.get("entry_ids")
    if compaction.entry is None or not isinstance(entries, list) or not isinstance(ids, list):
        return before
    kept = entries[compaction.entry].get("firstKeptEntryId")
    return next((i for i, names in enumerate(ids[:before]) if kept in names), before) if kept else before


def _lost(
    code: str,
    checked: dict[str, Any],
    evidence: dict[str, Any],
    calls: Sequence[dict[str, Any]],
    since: range,
    index_of: dict[int, int],
) -> Finding | None:
    severity, kinds = CODES[code]
    facts = [fact for name in ("kept", "dropped") for fact in checked[name] if fact["kind"] in kinds]
    if not facts:
        return None
    dropped = [fact for fact in checked["dropped"] if fact["kind"] in kinds]
    if code == "error_open":
        resolved = {each["message"] for each in evidence.get("errors", ()) if each["is_resolved"]}
        dropped = [fact for fact in dropped if fact["message"] not in resolved]
    is_file = code in ("file_absent", "file_changed_lost")
    losses = []
    for fact in dropped:
        note = _read_at(fact["text"], calls, since) if is_file else ""
        message = index_of.get(fact["message"]) if fact["message"] is not None else None
        losses.append(Loss(message, fact["text"], note))
    return Finding(code, severity, len(facts), tuple(losses))


def result_of(transcript: StoredTranscript, number: int, counter: TokenCounter) -> tuple[FoldResult, StoredTranscript]:
    """A compaction of a session as the result of a fold, and the messages that it replaced as a transcript."""
    compaction = transcript.compactions[number]
    start = transcript.compactions[number - 1].before if number else 0
    end = compaction.before
    messages = transcript.messages[start:end]
    sources = transcript.meta.get("sources")
    meta = dict(transcript.meta)
    meta["sources"] = sources[start:end] if isinstance(sources, list) else None
    usage = [dataclasses.replace(each, message=each.message - start) for each in transcript.usage]
    of_these = tuple(each for each in usage if 0 <= each.message < len(messages))
    replaced = StoredTranscript(transcript.id, transcript.format, messages, meta, of_these)
    prepared = _core.prepare(messages, counter, tools=None, format=transcript.format)
    kept = _first_kept(transcript, compaction, end) - start
    summaries = [transcript.messages[i] for i in _summary_messages(transcript, end)]
    told = _core.prepare(summaries, counter, tools=None, format=transcript.format)
    texts = [*_written(transcript, compaction), *(text for _, text, _, _ in _core.outline(told, _ALL_CHARS))]
    text = "\n\n".join(texts)
    evidence = json.loads(prepared.evidence(list(range(kept))).check(text, counter.count))
    tokens: list[int] = prepared.per_message.tolist()
    new = [*summaries, *messages[kept:]]
    after = sum(told.per_message.tolist()) + sum(tokens[kept:]) + prepared.overhead
    if not summaries and text:
        new = [{"role": "user", "content": text}, *new]
        after += counter.count(text)
    stayed = range(kept, len(messages))
    result = FoldResult(
        messages=new,
        outcome="folded",
        reason=compaction.trigger or "requested",
        tokens_before=prepared.total_tokens,
        tokens_after=after,
        sources=(*[None] * (len(new) - len(stayed)), *stayed),
        summary=text,
        completions=(Completion(text, next((u.model for u in reversed(of_these) if u.model), None) or "the agent"),),
        evidence=evidence,
        kind=prepared.kind,
        given=FoldInput(messages, counter, None, transcript.format),
    )
    return result, replaced


def same_file(a: str, b: str) -> bool:
    """Whether two paths name one file on one root: equal, or one is the end of the other."""
    a, b = a.strip().removeprefix("./"), b.strip().removeprefix("./")
    return a == b or a.endswith("/" + b) or b.endswith("/" + a)


def _read_at(path: str, calls: Sequence[dict[str, Any]], since: range) -> str:
    for call in calls:
        if call["message"] in since and any(
            action in _READS and same_file(path, other) for action, other in call["files"]
        ):
            return f"read again at {call['message']}"
    return ""


def _rereads(calls: Sequence[dict[str, Any]], replaced: range, since: range) -> list[Finding]:
    """Files that were read before the compaction and again after it: those that had changed meanwhile apart."""
    known: dict[str, tuple[int, bool]] = {}
    reads = 0
    again: dict[str, list[Loss]] = {"read_again": [], "read_superseded": []}
    for call in calls:
        for action, path in call["files"]:
            name = next((each for each in known if same_file(each, path)), path)
            if action in _CHANGES and name in known:
                known[name] = (known[name][0], True)
            if action not in _READS:
                continue
            if call["message"] in replaced:
                reads += name not in known
                known[name] = (call["message"], False)
            elif call["message"] in since and name in known:
                first, is_changed = known[name]
                code = "read_superseded" if is_changed else "read_again"
                again[code].append(Loss(call["message"], path, f"first read at {first}", call["tokens"]))
    return [
        Finding(code, CODES[code][0], reads, tuple(sorted(losses, key=lambda each: -each.tokens)))
        for code, losses in again.items()
        if reads
    ]
