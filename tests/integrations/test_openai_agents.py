"""The runner of OpenAI Agents with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import adapter_checks as checks
import examples
import pytest
from adapter_checks import MARK, SUMMARY, TURNS, Record, Request, Script
from agents import Agent, FunctionTool, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, set_tracing_disabled
from agents.models.chatcmpl_converter import Converter
from agents.models.interface import Model
from agents.run import CallModelData, ModelInputData
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

import foldline as fl
from foldline.integrations.openai_agents import FoldFilter

set_tracing_disabled(True)


async def give(_: Any, arguments: str) -> str:
    return checks.result_of(json.loads(arguments)["part"])


def tool(name: str) -> FunctionTool:
    schema = {
        "type": "object",
        "properties": {"part": {"type": "string"}},
        "required": ["part"],
        "additionalProperties": False,
    }
    return FunctionTool(name, checks.tool_description(name), schema, give)


TOOLS = [tool("read_part"), tool("check_part")]


class Scripted(Model):
    """Answers by the script and records what it gets."""

    def __init__(self, script: Script, record: Record) -> None:
        self.script, self.record = script, record

    def _answer(self, instructions: str | None, items: Any, tools: Any, handoffs: Any) -> list[Any]:
        messages: Any = Converter.items_to_messages(items)
        if instructions:
            messages = [{"role": "system", "content": instructions}, *messages]
        schemas: Any = [Converter.tool_to_openai(each) for each in tools]
        schemas += [Converter.convert_handoff_tool(each) for each in handoffs]
        self.record.requests.append(Request(self.script.session, messages, schemas, items))
        said = self.script.next()
        if isinstance(said, str):
            text = ResponseOutputText(type="output_text", text=said, annotations=[])
            return [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])]
        return [
            ResponseFunctionToolCall(type="function_call", call_id=i, name=name, arguments=json.dumps(arguments))
            for i, name, arguments in said
        ]

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, output_schema: Any,
        handoffs: Any, *_: Any, **__: Any,
    ) -> ModelResponse:  # fmt: skip
        output = self._answer(system_instructions, input, tools, handoffs)
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, output_schema: Any,
        handoffs: Any, *_: Any, **__: Any,
    ) -> AsyncIterator[Any]:  # fmt: skip
        output = self._answer(system_instructions, input, tools, handoffs)
        for item in output:
            if isinstance(item, ResponseOutputMessage):
                yield ResponseTextDeltaEvent(
                    type="response.output_text.delta", delta=item.content[0].text, item_id="m",  # type: ignore[union-attr]
                    content_index=0, output_index=0, sequence_number=0, logprobs=[],
                )  # fmt: skip
        response = Response(
            id="r", created_at=0, model="scripted", object="response", output=output, tool_choice="auto", tools=[],
            parallel_tool_calls=True,
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=1)


def pinned(item: Any) -> bool:
    return item.get("role") == "user" and MARK in str(item.get("content"))


class Setting:
    def __init__(self, **options: Any) -> None:
        self.record, self.script, self.options = Record(), Script(), options
        self.sessions: dict[str, SQLiteSession] = {}
        other = Agent(name="other", handoff_description="Knows the rest. " * 20)
        self.agent = Agent(
            name="main", instructions=checks.SYSTEM, tools=list(TOOLS), model=Scripted(self.script, self.record),
            handoffs=[other],
        )  # fmt: skip
        self.fresh()

    def fresh(self) -> None:
        options = self.record.options(**self.options) | {"pins": [pinned]}
        self.filter = FoldFilter(**options, key=lambda data: self.script.session)
        self.folder = self.filter._folder

    @property
    def run_config(self) -> RunConfig:
        return RunConfig(call_model_input_filter=self.filter)

    def session(self, name: str = "a") -> SQLiteSession:
        return self.sessions.setdefault(name, SQLiteSession(name))

    async def turn(self, turn: int, name: str = "a") -> Any:
        self.script.session = name
        return await Runner.run(
            self.agent, checks.prompt(turn), session=self.session(name), run_config=self.run_config, max_turns=50
        )

    async def turns(self, count: int = TURNS) -> None:
        for turn in range(count):
            await self.turn(turn)


def test_four_turns(row: Any) -> None:
    setting = Setting()
    asyncio.run(setting.turns())
    checks.check(setting.record)
    row("OpenAI Agents", "openai-agents", setting.record)


def test_two_sessions_in_turns() -> None:
    setting = Setting()

    async def run() -> None:
        for turn in range(TURNS):
            for name in ("a", "b"):
                await setting.turn(turn, name)

    asyncio.run(run())
    checks.check(setting.record, sessions=2)


def test_the_session_keeps_every_item() -> None:
    setting = Setting()

    async def run() -> list[Any]:
        await setting.turns()
        return list(await setting.session().get_items())

    items = asyncio.run(run())
    assert SUMMARY not in json.dumps(items)
    assert sum(item.get("type") == "function_call_output" for item in items) == TURNS * (checks.CALLS - 1 + 4)


def test_kept_items_are_the_same_objects() -> None:
    record = Record()
    fold = FoldFilter(**record.options(), pins=[pinned])
    agent = Agent(name="main", instructions=checks.SYSTEM, tools=list(TOOLS))
    items: list[Any] = [{"role": "user", "content": checks.PIN}]

    async def run() -> None:
        script, seen = Script(), 0
        while seen < 2:
            said = script.next()
            if isinstance(said, str):
                items.append({"role": "user", "content": "Go on."})
            else:
                items.extend(
                    {"type": "function_call", "call_id": i, "name": n, "arguments": json.dumps(a)} for i, n, a in said
                )
                items.extend(
                    {"type": "function_call_output", "call_id": i, "output": checks.result_of(a["part"])}
                    for i, _, a in said
                )
            data = CallModelData(ModelInputData(list(items), checks.SYSTEM), agent, None)
            given = await fold(data)
            again = await fold(data)
            assert given.instructions == checks.SYSTEM
            assert [id(each) for each in given.input] == [id(each) for each in again.input]
            if record.folds > seen:
                seen += 1
                new = [each for each in given.input if not any(each is known for known in items)]
                assert [SUMMARY in json.dumps(each) for each in new] == [True]

    asyncio.run(run())
    assert record.summaries == 2


def test_a_restart_finds_the_folds_in_the_store() -> None:
    setting = Setting(store=fl.stores.MemoryStore())

    async def run() -> None:
        for turn in range(TURNS):
            await setting.turn(turn)
            setting.fresh()

    asyncio.run(run())
    checks.check(setting.record)


def test_a_failing_summarizer_is_harmless() -> None:
    def fail(messages: Any) -> str:
        raise RuntimeError("no summary today")

    setting = Setting(summarizer=fail)
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        asyncio.run(setting.turns(2))
    assert setting.record.folds == 0
    assert not setting.record.requests[-1].summary
    assert sum(m["role"] == "user" for m in setting.record.requests[-1].messages) == 2


def test_the_summary_is_not_in_the_stream() -> None:
    setting = Setting()
    seen: list[str] = []

    async def run() -> None:
        for turn in range(TURNS):
            result = Runner.run_streamed(
                setting.agent, checks.prompt(turn), session=setting.session(), run_config=setting.run_config,
                max_turns=50,
            )  # fmt: skip
            events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
            seen.extend(data.delta for data in events if data.type == "response.output_text.delta")

    asyncio.run(run())
    checks.check(setting.record)
    assert "Turn 3 is done." in seen
    assert SUMMARY not in "".join(seen)


def test_a_part_of_a_history_is_left_alone() -> None:
    record = Record()
    fold = FoldFilter(**record.options(2_000), pins=[pinned])
    agent = Agent(name="main")
    items: list[Any] = [{"type": "function_call_output", "call_id": "x", "output": "row " * 2_000}]
    data = CallModelData(ModelInputData(items, None), agent, None)
    assert asyncio.run(fold(data)) is data.model_data


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(name: str) -> None:
    setting = Setting()
    checks.SABOTAGE[name](setting.folder)
    checks.assert_noticed(name, lambda: asyncio.run(setting.turns()), setting.record)


def test_the_example_of_the_document() -> None:
    (example,) = examples.examples("openai_agents")
    model = Scripted(Script(at={"a": checks.CALLS - 1}), Record())
    # Old releases run in the loop of the thread, which `asyncio.run` in another test has taken away.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    examples.run(example, model=model, tools=TOOLS)
    loop.close()
    assert len(model.record.requests) == 1
