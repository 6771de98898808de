"""Strategies decide how to compact: each maps messages to fewer or smaller ones.

Examples:
    >>> import foldline as fl
    >>> strategy = fl.strategies.Pipeline(
    ...     fl.strategies.ClearToolResults(fl.KeepTurns(2), exclude=["todo"], min_gain_tokens=5_000),
    ...     fl.strategies.Summarize(keep=fl.KeepTokens(20_000)),
    ... )
"""

from __future__ import annotations

from foldline.strategies.base import BaseStrategy, Deadline, Strategy, StrategyRequest, StrategyResult
from foldline.strategies.clear import ClearToolResults, prune_tool_results
from foldline.strategies.function import FromFunction, as_strategy
from foldline.strategies.media import ClearMedia
from foldline.strategies.model_fold import ModelFold
from foldline.strategies.noop import NoOp
from foldline.strategies.pipeline import Pipeline
from foldline.strategies.shaped import Shape, Shaped, message_of
from foldline.strategies.summarize import TURN_HEADING, Summarize
from foldline.strategies.truncate import TruncateOldest
from foldline.strategies.window import SlidingWindow

__all__ = [
    "TURN_HEADING",
    "BaseStrategy",
    "ClearMedia",
    "ClearToolResults",
    "Deadline",
    "FromFunction",
    "ModelFold",
    "NoOp",
    "Pipeline",
    "Shape",
    "Shaped",
    "SlidingWindow",
    "Strategy",
    "StrategyRequest",
    "StrategyResult",
    "Summarize",
    "TruncateOldest",
    "as_strategy",
    "message_of",
    "prune_tool_results",
]
