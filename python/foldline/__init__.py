"""foldline: counts tokens exactly, plans where a conversation may be folded, and folds it.

Examples:
    >>> import foldline as fl
    >>> fl.count_tokens("hello world")
    2
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from foldline import errors
from foldline._core import Counts, Plan, TokenCounter, TranscriptCounts, __version__
from foldline.tokenizer_json import tokenizer_json

if TYPE_CHECKING:
    from foldline import models, summarizers
    from foldline.calibration import Calibration
    from foldline.detection import DetectedFormat, detect_format
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
    from foldline.typing import Problem, StoredTranscript
    from foldline.usage import ContextUsage, TokenBudget

__all__ = [
    "Calibration",
    "ContextUsage",
    "Counts",
    "DetectedFormat",
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
    "detect_format",
    "errors",
    "models",
    "plan",
    "read",
    "summarizers",
    "tokenizer_json",
    "validate",
]

#: Where names are that are imported when they are first asked for: who only counts should not wait for asyncio.
_LATER = {
    "calibration": ("Calibration",),
    "detection": ("DetectedFormat", "detect_format"),
    "folding": ("FoldResult", "acompact", "compact"),
    "models": (),
    "planning": (
        "FitTokens",
        "Infeasible",
        "Keep",
        "KeepFraction",
        "KeepIterations",
        "KeepMessages",
        "KeepTokens",
        "KeepTurns",
        "analyze",
        "plan",
        "validate",
    ),
    "reading": ("read",),
    "summarizers": (),
    "typing": ("Problem", "StoredTranscript"),
    "usage": ("ContextUsage", "TokenBudget"),
}
_MODULES = {name: module for module, names in _LATER.items() for name in names}


def count_tokens(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of a text in an encoding, equal to tiktoken's count. O(length).

    Raises:
        ConfigError: The encoding is unknown.
        MessageError: The text is no str.
    """
    return TokenCounter(encoding).count(text)


def __getattr__(name: str) -> Any:
    """A public name or module that was not asked for before."""
    if name in _LATER:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, asked for or not."""
    return sorted({*globals(), *_LATER, *_MODULES})
