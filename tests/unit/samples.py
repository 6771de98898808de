"""Samples of the unit tests: messages in each dialect, hostile values, and a check that errors hold no content."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import foldline as fl

Dict = dict[str, Any]

CANARY: Final = "k4nar1e" + "nv0gel"
"""Occurs in contents; no error may contain it."""

WORDS: Final = "word " * 40
"""50 tokens by `chars/4`."""


def user(content: Any = WORDS, **more: Any) -> Dict:
    """A user message."""
    return {"role": "user", "content": content, **more}


def assistant(content: Any = WORDS, **more: Any) -> Dict:
    """An assistant message."""
    return {"role": "assistant", "content": content, **more}


def openai_call(id: str = "a", arguments: Any = "{}", content: Any = None) -> Dict:
    """An assistant message with one call in OpenAI's form."""
    function = {"name": "go", "arguments": arguments}
    return assistant(content, tool_calls=[{"id": id, "type": "function", "function": function}])


def openai_result(id: str = "a", content: Any = WORDS, **more: Any) -> Dict:
    """A tool message."""
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def anthropic_call(id: str = "a", given: Any = None) -> Dict:
    """An assistant message with one call in Anthropic's form."""
    return assistant([{"type": "tool_use", "id": id, "name": "go", "input": {} if given is None else given}])


def anthropic_result(id: str = "a", content: Any = WORDS, **more: Any) -> Dict:
    """A user message with one result."""
    return user([{"type": "tool_result", "tool_use_id": id, "content": content, **more}])


def talk(count: int, content: str = WORDS) -> list[Dict]:
    """User and assistant in turn."""
    return [(user, assistant)[i % 2](f"{i} {content}") for i in range(count)]


def nested(levels: int) -> Any:
    """A number inside `levels` nested lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def nested_dicts(levels: int) -> Any:
    """A number inside `levels` nested dicts."""
    value: Any = 1
    for _ in range(levels):
        value = {"k": value}
    return value


def own_list() -> list[Any]:
    """A list that contains itself."""
    value: list[Any] = []
    value.append(value)
    return value


def own_dict() -> Dict:
    """A dict that contains itself."""
    value: Dict = {"type": "strange"}
    value["self"] = value
    return value


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def holds_no_content(error: BaseException) -> None:
    """Asserts that the error, its causes and its printed traceback contain no message content."""
    for each in chain(error):
        assert CANARY not in str(each)
        assert CANARY not in repr(each)
        assert CANARY not in repr(each.args)
        assert CANARY not in repr(vars(each))
    assert CANARY not in "".join(traceback.format_exception(error))


def fold(messages: Any, format: str) -> fl.FoldResult:
    """Folds everything; ignores that the messages may be too small for a summary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.errors.FoldlineWarning)
        return fl.compact(
            messages, fl.KeepMessages(0), counter="chars/4", summarizer=lambda _: "So far.", format=format
        )


OPERATIONS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "count_messages": lambda messages, format: fl.TokenCounter().count_messages(messages, format=format),
    "fits": lambda messages, format: fl.TokenCounter().fits(messages, 10**9, format=format),
    "plan": lambda messages, format: fl.plan(messages, fl.KeepMessages(0), counter="chars/4", format=format),
    "validate": lambda messages, format: fl.validate(messages, "openai", format=format),
    "analyze": lambda messages, format: fl.analyze(messages, format=format),
    "compact": fold,
    "apply": lambda messages, format: fl.plan(
        [user("a")], fl.KeepMessages(1), counter="chars/4", format="openai_chat" if format == "auto" else format
    ).apply(messages),
}
"""Every function that reads messages, as a function of messages and format."""
