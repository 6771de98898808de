"""The requirements on a shortened conversation, written after OpenAI's published rules and without foldline.

The rules are those of the API reference (Chat Completions, `messages`) and of its error messages: every id of an
assistant message's `tool_calls` is answered by `tool` messages directly after it, and a `tool` message answers such a
call. Tokens are counted by one rule: the encoding over every text, name and argument, 4 per message, 3 per request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
Count = Callable[[str], int]

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
HEAD = ("developer", "system")
PER_MESSAGE = 4
PER_REQUEST = 3


def problems(messages: Sequence[Message]) -> list[str]:
    """Codes of the problems that the API would reject, in order; empty if it would accept the messages."""
    if not messages:
        return ["no_messages"]
    found: list[str] = []
    waiting: list[str] = []
    for message in messages:
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                found.append("tool_without_call")
        else:
            found += ["call_without_tool"] * len(waiting)
            waiting = []
        if role not in ROLES:
            found.append("unknown_role")
        elif not _has_content(message):
            found.append("no_content")
        if role == "assistant" and message.get("tool_calls") is not None:
            found += _problems_of_calls(message["tool_calls"])
            waiting = [call.get("id") for call in message["tool_calls"]]
    return found + ["call_without_tool"] * len(waiting)


def _has_content(message: Message) -> bool:
    """Content is required except with calls of the assistant; a list of parts has at least one."""
    content = message.get("content")
    if content is None:
        calls = message.get("tool_calls") or message.get("function_call") or message.get("refusal")
        return message["role"] == "assistant" and bool(calls)
    return isinstance(content, str) or (isinstance(content, list) and bool(content))


def _problems_of_calls(calls: object) -> list[str]:
    if not isinstance(calls, list) or not calls:
        return ["empty_tool_calls"]
    found = []
    for call in calls:
        function = call.get("function") or {}
        strings = (call.get("id"), function.get("name"), function.get("arguments"))
        if call.get("type") != "function" or not all(isinstance(value, str) for value in strings):
            found.append("bad_tool_call")
    ids = [call.get("id") for call in calls]
    return found + ["duplicate_id"] * (len(ids) - len(set(ids)))


def unpaired(messages: Iterable[Message]) -> int:
    """Calls without a later result and results without an earlier call, at any position; ids may recur."""
    open_calls: list[str] = []
    orphans = 0
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") in open_calls:
                open_calls.remove(message["tool_call_id"])
            else:
                orphans += 1
        open_calls += [call["id"] for call in message.get("tool_calls") or ()]
    return orphans + len(open_calls)


def tokens_of_message(message: Message, count: Count) -> int:
    """Every text, name and argument, and the framing of a message."""
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [part.get("text") or "" for part in content or ()]
    total = sum(map(count, texts))
    if message.get("name") and message["role"] != "tool":
        total += 1 + count(message["name"])
    for call in message.get("tool_calls") or ():
        total += count(call["function"]["name"]) + count(call["function"]["arguments"])
    return PER_MESSAGE + total


def tokens(messages: Iterable[Message], count: Count) -> int:
    """Tokens of a request."""
    return PER_REQUEST + sum(tokens_of_message(message, count) for message in messages)


def head_of(messages: Sequence[Message]) -> list[Message]:
    """The leading system and developer messages."""
    length = next((i for i, message in enumerate(messages) if message["role"] not in HEAD), len(messages))
    return list(messages[:length])


def newest_user(messages: Sequence[Message]) -> Message | None:
    """The newest user message."""
    return next((message for message in reversed(messages) if message["role"] == "user"), None)


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


def keeps_head(before: Sequence[Message], after: Sequence[Message]) -> bool:
    """Whether every leading system message is present, whole, before all other messages."""
    left = [_text(message) for message in head_of(after)]
    return all(any(_text(message) in text for text in left) for message in head_of(before))


def keeps_newest_user(before: Sequence[Message], after: Sequence[Message]) -> bool:
    """Whether the newest user message is present, whole."""
    newest = newest_user(before)
    return newest is None or any(m["role"] == "user" and _text(m) == _text(newest) for m in after)


def least(messages: Sequence[Message], count: Count) -> int:
    """Tokens of system and newest user message alone: no library can meet a lower budget."""
    newest = newest_user(messages)
    return tokens([*head_of(messages), *([newest] if newest else [])], count)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one conversation at one budget."""

    valid_for_foldline: bool
    valid_for_script: bool
    paired: bool
    within: bool
    head: bool
    user: bool

    def faultless(self, counts_tokens: bool) -> bool:
        """Whether there is no fault; the budget applies only to a library with token budgets."""
        valid = self.valid_for_foldline and self.valid_for_script
        return valid and self.head and self.user and (self.within or not counts_tokens)


def judge(
    before: Sequence[Message], after: Sequence[Message], budget: int, count: Count, validate: Callable[[Any], list[Any]]
) -> Verdict:
    """Checks every requirement; `validate` is foldline's."""
    return Verdict(
        valid_for_foldline=not validate(after),
        valid_for_script=not problems(after),
        paired=not unpaired(after),
        within=tokens(after, count) <= budget,
        head=keeps_head(before, after),
        user=keeps_newest_user(before, after),
    )
