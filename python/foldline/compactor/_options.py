"""Options of a compactor, as keyword arguments of other constructors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from foldline.compactor.events import Hooks
from foldline.folding.redact import Redact
from foldline.typing import FailurePolicy, FormatOption, Messages

__all__ = ["CompactorOptions"]


class CompactorOptions(TypedDict, total=False):
    """Options of `Compactor`, without what a compactor for a model chooses."""

    on_failure: FailurePolicy
    hooks: Hooks | Mapping[str, Any] | None
    pins: Iterable[Callable[[Any], bool]] | Callable[[Any], bool]
    background: bool
    tools: Messages | None
    system: str | Messages | None
    timeout_s: float | None
    redact: Redact | None
    format: FormatOption
    hysteresis: float
    clock: Callable[[], float]
    max_folds: int
    max_sessions: int
