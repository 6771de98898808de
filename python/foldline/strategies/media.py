"""Clears old pictures, without a model call."""

from __future__ import annotations

from foldline import _core
from foldline._core import Plan
from foldline._util.checks import token_number
from foldline.planning import KeepMessages
from foldline.strategies.base import DirectStrategy, StrategyRequest, StrategyResult, plan_for
from foldline.typing import Messages

__all__ = ["ClearMedia"]


class ClearMedia(DirectStrategy):
    """Replaces all but the newest pictures by a placeholder text.

    Agents that use a computer fill their window with screenshots, of which only the last ones matter. Pictures in
    messages and in results of tools are cleared in every dialect; messages, calls, results and their order stay. Where
    a list takes no text parts, the placeholder has the form that it takes: a text file in a function response of
    Gemini, logs in the outputs of OpenAI's code interpreter, null for a picture that OpenAI generated.

    Pictures of pinned and open groups stay, and so do those whose place takes nothing else: the screenshot of OpenAI's
    `computer_call_output`, which is a picture by its type and whose call would be rejected without it, and what is in
    results of Anthropic's server tools, which go back unchanged. Fold or trim old calls of a computer instead.

    Args:
        keep_newest: Number of newest pictures that stay, of all in the list.

    Raises:
        ConfigError: The number is negative or not whole.

    Examples:
        >>> import foldline as fl
        >>> picture = {"type": "image_url", "image_url": {"url": "https://example.com/screen.png"}}
        >>> messages = [{"role": "user", "content": [picture]} for _ in range(5)]
        >>> outcome = ClearMedia(keep_newest=3).run(messages, fl.strategies.StrategyRequest())
        >>> outcome.messages[0]["content"], outcome.edited
        ([{'type': 'text', 'text': '[cleared]'}], (0, 1))
    """

    def __init__(self, keep_newest: int = 3) -> None:
        self.keep_newest = token_number(keep_newest, "keep_newest")

    def __repr__(self) -> str:
        return f"ClearMedia(keep_newest={self.keep_newest})"

    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Clears old pictures."""
        as_it_is = plan_for(request.prepare(messages), KeepMessages(len(messages)), request)
        if not isinstance(as_it_is, Plan):
            return StrategyResult.unchanged(messages, as_it_is)
        pictures = [(i, place) for i, count in enumerate(_core.pictures(messages)) for place in range(count)]
        cleared: dict[int, list[int]] = {}
        for i, place in pictures[: max(0, len(pictures) - self.keep_newest)]:
            if as_it_is.reasons[i] == "nothing_to_fold":
                cleared.setdefault(i, []).append(place)
        if not cleared:
            return StrategyResult.unchanged(messages, as_it_is)
        new = list(messages)
        for i, places in cleared.items():
            new[i] = _core.without_pictures(messages[i], as_it_is.format, places)
        sources = tuple(range(len(messages)))
        return StrategyResult(new, sources, as_it_is, edited=tuple(cleared), steps=(self.name,))
