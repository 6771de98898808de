"""The facts behind a request for a summary."""

from __future__ import annotations

from foldline import _core
from foldline._core import RangeEvidence, TokenCounter
from foldline.typing import SummarizeRequest

__all__ = ["evidence_of"]


def evidence_of(request: SummarizeRequest) -> RangeEvidence:
    """The facts of the folded messages: those that the request brings, else read from its messages.

    Raises:
        MessageError: A message cannot be read.
    """
    if request.evidence is not None:
        return request.evidence
    # Only the text matters here, so the cheapest counter will do.
    prepared = _core.prepare(request.messages, TokenCounter("chars/4"), tools=None, format=request.format)
    return prepared.evidence(list(request.folded))
