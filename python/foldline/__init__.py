"""foldline counts tokens exactly, plans where a conversation may be folded, and folds it.

Examples:
    >>> import foldline as fl
    >>> fl.count_tokens("hello world")
    2
"""

from __future__ import annotations

from foldline import errors

# Not from `typing`: importing it takes longer than everything else here. Type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from foldline import (
        batch,
        compactor,
        config,
        context,
        counting,
        integrations,
        loop,
        planning,
        presets,
        report,
        stores,
        strategies,
        summarizers,
        telemetry,
        testing,
        triggers,
        typing,
    )
    from foldline._core import Counts, Plan, TokenCounter, __version__
    from foldline.compactor import CompactionResult, Compactor
    from foldline.context import Calibration, ContextState, ContextUsage, Stats, TokenBudget, Transcript
    from foldline.counting import models
    from foldline.folding import Evidence, FoldResult, acompact
    from foldline.folding.compact import compact
    from foldline.folding.evidence import evidence
    from foldline.folding.trim import trim
    from foldline.planning import (
        Analysis,
        FitTokens,
        Infeasible,
        KeepFraction,
        KeepIterations,
        KeepMessages,
        KeepTokens,
        KeepTurns,
        analyze,
        detect_format,
        plan_batch,
    )

    # Not from the package: mypy would take the names for those of its modules.
    from foldline.planning.plan import plan
    from foldline.planning.repair import repair
    from foldline.planning.validate import validate
    from foldline.reading import read
    from foldline.report import audit
    from foldline.typing import Problem, StoredTranscript

__all__ = [
    "Analysis",
    "Calibration",
    "CompactionResult",
    "Compactor",
    "ContextState",
    "ContextUsage",
    "Counts",
    "Evidence",
    "FitTokens",
    "FoldResult",
    "Infeasible",
    "KeepFraction",
    "KeepIterations",
    "KeepMessages",
    "KeepTokens",
    "KeepTurns",
    "Plan",
    "Problem",
    "Stats",
    "StoredTranscript",
    "TokenBudget",
    "TokenCounter",
    "Transcript",
    "__version__",
    "acompact",
    "analyze",
    "audit",
    "batch",
    "compact",
    "compactor",
    "config",
    "context",
    "count_tokens",
    "counting",
    "detect_format",
    "errors",
    "evidence",
    "integrations",
    "loop",
    "models",
    "plan",
    "plan_batch",
    "planning",
    "presets",
    "read",
    "repair",
    "report",
    "stores",
    "strategies",
    "summarizers",
    "telemetry",
    "testing",
    "triggers",
    "trim",
    "typing",
    "validate",
]

#: Names imported on first use, by their package: a process that only counts does not load asyncio.
_PACKAGES = {
    "compactor": ("CompactionResult", "Compactor"),
    "context": ("Calibration", "ContextState", "ContextUsage", "Stats", "TokenBudget", "Transcript"),
    "folding": ("Evidence", "FoldResult", "acompact", "compact", "evidence", "trim"),
    "planning": (
        "Analysis",
        "FitTokens",
        "Infeasible",
        "KeepFraction",
        "KeepIterations",
        "KeepMessages",
        "KeepTokens",
        "KeepTurns",
        "analyze",
        "detect_format",
        "plan",
        "plan_batch",
        "repair",
        "validate",
    ),
    "reading": ("read",),
    "report": ("audit",),
    "typing": ("Problem", "StoredTranscript"),
}
#: Names of the core. The command line loads it after it has a handler of Ctrl-C, since loading takes some milliseconds.
_CORE = ("Counts", "Plan", "TokenCounter", "__version__")
_PACKAGE_OF = {name: package for package, names in _PACKAGES.items() for name in names}
#: Modules that are attributes of this package, imported on first use.
_MODULES = {name: name for name in (
    "batch", "compactor", "config", "context", "counting", "integrations", "loop", "planning", "presets", "report",
    "stores", "strategies", "summarizers", "telemetry", "testing", "triggers", "typing",
)} | {"models": "counting.models"}  # fmt: skip


def count_tokens(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of a text in an encoding, equal to tiktoken's count. O(length).

    Raises:
        ConfigError: The encoding is unknown.
        MessageError: The text is not a str.
    """
    try:
        counter = TokenCounter
    except NameError:  # not imported yet
        _load_core()
        counter = TokenCounter
    return counter(encoding).count(text)


def _load_core() -> None:
    from foldline._core import Counts, Plan, TokenCounter, __version__

    globals().update(Counts=Counts, Plan=Plan, TokenCounter=TokenCounter, __version__=__version__)


if not TYPE_CHECKING:  # else every misspelt name would be an attribute

    def __getattr__(name: str) -> Any:
        """Imports a public name or module on first use."""
        if name in _CORE:
            _load_core()
            return globals()[name]
        from importlib import import_module

        if name in _MODULES:
            value: Any = import_module(f"{__name__}.{_MODULES[name]}")
        elif name in _PACKAGE_OF:
            value = getattr(import_module(f"{__name__}.{_PACKAGE_OF[name]}"), name)
        else:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """All public names, whether imported yet or not."""
    return sorted({*globals(), *_CORE, *_MODULES, *_PACKAGE_OF})
