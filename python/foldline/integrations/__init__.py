"""Adapters for agent frameworks: each folds what the framework sends to its model.

Each module needs the package that it is named after, and is imported on first use: ``import foldline`` loads none.
An adapter has no rules of its own. It reads the framework's messages as dicts, lets a compactor prepare the request,
and answers with the framework's own objects; only a summary is a new one.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foldline.integrations import (
        agent_framework,
        crewai,
        google_adk,
        inspect_ai,
        langchain,
        litellm,
        openai_agents,
        pydantic_ai,
        strands,
    )

__all__ = [
    "agent_framework",
    "crewai",
    "google_adk",
    "inspect_ai",
    "langchain",
    "litellm",
    "openai_agents",
    "pydantic_ai",
    "strands",
]

if not TYPE_CHECKING:  # else every misspelt name would be an attribute

    def __getattr__(name: str) -> ModuleType:
        """Imports an adapter on first use.

        Raises:
            ImportError: Its framework is not installed.
        """
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """All adapters, whether imported yet or not."""
    return sorted({*globals(), *__all__})
