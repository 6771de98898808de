"""The evidence for a summary request."""

from __future__ import annotations

from foldline import _core
from foldline._core import RangeEvidence, TokenCounter
from foldline.typing import SummarizeRequest

__all__ = ["evidence_of"]


def evidence_of(request: SummarizeRequest) -> RangeEvidence:
    """The evidence of the folded messages: the request's, else read from its messages.

    Raises:
        MessageError: A message cannot be read.
    """
    if request.evidence is not None:
        return request.evidence
    # Token counts do not matter here, so the cheapest counter is used.
    prepared = _core.prepare(request.messages, TokenCounter("chars/4"), tools=None, format=request.format)
    return prepared.evidence(list(request.folded))
