"""Recognizes provider errors for requests that exceed the context window.

The texts are data, with the place where each was seen: ``overflow.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal

__all__ = ["overflow_kind"]

#: Rate limits mention tokens too, but compacting does not help against them.
_RATE = re.compile(
    r"rate[_ -]?limit|throttl|per[_ -]min|per[_ -]day|\bTPM\b|\bRPM\b|quota|please wait|try again in \d|"
    r"retry after|too many requests|resource[_ ]exhausted",
    re.IGNORECASE,
)

#: A limit of tokens in a period, with the tokens that the request asked for.
_TOKENS_IN_A_PERIOD = re.compile(
    r"tokens per (?:min|day).{0,40}?\blimit:? ([\d,]{1,15}).{0,40}?\brequested:? ([\d,]{1,15})",
    re.IGNORECASE | re.DOTALL,
)

#: The provider names the time after which the same request is accepted.
_WAIT = re.compile(r"(?:try again|retry) (?:in|after) \d", re.IGNORECASE)

#: Cerebras answers an overflow with a bare status.
_BARE = re.compile(r"^\s*4(00|13)\s*(status code\s*)?\(no body\)", re.IGNORECASE)

_DEPTH = 6
_MOST_TEXTS = 200


def overflow_kind(error: object) -> Literal["context", "request_size"] | None:
    """Whether an error reports a request too long: too many tokens (context) or bytes (request size).

    Recognizes the errors of OpenAI, Azure, Anthropic, Gemini and Vertex, Bedrock, Mistral, Groq, xAI, OpenRouter,
    GitHub Models and Copilot, Ollama, llama.cpp, vLLM, SGLang, LM Studio, Text Generation Inference, TensorRT-LLM,
    Together, Fireworks, Cloudflare, watsonx, Cohere, DeepSeek, Cerebras, MiniMax, Kimi, Z.ai, DashScope, Volcengine,
    SiliconFlow, Tencent, Baidu and others, by code, class or text. Rate limits and too high output limits do not count.
    A request that exceeds the tokens of a minute by itself does: it is rejected however long the caller waits.

    Args:
        error: An exception (with its causes, code and body), a text, or a response body.

    Examples:
        >>> overflow_kind({"error": {"code": "context_length_exceeded"}})
        'context'
        >>> overflow_kind("prompt is too long: 213462 tokens > 200000 maximum")
        'context'
        >>> overflow_kind("Rate limit reached: limit of 30000 tokens per min") is None
        True
        >>> overflow_kind("Request too large on tokens per min (TPM): Limit 30000, Requested 45210.")
        'context'
    """
    for each in _chain(error):
        texts = list(islice(_texts(each, _DEPTH), _MOST_TEXTS))
        # An exception is judged before its cause, which may be an older, unrelated error.
        if any(_exceeds_its_period(text) for text in texts):
            return "context"
        if any(_RATE.search(text) for text in texts):
            return None
        context, request_size = _patterns()
        if any(context.search(text) or _BARE.search(text) for text in texts):
            return "context"
        if any(request_size.search(text) for text in texts):
            return "request_size"
    return None


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The patterns for too many tokens and for too many bytes. Read at the first use, not at import."""
    table = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

    def pattern(kind: str) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{row['pattern']})" for row in table[kind]), re.IGNORECASE)

    return pattern("context"), pattern("request_size")


def _exceeds_its_period(text: str) -> bool:
    """Whether a request asked for more tokens than the limit of a minute or day, so that waiting never helps."""
    found = _TOKENS_IN_A_PERIOD.search(text)
    if found is None or _WAIT.search(text):
        return False
    limit, requested = (int(digits.replace(",", "") or 0) for digits in found.groups())
    return requested > limit


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
