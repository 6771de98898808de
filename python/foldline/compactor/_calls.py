"""The arguments of one call of `compact` or `prepare`, checked and made into what the engine runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from foldline._core import HistoryHashes, LiveSnapshot, LiveTranscript
from foldline.compactor._folds import Histories, History
from foldline.compactor._guard import CommitToken, checked_seconds
from foldline.compactor._history import HistoryCall
from foldline.compactor._pins import Pins, may_call, split_pins
from foldline.compactor._request import Live, Requests
from foldline.compactor._run import Asked, Decided, Save
from foldline.compactor._session import Session
from foldline.context.metadata import Metadata
from foldline.context.state import ContextState
from foldline.errors import ConfigError
from foldline.strategies import Deadline
from foldline.typing import CompactionStore, FoldStore, Messages, SessionStore

__all__ = ["Call", "Calls", "checked_session"]


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments that `compact` and `prepare` share; ``timeout_s`` is the compactor's if the call gives none."""

    messages: Messages | Live
    state: ContextState | None
    force: bool
    instructions: str | None
    pins: Pins
    tools: Messages | None
    system: str | Messages | None
    metadata: Metadata | None
    timeout_s: float | None
    cancel: threading.Event | None


class Calls:
    """Makes requests from calls, with what holds for every call of a compactor.

    Args:
        requests: Counts what is sent.
        session: The memory of the session of `compact`.
        histories: The memory of the sessions of `prepare`.
        store: The store, which `prepare` needs to keep folds.
        lasting: Predicates of the messages that are pinned in every call.
        clock: Returns seconds.

    Attributes:
        unpinned: Predicates of the messages whose pins have ended.
    """

    def __init__(
        self,
        requests: Requests,
        session: Session,
        histories: Histories,
        *,
        store: CompactionStore | SessionStore | FoldStore | None,
        lasting: tuple[Callable[[Any], bool], ...],
        clock: Callable[[], float],
    ) -> None:
        self.unpinned: tuple[Callable[[Any], bool], ...] = ()
        self._requests = requests
        self._session = session
        self._histories = histories
        self._store = store
        self._lasting = lasting
        self._clock = clock

    def is_plain(
        self, messages: Messages | Live, force: bool, pins: Pins, others: tuple[object, object, object, object]
    ) -> bool:
        """Whether a call is for a transcript alone, so that the trigger decides in constant time."""
        return (
            isinstance(messages, (LiveTranscript, LiveSnapshot))
            and not (force or self._lasting or self._session.has_pins)
            and others[0] is others[1] is others[2] is others[3] is None
            and isinstance(pins, tuple)
            and not pins
            and not _may_have_pins(messages, self._session)
        )

    def asked(self, call: Call, ids: Sequence[int | str] | None, decided: Decided | None = None) -> Asked:
        """The request of one call of `compact`.

        Raises:
            ConfigError: An argument is of no use.
        """
        messages, pins, session = call.messages, call.pins, self._session
        if ids is not None and len(ids) != len(messages):
            raise ConfigError("must be one for each message", code="bad_ids", path="ids")
        metadata = _checked_metadata(call.metadata)
        has_pins = not (isinstance(pins, tuple) and not pins)
        started_s = self._clock()
        deadline, commit_token = self._limits(call, started_s)
        return Asked(
            given=messages,
            state=call.state,
            session=session,
            pins_of=self._pin_finder(pins, metadata),
            decided=decided,
            is_pinning=bool(
                has_pins or self._lasting or metadata or session.has_pins or _may_have_pins(messages, session)
            ),
            calls_functions=bool(self._lasting or self.unpinned) or may_call(pins),
            around=self._requests.around_of(call.tools, call.system),
            force=call.force,
            instructions=call.instructions,
            metadata=metadata,
            ids=ids,
            deadline=deadline,
            commit_token=commit_token,
            started_s=started_s,
        )

    def of_history(self, call: Call, hashes: HistoryHashes, session: str | None, started_s: float) -> HistoryCall:
        """The request of one call of `prepare`. The caller must leave its history.

        Raises:
            ConfigError: An argument is of no use, or the store cannot keep folds (``store_without_folds``).
        """
        checked_session(session)
        if self._store is not None and not isinstance(self._store, FoldStore):
            detail = "must have save_fold and load_folds to serve prepare"
            raise ConfigError(detail, code="store_without_folds", path="store")
        metadata, around = _checked_metadata(call.metadata), self._requests.around_of(call.tools, call.system)
        indices, predicates = split_pins(call.pins)
        deadline, commit_token = self._limits(call, started_s)

        def asked_for(
            given: LiveSnapshot, pinned: tuple[int, ...], metadata: Metadata, history: History, save: Save
        ) -> Asked:
            return Asked(
                given=given,
                state=call.state,
                session=history.session,
                session_name=session,
                pins_of=lambda _prepared, _messages: pinned,
                around=around,
                force=call.force,
                instructions=call.instructions,
                metadata=metadata,
                deadline=deadline,
                commit_token=commit_token,
                started_s=started_s,
                save=save,
                is_pinning=True,
                remembers=False,
            )

        messages = call.messages
        return HistoryCall(
            messages=messages.messages if isinstance(messages, (LiveTranscript, LiveSnapshot)) else messages,
            session=session,
            hashes=hashes,
            histories=self._histories,
            history=self._histories.history(session, hashes.prefixes),
            indices=indices,
            predicates=predicates,
            lasting=self._lasting,
            unpinned=self.unpinned,
            metadata=metadata,
            prepare=lambda view: self._requests.prepare(view, around),
            asked_for=asked_for,
        )

    def _limits(self, call: Call, started_s: float) -> tuple[Deadline, CommitToken]:
        """The time limit and the cancellation flag of one call."""
        timeout_s, commit_token = checked_seconds(call.timeout_s), CommitToken(call.cancel)
        at = None if timeout_s is None else started_s + timeout_s
        return Deadline(at, self._clock, commit_token.is_cancelled), commit_token

    def _pin_finder(self, pins: Pins, metadata: Metadata) -> Callable[[LiveSnapshot, Messages], tuple[int, ...]]:
        indices, predicates = split_pins(pins)
        session, lasting, unpinned = self._session, self._lasting, self.unpinned

        def find(prepared: LiveSnapshot, messages: Messages) -> tuple[int, ...]:
            found = session.pins_of(prepared, messages, indices, predicates, lasting, unpinned)
            important = [index for index in metadata if index < len(messages) and metadata.is_pinned(index)]
            return tuple(sorted({*found, *important}))

        return find


def _may_have_pins(messages: Messages | Live, session: Session) -> bool:
    """Whether a transcript has pins of its own, or a summary that another process made."""
    if isinstance(messages, (list, tuple)):
        return False
    return messages.has_pins_or_summary and not session.has_folded  # type: ignore[union-attr]


def checked_session(session: object) -> None:
    """Raises a `ConfigError` unless it is a name, or None."""
    if session is not None and (not isinstance(session, str) or not session):
        raise ConfigError("must be a name", code="bad_session", path="session")


def _checked_metadata(metadata: object) -> Metadata:
    """The metadata, empty by default, or a `ConfigError`."""
    if metadata is None:
        return Metadata()
    if not isinstance(metadata, Metadata):
        raise ConfigError("must be Metadata", code="bad_metadata", path="metadata")
    return metadata
