"""What users bring themselves: summarizers, triggers, strategies, stores, hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

import foldline as fl
from foldline.strategies import StrategyRequest, StrategyResult
from foldline.typing import (
    AsyncSummarizer,
    ChatModel,
    CompactionEvent,
    CompactionStore,
    Completion,
    FoldStore,
    Message,
    Messages,
    Summarizer,
    SummarizeRequest,
)

MESSAGES = [{"role": "user", "content": "Go on."}]
KEEP = fl.KeepMessages(2)


def of_dicts(messages: list[dict[str, Any]]) -> str:
    return f"{len(messages)} messages"


def of_messages(messages: list[Message]) -> Completion:
    return Completion(f"{len(messages)} messages", model="mine", cache_read_tokens=0)


async def awaited(messages: list[Message]) -> str:
    return of_dicts([dict(message) for message in messages])


class Writer:
    """A summarizer."""

    def summarize(self, request: SummarizeRequest) -> Completion:
        text = f"{len(request.folded)} messages"
        return Completion(text if request.count(text) <= request.max_tokens else "")


class AsyncWriter:
    """A summarizer on an event loop."""

    async def asummarize(self, request: SummarizeRequest) -> Completion:
        return Completion(f"{len(request.folded)} messages")


class Model:
    """A chat model."""

    def complete(self, messages: Messages, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
        return Completion("So far.", input_tokens=len(messages), output_tokens=max_tokens)


class OldModel:
    """Not a chat model: it takes no time limit."""

    def complete(self, messages: Messages) -> str:
        return "So far."


def summarizers() -> None:
    fl.compact(MESSAGES, KEEP, summarizer=of_dicts)
    fl.compact(MESSAGES, KEEP, summarizer=of_messages)
    fl.compact(MESSAGES, KEEP, summarizer=lambda messages: messages[0]["content"])
    fl.compact(MESSAGES, KEEP, summarizer=Writer())
    fl.compact(MESSAGES, KEEP, summarizer=Model())
    fl.compact(MESSAGES, KEEP, summarizer=fl.summarizers.Extractive())
    fl.compact(MESSAGES, KEEP, summarizer=fl.summarizers.OpenAICompatible("some-model"))
    for strategy in (fl.strategies.Summarize(AsyncWriter()), fl.strategies.Summarize(of_dicts, KEEP)):
        assert_type(strategy, fl.strategies.Summarize)
    writer: Summarizer = Writer()
    async_writer: AsyncSummarizer = AsyncWriter()
    model: ChatModel = Model()
    del writer, async_writer, model
    fl.compact(MESSAGES, KEEP, summarizer="gpt-5")  # type: ignore[arg-type]
    fl.compact(MESSAGES, KEEP, summarizer=awaited)  # type: ignore[arg-type]
    fl.compact(MESSAGES, KEEP, summarizer=OldModel())  # type: ignore[arg-type]
    fl.compact(MESSAGES, KEEP, summarizer=AsyncWriter())  # type: ignore[arg-type]


async def acompact_is_typed_as_compact(compactor: fl.Compactor) -> None:
    assert_type(await fl.acompact(MESSAGES, KEEP, summarizer=of_dicts, pins=[0], summary_tokens=500), fl.FoldResult)
    await fl.acompact(MESSAGES, KEEP, summarizer=AsyncWriter())
    await fl.acompact(MESSAGES, 4_000)  # type: ignore[arg-type]
    await fl.acompact(MESSAGES, KEEP, thinking="drop")  # type: ignore[arg-type]
    await fl.acompact(MESSAGES, KEEP, keep_recent=2)  # type: ignore[call-arg]
    assert_type(await compactor.acompact(MESSAGES, force=True), fl.CompactionResult)
    assert_type(await compactor.aprepare(MESSAGES, session="a"), fl.CompactionResult)
    compactor.acompact(MESSAGES).outcome  # type: ignore[attr-defined]


class EveryTenth:
    """A trigger."""

    def should_compact(self, state: fl.ContextState) -> bool:
        return state.iteration % 10 == 0

    def notify_compacted(self, state: fl.ContextState) -> None:
        del state


class Never:
    """Not a trigger: it is not notified."""

    def should_compact(self, state: fl.ContextState) -> bool:
        del state
        return False


class KeepTwo:
    """A strategy."""

    def run(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        del request
        dropped = tuple(range(max(0, len(messages) - 2)))
        return StrategyResult(list(messages[-2:]), range(len(dropped), len(messages)), dropped=dropped)


def last_two(messages: list[Any], request: StrategyRequest) -> list[Any]:
    del request
    return messages[-2:]


class Events:
    """A store of compactions."""

    def save_compaction(self, event: CompactionEvent) -> None:
        print(event.round, event.tokens_before, event.tokens_after)


class Folds:
    """A store of folds."""

    def save_fold(self, session: str, fold: str) -> None:
        print(session, fold)

    def load_folds(self, session: str, limit: int) -> Sequence[str]:
        del session, limit
        return ()


def triggers_and_strategies() -> None:
    several = fl.triggers.ReserveTokens(200_000, 16_384) | fl.triggers.Overflow()
    assert_type(several, fl.triggers.AnyOf)
    assert_type(several & fl.triggers.MessageCount(10), fl.triggers.AllOf)
    mixed = fl.triggers.MessageCount(100) | EveryTenth()
    assert_type(mixed.reason(fl.ContextState()), str | None)
    counted = fl.triggers.StatThreshold().on_counter("iterations", 10).on_gauge("scratchpad", 20)
    pipeline = fl.strategies.Pipeline(fl.strategies.ClearToolResults(fl.KeepTurns(2)), fl.strategies.Summarize())
    fl.Compactor(several, pipeline)
    fl.Compactor(counted, KeepTwo(), counter="chars/4", store=Events(), on_failure="truncate")
    fl.Compactor(EveryTenth(), last_two, store=Folds(), hooks={"on_event": print})
    fl.Compactor(mixed, fl.strategies.TruncateOldest(fl.FitTokens(900)), pins=lambda message: "pin" in message)
    events: CompactionStore = Events()
    folds: FoldStore = Folds()
    del events, folds
    fl.Compactor(Never(), KeepTwo())  # type: ignore[arg-type]
    fl.Compactor(several, of_dicts)  # type: ignore[arg-type]
    fl.Compactor(several, pipeline, on_failure="ignore")  # type: ignore[arg-type]
    fl.Compactor(several, pipeline, store=[])  # type: ignore[arg-type]
    fl.Compactor(several, pipeline, window=8_000)  # type: ignore[call-arg]


def compactors(history: list[dict[str, Any]]) -> None:
    compactor = fl.Compactor.for_model("gpt-5", summarizer=Writer(), store=Folds(), background=True, pins=[bool])
    assert_type(compactor, fl.Compactor)
    result = compactor.prepare(history, session="a", tools=[{"type": "function"}], system="Be brief.")
    assert_type(result, fl.CompactionResult)
    assert_type(compactor.should_compact(history), str | None)
    live = fl.Transcript(history)
    assert_type(live.fold(compactor.compact(live)), list[Any])
    live.fold(fl.trim(live, 4_000))
    live.fold(history)  # type: ignore[arg-type]
    compactor.prepare(history, session=7)  # type: ignore[arg-type]
    compactor.prepare(history, ids=[1])  # type: ignore[call-arg]
    fl.Compactor.for_model("gpt-5", on_failure="ignore")  # type: ignore[arg-type]
    fl.Compactor.for_model("gpt-5", windows=8_000)  # type: ignore[call-arg]
