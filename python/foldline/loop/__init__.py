"""The agent loop: calls a model and its tools, and compacts when due."""

from foldline.loop.loop import AgentLoop, LoopResult, Termination
from foldline.loop.steps import Response, StepHooks

__all__ = ["AgentLoop", "LoopResult", "Response", "StepHooks", "Termination"]
