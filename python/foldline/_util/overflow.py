"""Recognizes provider errors for requests that exceed the context window."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Literal

__all__ = ["overflow_kind"]

#: Messages for too many tokens in a request, each with the providers that send it.
_CONTEXT_SAYINGS = (
    r"context[_ -]?(length|window|size|limit)[_ -]?exce",  # codes of OpenAI, Azure, Groq, Cerebras; MiniMax
    r"exceed_context_size_error",  # llama.cpp
    r"model_max_prompt_tokens_exceeded",  # GitHub Copilot
    r"\bContextWindowExceeded|\bContextOverflow",  # class names of LiteLLM and others
    r"maximum context length",  # OpenAI, vLLM, DeepSeek, OpenRouter, Mistral, Fireworks
    r"exceeds? the (available )?context (window|size|length)",  # OpenAI Responses, llama.cpp, Ollama
    r"exceed(s|ed)? (the )?(max(imum)? )?context (length|window|limit)",  # Anthropic, Ollama
    r"exceed(s|ed)? (the )?model('s)? (context|token limit)",  # Kimi
    r"prompt (is )?too long",  # Anthropic, Fireworks, Ollama
    r"prompt exceeds max(imum)? length",  # Z.ai
    r"prompt token count of \d+ exceeds",  # GitHub Copilot
    r"prompt \((total )?length \d+\) is (too long|longer than)",  # vLLM
    r"prompt contains \d+ tokens.{0,80}too large",  # Mistral
    r"maximum prompt length is \d+",  # xAI
    r"input token count.{0,40}exceeds the maximum",  # Gemini
    r"input token count is \d+ but model only supports",  # Vertex
    r"input is too long for requested model",  # Bedrock: Claude
    r"too many input tokens|input tokens exceeded|input tokens exceeds maximum",  # Bedrock: others
    r"total number of tokens in the (request|prompt) exceeds",  # Cohere
    r"size limit exceeded by \d+ tokens",  # Cohere
    r"longer than the model's context length",  # Together
    r"tokens \+ `?max_new_tokens`? must be <=",  # Together, Text Generation Inference
    r"reduce the length of (the|your) (messages|prompt|input)",  # OpenAI, Groq, Cerebras
    r"greater than the context length",  # LM Studio
    r"loaded with context length of only",  # LM Studio
    r"range of input length should be",  # DashScope
    r"context window exceeds limit",  # MiniMax
    r"token limit exceeded",  # gateways
)
_CONTEXT = re.compile("|".join(_CONTEXT_SAYINGS), re.IGNORECASE)

#: Messages for too many bytes in a request.
_REQUEST = re.compile(
    r"request_too_large|request entity too large|payload too large|request (size )?exceeds the (maximum|limit)",
    re.IGNORECASE,
)

#: Rate limits mention tokens too, but compacting does not help against them.
_RATE = re.compile(
    r"rate[_ -]?limit|throttl|per[_ -]min|per[_ -]day|\bTPM\b|\bRPM\b|quota|please wait|try again in \d|"
    r"resource[_ ]exhausted",
    re.IGNORECASE,
)

#: Cerebras answers an overflow with a bare status.
_BARE = re.compile(r"^\s*4(00|13)\s*(status code\s*)?\(no body\)", re.IGNORECASE)

_DEPTH = 6
_MOST_TEXTS = 200


def overflow_kind(error: object) -> Literal["context", "request_size"] | None:
    """Whether an error reports a request too long: too many tokens (context) or bytes (request size).

    Recognizes the errors of OpenAI, Azure, Anthropic, Gemini and Vertex, Bedrock, Mistral, Groq, xAI, OpenRouter,
    Ollama, llama.cpp, vLLM, LM Studio, Together, Fireworks, Cohere, DeepSeek, Cerebras, GitHub Copilot, MiniMax, Kimi,
    Z.ai and DashScope, by code, class or text. Rate limits and too high output limits do not count.

    Args:
        error: An exception (with its causes, code and body), a text, or a response body.

    Examples:
        >>> overflow_kind({"error": {"code": "context_length_exceeded"}})
        'context'
        >>> overflow_kind("prompt is too long: 213462 tokens > 200000 maximum")
        'context'
        >>> overflow_kind("Rate limit reached: limit of 30000 tokens per min") is None
        True
    """
    for each in _chain(error):
        texts = list(islice(_texts(each, _DEPTH), _MOST_TEXTS))
        # An exception is judged before its cause, which may be an older, unrelated error.
        if any(_RATE.search(text) for text in texts):
            return None
        if any(_CONTEXT.search(text) or _BARE.search(text) for text in texts):
            return "context"
        if any(_REQUEST.search(text) for text in texts):
            return "request_size"
    return None


def _chain(error: object) -> Iterator[object]:
    """An error and its causes."""
    for _ in range(_DEPTH):
        yield error
        error = (error.__cause__ or error.__context__) if isinstance(error, BaseException) else None


def _texts(error: object, depth: int) -> Iterator[str]:
    """All texts in an error."""
    if isinstance(error, str):
        yield error
    elif depth and isinstance(error, Mapping):
        for value in error.values():
            yield from _texts(value, depth - 1)
    elif depth and isinstance(error, (list, tuple)):
        for value in error:
            yield from _texts(value, depth - 1)
    elif depth and isinstance(error, BaseException):
        yield type(error).__name__
        yield from _texts(error.args, depth - 1)
        # SDKs keep code and body next to the text; botocore has a dict under `response`, httpx an object.
        for name in ("code", "type", "message", "body", "details", "response"):
            yield from _texts(getattr(error, name, None), depth - 1)
