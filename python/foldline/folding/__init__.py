"""Folding: one call that plans, summarizes and applies."""

from foldline.folding.compact import acompact, compact
from foldline.folding.evidence import Evidence, evidence
from foldline.folding.result import FoldResult
from foldline.folding.trim import trim

__all__ = ["Evidence", "FoldResult", "acompact", "compact", "evidence", "trim"]
