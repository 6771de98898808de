"""Recorded requests and sessions with the usage that providers reported, as lists that foldline counts.

`requests` reads the requests that pydantic-ai recorded; each names the part of its usage that messages and tools cannot
explain (`beside`), if any. `growth` reads Claude Code sessions: the messages added between two model calls, and
the growth of the reported prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Requests with tools from before Anthropic's preamble grew from about 320 to 497 tokens.
PREAMBLE_OF_2025 = {f"anthropic:{i}" for i in (73, 74, 79, 80, 83, 84)}


@dataclass
class Request:
    """A recorded request.

    Attributes:
        name: Its position: file and line from 0.
        model: The requested model.
        format: The dialect of `messages`.
        messages: The messages, with a leading system message if the system text was outside.
        tools: Tool schemas as they were sent.
        reported: Prompt tokens that the provider reported, only those of text if reported separately.
        beside: The charged content outside messages and tools.
    """

    name: str
    model: str
    format: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    reported: int
    beside: set[str] = field(default_factory=set)

    @property
    def has_calls(self) -> bool:
        """Whether there are calls or tools."""
        return bool(self.tools) or any(
            message.get("tool_calls") or message.get("call_id") or any(map(is_call, parts_of(message)))
            for message in self.messages
        )


def is_call(part: dict[str, Any]) -> bool:
    """Whether a part of a message is a call."""
    return part.get("type") == "tool_use" or bool(part.get("functionCall") or part.get("function_call"))


def parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a message whose content is a list."""
    content = message.get("content", message.get("parts"))
    return content if isinstance(content, list) else []


def lines(folder: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The recorded requests of a file that have a usage."""
    path = folder / "pydantic-ai-requests" / f"{name}.jsonl"
    with path.open(encoding="utf-8") as file:
        for i, line in enumerate(file):
            recorded = json.loads(line)
            if recorded.get("usage") and isinstance(recorded.get("body"), dict):
                yield f"{name}:{i}", recorded


def openai(folder: Path) -> Iterator[Request]:
    """Chat requests that OpenAI itself answered."""
    for name, recorded in lines(folder, "openai-chat"):
        body, reported = recorded["body"], recorded["usage"].get("prompt_tokens")
        if "api.openai.com" not in recorded["kind"] or not reported:
            continue
        beside = set()
        types = {part.get("type") for message in body["messages"] for part in parts_of(message)}
        if "file" in types:
            beside.add("a file")
        if "image_url" in types:
            beside.add("a picture")
        if "response_format" in body:
            beside.add("a response schema")
        if "search" in body["model"]:
            beside.add("a search model counts its own way")
        if name == "openai-chat:153":
            beside.add("a document of 12 KB, 19 tokens fewer than it has")
        yield Request(name, body["model"], "openai_chat", body["messages"], body.get("tools") or [], reported, beside)


def anthropic(folder: Path) -> Iterator[Request]:
    """Requests to Anthropic."""
    for name, recorded in lines(folder, "anthropic"):
        body, reported = recorded["body"], prompt_tokens(recorded["usage"])
        if not reported:
            continue
        model = body.get("model") or "claude-opus-4-8"  # on Bedrock the address names it
        system = body.get("system")
        messages = [{"role": "system", "content": system}] if system else []
        messages += body["messages"]
        tools = body.get("tools") or []
        beside = set()
        known = {"text", "tool_use", "tool_result"}
        parts = [part for message in body["messages"] for part in parts_of(message)]
        parts += [inner for part in parts if part["type"] == "tool_result" for inner in parts_of(part)]
        beside |= {f"a part {part['type']}" for part in parts if part["type"] not in known}
        beside |= {f"a tool {tool.get('type')}" for tool in tools if "input_schema" not in tool}
        if body.get("thinking"):
            beside.add("thinking: 29 for the parameter, earlier thinking dropped")
        if name in PREAMBLE_OF_2025:
            beside.add("the preamble of tools as it was in 2025")
        if body.get("mcp_servers"):
            beside.add("tools of an MCP server")
        if body.get("output_config", {}).get("format"):
            beside.add("a response schema")
        if body.get("output_config", {}).get("task_budget"):
            beside.add("a task budget")
        yield Request(name, model, "anthropic", messages, tools, reported, beside)


def openai_responses(folder: Path) -> Iterator[Request]:
    """Requests to the Responses API that OpenAI itself answered; the instructions become a leading system message."""
    for name, recorded in lines(folder, "openai-responses"):
        body, reported = recorded["body"], recorded["usage"].get("input_tokens")
        if not reported or "api.openai.com" not in recorded["uri"]:
            continue
        given, tools = body["input"], body.get("tools") or []
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        system = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
        beside = {f"a tool {tool['type']}" for tool in tools if tool["type"] != "function"}
        for key, what in BESIDE_INPUT.items():
            if body.get(key):
                beside.add(what)
        if "format" in (body.get("text") or {}):
            beside.add("a response schema")
        parts = [part for item in items for part in [*parts_of(item), *parts_of({"content": item.get("output")})]]
        beside |= {f"a part {part['type']}" for part in parts if not part["type"].endswith("text")}
        hidden = {"reasoning", "compaction", "additional_tools"}
        beside |= {f"an item {item['type']}" for item in items if item.get("type") in hidden}
        if (body.get("reasoning") or {}).get("mode") == "pro":
            beside.add("what the mode pro adds")
        if name == "openai-responses:83":
            beside.add("a request to compact")
        yield Request(name, body["model"], "openai_responses", system + items, tools, reported, beside)


#: Fields of a Responses request that refer to content outside it.
BESIDE_INPUT = {
    "previous_response_id": "earlier responses that are stored",
    "conversation": "a conversation that is stored",
}


def gemini(folder: Path) -> Iterator[Request]:
    """Requests to Gemini; the usage reports media separately."""
    for name, recorded in lines(folder, "gemini"):
        body, usage = recorded["body"], recorded["usage"]
        reported = sum(d.get("tokenCount", 0) for d in usage.get("promptTokensDetails", []) if d["modality"] == "TEXT")
        model = recorded["uri"].split("/")[-1].split(":")[0]
        if not reported or not isinstance(body.get("contents"), list):
            continue
        system = (body.get("systemInstruction") or {}).get("parts")
        contents = [{"role": "system", "parts": system}] if system else []
        contents += [without_media(content) for content in body["contents"]]
        beside = set()
        for part in (part for content in body["contents"] for part in content["parts"]):
            if "thoughtSignature" in part:
                beside.add("thoughts that a signature brings back")
            if "toolCall" in part or "toolResponse" in part:
                beside.add("calls of the provider's tools")
        tools = body.get("tools") or []
        tools = [tools] if isinstance(tools, dict) else tools
        if any(not {"functionDeclarations", "function_declarations"} & set(tool) for tool in tools):
            beside.add("the provider's tools")
        if {"responseSchema", "responseJsonSchema"} & set(body.get("generationConfig") or {}):
            beside.add("a response schema")
        yield Request(name, model, "gemini", contents, tools, reported, beside)


MEDIA = {"inlineData", "inline_data", "fileData", "file_data"}


def without_media(content: dict[str, Any]) -> dict[str, Any]:
    """A Gemini content without the media that its usage reports separately from text."""
    parts = [part for part in content["parts"] if not MEDIA & set(part)]
    for i, part in enumerate(parts):
        for name in {"functionResponse", "function_response"} & set(part):
            parts[i] = {**part, name: {key: value for key, value in part[name].items() if key != "parts"}}
    return {**content, "parts": parts}


def compact(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def prompt_tokens(usage: dict[str, Any]) -> int:
    """All input tokens of Anthropic's usage, cached or not."""
    keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(usage.get(key) or 0 for key in keys)


@dataclass
class Step:
    """The messages added between two model calls of a session.

    Attributes:
        session: The file.
        model: The model.
        messages: The model's message and the answers to it.
        grown: Growth of the prompt that the provider reported.
    """

    session: str
    model: str
    messages: list[dict[str, Any]]
    grown: int


def growth(folder: Path) -> Iterator[Step]:
    """The steps of all Claude Code sessions, except those with pictures or a compaction between the calls."""
    files = [*folder.glob("claude-code-entire/*.jsonl"), *folder.glob("claude-code-fixtures/full-*.jsonl")]
    for path in sorted(files):
        yield from steps(path)


def steps(path: Path) -> Iterator[Step]:
    """The steps of a session."""
    seen: set[str] = set()
    current: dict[str, Any] = {}
    messages: list[dict[str, Any]] = []
    prompt, broken = 0, True
    for entry in entries(path):
        message, uuid = entry.get("message"), entry.get("uuid")
        if entry.get("isSidechain") or (uuid and uuid in seen):
            continue
        seen.add(uuid or "")
        broken |= entry.get("subtype") == "compact_boundary" or bool(entry.get("isCompactSummary"))
        if not isinstance(message, dict) or entry.get("type") not in ("assistant", "user"):
            continue
        content = message.get("content") or []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        inner = [*blocks, *(b for block in blocks if block["type"] == "tool_result" for b in parts_of(block))]
        if entry["type"] == "assistant":
            if message.get("model") == "<synthetic>":
                broken = True
                continue
            if message["id"] != current.get("id"):
                grown = prompt_tokens(message["usage"]) - prompt
                if not broken and grown > 0:
                    yield Step(path.name, message["model"], messages, grown)
                prompt += grown
                current = {"id": message["id"], "message": {"role": "assistant", "content": []}}
                messages, broken = [current["message"]], False
            current["message"]["content"].extend(blocks)
        else:
            messages.append({"role": "user", "content": blocks})
        known = {"text", "thinking", "tool_use", "tool_result"}
        broken |= any(block["type"] not in known for block in inner)


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file without broken lines."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry
