"""Adapts any function to a summarizer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from foldline.errors import ConfigError, SummaryError
from foldline.summarizers.prompted import Prompted
from foldline.typing import ChatModel, Completion, Summarizer, SummarizeRequest, SummaryFunction

__all__ = ["FromFunction", "as_summarizer", "copied"]


class FromFunction:
    """Calls a function with the folded messages; its return value is the summary.

    Examples:
        >>> from foldline.summarizers import FromFunction
        >>> FromFunction(lambda messages: f"{len(messages)} messages were folded")
        FromFunction(<lambda>)
    """

    def __init__(self, function: SummaryFunction) -> None:
        self._function: Callable[..., Any] = function
        self._name = getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"FromFunction({self._name})"

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Calls the function."""
        # Copies, since the function may modify them.
        answer = self._function([copied(request.messages[i]) for i in request.folded])
        if isinstance(answer, Completion):
            return answer
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise SummaryError("the function is asynchronous; use one that returns a text", code="not_a_text")
        if not isinstance(answer, str):
            raise SummaryError("the function returned no text", code="not_a_text")
        return Completion(answer, model=self._name)


def copied(value: Any, known: dict[int, Any] | None = None) -> Any:
    """A copy of nested dicts and lists, cycles included, without calling methods of their members."""
    known = {} if known is None else known
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, dict):
        known[id(value)] = members = {}
        for key, member in dict.items(value):
            members[key] = copied(member, known)
        return members
    if isinstance(value, list):
        known[id(value)] = items = []
        items += [copied(item, known) for item in list.__iter__(value)]
        return items
    return value


def as_summarizer(summarizer: Summarizer | ChatModel | SummaryFunction) -> Summarizer:
    """Converts a summarizer, chat model or function to a summarizer."""
    if isinstance(summarizer, Summarizer):
        return summarizer
    if isinstance(summarizer, ChatModel):
        return Prompted(summarizer)
    if callable(summarizer):
        return FromFunction(summarizer)
    raise ConfigError("neither a summarizer nor a function", code="bad_summarizer", path="summarizer")
