"""A growing conversation: its transcript, state, usage and metadata."""

from foldline.context.calibration import Calibration
from foldline.context.metadata import Metadata
from foldline.context.state import ContextState, Stats
from foldline.context.transcript import Transcript, TranscriptSnapshot
from foldline.context.usage import ContextUsage, TokenBudget

__all__ = [
    "Calibration", "ContextState", "ContextUsage", "Metadata", "Stats", "TokenBudget", "Transcript",
    "TranscriptSnapshot",
]  # fmt: skip
