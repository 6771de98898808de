"""A small agent loop: model, tools and compactor. Short enough to copy."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from foldline._core import not_a_list
from foldline._util.checks import token_number
from foldline._util.threads import in_thread
from foldline.compactor import CompactionResult, Compactor
from foldline.context.metadata import Metadata
from foldline.context.state import ContextState, Stats
from foldline.errors import CompactionError, ConfigError, FoldlineError
from foldline.loop._truncated import discard_truncated_calls
from foldline.loop.steps import Response, Session
from foldline.planning import analyze
from foldline.triggers import is_max_tokens_stop, overflow_kind
from foldline.typing import Messages

__all__ = ["AgentLoop", "LoopResult", "Response", "Termination"]

#: Why a run ended: the model finished; the limit on iterations; a truncated answer that compacting could not help; it
#: was cancelled; a compaction failed under the strict policy; the model, a tool or a hook raised.
Termination: TypeAlias = Literal["completed", "max_iterations", "max_tokens", "cancelled", "compaction_failed", "error"]


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The end of a run.

    Attributes:
        reason: Why it ended.
        messages: The context at the end.
        iterations: Iterations started.
        stats: Counters and gauges of the run.
        error: The failure: with ``compaction_failed`` a `CompactionError` that names the iteration.
        response: The model's last answer.
        compactions: Results of the compactor that changed something or failed.
        metadata: Metadata of the messages.
    """

    reason: Termination
    messages: list[Any]
    iterations: int
    stats: Stats
    error: BaseException | None = None
    response: Response | None = None
    compactions: tuple[CompactionResult, ...] = ()
    metadata: Metadata | None = None

    def raise_for_error(self) -> LoopResult:
        """Raises the failure, if any; else returns the result itself."""
        if self.error is not None:
            raise self.error
        return self


@dataclass(frozen=True, slots=True)
class _Call:
    """A function to call while the loop runs, with and without an event loop."""

    function: Callable[[], Any]
    asynchronous: Callable[[], Awaitable[Any]] | None = None


_Steps: TypeAlias = Generator[_Call, Any, LoopResult]


class AgentLoop:
    """Calls a model and its tools until the model finishes; compacts on the way.

    Before every iteration but the first it checks for cancellation and whether to compact. A truncated answer loses its
    truncated calls; then the run continues if compacting helps, else it ends with ``max_tokens``. A request that was
    too long is sent once more after a compaction.

    Args:
        model: Gets the messages, returns a `Response`. May be asynchronous, like all of these functions.
        tools: Gets the messages of an answer that calls tools, returns messages with the results. Default: such an
            answer ends the run.
        compactor: The compactor. If its store keeps messages, the session continues from the store.
        max_iterations: The most iterations.
        compact_first: Whether to check before the first iteration too, as for a resumed session.
        before_iteration: Called when an iteration begins, with its number from 1 and the state.
        prepare_step: Called with the messages before they are sent; its return value, if any, is sent instead.
        on_step_finish: Called with the messages that an iteration added.

    Raises:
        ConfigError: An option is out of range.

    Examples:
        >>> import foldline as fl
        >>> def model(messages):
        ...     return fl.loop.Response({"role": "assistant", "content": "Done."}, usage=12, stop_reason="stop")
        >>> loop = fl.loop.AgentLoop(
        ...     model,
        ...     compactor=fl.presets.reserve(context_window=8_000, keep_recent_tokens=2_000, reserve_tokens=1_000),
        ... )
        >>> result = loop.run([{"role": "user", "content": "Rename the module."}])
        >>> result.reason, result.iterations, result.messages[-1]["content"]
        ('completed', 1, 'Done.')
    """

    def __init__(
        self,
        model: Callable[[list[Any]], Response | Awaitable[Response]],
        *,
        tools: Callable[[list[Any]], Messages | Awaitable[Messages]] | None = None,
        compactor: Compactor,
        max_iterations: int = 50,
        compact_first: bool = False,
        before_iteration: Callable[[int, ContextState], Any] | None = None,
        prepare_step: Callable[[list[Any]], Any] | None = None,
        on_step_finish: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        given: dict[str, object] = {
            "model": model,
            "tools": tools,
            "before_iteration": before_iteration,
            "prepare_step": prepare_step,
            "on_step_finish": on_step_finish,
        }
        for name, function in given.items():
            if not callable(function) and (function is not None or name == "model"):
                raise ConfigError("must be a function", code="bad_function", path=name)
        if not isinstance(compactor, Compactor):
            raise ConfigError("must be a Compactor", code="bad_compactor", path="compactor")
        self.model, self.tools, self.compactor = model, tools, compactor
        self.max_iterations = token_number(max_iterations, "max_iterations")
        self.compact_first = bool(compact_first)
        self.before_iteration, self.prepare_step, self.on_step_finish = before_iteration, prepare_step, on_step_finish

    def run(
        self,
        messages: Messages,
        *,
        stats: Stats | None = None,
        metadata: Metadata | None = None,
        cancel: threading.Event | None = None,
    ) -> LoopResult:
        """Runs until the model finishes or the run ends otherwise.

        Args:
            messages: The prompt. Not changed. Appended to the messages of the store, if it keeps messages.
            stats: Counters and gauges; for a nested run ``parent.child()``.
            metadata: Metadata of the messages.
            cancel: When set, ends the run before the next iteration, and a compaction at once.

        Returns:
            The end of the run. Exceptions of the model, a tool or a hook are in ``error``.

        Raises:
            MessageError: The messages are not a list.
        """
        steps = self._steps(messages, stats, metadata, cancel)
        try:
            call = next(steps)
            while True:
                try:
                    value = call.function()
                    if inspect.isawaitable(value):
                        if inspect.iscoroutine(value):
                            value.close()
                        raise ConfigError("a function is asynchronous; use arun", code="asynchronous", path="run")
                except Exception as error:  # noqa: BLE001 - the loop decides
                    call = steps.throw(error)
                else:
                    call = steps.send(value)
        except StopIteration as end:
            result: LoopResult = end.value
            return result
        finally:
            steps.close()

    async def arun(
        self,
        messages: Messages,
        *,
        stats: Stats | None = None,
        metadata: Metadata | None = None,
        cancel: threading.Event | None = None,
    ) -> LoopResult:
        """`run` without blocking the event loop: functions that are not asynchronous run in threads."""
        steps = self._steps(messages, stats, metadata, cancel)
        try:
            call = next(steps)
            while True:
                try:
                    value = await (call.asynchronous() if call.asynchronous else _awaited(call.function))
                except Exception as error:  # noqa: BLE001 - the loop decides
                    call = steps.throw(error)
                else:
                    call = steps.send(value)
        except StopIteration as end:
            result: LoopResult = end.value
            return result
        finally:
            steps.close()

    # --- The loop -------------------------------------------------------------------------------------

    def _steps(
        self, messages: Messages, stats: Stats | None, metadata: Metadata | None, cancel: threading.Event | None
    ) -> _Steps:
        """The loop itself; yields the functions to call."""
        if not isinstance(messages, (list, tuple)):
            raise not_a_list(messages)
        session = Session(self.compactor, Stats() if stats is None else stats)
        session.metadata = Metadata() if metadata is None else metadata.copy()
        run = _Run(session, cancel)
        try:
            session.load()
            session.add(messages)
            while True:
                if run.is_cancelled():
                    return run.ended("cancelled")
                if session.iteration >= self.max_iterations:
                    return run.ended("max_iterations")
                if session.iteration or self.compact_first:
                    yield from self._compacted(run)
                    if run.is_cancelled():
                        return run.ended("cancelled")
                session.begin()
                reason = yield from self._iteration(run)
                if reason is not None:
                    return run.ended(reason)
        except _CompactionFailed as failure:
            error = CompactionError(f"compaction (iteration {session.iteration}): {failure.error}")
            error.__cause__ = failure.error
            return run.ended("cancelled" if run.is_cancelled() else "compaction_failed", error)
        except Exception as error:  # noqa: BLE001 - from any called function; the messages so far must not be lost
            return run.ended("error", error)

    def _iteration(self, run: _Run) -> Generator[_Call, Any, Termination | None]:
        """One answer and its tool calls; why the run ends, or None."""
        session = run.session
        if self.before_iteration is not None:
            yield _Call(partial(self.before_iteration, session.iteration, session.state()))
        response = yield from self._asked(run)
        run.response = response
        begun = len(session.messages)
        session.took(response)
        cut_off = is_max_tokens_stop(response.stop_reason)
        answer: Messages = response.listed
        if cut_off:
            answer = discard_truncated_calls(answer, format=session.format)
        # The reported usage includes discarded calls: then everything is counted again.
        session.answered(answer, response.usage if list(answer) == list(response.listed) else None)
        calls = bool(answer) and bool(analyze(answer, format=session.format).open_calls)
        if calls and self.tools is not None:
            session.add((yield _Call(partial(self.tools, list(answer)))))
        if self.on_step_finish is not None:
            yield _Call(partial(self.on_step_finish, session.messages[begun:]))
        if cut_off:
            return None if (yield from self._compacted(run)) else "max_tokens"
        return None if calls and self.tools is not None else "completed"

    def _asked(self, run: _Run) -> Generator[_Call, Any, Response]:
        """The model's answer; a request that was too long is sent once more after a compaction."""
        session = run.session
        for is_last in (False, True):
            sent: Messages = session.messages
            if self.prepare_step is not None:
                sent = (yield _Call(partial(self.prepare_step, list(sent)))) or sent
            try:
                response = yield _Call(partial(self.model, list(sent)))
            except Exception as error:
                session.error = error
                if is_last or overflow_kind(error) is None or not (yield from self._compacted(run)):
                    raise
                continue
            if not isinstance(response, Response):
                raise ConfigError("the model returned no Response", code="bad_response", path="model")
            return response
        raise AssertionError  # the second pass raises or returns

    def _compacted(self, run: _Run) -> Generator[_Call, Any, bool]:
        """Runs the compactor; whether it compacted."""
        session, compactor = run.session, self.compactor
        asked = session.asked(cancel=run.cancel)
        try:
            result = yield _Call(
                lambda: compactor.compact(session.messages, **asked),
                lambda: compactor.acompact(session.messages, **asked),
            )
        except FoldlineError as error:
            raise _CompactionFailed(error) from error
        return session.take(result)


class _CompactionFailed(Exception):
    """The error of a compaction under the strict policy."""

    def __init__(self, error: FoldlineError) -> None:
        super().__init__(error.code)
        self.error = error


class _Run:
    """A running loop."""

    def __init__(self, session: Session, cancel: threading.Event | None) -> None:
        self.session = session
        self.cancel = cancel
        self.response: Response | None = None

    def is_cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()

    def ended(self, reason: Termination, error: BaseException | None = None) -> LoopResult:
        session = self.session
        return LoopResult(
            reason,
            list(session.messages),
            session.iteration,
            session.stats,
            None if reason == "cancelled" else error,
            self.response,
            tuple(session.compactions),
            session.metadata,
        )


async def _awaited(function: Callable[[], Any]) -> Any:
    """The function's result: called in a thread, and awaited if it returns an awaitable."""
    value = await in_thread(function)
    return await value if inspect.isawaitable(value) else value
