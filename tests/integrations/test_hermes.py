"""The recipe for Hermes in docs/integrations.md: its context engine, loaded as a plugin, in the loop of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adapter_checks as checks
import examples
import openai_loop
import pytest
from adapter_checks import TURNS, Record, Request, Script
from agent.context_engine import ContextEngine
from plugins.context_engine import _load_engine_from_dir

PLUGIN = """
def is_pinned(message):
    return message["role"] == "user" and "{mark}" in str(message["content"])

{recipe}

def register(ctx):
    ctx.register_context_engine(FoldEngine())
"""


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    (recipe,) = (each for each in examples.all_examples() if "class FoldEngine(" in each)
    folder = tmp_path / "foldline"
    folder.mkdir()
    (folder / "__init__.py").write_text(PLUGIN.format(mark=checks.MARK, recipe=recipe), encoding="utf-8")
    made: Any = _load_engine_from_dir(folder)
    made.update_model("gpt-4o", checks.WINDOW)
    return made


def test_four_turns(engine: Any) -> None:
    assert isinstance(engine, ContextEngine)
    assert engine.name == "foldline"
    script, record = Script(), Record()
    history = openai_loop.beginning()
    for turn in range(TURNS):
        history.append({"role": "user", "content": checks.prompt(turn)})
        goes_on = True
        while goes_on:
            # As the host: usage after each call, compaction before the next one.
            if engine.should_compress():
                before = list(history)
                history = engine.compress(history, current_tokens=engine.last_prompt_tokens)
                assert sum(not any(each is old for old in before) for each in history) == 1
            request = Request("a", list(history), openai_loop.TOOLS)
            record.requests.append(request)
            engine.update_from_response({"prompt_tokens": request.tokens, "completion_tokens": 20, "total_tokens": 0})
            said = script.next()
            content, calls = (said, []) if isinstance(said, str) else (None, said)
            listed = [(i, name, f'{{"part": "{arguments["part"]}"}}') for i, name, arguments in calls]
            goes_on = openai_loop.answered(history, content, listed)
    assert len(record.requests) == TURNS * checks.CALLS
    assert engine.compression_count >= 2
    assert engine.get_status()["compression_count"] == engine.compression_count
    assert record.copies == {1}
    for request in record.requests:
        assert request.tokens <= checks.WINDOW
        checks.check_pairs(request.messages)


def test_a_short_list_is_left_alone(engine: Any) -> None:
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Good day."}]
    assert engine.compress(messages) == messages
    assert engine.compression_count == 0
