"""Who writes the summary: `Extractive` without any network, a model that is `Prompted`, or a function of yours."""

from __future__ import annotations

from foldline.summarizers.extractive import Extractive
from foldline.summarizers.function import FromFunction, as_summarizer
from foldline.summarizers.prompted import Prompted
from foldline.summarizers.prompts import PROMPT_VERSION
from foldline.typing import Completion

__all__ = ["PROMPT_VERSION", "Completion", "Extractive", "FromFunction", "Prompted", "as_summarizer"]
