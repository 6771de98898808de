"""The trigger protocol, its base class, and combinations of triggers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from foldline.context.state import ContextState
from foldline.errors import ConfigError

__all__ = [
    "AllOf",
    "AnyOf",
    "BaseTrigger",
    "Never",
    "Trigger",
    "as_trigger",
    "budget_tokens_of",
    "instructions_of",
    "messages_threshold_of",
    "reason_of",
    "threshold_of",
]


@runtime_checkable
class Trigger(Protocol):
    """Decides when to compact. Any object with these two methods is a trigger."""

    def should_compact(self, state: ContextState) -> bool:
        """Whether to compact before the next request."""
        ...

    def notify_compacted(self, state: ContextState) -> None:
        """Called after a successful compaction, with the state after it."""
        ...


class BaseTrigger(ABC):
    """A trigger with a reason, combinable by ``|`` and ``&``. Subclasses implement `reason`."""

    @abstractmethod
    def reason(self, state: ContextState) -> str | None:
        """Why to compact now, as a stable code; None to not compact."""

    def should_compact(self, state: ContextState) -> bool:
        """Whether to compact before the next request."""
        return self.reason(state) is not None

    def notify_compacted(self, state: ContextState) -> None:  # noqa: B027 - most triggers have no state
        """Called after a successful compaction, with the state after it."""

    def threshold_tokens(self, state: ContextState) -> int | None:
        """The most tokens of the request at which it does not fire; None if tokens do not matter."""
        del state
        return None

    def threshold_messages(self, state: ContextState) -> int | None:
        """The most messages at which it does not fire; None if their number does not matter."""
        del state
        return None

    def budget_tokens(self, state: ContextState) -> int | None:
        """The tokens of its window less the reserve; None if it has no window."""
        del state
        return None

    def __or__(self, other: Trigger) -> AnyOf:
        return AnyOf(self, other)

    def __ror__(self, other: Trigger) -> AnyOf:
        return AnyOf(other, self)

    def __and__(self, other: Trigger) -> AllOf:
        return AllOf(self, other)

    def __rand__(self, other: Trigger) -> AllOf:
        return AllOf(other, self)


class Never(BaseTrigger):
    """Never fires; only ``force=True`` compacts."""

    def __repr__(self) -> str:
        return "Never()"

    def reason(self, state: ContextState) -> str | None:
        """None."""
        del state
        return None


def as_trigger(trigger: object, path: str = "trigger") -> Trigger:
    """Checks for a trigger, or raises a `ConfigError`."""
    if isinstance(trigger, type) or not isinstance(trigger, Trigger):
        raise ConfigError("must have should_compact and notify_compacted", code="bad_trigger", path=path)
    return trigger


def reason_of(trigger: Trigger, state: ContextState) -> str | None:
    """A trigger's reason, ``"trigger"`` without one; None if it does not fire. Calls it once."""
    if isinstance(trigger, BaseTrigger):
        return trigger.reason(state)
    return "trigger" if trigger.should_compact(state) else None


def threshold_of(trigger: Trigger, state: ContextState) -> int | None:
    """The most tokens of the request at which a trigger does not fire, if tokens matter."""
    return trigger.threshold_tokens(state) if isinstance(trigger, BaseTrigger) else None


def messages_threshold_of(trigger: Trigger, state: ContextState) -> int | None:
    """The most messages at which a trigger does not fire, if their number matters."""
    return trigger.threshold_messages(state) if isinstance(trigger, BaseTrigger) else None


def budget_tokens_of(trigger: Trigger, state: ContextState) -> int | None:
    """The tokens of a trigger's window less the reserve, if it has one."""
    return trigger.budget_tokens(state) if isinstance(trigger, BaseTrigger) else None


def instructions_of(trigger: Trigger) -> str | None:
    """A trigger's instructions for the summary, as given with a request."""
    if isinstance(trigger, _Combined):
        return next((told for each in trigger.triggers if (told := instructions_of(each))), None)
    told = getattr(trigger, "instructions", None)
    return told if isinstance(told, str) and told else None


class _Combined(BaseTrigger):
    """Several triggers as one. All of them are notified of compactions."""

    _sign = ""

    def __init__(self, *triggers: Trigger) -> None:
        if not triggers:
            raise ConfigError("at least one trigger is needed", code="bad_trigger", path="triggers")
        flat: list[Trigger] = []
        for each in triggers:
            flat += each.triggers if type(each) is type(self) else [as_trigger(each, "triggers")]
        self.triggers: tuple[Trigger, ...] = tuple(flat)

    def __repr__(self) -> str:
        return f"({f' {self._sign} '.join(map(repr, self.triggers))})"

    def notify_compacted(self, state: ContextState) -> None:
        """Notifies all of them."""
        for each in self.triggers:
            each.notify_compacted(state)

    def _known(self, of: Callable[[Trigger, ContextState], int | None], state: ContextState) -> list[int]:
        return [known for each in self.triggers if (known := of(each, state)) is not None]

    def budget_tokens(self, state: ContextState) -> int | None:
        """The smallest of their windows less the reserve."""
        return min(self._known(budget_tokens_of, state), default=None)


class AnyOf(_Combined):
    """Fires if any of its triggers fires; the reason is that of the first."""

    _sign = "|"

    def reason(self, state: ContextState) -> str | None:
        """The reason of the first trigger that fires."""
        return next((why for each in self.triggers if (why := reason_of(each, state)) is not None), None)

    def threshold_tokens(self, state: ContextState) -> int | None:
        """The least of their thresholds."""
        return min(self._known(threshold_of, state), default=None)

    def threshold_messages(self, state: ContextState) -> int | None:
        """The least of their thresholds."""
        return min(self._known(messages_threshold_of, state), default=None)


class AllOf(_Combined):
    """Fires if all of its triggers fire; the reason joins theirs by ``+``."""

    _sign = "&"

    def reason(self, state: ContextState) -> str | None:
        """All of their reasons, or None."""
        reasons: list[str] = []
        for each in self.triggers:
            why = reason_of(each, state)
            if why is None:
                return None
            reasons.append(why)
        return "+".join(reasons)

    def threshold_tokens(self, state: ContextState) -> int | None:
        """The greatest of their thresholds: up to it at least one does not fire."""
        return max(self._known(threshold_of, state), default=None)

    def threshold_messages(self, state: ContextState) -> int | None:
        """The greatest of their thresholds."""
        return max(self._known(messages_threshold_of, state), default=None)
