"""The compactor: combines a trigger and a strategy for one conversation, with its results and events."""

from foldline.compactor.compactor import Compactor
from foldline.compactor.result import CompactionResult, NoProgress

__all__ = ["CompactionResult", "Compactor", "NoProgress"]
