"""Repair: every broken list becomes valid, nothing is lost, and a second repair does nothing.

Runs on foldline alone: the oracle validates, it does not repair.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldline as fl
from reference.validity import validate

from .strategies import PROVIDERS, SENT, Sample, random_sample, samples

Options = dict[str, Any]

STRICT: Final[tuple[Options, ...]] = (
    {},
    {"allow_prefill": False},
    {"allow_prefill": False, "alternate": True},
    {"alternate": True},
    {"single_system": True},
    {"alternate": True, "single_system": True},
)
POLICIES: Final[tuple[Options, ...]] = tuple(
    {"open_calls": calls, "orphans": orphans} for calls in ("answer", "remove") for orphans in ("text", "remove")
)
#: Providers that take the messages of another.
SERVICES: Final = {"openai": ("openai", "mistral", "cohere")}
UNREPAIRABLE: Final = {"unknown_item"}

#: Fields whose strings are structural; all others are text.
NAMES: Final = frozenset(
    {
        "role",
        "type",
        "id",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "toolUseId",
        "tool_call_ids",
        "status",
        "agent",
        "message_type",
        "is_error",
        "execution",
        "signature",
        "thoughtSignature",
    }
)

#: The actions that remove content.
REMOVED: Final = frozenset(
    {"call_removed", "duplicate_removed", "empty_removed", "orphan_removed", "reasoning_removed"}
)

BAD_NAME: Final = "no name!"
"""The name of a tool that Bedrock rejects."""

BREAKS: Final = (
    "drop",
    "swap",
    "double",
    "move",
    "blank",
    "rename",
    "unblock",
    "reblock",
    "role",
    "system",
    "prefix",
    "hollow",
    "unname",
    "clash",
    "same",
    "served",
    "no calls",
    "nameless",
    "mark",
    "error",
)


def break_list(messages: list[Any], how: str, a: int, b: int) -> list[Any]:
    """A list with one fault that truncating, editing or merging histories causes."""
    if not messages:
        return messages
    messages = copy.deepcopy(messages)
    at, to = a % len(messages), b % len(messages)
    message = messages[at]
    key = next((key for key in ("content", "parts", "output") if key in message), "content")
    blocks = message.get(key)
    if how == "drop":
        del messages[at]
    elif how == "swap":
        messages[at], messages[to] = messages[to], messages[at]
    elif how == "double":
        messages.insert(to, copy.deepcopy(message))
    elif how == "move":
        messages.insert(to, messages.pop(at))
    elif how == "blank":
        message[key] = ("", [], None)[b % 3] if key == "content" else []
    elif how == "rename":
        for holder in _holders(message):
            for name in ("id", "tool_use_id", "call_id", "tool_call_id", "toolUseId"):
                if name in holder:
                    holder[name] = ("bad id!", "x" * 65, "é", "call_1")[b % 4]
    elif how == "unblock" and isinstance(blocks, list) and blocks:
        del blocks[b % len(blocks)]
    elif how == "reblock" and isinstance(blocks, list) and blocks:
        block = blocks.pop(b % len(blocks))
        other = messages[to].get(key)
        (other if isinstance(other, list) else blocks).insert(0, block)
    elif how == "role" and "role" in message:
        message["role"] = ("critic", "user", "assistant", "model", "system", "developer")[b % 6]
    elif how == "system":
        spelled = {"parts": [{"text": "Be brief."}]} if key == "parts" else {"content": "Be brief."}
        messages.insert(at, {"role": ("system", "developer")[b % 2], **spelled})
    elif how == "hollow" and key == "parts" and isinstance(blocks, list):
        blocks.insert(b % (len(blocks) + 1), {})
    elif how == "unname":
        for holder in _holders(message):
            if "response" in holder:
                holder.pop("name", None)
    elif how == "prefix":
        messages = messages[at:]
    else:
        break_shape(messages, how, a, b)
    return messages


def break_shape(messages: list[Any], how: str, a: int, b: int) -> None:
    """The faults that SDKs, gateways and stored turns cause: ids twice, empty members, server tools apart."""
    message, other = messages[a % len(messages)], messages[b % len(messages)]
    holders = list(_holders(message))
    if how == "clash":
        for key in ("id", "call_id"):
            if key in message and key in other:
                message[key] = other[key]
    elif how == "same":
        for holder in holders:
            for name in ("id", "toolUseId"):
                if name in holder and holder is not message:
                    holder[name] = f"call_{b % 3}"
    elif how == "served":
        blocks = message.get("parts" if "parts" in message else "content")
        if isinstance(blocks, list) and "role" in message:
            is_bedrock = _is_bedrock(messages)
            pieces = bedrock_pieces(a, b) if is_bedrock else served_pieces("parts" in message, a, b)
            blocks[b % (len(blocks) + 1) : 0] = pieces
    elif how == "no calls" and "role" in message:
        message["tool_calls"] = []
        if b % 2:
            message["content"] = (None, [], "")[b % 3]
    elif how == "nameless":
        for holder in holders:
            if "name" in holder or ("role" in message and holder is message and b % 5 == 0):
                holder["name"] = "" if b % 3 else BAD_NAME
    elif how == "mark":
        for each in messages[a % len(messages) :]:
            if isinstance(each.get("content"), list) and _is_bedrock([each]):
                each["content"].append({"cachePoint": {"type": "default"}})
            for holder in list(_holders(each.get("content"))):
                if b % 2 or holder.get("type") in ("text", "tool_result"):
                    holder["cache_control"] = {"type": "ephemeral"}
    elif how == "error":
        for holder in holders:
            if holder.get("type") == "tool_result":
                holder["is_error"] = True
                holder["content"] = ("", [], None, [{"type": "text", "text": ""}])[b % 4]
            if "toolUseId" in holder and "content" in holder:
                holder["status"] = "error"
                holder["content"] = ([], [{"text": ""}], [{"text": "no"}], [{"text": ""}] * 2)[b % 4]
            if str(holder.get("type")).endswith("_output"):
                holder["output"] = None


def _is_bedrock(messages: list[Any]) -> bool:
    """Whether blocks have no types, as at Bedrock."""
    held = [holder for each in messages for holder in _holders(each.get("content"))]
    return any("text" in holder and "type" not in holder for holder in held)


def bedrock_pieces(a: int, b: int) -> list[Any]:
    """A call of a tool that Bedrock runs, its result, or both, in either order."""
    key = f"tooluse_{a % 2}"
    call = {"toolUse": {"toolUseId": key, "name": "nova_grounding", "input": {"q": "rust"}, "type": "server_tool_use"}}
    found = {"toolUseId": key, "content": [{"text": "found"}], "status": "success", "type": "nova_grounding_result"}
    result = {"toolResult": found}
    return ([call], [result], [call, result], [result, call])[(a + b) % 4]


def served_pieces(is_gemini: bool, a: int, b: int) -> list[Any]:
    """A call of a server tool, its result, or both, in either order."""
    key = f"srvtoolu_{a % 2}"
    kinds = ("web_search", "code_execution", "bash_code_execution", "web_fetch")
    kind = kinds[b % 4]
    if is_gemini:
        call: dict[str, Any] = {"executableCode": {"language": "PYTHON", "code": "print(2)"}}
        result: dict[str, Any] = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
    elif b % 5 == 0:
        call = {"type": "mcp_tool_use", "id": key, "name": "ask", "server_name": "s", "input": {}}
        result = {"type": "mcp_tool_result", "tool_use_id": key, "content": [{"type": "text", "text": "asked"}]}
    else:
        call = {"type": "server_tool_use", "id": key, "name": kind, "input": {"query": "rust"}}
        found = [{"type": f"{kind}_result", "title": "Rust", "url": "https://example.org"}]
        result = {"type": f"{kind}_tool_result", "tool_use_id": key, "content": found}
    return ([call], [result], [call, result], [result, call])[(a + b) % 4]


def _holders(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a message."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _holders(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _holders(inner)


def texts(value: Any) -> Iterator[str]:
    """Every string that is not a structural field."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in NAMES:
                yield from texts(inner)


def quoted(text: str) -> str:
    """A text as JSON writes it, lone surrogates as their escapes."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "backslashreplace").decode()


def is_readable(messages: list[Any], provider: str) -> bool:
    """Whether the faulty messages can still be read."""
    try:
        fl.validate(messages, provider)
    except fl.errors.FoldlineError:
        return False
    return True


def check(messages: list[Any], provider: str, options: Options) -> fl.planning.Repair:
    """Asserts every guarantee of a repair."""
    strict = {key: options[key] for key in ("alternate", "single_system", "allow_prefill") if key in options}
    before = copy.deepcopy(messages)
    problems = fl.validate(messages, provider, **strict)
    repaired = fl.repair(messages, provider, **options)
    assert messages == before, "the input was changed"
    assert bool(repaired) == bool(repaired.actions)
    assert fl.validate(repaired.messages, provider, **strict) == repaired.problems
    assert {problem.code for problem in repaired.problems} <= UNREPAIRABLE
    if not problems:
        assert not repaired.actions
        assert len(repaired.messages) == len(messages)
        assert all(new is old for new, old in zip(repaired.messages, messages, strict=True))
    elif {problem.code for problem in problems} - UNREPAIRABLE:
        assert repaired.actions
    again = fl.repair(repaired.messages, provider, **options)
    assert not again.actions
    assert all(new is old for new, old in zip(again.messages, repaired.messages, strict=True))
    assert all(0 <= action.index < len(messages) for action in repaired.actions)
    nothing_lost(messages, repaired)
    untouched_are_the_same(messages, repaired)
    return repaired


def nothing_lost(messages: list[Any], repaired: fl.planning.Repair) -> None:
    """Every text is still present, or an action reports the removal of its container."""
    said = list(texts(repaired.messages))
    blob = "\n".join([*said, *(quoted(text) for text in said)])
    removed = {action.index for action in repaired.actions if action.code in REMOVED}
    renamed = {action.index for action in repaired.actions if action.code == "name_rewritten"}
    for index, message in enumerate(messages):
        if index not in removed:
            for text in texts(message):
                if text == BAD_NAME and index in renamed:
                    continue
                assert text in blob or quoted(text) in blob, (index, text)


def untouched_are_the_same(messages: list[Any], repaired: fl.planning.Repair) -> None:
    """A message that no action names is the same object."""
    touched = {action.index for action in repaired.actions}
    new = {id(message) for message in repaired.messages}
    # Merges and moved results are reported at the receiving message.
    gets_more = {"merged", "result_moved", "system_merged", "call_answered", "id_rewritten", "turn_added"}
    if {action.code for action in repaired.actions} & gets_more:
        touched |= {index + 1 for index in touched} | {index - 1 for index in touched}
    if "id_rewritten" in {action.code for action in repaired.actions}:
        # The output of a call stands at any distance after it, the result of the second behind that of the first.
        touched |= {at for at, message in enumerate(messages) if str(message.get("type")).endswith("_output")}
        touched |= {at for at, message in enumerate(messages) if message.get("role") == "tool"}
    if {action.code for action in repaired.actions} & {"merged", "result_moved", "system_merged", "orphan_as_text"}:
        return
    for index, message in enumerate(messages):
        assert index in touched or id(message) in new, index


@st.composite
def broken(draw: st.DrawFn) -> tuple[list[Any], str]:
    """A list of any dialect, valid or wild, with up to four faults."""
    sample: Sample = draw(samples(valid=draw(st.booleans()), formats=SENT))
    breaks = draw(st.lists(st.tuples(st.sampled_from(BREAKS), st.integers(0, 30), st.integers(0, 30)), max_size=4))
    messages = sample.messages
    for step in breaks:
        messages = break_list(messages, *step)
    return messages, draw(st.sampled_from(SERVICES.get(sample.provider, (sample.provider,))))


@given(case=broken(), strict=st.sampled_from(STRICT), policy=st.sampled_from(POLICIES))
def test_repair(case: tuple[list[Any], str], strict: Options, policy: Options) -> None:
    """Drawn by hypothesis, which shrinks failures."""
    messages, provider = case
    if is_readable(messages, provider):
        check(messages, provider, strict | policy)


def seeded_breaks(count: int, seed: str) -> Iterator[tuple[list[Any], str, Options]]:
    """Many, fast."""
    for number in range(count):
        rng = random.Random(f"{seed}-{number}")
        sample = random_sample(rng, valid=rng.random() < 0.5, formats=SENT)
        messages = sample.messages
        for _ in range(rng.randrange(5)):
            messages = break_list(messages, rng.choice(BREAKS), rng.randrange(31), rng.randrange(31))
        provider = rng.choice(SERVICES.get(sample.provider, (sample.provider,)))
        yield messages, provider, rng.choice(STRICT) | rng.choice(POLICIES)


def test_repair_seeded() -> None:
    """Every action occurs, and most of the lists need some."""
    taken: set[str] = set()
    for messages, provider, options in seeded_breaks(3_000, "repair"):
        if is_readable(messages, provider):
            taken |= {action.code for action in check(messages, provider, options).actions}
    from foldline._core import REPAIR_CODES

    # A result of several calls is in `test_odd_lists`.
    assert taken >= set(REPAIR_CODES) - {"served_result_as_text", "id_removed"}


@pytest.mark.parametrize("provider", sorted({*PROVIDERS.values(), *SERVICES["openai"]}))
def test_both_validators_agree_on_broken_lists(provider: str) -> None:
    """The oracle's validator, strict rules included."""
    compared = 0
    for messages, found, options in seeded_breaks(2_500, "agree"):
        if found != provider or not is_readable(messages, provider):
            continue
        strict = {key: options[key] for key in ("alternate", "single_system", "allow_prefill") if key in options}
        try:
            expected = set(validate(messages, provider, **strict))
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        assert {(each.index, each.code) for each in fl.validate(messages, provider, **strict)} == expected
        compared += bool(expected)
    assert compared > 100
