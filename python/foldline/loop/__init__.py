"""The agent loop: a model's steps, with compaction where it is due."""

from foldline.loop.loop import AgentLoop, LoopResult, Termination
from foldline.loop.steps import Response, StepHooks

__all__ = ["AgentLoop", "LoopResult", "Response", "StepHooks", "Termination"]
