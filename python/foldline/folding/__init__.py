"""Folding: one call that plans, summarizes and applies."""

from foldline.folding.compact import FoldResult, acompact, compact

__all__ = ["FoldResult", "acompact", "compact"]
