"""foldline: counts tokens exactly, plans where a conversation may be folded, and folds it.

Examples:
    >>> import foldline as fl
    >>> fl.count_tokens("hello world")
    2
"""

from __future__ import annotations

import logging

from foldline import errors, models, summarizers
from foldline._core import Counts, Plan, TokenCounter, TranscriptCounts, __version__
from foldline.calibration import Calibration
from foldline.folding import FoldResult, acompact, compact
from foldline.planning import (
    FitTokens,
    Infeasible,
    Keep,
    KeepFraction,
    KeepIterations,
    KeepMessages,
    KeepTokens,
    KeepTurns,
    analyze,
    plan,
    validate,
)
from foldline.reading import read
from foldline.tokenizer_json import tokenizer_json
from foldline.typing import Problem, StoredTranscript
from foldline.usage import ContextUsage, TokenBudget

__all__ = [
    "Calibration",
    "ContextUsage",
    "Counts",
    "FitTokens",
    "FoldResult",
    "Infeasible",
    "Keep",
    "KeepFraction",
    "KeepIterations",
    "KeepMessages",
    "KeepTokens",
    "KeepTurns",
    "Plan",
    "Problem",
    "StoredTranscript",
    "TokenBudget",
    "TokenCounter",
    "TranscriptCounts",
    "__version__",
    "acompact",
    "analyze",
    "compact",
    "count_tokens",
    "errors",
    "models",
    "plan",
    "read",
    "summarizers",
    "tokenizer_json",
    "validate",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())


def count_tokens(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of a text in an encoding, equal to tiktoken's count. O(length).

    Raises:
        ConfigError: The encoding is unknown.
        MessageError: The text is no str.
    """
    return TokenCounter(encoding).count(text)
