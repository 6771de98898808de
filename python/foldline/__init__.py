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
from foldline._core import (
    Alternative,
    CacheEffect,
    Chunk,
    Counts,
    Plan,
    TokenCounter,
    TranscriptCounts,
    __version__,
)
from foldline.tokenizer_json import tokenizer_json

if TYPE_CHECKING:
    from foldline import config, events, models, presets, stores, strategies, summarizers, testing, triggers
    from foldline.batch import BatchCompactor
    from foldline.batch_plans import BatchPlans, plan_batch
    from foldline.calibration import Calibration
    from foldline.compactor import CompactionResult, Compactor, NoProgress
    from foldline.detection import DetectedFormat, detect_format
    from foldline.folding import FoldResult, acompact, compact
    from foldline.live import Transcript, TranscriptSnapshot
    from foldline.loop import AgentLoop, LoopResult
    from foldline.metadata import Metadata
    from foldline.planning import (
        ByMetadata,
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
    from foldline.repairing import Repair, RepairAction, repair
    from foldline.state import ContextState, Stats
    from foldline.stepping import Response, StepHooks
    from foldline.typing import CompactionEvent, Problem, StoredTranscript
    from foldline.usage import ContextUsage, TokenBudget

__all__ = [
    "AgentLoop",
    "Alternative",
    "BatchCompactor",
    "BatchPlans",
    "ByMetadata",
    "CacheEffect",
    "Calibration",
    "Chunk",
    "CompactionEvent",
    "CompactionResult",
    "Compactor",
    "ContextState",
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
    "LoopResult",
    "Metadata",
    "NoProgress",
    "Plan",
    "Problem",
    "Repair",
    "RepairAction",
    "Response",
    "Stats",
    "StepHooks",
    "StoredTranscript",
    "TokenBudget",
    "TokenCounter",
    "Transcript",
    "TranscriptCounts",
    "TranscriptSnapshot",
    "__version__",
    "acompact",
    "analyze",
    "compact",
    "config",
    "count_tokens",
    "detect_format",
    "errors",
    "events",
    "models",
    "plan",
    "plan_batch",
    "presets",
    "read",
    "repair",
    "stores",
    "strategies",
    "summarizers",
    "testing",
    "tokenizer_json",
    "triggers",
    "validate",
]

#: Where names are that are imported when they are first asked for: who only counts should not wait for asyncio.
_LATER = {
    "batch": ("BatchCompactor",),
    "batch_plans": ("BatchPlans", "plan_batch"),
    "calibration": ("Calibration",),
    "compactor": ("CompactionResult", "Compactor", "NoProgress"),
    "config": (),
    "events": (),
    "detection": ("DetectedFormat", "detect_format"),
    "folding": ("FoldResult", "acompact", "compact"),
    "live": ("Transcript", "TranscriptSnapshot"),
    "loop": ("AgentLoop", "LoopResult"),
    "metadata": ("Metadata",),
    "models": (),
    "planning": (
        "ByMetadata",
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
    "presets": (),
    "reading": ("read",),
    "repairing": ("Repair", "RepairAction", "repair"),
    "state": ("ContextState", "Stats"),
    "stepping": ("Response", "StepHooks"),
    "stores": (),
    "strategies": (),
    "summarizers": (),
    "testing": (),
    "triggers": (),
    "typing": ("CompactionEvent", "Problem", "StoredTranscript"),
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
