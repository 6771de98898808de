"""A crew of one agent, against a server on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false", CREWAI_TESTING="true"
)

import adapter_checks as checks
import examples
import pytest
from adapter_checks import MARK, SUMMARY, Record, Script
from crewai import LLM, Agent, Crew, Task
from crewai.hooks import clear_before_llm_call_hooks
from crewai.tools import BaseTool
from fake_server import serving
from pydantic import BaseModel

import foldline as fl
from foldline.integrations.crewai import FoldHook

#: A task is one turn: CrewAI's executor has a list of messages for each.
CALLS = 48


class Part(BaseModel):
    part: str


class ReadPart(BaseTool):
    name: str = "read_part"
    description: str = checks.tool_description("read_part")
    args_schema: type[BaseModel] = Part

    def _run(self, part: str) -> str:
        return checks.result_of(part)


class CheckPart(ReadPart):
    name: str = "check_part"
    description: str = checks.tool_description("check_part")


class Long(Script):
    """One turn of all calls."""

    def next(self) -> Any:
        step = self.at.get(self.session, 0)
        self.at[self.session] = step + 1
        if step % CALLS == CALLS - 1:
            return "The plan is checked."
        count = 2 if step % 3 == 0 else 1
        name = f"{self.session}{step}"
        return [(f"call_{name}_{i}", ("read_part", "check_part")[i], {"part": f"{name}-{i}"}) for i in range(count)]


def pinned(message: Any) -> bool:
    return message["role"] == "user" and MARK in str(message["content"])


class Setting:
    def __init__(self, base: str, record: Record, script: Script, **options: Any) -> None:
        self.base, self.record, self.script = base, record, script
        self.hook = FoldHook(**record.options(**options), pins=[pinned])
        self.folder = self.hook._folder

    def run(self, name: str = "a", *, stream: bool = False) -> str:
        self.script.session = name
        remove = self.hook.register()
        try:
            llm = LLM(model="gpt-4o", base_url=self.base, api_key="none", stream=stream)
            agent = Agent(
                role="engineer", goal="Check the plan.", backstory=checks.SYSTEM, llm=llm, max_iter=100,
                tools=[ReadPart(), CheckPart()],
            )  # fmt: skip
            task = Task(description=checks.prompt(0), expected_output="A sentence.", agent=agent)
            return str(Crew(agents=[agent], tasks=[task], verbose=False).kickoff())
        finally:
            remove()


@pytest.fixture
def setting() -> Iterator[Any]:
    record, script = Record(), Long()
    with serving(script, record) as base:
        yield lambda **options: Setting(base, record, script, **options)
    clear_before_llm_call_hooks()


def test_a_task_of_48_calls(setting: Any, row: Any) -> None:
    made = setting()
    assert "The plan is checked." in made.run()
    checks.check(made.record, calls=CALLS)
    row("CrewAI", "crewai", made.record)


def test_two_executors_with_one_hook(setting: Any) -> None:
    made = setting()
    made.run("a")
    made.run("b")
    checks.check(made.record, sessions=2, calls=2 * CALLS)


def test_the_summary_is_not_in_the_stream(setting: Any) -> None:
    made = setting()
    answer = made.run(stream=True)
    checks.check(made.record, calls=CALLS)
    assert SUMMARY not in answer


def test_kept_messages_are_the_same_objects(setting: Any) -> None:
    made = setting()
    run = made.folder.fold

    def fold(messages: Any, **options: Any) -> Any:
        given = list(messages)
        folded = run(given, **options)
        if folded.changed:
            new = [m for m in folded.messages if not any(m is each for each in given)]
            assert [SUMMARY in str(each) for each in new] == [True]
        return folded

    made.folder.fold = fold
    made.run()
    checks.check(made.record, calls=CALLS)


def test_a_failing_summarizer_is_harmless(setting: Any) -> None:
    def fail(messages: Any) -> str:
        raise RuntimeError("no summary today")

    made = setting(summarizer=fail)
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        made.run()
    assert made.record.folds == 0
    assert len(made.record.requests[-1].messages) > 2 * CALLS


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(setting: Any, name: str) -> None:
    """The messages are the folded ones, so that there is no memory to break: each call folds instead."""
    made = setting()
    checks.SABOTAGE[name](made.folder)
    if name == "memory":
        run = made.folder.fold
        made.folder.fold = lambda messages, **options: run(messages, **options | {"force": len(messages) > 6})
    checks.assert_noticed(name, made.run, made.record, calls=CALLS)


def test_the_example_of_the_document(setting: Any) -> None:
    (example,) = examples.examples("crewai")
    made = setting()
    made.script.at["a"] = CALLS - 1
    scope = examples.run(example, llm=LLM(model="gpt-4o", base_url=made.base, api_key="none"))
    assert "The plan is checked." in str(scope["answer"])
