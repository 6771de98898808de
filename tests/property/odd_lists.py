"""Recorded lists of every dialect with odd values in them: what a stranger's agent may send.

A mutation replaces any value of a list by any JSON value, or breaks it as agents do: parts of unknown types, ids that
are numbers, empty, repeated or gone, calls within results, messages that are dropped or doubled.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import foldline as fl

Json = Any
Path_ = tuple[str | int, ...]

#: Most messages of a list, and most characters of a text: many short lists find more than few long ones.
MAX_MESSAGES: Final = 8
MAX_CHARACTERS: Final = 60

#: Calls in the form of every dialect: within a result they are text.
NESTED: Final[tuple[Json, ...]] = (
    {"type": "tool_use", "id": "nested", "name": "nested", "input": {"a": "nested"}, "text": "nested"},
    {"type": "tool_result", "tool_use_id": "nested", "content": "nested"},
    {"functionCall": {"name": "nested", "args": {"a": "nested"}}},
    {"toolUse": {"toolUseId": "nested", "name": "nested", "input": {"a": "nested"}}},
    {"type": "function_call", "call_id": "nested", "name": "nested", "arguments": "{}", "text": "nested"},
    {"id": "nested", "type": "function", "function": {"name": "nested", "arguments": "{}"}},
)

#: Values of every kind, and parts of unknown types.
VALUES: Final[tuple[Json, ...]] = (
    None,
    0,
    5,
    -1.5,
    True,
    False,
    "",
    "odd",
    [],
    [5],
    [None],
    ["odd"],
    [[]],
    {},
    {"a": "odd"},
    {"a": "\ud83d odd"},
    {"type": "odd"},
    {"type": 5},
    {"text": 5},
    {"text": "odd"},
    {"type": "text"},
    {"type": "text", "text": None},
    {"type": "text", "text": "odd"},
    {"type": "thinking", "thinking": [{"type": "text", "text": "odd"}]},
    [{"type": "odd", "odd": ["odd"]}],
    *NESTED,
)

#: Names that are odd: none, or no text.
ODD_NAMES: Final[tuple[Json, ...]] = (None, 5, {"a": "odd name"}, ["odd \ud83d name"])

#: Keys under which the dialects of libraries store the fields of a message, or whole messages.
HOLDERS: Final = ("data", "kwargs", "messages", "Messages")

#: Keys of ids, in every dialect.
IDS: Final = frozenset({"id", "tool_call_id", "tool_use_id", "call_id", "toolCallId", "toolUseId", "tool_call_ids"})

#: Ids that are odd: repeated, with characters that an API refuses, numbers, empty.
ODD_IDS: Final[tuple[Json, ...]] = ("a b", "a b", "é", 5, 5, 7.5, "", None, "x" * 90, ["a", "b"], {"a": 1}, True)


def shortened(value: Json) -> Json:
    """A copy with short texts and lists."""
    if isinstance(value, str):
        return value if len(value) <= MAX_CHARACTERS else value[:MAX_CHARACTERS]
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    return [shortened(item) for item in value[:MAX_MESSAGES]] if isinstance(value, list) else value


def recorded(folder: Path) -> dict[str, list[list[Json]]]:
    """Windows of the recorded transcripts by dialect, each at most once."""
    found: dict[str, dict[str, list[Json]]] = {}
    for path in sorted(path for path in folder.glob("*/*") if path.suffix in (".json", ".jsonl", ".traj")):
        for transcript in fl.read(path, on_problem=lambda _: None):
            windows = found.setdefault(transcript.format, {})
            for start in range(0, min(len(transcript.messages), 20 * MAX_MESSAGES), MAX_MESSAGES - 2):
                window = shortened(transcript.messages[start : start + MAX_MESSAGES])
                windows.setdefault(repr(window), window)
    return {format: list(windows.values()) for format, windows in sorted(found.items())}


def places(value: Json, path: Path_ = ()) -> Iterator[Path_]:
    """The places of all values in a list of messages, but for the messages themselves."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if path:
            yield (*path, key)
        yield from places(item, (*path, key))


def replaced(value: Json, path: Path_, new: Json) -> Json:
    """A copy along the path, with another value at its end."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def at(value: Json, path: Path_) -> Json:
    """The value at a place."""
    for key in path:
        value = value[key]
    return value


def keeps_its_roles(path: Path_, new: Json, messages: list[Json]) -> bool:
    """Whether a list keeps what makes it one: a known role of each message, or an item's type, and its content."""
    message = messages[path[0]]
    if path[1] == "id" and message.get("type") == "constructor":
        return False
    if path[1] in HOLDERS:
        # The fields of a message of LangChain, or the messages of a unit of gent.
        path = path[1:] if path[1] in ("data", "kwargs") else path[2:]
        message = {}
    if len(path) != 2:
        return len(path) > 2
    key = path[1]
    if key == "role":
        return False
    if key == "type":
        has_role = isinstance(message.get("role"), str) and message["type"] != "chat"
        return has_role or (isinstance(new, str) and new != "")
    is_scalar = isinstance(new, bool | int | float)
    return not (is_scalar and key in ("content", "parts", "text"))


def with_odd_values(draw: random.Random, messages: list[Json]) -> list[Json]:
    """A list with one to three odd values in it. Its messages are objects, with the roles that they had."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        all_places = list(places(messages))
        if not all_places:
            return messages
        path, new = draw.choice(all_places), draw.choice(VALUES)
        if keeps_its_roles(path, new, messages):
            messages = replaced(messages, path, new)
        lists = [path for path in all_places if len(path) == 2 and isinstance(at(messages, path[:1]), dict)]
        lists = [path for path in lists if isinstance(at(messages, path[:1]).get(path[1]), list)]
        lists = [path for path in lists if path[1] not in (*HOLDERS, "id")]
        if lists and draw.random() < 0.3:
            path = draw.choice(lists)
            parts = list(at(messages, path))
            parts.insert(draw.randrange(len(parts) + 1), draw.choice(VALUES))
            messages = replaced(messages, path, parts)
    return messages


def broken(draw: random.Random, messages: list[Json]) -> list[Json]:
    """A list that its provider may reject: odd values, odd ids, calls within results, messages out of order."""
    if draw.random() < 0.5:
        messages = with_odd_values(draw, messages)
    for _ in range(draw.randrange(4)):
        at_random = draw.randrange(len(messages)) if messages else 0
        match draw.randrange(6):
            case 0 | 1:
                for _ in range(draw.choice((1, 2, 9))):
                    ids = [path for path in places(messages) if path[-1] in IDS]
                    if ids:
                        messages = replaced(messages, draw.choice(ids), draw.choice(ODD_IDS))
            case 2:
                contents = [path for path in places(messages) if path[-1] in ("content", "output", "parts", "response")]
                if contents:
                    path = draw.choice(contents)
                    if keeps_its_roles(path, [], messages):
                        new = [draw.choice(NESTED), {"type": "text", "text": "odd"}]
                        messages = replaced(messages, path, new[: draw.randrange(1, 3)])
            case 3:
                messages = messages[:at_random] + messages[at_random + 1 :]
            case 4:
                messages = messages[: at_random + 1] + messages[at_random:]
            case 5:
                names = [path for path in places(messages) if path[-1] == "name"]
                if names:
                    path, new = draw.choice(names), draw.choice(ODD_NAMES)
                    holder = {key: value for key, value in at(messages, path[:-1]).items() if key != "name"}
                    messages = replaced(messages, path[:-1], holder if new is None else {**holder, "name": new})
    results = [path for path in places(messages) if path[1:] == ("tool_call_id",)]
    if results and draw.random() < 0.1:
        path = draw.choice(results)
        messages = replaced(messages, path, [at(messages, path), draw.choice(ODD_IDS)])
    return messages
