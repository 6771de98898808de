"""A1, B2, T2, T4 and overflow: triggers on the size of the next request."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError
from foldline.triggers import (
    Manual,
    MessageCount,
    Overflow,
    ReserveTokens,
    TokenThreshold,
    Utilization,
    is_max_tokens_stop,
    overflow_kind,
)


def at(tokens: int, **more: Any) -> fl.ContextState:
    """A state whose request has `tokens` tokens."""
    return fl.ContextState(usage=fl.ContextUsage(tokens, 0, tokens), **more)


def spent(tokens: int, **more: Any) -> fl.ContextState:
    """A window of 200,000 tokens, a system prompt of 3,616 and a reserve of 16,384: room for 180,000."""
    return fl.ContextState(budget=fl.TokenBudget(200_000, 3_616, tokens, 16_384), **more)


# --- The state -----------------------------------------------------------------------------------------


def test_the_state_describes_the_whole_request() -> None:
    messages = [{"role": "user", "content": "a" * 400}]
    tools = [{"type": "function", "function": {"name": "go", "parameters": {}}}]
    bare = fl.ContextState.of(messages, counter="o200k_base")
    state = fl.ContextState.of(
        messages, counter="o200k_base", system="b" * 400, tools=tools, context_window=9_000, reserve_tokens=500
    )
    count = fl.TokenCounter("o200k_base").count_messages
    lead = [{"role": "system", "content": "b" * 400}]
    assert bare.tokens == count(messages).total
    assert state.tokens == count([*lead, *messages], tools).total
    assert state.message_tokens == int(count(messages).per_message.sum())
    assert state.message_count == 1
    assert state.budget == fl.TokenBudget(9_000, state.tokens - state.message_tokens, state.message_tokens, 500)


def test_the_state_uses_the_usage_that_the_provider_reported() -> None:
    messages = [
        {"role": "user", "content": "a" * 400},
        {"role": "assistant", "content": "b" * 400},
        {"role": "user", "content": "c" * 400},
    ]
    state = fl.ContextState.of(messages, counter="chars/4", usage={"input_tokens": 900, "output_tokens": 50})
    assert state.usage == fl.ContextUsage(1_050, 950, 100)
    assert state.tokens == state.message_tokens == 1_050


def test_a_state_without_token_counts_raises() -> None:
    for trigger in (ReserveTokens(), TokenThreshold()):
        with pytest.raises(ConfigError) as caught:
            trigger.should_compact(fl.ContextState(message_count=50))
        assert caught.value.path == "state.usage"
    with pytest.raises(ConfigError) as caught:
        Utilization().should_compact(at(9))
    assert caught.value.path == "state.budget"
    with pytest.raises(ConfigError) as caught:
        MessageCount(3).should_compact(at(9))
    assert caught.value.path == "state.message_count"


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"iteration": -1}, "iteration"),
        ({"iteration": True}, "iteration"),
        ({"message_count": 1.5}, "message_count"),
        ({"stats": None}, "stats"),
        ({"usage": 7}, "usage"),
        ({"budget": {}}, "budget"),
    ],
)
def test_a_wrong_state_is_a_config_error(options: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.ContextState(**options)
    assert caught.value.path == path


# --- A1 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "fires"), [(183_615, False), (183_616, False), (183_617, True), (200_000, True)])
def test_A1_fires_strictly_above_window_less_reserve(tokens: int, fires: bool) -> None:
    trigger = ReserveTokens()
    assert trigger.should_compact(at(tokens)) is fires
    assert trigger.reason(at(tokens)) == ("reserve" if fires else None)
    assert trigger.threshold_tokens(at(tokens)) == 183_616


def test_A1_system_prompt_and_tools_count() -> None:
    messages = [{"role": "user", "content": "a" * 400}]
    state = fl.ContextState.of(messages, counter="chars/4", system="b" * 400)
    assert ReserveTokens(300, 101).should_compact(state)
    assert not ReserveTokens(300, 100).should_compact(state)


def test_A7_without_a_window_it_never_fires() -> None:
    assert not ReserveTokens(0).should_compact(at(10**9))


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((-1, 0), "context_window"),
        ((100, -1), "reserve_tokens"),
        ((100, 100), "reserve_tokens"),
        ((100.0, 1), "context_window"),
        ((True, 0), "context_window"),
    ],
)
def test_A1_a_wrong_window_is_a_config_error(arguments: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ReserveTokens(*arguments)
    assert caught.value.path == path


# --- B2 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "fires"), [(144_000, False), (144_001, True), (300_000, True)])
def test_B2_proactive_above_eighty_percent(tokens: int, fires: bool) -> None:
    assert Utilization().should_compact(spent(tokens)) is fires
    assert Utilization().threshold_tokens(spent(tokens)) == 144_000 + 3_616


@pytest.mark.parametrize("stop", ["max_tokens", "length", "MAX_TOKENS", "max_output_tokens", "model_length"])
@pytest.mark.parametrize(("tokens", "fires"), [(144_001, False), (170_999, False), (171_000, True)])
def test_B2_reactive_from_ninety_five_percent(stop: str, tokens: int, fires: bool) -> None:
    state = spent(tokens, stop_reason=stop)
    assert Utilization().should_compact(state) is fires
    assert Utilization().reason(state) == ("max_tokens_stop" if fires else None)


@pytest.mark.parametrize("stop", [None, "stop", "end_turn", "tool_use", "STOP", "", "lengthy"])
def test_B2_other_stop_reasons_are_not_reactive(stop: str | None) -> None:
    assert not is_max_tokens_stop(stop)
    assert Utilization().reason(spent(150_000, stop_reason=stop)) == "utilization"


def test_B2_without_room_for_messages_it_fires() -> None:
    assert Utilization().should_compact(fl.ContextState(budget=fl.TokenBudget(1_000, 900, 5, 100)))


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"threshold": 0}, "threshold"),
        ({"threshold": 1.01}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"threshold": "0.8"}, "threshold"),
        ({"critical": -0.5}, "critical"),
        ({"threshold": 0.9, "critical": 0.8}, "critical"),
    ],
)
def test_B2_a_wrong_share_is_a_config_error(options: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Utilization(**options)
    assert caught.value.path == path


# --- T2, T4 --------------------------------------------------------------------------------------------


def test_T2_the_default_threshold() -> None:
    assert TokenThreshold().threshold_of_messages == 93_600
    assert TokenThreshold(128_000, threshold=0.333).threshold_of_messages == 38_961  # 38,961.0 rounded down
    assert TokenThreshold(200_000, system_reserve=0, output_reserve=0, safety_buffer=1).threshold_of_messages == 159_999


@pytest.mark.parametrize(("tokens", "fires"), [(93_599, False), (93_600, True), (93_601, True)])
def test_T2_fires_at_the_threshold(tokens: int, fires: bool) -> None:
    trigger = TokenThreshold()
    assert trigger.should_compact(at(tokens, message_count=50)) is fires
    assert trigger.threshold_tokens(at(tokens)) == 93_599


def test_T2_only_message_tokens_count() -> None:
    """System prompt and tools are already covered by their reserve."""
    state = fl.ContextState(budget=fl.TokenBudget(128_000, 2_000, 93_599, 4_000), message_count=50)
    assert state.tokens == 95_599
    assert not TokenThreshold().should_compact(state)
    assert TokenThreshold().threshold_tokens(state) == 95_599


@pytest.mark.parametrize(("count", "fires"), [(0, False), (1, False), (10, False), (11, False), (12, True)])
def test_T4_never_fires_if_there_is_nothing_to_fold(count: int, fires: bool) -> None:
    assert TokenThreshold().should_compact(at(10**6, message_count=count)) is fires


def test_T4_the_threshold_can_be_configured() -> None:
    trigger = TokenThreshold.at(100, keep_messages=2)
    assert not trigger.should_compact(at(99, message_count=9))
    assert trigger.should_compact(at(100, message_count=9))
    assert not trigger.should_compact(at(100, message_count=3))
    assert trigger.should_compact(at(100, message_count=4))


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"model_context_limit": -1}, "model_context_limit"),
        ({"model_context_limit": 8_192}, "safety_buffer"),
        ({"output_reserve": 126_000}, "output_reserve"),
        ({"threshold": 1.5}, "threshold"),
        ({"keep_messages": -1}, "keep_messages"),
        ({"system_reserve": 1.5}, "system_reserve"),
    ],
)
def test_T2_a_wrong_option_is_a_config_error(options: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TokenThreshold(**options)
    assert caught.value.path == path


def test_a_trigger_on_the_number_of_messages() -> None:
    assert not MessageCount(4).should_compact(fl.ContextState(message_count=4))
    assert MessageCount(4).should_compact(fl.ContextState(message_count=5))


# --- Overflow ------------------------------------------------------------------------------------------

SAYINGS = {
    "OpenAI": "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens.",
    "OpenAI Responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Anthropic": "prompt is too long: 213462 tokens > 200000 maximum",
    "Anthropic, with the answer": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, "
    "decrease input length or `max_tokens` and try again",
    "Gemini": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
    "Vertex": "Unable to submit request because the input token count is 1100000 but model only supports "
    "up to 1048576.",
    "Bedrock, Claude": "Input is too long for requested model.",
    "Bedrock, Nova": "The model returned the following errors: Input Tokens Exceeded: Number of input tokens "
    "exceeds maximum length.",
    "Bedrock, Titan": "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9000",
    "Mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "OpenAI, over the tokens of a minute": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, "
    "Requested 40000.",
    "Groq": "Please reduce the length of the messages or completion.",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "OpenRouter": "This endpoint's maximum context length is 128000 tokens. However, you requested "
    "about 150000 tokens.",
    "Ollama": "the input length exceeds the context length",
    "Ollama cloud": "prompt too long; exceeded max context length by 123 tokens",
    "llama.cpp": "the request exceeds the available context size (4096 tokens), try increasing it",
    "vLLM": "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
    "vLLM, chat": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
    "(4500 in the messages, 500 in the completion).",
    "vLLM, decoder": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "LM Studio": "The number of tokens to keep from the initial prompt is greater than the context length.",
    "LM Studio, older": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded "
    "with context length of only 4096 tokens, which is not enough.",
    "Together": "The input (10000 tokens) is longer than the model's context length (8192 tokens).",
    "Text Generation Inference": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: "
    "9000 `inputs` tokens and 512 `max_new_tokens`",
    "Fireworks": "The prompt is too long: 140000, model maximum context length: 131071",
    "Cohere": "too many tokens: total number of tokens in the prompt exceeds the limit of 128000",
    "Cerebras": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    "Cerebras, bare": "413 status code (no body)",
    "Copilot": "prompt token count of 130000 exceeds the limit of 128000",
    "MiniMax": "invalid params, context window exceeds limit (2013)",
    "Kimi": "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
    "Z.ai": "Prompt exceeds max length",
    "DashScope": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
}

OTHER = {
    "rate limit": "Rate limit reached for gpt-4o: Limit 30000, Requested 40000 tokens per min. Try again in 20s.",
    "Bedrock throttles": "ThrottlingException: Too many tokens, please wait before trying again.",
    "quota": "You exceeded your current quota, please check your plan and billing details.",
    "Vertex quota": "429 RESOURCE_EXHAUSTED: token count exceeded the limit",
    "answer too long": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "no such model": "The model `gpt-9` does not exist",
    "orphan": "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    "nothing": "",
}


@pytest.mark.parametrize("who", SAYINGS)
def test_overflow_is_recognized_by_the_error_text(who: str) -> None:
    assert overflow_kind(SAYINGS[who]) == "context"
    assert overflow_kind(RuntimeError(SAYINGS[who])) == "context"
    assert overflow_kind({"error": {"message": SAYINGS[who], "code": 400}}) == "context"


@pytest.mark.parametrize("what", OTHER)
def test_other_errors_are_not_overflow(what: str) -> None:
    assert overflow_kind(OTHER[what]) is None
    assert overflow_kind(ValueError(OTHER[what])) is None


class ApiError(Exception):
    """An error shaped like those of the SDKs."""

    def __init__(self, message: str = "Bad request", **more: Any) -> None:
        super().__init__(message)
        vars(self).update(more)


class ContextWindowExceededError(Exception):
    """A class name as a gateway uses it."""


@pytest.mark.parametrize(
    "error",
    [
        ApiError(code="context_length_exceeded"),
        ApiError(body={"error": {"code": "context_length_exceeded", "message": "no"}}),
        ApiError(body={"error": {"type": "exceed_context_size_error", "n_ctx": 4096}}),
        ApiError(
            response={"Error": {"Code": "ValidationException", "Message": "Input is too long for requested model."}}
        ),
        ContextWindowExceededError("no"),
        {"error": {"code": "model_max_prompt_tokens_exceeded"}},
        [{"error": {"message": SAYINGS["Gemini"], "status": "INVALID_ARGUMENT"}}],
    ],
    ids=lambda error: type(error).__name__,
)
def test_overflow_is_recognized_by_its_code(error: object) -> None:
    assert overflow_kind(error) == "context"


def test_overflow_is_recognized_inside_a_wrapped_error() -> None:
    def fail() -> None:
        try:
            raise ApiError(code="context_length_exceeded")
        except ApiError as error:
            raise RuntimeError("the call failed") from error

    with pytest.raises(RuntimeError) as caught:
        fail()
    assert overflow_kind(caught.value) == "context"
    caught.value.args = ("Rate limit reached",)
    assert overflow_kind(caught.value) is None


def test_a_request_with_too_many_bytes_is_distinguished_from_overflow() -> None:
    body = {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}
    assert overflow_kind(body) == "request_size"
    assert Overflow().reason(fl.ContextState(error=body)) == "request_too_large"


@pytest.mark.parametrize("nothing", [None, 7, b"prompt is too long", object(), {}, []])
def test_errors_without_text_or_code_are_not_overflow(nothing: object) -> None:
    assert overflow_kind(nothing) is None
    assert not Overflow().should_compact(fl.ContextState(error=nothing))


def test_an_error_that_contains_itself_terminates() -> None:
    body: dict[str, Any] = {}
    body["error"] = body
    error = ApiError(body=body)
    error.__cause__ = error
    assert overflow_kind(error) is None


def test_overflow_by_the_window_and_silent_overflow() -> None:
    budget = fl.TokenBudget(1_000, 0, 900, 0)
    assert Overflow().reason(fl.ContextState(stop_reason="model_context_window_exceeded")) == "window_stop"
    silent = fl.ContextState(usage=fl.ContextUsage(1_001, 1_001, 0), budget=budget)
    assert Overflow().reason(silent) == "silent_overflow"
    assert Overflow(silent=False).reason(silent) is None
    estimate = fl.ContextState(usage=fl.ContextUsage(1_500, 0, 1_500), budget=budget)
    assert Overflow().reason(estimate) is None
    assert Overflow().threshold_tokens(silent) == 1_000


# --- Manual --------------------------------------------------------------------------------------------


def test_B11_a_manual_trigger_fires_until_the_compaction_succeeds() -> None:
    trigger, state = Manual(), fl.ContextState()
    assert trigger.reason(state) is None
    trigger.request(instructions="Keep the paths.")
    assert (trigger.reason(state), trigger.reason(state), trigger.instructions) == (
        "manual",
        "manual",
        "Keep the paths.",
    )
    trigger.notify_compacted(state)
    assert (trigger.reason(state), trigger.instructions) == (None, None)
    trigger.request()
    trigger.withdraw()
    assert not trigger.should_compact(state)
