"""The compactions of a session, one after another: what each took out of the context, and what stood there after it.

Programs record them in different ways. Claude Code puts a summary among the messages; Codex records the items that it
put in place; pi names the first entry that stays; the stores of foldline list the whole context. What a later
compaction replaces is what the earlier ones left, with the messages since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from foldline import _core
from foldline._core import LiveSnapshot
from foldline.typing import StoredCompaction, StoredTranscript

__all__ = ["ALL_CHARS", "Step", "is_own", "steps_of", "texts_of"]

#: More characters than any message has.
ALL_CHARS = 1 << 30

#: A message of a context: its index in the session, or a message that is not in it.
Place: TypeAlias = "int | Mapping[str, Any]"


@dataclass(frozen=True, slots=True)
class Step:
    """A compaction with the contexts before and after it.

    Attributes:
        compaction: What the session recorded of it.
        context: Indices of the messages in the context before it.
        after: The context after it, in order: indices of messages that stayed or that are its summary, and messages
            that the session holds elsewhere.
        written: Texts of the context after it that are no messages, such as a summary beside them.
        carried: Messages that an earlier compaction had left in place before its own cut: they were pinned.
        end: Index of the first message after the next compaction; of the last one the number of messages.
        is_own: Whether foldline made it.
        trigger: What started it, if its entry says that.
    """

    compaction: StoredCompaction
    context: tuple[int, ...]
    after: tuple[Place, ...]
    written: tuple[str, ...]
    carried: frozenset[int]
    end: int
    is_own: bool
    trigger: str | None = None

    @property
    def before(self) -> int:
        """Index of the message before which it took place."""
        return self.compaction.before

    @property
    def stayed(self) -> list[int]:
        """Indices of the messages that stayed."""
        known = set(self.context)
        return [place for place in self.after if isinstance(place, int) and place in known]

    @property
    def replaced(self) -> list[int]:
        """Indices of the messages that left the context."""
        stayed = set(self.stayed)
        return [i for i in self.context if i not in stayed]

    @property
    def summaries(self) -> list[int]:
        """Indices of the messages after it that are its summary."""
        return [place for place in self.after if isinstance(place, int) and place >= self.before]

    @property
    def new(self) -> list[Mapping[str, Any]]:
        """Messages of the context after it that the session holds elsewhere."""
        return [place for place in self.after if not isinstance(place, int)]

    @property
    def since(self) -> range:
        """The messages since, up to the next compaction."""
        return range(max([self.before, *(i + 1 for i in self.summaries)]), self.end)

    @property
    def is_new(self) -> list[bool]:
        """For each message of `messages_after`, whether it was not in the context before."""
        stayed = set(self.stayed)
        flags = [not (isinstance(place, int) and place in stayed) for place in self.after]
        return [True, *flags] if self.written else flags

    def messages_after(self, transcript: StoredTranscript) -> list[Any]:
        """The context after it as messages; texts that are no messages come first, as one."""
        found: list[Any] = [transcript.messages[place] if isinstance(place, int) else place for place in self.after]
        if self.written:
            found.insert(0, {"role": "user", "content": "\n\n".join(self.written)})
        return found


def steps_of(transcript: StoredTranscript, prepared: LiveSnapshot) -> list[Step]:
    """The compactions of a session in order. O(messages of all contexts)."""
    known = {name: i for i, names in enumerate(transcript.meta.get("entry_ids") or ()) for name in names}
    found: list[Step] = []
    context: list[int] = []
    carried: set[int] = set()
    for number, compaction in enumerate(transcript.compactions):
        earlier = found[-1] if found else None
        start = earlier.before if earlier else 0
        present = set(context)
        context = [*context, *(i for i in range(start, compaction.before) if i not in present)]
        is_last = number + 1 == len(transcript.compactions)
        end = len(prepared) if is_last else transcript.compactions[number + 1].before
        entry = _entry(transcript, compaction)
        after, written = _after(transcript, compaction, entry, context, known, end)
        trigger = entry.get("trigger")
        step = Step(
            compaction,
            tuple(context),
            tuple(after),
            tuple(written),
            frozenset(carried),
            end,
            _is_of_foldline(entry),
            trigger if isinstance(trigger, str) else None,
        )
        found.append(step)
        context = step.stayed
        replaced = step.replaced
        carried = {i for i in context if replaced and i < replaced[-1]}
    return found


def _entry(transcript: StoredTranscript, compaction: StoredCompaction) -> Mapping[str, Any]:
    """The entry of a compaction; empty without one."""
    entries = transcript.meta.get("entries")
    if compaction.entry is None or not isinstance(entries, list):
        return {}
    entry = entries[compaction.entry]
    return entry if isinstance(entry, Mapping) else {}


def is_own(transcript: StoredTranscript) -> bool:
    """Whether a session is one of foldline's own stores."""
    entries = transcript.meta.get("entries")
    header = entries[0] if isinstance(entries, list) and entries else None
    return transcript.meta.get("session_format") == "foldline" or (isinstance(header, Mapping) and "foldline" in header)


def _is_of_foldline(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("context"), list)


def _after(
    transcript: StoredTranscript,
    compaction: StoredCompaction,
    entry: Mapping[str, Any],
    context: Sequence[int],
    known: Mapping[str, int],
    end: int,
) -> tuple[list[Place], list[str]]:
    """The context after a compaction, and the texts of it that are no messages."""
    if _is_of_foldline(entry):
        return _listed(entry["context"], known), []
    summaries: list[Place] = [i for i in _summary_messages(transcript, compaction.before) if i < end]
    first = known.get(str(entry.get("firstKeptEntryId")))
    kept = [] if first is None else [i for i in context if i >= first]
    written = [compaction.summary] if compaction.summary else []
    payload = entry.get("payload")
    if isinstance(payload, Mapping) and isinstance(payload.get("replacement_history"), list):
        written += _texts_in(payload["replacement_history"])
    return [*summaries, *kept], written


def _listed(listed: Sequence[Any], known: Mapping[str, int]) -> list[Place]:
    """A context as a store of foldline lists it: an id, and the message if it is new or was edited."""
    found: list[Place] = []
    for each in listed:
        message = each.get("message")
        if message is not None:
            found.append(message)
        elif each.get("id") in known:
            found.append(known[each["id"]])
    return found


def _summary_messages(transcript: StoredTranscript, before: int) -> list[int]:
    """The messages directly after a boundary that are its summary."""
    known = set(transcript.meta.get("summaries", ()))
    found = []
    while before in known:
        found.append(before)
        before += 1
    return found


def _texts_in(value: Any) -> Iterable[str]:
    """The texts of provider items."""
    if isinstance(value, Mapping):
        text = value.get("text")
        if isinstance(text, str):
            yield text
        value = value.get("content")
    if isinstance(value, list):
        for item in value:
            yield from _texts_in(item)


def texts_of(prepared: LiveSnapshot) -> list[str]:
    """The text of each message."""
    return [text for _, text, _, _ in _core.outline(prepared, ALL_CHARS)]
