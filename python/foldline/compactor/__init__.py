"""The compactor: a trigger and a strategy for one conversation, with results and events."""

from foldline.compactor.compactor import Compactor
from foldline.compactor.result import CompactionResult, NoProgress

__all__ = ["CompactionResult", "Compactor", "NoProgress"]
