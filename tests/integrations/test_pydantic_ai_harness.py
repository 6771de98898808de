"""The harness of Pydantic AI, which pins an older release: its tiers call foldline where cheaper ones do not do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import adapter_checks as checks
import pytest
from adapter_checks import SUMMARY, TURNS
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage
from pydantic_ai_harness.compaction import ClearToolResults, TieredCompaction
from test_pydantic_ai import TOOLS, Setting

from foldline.integrations.pydantic_ai import FoldStrategy

#: The harness goes by the usage of the last answer, and calls its tiers above this.
TARGET_TOKENS = 6_500


def pinned_part(part: Any) -> bool:
    return isinstance(part, UserPromptPart) and checks.MARK in str(part.content)


class Tiers(Setting):
    """An agent whose one tier is foldline, or the last of several."""

    tiers_before: tuple[Any, ...] = ()

    def fresh(self) -> None:
        strategy = FoldStrategy(**self.record.options(**self.options), is_pinned=pinned_part)
        self.folder = strategy._folder
        tiers: Any = [*self.tiers_before, strategy]
        self.agent = Agent(
            FunctionModel(self.answer, stream_function=self.stream),
            instructions=checks.SYSTEM,
            tools=TOOLS,
            capabilities=[TieredCompaction(tiers=tiers, target_tokens=TARGET_TOKENS)],
        )

    async def answer(self, messages: Any, info: AgentInfo) -> ModelResponse:
        answer = await super().answer(messages, info)
        return replace(answer, usage=RequestUsage(input_tokens=self.record.requests[-1].tokens))


def test_four_turns(row: Any) -> None:
    made = Tiers()
    asyncio.run(made.turns())
    checks.check(made.record)
    row("Pydantic AI, harness", "pydantic-ai-harness", made.record)


def test_a_list_comes_back_as_it_was_sent() -> None:
    made = Tiers()
    asyncio.run(made.turns())
    dumped = ModelMessagesTypeAdapter.dump_json(made.history["a"])
    assert ModelMessagesTypeAdapter.validate_json(dumped) == made.history["a"]
    assert SUMMARY in str(made.history["a"])


def test_two_sessions_in_turns() -> None:
    made = Tiers()

    async def run() -> None:
        for turn in range(TURNS):
            for name in ("a", "b"):
                await made.turn(turn, name)

    asyncio.run(run())
    checks.check(made.record, sessions=2)


def test_it_is_the_last_resort_of_cheaper_tiers() -> None:
    made = Tiers.__new__(Tiers)
    made.tiers_before = (ClearToolResults(max_tokens=1),)
    made.__init__()  # type: ignore[misc]
    asyncio.run(made.turns())
    assert len(made.record.requests) == TURNS * checks.CALLS
    assert made.record.copies == {1}
    for request in made.record.requests:
        assert request.tokens <= made.record.window
        checks.check_pairs(request.messages)


@pytest.mark.parametrize("name", ["pin", "pairing"])
def test_sabotage_is_noticed(name: str) -> None:
    """Memory and the tools of a call are the harness's own: it keeps the folded history, and counts."""
    made = Tiers()
    checks.SABOTAGE[name](made.folder)
    checks.assert_noticed(name, lambda: asyncio.run(made.turns()), made.record)
