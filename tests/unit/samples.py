"""What the unit tests share: messages in each dialect, hostile values, and the check that errors hold no content."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import foldline as fl

Dict = dict[str, Any]

CANARY: Final = "k4nar1e" + "nv0gel"
"""Stands in contents; no error may ever hold it."""

WORDS: Final = "word " * 40
"""50 tokens of `chars/4`."""


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
    """A number inside so many lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def nested_dicts(levels: int) -> Any:
    """A number inside so many dicts."""
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
    """An error and everything it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def holds_no_content(error: BaseException) -> None:
    """Neither the error nor what it was raised from nor its printed traceback says what the messages say."""
    for each in chain(error):
        assert CANARY not in str(each)
        assert CANARY not in repr(each)
        assert CANARY not in repr(each.args)
        assert CANARY not in repr(vars(each))
    assert CANARY not in "".join(traceback.format_exception(error))


def fold(messages: Any, format: str) -> fl.FoldResult:
    """Folds everything; that the messages may be too small for a summary is no matter here."""
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
"""Everything that reads messages, as a function of messages and format."""
