"""foldline counts tokens exactly, plans where a conversation may be folded, and folds it.

Examples:
    >>> import foldline as fl
    >>> fl.count_tokens("hello world")
    2
"""

from __future__ import annotations

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

# Not from `typing`: importing it takes longer than everything else here. Type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from foldline import config, presets, stores, strategies, summarizers, testing, triggers
    from foldline.batch import BatchCompactor
    from foldline.compactor import CompactionResult, Compactor, NoProgress, events
    from foldline.context import (
        Calibration,
        ContextState,
        ContextUsage,
        Metadata,
        Stats,
        TokenBudget,
        Transcript,
        TranscriptSnapshot,
    )
    from foldline.counting import models
    from foldline.counting.tokenizer_json import tokenizer_json
    from foldline.folding import FoldResult, acompact
    from foldline.folding.compact import compact
    from foldline.loop import AgentLoop, LoopResult, Response, StepHooks
    from foldline.planning import (
        BatchPlans,
        ByMetadata,
        DetectedFormat,
        FitTokens,
        Infeasible,
        Keep,
        KeepFraction,
        KeepIterations,
        KeepMessages,
        KeepTokens,
        KeepTurns,
        Repair,
        RepairAction,
        analyze,
        detect_format,
        plan_batch,
    )

    # Not from the package: mypy would take the names for those of its modules.
    from foldline.planning.plan import plan
    from foldline.planning.repair import repair
    from foldline.planning.validate import validate
    from foldline.reading import read
    from foldline.typing import CompactionEvent, Problem, StoredTranscript

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

#: Packages imported on first use, with their public names: a process that only counts does not load asyncio.
_ROOMS = {
    "batch": ("BatchCompactor",),
    "compactor": ("CompactionResult", "Compactor", "NoProgress"),
    "context": (
        "Calibration",
        "ContextState",
        "ContextUsage",
        "Metadata",
        "Stats",
        "TokenBudget",
        "Transcript",
        "TranscriptSnapshot",
    ),
    "counting": ("tokenizer_json",),
    "folding": ("FoldResult", "acompact", "compact"),
    "loop": ("AgentLoop", "LoopResult", "Response", "StepHooks"),
    "planning": (
        "BatchPlans",
        "ByMetadata",
        "DetectedFormat",
        "FitTokens",
        "Infeasible",
        "Keep",
        "KeepFraction",
        "KeepIterations",
        "KeepMessages",
        "KeepTokens",
        "KeepTurns",
        "Repair",
        "RepairAction",
        "analyze",
        "detect_format",
        "plan",
        "plan_batch",
        "repair",
        "validate",
    ),
    "reading": ("read",),
    "typing": ("CompactionEvent", "Problem", "StoredTranscript"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}
#: Modules that are attributes of this package, imported on first use.
_MODULES = {
    **{room: room for room in _ROOMS},
    **{name: name for name in ("config", "presets", "stores", "strategies", "summarizers", "testing", "triggers")},
    "events": "compactor.events",
    "models": "counting.models",
}


def count_tokens(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of a text in an encoding, equal to tiktoken's count. O(length).

    Raises:
        ConfigError: The encoding is unknown.
        MessageError: The text is not a str.
    """
    return TokenCounter(encoding).count(text)


def __getattr__(name: str) -> Any:
    """Imports a public name or module on first use."""
    from importlib import import_module

    if name in _MODULES:
        value: Any = import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _ROOM_OF:
        value = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, whether imported yet or not."""
    return sorted({*globals(), *_MODULES, *_ROOM_OF})
