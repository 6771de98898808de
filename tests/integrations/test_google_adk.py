"""Agents of Google ADK with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import adapter_checks as checks
import examples
import pytest
from adapter_checks import MARK, SUMMARY, TURNS, Record, Request, Script
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types

import foldline as fl
from foldline.integrations.google_adk import FoldPlugin


def read_part(part: str) -> str:
    return checks.result_of(part)


def check_part(part: str) -> str:
    return checks.result_of(part)


for _function in (read_part, check_part):
    _function.__doc__ = checks.tool_description(_function.__name__)


def chat_of(contents: list[types.Content], system: Any) -> list[dict[str, Any]]:
    """Contents as chat completions; calls and responses pair by position."""
    found: list[dict[str, Any]] = [{"role": "system", "content": str(system)}] if system else []
    waiting: list[str] = []
    for at, content in enumerate(contents):
        calls, texts = [], []
        for i, part in enumerate(content.parts or []):
            if part.function_call:
                arguments = json.dumps(part.function_call.args)
                calls.append({"id": f"{at}-{i}", "function": {"name": part.function_call.name, "arguments": arguments}})
            elif part.function_response:
                number = waiting.pop(0) if waiting else "none"
                result = json.dumps(part.function_response.response)
                found.append({"role": "tool", "tool_call_id": number, "content": result})
            elif part.text:
                texts.append(part.text)
        if calls:
            waiting = [call["id"] for call in calls]
            found.append({"role": "assistant", "content": "".join(texts), "tool_calls": calls})
        elif texts:
            found.append({"role": "user" if content.role == "user" else "assistant", "content": "".join(texts)})
    return found


class Scripted(BaseLlm):
    script: Any = None
    record: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        contents = llm_request.contents
        tools = [
            json.loads(declaration.model_dump_json(by_alias=True, exclude_none=True))
            for each in llm_request.config.tools or ()
            for declaration in each.function_declarations or ()
        ]
        messages = chat_of(contents, llm_request.config.system_instruction)
        self.record.requests.append(Request(self.script.session, messages, tools, list(contents)))
        said = self.script.next()
        if isinstance(said, str):
            if stream:
                for word in said.split(" "):
                    part = types.Part(text=word + " ")
                    yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))
            return
        parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for _, name, args in said]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def pinned(content: Any) -> bool:
    return content.role == "user" and any(MARK in (part.text or "") for part in content.parts)


class Setting:
    def __init__(self, **options: Any) -> None:
        self.record, self.script, self.options = Record(), Script(), options
        self.service = InMemorySessionService()
        self.seen: list[str] = []
        self.fresh()

    def fresh(self) -> None:
        plugin = FoldPlugin(**self.record.options(**self.options), pins=[pinned])
        self.folder = plugin._folder
        agent = LlmAgent(
            name="main",
            model=Scripted(model="scripted", script=self.script, record=self.record),
            instruction=checks.SYSTEM,
            tools=[FunctionTool(read_part), FunctionTool(check_part)],
        )
        self.runner = Runner(app=App(name="app", root_agent=agent, plugins=[plugin]), session_service=self.service)

    async def turn(self, turn: int, name: str = "a", *, stream: bool = False) -> None:
        self.script.session = name
        if await self.service.get_session(app_name="app", user_id="u", session_id=name) is None:
            await self.service.create_session(app_name="app", user_id="u", session_id=name)
        config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        said = types.Content(role="user", parts=[types.Part(text=checks.prompt(turn))])
        async for event in self.runner.run_async(user_id="u", session_id=name, new_message=said, run_config=config):
            parts = (event.content.parts or []) if event.content else []
            self.seen += [part.text for part in parts if part.text]

    async def turns(self, count: int = TURNS, **options: Any) -> None:
        for turn in range(count):
            await self.turn(turn, **options)

    async def events(self) -> list[Any]:
        session: Any = await self.service.get_session(app_name="app", user_id="u", session_id="a")
        return list(session.events)


def test_four_turns(row: Any) -> None:
    setting = Setting()
    asyncio.run(setting.turns())
    checks.check(setting.record)
    row("Google ADK", "google-adk", setting.record)


def test_two_sessions_in_turns() -> None:
    setting = Setting()

    async def run() -> None:
        for turn in range(TURNS):
            for name in ("a", "b"):
                await setting.turn(turn, name)

    asyncio.run(run())
    checks.check(setting.record, sessions=2)


def test_the_events_stay() -> None:
    setting = Setting()
    asyncio.run(setting.turns())
    events = asyncio.run(setting.events())
    assert SUMMARY not in str(events)
    responses = [r for event in events for r in event.get_function_responses()]
    assert len(responses) == TURNS * (checks.CALLS - 1 + 4)


def test_kept_contents_are_the_same_objects() -> None:
    setting = Setting()
    run = setting.folder.afold
    folds: list[int] = []

    async def afold(messages: Any, **options: Any) -> Any:
        given = list(messages)
        folded = await run(given, **options)
        new = [m for m in folded.messages if not any(m is each for each in given)]
        if folded.changed:
            assert [SUMMARY in str(each) for each in new] == [True]
        folds.append(len(new))
        return folded

    setting.folder.afold = afold  # type: ignore[method-assign]
    asyncio.run(setting.turns())
    checks.check(setting.record)
    assert 1 in folds


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
    assert len(setting.record.requests[-1].objects) == len(asyncio.run(setting.events())) - 1


def test_the_summary_is_not_in_the_stream() -> None:
    setting = Setting()
    asyncio.run(setting.turns(stream=True))
    checks.check(setting.record)
    assert "Turn 3 is done." in setting.seen
    assert SUMMARY not in "".join(setting.seen)


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(name: str) -> None:
    setting = Setting()
    checks.SABOTAGE[name](setting.folder)
    checks.assert_noticed(name, lambda: asyncio.run(setting.turns()), setting.record)


def test_the_example_of_the_document() -> None:
    (example,) = examples.examples("google_adk")
    model = Scripted(model="scripted", script=Script(at={"a": checks.CALLS - 1}), record=Record())
    scope = examples.run(example, model=model, tools=[FunctionTool(read_part)])

    async def run() -> None:
        service = InMemorySessionService()
        await service.create_session(app_name="app", user_id="u", session_id="a")
        said = types.Content(role="user", parts=[types.Part(text="Good day.")])
        runner = Runner(app=scope["app"], session_service=service)
        assert [event async for event in runner.run_async(user_id="u", session_id="a", new_message=said)]

    asyncio.run(run())
    assert len(model.record.requests) == 1
