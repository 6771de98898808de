"""docs/formats.md has a table of every format: what is done with it, by trying it on a sample.

To write it anew after a change: ``python tests/unit/test_formats_document.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import foldline as fl
from foldline._core import FORMATS, PROVIDER_OF_FORMAT

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
MARKS = ("<!-- table of formats -->", "<!-- end of table -->")
WORDS = "word " * 60


class Sample(NamedTuple):
    """A short conversation of a format, with a call and its result."""

    turns: list[dict[str, Any]]
    recorded: str
    """Where a recorded one is, or what the written ones follow."""


def chat(call: dict[str, Any], result: dict[str, Any], content: str = "content") -> list[dict[str, Any]]:
    """A question, a call, its result, an answer."""
    return [{"role": "user", content: WORDS}, call, result, {"role": "assistant", content: WORDS}]


FUNCTION = {"id": "call00001", "type": "function", "function": {"name": "go", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [FUNCTION]}
ANSWERED = {"role": "tool", "tool_call_id": "call00001", "content": WORDS}
TYPED = {"type": "text", "text": WORDS}

SAMPLES: dict[str, Sample] = {
    "openai_chat": Sample(chat(CALLED, ANSWERED), "recorded: tau-bench, pydantic-ai's requests (MIT)"),
    "openai_responses": Sample(
        [
            {"type": "message", "role": "user", "content": WORDS},
            {"type": "function_call", "call_id": "a", "name": "go", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": WORDS},
            {"type": "message", "role": "assistant", "content": WORDS},
        ],
        "recorded: Codex rollouts, pydantic-ai's requests (MIT)",
    ),
    "anthropic": Sample(
        chat(
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "go", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": WORDS}]},
        ),
        "recorded: Claude Code sessions, pydantic-ai's requests (MIT)",
    ),
    "gemini": Sample(
        [
            {"role": "user", "parts": [{"text": WORDS}]},
            {"role": "model", "parts": [{"functionCall": {"name": "go", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "go", "response": {"output": WORDS}}}]},
            {"role": "model", "parts": [{"text": WORDS}]},
        ],
        "recorded: Gemini CLI sessions, pydantic-ai's requests (MIT)",
    ),
    "pi": Sample(
        [
            {"role": "user", "content": WORDS},
            {"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "go", "arguments": {}}]},
            {"role": "toolResult", "toolCallId": "a", "content": [TYPED]},
            {"role": "assistant", "content": [TYPED]},
        ],
        "recorded: a session of pi (MIT)",
    ),
    "ai_sdk": Sample(
        chat(
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "go", "input": {}}]},
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "a",
                        "toolName": "go",
                        "output": {"type": "text", "value": WORDS},
                    }
                ],
            },
        ),
        "written after the types of `ai` (`ModelMessage`)",
    ),
    "langchain": Sample(
        [
            {"type": "human", "data": {"content": WORDS}},
            {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "a", "name": "go", "args": {}}]}},
            {"type": "tool", "data": {"content": WORDS, "tool_call_id": "a"}},
            {"type": "ai", "data": {"content": WORDS}},
        ],
        "written with `messages_to_dict` of langchain-core",
    ),
    "gent": Sample(
        [{"messages": [{"role": role, "text": WORDS}], "origin": ""} for role in ("human", "ai", "human", "ai")],
        "written after the seed document",
    ),
    "sharegpt": Sample(
        [
            {"from": "human", "value": WORDS},
            {"from": "function_call", "value": "{}"},
            {"from": "observation", "value": WORDS},
            {"from": "gpt", "value": WORDS},
        ],
        "recorded: `tests/unit/data/sessions/sharegpt-tools.json` (Apache-2.0)",
    ),
    "bedrock_converse": Sample(
        [
            {"role": "user", "content": [{"text": WORDS}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "go", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": WORDS}]}}]},
            {"role": "assistant", "content": [{"text": WORDS}]},
        ],
        "written after the API reference of the Bedrock runtime (`Converse`)",
    ),
    "ai_sdk_ui": Sample(
        [
            {"role": "user", "parts": [TYPED]},
            {
                "role": "assistant",
                "parts": [
                    {
                        "type": "tool-go",
                        "toolCallId": "a",
                        "state": "output-available",
                        "input": {},
                        "output": WORDS,
                    }
                ],
            },
            {"role": "user", "parts": [TYPED]},
            {"role": "assistant", "parts": [TYPED]},
        ],
        "written after the types of `ai` (`UIMessage`)",
    ),
    "mistral": Sample(
        [
            *chat(CALLED, ANSWERED),
            {"role": "user", "content": WORDS},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": [TYPED]}, TYPED]},
        ],
        "written after the API reference of Mistral",
    ),
    "cohere": Sample(
        chat(
            {"role": "assistant", "tool_plan": WORDS, "tool_calls": [FUNCTION]},
            {
                "role": "tool",
                "tool_call_id": "call00001",
                "content": [{"type": "document", "document": {"data": WORDS}}],
            },
        ),
        "recorded, without calls: pydantic-ai's requests (MIT)",
    ),
}


def with_ids(turns: list[dict[str, Any]], number: str) -> list[dict[str, Any]]:
    """A copy whose call has an id of its own."""
    written = json.dumps(turns).replace('"a"', f'"a{number}"').replace('"call00001"', f'"call0000{number}"')
    copied: list[dict[str, Any]] = json.loads(written)
    return copied


def row(format: str) -> str:
    """The row of a format, from what its sample shows."""
    sample = SAMPLES[format]
    messages = [turn for number in range(3) for turn in with_ids(sample.turns, str(number))]
    provider = PROVIDER_OF_FORMAT.get(format)
    counter = fl.TokenCounter("o200k_base")
    counts = counter.count_messages(messages, format=format)
    assert counts.total > counter.count(WORDS) * len(messages) // 3
    structure = fl.analyze(messages, format=format)
    assert not structure.open_calls
    assert not structure.orphan_results
    folded = fl.compact(messages, fl.KeepMessages(1), counter=counter, format=format)
    assert folded.outcome == "folded"
    kept = [new for new, source in zip(folded.messages, folded.sources, strict=True) if source is not None]
    assert kept
    assert all(any(new is old for old in messages) for new in kept)
    (summary,) = [new for new, source in zip(folded.messages, folded.sources, strict=True) if source is None][:1]
    found = fl.detect_format([*sample.turns, summary])
    assert found.format == format
    if provider is not None:
        assert fl.validate(folded.messages, provider) == fl.validate(messages, provider) == []
        broken = [message for message in messages if message is not messages[2]]
        assert fl.validate(broken, provider)
        assert fl.repair(broken, provider).problems == []
    checked = f"`{provider}`" if provider else "no API takes it"
    # What Mistral and Cohere add around a text is not measured.
    framed = "texts" if provider in (None, "mistral", "cohere") else "with framing"
    mended = "yes" if provider else ""
    return f"| `{format}` | yes | {framed} | {checked} | {mended} | yes | yes | {sample.recorded} |"


def table() -> str:
    """The whole table."""
    head = "| format | read | counted | validated | repaired | folded | written back | sample |"
    return "\n".join([head, "|---|---|---|---|---|---|---|---|", *(row(format) for format in FORMATS)])


def test_every_format_has_a_sample() -> None:
    assert tuple(SAMPLES) == FORMATS


@pytest.mark.parametrize("format", FORMATS)
def test_a_sample_is_detected(format: str) -> None:
    assert fl.detect_format(SAMPLES[format].turns).format == format


def test_the_table_says_what_is_done() -> None:
    written = DOCUMENT.read_text(encoding="utf-8").partition(MARKS[0])[2].partition(MARKS[1])[0].strip()
    assert written == table()


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    DOCUMENT.write_text(f"{before}{MARKS[0]}\n\n{table()}\n\n{MARKS[1]}{after}", encoding="utf-8")
