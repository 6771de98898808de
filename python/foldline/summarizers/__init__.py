"""Summarizers: `Extractive` without a model, `Prompted` around a chat model, or any function."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from foldline.summarizers._prompt.prompts import PROMPT_VERSION
from foldline.summarizers.extractive import Extractive
from foldline.summarizers.function import FromFunction, as_summarizer
from foldline.summarizers.prompted import Prompted
from foldline.typing import Completion

if TYPE_CHECKING:
    from foldline.summarizers.anthropic_sdk import AnthropicSDK
    from foldline.summarizers.google_genai import GoogleGenAI
    from foldline.summarizers.langchain import LangChainModel
    from foldline.summarizers.openai_compatible import OpenAICompatible
    from foldline.summarizers.openai_sdk import OpenAISDK

__all__ = [
    "PROMPT_VERSION",
    "AnthropicSDK",
    "Completion",
    "Extractive",
    "FromFunction",
    "GoogleGenAI",
    "LangChainModel",
    "OpenAICompatible",
    "OpenAISDK",
    "Prompted",
    "as_summarizer",
]

#: Modules of models, imported on first use.
_LATER = {
    "AnthropicSDK": "anthropic_sdk",
    "GoogleGenAI": "google_genai",
    "LangChainModel": "langchain",
    "OpenAICompatible": "openai_compatible",
    "OpenAISDK": "openai_sdk",
}


if not TYPE_CHECKING:  # else every misspelt name would be an attribute

    def __getattr__(name: str) -> Any:
        """Imports a model on first use."""
        if name not in _LATER:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        value = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = value
        return value
