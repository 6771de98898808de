"""A summary without a model: evidence from the folded messages, ranked to fit a budget."""

from __future__ import annotations

import json
from collections.abc import Callable

from foldline.summarizers._evidence import evidence_of
from foldline.summarizers._sanitize import neutralized, settled
from foldline.typing import Completion, SummarizeRequest

__all__ = ["Extractive"]


class Extractive:
    """Writes a summary from evidence: requests, constraints, files, commands, errors, decisions, state.

    Needs neither network nor model, and is deterministic. An earlier foldline summary among the folded messages is
    merged, not nested.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": "Rename the module. " + "Mind the tests. " * 60}]
        >>> messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks."}]
        >>> result = fl.compact(messages, fl.KeepMessages(1), summarizer=fl.summarizers.Extractive())
        >>> "Rename the module." in result.summary
        True
    """

    def __repr__(self) -> str:
        return "Extractive()"

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Writes the document, within ``request.max_tokens``."""
        facts = evidence_of(request)

        def write(count: Callable[[str], int]) -> tuple[str, str]:
            return facts.render(request.max_tokens, count)

        # The document quotes foreign text, so it is sanitized.
        text, evidence = settled(write, request.count, request.max_tokens, lambda text: neutralized(text)[0])
        return Completion(text, model="extractive", evidence=json.loads(evidence))
