"""Checks the compactions of a session against the facts of what they replaced, also those of an agent itself."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from foldline import _core
from foldline._core import LiveSnapshot, TokenCounter
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, UnknownModelError
from foldline.folding.result import FoldInput, FoldResult
from foldline.reading import read
from foldline.report._steps import Step, is_own, steps_of, texts_of
from foldline.typing import Completion, CountKind, StoredTranscript

if TYPE_CHECKING:
    from foldline.stores.jsonl import JsonlSession
    from foldline.stores.memory import MemoryStore
    from foldline.stores.sql import SqlStore

__all__ = ["CODES", "Audit", "Finding", "FoldAudit", "Loss", "audit", "audits", "counter_of", "result_of"]

Severity: TypeAlias = Literal["lost", "warn"]
Unreadable: TypeAlias = Literal["encrypted", "no_summary", "no_originals"]

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

#: The least length of an answer that is looked for by its words: shorter ones stand in any text.
_ANSWER_CHARS = 12

#: The marks of emphasis and code, which a summary may put around the words of an answer.
_MARKUP = str.maketrans("", "", "*_`")

#: The note of a lost command that tested or checked something.
CHECK = "check"


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that a compaction lost, or that cost again.

    Attributes:
        message: Index of its message in the transcript; of a list whose originals are elsewhere, in these.
        text: The fact, or the path.
        note: Where it was read again, if it was; ``"check"`` for a command that tested or checked something.
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
        unreadable: Why it cannot be read: ``"encrypted"``, ``"no_summary"``, or ``"no_originals"``: neither the
            messages that it replaced nor their facts are in the file.
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
    unreadable: Unreadable | None = None

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
    source: StoredTranscript | JsonlSession | SqlStore | MemoryStore | str | os.PathLike[str],
    *,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
) -> Audit:
    """Checks every compaction of a session against the facts of the messages that it replaced.

    A fact is lost if the context after the compaction does not hold it: neither the summary nor a message that
    stayed. That a file is read again proves no forgetting; the tokens of it are given.

    Args:
        source: The session, its store, or the path of its file.
        counter: Token counter. Default: that of the session's model, else `o200k_base`.

    Raises:
        ConfigError: The file holds no session, or several; it is no store of foldline.
        StoreError: The store cannot be read.
        OSError: The file cannot be read.
    """
    if isinstance(source, StoredTranscript):
        return _audited(source, counter)
    if not isinstance(source, (str, os.PathLike)):
        from foldline.report._sessions import of_store

        return _audited(of_store(source), counter)
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
    session = _Session(
        transcript=transcript,
        prepared=prepared,
        calls=calls,
        outline=texts_of(prepared),
        tokens=prepared.per_message.tolist(),
        index_of={number: index for index, number in enumerate(prepared.numbers()) if number is not None},
    )
    folds = [_fold(session, step) for step in steps_of(transcript, prepared)]
    if not folds:
        folds = own_folds(transcript, prepared)
    program = "foldline" if is_own(transcript) else str(transcript.meta.get("session_format", transcript.format))
    return Audit(transcript.id, program, len(prepared), tuple(folds))


def counter_of(transcript: StoredTranscript) -> TokenCounter:
    """The counter of the session's newest model."""
    model = next((each.model for each in reversed(transcript.usage) if each.model), None)
    try:
        return TokenCounter("o200k_base") if model is None else TokenCounter.for_model(model)
    except UnknownModelError:
        return TokenCounter("o200k_base")


@dataclass(frozen=True, slots=True)
class _Session:
    """A transcript with what every fold of it is checked against.

    Attributes:
        transcript: The transcript.
        prepared: Its messages.
        calls: Its calls.
        outline: The text of each message.
        tokens: The tokens of each message.
        index_of: The index of each message by its number in facts.
    """

    transcript: StoredTranscript
    prepared: LiveSnapshot
    calls: Sequence[dict[str, Any]]
    outline: Sequence[str]
    tokens: Sequence[int]
    index_of: dict[int, int]


def _fold(session: _Session, step: Step) -> FoldAudit:
    transcript, prepared, outline, tokens = session.transcript, session.prepared, session.outline, session.tokens
    compaction, counter = step.compaction, prepared.counter
    new = _core.prepare(step.new, counter, tools=None, format=transcript.format)
    of_summary = [*step.written, *texts_of(new), *(outline[i] for i in step.summaries)]
    text = "\n\n".join([*of_summary, *(outline[i] for i in step.stayed)])
    after = sum(counter.count(each) for each in step.written)
    after += sum(new.per_message.tolist()) + sum(tokens[i] for i in step.summaries)
    replaced = step.replaced
    unreadable: Unreadable | None = None
    if compaction.is_encrypted:
        unreadable = "encrypted"
    elif not text.strip():
        unreadable = "no_summary"
    checked = _checked(prepared, replaced, "" if unreadable else text)
    findings: tuple[Finding, ...] = ()
    if unreadable is None:
        evidence = json.loads(prepared.evidence(replaced).to_json())
        calls = session.calls
        found = [_lost(code, checked, evidence, calls, step.since, session.index_of) for code in CODES]
        found += [_pins(step, calls, outline, text), *_rereads(calls, set(replaced), step.since)]
        findings = in_order(each for each in found if each is not None)
    sources = transcript.meta.get("sources")
    entries = None
    if isinstance(sources, list) and replaced and len(sources) == len(prepared):
        of_replaced = [entry for i in replaced for entry in sources[i]]
        entries = (min(of_replaced), max(of_replaced)) if of_replaced else None
    return FoldAudit(
        before=step.before,
        by="foldline" if step.is_own or any(each.startswith(_core.SUMMARY_LABEL) for each in of_summary) else "agent",
        trigger=compaction.trigger or step.trigger,
        time=compaction.time,
        tokens_before=sum(tokens[i] for i in replaced),
        tokens_after=after,
        reported_before=compaction.tokens_before,
        kind=prepared.kind,
        kept=0 if unreadable else len(checked["kept"]),
        lost=0 if unreadable else len(checked["dropped"]),
        since_tokens=sum(tokens[i] for i in step.since),
        findings=findings,
        entries=entries,
        unreadable=unreadable,
    )


def own_folds(transcript: StoredTranscript, prepared: LiveSnapshot) -> list[FoldAudit]:
    """Folds of foldline in a list whose replaced messages are elsewhere, such as an output of ``foldline compact``.

    The facts are those that its record reports; without them there is nothing to check.
    """
    places = prepared.summaries()
    meta = transcript.meta
    found = []
    for number, place in enumerate(places):
        facts = meta.get("facts") if number + 1 == len(places) and meta.get("status") == "folded" else None
        tokens = int(prepared.per_message[place])
        before, findings, counts = 0, list[Finding](), {"kept": 0, "added": 0, "dropped": 0}
        if isinstance(facts, dict):
            # What left is what the request lost, and the summary that it gained.
            before = (meta.get("tokens_before") or 0) - (meta.get("tokens_after") or 0) + tokens
            counts = {name: len(facts[name]) for name in counts}
            present = [*facts["kept"], *facts["added"]]
            for code, (severity, kinds) in CODES.items():
                lost = [Loss(each["message"], each["text"]) for each in facts["dropped"] if each["kind"] in kinds]
                of = len(lost) + sum(each["kind"] in kinds for each in present)
                if of:
                    findings.append(Finding(code, severity, of, tuple(lost)))
        found.append(
            FoldAudit(
                before=place,
                by="foldline",
                trigger=None,
                time=None,
                tokens_before=before,
                tokens_after=tokens,
                reported_before=None,
                kind=prepared.kind,
                kept=counts["kept"] + counts["added"],
                lost=counts["dropped"],
                since_tokens=sum(prepared.per_message[place + 1 :].tolist()),
                findings=tuple(findings),
                unreadable=None if isinstance(facts, dict) else "no_originals",
            )
        )
    return found


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings by code, worst first."""
    order = list(CODES)
    return tuple(sorted(findings, key=lambda each: order.index(each.code)))


def _pins(step: Step, calls: Sequence[dict[str, Any]], outline: Sequence[str], text: str) -> Finding | None:
    """Messages that an earlier compaction had pinned, and that are no longer in the context word for word."""
    # A call without a result stays without being pinned, and may go once its result is there.
    was_open = {call["message"] for call in calls if call["result"] not in step.carried}
    pinned = sorted(step.carried - was_open)
    if not pinned:
        return None
    stayed = set(step.stayed)
    lost = [i for i in pinned if i not in stayed and outline[i] not in text]
    return Finding("pin_lost", CODES["pin_lost"][0], len(pinned), tuple(Loss(i, outline[i]) for i in lost))


def _checked(prepared: LiveSnapshot, replaced: list[int], text: str) -> dict[str, Any]:
    """The facts of messages that a text holds and lacks.

    An answer of the user is a fact with its question. A text that has the words of the answer holds it, even if it
    tells the question in other words.
    """
    checked: dict[str, Any] = json.loads(prepared.evidence(replaced).check(text, prepared.counter.count))
    plain = _plain(text)
    answered = [fact for fact in checked["dropped"] if _is_answered(fact["text"], plain)]
    checked["dropped"] = [fact for fact in checked["dropped"] if fact not in answered]
    checked["kept"] = [*checked["kept"], *answered]
    return checked


def _is_answered(fact: str, plain: str) -> bool:
    """Whether a plain text has the words of an answer, which is the quotation at the end of a fact."""
    before, _, quoted = fact.removesuffix('"').rpartition('"')
    is_answer = fact.endswith('"') and (before.endswith("→ ") or before.startswith("Refused: "))
    words = _plain(quoted).rstrip(". ") if is_answer else ""
    return len(words) >= _ANSWER_CHARS and words in plain


def _plain(text: str) -> str:
    """A text in small letters, with single spaces and without emphasis."""
    return " ".join(text.translate(_MARKUP).casefold().split())


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
    checks = {each["message"] for each in evidence.get("commands", ()) if each["kind"] in ("check", "test")}
    losses = []
    for fact in dropped:
        note = _read_at(fact["text"], calls, since) if is_file else ""
        if code == "command_lost" and fact["message"] in checks:
            note = CHECK
        message = index_of.get(fact["message"]) if fact["message"] is not None else None
        losses.append(Loss(message, fact["text"], note))
    losses.sort(key=lambda loss: -1 if loss.message is None else loss.message)
    return Finding(code, severity, len(facts), tuple(losses))


def result_of(transcript: StoredTranscript, number: int, counter: TokenCounter) -> tuple[FoldResult, StoredTranscript]:
    """A compaction of a session as the result of a fold, and the context before it as a transcript."""
    whole = _core.prepare(transcript.messages, counter, tools=None, format=transcript.format)
    step = steps_of(transcript, whole)[number]
    place_of = {i: place for place, i in enumerate(step.context)}
    messages = [transcript.messages[i] for i in step.context]
    sources = transcript.meta.get("sources")
    meta = dict(transcript.meta)
    meta["sources"] = [sources[i] for i in step.context] if isinstance(sources, list) else None
    usage = tuple(
        dataclasses.replace(each, message=place_of[each.message])
        for each in transcript.usage
        if each.message in place_of
    )
    before = StoredTranscript(transcript.id, transcript.format, messages, meta, usage)
    prepared = _core.prepare(messages, counter, tools=None, format=transcript.format)
    after = step.messages_after(transcript)
    new = _core.prepare(after, counter, tools=None, format=transcript.format)
    stayed = iter(step.stayed)
    origins = [None if is_new else place_of[next(stayed)] for is_new in step.is_new]
    text = "\n\n".join(words for words, is_new in zip(texts_of(new), step.is_new) if is_new)
    replaced = [place_of[i] for i in step.replaced]
    evidence = _checked(prepared, replaced, text)
    writer = next((each.model for each in reversed(usage) if each.model), None) or "the agent"
    result = FoldResult(
        messages=after,
        outcome="folded",
        reason=step.compaction.trigger or "requested",
        tokens_before=prepared.total_tokens,
        tokens_after=sum(new.per_message.tolist()) + prepared.overhead,
        sources=tuple(origins),
        summary=text,
        completions=(Completion(text, "foldline" if step.is_own else writer),),
        evidence=evidence,
        kind=prepared.kind,
        given=FoldInput(messages, counter, None, transcript.format),
    )
    return result, before


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


def _rereads(calls: Sequence[dict[str, Any]], replaced: set[int], since: range) -> list[Finding]:
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
