"""The recipe for OpenHands in docs/integrations.md: its condenser over the events of a conversation. Python 3.12."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import adapter_checks as checks
import examples
from adapter_checks import MARK, TURNS, Record, Request, Script
from openai_loop import TOOLS
from openhands.sdk.context.view import View
from openhands.sdk.event import ActionEvent, LLMConvertibleEvent, MessageEvent, ObservationEvent, SystemPromptEvent
from openhands.sdk.event.condenser import Condensation
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.tool.schema import Action, Observation


def is_pinned(message: Any) -> bool:
    return message["role"] == "user" and MARK in str(message["content"])


NAMES = examples.recipe("listed")
FORM = NAMES["form"]
FoldCondenser = examples.recipe("FoldCondenser", is_pinned=is_pinned, **NAMES)["FoldCondenser"]


class ReadPart(Action):
    part: str


class Part(Observation):
    found: str

    @property
    def to_llm_content(self) -> Sequence[TextContent]:
        return [TextContent(text=self.found)]


def said_by(source: Any, role: Any, text: str) -> MessageEvent:
    return MessageEvent(source=source, llm_message=Message(role=role, content=[TextContent(text=text)]))


def called(step: int, calls: Any) -> list[Any]:
    """The events of one answer with calls, and of their results."""
    actions = [
        ActionEvent(
            thought=[], action=ReadPart(**arguments), tool_name=name, tool_call_id=number,
            tool_call=MessageToolCall(id=number, name=name, arguments=json.dumps(arguments), origin="completion"),
            llm_response_id=f"response-{step}",
        )
        for number, name, arguments in calls
    ]  # fmt: skip
    results = [
        ObservationEvent(
            tool_name=name, tool_call_id=number, action_id=action.id,
            observation=Part(found=checks.result_of(arguments["part"])),
        )
        for action, (number, name, arguments) in zip(actions, calls, strict=True)
    ]  # fmt: skip
    return [*actions, *results]


def test_four_turns() -> None:
    script, record = Script(), Record()
    condenser = FoldCondenser(max_tokens=3_500)
    events: list[Any] = [SystemPromptEvent(system_prompt=TextContent(text=checks.SYSTEM), tools=[])]
    for turn in range(TURNS):
        events.append(said_by("user", "user", checks.prompt(turn)))
        said: Any = None
        while not isinstance(said, str):
            view = View.from_events(events)
            condensed = condenser.condense(view)
            if isinstance(condensed, Condensation):
                events.append(condensed)
                view = View.from_events(events)
            messages = LLMConvertibleEvent.events_to_messages(view.events)
            record.requests.append(Request("a", [each.to_chat_dict(**FORM) for each in messages], TOOLS))
            said = script.next()
            is_text = isinstance(said, str)
            events += [said_by("agent", "assistant", said)] if is_text else called(len(record.requests), said)
    assert len(record.requests) == TURNS * checks.CALLS
    folds = sum(isinstance(event, Condensation) for event in events)
    assert 2 <= folds <= 6
    assert record.copies == {1}
    for request in record.requests:
        assert request.tokens <= checks.WINDOW
        checks.check_pairs(request.messages)


def test_a_request_of_the_user_is_met_or_put_off() -> None:
    condenser = FoldCondenser(max_tokens=3_500)
    view = View(events=[said_by("user", "user", "Good day.")], unhandled_condensation_request=True)
    assert condenser.condense(view) is view
