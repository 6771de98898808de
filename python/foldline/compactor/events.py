"""Events of a compactor, hooks, and subscribers."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from foldline._util.prices import price_of
from foldline.errors import ConfigError, FoldlineError, FoldlineWarning
from foldline.typing import CompactionEvent, CountKind, Fallback, Outcome, TriggerKind

__all__ = [
    "AttemptEnded",
    "CompactBoundary",
    "CompactionEvent",
    "CompactionFailed",
    "Event",
    "Hooks",
    "PreCompact",
    "SessionStart",
    "Subscribers",
    "TriggerKind",
]


@dataclass(frozen=True, slots=True)
class PreCompact:
    """A compaction is about to begin.

    Attributes:
        trigger: ``"auto"``, or ``"manual"`` if the caller requested it.
        reason: The trigger's reason.
        tokens_before: Tokens of the request.
        length_before: Messages of the request.
        instructions: Instructions for the summary.
    """

    trigger: TriggerKind
    reason: str
    tokens_before: int
    length_before: int
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class SessionStart:
    """The session continues with another history.

    Attributes:
        source: The cause: ``"compact"``.
    """

    source: str = "compact"


@dataclass(frozen=True, slots=True)
class CompactBoundary:
    """The place of a compaction in a session.

    Attributes:
        trigger: ``"auto"`` or ``"manual"``.
        tokens_before: Tokens of the request before.
    """

    trigger: TriggerKind
    tokens_before: int

    def as_message(self) -> dict[str, Any]:
        """The boundary as a session message, to be emitted but never sent to a model."""
        metadata = {"trigger": self.trigger, "pre_tokens": self.tokens_before}
        return {"type": "system", "subtype": "compact_boundary", "compact_metadata": metadata}


@dataclass(frozen=True, slots=True)
class CompactionFailed:
    """A compaction failed.

    Attributes:
        error: The failure.
        fallback: The fallback taken; None if the messages stay unchanged.
    """

    error: FoldlineError
    fallback: Fallback | None = None


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """An attempt to compact has ended, whatever came of it. It holds no content.

    Attributes:
        id: Unique among all attempts.
        session: The session, as `Compactor.prepare` was given it.
        trigger: ``"auto"``, or ``"manual"`` if the caller requested it.
        outcome: As in the result; ``"failed"`` also if the error was raised.
        reason: As in the result.
        error: Code of the failure, also if a fallback was taken.
        tokens_before: Tokens of the request before.
        tokens_after: Tokens of the request after.
        length_before: Messages before.
        length_after: Messages after.
        floor: The fewest tokens that `FitTokens` reaches on the same list, if known.
        fits: Whether the request after is within its budgets.
        counter: Name of the token counter.
        counter_kind: Accuracy of the counts.
        round: Round of the compaction; None if nothing was compacted.
        strategy: The strategies that changed something.
        fallback: The fallback taken.
        model: The model that was asked for a summary; empty without one.
        calls: Calls of summarizers.
        input_tokens: Tokens that they read, if reported.
        output_tokens: Tokens that they wrote, if reported.
        cache_read_tokens: Those read from a cache, if reported.
        cache_write_tokens: Those written to a cache, if reported.
        duration_s: Duration in seconds.
    """

    id: str
    session: str | None
    trigger: TriggerKind
    outcome: Outcome
    reason: str
    error: str | None
    tokens_before: int
    tokens_after: int
    length_before: int
    length_after: int
    floor: int | None
    fits: bool | None
    counter: str
    counter_kind: CountKind
    round: int | None
    strategy: str
    fallback: Fallback | None
    model: str
    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    duration_s: float

    @property
    def tokens_saved(self) -> int:
        """Tokens that the request lost."""
        return self.tokens_before - self.tokens_after

    @property
    def cost_usd(self) -> float | None:
        """The price of the summaries in US dollars by genai-prices; None if unknown, or without that package."""
        if not self.model or self.input_tokens is None or self.output_tokens is None:
            return None
        return price_of(self.model, self.input_tokens, self.output_tokens)

    def as_dict(self) -> dict[str, Any]:
        """All attributes by name, as JSON can hold them, with ``tokens_saved``."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"tokens_saved": self.tokens_saved}


Event: TypeAlias = PreCompact | CompactionEvent | SessionStart | CompactBoundary | CompactionFailed


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions called during a compaction.

    An `Exception` from a hook becomes a warning and changes nothing; other exceptions propagate.

    Attributes:
        before: Gets a `PreCompact`; if it returns False, nothing is compacted.
        after: Gets the `CompactionEvent`.
        session_start: Gets a `SessionStart`.
        boundary: Gets a `CompactBoundary`.
        failed: Gets a `CompactionFailed`.
    """

    before: Callable[[PreCompact], Any] | None = None
    after: Callable[[CompactionEvent], Any] | None = None
    session_start: Callable[[SessionStart], Any] | None = None
    boundary: Callable[[CompactBoundary], Any] | None = None
    failed: Callable[[CompactionFailed], Any] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            hook: object = getattr(self, field.name)
            if hook is not None and not callable(hook):
                raise ConfigError("must be a function", code="bad_hook", path=f"hooks.{field.name}")

    @classmethod
    def of(cls, hooks: Hooks | Mapping[str, Any] | None) -> Hooks:
        """Hooks from a `Hooks` object, or from functions by name.

        Raises:
            ConfigError: A name is unknown, or a value is not a function.
        """
        if hooks is None or isinstance(hooks, Hooks):
            return hooks or cls()
        if not isinstance(hooks, Mapping):
            raise ConfigError("must be hooks or a dict of functions", code="bad_hook", path="hooks")
        known = {field.name for field in fields(cls)}
        for name in hooks:
            if name not in known:
                raise ConfigError(f"must be one of {', '.join(sorted(known))}", code="bad_hook", path="hooks")
        return cls(**hooks)


_HOOKS: dict[type, str] = {
    PreCompact: "before",
    CompactionEvent: "after",
    SessionStart: "session_start",
    CompactBoundary: "boundary",
    CompactionFailed: "failed",
}


class Subscribers:
    """Delivers events: to hooks first, then to subscribers in order. Thread-safe."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._subscribers: list[Callable[[Event], Any]] = []
        self._watchers: list[Callable[[AttemptEnded], Any]] = []
        self._lock = threading.Lock()

    def subscribe(self, subscriber: Callable[[Event], Any]) -> Callable[[], None]:
        """Calls a function with every later event; the returned function ends the subscription."""
        return self._added(self._subscribers, subscriber)

    def watch(self, watcher: Callable[[AttemptEnded], Any]) -> Callable[[], None]:
        """Calls a function at the end of every later attempt; the returned function ends that."""
        return self._added(self._watchers, watcher)

    @property
    def is_watched(self) -> bool:
        """Whether anyone is called at the end of an attempt."""
        return bool(self._watchers)

    def _added(self, functions: list[Any], function: object) -> Callable[[], None]:
        if not callable(function):
            raise ConfigError("must be a function", code="bad_subscriber", path="subscriber")

        def remove() -> None:
            with self._lock:
                if function in functions:
                    functions.remove(function)

        with self._lock:
            functions.append(function)
        return remove

    def end(self, attempt: AttemptEnded) -> None:
        """Delivers the end of an attempt."""
        with self._lock:
            watchers = list(self._watchers)
        for watcher in watchers:
            _called(watcher, attempt)

    def emit(self, event: Event) -> bool:
        """Delivers an event; False if the hook returned False."""
        hook: Callable[[Any], Any] | None = getattr(self._hooks, _HOOKS[type(event)])
        answer = None if hook is None else _called(hook, event)
        with self._lock:
            subscribers = list(self._subscribers)
        for subscriber in subscribers:
            _called(subscriber, event)
        return answer is not False


def _called(function: Callable[[Any], Any], event: Event | AttemptEnded) -> Any:
    try:
        return function(event)
    except Exception as error:  # noqa: BLE001 - a listener's error must not affect the compaction
        name = type(error).__name__
        warnings.warn(f"a hook of {type(event).__name__} raised {name}", FoldlineWarning, stacklevel=4)
        return None
