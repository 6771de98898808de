"""A summary without a model: evidence from the folded messages, ranked to fit a budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from foldline.errors import ConfigError
from foldline.summarizers._evidence import evidence_of
from foldline.summarizers._sanitize import neutralized, settled
from foldline.typing import Completion, SummarizeRequest

__all__ = ["Extractive"]

#: The headings of a summary.
Form: TypeAlias = Literal["handover", "document", "session"]


class Extractive:
    """Writes a summary from evidence: the current request, rules, state, open problems, next steps, files.

    Needs neither network nor model, and is deterministic. An earlier summary among the folded messages, of foldline or
    of another program, is merged, not nested.

    Args:
        form: The headings: ``"handover"`` for the sections above; ``"document"`` and ``"session"`` for those that
            `Prompted` asks a model for. Default: that of the preset, else ``"handover"``.

    Raises:
        ConfigError: The form is unknown.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": "Rename the module. " + "Mind the tests. " * 60}]
        >>> messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks."}]
        >>> result = fl.compact(messages, fl.KeepMessages(1), summarizer=fl.summarizers.Extractive())
        >>> "Rename the module." in result.summary
        True
    """

    def __init__(self, form: Form | None = None) -> None:
        if form not in (None, *get_args(Form)):
            raise ConfigError('must be "handover", "document" or "session"', code="bad_form", path="form")
        self.form = form

    def __repr__(self) -> str:
        return "Extractive()" if self.form is None else f"Extractive({self.form!r})"

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Writes the document, within ``request.max_tokens``."""
        facts = evidence_of(request)

        def write(count: Callable[[str], int]) -> tuple[str, str]:
            return facts.render(request.max_tokens, count, self.form or "handover")

        # The document quotes foreign text, so it is sanitized.
        text, evidence = settled(write, request.count, request.max_tokens, lambda text: neutralized(text)[0])
        return Completion(text, model="extractive", evidence=json.loads(evidence))
