"""Calls of LiteLLM's library, against a server on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import adapter_checks as checks
import examples
import litellm
import openai_loop
import pytest
from adapter_checks import MARK, SUMMARY, TURNS, Record, Script
from fake_server import serving

import foldline as fl
from foldline.integrations.litellm import FoldHook

litellm.num_retries = 0


def pinned(message: Any) -> bool:
    return message["role"] == "user" and MARK in str(message["content"])


class Setting:
    def __init__(self, base: str, record: Record, script: Script, **options: Any) -> None:
        self.base, self.record, self.script, self.options = base, record, script, options
        self.histories: dict[str, list[Any]] = {}
        self.seen: list[str] = []
        self.fresh()

    def fresh(self) -> None:
        self.hook = FoldHook(**self.record.options(**self.options), pins=[pinned])
        self.folder = self.hook._chat
        litellm.callbacks = [self.hook]

    async def call(self, history: list[Any], name: str, *, stream: bool) -> Any:
        options: Any = {
            "model": "openai/gpt-4o", "api_base": self.base, "api_key": "none", "messages": history,
            "tools": openai_loop.TOOLS, "metadata": {"session_id": name}, "stream": stream,
        }  # fmt: skip
        answer: Any = await litellm.acompletion(**options)
        if not stream:
            return answer.choices[0].message
        chunks = []
        async for chunk in answer:
            chunks.append(chunk)
            self.seen.append(chunk.choices[0].delta.content or "" if chunk.choices else "")
        built: Any = litellm.stream_chunk_builder(chunks)
        return built.choices[0].message

    async def turn(self, turn: int, name: str = "a", *, stream: bool = False) -> None:
        self.script.session = name
        history = self.histories.setdefault(name, openai_loop.beginning())
        history.append({"role": "user", "content": checks.prompt(turn)})
        goes_on = True
        while goes_on:
            message = await self.call(history, name, stream=stream)
            calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
            goes_on = openai_loop.answered(history, message.content, calls)

    async def turns(self, count: int = TURNS, **options: Any) -> None:
        for turn in range(count):
            await self.turn(turn, **options)


@pytest.fixture
def setting() -> Iterator[Any]:
    record, script = Record(), Script()
    with serving(script, record) as base:
        yield lambda **options: Setting(base, record, script, **options)
    litellm.callbacks = []


def test_four_turns(setting: Any, row: Any) -> None:
    made = setting()
    asyncio.run(made.turns())
    checks.check(made.record)
    assert SUMMARY not in str(made.histories["a"])
    row("LiteLLM, library", "litellm", made.record)


def test_two_sessions_in_turns(setting: Any) -> None:
    made = setting()

    async def run() -> None:
        for turn in range(TURNS):
            for name in ("a", "b"):
                await made.turn(turn, name)

    asyncio.run(run())
    checks.check(made.record, sessions=2)


def test_the_summary_is_not_in_the_stream(setting: Any) -> None:
    made = setting()
    asyncio.run(made.turns(stream=True))
    checks.check(made.record)
    assert "Turn 3 is done." in "".join(made.seen)
    assert SUMMARY not in "".join(made.seen)


def test_a_restart_finds_the_folds_in_the_store(setting: Any) -> None:
    made = setting(store=fl.stores.MemoryStore())

    async def run() -> None:
        for turn in range(TURNS):
            await made.turn(turn)
            made.fresh()

    asyncio.run(run())
    checks.check(made.record)


def test_a_failing_summarizer_is_harmless(setting: Any) -> None:
    def fail(messages: Any) -> str:
        raise RuntimeError("no summary today")

    made = setting(summarizer=fail)
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        asyncio.run(made.turns(2))
    assert made.record.folds == 0
    assert len(made.record.requests[-1].messages) == len(made.histories["a"]) - 1


def test_the_hook_of_the_proxy_folds_each_dialect_by_its_own_rules() -> None:
    record = Record()
    hook = FoldHook(**record.options(2_000), pins=[lambda message: MARK in str(message)])

    def call(kind: str, **data: Any) -> Any:
        return asyncio.run(hook.async_pre_call_hook(None, None, data, kind))

    texts = [("user", checks.PIN), *((("user", "assistant")[i % 2 == 0], "row " * 200) for i in range(20))]
    chat = [{"role": role, "content": text} for role, text in texts]
    blocks = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in texts]
    items = [{"type": "message", "role": role, "content": text} for role, text in texts]
    for kind, name, listed in (
        ("acompletion", "messages", chat),
        ("anthropic_messages", "messages", blocks),
        ("aresponses", "input", items),
    ):
        data = call(kind, model="m", metadata={"session_id": kind}, **{name: list(listed)})
        assert len(data[name]) < len(listed), kind
        assert str(data[name]).count(MARK) == 1
        assert SUMMARY in str(data[name])
    data = call("aembedding", model="m", messages=list(chat))
    assert data["messages"] == chat


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(setting: Any, name: str) -> None:
    made = setting()
    checks.SABOTAGE[name](made.folder)
    checks.assert_noticed(name, lambda: asyncio.run(made.turns()), made.record)


def test_the_example_of_the_document(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = examples.examples("litellm")
    made = setting()
    monkeypatch.setenv("OPENAI_API_BASE", made.base)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    messages = [{"role": "user", "content": "Good day."}]
    examples.run(example, messages=messages, tools=openai_loop.TOOLS)
    assert len(made.record.requests) == 1
