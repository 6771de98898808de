"""A trigger on requests that exceeded the model's window."""

from __future__ import annotations

from foldline._util.overflow import overflow_kind
from foldline.context.state import ContextState
from foldline.triggers._stop_reasons import is_window_stop
from foldline.triggers.base import BaseTrigger

__all__ = ["Overflow", "overflow_kind"]


class Overflow(BaseTrigger):
    """Fires if a request was too long for the model.

    Either the provider reported an error (`overflow_kind` of ``state.error``), or the answer filled the window
    (``state.stop_reason``), or the reported usage exceeds the window (a silent overflow).

    Args:
        silent: Whether to detect silent overflows, which needs ``state.budget``.

    Examples:
        >>> import foldline as fl
        >>> error = RuntimeError("This model's maximum context length is 8192 tokens.")
        >>> Overflow().reason(fl.ContextState(error=error))
        'context_overflow'
    """

    def __init__(self, *, silent: bool = True) -> None:
        self.silent = silent

    def __repr__(self) -> str:
        return f"Overflow(silent={self.silent})"

    def reason(self, state: ContextState) -> str | None:
        """``"context_overflow"``, ``"request_too_large"``, ``"window_stop"`` or ``"silent_overflow"``."""
        kind = overflow_kind(state.error)
        if kind is not None:
            return "context_overflow" if kind == "context" else "request_too_large"
        if is_window_stop(state.stop_reason):
            return "window_stop"
        if self.silent and state.usage is not None and state.budget is not None:
            limit = state.budget.context_limit
            # Reported tokens only: counted ones may be estimates.
            if state.usage.usage_tokens > limit:
                return "silent_overflow"
        return None

    def threshold_tokens(self, state: ContextState) -> int | None:
        """The window less the tokens reserved for the answer."""
        if state.budget is None:
            return None
        return max(0, state.budget.context_limit - state.budget.max_output_tokens)
