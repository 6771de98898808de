"""One call of `Compactor.prepare`: from a whole history to the messages of the request."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from foldline import _core
from foldline._core import HistoryHashes, LiveSnapshot
from foldline.compactor._folds import Histories, History, StoredFold, View
from foldline.compactor._run import Asked, Save
from foldline.compactor.result import CompactionResult
from foldline.context.metadata import ROUND, Metadata
from foldline.strategies import StrategyResult
from foldline.typing import CompactionEvent, Messages

__all__ = ["HistoryCall"]

#: Makes the request to compact a view: its counted messages, pins, metadata, the history, and how a fold is saved.
AskedFor: TypeAlias = "Callable[[LiveSnapshot, tuple[int, ...], Metadata, History, Save], Asked]"


@dataclass(slots=True, kw_only=True)
class HistoryCall:
    """One call for a whole history. Used while the history's lock is held.

    Attributes:
        messages: The whole history.
        session: Its session; None without one.
        hashes: The hashes of its messages and prefixes.
        histories: The memory of all histories.
        history: The memory of this one.
        indices: Messages pinned by index.
        predicates: Messages for which one is true are pinned, summaries aside.
        lasting: The same for every call.
        unpinned: Remembered messages, and those of ``lasting``, for which one is true are not pinned.
        metadata: Metadata of the history.
        prepare: Counts a list.
        asked_for: Makes the request.
    """

    messages: Messages
    session: str | None
    hashes: HistoryHashes
    histories: Histories
    history: History
    indices: Iterable[int]
    predicates: Sequence[Callable[[Any], bool]]
    lasting: Sequence[Callable[[Any], bool]]
    unpinned: Sequence[Callable[[Any], bool]]
    metadata: Metadata
    prepare: Callable[[list[Any]], LiveSnapshot]
    asked_for: AskedFor
    _fold: StoredFold | None = None
    _view: View | None = None
    _prepared: LiveSnapshot | None = None
    _pins: tuple[int, ...] = ()
    _saved: StoredFold | None = None

    def asked(self) -> Asked:
        """The request to compact the view of the history that its known folds give.

        Raises:
            ConfigError: A pin is out of range.
            MessageError: A message cannot be read.
            StoreError: The folds of the store cannot be read.
        """
        self.histories.load(self.session, self.history)
        prefixes = self.hashes.prefixes
        self._pins = self._pinned()
        self._fold = fold = self.histories.longest(self.session, self.history, prefixes, self._pins)
        whole = View(list(self.messages), list(range(len(self.messages))))
        self._view = view = whole if fold is None else fold.view(self.messages)
        self._prepared = self.prepare(view.messages)
        if fold is not None:  # of another process, as after a restart
            self.history.session.round = max(self.history.session.round, fold.round)
        pinned = set(self._pins)
        places = tuple(place for place, source in enumerate(view.sources) if source in pinned)
        metadata = self.metadata.moved(view.sources)
        for place, (message, source) in enumerate(zip(view.messages, view.sources)):
            if source is None:
                metadata.set_origin(place, "compacted_synthetic")
                metadata.set(place, ROUND, 0 if fold is None else fold.round)
            elif message is not self.messages[source]:
                metadata.set_origin(place, "compacted_modified")
        return self.asked_for(self._prepared, places, metadata, self.history, self._save)

    def _pinned(self) -> tuple[int, ...]:
        """The pinned messages of the history, remembered for its next call."""
        count, summaries = len(self.messages), set(self.hashes.summaries)
        found = set()
        for index in self.indices:
            _core.check_pin(index, count, index in summaries)
            found.add(index)
        found |= self._matches(self.predicates, summaries)
        found |= {index for index in self.metadata if index < count and self.metadata.is_pinned(index)}
        history, known = self.history, self.history.pins
        if not history.knows_pins:
            # As after a restart. Where the history was changed since, no fold covers it, but its pins still hold.
            newest = history.folds[-1] if history.folds else None
            stored = self.histories.longest(self.session, history, self.hashes.prefixes) or newest
            known.add(() if stored is None else stored.pins)
        found |= known.find(self.hashes.messages, self.messages, self.unpinned)
        found |= self._without(self.unpinned, self._matches(self.lasting, summaries))
        known.replace(self.hashes.messages, found, passed=len(self.unpinned), is_part=True)
        history.knows_pins = True
        return tuple(sorted(found))

    def _without(self, predicates: Sequence[Callable[[Any], bool]], indices: set[int]) -> set[int]:
        return {i for i in indices if not any(each(self.messages[i]) for each in predicates)}

    def _matches(self, predicates: Sequence[Callable[[Any], bool]], summaries: set[int]) -> set[int]:
        listed = [(i, message) for i, message in enumerate(self.messages) if i not in summaries] if predicates else []
        return {i for i, message in listed if any(each(message) for each in predicates)}

    def _save(self, event: CompactionEvent, outcome: StrategyResult, ids: Sequence[int | str]) -> None:
        """Keeps a fold of the view as one of the history."""
        del ids
        view = self._through(outcome.messages, outcome.sources)
        fold = StoredFold.of(
            self.messages,
            view,
            self.hashes.prefixes,
            outcome="folded" if event.fallback is None else "fallback",
            reason=event.reason,
            round=event.round,
            covered_tokens=0,
            pins=tuple(self.history.pins.pairs()),
            dropped=self._dropped(outcome.dropped, view),
            summary=event.summary,
        )
        covered_tokens = self._tokens_before() - self._tokens_from(fold.covered)
        fold = dataclasses.replace(fold, covered_tokens=covered_tokens)
        self.histories.save(self.session, self.history, fold)
        self._saved = fold

    def _dropped(self, dropped: Sequence[int], view: View) -> tuple[int, ...]:
        """The messages of the history that are gone without a summary, with those of the known fold."""
        assert self._view is not None  # noqa: S101 - for the type checker: `asked` comes first
        sources = self._view.sources
        gone = {source for each in dropped if (source := sources[each]) is not None}
        gone |= set(() if self._fold is None else self._fold.dropped)
        return tuple(sorted(gone.difference(each for each in view.sources if each is not None)))

    def _through(self, messages: list[Any], sources: Sequence[int | None]) -> View:
        """A result for the view, with indices of the history."""
        assert self._view is not None  # noqa: S101 - for the type checker: `asked` comes first
        known = self._view.sources
        return View(messages, [None if source is None else known[source] for source in sources])

    def _tokens_before(self) -> int:
        """Tokens of the messages of the whole history."""
        if self._fold is None:
            return self._tokens_from(0)
        return self._fold.covered_tokens + self._tokens_from(self._fold.covered)

    def _tokens_from(self, index: int) -> int:
        """Tokens of the messages of the history from one on. They are the last of the view, too."""
        assert self._prepared is not None  # noqa: S101 - for the type checker: `asked` comes first
        place = len(self._prepared) - (len(self.messages) - index)
        return self._prepared.total_tokens - self._prepared.overhead - self._prepared.tokens_to(place)

    def result(self, result: CompactionResult) -> CompactionResult:
        """The result for the view, as one for the history."""
        view = self._through(result.messages, result.sources)
        fold = self._fold
        changes: dict[str, Any] = {"stored_fold": fold if self._saved is None else self._saved}
        if fold is not None:
            assert self._prepared is not None  # noqa: S101 - for the type checker: `asked` comes first
            around = result.tokens_before - (self._prepared.total_tokens - self._prepared.overhead)
            changes["tokens_before"] = self._tokens_before() + around
            changes["sources"] = tuple(view.sources)
            # Another reason, such as no_progress, says what came of the attempt to fold on.
            if result.reason == "not_triggered":
                changes |= {"outcome": fold.outcome, "reason": fold.reason, "summary": fold.summary}
        edited = tuple(
            source
            for message, source in zip(view.messages, view.sources)
            if source is not None and message is not self.messages[source]
        )
        dropped = self._dropped(result.dropped, view)
        pinned = set(self._pins)
        pins = tuple(place for place, source in enumerate(view.sources) if source in pinned)
        if result.given is not None:
            changes["given"] = dataclasses.replace(result.given, messages=list(self.messages))
        return dataclasses.replace(result, edited=edited, dropped=dropped, pins=pins, **changes)
