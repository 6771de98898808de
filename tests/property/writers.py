"""The writer of each dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reference.model import (
    AI_SDK,
    AI_SDK_UI,
    ANTHROPIC,
    BEDROCK,
    COHERE,
    GEMINI,
    GENT,
    LANGCHAIN,
    MISTRAL,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    SHAREGPT,
)

from .bedrock_transcripts import BedrockWriter
from .library_transcripts import AiSdkWriter, GentWriter, LangChainWriter, ShareGptWriter
from .native_transcripts import GeminiWriter, ResponsesWriter
from .transcripts import AnthropicWriter, OpenAIWriter, Writer
from .variant_transcripts import AiSdkUiWriter, CohereWriter, MistralWriter

WRITERS: Final[dict[str, Callable[[bool], Writer]]] = {
    OPENAI_CHAT: OpenAIWriter,
    OPENAI_RESPONSES: ResponsesWriter,
    ANTHROPIC: AnthropicWriter,
    GEMINI: GeminiWriter,
    AI_SDK: AiSdkWriter,
    LANGCHAIN: LangChainWriter,
    GENT: GentWriter,
    SHAREGPT: ShareGptWriter,
    BEDROCK: BedrockWriter,
    AI_SDK_UI: AiSdkUiWriter,
    MISTRAL: MistralWriter,
    COHERE: CohereWriter,
}
