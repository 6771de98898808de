"""A summary requested below the agent's own request: what is sent is that request and one message, byte for byte."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

import foldline as fl
from faults import model_server as server
from faults.model_server import ModelServer
from foldline.errors import ConfigError
from foldline.summarizers import Prompted
from foldline.testing import FakeModel
from unit.samples import assistant, openai_call, openai_result, user

KEY = "sk-k4nar1e"
WORDS = "The parser reads a line at a time and keeps what it has read. " * 30
TOOLS = {
    "openai_chat": [{"type": "function", "function": {"name": "go", "parameters": {"type": "object"}}}],
    "anthropic": [{"name": "go", "input_schema": {"type": "object"}}],
}
SYSTEM = [{"type": "text", "text": "You fix parsers.", "cache_control": {"type": "ephemeral"}}]


def chat() -> list[Any]:
    """A conversation with tools whose newest turn is finished."""
    steps = [each for i in range(4) for each in (openai_call(f"c{i}"), openai_result(f"c{i}", WORDS))]
    return [{"role": "system", "content": "You fix parsers."}, user("Fix it."), *steps, assistant(WORDS), user("And?")]


def blocks() -> list[Any]:
    """The same for Anthropic."""
    found: list[Any] = [user("Fix it.")]
    for i in range(4):
        found.append(assistant([{"type": "tool_use", "id": f"c{i}", "name": "go", "input": {"path": "a.py"}}]))
        found.append(user([{"type": "tool_result", "tool_use_id": f"c{i}", "content": WORDS}]))
    return [*found, assistant(WORDS), user("And?")]


def folded(messages: list[Any], model: Any, **options: Any) -> fl.FoldResult:
    """A fold that keeps the two newest messages."""
    summarizer = Prompted(model, reuse="prefix", **options.pop("prompted", {}))
    result = fl.compact(messages, fl.KeepMessages(2), summarizer=summarizer, mend=False, **options)
    assert result.error is None, result.error
    return result


def common(one: str, other: str) -> int:
    """The number of equal characters at the beginning of two texts."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def asked_openai(served: ModelServer, messages: list[Any]) -> None:
    """The agent's own request, and a fold of its list, through OpenAI's SDK."""
    import openai

    client = openai.OpenAI(base_url=served.base_url, api_key=KEY)
    tools: Any = TOOLS["openai_chat"]
    client.chat.completions.create(model="m", messages=messages, tools=tools)
    folded(messages, fl.summarizers.OpenAISDK("m", client), tools=tools)


def asked_compatible(served: ModelServer, messages: list[Any]) -> None:
    """The same through `OpenAICompatible`, which is also the agent's."""
    with fl.summarizers.OpenAICompatible("m", served.base_url, KEY) as model:
        model.complete(messages, max_tokens=9, tools=TOOLS["openai_chat"])
        folded(messages, model, tools=TOOLS["openai_chat"])


def asked_anthropic(served: ModelServer, messages: list[Any]) -> None:
    """The same through Anthropic's SDK, with a system prompt outside the messages."""
    import anthropic

    client = anthropic.Anthropic(base_url=served.origin, api_key=KEY)
    tools: Any = TOOLS["anthropic"]
    system: Any = SYSTEM
    client.messages.create(model="m", max_tokens=9, messages=messages, tools=tools, system=system)
    folded(messages, fl.summarizers.AnthropicSDK("m", client), tools=tools, system=system)


@pytest.mark.parametrize(
    ("ask", "messages", "no_call"),
    [
        (asked_openai, chat(), "none"),
        (asked_compatible, chat(), "none"),
        (asked_anthropic, blocks(), {"type": "none"}),
    ],
)
def test_the_request_of_the_agent_is_sent_again_with_one_message_behind_it(
    ask: Callable[[ModelServer, list[Any]], None], messages: list[Any], no_call: Any
) -> None:
    given = copy.deepcopy(messages)
    with ModelServer(server.answering()) as served:
        ask(served, messages)
    own, again = (request.body for request in served.requests)
    assert messages == given
    for field in ("model", "tools", "system"):
        assert json.dumps(own.get(field)) == json.dumps(again.get(field))
    assert again["tool_choice"] == no_call
    sent, instruction = again["messages"][:-1], again["messages"][-1]
    assert json.dumps(sent) == json.dumps(own["messages"])
    assert instruction["role"] == "user"
    prefix = json.dumps(own["messages"])[:-1]
    assert json.dumps(again["messages"]).startswith(prefix)


def test_the_instruction_says_which_messages_stay_and_what_form_is_wanted() -> None:
    model = FakeModel("A summary.")
    folded(chat(), model, prompted={"focus": "the parser"}, instructions="Keep the ids.")
    instruction = model.prompts[0]
    assert "2 of them, the first by assistant" in instruction
    assert json.dumps(" ".join(WORDS.split())[:80]) in instruction
    assert "## Current request" in instruction
    assert "- Mind this above all: Keep the ids.\n- Be most detailed about this: the parser\n" in instruction
    assert "call no tools" in instruction


def test_the_next_fold_asks_for_one_summary_of_the_earlier_one_and_the_rest() -> None:
    first = folded(chat(), FakeModel("A summary."))
    model = FakeModel("Another.")
    folded([*first.messages, *chat()[2:]], model)
    assert "begins with an earlier summary" in model.prompts[0]
    assert model.calls[0]["messages"][:-1] == [*first.messages, *chat()[2:]]


def test_the_version_says_that_the_prefix_was_reused() -> None:
    result = folded(chat(), FakeModel("A summary."))
    assert result.completion is not None
    assert result.completion.prompt_version == "prefix/2"


OPEN = [*chat(), openai_call("open")]


@pytest.mark.parametrize(
    ("messages", "options"),
    [
        (chat(), {"redact": lambda text: text}),
        (chat(), {"prompted": {"max_input_tokens": 1_800}}),
        (OPEN, {}),
        (blocks(), {}),
    ],
    ids=["redacted", "longer than the window", "a call waits for its result", "another dialect"],
)
def test_a_request_that_cannot_be_sent_as_it_is_is_rendered(messages: list[Any], options: dict[str, Any]) -> None:
    model = FakeModel(*["A summary."] * 9)
    result = folded(messages, model, **options)
    assert result.completion is not None
    assert result.completion.prompt_version == "handover/2"
    assert all("<data-" in prompt for prompt in model.prompts)
    assert model.calls[0]["tools"] is None


def test_a_rejected_answer_is_requested_again_below_the_same_prefix() -> None:
    model = FakeModel("I'm sorry, but I can't help with that.", "A summary.")
    folded(chat(), model)
    first, second = (call["messages"] for call in model.calls)
    assert first[:-1] == second[:-1] == chat()
    assert second[-1]["content"].startswith(first[-1]["content"])


class TextModel:
    """A model without a dialect."""

    def complete(self, messages: Any, *, max_tokens: int, timeout_s: float | None = None) -> fl.summarizers.Completion:
        raise AssertionError


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (TextModel(), {"reuse": "prefix"}),
        (FakeModel(), {"reuse": "suffix"}),
        (FakeModel(), {"reuse": "prefix", "prompt": "Sum up {new_messages}"}),
    ],
)
def test_a_reuse_that_cannot_be_is_a_config_error(model: Any, options: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Prompted(model, **options)
    assert (caught.value.code, caught.value.path) == ("bad_reuse", "reuse")


def test_a_model_of_text_messages_takes_no_tools() -> None:
    model = fl.summarizers.GoogleGenAI("m", client_options={"api_key": KEY})
    with pytest.raises(ConfigError, match="text messages only"):
        model.complete([user("Hi.")], max_tokens=9, tools=TOOLS["anthropic"])


def test_two_rendered_prompts_share_everything_before_the_data() -> None:
    """Rules and form are constant and come first; the random letters stand only around the data."""
    model = FakeModel(*["A summary."] * 2)
    for words in ("One. ", "Two. "):
        messages = [user(words * 300), assistant(), user("And?"), assistant(), user("So?")]
        fl.compact(messages, fl.KeepMessages(2), summarizer=Prompted(model), mend=False)
    one, other = ("\n".join(each["content"] for each in call["messages"]) for call in model.calls)
    system = model.calls[0]["messages"][0]["content"]
    assert common(one, other) >= len(system)
    assert "## Current request" in system
