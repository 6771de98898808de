"""Evaluations of Inspect AI with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adapter_checks as checks
import examples
import pytest
from adapter_checks import SUMMARY, Record, Request, Script
from inspect_ai import Task, eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ContentReasoning,
    ContentText,
    ModelAPI,
    ModelOutput,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolCallError, ToolDef

import foldline as fl
from foldline.integrations._inspect_ai_messages import InspectCodec
from foldline.integrations.inspect_ai import CompactionFold

#: A sample is one turn: its agent calls tools until it submits.
CALLS = 48


def tool(name: str) -> Any:
    async def read(part: str) -> str:  # one for each: Inspect writes the name of a tool on its function
        return checks.result_of(part)

    return ToolDef(read, name=name, description=checks.tool_description(name), parameters={"part": "Its name."})


TOOLS = [tool("read_part").as_tool(), tool("check_part").as_tool()]


class Scripted(ModelAPI):
    """Answers by the script, and records what it gets."""

    record: Record
    script: Script

    async def count_text_tokens(self, text: str) -> int:
        return checks.count([text])

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        del tool_choice, config
        session = "b" if "sample b" in str([message.text for message in input]) else "a"
        messages: list[Any] = [InspectCodec().dicts(message)[0] for message in input]
        schemas = [
            {"name": t.name, "description": t.description, "parameters": t.parameters.model_dump(exclude_none=True)}
            for t in tools
        ]
        self.record.requests.append(Request(session, json.loads(json.dumps(messages)), schemas, list(input)))
        self.script.session = session
        step = self.script.at.get(session, 0)
        said = self.script.next()
        if step == CALLS - 1:
            return self._answer([ToolCall(f"end_{session}", "submit", {"answer": "checked"})])
        if isinstance(said, str):  # the end of a turn of the script, which goes on here
            said = [(f"call_{session}{step}", "read_part", {"part": f"{session}{step}-0"})]
        return self._answer([ToolCall(i, name, arguments) for i, name, arguments in said])

    def _answer(self, calls: list[ToolCall]) -> ModelOutput:
        made = ModelOutput.from_content(self.model_name, "")
        made.choices[0].message.tool_calls = calls
        return made


@modelapi("scripted")
def scripted() -> type[ModelAPI]:
    return Scripted


class Setting:
    def __init__(self, folder: Path, **options: Any) -> None:
        self.record, self.script, self.logs = Record(), Script(), str(folder)
        self.strategy = CompactionFold(**self.record.options(**options), threshold=6_400)
        self.folder = self.strategy._folder
        self.model = get_model("scripted/gpt-4o", memoize=False)
        self.model.api.record, self.model.api.script = self.record, self.script

    def run(self, *names: str) -> Any:
        samples = [Sample(f"{checks.prompt(0)} This is sample {name}.") for name in names or ("a",)]
        agent = react(prompt=checks.SYSTEM, tools=TOOLS, compaction=self.strategy)
        task = Task(dataset=samples, solver=agent)
        (log,) = eval(task, model=self.model, display="none", log_dir=self.logs, max_samples=len(samples))
        return log


@pytest.fixture
def setting(tmp_path: Path) -> Any:
    return lambda **options: Setting(tmp_path, **options)


def test_an_evaluation_of_48_calls(setting: Any, row: Any) -> None:
    made = setting()
    log = made.run()
    assert log.status == "success", log.error
    checks.check(made.record, calls=CALLS)
    row("Inspect AI", "inspect_ai", made.record)


def test_two_samples_at_a_time(setting: Any) -> None:
    made = setting()
    log = made.run("a", "b")
    assert log.status == "success", log.error
    assert len({request.session for request in made.record.requests[:4]}) == 2
    checks.check(made.record, sessions=2, calls=2 * CALLS)


def test_the_history_keeps_every_message_and_each_summary(setting: Any) -> None:
    made = setting()
    (sample,) = made.run().samples
    texts = [message.text for message in sample.messages]
    assert sum(SUMMARY in text for text in texts) == made.record.folds
    assert sum(message.role == "tool" for message in sample.messages) >= CALLS - 1
    assert SUMMARY not in sample.output.completion


def test_kept_messages_are_the_same_objects(setting: Any) -> None:
    made = setting()
    run = made.folder.afold

    async def afold(messages: Any, **options: Any) -> Any:
        folded = await run(messages, **options)
        new = [each for each in folded.messages if not any(each is known for known in messages)]
        assert [SUMMARY in each.text for each in new] == [True]
        return folded

    made.folder.afold = afold
    assert made.run().status == "success"
    checks.check(made.record, calls=CALLS)


def fail(messages: Any) -> str:
    raise RuntimeError("no summary today")


def test_a_failing_summarizer_ends_the_sample_as_any_compaction_that_does_not_help(setting: Any) -> None:
    made = setting(summarizer=fail)
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        log = made.run()
    assert log.status == "error"
    assert "Compaction insufficient" in log.error.message


def test_with_truncation_a_failing_summarizer_is_harmless(setting: Any) -> None:
    made = setting(summarizer=fail, on_failure="truncate")
    with pytest.warns(fl.errors.FoldlineWarning):
        log = made.run()
    assert log.status == "success"
    assert made.record.copies == {1}
    assert made.record.most_tokens <= checks.WINDOW


def test_messages_become_dicts_and_the_same_kind_again() -> None:
    codec = InspectCodec()
    assert codec.dicts(ChatMessageSystem(content="Be brief.")) == ({"role": "system", "content": "Be brief."},)
    content = [ContentReasoning(reasoning="Hm."), ContentText(text="Yes.")]
    answer = ChatMessageAssistant(content=content, tool_calls=[ToolCall("1", "read_part", {"part": "x"})])
    (said,) = codec.dicts(answer)
    assert (said["reasoning_content"], said["content"]) == ("Hm.", [{"type": "text", "text": "Yes."}])
    assert said["tool_calls"][0]["function"] == {"name": "read_part", "arguments": '{"part": "x"}'}
    bare = {name: value for name, value in said.items() if name != "reasoning_content"}
    assert codec.edited(answer, [said], [(0, bare)]).content == content[1:]
    broken = ChatMessageTool(content="", tool_call_id="1", error=ToolCallError("timeout", "too slow"))
    (result,) = codec.dicts(broken)
    assert result == {"role": "tool", "tool_call_id": "1", "content": "too slow"}
    cleared = codec.edited(broken, [result], [(0, {**result, "content": "[cleared]"})])
    assert (cleared.content, cleared.error, cleared.id) == ("[cleared]", None, broken.id)


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(setting: Any, name: str) -> None:
    """Inspect keeps the folded list and decides when to fold: for the memory, it decides so at each call."""
    made = setting()
    checks.SABOTAGE[name](made.folder)
    if name == "memory":
        made.strategy.threshold = 4_400
    checks.assert_noticed(name, made.run, made.record, calls=CALLS)


def test_the_example_of_the_document(setting: Any) -> None:
    (example,) = examples.examples("inspect_ai")
    made = setting()
    made.script.at["a"] = CALLS - 1
    scope = examples.run(example, model=made.model, tools=TOOLS)
    assert scope["log"].status == "success"
