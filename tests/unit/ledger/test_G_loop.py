"""G4, G5, G9, B2, T11: the loop around a model, its tools and a compactor; and the hooks for other loops."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import foldline as fl
from foldline.context.state import COMPACTIONS, ITERATIONS, SCRATCHPAD
from foldline.errors import CompactionError, ConfigError, FoldlineWarning, StoreError, SummaryError
from foldline.loop._truncated import discard_truncated_calls
from foldline.loop.steps import LAST_ITERATION
from foldline.strategies import SlidingWindow, Summarize
from foldline.testing import FakeStrategy, FakeSummarizer, FakeTrigger
from foldline.triggers import MessageCount, Never, Overflow, StatThreshold, Utilization
from unit.samples import WORDS, anthropic_call, assistant, openai_call, openai_result, talk, user

TOTAL = LAST_ITERATION[2]


class Scripted:
    """A model with scripted answers that records its requests."""

    def __init__(self, *answers: fl.loop.Response | BaseException) -> None:
        self.answers = list(answers)
        self.sent: list[list[Any]] = []

    def __call__(self, messages: list[Any]) -> fl.loop.Response:
        self.sent.append(messages)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def working(rounds: int, **more: Any) -> Scripted:
    """A model that calls a tool `rounds` times and then finishes."""
    calls = [fl.loop.Response(openai_call(f"c{i}"), stop_reason="tool_calls", **more) for i in range(rounds)]
    return Scripted(*calls, fl.loop.Response(assistant("Done."), stop_reason="stop", **more))


def results(answer: list[Any], size: int = 800) -> list[Any]:
    """Tool results of 200 tokens by `chars/4` each."""
    return [openai_result(call["id"], "r" * size) for message in answer for call in message.get("tool_calls", ())]


def small_results(answer: list[Any]) -> list[Any]:
    """Tool results of 75 tokens each."""
    return results(answer, 300)


def compactor(trigger: Any = None, strategy: Any = None, **options: Any) -> fl.Compactor:
    strategy = FakeStrategy(lambda messages, _: [messages[0], *messages[-2:]]) if strategy is None else strategy
    return fl.Compactor(Never() if trigger is None else trigger, strategy, **({"counter": "chars/4"} | options))


def on_a_loop(loop: fl.loop.AgentLoop, messages: Any, **more: Any) -> fl.loop.LoopResult:
    return asyncio.run(loop.arun(messages, **more))


def at_once(loop: fl.loop.AgentLoop, messages: Any, **more: Any) -> fl.loop.LoopResult:
    return loop.run(messages, **more)


BOTH = pytest.mark.parametrize("run", [at_once, on_a_loop])
Run = Callable[..., fl.loop.LoopResult]


# --- G5: the eight cases of section 2.10, in their order ----------------------------------------------------


@BOTH
def test_G5_without_a_trigger_the_run_is_not_changed(run: Run) -> None:
    model = working(2)
    messages = [user("task")]
    result = run(fl.loop.AgentLoop(model, tools=results, compactor=compactor()), messages)
    assert (result.reason, result.iterations, result.stats.counter(COMPACTIONS)) == ("completed", 3, 0)
    assert messages == [user("task")]
    assert [len(sent) for sent in model.sent] == [1, 3, 5]
    assert result.messages[-1] == assistant("Done.")
    assert result.compactions == ()


@BOTH
def test_G5_a_trigger_that_never_fires_is_checked_before_every_iteration_after_the_first(run: Run) -> None:
    trigger = FakeTrigger(False, False)
    result = run(fl.loop.AgentLoop(working(2), tools=results, compactor=compactor(trigger)), [user("task")])
    assert (result.reason, result.stats.counter(COMPACTIONS)) == ("completed", 0)
    assert [state.iteration for state in trigger.asked] == [1, 2]


@BOTH
def test_G5_a_trigger_that_fires_compacts(run: Run) -> None:
    trigger, model = FakeTrigger(False, True), working(2)
    result = run(fl.loop.AgentLoop(model, tools=results, compactor=compactor(trigger)), [user("task")])
    assert (result.reason, result.stats.counter(COMPACTIONS)) == ("completed", 1)
    assert [len(sent) for sent in model.sent] == [1, 3, 3]
    assert [each.event.length_after for each in result.compactions if each.event] == [3]


@BOTH
def test_G5_a_trigger_may_fire_repeatedly(run: Run) -> None:
    trigger = FakeTrigger(False, True, True, True)
    result = run(fl.loop.AgentLoop(working(4), tools=results, compactor=compactor(trigger)), [user("task")])
    assert result.stats.counter(COMPACTIONS) == len(result.compactions) == 3
    assert [each.event.round for each in result.compactions if each.event] == [1, 2, 3]


@BOTH
@pytest.mark.parametrize(("fires", "iteration"), [((False, True), 2), ((True,), 1)])
def test_G4_a_failure_under_the_strict_policy_ends_the_run_and_names_the_iteration(
    run: Run, fires: Any, iteration: int
) -> None:
    failing = compactor(FakeTrigger(*fires), FakeStrategy(error=SummaryError("no", code="no")), on_failure="raise")
    model = working(5)
    result = run(fl.loop.AgentLoop(model, tools=results, compactor=failing), [user("task")])
    assert (result.reason, result.iterations) == ("compaction_failed", iteration)
    assert isinstance(result.error, CompactionError)
    assert result.error.code == "compaction_failed"
    assert str(result.error) == f"compaction_failed: compaction (iteration {iteration}): no: no"
    assert isinstance(result.error.__cause__, SummaryError)
    assert len(model.sent) == iteration
    assert len(result.messages) == 1 + 2 * iteration
    with pytest.raises(CompactionError):
        result.raise_for_error()


@BOTH
def test_G5_under_the_other_policies_the_run_continues(run: Run) -> None:
    failing = compactor(FakeTrigger(True, False), FakeStrategy(error=SummaryError("no", code="no")))
    with pytest.warns(FoldlineWarning, match="unchanged"):
        result = run(fl.loop.AgentLoop(working(2), tools=results, compactor=failing), [user("task")])
    assert (result.reason, result.error, len(result.messages)) == ("completed", None, 6)
    assert [each.outcome for each in result.compactions] == ["failed"]
    assert result.raise_for_error() is result


@BOTH
def test_G5_gauges_of_an_iteration_reach_the_trigger_and_are_cleared_before_the_next(run: Run) -> None:
    seen: list[Any] = []
    begun: list[Any] = []

    class Looks(FakeTrigger):
        def should_compact(self, state: fl.ContextState) -> bool:
            seen.append((state.iteration, state.stats.gauge(TOTAL), state.stats.gauge(LAST_ITERATION[0])))
            return super().should_compact(state)

    def before(number: int, state: fl.ContextState) -> None:
        begun.append((number, state.stats.gauge(TOTAL)))

    usage = {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77}
    each = compactor(Looks(False, False))
    run(fl.loop.AgentLoop(working(2, usage=usage), tools=results, compactor=each, before_iteration=before), [user("t")])
    assert seen == [(1, 77, 70), (2, 77, 70)]
    assert begun == [(1, None), (2, None), (3, None)]


@BOTH
def test_G5_compaction_precedes_the_iteration(run: Run) -> None:
    order: list[str] = []
    each = compactor(FakeTrigger(True, False))
    each.subscribe(lambda event: order.append(type(event).__name__))
    loop = fl.loop.AgentLoop(
        working(2),
        tools=results,
        compactor=each,
        before_iteration=lambda number, state: order.append(f"begin {number}"),
    )
    run(loop, [user("a"), user("b"), user("c")])
    events = ["PreCompact", "CompactionEvent", "SessionStart", "CompactBoundary"]
    assert order == ["begin 1", *events, "begin 2", "begin 3"]


@BOTH
def test_G5_the_trigger_is_notified_after_a_success(run: Run) -> None:
    trigger = StatThreshold().on_counter(ITERATIONS, 2)
    result = run(fl.loop.AgentLoop(working(6), tools=results, compactor=compactor(trigger)), [user("task")])
    assert result.iterations == 7
    assert result.stats.counter(COMPACTIONS) == 3  # before iterations 3, 5 and 7


@BOTH
def test_G5_never_before_the_first_iteration_unless_configured(run: Run) -> None:
    for first, fires, count in ((False, (), 0), (True, (True,), 1)):
        trigger = FakeTrigger(*fires)
        loop = fl.loop.AgentLoop(working(0), compactor=compactor(trigger), compact_first=first)
        assert run(loop, talk(8)).stats.counter(COMPACTIONS) == count
        assert [state.iteration for state in trigger.asked] == [0] * count


@BOTH
def test_G5_cancellation_precedes_compaction(run: Run) -> None:
    cancel, trigger = threading.Event(), FakeTrigger()

    def tools(answer: list[Any]) -> list[Any]:
        cancel.set()
        return results(answer)

    result = run(
        fl.loop.AgentLoop(working(3), tools=tools, compactor=compactor(trigger)), [user("task")], cancel=cancel
    )
    assert (result.reason, result.iterations, trigger.asked) == ("cancelled", 1, [])
    assert len(result.messages) == 3


@BOTH
@pytest.mark.parametrize("policy", ["unchanged", "raise"])
def test_G5_a_compaction_is_cancelled_with_its_run(run: Run, policy: Any) -> None:
    cancel = threading.Event()

    class Cancelling:
        def summarize(self, request: Any) -> Any:
            cancel.set()
            return fl.summarizers.Completion("Late.")

    each = compactor(FakeTrigger(True), Summarize(Cancelling(), keep_recent=0), on_failure=policy)
    result = run(fl.loop.AgentLoop(working(3), tools=results, compactor=each), talk(9), cancel=cancel)
    assert (result.reason, result.error, len(result.messages)) == ("cancelled", None, 11)


@BOTH
def test_G5_the_number_of_iterations_is_limited(run: Run) -> None:
    trigger = FakeTrigger(False)
    result = run(
        fl.loop.AgentLoop(working(9), tools=results, compactor=compactor(trigger), max_iterations=2), [user("t")]
    )
    assert (result.reason, result.iterations, len(trigger.asked)) == ("max_iterations", 2, 1)


@BOTH
def test_G5_the_scratchpad_length_is_a_gauge_in_groups_after_the_head(run: Run) -> None:
    lengths: list[float | None] = []

    class Looks(FakeTrigger):
        def should_compact(self, state: fl.ContextState) -> bool:
            lengths.append(state.stats.gauge(SCRATCHPAD))
            return super().should_compact(state)

    each = compactor(Looks(False, True, False), SlidingWindow(1))
    run(fl.loop.AgentLoop(working(3), tools=results, compactor=each), [{"role": "system", "content": "s"}, user("t")])
    assert lengths == [2, 3, 2]  # the task, and a call with its result; one more; those in the window, and one more


@BOTH
def test_G9_compactions_and_tokens_of_nested_runs_add_up_to_the_parent(run: Run) -> None:
    stats = fl.Stats()
    nested = fl.loop.AgentLoop(
        working(2, usage={"input_tokens": 50, "output_tokens": 5}, model="small"),
        tools=results,
        compactor=compactor(FakeTrigger(False, True)),
    )

    def tools(answer: list[Any]) -> list[Any]:
        assert nested.run([user("sub-task")], stats=stats.child()).reason == "completed"
        return results(answer)

    outer = compactor(FakeTrigger(True))
    result = run(
        fl.loop.AgentLoop(working(1), tools=tools, compactor=outer), [user("a"), user("b"), user("c")], stats=stats
    )
    assert result.stats is stats
    assert stats.counter(COMPACTIONS) == 2
    assert stats.counter("input_tokens:small") == 150
    assert stats.counter(ITERATIONS) == 2  # the parent's own


@BOTH
def test_G9_the_usage_of_a_summary_is_counted_with_the_run(run: Run) -> None:
    answer = fl.summarizers.Completion("So far.", model="haiku", input_tokens=900, output_tokens=30)
    each = compactor(FakeTrigger(True, False), Summarize(FakeSummarizer(answer), keep_recent=1))
    result = run(fl.loop.AgentLoop(working(2), tools=results, compactor=each), talk(9))
    assert result.stats.counter("input_tokens:haiku") == 900
    assert result.stats.counter("output_tokens") == 30


# --- B2: the reactive path ---------------------------------------------------------------------------------

LENGTH = "length"


def budgeted(summarizer: Any = None, **more: Any) -> fl.Compactor:
    return fl.presets.budgeted(summarizer or (lambda _: "So far."), 1_000, max_output_tokens=0, **more)


@BOTH
@pytest.mark.parametrize(("used", "reason"), [(949, "max_tokens"), (950, "completed")])
def test_B2_a_truncated_answer_compacts_from_ninety_five_percent(run: Run, used: int, reason: str) -> None:
    """By the reported usage; below that, compacting would not help and the run ends."""
    model = Scripted(
        fl.loop.Response(assistant("I was ab"), LENGTH, used), fl.loop.Response(assistant("Done."), "stop")
    )
    result = run(fl.loop.AgentLoop(model, compactor=budgeted()), talk(9))
    assert result.reason == reason
    assert [each.reason for each in result.compactions] == (["max_tokens_stop"] if reason == "completed" else [])
    assert (assistant("I was ab") in result.messages) is True


@BOTH
def test_B2_proactive_above_eighty_percent_before_the_next_request(run: Run) -> None:
    for used, count in ((600, 0), (601, 1)):  # with the tool result (200 and 4 tokens, less rounding) 804 | 805
        model = working(1)
        model.answers[0] = fl.loop.Response(openai_call("c0"), "tool_calls", used - 4)
        result = run(fl.loop.AgentLoop(model, tools=results, compactor=budgeted()), talk(9))
        assert (result.reason, result.stats.counter(COMPACTIONS)) == ("completed", count)


@BOTH
def test_B2_truncated_calls_are_discarded_first(run: Run) -> None:
    """A complete call is answered, so that the history stays valid; a truncated one is removed."""
    whole = openai_call("a")["tool_calls"][0]
    cut = openai_call("b", '{"path": "src/ma')["tool_calls"][0]
    given: list[Any] = []

    def tools(answer: list[Any]) -> list[Any]:
        given.extend(answer)
        return results(answer)

    model = Scripted(
        fl.loop.Response(assistant("Both.", tool_calls=[whole, cut]), LENGTH, 980), fl.loop.Response(assistant("Done."))
    )
    result = run(fl.loop.AgentLoop(model, tools=tools, compactor=budgeted()), talk(15))
    assert given == [assistant("Both.", tool_calls=[whole])]
    assert fl.validate(result.messages, "openai") == []
    assert result.reason == "completed"
    assert "src/ma" not in str(model.sent)


@BOTH
def test_B2_if_compacting_cannot_help_the_run_ends_with_a_result(run: Run) -> None:
    cut = fl.loop.Response(openai_call("a", '{"pa'), LENGTH, 990)
    for each in (budgeted(), compactor()):
        messages = [user("w" * 3_900)]
        result = run(fl.loop.AgentLoop(Scripted(cut), tools=results, compactor=each), messages)
        assert (result.reason, result.error, result.messages) == ("max_tokens", None, messages)


@BOTH
def test_B2_a_failed_summary_does_not_end_the_run(run: Run) -> None:
    def down(_: Any) -> str:
        raise OSError

    model = Scripted(fl.loop.Response(assistant("I was ab"), LENGTH, 960), fl.loop.Response(assistant("Done."), "stop"))
    with pytest.warns(FoldlineWarning, match="truncate"):
        result = run(fl.loop.AgentLoop(model, compactor=budgeted(down)), talk(9))
    assert (result.reason, result.compactions[0].fallback) == ("completed", "truncate")


def gemini_call(name: str = "go", arguments: Any = None) -> Any:
    return {"functionCall": {"name": name, "args": {} if arguments is None else arguments}}


TEXT = {"type": "text", "text": "I look."}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ([openai_call("a", '{"p": 1}')], [openai_call("a", '{"p": 1}')]),
        ([openai_call("a", '{"p": ')], []),
        ([openai_call("a", "[1]")], []),
        ([openai_call("a", '{"p": ', content="I look.")], [assistant("I look.")]),
        ([{"role": "assistant", "content": None, "function_call": {"name": "go", "arguments": "{"}}], []),
        ([anthropic_call("a", {"p": 1})], []),
        ([assistant([TEXT, *anthropic_call("a")["content"]])], [assistant([TEXT])]),
        ([assistant([THINKING, *anthropic_call("a")["content"]])], []),
        ([assistant([*anthropic_call("a")["content"], TEXT])], [assistant([*anthropic_call("a")["content"], TEXT])]),
        ([{"role": "model", "parts": [gemini_call()]}], []),
        ([{"role": "model", "parts": [{"text": "x"}, gemini_call()]}], [{"role": "model", "parts": [{"text": "x"}]}]),
        (
            [
                {"type": "reasoning", "id": "r1", "summary": []},
                {"type": "function_call", "call_id": "a", "name": "go", "arguments": "{}"},
                {"type": "reasoning", "id": "r2", "summary": []},
                {"type": "function_call", "call_id": "b", "name": "go", "arguments": '{"p'},
            ],
            [
                {"type": "reasoning", "id": "r1", "summary": []},
                {"type": "function_call", "call_id": "a", "name": "go", "arguments": "{}"},
            ],
        ),
        ([assistant("I was ab")], [assistant("I was ab")]),
        ([], []),
    ],
)
def test_B2_which_parts_of_a_truncated_answer_are_discarded(answer: Any, left: Any) -> None:
    before = str(answer)
    kept = discard_truncated_calls(answer)
    assert kept == left
    assert str(answer) == before


@BOTH
def test_a_request_that_was_too_long_is_retried_once(run: Run) -> None:
    error = RuntimeError("prompt is too long: 213462 tokens > 200000 maximum")
    model = Scripted(error, fl.loop.Response(assistant("Done.")))
    each = compactor(Overflow(), SlidingWindow(2), context_window=200_000)
    result = run(fl.loop.AgentLoop(model, compactor=each), talk(9))
    assert (result.reason, result.iterations, len(model.sent)) == ("completed", 1, 2)
    assert len(model.sent[1]) < len(model.sent[0])
    again = run(fl.loop.AgentLoop(Scripted(error, error), compactor=each), talk(9))
    assert (again.reason, again.error) == ("error", error)


@BOTH
def test_exceptions_of_models_and_tools_are_in_the_result(run: Run) -> None:
    error = ValueError("no")

    def broken(answer: list[Any]) -> list[Any]:
        raise error

    first = run(fl.loop.AgentLoop(Scripted(error), compactor=compactor()), [user("t")])
    second = run(fl.loop.AgentLoop(working(1), tools=broken, compactor=compactor()), [user("t")])
    assert (first.reason, first.error, len(first.messages)) == ("error", error, 1)
    assert (second.reason, second.error, len(second.messages)) == ("error", error, 2)


def test_functions_may_be_asynchronous() -> None:
    model = working(2)

    async def amodel(messages: list[Any]) -> fl.loop.Response:
        await asyncio.sleep(0)
        return model(messages)

    async def atools(answer: list[Any]) -> list[Any]:
        return results(answer)

    loop = fl.loop.AgentLoop(amodel, tools=atools, compactor=compactor(FakeTrigger(False, True)))
    assert on_a_loop(loop, [user("t")]).reason == "completed"
    result = fl.loop.AgentLoop(amodel, compactor=compactor()).run([user("t")])
    assert isinstance(result.error, ConfigError)


def test_a_cancelled_task_ends_the_run() -> None:
    async def scenario() -> None:
        async def hanging(messages: list[Any]) -> fl.loop.Response:
            await asyncio.sleep(30)
            raise AssertionError

        task = asyncio.ensure_future(fl.loop.AgentLoop(hanging, compactor=compactor()).arun([user("t")]))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"model": None}, "model"),
        ({"tools": 5}, "tools"),
        ({"compactor": None}, "compactor"),
        ({"max_iterations": -1}, "max_iterations"),
        ({"max_iterations": 1.5}, "max_iterations"),
        ({"before_iteration": "x"}, "before_iteration"),
        ({"prepare_step": "x"}, "prepare_step"),
        ({"on_step_finish": "x"}, "on_step_finish"),
    ],
)
def test_a_wrong_option_of_a_loop_is_a_config_error(options: Any, path: str) -> None:
    given = {"model": working(0), "compactor": compactor()} | options
    with pytest.raises(ConfigError) as caught:
        fl.loop.AgentLoop(given.pop("model"), **given)
    assert caught.value.path == path


@pytest.mark.parametrize("options", [{"messages": "text"}, {"messages": [1]}, {"messages": {}, "usage": -1}])
def test_a_wrong_response_is_a_config_error(options: Any) -> None:
    with pytest.raises(ConfigError):
        fl.loop.Response(**options)


# --- T11: prepareStep and onStepFinish ---------------------------------------------------------------------


@BOTH
def test_T11_the_hooks_of_a_step_in_the_loop(run: Run) -> None:
    finished: list[Any] = []
    model = working(1)
    loop = fl.loop.AgentLoop(
        model,
        tools=results,
        compactor=compactor(),
        prepare_step=lambda messages: [*messages, user("Mind the tests.")],
        on_step_finish=finished.append,
    )
    result = run(loop, [user("task")])
    assert [sent[-1] for sent in model.sent] == [user("Mind the tests.")] * 2
    assert user("Mind the tests.") not in result.messages
    assert [len(new) for new in finished] == [2, 1]
    assert [user("task"), *finished[0], *finished[1]] == result.messages


def layered(**more: Any) -> fl.Compactor:
    """A compactor that keeps 3 messages and fires at 400 tokens."""
    options: dict[str, Any] = {"system_reserve": 0, "output_reserve": 50, "safety_buffer": 0, "keep_messages": 3}
    return fl.presets.layer(more.pop("summarizer", lambda _: "So far."), 550, **options, **more)


def test_T11_hooks_for_a_custom_loop() -> None:
    """The integration of the seed: prepare, call the model, persist, until the work is done."""
    store = fl.stores.MemoryStore()
    hooks = fl.loop.StepHooks(layered(store=store))
    messages: list[Any] = [{"role": "system", "content": "s"}, user("Build a flashcard app.")]
    for number in range(12):
        messages = hooks.prepare_step(messages)
        assert [each.message for each in store.active()] == messages
        new = [openai_call(f"c{number}"), openai_result(f"c{number}", "r" * 300)]
        hooks.on_step_finish(new, stop_reason="tool_calls")
        messages += new
    assert hooks.session.stats.counter(COMPACTIONS) == store.last_round() >= 2
    assert len([each for each in store.entries if each.kind == "message"]) == 2 + 24
    assert fl.validate(messages, "openai") == []


def test_T11_hooks_on_an_event_loop() -> None:
    async def scenario() -> None:
        hooks = fl.loop.StepHooks(layered())
        prepared = await hooks.aprepare_step([{"role": "system", "content": "s"}, *talk(10)])
        assert len(prepared) == 5

    asyncio.run(scenario())


def test_T9_a_store_failure_leaves_the_messages_and_the_loop_continues() -> None:
    class Failing(fl.stores.MemoryStore):
        def save_context(self, event: Any, context: Any) -> None:
            raise StoreError("the disk is full")

    store = Failing()
    hooks = fl.loop.StepHooks(layered(store=store))
    messages: list[Any] = [{"role": "system", "content": "s"}, *talk(10)]
    with pytest.warns(FoldlineWarning, match="unchanged"):
        assert hooks.prepare_step(messages) == messages
    assert [each.kind for each in store.entries] == ["message"] * 11
    assert [each.outcome for each in hooks.session.compactions] == ["failed"]


def test_T9_a_store_with_other_messages_is_not_written_to() -> None:
    store = fl.stores.MemoryStore()
    store.append(user("Something else."))
    messages: list[Any] = [{"role": "system", "content": "s"}, *talk(10)]
    with pytest.warns(FoldlineWarning, match="other messages"):
        assert fl.loop.StepHooks(layered(store=store)).prepare_step(messages) == messages
    assert len(store.entries) == 1


@BOTH
def test_T9_a_session_continues_after_a_restart(run: Run) -> None:
    """Messages are marked and the event is saved in one step; the active messages reload."""
    store = fl.stores.MemoryStore()
    first = run(
        fl.loop.AgentLoop(working(5), tools=small_results, compactor=layered(store=store)),
        [{"role": "system", "content": "s"}, user("task")],
    )
    assert first.stats.counter(COMPACTIONS) >= 1
    assert store.messages() == first.messages
    again = fl.stores.MemoryStore(store.entries)
    assert again.messages() == first.messages
    assert again.last_round() == store.last_round()
    model = working(0)
    second = run(fl.loop.AgentLoop(model, compactor=layered(store=again)), [user("And now?")])
    assert model.sent[0] == [*first.messages, user("And now?")]
    assert again.messages() == second.messages
    third = run(fl.loop.AgentLoop(working(4), tools=small_results, compactor=layered(store=again)), [user("More.")])
    rounds = [entry.event.round for entry in again.entries if entry.event]
    assert rounds == list(range(1, len(rounds) + 1))
    assert again.messages() == third.messages


def test_metadata_moves_with_the_messages_and_pins_are_kept() -> None:
    metadata = fl.context.Metadata()
    metadata.set_importance(0, 10)
    each = compactor(MessageCount(4), SlidingWindow(1))
    messages = [user("Never push to main."), *talk(3, WORDS)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fl.loop.AgentLoop(working(4), tools=small_results, compactor=each).run(messages, metadata=metadata)
    assert result.stats.counter(COMPACTIONS) >= 2
    assert result.messages[0] is messages[0]
    assert result.metadata is not None
    assert result.metadata.is_pinned(0)
    assert len(metadata) == 1


def test_utilization_without_a_budget_ends_the_run_with_the_error() -> None:
    result = fl.loop.AgentLoop(working(2), tools=small_results, compactor=compactor(Utilization())).run([user("t")])
    assert result.reason == "compaction_failed"
    assert isinstance(result.error, CompactionError)
    assert isinstance(result.error.__cause__, ConfigError)
