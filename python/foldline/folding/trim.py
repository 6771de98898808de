"""Trims in one call: drops, clears and shortens until the messages fit, without a summary."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from foldline import _core
from foldline._core import LiveSnapshot, LiveTranscript, Plan, TokenCounter
from foldline._util.checks import token_number
from foldline._util.lists import same
from foldline.counting.counters import as_counter
from foldline.folding.result import FoldInput, FoldResult, edited_by, fold_result, warn_unfit
from foldline.planning import FitTokens
from foldline.planning.opening import checked_system, opened
from foldline.planning.plan import Pins, answered, plan_options
from foldline.typing import FormatOption, Messages

__all__ = ["trim"]


def trim(
    messages: Messages | bytes | LiveTranscript | LiveSnapshot,
    max_tokens: int,
    *,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
    pins: Pins = (),
    keep_newest_user: bool = True,
    start_on_user: bool = False,
    whole_turns: bool = False,
    clear: bool = True,
    shorten: bool = True,
    tools: Messages | None = None,
    system: str | Messages | None = None,
    format: FormatOption = "auto",
) -> FoldResult:
    """Drops the oldest messages until the request has at most ``max_tokens`` tokens. Writes no summary and no note.

    Calls stay with their results, and pins, open calls and leading instructions stay. The fewest messages are dropped
    that fit. If that takes more than everything before the newest group (a call with its results, or a single message),
    results are cleared, then those of the newest group shortened; if that does not fit either, the newest group is
    dropped too. The list that is returned is valid for its provider if the input was: for Anthropic and Gemini it
    begins with a user message, and fillers between turns of Gemini's model are counted. The input is never changed.

    Args:
        messages: As for `compact`. A `Transcript` is not read or counted again.
        max_tokens: The most tokens of the request, tools and system prompt included.
        counter: As for `plan`. Default for a `Transcript`: its own.
        pins: As for `plan`.
        keep_newest_user: Whether the newest user message stays with its group wherever that fits.
        start_on_user: Whether the first message after head and pins must be the user's, not a tool result.
        whole_turns: Whether only whole turns are dropped.
        clear: Whether results before the newest group may be replaced by a placeholder.
        shorten: Whether results of the newest group may be shortened.
        tools: As for `plan`.
        system: As for `plan`.
        format: As for `plan`.

    Returns:
        ``"folded"`` with the new list; ``"unchanged"``, reason ``"fits"``; or ``"infeasible"``, with the unchanged
        messages, the ``floor`` (the fewest tokens that these options reach) and a `FoldlineWarning`.

    Raises:
        ConfigError: An option is out of range.
        MessageError: A message cannot be read.
        LimitExceeded: A message is nested beyond 128 levels, or too large.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}. " + "Do it well. " * 40} for i in range(9)]
        >>> result = fl.trim(messages, 300, counter="chars/4")
        >>> result.outcome, result.dropped, len(result.messages), result.fits
        ('folded', (0, 1, 2, 3, 4, 5, 6), 2, True)
    """
    started_s = time.perf_counter()
    most = token_number(max_tokens, "max_tokens")
    given, counted = opened(messages)
    unchanged = same(given)
    options = plan_options(given, FitTokens(most), pins=pins)
    fold = _core.begin_trim(
        counted,
        None if counted is not given and counter is None else as_counter(counter),
        options,
        keep_newest_user=bool(keep_newest_user),
        start_on_user=bool(start_on_user),
        whole_turns=bool(whole_turns),
        clear=bool(clear),
        shorten=bool(shorten),
        tools=tools,
        system=checked_system(system),
        format=format,
    )
    planned = answered(fold.plan)
    known = FoldInput(unchanged, fold.counter, options.keep, format, tools, system)

    def result(*what: Any, **more: Any) -> FoldResult:
        trimmed = fold_result(fold, planned, most, started_s, *what, given=known, **more)
        warn_unfit(trimmed, stacklevel=3)
        return trimmed

    if not isinstance(planned, Plan):
        return result("infeasible", "over_floor", unchanged, fold.tokens_before)
    if not planned:
        return result("unchanged", "fits", unchanged, fold.tokens_before)
    done = fold.finish()
    return result(
        "folded",
        "requested",
        done.messages,
        done.tokens,
        sources=tuple(done.sources),
        dropped=tuple(planned.folded),
        edited=edited_by(planned),
    )
