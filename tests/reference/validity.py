"""Problems that providers reject, found in the raw messages: OpenAI Chat and Anthropic; others in `native_validity`,
`bedrock` and `services`.

Validators return `(index, code)` pairs, each at most once, in order.

| code | reported for |
|---|---|
| `call_unanswered` | a message with a call that has no answer where the provider expects it |
| `result_without_call` | a message with a result that answers no call that the provider allows it to answer |
| `first_not_user` | Anthropic, Gemini, Bedrock: the first message after a leading system text |
| `result_after_text` | Anthropic: a user message with a result block after another block |
| `empty_content` | Bedrock: no content, only marks for the prompt cache, or a blank text |
| `empty_content` | Anthropic: no content, or a blank text; a final assistant message may be empty |
| `empty_content` | Responses, Gemini: a message without content, a turn without parts, a part without a member |
| `empty_content` | OpenAI Chat: null or an empty list as content, with nothing else that speaks; Responses: no output |
| `bad_content` | all: content that is no list of objects, and no text where the provider takes one |
| `empty_calls` | OpenAI Chat: `tool_calls` is an empty list |
| `empty_name` | all: a call whose name is an empty text (Gemini: a response too); OpenAI Chat: an empty participant |
| `error_without_content` | Anthropic, Bedrock: the result of a failed call without content |
| `too_many_cache_marks` | Anthropic, Bedrock: the fifth mark for the prompt cache, and later ones |
| `bad_id` | Responses: a call or output without an id |
| `bad_id` | Anthropic: an id of a call or result that is not `[a-zA-Z0-9_-]{1,64}` |
| `bad_id`, `bad_name` | Bedrock: an id that is not `[a-zA-Z0-9_.:-]{1,64}`, a name that is not `[a-zA-Z0-9_-]{1,64}` |
| `duplicate_id` | OpenAI Chat, Anthropic, Gemini, Bedrock: two calls of one message with the same id |
| `duplicate_id` | Responses: an item whose id an earlier item has, a call whose `call_id` an earlier call has |
| `unknown_role` | a role that the API does not know |
| `unknown_item` | Responses: an item of an unknown type |
| `reasoning_without_follower` | Responses: reasoning without an item of the model directly after it |
| `model_after_model` | Gemini: a model turn directly after another |
| `call_misplaced` | OpenAI Chat, Anthropic, Gemini: a call outside a model message |
| `served_call_unanswered` | Anthropic, Gemini: a server tool's call without a result in its turn, not the last |
| `served_result_without_call` | Anthropic, Gemini: the result of a server tool without a call before it in its turn |
| `served_result_misplaced` | Anthropic, Gemini: the result of a server tool outside a message of the model |
| `ends_with_assistant` | with `no_prefill`: the last message is the model's, and no paused turn of Anthropic |
| `roles_not_alternating` | Bedrock, and others with `alternate`: the second of two messages of one side |
| `system_not_first` | with `single_system`: a system message that is not the first of the list |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from .bedrock import bedrock_problems
from .content_shapes import shape_problems
from .contents import objects_in
from .model import RawMessage
from .native import KNOWN, OUTPUTS
from .native_validity import gemini_problems, responses_problems
from .served import is_paused, served_problems
from .services import service_problems

OPENAI_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")

SERVED_CALLS: Final = ("server_tool_use", "mcp_tool_use")

GOOD_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Problem = tuple[int, str]


def validate(
    messages: Sequence[RawMessage],
    provider: str,
    *,
    alternate: bool = False,
    single_system: bool = False,
    allow_prefill: bool = True,
) -> list[Problem]:
    """The problems of a list of messages for a provider."""
    find = {
        "openai": openai_problems,
        "responses": responses_problems,
        "anthropic": anthropic_problems,
        "gemini": gemini_problems,
        "bedrock": bedrock_problems,
        "mistral": openai_problems,
        "cohere": openai_problems,
    }[provider]
    problems = find(messages)
    if provider in ("mistral", "cohere"):
        is_accepted = ["empty_calls"] if provider == "mistral" else []
        problems = [each for each in problems if each[1] not in is_accepted]
        problems += service_problems(messages, provider)
        provider = "openai"
    problems += shape_problems(messages, provider)
    if alternate:
        problems += alternation_problems(messages, provider)
    problems += served_problems(messages, provider)
    if not allow_prefill and _speaks_last(messages, provider):
        problems.append((len(messages) - 1, "ends_with_assistant"))
    if single_system:
        late = [index for index, message in enumerate(messages) if index and _is_system(message, provider)]
        problems += [(index, "system_not_first") for index in late]
    return sorted(set(problems))


def _speaks_last(messages: Sequence[RawMessage], provider: str) -> bool:
    """Whether the model has the last word, and its provider would not go on by itself."""
    if not messages:
        return False
    last = messages[-1]
    if provider == "responses":
        kind = last.get("type", "message")
        of_caller = (*OUTPUTS, "shell_call_output", "compaction")
        return last["role"] == "assistant" if kind == "message" else kind in KNOWN and kind not in of_caller
    speaker = "model" if provider == "gemini" else "assistant"
    is_last = last.get("role", "user") == speaker and not (provider == "anthropic" and _is_compaction(last))
    return is_last and not is_paused(messages, provider)


def _is_system(message: RawMessage, provider: str) -> bool:
    names = ("system",) if provider == "gemini" else ("system", "developer")
    return message.get("type", "message") == "message" and message.get("role") in names


def alternation_problems(messages: Sequence[RawMessage], provider: str) -> list[Problem]:
    """The user speaks first, then the sides alternate."""
    turns = [(index, turn) for index, message in enumerate(messages) if (turn := _turn(message, provider))]
    problems = [(index, "roles_not_alternating") for (_, a), (index, b) in pairwise(turns) if a == b]
    if provider in ("openai", "responses") and turns and turns[0][1] == "model":
        problems.append((turns[0][0], "first_not_user"))
    return problems


def _turn(message: RawMessage, provider: str) -> str | None:
    """The side of a message; None for instructions, and for called functions whose results have their own role."""
    role = message.get("role", "user")
    if provider == "gemini":
        return None if role == "system" else "model" if role == "model" else "user"
    if provider in ("anthropic", "bedrock"):
        return None if role in ("system", "developer") else "model" if role == "assistant" else "user"
    if message.get("type", "message") != "message" or role not in ("user", "assistant"):
        return None
    if role == "user":
        return "user"
    if provider == "openai":
        return None if message.get("tool_calls") or message.get("function_call") else "model"
    return None if message.get("content") in (None, []) else "model"


def openai_problems(messages: Sequence[RawMessage]) -> list[Problem]:
    """Every call is answered in the run of tool messages after it; every tool message answers one."""
    problems: list[Problem] = []
    for index, message in enumerate(messages):
        calls = message.get("tool_calls") or ()
        if _left_of_run(messages, index, len(messages)):
            problems.append((index, "call_unanswered"))
        if message["role"] not in OPENAI_ROLES:
            problems.append((index, "unknown_role"))
        if calls and message["role"] != "assistant":
            problems.append((index, "call_misplaced"))
        ids = [call["id"] for call in calls if call.get("id")]
        if len(set(ids)) < len(ids):
            problems.append((index, "duplicate_id"))
        if message.get("tool_calls") == []:
            problems.append((index, "empty_calls"))
        if any((call.get("function") or {}).get("name") == "" for call in calls):
            problems.append((index, "empty_name"))
        if _lacks_function_name(message):
            problems.append((index, "empty_name"))
        if message.get("name") == "" and message["role"] != "function":
            problems.append((index, "empty_name"))
        if _is_silent(message):
            problems.append((index, "empty_content"))
        if message["role"] == "tool" and not _answers_its_run(messages, index):
            problems.append((index, "result_without_call"))
    return problems


def _lacks_function_name(message: RawMessage) -> bool:
    """Whether a call in the older form, or the result of one, has no name."""
    call = message.get("function_call")
    if message["role"] == "function":
        return not message.get("name")
    return isinstance(call, dict) and message["role"] != "tool" and not call.get("name")


def _is_silent(message: RawMessage) -> bool:
    """Whether nothing stands in the place of an absent content."""
    content = message.get("content")
    if content is None and message["role"] == "function":
        return False
    instead = ("tool_calls", "function_call", "refusal", "audio")
    return content in (None, []) and not any(message.get(key) not in (None, []) for key in instead)


def _left_of_run(messages: Sequence[RawMessage], index: int, end: int) -> list[Any]:
    """The calls of a message that the tool messages directly after it, up to `end`, leave open."""
    left = list(messages[index].get("tool_calls") or ())
    for at in range(index + 1, end):
        if messages[at]["role"] != "tool":
            break
        answered = next((call for call in left if _answers(messages[at], call)), None)
        if answered is not None:
            left.remove(answered)
    return left


def _answers(result: RawMessage, call: RawMessage) -> bool:
    """By the id; without one, a call without one and of the name that the result has, if it has one."""
    if result.get("tool_call_id") or call.get("id"):
        return result.get("tool_call_id") == call.get("id")
    return result.get("name") in (None, (call.get("function") or {}).get("name"))


def _answers_its_run(messages: Sequence[RawMessage], index: int) -> bool:
    """Whether a tool message is the first to answer a call of the message before its run."""
    start = index
    while start > 0 and messages[start - 1]["role"] == "tool":
        start -= 1
    if start == 0:
        return False
    left = _left_of_run(messages, start - 1, index)
    return any(_answers(messages[index], call) for call in left)


def _blocks(message: RawMessage) -> list[Any]:
    return objects_in(message.get("content"))


def _ids(message: RawMessage, kind: str, key: str) -> list[Any]:
    return [block.get(key) for block in _blocks(message) if block["type"] == kind]


def _is_compaction(message: RawMessage) -> bool:
    return any(block["type"] == "compaction" and block.get("content") is not None for block in _blocks(message))


def anthropic_problems(messages: Sequence[RawMessage]) -> list[Problem]:
    """Each call has exactly one result in the next message, results come first, no content is empty."""
    problems: list[Problem] = []
    leading = (index for index, each in enumerate(messages) if each["role"] not in ("system", "developer"))
    first = next(leading, len(messages))
    if len(messages) > first and messages[first]["role"] != "user" and not _is_compaction(messages[first]):
        problems.append((first, "first_not_user"))
    for index in range(first, len(messages)):
        message = messages[index]
        final = index == len(messages) - 1
        before = messages[index - 1] if index > first else None
        after = None if final else messages[index + 1]
        calls, results = _ids(message, "tool_use", "id"), _ids(message, "tool_result", "tool_use_id")
        if message["role"] not in ("user", "assistant", "system"):
            problems.append((index, "unknown_role"))
        if _is_empty(message) and not (final and message["role"] == "assistant"):
            problems.append((index, "empty_content"))
        if not all(isinstance(each, str) and GOOD_ID.fullmatch(each) for each in calls + results):
            problems.append((index, "bad_id"))
        every_call = [block for block in _blocks(message) if block["type"] in ("tool_use", *SERVED_CALLS)]
        if every_call and message["role"] != "assistant":
            problems.append((index, "call_misplaced"))
        every_id = [call.get("id") for call in every_call if call.get("id")]
        if len(set(every_id)) < len(every_id):
            problems.append((index, "duplicate_id"))
        if any(block["type"] == "tool_use" and block.get("name") == "" for block in _blocks(message)):
            problems.append((index, "empty_name"))
        if any(_is_silent_error(block) for block in _blocks(message)):
            problems.append((index, "error_without_content"))
        if any(call not in _results_of_user(after) for call in calls):
            problems.append((index, "call_unanswered"))
        if not _results_fit(message, before, results):
            problems.append((index, "result_without_call"))
        if message["role"] == "user" and _result_after_other(message):
            problems.append((index, "result_after_text"))
    marked = [index for index, message in enumerate(messages) for _ in range(_cache_marks(message))]
    return problems + [(index, "too_many_cache_marks") for index in marked[4:]]


def _is_silent_error(block: Any) -> bool:
    """Whether a result says that its tool failed, and no more."""
    if block["type"] != "tool_result" or block.get("is_error") is not True:
        return False
    content = block.get("content") or []
    inner = [content] if isinstance(content, str) else content
    return not any(item != {"type": "text", "text": ""} for item in inner)


def _cache_marks(message: RawMessage) -> int:
    """The marks of the blocks, of those in results, and of those in documents."""
    count = 0
    for block in _blocks(message):
        content = block.get("content") or (block.get("source") or {}).get("content")
        count += sum(each.get("cache_control") is not None for each in (block, *objects_in(content)))
    return count


def _is_empty(message: RawMessage) -> bool:
    content = message.get("content")
    return not content or any(
        block["type"] == "text" and not (block.get("text") or "").strip() for block in _blocks(message)
    )


def _results_of_user(message: RawMessage | None) -> list[Any]:
    if message is None or message["role"] != "user":
        return []
    return _ids(message, "tool_result", "tool_use_id")


def _results_fit(message: RawMessage, before: RawMessage | None, results: list[Any]) -> bool:
    """Whether all results are in a user message and answer calls of the assistant message before it, once each."""
    if not results:
        return True
    if message["role"] != "user" or before is None or before["role"] != "assistant":
        return False
    calls = set(_ids(before, "tool_use", "id"))
    return len(set(results)) == len(results) and set(results) <= calls


def _result_after_other(message: RawMessage) -> bool:
    kinds = [block["type"] == "tool_result" for block in _blocks(message)]
    return any(later and not earlier for earlier, later in pairwise(kinds))
