"""Planning: keeps, plans, validation and repair of messages."""

from foldline._core import Alternative, CacheEffect, Chunk
from foldline.planning.batch import BatchPlans, plan_batch
from foldline.planning.detect import Contradiction, DetectedFormat, detect_format
from foldline.planning.keeps import FitTokens, Keep, KeepFraction, KeepIterations, KeepMessages, KeepTokens, KeepTurns
from foldline.planning.plan import ByMetadata, Infeasible, plan
from foldline.planning.repair import Repair, RepairAction, repair
from foldline.planning.validate import Analysis, analyze, validate

__all__ = [
    "Alternative", "Analysis", "BatchPlans", "ByMetadata", "CacheEffect", "Chunk", "Contradiction", "DetectedFormat",
    "FitTokens", "Infeasible", "Keep", "KeepFraction", "KeepIterations", "KeepMessages", "KeepTokens", "KeepTurns",
    "Repair", "RepairAction", "analyze", "detect_format", "plan", "plan_batch", "repair", "validate",
]  # fmt: skip
