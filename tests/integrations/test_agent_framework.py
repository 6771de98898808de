"""Agents of Agent Framework with its chat completions client, against a server on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import adapter_checks as checks
import examples
import pytest
from adapter_checks import MARK, SUMMARY, TURNS, Record, Script
from agent_framework import Agent, AgentSession, Content, FunctionTool, InMemoryHistoryProvider, Message
from agent_framework_openai import OpenAIChatCompletionClient
from fake_server import serving

import foldline as fl
from foldline.integrations._agent_framework_messages import AgentFrameworkCodec
from foldline.integrations.agent_framework import FoldStrategy

SCHEMA = {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}


def read_part(part: str) -> str:
    return checks.result_of(part)


TOOLS = [
    FunctionTool(name=name, description=checks.tool_description(name), func=read_part, input_model=SCHEMA)
    for name in ("read_part", "check_part")
]


def pinned(message: Any) -> bool:
    return message.role == "user" and MARK in message.text


class Setting:
    def __init__(self, base: str, record: Record, script: Script, **options: Any) -> None:
        self.base, self.record, self.script, self.options = base, record, script, options
        self.sessions: dict[str, AgentSession] = {}
        self.seen: list[str] = []
        self.fresh()

    def client(self) -> OpenAIChatCompletionClient:
        return OpenAIChatCompletionClient(
            model="gpt-4o", base_url=self.base, api_key="none", function_invocation_configuration={"max_iterations": 50}
        )

    def fresh(self) -> None:
        options = self.record.options(**self.options)
        fold = FoldStrategy(
            **options, pins=[pinned], tools=TOOLS, instructions=checks.SYSTEM, key=lambda _: self.script.session
        )
        self.folder = fold._folder
        self.agent = Agent(
            self.client(), instructions=checks.SYSTEM, tools=TOOLS, compaction_strategy=fold,
            context_providers=[InMemoryHistoryProvider()],
        )  # fmt: skip

    async def turn(self, turn: int, name: str = "a", *, stream: bool = False) -> None:
        self.script.session = name
        session = self.sessions.setdefault(name, AgentSession(session_id=name))
        if not stream:
            await self.agent.run(checks.prompt(turn), session=session)
            return
        async for update in self.agent.run(checks.prompt(turn), session=session, stream=True):
            self.seen.append(update.text)

    async def turns(self, count: int = TURNS, **options: Any) -> None:
        for turn in range(count):
            await self.turn(turn, **options)

    def history(self, name: str = "a") -> list[Message]:
        """All messages of the session, as its provider stores them."""
        states = [each for each in self.sessions[name].state.values() if "messages" in each]
        found: list[Message] = states[0]["messages"]
        return found


@pytest.fixture
def setting() -> Iterator[Any]:
    record, script = Record(), Script()
    with serving(script, record) as base:
        yield lambda **options: Setting(base, record, script, **options)


def test_four_turns(setting: Any, row: Any) -> None:
    made = setting()
    asyncio.run(made.turns())
    checks.check(made.record)
    row("Agent Framework", "agent-framework-core", made.record)


def test_two_sessions_in_turns(setting: Any) -> None:
    made = setting()

    async def run() -> None:
        for turn in range(TURNS):
            for name in ("a", "b"):
                await made.turn(turn, name)

    asyncio.run(run())
    checks.check(made.record, sessions=2)


def test_the_history_of_the_session_keeps_every_message(setting: Any) -> None:
    made = setting()
    asyncio.run(made.turns())
    checks.check(made.record)
    history = made.history()
    assert SUMMARY not in str([each.to_dict() for each in history])
    results = [content for each in history for content in each.contents if content.type == "function_result"]
    assert len(results) == TURNS * (checks.CALLS - 1 + 4)


def test_the_summary_is_not_in_the_stream(setting: Any) -> None:
    made = setting()
    asyncio.run(made.turns(stream=True))
    checks.check(made.record)
    assert "Turn 3 is done." in "".join(made.seen)
    assert SUMMARY not in "".join(made.seen)


def test_a_restored_session_finds_the_folds_in_the_store(setting: Any) -> None:
    made = setting(store=fl.stores.MemoryStore())

    async def run() -> None:
        for turn in range(TURNS):
            await made.turn(turn)
            stored = json.dumps(made.sessions["a"].to_dict())
            made.sessions["a"] = AgentSession.from_dict(json.loads(stored))
            made.fresh()  # as a new process

    asyncio.run(run())
    checks.check(made.record)


def test_kept_messages_are_the_same_objects(setting: Any) -> None:
    made = setting()
    run = made.folder.afold

    async def afold(messages: Any, **options: Any) -> Any:
        folded = await run(messages, **options)
        again = await run(messages, **options)
        assert [id(each) for each in again.messages] == [id(each) for each in folded.messages]
        if folded.changed:
            new = [each for each in folded.messages if not any(each is known for known in messages)]
            assert [SUMMARY in each.text for each in new] == [True]
        return folded

    made.folder.afold = afold
    asyncio.run(made.turns())
    checks.check(made.record)


def test_a_failing_summarizer_is_harmless(setting: Any) -> None:
    def fail(messages: Any) -> str:
        raise RuntimeError("no summary today")

    made = setting(summarizer=fail)
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        asyncio.run(made.turns(2))
    assert made.record.folds == 0
    assert not any(each.additional_properties.get("_excluded") for each in made.history())


def test_messages_that_something_else_excludes_stay_excluded() -> None:
    record = Record()
    fold = FoldStrategy(**record.options(2_000), pins=[pinned])
    texts = [checks.PIN, *(f"row {i} " * 60 for i in range(20))]
    messages = [Message(("user", "assistant")[i % 2], [text]) for i, text in enumerate(texts)]
    messages[3].additional_properties.update({"_excluded": True, "_exclude_reason": "too old"})
    given = list(messages)
    assert asyncio.run(fold(messages))
    assert messages[messages.index(given[3])].additional_properties["_exclude_reason"] == "too old"
    sent = [each for each in messages if not each.additional_properties.get("_excluded")]
    assert len(sent) < len(given)
    assert [each for each in messages if any(each is known for known in given)] == given
    assert sum(MARK in each.text for each in sent) == 1
    assert sum(SUMMARY in each.text for each in sent) == 1
    assert not asyncio.run(fold(messages)), "the same input gives the same answer"


def test_one_message_is_a_dict_for_each_result_and_one_again() -> None:
    codec = AgentFrameworkCodec()
    results = [Content.from_function_result(f"call_{i}", result=f"part {i}") for i in range(2)]
    message = Message("tool", results)
    dicts = codec.dicts(message)
    assert [each["tool_call_id"] for each in dicts] == ["call_0", "call_1"]
    copy = codec.edited(message, dicts, [(1, {**dicts[1], "content": "[cleared]"})])
    assert [(each.call_id, each.result) for each in copy.contents] == [("call_1", "[cleared]")]
    assert message.contents == results
    assert results[1].result == "part 1"


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(setting: Any, name: str) -> None:
    made = setting()
    checks.SABOTAGE[name](made.folder)
    checks.assert_noticed(name, lambda: asyncio.run(made.turns()), made.record)


def test_the_example_of_the_document(setting: Any) -> None:
    (example,) = examples.examples("agent_framework")
    made = setting()
    made.script.at["a"] = checks.CALLS - 1
    examples.run(example, client=made.client(), tools=TOOLS)
    assert len(made.record.requests) == 1
