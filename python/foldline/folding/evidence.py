"""The facts of messages that a summary must contain, and the check of a text against them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from foldline import _core
from foldline._core import LiveSnapshot, LiveTranscript, RangeEvidence, TokenCounter
from foldline.counting.counters import as_counter
from foldline.planning.opening import opened
from foldline.typing import Facts, FormatOption, Messages

__all__ = ["Evidence", "evidence"]


class Evidence:
    """The facts of messages: requests, rules, files, commands, errors, next steps and more, with their message numbers.

    Made by `evidence`. The facts are extracted once, on first use.
    """

    __slots__ = ("_counter", "_extracted", "_known")

    def __init__(self, extracted: RangeEvidence, counter: TokenCounter) -> None:
        self._extracted = extracted
        self._counter = counter
        self._known: dict[str, Any] | None = None

    def __repr__(self) -> str:
        counts = {name: len(each) for name, each in self.to_dict().items() if isinstance(each, list) and each}
        return f"Evidence({', '.join(f'{name}={count}' for name, count in counts.items())})"

    def __getitem__(self, name: str) -> Any:
        """One list of facts, such as ``"files"``."""
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, Any]:
        """All facts, as lists by kind."""
        if self._known is None:
            self._known = json.loads(self._extracted.to_json())
        return dict(self._known)

    def check(self, summary: str) -> Facts:
        """The facts that a text contains (``kept``) and lacks (``dropped``). Linear in text and facts."""
        return Facts.of(json.loads(self._extracted.check(summary, self._counter.count)))


def evidence(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    *,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
    format: FormatOption = "auto",
) -> Evidence:
    """Extracts the facts that a summary of the messages must contain. O(text).

    Args:
        messages: The messages in their provider's form, the bytes of a JSON array of them, or a `Transcript`.
        counter: Token counter, by which facts are weighed. Default: ``"chars/4"``.
        format: The dialect of the messages.

    Raises:
        ConfigError: The counter or format is unknown.
        MessageError: A message cannot be read.

    Examples:
        >>> import foldline as fl
        >>> found = fl.evidence([{"role": "user", "content": "Fix src/a.py. Never edit /etc/hosts."}])
        >>> found["constraints"]
        [{'message': 0, 'text': 'Never edit /etc/hosts.'}]
        >>> [fact.kind for fact in found.check("The user wants src/a.py fixed.").dropped]
        ['task', 'constraint']
    """
    _, counted = opened(messages)
    known = as_counter("chars/4" if counter is None else counter)
    prepared = _core.prepare(counted, known, tools=None, format=format)
    return Evidence(prepared.evidence(list(range(len(prepared)))), known)
