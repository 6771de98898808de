"""Plans for many transcripts in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from foldline import _core
from foldline._core import Plan, TokenCounter
from foldline.counting.counters import as_counter
from foldline.planning.keeps import Keep
from foldline.planning.plan import Infeasible, plan_options
from foldline.typing import ArrowArray, ArrowStream, FormatOption, Thinking

__all__ = ["BatchPlans", "plan_batch"]


class BatchPlans:
    """Plans of many transcripts: arrays of their values, and each plan as an object.

    ``plans[i]`` is the result of `foldline.plan` for transcript ``i``: a `Plan` or an `Infeasible`, or ``None`` after
    an error. Iteration yields them in order. All arrays are read-only.

    Attributes:
        cuts: The cut of each plan; int64 of shape (transcripts,); -1 without a plan.
        heads: Number of leading messages that always stay; the same shape and type.
        tokens_before: Tokens of each request before folding, overhead included; the same.
        tokens_kept: Tokens of the kept messages, without overhead and summary; the same.
        tokens_after: Kept tokens, overhead, and if messages are folded the room for the summary; the same.
        floors: The fewest tokens that `FitTokens` could reach, also for infeasible budgets; the same.
        feasible: Whether a plan exists; bool of shape (transcripts,).
        actions: The action for every message: 0 keep, 1 pin, 2 clear, 3 shorten, 4 summarize, 5 drop (`ACTIONS` has
            their names); uint8 of shape (messages,). Those of transcript i are ``actions[offsets[i]:offsets[i + 1]]``.
        offsets: int64 of shape (transcripts + 1,).
        lines: The line of each transcript, from 1; int64 of shape (transcripts,); ``None`` if the input had no lines.
        errors: With ``errors="null"``, the errors: `FoldlineError` with ``transcript`` and ``line``.
    """

    __slots__ = ("_core",)

    #: The names of the codes in ``actions``.
    ACTIONS = ("keep", "pin", "clear", "shorten", "summarize", "drop")

    def __init__(self, core: _core.BatchPlans) -> None:
        self._core = core

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._core, name)

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, index: int) -> Plan | Infeasible | None:
        count = len(self)
        place = index + count if index < 0 else index
        if not 0 <= place < count:
            raise IndexError("no such transcript")
        answer = self._core.plan_of(place)
        return Infeasible(*answer) if isinstance(answer, tuple) else answer

    def __iter__(self) -> Iterator[Plan | Infeasible | None]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        feasible, messages = int(self._core.feasible.sum()), len(self._core.actions)
        return f"BatchPlans(transcripts={len(self)}, feasible={feasible}, messages={messages})"


def plan_batch(
    transcripts: Iterable[Any] | bytes | bytearray | memoryview | ArrowArray | ArrowStream,
    keep: Keep | None = None,
    *,
    counter: TokenCounter | str | Callable[[str], int] | None = None,
    context_window: int | None = None,
    reserve_tokens: int = 0,
    summary_tokens: int = 0,
    min_gain_tokens: int = 0,
    thinking: Thinking = "keep",
    format: FormatOption = "auto",
    threads: int | None = 1,
    errors: Literal["raise", "null"] = "raise",
) -> BatchPlans:
    """Plans many transcripts, each as `plan`.

    Args:
        transcripts: An iterable of lists of messages (or of objects that contain one: a dict with ``messages``, a
            `StoredTranscript`, the bytes of a JSON array); JSON Lines as ``bytes``, ``memoryview`` or ``mmap``, each
            line a list of messages or an object that contains one; or a column of such lists as JSON text, through the
            Arrow C interface.
        keep: As for `plan`.
        counter: As for `plan`. A Python function is called only in this thread.
        context_window: As for `plan`.
        reserve_tokens: As for `plan`.
        summary_tokens: As for `plan`.
        min_gain_tokens: As for `plan`.
        thinking: As for `plan`.
        format: The dialect of all transcripts, or ``"auto"`` to detect each by its content.
        threads: Number of threads, 1 to 1024; ``None`` for one per processor. JSON is read, counted and planned
            without the GIL; Python messages are read with it.
        errors: ``"raise"`` stops at the first error, which names its transcript or line; with ``"null"`` a failed
            transcript has no plan, and its error is in ``errors`` of the result.

    Raises:
        ConfigError: An option is out of range; ``path`` names it.
        MessageError: A transcript cannot be read; ``transcript`` gives its index.
        LimitExceeded: A message is nested beyond 128 levels, or too large.

    Complexity: O(bytes / threads).

    Examples:
        >>> import foldline as fl
        >>> talk = [{"role": "user", "content": "word " * 40} for _ in range(4)]
        >>> plans = fl.plan_batch([talk, talk[:1]], fl.KeepMessages(1), counter="chars/4")
        >>> plans.cuts.tolist(), plans[0] == fl.plan(talk, fl.KeepMessages(1), counter="chars/4")
        ([3, 0], True)
    """
    options = plan_options(
        (),
        keep,
        context_window=context_window,
        reserve_tokens=reserve_tokens,
        summary_tokens=summary_tokens,
        min_gain_tokens=min_gain_tokens,
        thinking=thinking,
    )
    core = _core.plan_batch(transcripts, as_counter(counter), options, format=format, threads=threads, errors=errors)
    return BatchPlans(core)
