"""Loops over the SDKs of OpenAI and Anthropic, as docs/integrations.md shows them, against a server on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import adapter_checks as checks
import anthropic
import examples
import fake_server
import openai
import openai_loop
import pytest
from adapter_checks import MARK, SUMMARY, TURNS, Record, Request, Script
from fake_server import serving

import foldline as fl


def pinned(message: Any) -> bool:
    return message["role"] == "user" and MARK in str(message["content"])


@pytest.fixture
def served() -> Iterator[Any]:
    record, script = Record(), Script()
    with serving(script, record) as base:
        yield base, record, script


def compactor(record: Record, **options: Any) -> fl.Compactor:
    made = record.compactor(pins=[pinned], **options)
    made.subscribe(record.events.append)
    return made


# --- OpenAI -------------------------------------------------------------------------------------------


def openai_turn(client: Any, each: fl.Compactor, history: list[Any], turn: int, name: str, *, stream: bool) -> str:
    """One turn; gives what a user sees."""
    history.append({"role": "user", "content": checks.prompt(turn)})
    goes_on, seen = True, ""
    while goes_on:
        request: Any = each.prepare(history, session=name, tools=openai_loop.TOOLS).messages
        answer: Any = client.chat.completions.create(
            model="gpt-4o", messages=request, tools=openai_loop.TOOLS, stream=stream
        )
        if stream:
            deltas = [chunk.choices[0].delta for chunk in answer if chunk.choices]
            text = "".join(delta.content or "" for delta in deltas)
            calls = [(c.id, c.function.name, c.function.arguments) for d in deltas for c in d.tool_calls or ()]
        else:
            message = answer.choices[0].message
            text = message.content or ""
            calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
        seen += text
        goes_on = openai_loop.answered(history, text or None, calls)
    return seen


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_loop_over_openai(served: Any, row: Any, stream: bool) -> None:
    base, record, script = served
    client = openai.OpenAI(base_url=base, api_key="none", max_retries=0)
    each, histories, seen = compactor(record), {"a": openai_loop.beginning(), "b": openai_loop.beginning()}, ""
    for turn in range(TURNS):
        for name, history in histories.items():
            script.session = name
            seen += openai_turn(client, each, history, turn, name, stream=stream)
    checks.check(record, sessions=2)
    assert "Turn 3 is done." in seen
    assert SUMMARY not in seen + str(histories)
    if not stream:
        row("loop over the SDK, two sessions", "openai", record)


def test_a_loop_that_forgets_its_tools_is_noticed(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    base, record, script = served
    client = openai.OpenAI(base_url=base, api_key="none", max_retries=0)
    each, history = compactor(record), openai_loop.beginning()
    prepare = each.prepare
    monkeypatch.setattr(each, "prepare", lambda messages, session, tools: prepare(messages, session=session))
    for turn in range(TURNS):
        openai_turn(client, each, history, turn, script.session, stream=False)
    with pytest.raises(AssertionError, match="a request has"):
        checks.check(record)


# --- Anthropic ----------------------------------------------------------------------------------------


def chat_of(messages: list[Any], system: str) -> list[dict[str, Any]]:
    """Anthropic's messages as chat completions."""
    found: list[dict[str, Any]] = [{"role": "system", "content": system}]
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [
            {"id": b["id"], "function": {"name": b["name"], "arguments": json.dumps(b["input"])}}
            for b in blocks
            if b["type"] == "tool_use"
        ]
        results = [block for block in blocks if block["type"] == "tool_result"]
        found += [{"role": "tool", "tool_call_id": r["tool_use_id"], "content": r["content"]} for r in results]
        if calls or text:
            found.append({"role": message["role"], "content": text, **({"tool_calls": calls} if calls else {})})
    return found


class Messages(fake_server.Handler):
    """Serves Anthropic's ``POST /v1/messages``."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        chat = chat_of(body["messages"], body["system"])
        problems = fl.validate(body["messages"], "anthropic")
        if problems:
            return self._send(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "broken"}})
        script = self.server.script
        self.server.record.requests.append(Request(script.session, chat, body["tools"]))
        said = script.next()
        if isinstance(said, str):
            content: list[Any] = [{"type": "text", "text": said}]
        else:
            content = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in said]
        reason = "end_turn" if isinstance(said, str) else "tool_use"
        answer = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": content}
        answer |= {"stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        return self._send(200, answer)


def test_a_loop_over_anthropic(row: Any) -> None:
    record, script = Record(), Script()
    tools: Any = [
        {"name": t["function"]["name"], "description": t["function"]["description"],
         "input_schema": t["function"]["parameters"]}
        for t in openai_loop.TOOLS
    ]  # fmt: skip
    each, history = compactor(record), []
    with serving(script, record, Messages) as base:
        client = anthropic.Anthropic(base_url=base.removesuffix("/v1"), api_key="none", max_retries=0)
        for turn in range(TURNS):
            history.append({"role": "user", "content": checks.prompt(turn)})
            while True:
                request: Any = each.prepare(history, session="a", tools=tools, system=checks.SYSTEM).messages
                answer = client.messages.create(
                    model="claude-sonnet-4-5", max_tokens=100, system=checks.SYSTEM, tools=tools, messages=request
                )
                blocks: Any = [block.model_dump(exclude_none=True) for block in answer.content]
                history.append({"role": "assistant", "content": blocks})
                results = [
                    {"type": "tool_result", "tool_use_id": b["id"], "content": checks.result_of(b["input"]["part"])}
                    for b in blocks
                    if b["type"] == "tool_use"
                ]
                if not results:
                    break
                history.append({"role": "user", "content": results})
    checks.check(record)
    assert SUMMARY not in str(history)
    row("loop over the SDK", "anthropic", record)


def test_the_example_of_the_document(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    base, record, script = served
    monkeypatch.setenv("OPENAI_BASE_URL", base)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    script.at["a"] = checks.CALLS - 1
    (example,) = [each for each in examples.all_examples() if "import openai" in each]
    scope = examples.run(example, tools=openai_loop.TOOLS)
    assert scope["history"][-1]["role"] == "assistant"
    assert len(record.requests) == 1
