"""What Mistral and Cohere reject beyond OpenAI Chat, found in the raw messages.

| code | reported for |
|---|---|
| `bad_id` | Mistral: an id of a call or result that is not `[a-zA-Z0-9]{9}`; Cohere: a call or result without an id |
| `bad_name` | Mistral: a name of a call or result that is not `[a-zA-Z0-9_-]{1,64}` |
| `first_not_user` | Mistral: the list begins with calls |
| `content_beside_calls` | Cohere: a message of the assistant with calls and a text |
| `role_out_of_order` | Mistral: after a result another than the assistant, instructions after the assistant |
| `unknown_role` | both: `developer` |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from .model import RawMessage

Problem = tuple[int, str]

SHORT_ID: Final = re.compile(r"[a-zA-Z0-9]{9}")
GOOD_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{0,64}")
RESULTS: Final = ("tool", "function")


def service_problems(messages: Sequence[RawMessage], service: str) -> list[Problem]:
    """The problems of a list for a service that speaks OpenAI Chat, beyond those of the API."""
    problems = [(i, "unknown_role") for i, message in enumerate(messages) if message["role"] == "developer"]
    is_good = (lambda each: isinstance(each, str) and SHORT_ID.fullmatch(each)) if service == "mistral" else bool
    problems += [(i, "bad_id") for i, message in enumerate(messages) if not all(map(is_good, _ids(message)))]
    if service == "cohere":
        late = [i for i, message in enumerate(messages) if message["role"] == "assistant" and _has_both(message)]
        return problems + [(i, "content_beside_calls") for i in late]
    names = [[(call.get("function") or {}).get("name") or "" for call in _calls(message)] for message in messages]
    problems += [(i, "bad_name") for i, each in enumerate(names) if not all(map(GOOD_NAME.fullmatch, each))]
    named = [
        (i, message["name"]) for i, message in enumerate(messages) if message["role"] == "tool" and "name" in message
    ]
    problems += [
        (i, "bad_name") for i, name in named if name is not None and (not name or not GOOD_NAME.fullmatch(name))
    ]
    if messages and messages[0]["role"] == "assistant" and _calls(messages[0]):
        problems.append((0, "first_not_user"))
    pairs = enumerate(pairwise(message["role"] for message in messages), 1)
    return problems + [(i, "role_out_of_order") for i, (before, role) in pairs if not _may_follow(before, role)]


def _may_follow(before: str, role: str) -> bool:
    if before in RESULTS:
        return role in ("assistant", *RESULTS)
    return before != "assistant" or role not in ("system", "developer")


def _calls(message: RawMessage) -> list[Any]:
    return list(message.get("tool_calls") or ())


def _ids(message: RawMessage) -> Iterator[Any]:
    """The ids of calls and results, those of the older form aside."""
    yield from (call.get("id") for call in _calls(message))
    if message["role"] == "tool":
        yield message.get("tool_call_id")


def _has_both(message: RawMessage) -> bool:
    """Whether a message has calls and a text."""
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [_text(part) for part in content or ()]
    return bool(_calls(message)) and any(each.strip() for each in (*texts, message.get("refusal") or ""))


def _text(part: Any) -> str:
    return part if isinstance(part, str) else part.get("text") or part.get("refusal") or ""
