"""Who writes the summary: `Extractive` without any network, or a function of yours."""

from __future__ import annotations

from foldline.summarizers.extractive import Extractive
from foldline.summarizers.function import FromFunction, as_summarizer
from foldline.typing import Completion

__all__ = ["Completion", "Extractive", "FromFunction", "as_summarizer"]
