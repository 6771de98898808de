"""A summary without a model: what the folded messages themselves say, ordered and within a budget."""

from __future__ import annotations

import json
from collections.abc import Callable

from foldline.summarizers._evidence import evidence_of
from foldline.summarizers._sanitize import neutralized, settled
from foldline.typing import Completion, SummarizeRequest

__all__ = ["Extractive"]


class Extractive:
    """Writes the summary from evidence: requests, constraints, files, commands, errors, decisions, the last state.

    No network, no model. Equal input gives equal bytes. An earlier foldline summary among the folded messages is
    merged, not stacked.

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

        # It quotes what others wrote.
        text, evidence = settled(write, request.count, request.max_tokens, lambda text: neutralized(text)[0])
        return Completion(text, model="extractive", evidence=json.loads(evidence))
