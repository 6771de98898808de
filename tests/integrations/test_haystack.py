"""The recipe for Haystack in docs/integrations.md: its compactor in an agent with a scripted model."""

from __future__ import annotations

from typing import Any

import adapter_checks as checks
import examples
from adapter_checks import MARK, TURNS, Record, Request, Script
from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.hooks.compaction import CompactionHook
from haystack.token_counters import TiktokenCounter
from haystack.tools import Tool


def is_pinned(message: Any) -> bool:
    return message["role"] == "user" and MARK in str(message["content"])


FoldCompactor = examples.recipe("FoldCompactor", is_pinned=is_pinned)["FoldCompactor"]

WINDOW: Any = {
    "context_window": checks.WINDOW,
    "compact_at": 0.8,
    "compact_to": 0.6,
    "token_counter": TiktokenCounter(),
}

PARAMETERS = {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}

TOOLS = [
    Tool(name=name, description=checks.tool_description(name), parameters=PARAMETERS, function=checks.result_of)
    for name in ("read_part", "check_part")
]


@component
class Scripted:
    """A chat generator with the answers of the script, and the usage that a provider would report."""

    def __init__(self, script: Script, record: Record) -> None:
        self.script, self.record = script, record

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None, **_: Any) -> dict[str, Any]:
        """The next answer."""
        sent = [{"type": "function", "function": tool.tool_spec} for tool in tools or ()]
        request = Request(self.script.session, [each.to_openai_dict_format() for each in messages], sent, messages)
        self.record.requests.append(request)
        said = self.script.next()
        meta = {"usage": {"prompt_tokens": request.tokens, "completion_tokens": 20}}
        if isinstance(said, str):
            return {"replies": [ChatMessage.from_assistant(said, meta=meta)]}
        calls = [ToolCall(id=number, tool_name=name, arguments=arguments) for number, name, arguments in said]
        return {"replies": [ChatMessage.from_assistant(tool_calls=calls, meta=meta)]}


class Counted(FoldCompactor):  # type: ignore[misc, valid-type]
    """The compactor of the recipe, and how often it folded."""

    def __init__(self, record: Record, folded: list[int]) -> None:
        self.record, self.folded = record, folded

    def compact(self, messages: Any, target_tokens: int, token_counter: Any) -> Any:
        """As in the recipe."""
        made = super().compact(messages, target_tokens, token_counter)
        if made is not None:
            self.folded.append(len(messages) - len(made))
            # Kept messages are the same objects; one is new, the summary.
            assert sum(not any(each is old for old in messages) for each in made) == 1
        return made


def test_four_turns() -> None:
    script, record, folded = Script(), Record(), list[int]()
    hook = CompactionHook(Counted(record, folded), **WINDOW)
    agent = Agent(
        chat_generator=Scripted(script, record),
        tools=TOOLS,
        system_prompt=checks.SYSTEM,
        hooks={"before_llm": [hook]},
    )
    history: list[ChatMessage] = []
    for turn in range(TURNS):
        result = agent.run(messages=[*history, ChatMessage.from_user(checks.prompt(turn))])
        history = [each for each in result["messages"] if not each.is_from("system")]
    assert len(record.requests) == TURNS * checks.CALLS
    assert len(folded) >= 2
    assert record.copies == {1}
    for request in record.requests:
        assert request.tokens <= checks.WINDOW
        checks.check_pairs(request.messages)


def test_a_short_list_is_left_alone_and_the_settings_come_back() -> None:
    made = FoldCompactor()
    assert made.compact([ChatMessage.from_system("Be kind."), ChatMessage.from_user("Good day.")], 1_000, None) is None
    assert made.to_dict()["init_parameters"] == {}


def test_what_does_not_fit_is_left_alone() -> None:
    assert FoldCompactor().compact([ChatMessage.from_user("word " * 500)] * 2, 1, None) is None
