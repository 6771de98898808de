"""Agents of Strands with its OpenAI model, against a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adapter_checks as checks
import examples
import pytest
from adapter_checks import MARK, SUMMARY, TURNS, Record, Script
from fake_server import serving
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager

import foldline as fl
from foldline.integrations.strands import FoldConversationManager


@tool(description=checks.tool_description("read_part"))
def read_part(part: str) -> str:
    """Reads."""
    return checks.result_of(part)


@tool(description=checks.tool_description("check_part"))
def check_part(part: str) -> str:
    """Checks."""
    return checks.result_of(part)


def pinned(message: Any) -> bool:
    return message["role"] == "user" and any(MARK in block.get("text", "") for block in message["content"])


class Setting:
    def __init__(self, base: str, record: Record, script: Script, folder: Path | None = None, **options: Any) -> None:
        self.base, self.record, self.script, self.options = base, record, script, options
        self.storage = folder
        self.agents: dict[str, Agent] = {}
        self.seen: list[str] = []

    def model(self) -> OpenAIModel:
        return OpenAIModel(client_args={"base_url": self.base, "api_key": "none"}, model_id="gpt-4o")

    def agent(self, name: str = "a") -> Agent:
        if name not in self.agents:
            manager = FoldConversationManager(**self.record.options(**self.options), pins=[pinned])
            self.folder, self.manager = manager._folder, manager
            sessions = FileSessionManager(session_id=name, storage_dir=str(self.storage)) if self.storage else None
            self.agents[name] = Agent(
                model=self.model(), tools=[read_part, check_part], system_prompt=checks.SYSTEM,
                conversation_manager=manager, session_manager=sessions, callback_handler=self.take,
            )  # fmt: skip
        return self.agents[name]

    def take(self, **event: Any) -> None:
        self.seen.append(event.get("data", ""))

    def turn(self, turn: int, name: str = "a") -> None:
        self.script.session = name
        self.agent(name)(checks.prompt(turn))

    def turns(self, count: int = TURNS) -> None:
        for turn in range(count):
            self.turn(turn)


@pytest.fixture
def setting() -> Iterator[Any]:
    record, script = Record(), Script()
    with serving(script, record) as base:
        yield lambda *arguments, **options: Setting(base, record, script, *arguments, **options)


def test_four_turns(setting: Any, row: Any) -> None:
    made = setting()
    made.turns()
    checks.check(made.record)
    assert "is done." in "".join(made.seen)
    assert SUMMARY not in "".join(made.seen)
    row("Strands Agents", "strands-agents", made.record)


def test_two_agents_in_turns(setting: Any) -> None:
    made = setting()
    for turn in range(TURNS):
        for name in ("a", "b"):
            made.turn(turn, name)
    checks.check(made.record, sessions=2)


def test_a_restored_session_is_the_list_before(setting: Any, tmp_path: Path) -> None:
    made = setting(tmp_path)
    for turn in range(TURNS):
        made.turn(turn)
        before = [(each["role"], each["content"]) for each in made.agent().messages]
        made.agents.clear()  # as a new process
        after = [(each["role"], each["content"]) for each in made.agent().messages]
        assert after == before
    checks.check(made.record)


def test_a_failing_summarizer_is_harmless(setting: Any) -> None:
    def fail(messages: Any) -> str:
        raise RuntimeError("no summary today")

    made = setting(summarizer=fail)
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        made.turns(2)
    assert made.record.folds == 0
    assert len(made.agent().messages) == 2 * checks.CALLS * 2


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(setting: Any, name: str) -> None:
    """The messages are the folded ones, so that there is no memory to break: each call folds instead."""
    made = setting()
    made.agent()
    checks.SABOTAGE[name](made.folder)
    if name == "memory":
        run = made.folder.afold

        async def afold(messages: Any, **options: Any) -> Any:
            return await run(list(messages), **options | {"force": len(messages) > 6})

        made.folder.afold = afold
    checks.assert_noticed(name, made.turns, made.record)


def test_the_example_of_the_document(setting: Any) -> None:
    (example,) = examples.examples("strands")
    made = setting()
    made.script.at["a"] = checks.CALLS - 1
    examples.run(example, model=made.model(), tools=[read_part])
    assert len(made.record.requests) == 1
