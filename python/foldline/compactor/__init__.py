"""The compactor: folds a session when its trigger fires."""

from foldline.compactor import events
from foldline.compactor.compactor import Compactor
from foldline.compactor.result import CompactionResult

__all__ = ["CompactionResult", "Compactor", "events"]
