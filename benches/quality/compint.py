"""COMPINT's side constraints (conpact) in real conversations: their survival after half of the tokens are removed.

The instances are built by conpact's own `build_instances`, over conversations of the shared data (Claude Code sessions,
airline dialogues) instead of the histories that it would download. No model judges: a constraint is kept if its words
are in the remaining messages. Three ways to halve a conversation are compared: its newer half, foldline with
an extractive summary, and the same with the message of the constraint pinned.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conpact.generate import build_instances
from judging import holds_verbatim

import foldline as fl

__all__ = ["POSITIONS", "WAYS", "Row", "measure", "version"]

POSITIONS = ("top", "middle", "bottom")
WAYS = ("newer half", "foldline", "foldline, pinned")
SUMMARY_TOKENS = 1_000


@dataclass(frozen=True)
class Row:
    """One way at one position, over all instances."""

    source: str
    length: int
    way: str
    position: str
    conversations: int
    instances: int
    kept: int
    unchanged: int

    @property
    def percent(self) -> float:
        """The number of kept constraints."""
        return 100 * self.kept / self.instances


def version() -> str:
    """The version of conpact."""
    return importlib.metadata.version("conpact")


def measure(shared: Path, source: str, length: int, *, direct: bool = True) -> list[Row]:
    """Rows of all ways and positions, over conversations of at least ``length`` tokens.

    Args:
        shared: The folder of the shared data.
        source: ``"sessions"`` or ``"dialogues"``.
        length: Tokens of a conversation after cutting, by o200k_base.
        direct: The constraint names its scope ("For the rest of this session."), as in the paper.
    """
    counter = fl.TokenCounter("o200k_base")
    stacks = _sessions(shared, counter) if source == "sessions" else _dialogues(shared, counter)
    haystacks = [stack for stack in stacks if stack["token_length"] >= length]
    rows = []
    for position in POSITIONS:
        instances = build_instances(haystacks, length=length, position=position, direct=direct, seed=42)
        kept = dict.fromkeys(WAYS, 0)
        unchanged = dict.fromkeys(kept, 0)
        for instance in instances:
            for way, messages in _ways(instance, counter).items():
                unchanged[way] += messages is None
                kept[way] += messages is not None and any(
                    holds_verbatim(text, instance.sc_text) for text in _texts(messages)
                )
        rows += [
            Row(source, length, way, position, len(haystacks), len(instances), kept[way], unchanged[way])
            for way in kept
        ]
    return rows


def _ways(instance: Any, counter: fl.TokenCounter) -> dict[str, list[dict[str, Any]] | None]:
    messages = instance.messages
    total = fl.plan(messages, fl.KeepMessages(len(messages)), counter=counter).tokens_before
    keep = fl.FitTokens(total // 2)
    options: dict[str, Any] = {
        "summarizer": fl.summarizers.Extractive(),
        "counter": counter,
        "summary_tokens": SUMMARY_TOKENS,
    }
    pins = list(instance.sc_message_indices)
    return {
        "newer half": _newer_half(messages, counter, total // 2),
        "foldline": _folded(fl.compact(messages, keep, **options)),
        "foldline, pinned": _folded(fl.compact(messages, keep, pins=pins, **options)),
    }


def _folded(result: Any) -> list[dict[str, Any]] | None:
    return list(result.messages) if result.summary is not None else None


def _newer_half(messages: list[dict[str, Any]], counter: fl.TokenCounter, budget: int) -> list[dict[str, Any]]:
    total = 0
    for at in range(len(messages) - 1, -1, -1):
        total += sum(counter.count(text) for text in _texts([messages[at]]))
        if total > budget:
            return messages[at + 1 :]
    return messages


def _texts(messages: Iterable[dict[str, Any]]) -> list[str]:
    texts = []
    for message in messages:
        texts.append(str(message.get("content") or ""))
        texts += [json.dumps(call["function"]) for call in message.get("tool_calls", ())]
    return texts


def _sessions(shared: Path, counter: fl.TokenCounter) -> list[dict[str, Any]]:
    stacks = []
    for path in sorted((shared / "data" / "claude-code-entire").glob("*.jsonl")):
        for transcript in fl.read(path):
            if transcript.format == "anthropic":
                messages = [part for message in transcript.messages for part in _openai(message)]
                stacks.append(_haystack(path.stem, messages, counter))
    return [stack for stack in stacks if _user_turns(stack) >= 3]


def _dialogues(shared: Path, counter: fl.TokenCounter) -> list[dict[str, Any]]:
    path = shared / "data" / "openai-tau-airline" / "gpt-4o-airline.tasks0-24.json"
    stacks = [_haystack(transcript.id, transcript.messages, counter) for transcript in fl.read(path)]
    return [stack for stack in stacks if _user_turns(stack) >= 3]


def _user_turns(stack: dict[str, Any]) -> int:
    return sum(message["role"] == "user" for message in stack["messages"])


def _haystack(name: str, messages: list[dict[str, Any]], counter: fl.TokenCounter) -> dict[str, Any]:
    tokens = [sum(counter.count(text) for text in _texts([message])) for message in messages]
    return {
        "messages": messages,
        "message_tokens": tokens,
        "token_length": sum(tokens),
        "haystack_id": name,
        "source": "foldline",
        "system_prompt": "",
        "source_conversation_count": 1,
    }


def _openai(message: dict[str, Any]) -> list[dict[str, Any]]:
    """An Anthropic message as OpenAI messages: constraints go before the content of user messages that are text."""
    content = message["content"]
    if isinstance(content, str):
        return [{"role": message["role"], "content": content}]
    text = "\n".join(block["text"] for block in content if block.get("type") == "text")
    if message["role"] == "assistant":
        calls = [
            {
                "id": block["id"],
                "type": "function",
                "function": {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)},
            }
            for block in content
            if block.get("type") == "tool_use"
        ]
        return (
            [{"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})]
            if text or calls
            else []
        )
    results = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _result_text(block)}
        for block in content
        if block.get("type") == "tool_result"
    ]
    return results + ([{"role": "user", "content": text}] if text else [])


def _result_text(block: dict[str, Any]) -> str:
    content = block.get("content", "")
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)
