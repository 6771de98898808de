"""Folds a framework's messages: to dicts, through the compactor, and back by ``sources``."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from foldline.compactor import CompactionResult, Compactor
from foldline.errors import ConfigError, FoldlineError, FoldlineWarning
from foldline.integrations._codec import Codec
from foldline.typing import Message, Messages

__all__ = ["Folded", "Folder"]

#: Sessions whose conversions are kept. Without one a session is converted once more, and folds as before.
_MAX_SESSIONS = 64


@dataclass(frozen=True, slots=True)
class Folded:
    """The messages of a request.

    Attributes:
        messages: The framework's own objects; the list that was given if nothing is folded.
        edited: The new messages among them that replace one of the originals: cleared, shortened, or split in two.
        result: What the compactor returned; None if the messages could not be read.
        error: Why they could not be read.
    """

    messages: list[Any]
    edited: list[Any] = field(default_factory=list)
    result: CompactionResult | None = None
    error: FoldlineError | None = None

    @property
    def changed(self) -> bool:
        """Whether the messages differ from those given."""
        return self.result is not None and self.result.changed


@dataclass(frozen=True, slots=True)
class _Converted:
    """A message with its dicts, and the values of its attributes when it was converted."""

    message: Any
    values: tuple[Any, ...]
    dicts: tuple[Message, ...]


@dataclass(slots=True)
class _Memory:
    """The conversions of the last call of a session, each by the identity of its object."""

    converted: dict[int, _Converted] = field(default_factory=dict)
    #: New messages by the dicts they come from, which are kept, so that no identity is used twice.
    built: dict[tuple[int, ...], tuple[Any, Any]] = field(default_factory=dict)


class Folder:
    """Prepares the requests of a framework. Thread-safe.

    Each message is converted once, and again only if one of its attributes was replaced. The memory of folds is the
    compactor's (`Compactor.prepare`).

    Args:
        codec: Converts the messages.
        compactor: Folds.
        pins: Predicates over the framework's messages. A summary is never pinned.
    """

    def __init__(self, codec: Codec, compactor: Compactor, pins: Iterable[Callable[[Any], bool]] = ()) -> None:
        self.codec = codec
        self.compactor = compactor
        self.pins = tuple(pins)
        self._memories: OrderedDict[Hashable, _Memory] = OrderedDict()
        self._lock = threading.Lock()

    def fold(
        self,
        messages: Iterable[Any],
        *,
        session: str | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
        force: bool = False,
    ) -> Folded:
        """The messages of the next request for a whole history, or for a list that was folded before.

        A failure leaves the messages unchanged, with a warning, unless the compactor's ``on_failure`` is ``"raise"``.

        Raises:
            ConfigError: An option is out of range.
            FoldlineError: With ``on_failure="raise"``, the failure.
        """
        call = _Call(self, list(messages), session)
        try:
            result = self.compactor.prepare(
                call.dicts, session=session, pins=call.pins, tools=tools or None, system=system or None, force=force
            )
        except FoldlineError as error:
            return self._failed(call, error)
        return call.ended(result)

    async def afold(
        self,
        messages: Iterable[Any],
        *,
        session: str | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
        force: bool = False,
    ) -> Folded:
        """`fold` without blocking the event loop."""
        call = _Call(self, list(messages), session)
        try:
            result = await self.compactor.aprepare(
                call.dicts, session=session, pins=call.pins, tools=tools or None, system=system or None, force=force
            )
        except FoldlineError as error:
            return self._failed(call, error)
        return call.ended(result)

    def _failed(self, call: _Call, error: FoldlineError) -> Folded:
        if isinstance(error, ConfigError) or self.compactor.on_failure == "raise":
            raise error
        warnings.warn(f"not compacted, the messages are unchanged: {error}", FoldlineWarning, stacklevel=4)
        return Folded(call.messages, error=error)

    def _memory(self, session: str | None) -> _Memory:
        with self._lock:
            memory = self._memories.setdefault(session, _Memory())
            self._memories.move_to_end(session)
            while len(self._memories) > _MAX_SESSIONS:
                self._memories.popitem(last=False)
            return memory

    def _remember(self, session: str | None, memory: _Memory) -> None:
        with self._lock:
            self._memories[session] = memory


class _Call:
    """One request: the messages, their dicts, and which message each dict belongs to."""

    def __init__(self, folder: Folder, messages: list[Any], session: str | None) -> None:
        self.folder = folder
        self.messages = messages
        self.session = session
        self.before = folder._memory(session)
        self.after = _Memory()
        self.converted = [self._converted(message) for message in messages]
        #: For each dict: the index of its message, and its place among that message's dicts.
        self.owners = [(i, place) for i, each in enumerate(self.converted) for place in range(len(each.dicts))]
        self.dicts: list[Message] = [message for each in self.converted for message in each.dicts]

    def _converted(self, message: Any) -> _Converted:
        key, values = id(message), _values_of(message)
        known = self.before.converted.get(key)
        is_known = (
            known is not None
            and known.message is message
            and len(known.values) == len(values)
            and all(old is new for old, new in zip(known.values, values))
        )
        if known is None or not is_known:
            known = _Converted(message, values, tuple(self.folder.codec.dicts(message)))
        self.after.converted[key] = known
        return known

    @property
    def pins(self) -> Sequence[Callable[[Any], bool]]:
        """The predicates, over dicts."""
        predicates = self.folder.pins
        if not predicates:
            return ()
        message_of = {id(found): self.messages[i] for found, (i, _) in zip(self.dicts, self.owners)}

        def is_pinned(found: Any) -> bool:
            message = message_of[id(found)]
            return any(predicate(message) for predicate in predicates)

        return (is_pinned,)

    def ended(self, result: CompactionResult) -> Folded:
        """The request, as the framework's own objects."""
        folded = Folded(self.messages, result=result)
        if result.changed:
            folded = self._restored(result)
        self.folder._remember(self.session, self.after)
        return folded

    def _restored(self, result: CompactionResult) -> Folded:
        new: list[Any] = []
        edited: list[Any] = []
        owner: int | None = None
        kept: list[tuple[int, Message]] = []

        def close() -> None:
            if owner is None:
                return
            known = self.converted[owner]
            is_whole = len(kept) == len(known.dicts) and all(known.dicts[at] is each for at, each in kept)
            message = known.message if is_whole else self._edited(known, tuple(kept))
            new.append(message)
            if not is_whole:
                edited.append(message)

        for message, source in zip(result.messages, result.sources):
            index, place = (None, 0) if source is None else self.owners[source]
            if index is None or index != owner:
                close()
                owner, kept = index, []
            if index is None:
                new.append(self._built((id(message),), message, partial(self.folder.codec.summary, message)))
            else:
                kept.append((place, message))
        close()
        return Folded(new, edited, result)

    def _edited(self, known: _Converted, kept: tuple[tuple[int, Message], ...]) -> Any:
        key = (id(known.message), *(number for at, each in kept for number in (at, id(each))))
        make = self.folder.codec.edited
        return self._built(key, (known, kept), lambda: make(known.message, known.dicts, kept))

    def _built(self, key: tuple[int, ...], held: Any, make: Callable[[], Any]) -> Any:
        """A new message, the same one at each call."""
        found = self.before.built.get(key)
        if found is None:
            found = self.after.built.get(key) or (held, make())
        self.after.built[key] = found
        return found[1]


def _values_of(message: Any) -> tuple[Any, ...]:
    """The attributes of a message, to notice that one was replaced."""
    if isinstance(message, dict):
        return tuple(message.values())
    members = getattr(message, "__dict__", None)
    if members is not None:
        return tuple(members.values())
    names = [name for each in type(message).__mro__ for name in getattr(each, "__slots__", ())]
    return tuple(getattr(message, name, None) for name in names)
