"""Agents of Pydantic AI with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import adapter_checks as checks
import examples
import pytest
from adapter_checks import MARK, SUMMARY, TURNS, Record, Request, Script
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import foldline as fl
from foldline.integrations._pydantic_ai_messages import PydanticCodec
from foldline.integrations.pydantic_ai import Fold, FoldStrategy


def read_part(part: str) -> str:
    return checks.result_of(part)


TOOLS = [
    Tool(read_part, name=name, description=checks.tool_description(name), takes_ctx=False)
    for name in ("read_part", "check_part")
]

CONVERTER = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="none"))


def pinned(message: Any) -> bool:
    return isinstance(message, ModelRequest) and any(
        isinstance(part, UserPromptPart) and MARK in str(part.content) for part in message.parts
    )


class Setting:
    def __init__(self, **options: Any) -> None:
        self.record, self.script, self.options = Record(), Script(), options
        self.history: dict[str, Any] = {}
        self.fresh()

    def fresh(self) -> None:
        options = self.record.options(**self.options) | {"pins": [pinned]}
        fold = Fold(**options, key=lambda ctx: self.script.session)
        self.folder = fold._folder
        model = FunctionModel(self.answer, stream_function=self.stream)
        self.agent = Agent(
            model, instructions=checks.SYSTEM, system_prompt="Be kind.", tools=TOOLS, capabilities=[fold]
        )

    async def _said(self, messages: Any, info: AgentInfo) -> Any:
        """The script's answer. The request is recorded as `OpenAIChatModel` would send it."""
        parameters = info.model_request_parameters
        listed: Any = await CONVERTER._map_messages(messages, parameters)
        tools: Any = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.parameters_json_schema},
            }
            for t in info.function_tools
        ]
        self.record.requests.append(Request(self.script.session, json.loads(json.dumps(listed)), tools, messages))
        return self.script.next()

    async def answer(self, messages: Any, info: AgentInfo) -> ModelResponse:
        said = await self._said(messages, info)
        if isinstance(said, str):
            return ModelResponse(parts=[TextPart(said)])
        return ModelResponse(parts=[ToolCallPart(name, arguments, tool_call_id=i) for i, name, arguments in said])

    async def stream(self, messages: Any, info: AgentInfo) -> AsyncIterator[Any]:
        said = await self._said(messages, info)
        if isinstance(said, str):
            for word in said.split(" "):
                yield word + " "
        else:
            yield {
                at: DeltaToolCall(name, json.dumps(arguments), tool_call_id=i)
                for at, (i, name, arguments) in enumerate(said)
            }

    async def turn(self, turn: int, name: str = "a") -> Any:
        self.script.session = name
        result = await self.agent.run(checks.prompt(turn), message_history=self.history.get(name))
        self.history[name] = result.all_messages()
        return result

    async def turns(self, count: int = TURNS) -> None:
        for turn in range(count):
            await self.turn(turn)


def test_four_turns(row: Any) -> None:
    setting = Setting()
    asyncio.run(setting.turns())
    checks.check(setting.record)
    row("Pydantic AI", "pydantic-ai-slim", setting.record)


def test_two_sessions_in_turns() -> None:
    setting = Setting()

    async def run() -> None:
        for turn in range(TURNS):
            for name in ("a", "b"):
                await setting.turn(turn, name)

    asyncio.run(run())
    checks.check(setting.record, sessions=2)


def test_the_history_of_the_run_is_the_folded_one_and_survives_a_round_trip() -> None:
    setting = Setting()

    async def run() -> None:
        for turn in range(TURNS):
            await setting.turn(turn)
            stored = ModelMessagesTypeAdapter.dump_json(setting.history["a"])
            setting.history["a"] = ModelMessagesTypeAdapter.validate_json(stored)
            setting.fresh()  # as a new process

    asyncio.run(run())
    checks.check(setting.record)
    assert SUMMARY in str(setting.history["a"])
    assert len(setting.history["a"]) < TURNS * checks.CALLS * 2


def test_kept_messages_are_the_same_objects() -> None:
    setting = Setting()
    known: list[Any] = []
    run = setting.folder.afold

    async def afold(messages: Any, **options: Any) -> Any:
        known.extend(messages)
        folded = await run(messages, **options)
        if folded.result.event is not None:
            new = [m for m in folded.messages if not any(m is each for each in known)]
            assert [SUMMARY in str(each) for each in new if each not in folded.edited] == [True]
            assert all(type(each) is ModelRequest for each in folded.edited)
        return folded

    setting.folder.afold = afold  # type: ignore[method-assign]
    asyncio.run(setting.turns())
    checks.check(setting.record)


def test_a_failing_summarizer_is_harmless() -> None:
    def fail(messages: Any) -> str:
        raise RuntimeError("no summary today")

    setting = Setting(summarizer=fail)
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        asyncio.run(setting.turns(2))
    assert setting.record.folds == 0
    assert len(setting.history["a"]) == 2 * checks.CALLS * 2


def test_the_summary_is_not_in_the_stream() -> None:
    setting = Setting()
    seen: list[str] = []

    async def run() -> None:
        for turn in range(TURNS):
            async with setting.agent.run_stream(
                checks.prompt(turn), message_history=setting.history.get("a")
            ) as result:
                seen.extend([text async for text in result.stream_text(delta=True)])
            setting.history["a"] = result.all_messages()

    asyncio.run(run())
    checks.check(setting.record)
    assert "Turn 3 is done." in "".join(seen)
    assert SUMMARY not in "".join(seen)


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(name: str) -> None:
    """The history is the folded one, so that there is no memory to break: the fold is undone instead."""
    setting = Setting()
    checks.SABOTAGE[name](setting.folder)
    if name == "memory":
        run = setting.folder.afold

        async def afold(messages: Any, **options: Any) -> Any:
            return await run(list(messages), **options | {"force": len(messages) > 6})

        setting.folder.afold = afold  # type: ignore[method-assign]
    checks.assert_noticed(name, lambda: asyncio.run(setting.turns()), setting.record)


def test_one_request_is_many_dicts_and_one_again() -> None:
    codec = PydanticCodec()
    request = ModelRequest(
        parts=[
            SystemPromptPart("Be brief."),
            UserPromptPart(["Look:", "well?"]),
            ToolReturnPart("read_part", {"rows": 3}, tool_call_id="1"),
            RetryPromptPart("no such part", tool_name="read_part", tool_call_id="2"),
        ],
        instructions="Be kind.",
    )
    dicts = codec.dicts(request)
    assert [each["role"] for each in dicts] == ["system", "user", "tool", "tool"]
    assert dicts[2]["content"] == '{"rows":3}'
    kept = [(0, dicts[0]), (2, {**dicts[2], "content": "[cleared]"})]
    copy = codec.edited(request, dicts, kept)
    assert copy.parts[0] is request.parts[0]
    assert copy.parts[1].content == "[cleared]"
    assert copy.parts[1].tool_call_id == "1"
    assert len(request.parts) == 4


def test_the_harness_tier_compacts_when_it_is_called() -> None:
    record = Record()
    tier = FoldStrategy(**record.options(), is_pinned=lambda part: MARK in str(getattr(part, "content", "")))
    messages: list[Any] = [ModelRequest(parts=[UserPromptPart(checks.PIN)])]
    for i in range(30):
        messages.append(ModelResponse(parts=[ToolCallPart("read_part", {"part": str(i)}, tool_call_id=str(i))]))
        back = ToolReturnPart("read_part", checks.result_of(str(i)), tool_call_id=str(i))
        messages.append(ModelRequest(parts=[back]))

    class Context:
        conversation_id = "a"

    new: Any = asyncio.run(tier.compact(messages, Context()))  # type: ignore[arg-type]
    assert record.summaries == 1
    assert len(new) < len(messages)
    assert str(new).count(MARK) == 1
    assert new[-1] is messages[-1]


def test_the_example_of_the_document() -> None:
    (example,) = examples.examples("pydantic_ai")
    setting = Setting()
    setting.script.at["a"] = checks.CALLS - 1
    setting.script.next = lambda: "Good day."  # type: ignore[method-assign]
    examples.run(example, model=FunctionModel(setting.answer), tools=TOOLS)
    assert len(setting.record.requests) == 2
