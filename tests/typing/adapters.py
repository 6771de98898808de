"""The constructors of adapters: the options that all of them take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import foldline as fl

if TYPE_CHECKING:
    from foldline.integrations.agent_framework import FoldStrategy
    from foldline.integrations.crewai import FoldHook
    from foldline.integrations.google_adk import FoldPlugin
    from foldline.integrations.inspect_ai import CompactionFold
    from foldline.integrations.langchain import FoldMiddleware, fold_hook
    from foldline.integrations.litellm import FoldHook as LiteLLMHook
    from foldline.integrations.openai_agents import FoldFilter
    from foldline.integrations.pydantic_ai import Fold
    from foldline.integrations.strands import FoldConversationManager


def is_important(message: Any) -> bool:
    return "important" in str(message)


def write(messages: Any) -> str:
    return "Steps were done."


def every_adapter_takes_a_model_or_a_compactor(compactor: fl.Compactor, store: fl.stores.MemoryStore) -> None:
    FoldMiddleware(model="gpt-5", pins=[is_important], summarizer=write, store=store, on_event=print)
    fold_hook(compactor=compactor, pins=is_important, tools=[], system="Be brief.")
    FoldFilter(model="gpt-5", summarizer=write, key=lambda data: "session")
    Fold(model="gpt-5", store=store, key=lambda ctx: None)
    LiteLLMHook(model="gpt-5", context_window=100_000, keep=fl.KeepTokens(20_000))
    FoldPlugin(compactor=compactor, name="fold", on_event=print)
    FoldHook(model="gpt-5", on_failure="truncate")
    FoldConversationManager(model="gpt-5", pins=[is_important])
    FoldStrategy(model="gpt-5", tools=[], instructions="Be brief.", key=lambda messages: "session")
    CompactionFold(model="gpt-5", threshold=0.8, memory=False)


def wrong_uses(compactor: fl.Compactor) -> None:
    FoldMiddleware("gpt-5")  # type: ignore[call-arg]
    FoldFilter(model=compactor)  # type: ignore[arg-type]
    FoldHook(compactor="gpt-5")  # type: ignore[arg-type]
    FoldPlugin(modell="gemini-2.5-pro")  # type: ignore[call-arg]
    CompactionFold(model="gpt-5", pins=3)  # type: ignore[arg-type]
