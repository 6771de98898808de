"""A session between two requests, for custom loops: its messages and trigger state."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from foldline.compactor import CompactionResult, Compactor
from foldline.context.metadata import Metadata
from foldline.context.state import INPUT_TOKENS, ITERATIONS, OUTPUT_TOKENS, SCRATCHPAD, ContextState, Stats
from foldline.context.usage import read_and_written, reported_tokens
from foldline.errors import ConfigError, FoldlineWarning, StoreError
from foldline.planning import analyze
from foldline.planning.detect import dialect_for
from foldline.typing import FormatOption, Message, Messages, SessionStore

__all__ = ["LAST_ITERATION", "Response", "Session", "StepHooks"]

#: Gauges: tokens of the last iteration, read, written, and in total; cleared when the next one begins.
LAST_ITERATION: Final = (
    f"{INPUT_TOKENS}_last_iteration",
    f"{OUTPUT_TOKENS}_last_iteration",
    "total_tokens_last_iteration",
)


@dataclass(frozen=True, slots=True)
class Response:
    """The answer of a model.

    Attributes:
        messages: Its message, or the items of its answer.
        stop_reason: Why it ended, as its provider names it.
        usage: The reported usage: tokens of request and answer, or the usage object.
        model: Name of the model.

    Raises:
        ConfigError: The usage is invalid, or the messages are not messages.
    """

    messages: Message | Messages
    stop_reason: str | None = None
    usage: int | Mapping[str, Any] | None = None
    model: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.messages, (Mapping, list, tuple)):
            raise ConfigError("must be messages", code="bad_response", path="messages")
        if not all(isinstance(each, Mapping) for each in self.listed):
            raise ConfigError("must be messages", code="bad_response", path="messages")
        if self.usage is not None:
            reported_tokens(self.usage)

    @property
    def listed(self) -> tuple[Message, ...]:
        """The messages as a tuple, also if there is only one."""
        return (self.messages,) if isinstance(self.messages, Mapping) else tuple(self.messages)


@dataclass(slots=True)
class Session:
    """The messages of a session and their state, from one request to the next.

    Attributes:
        compactor: The compactor.
        stats: Counters and gauges of the run.
        messages: The context.
        ids: Their ids, if the compactor's store keeps messages.
        metadata: Metadata of the messages.
        iteration: Iterations started.
        usage: The last reported usage; None after a compaction, then everything is counted.
        usage_index: Index of the last message that the usage covers.
        stop_reason: Why the last answer ended.
        error: Error of the last request.
        compactions: Results of the compactor that changed something or failed.
    """

    compactor: Compactor
    stats: Stats = field(default_factory=Stats)
    messages: list[Any] = field(default_factory=list)
    ids: list[int | str] | None = None
    metadata: Metadata = field(default_factory=Metadata)
    iteration: int = 0
    usage: int | Mapping[str, Any] | None = None
    usage_index: int | None = None
    stop_reason: str | None = None
    error: object = None
    compactions: list[CompactionResult] = field(default_factory=list)

    @property
    def store(self) -> SessionStore | None:
        """The compactor's store, if it keeps messages."""
        store = self.compactor.store
        return store if isinstance(store, SessionStore) else None

    @property
    def format(self) -> FormatOption:
        """The dialect of the messages."""
        return dialect_for(self.messages, self.compactor.format)

    def begin(self) -> None:
        """Begins an iteration and clears the gauges of the last one."""
        self.iteration += 1
        self.stats.incr(ITERATIONS, local=True)
        for gauge in LAST_ITERATION:
            self.stats.clear_gauge(gauge)

    def load(self) -> None:
        """Loads the context from the store."""
        if self.store is not None:
            active = self.store.active()
            self.messages, self.ids = [each.message for each in active], [each.id for each in active]

    def add(self, messages: Messages) -> None:
        """Appends messages, also to the store.

        Raises:
            StoreError: Appending to the store failed.
        """
        for message in messages:
            if self.store is not None:
                self.ids = [*(self.ids or ()), self.store.append(message)]
            self.messages.append(message)

    def took(self, response: Response) -> None:
        """Counts the tokens of an answer. `answered` adds its messages."""
        read, written = read_and_written(response.usage)
        total = None if response.usage is None else reported_tokens(response.usage)
        self.stats.count_tokens(response.model, read, written)
        for gauge, tokens in zip(LAST_ITERATION, (read, written, total)):
            if tokens is not None:
                self.stats.set_gauge(gauge, tokens)
        self.stop_reason, self.error = response.stop_reason, None

    def answered(self, answer: Messages, usage: int | Mapping[str, Any] | None) -> None:
        """Appends an answer, with the usage that covers everything up to it."""
        self.add(answer)
        self.usage, self.usage_index = usage, len(self.messages) - 1
        if usage is None or not self.messages:
            self.usage = self.usage_index = None

    def state(self) -> ContextState:
        """The next request as it will be sent. O(text) of the messages that no usage covers."""
        compactor = self.compactor
        groups = 0
        if self.messages:
            structure = analyze(self.messages, format=self.format)
            groups = sum(group[0] >= structure.head for group in structure.groups)
        self.stats.set_gauge(SCRATCHPAD, groups)
        return ContextState.of(
            self.messages,
            counter=compactor.counter,
            stats=self.stats,
            iteration=self.iteration,
            system=compactor.system,
            tools=compactor.tools,
            usage=self.usage,
            usage_index=self.usage_index,
            context_window=compactor.context_window,
            reserve_tokens=compactor.reserve_tokens,
            stop_reason=self.stop_reason,
            error=self.error,
            format=self.format,
        )

    def asked(self, **more: Any) -> dict[str, Any]:
        """The arguments for `Compactor.compact`."""
        return {"state": self.state(), "metadata": self.metadata, "ids": self.ids, **more}

    def take(self, result: CompactionResult) -> bool:
        """Takes over a result of the compactor; whether it compacted."""
        if result.changed or result.error is not None:
            self.compactions.append(result)
        if not result.changed:
            return False
        self.messages, self.metadata = list(result.messages), result.metadata
        self.usage = self.usage_index = self.stop_reason = self.error = None
        if self.store is not None:
            active = self.store.active()
            # Messages that another writer appended meanwhile follow the new context.
            self.ids = [each.id for each in active]
            self.messages += [each.message for each in active[len(self.messages) :]]
        return True


class StepHooks:
    """Two hooks for a custom or framework loop: before and after a step.

    `prepare_step` returns the messages of the next request. The loop must continue with this list, not with the one it
    passed in. If the compactor's store keeps messages, new ones are appended to it.

    Args:
        compactor: The compactor.
        stats: Counters and gauges of the run.

    Examples:
        >>> import foldline as fl
        >>> hooks = fl.loop.StepHooks(fl.presets.layer(store=fl.stores.MemoryStore()))
        >>> messages = hooks.prepare_step([{"role": "user", "content": "Build a flashcard app."}])
        >>> answer = {"role": "assistant", "content": "Done."}  # your model
        >>> hooks.on_step_finish([answer])
        >>> len(hooks.session.store.active())
        2
    """

    def __init__(self, compactor: Compactor, *, stats: Stats | None = None) -> None:
        self.session = Session(compactor, Stats() if stats is None else stats)

    def prepare_step(self, messages: Messages) -> list[Any]:
        """The messages of the next request: compacted if the trigger fires, else the same.

        Raises:
            FoldlineError: With ``on_failure="raise"``, the failure.
        """
        session = self.session
        if self._is_in_step(messages):
            session.take(session.compactor.compact(session.messages, **session.asked()))
        session.begin()
        return list(session.messages)

    async def aprepare_step(self, messages: Messages) -> list[Any]:
        """`prepare_step` without blocking the event loop."""
        session = self.session
        if self._is_in_step(messages):
            session.take(await session.compactor.acompact(session.messages, **session.asked()))
        session.begin()
        return list(session.messages)

    def on_step_finish(
        self,
        messages: Messages,
        *,
        usage: int | Mapping[str, Any] | None = None,
        stop_reason: str | None = None,
        model: str = "",
    ) -> None:
        """Adds the messages of a step: the model's answer and tool results.

        Args:
            messages: The new messages.
            usage: The usage reported with the answer, as for `ContextUsage.from_messages`.
            stop_reason: Why the answer ended.
            model: Name of the model.

        Raises:
            StoreError: Appending to the store failed.
        """
        response = Response(messages, stop_reason, usage, model)
        self.session.took(response)
        place = _answer_end(response.listed)
        self.session.answered(response.listed[:place], usage)
        self.session.add(response.listed[place:])

    def _is_in_step(self, messages: Messages) -> bool:
        """Takes the messages over; whether the store has the same ones."""
        session, store = self.session, self.session.store
        if len(messages) < len(session.messages):
            session.usage = session.usage_index = None  # the caller changed the list
        session.messages = list(messages)
        if store is None:
            return True
        try:
            active = store.active()
            if [each.message for each in active] != session.messages[: len(active)]:
                warnings.warn("not compacted: the store holds other messages", FoldlineWarning, stacklevel=3)
                return False
            session.ids = [each.id for each in active]
            for message in session.messages[len(active) :]:
                session.ids.append(store.append(message))
        except StoreError as error:
            warnings.warn(f"not compacted: {error}", FoldlineWarning, stacklevel=3)
            return False
        return True


def _answer_end(messages: Messages) -> int:
    """The end of the model's part in new messages."""
    for at in range(len(messages) - 1, -1, -1):
        kind = str(messages[at].get("type", ""))
        if messages[at].get("role") in ("assistant", "model") or kind.endswith("_call") or kind == "reasoning":
            return at + 1
    return 0
