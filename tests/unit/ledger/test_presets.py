"""The four complete systems, with their defaults and shapes: gent (G), reserve (A), budgeted (B), layer (T)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import foldline as fl
from foldline.compactor.events import CompactBoundary, PreCompact, SessionStart
from foldline.errors import ConfigError, FoldlineWarning, StoreError, SummaryError
from foldline.presets import COMPACT_SUMMARY, SESSION_SUMMARY, UNDERSTOOD
from foldline.stores import MemoryStore
from foldline.strategies import SlidingWindow
from foldline.testing import FakeModel, FakeSummarizer
from foldline.triggers import MessageCount, Never, ReserveTokens, StatThreshold, TokenThreshold, Utilization
from foldline.typing import Completion, ContextEntry
from unit.samples import WORDS, assistant, openai_call, openai_result, talk, user

SYSTEM = {"role": "system", "content": "You are a careful engineer."}
SO_FAR = "So far, so good."


def at(tokens: int, **more: Any) -> fl.ContextState:
    """A state whose request has `tokens` tokens, all of them in messages."""
    return fl.ContextState(
        usage=fl.ContextUsage(tokens, tokens, 0), budget=fl.TokenBudget(200_000, 0, tokens, 16_384), **more
    )


def down(_: Any) -> str:
    raise OSError


# --- G: gent ---------------------------------------------------------------------------------------------


def test_G6_gent_fires_after_ten_iterations_or_twenty_groups() -> None:
    trigger = fl.presets.gent().trigger
    assert repr(trigger) == repr(StatThreshold().on_counter("iterations", 10).on_gauge("scratchpad", 20))


def test_G8_gent_is_progressive_unless_a_keep_is_set() -> None:
    """Summary, then pinned, then recent."""
    for keep_recent, kept in ((0, [2]), (3, [2, 6, 7, 8])):
        model = FakeModel(SO_FAR)
        each = fl.presets.gent(model, keep_recent)
        result = each.compact([SYSTEM, *talk(8)], force=True, pins=[2])
        assert list(result.sources) == [0, None, *kept]
        assert SO_FAR in result.messages[1]["content"]
        assert result.metadata.origin(1) == "compacted_synthetic"
        assert "## Existing Summary" in model.prompts[0]


def test_G8_gent_merges_the_earlier_summary() -> None:
    model = FakeModel("One.", "One and two.")
    each = fl.presets.gent(model, 1, mend=False)
    first = each.compact(talk(6), force=True)
    second = each.compact([*first.messages, *talk(5)], force=True)
    assert "One." in model.prompts[1]
    assert [m for m in second.messages if "One." in m["content"]] == []
    assert second.summary == "One and two."


def test_G4_gent_raises_on_failure() -> None:
    with pytest.raises(SummaryError):
        fl.presets.gent(down).compact(talk(6), force=True)


def test_G4_gent_in_a_loop_ends_it_with_compaction_failed_and_the_iteration() -> None:
    calls = iter(range(99))

    def model(messages: list[Any]) -> fl.loop.Response:
        return fl.loop.Response(openai_call(f"c{next(calls)}"))

    loop = fl.loop.AgentLoop(
        model,
        tools=lambda answer: [openai_result(answer[0]["tool_calls"][0]["id"], "r" * 400)],
        compactor=fl.presets.gent(down),
    )
    result = loop.run([user("task")])
    assert (result.reason, result.iterations) == ("compaction_failed", 10)
    assert "iteration 10" in str(result.error)


def test_G8_gent_accepts_another_trigger_and_prompt() -> None:
    model = FakeModel(SO_FAR)
    each = fl.presets.gent(model, 1, trigger=MessageCount(4), prompt="Sum up:\n{existing_summary}\n{new_messages}")
    assert each.compact(talk(4)).reason == "not_triggered"
    assert each.compact(talk(5)).changed
    assert model.prompts[0].startswith("Sum up:\n")


# --- A: reserve ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "fires"), [(183_615, False), (183_616, False), (183_617, True)])
def test_A1_reserve_fires_above_183616(tokens: int, fires: bool) -> None:
    each = fl.presets.reserve()
    assert each.trigger.should_compact(at(tokens)) is fires
    assert repr(each.trigger) == repr(ReserveTokens(200_000, 16_384))
    assert each.strategy.keep == fl.KeepTokens(20_000)


def small_reserve(summarizer: Any = None, **more: Any) -> fl.Compactor:
    """Fires above 900 tokens and keeps 200."""
    return fl.presets.reserve(summarizer or (lambda _: SO_FAR), 1_000, 100, 200, **{"mend": False, **more})


def test_A2_reserve_cuts_at_the_start_of_a_turn() -> None:
    turns = [
        each
        for i in range(4)
        for each in (user(WORDS), openai_call(f"c{i}"), openai_result(f"c{i}", "r" * 700), assistant("ok"))
    ]
    result = small_reserve().compact([SYSTEM, *turns])
    assert result.changed
    assert [m.get("role") for m in result.messages] == ["system", "user", "user", "assistant", "tool", "assistant"]
    assert result.messages[2:] == turns[-4:]


def test_A3_reserve_splits_the_newest_turn_if_it_is_too_large_by_itself() -> None:
    steps = [each for i in range(6) for each in (openai_call(f"c{i}"), openai_result(f"c{i}", "r" * 600))]
    summarizer = FakeSummarizer("History.", "Beginning.")
    result = small_reserve(summarizer).compact([SYSTEM, user(WORDS), assistant(WORDS), user("go"), *steps])
    assert [each.part for each in summarizer.requests] == ["history", "turn_prefix"]
    assert result.summary.startswith("History.")
    assert result.summary.endswith("Beginning.")
    assert result.messages[2]["role"] == "assistant"


def test_A5_reserve_merges_the_earlier_summary() -> None:
    summarizer = FakeSummarizer("One.", "One and two.")
    each = small_reserve(summarizer)
    first = each.compact([SYSTEM, *talk(20)])
    second = each.compact([*first.messages, *talk(20)])
    assert [request.previous_summary for request in summarizer.requests] == [None, "One."]
    assert sum("One" in m["content"] for m in second.messages) == 1


def test_A6_an_entry_is_appended_and_the_next_context_is_system_summary_and_the_rest() -> None:
    store = MemoryStore()
    messages = [SYSTEM, *talk(20)]
    ids = store.extend(messages)
    before = store.entries
    result = small_reserve(store=store).compact(messages, ids=ids)
    entry = store.entries[-1]
    assert store.entries[:-1] == before  # nothing is deleted or changed
    assert (entry.kind, len(store.entries)) == ("compaction", 22)
    assert entry.event is not None
    first_kept = ids.index(str(entry.event.first_kept_id))
    assert (entry.event.summary, entry.event.tokens_before) == (SO_FAR, result.tokens_before)
    assert store.messages() == [SYSTEM, result.messages[1], *messages[first_kept:]] == result.messages
    assert result.messages[1]["role"] == "user"
    assert store.compacted_ids() == set(ids[1:first_kept]) == set(entry.event.compacted_ids)


def test_A6_pinned_messages_are_in_the_next_context_too() -> None:
    store = MemoryStore()
    ids = store.extend([SYSTEM, *talk(20)])
    result = small_reserve(store=store).compact(store.messages(), ids=ids, pins=[3])
    assert store.messages() == result.messages
    assert store.ids()[2] == ids[3]
    assert MemoryStore(store.entries).messages() == result.messages


def test_A6_a_cleared_result_is_cleared_in_the_next_context_and_whole_in_the_journal() -> None:
    store = MemoryStore()
    ids = store.extend([user("go"), openai_call("a"), openai_result("a", "r" * 900), *talk(3)])
    clear = fl.Compactor(MessageCount(1), fl.strategies.ClearToolResults(fl.KeepMessages(1)), store=store)
    clear.compact(store.messages(), ids=ids)
    assert store.messages()[2]["content"] == "[cleared]"
    assert store.ids() == ids
    assert store.entries[2].message == openai_result("a", "r" * 900)


def test_A8_reserve_reports_tokens_and_removed_messages() -> None:
    received: list[Any] = []
    each = small_reserve()
    each.subscribe(received.append)
    result = each.compact([SYSTEM, *talk(20)])
    event = next(one for one in received if isinstance(one, fl.typing.CompactionEvent))
    assert (event.tokens_before, event.tokens_after) == (result.tokens_before, result.tokens_after)
    assert event.messages_removed == 21 - (len(result.messages) - 1)


def test_A7_without_a_window_nothing_is_compacted_automatically() -> None:
    each = fl.presets.reserve(lambda _: SO_FAR, 0)
    assert isinstance(each.trigger, Never)
    assert each.compact([user("x" * 4_000_000)]).reason == "not_triggered"
    assert each.compact([user("x" * 200_000)] * 4, force=True).changed


# --- B: budgeted -----------------------------------------------------------------------------------------


def small_budgeted(summarizer: Any = None, **more: Any) -> fl.Compactor:
    """A room of 1,000 tokens."""
    return fl.presets.budgeted(
        summarizer or (lambda _: SO_FAR), 1_100, max_output_tokens=100, **{"mend": False, **more}
    )


@pytest.mark.parametrize(("tokens", "fires"), [(146_892, False), (146_893, True)])
def test_B2_budgeted_fires_above_eighty_percent_of_183616(tokens: int, fires: bool) -> None:
    each = fl.presets.budgeted()
    assert each.trigger.should_compact(at(tokens)) is fires
    assert (each.context_window, each.reserve_tokens) == (200_000, 16_384)
    assert repr(each.trigger) == repr(Utilization(0.80, 0.95))


def test_B4_budgeted_counts_bytes_by_four_and_four_a_message() -> None:
    """Over content as a string or as parts; calls are not counted, and a system prompt costs only its bytes by four."""
    count = small_budgeted().counter.count_messages
    assert count([user("x" * 43)]).total == 10 + 4
    assert count([user("é" * 20), user("")]).total == 10 + 4 + 4
    assert count([user([{"type": "text", "text": "x" * 40}, {"type": "text", "text": "y" * 3}])]).total == 10 + 4
    assert count([openai_call("a", '{"path": "' + "x" * 400 + '"}')]).total == 4
    assert small_budgeted().counter.count("x" * 43) == 10


def test_B5_budgeted_keeps_forty_percent_and_splits_no_pair() -> None:
    """Ten steps of a call and its result; four of them are 40 % of the tokens."""
    steps = [each for i in range(10) for each in (openai_call(f"c{i}"), openai_result(f"c{i}", "r" * 384))]
    result = small_budgeted().compact(steps)
    assert result.messages[2:] == steps[12:]
    by_messages = small_budgeted(of="messages").compact(steps)
    assert by_messages.messages[2:] == steps[12:]


def test_B8_budgeted_gives_the_summary_an_acknowledgement_and_the_kept_messages() -> None:
    messages = talk(18)
    result = small_budgeted().compact(messages)
    kept = len(result.messages) - 2
    assert result.messages == [
        {"role": "user", "content": f"{COMPACT_SUMMARY}\n{SO_FAR}"},
        {"role": "assistant", "content": UNDERSTOOD},
        *messages[-kept:],
    ]
    assert (COMPACT_SUMMARY, UNDERSTOOD) == ("[COMPACT SUMMARY]", "Understood.")
    assert all(new is old for new, old in zip(result.messages[2:], messages[-kept:]))
    assert [result.metadata.origin(i) for i in range(3)] == ["compacted_synthetic"] * 2 + ["original"]


def test_B8_budgeted_gives_the_picture_of_the_seed() -> None:
    """Three turns with a tool before the split point, and five messages after it."""
    messages: list[Any] = []
    for i, text in enumerate(("Help me refactor", "Now fix the bug", "Also add tests")):
        messages += [user(text), openai_call(f"c{i}", content="Let me look"), openai_result(f"c{i}", "f" * 1_200)]
    messages += [user("Run the tests. " * 18), openai_call("c3"), openai_result("c3", "PASS" * 120)]
    messages += [user("Now deploy"), assistant("I'll push to git" + " and wait" * 60)]
    each = small_budgeted(lambda _: "Earlier, I refactored code, fixed a bug, and added tests...", preserve=0.24)
    result = each.compact(messages)
    assert result.messages[0]["content"].startswith("[COMPACT SUMMARY]\nEarlier, I refactored code")
    assert result.messages[2:] == messages[9:]
    assert fl.validate(result.messages, "openai") == []


def test_B8_budgeted_merges_its_own_summaries_and_does_not_stack_them() -> None:
    summarizer = FakeSummarizer("One.", "One and two.", "All three.")
    each = small_budgeted(summarizer)
    messages = talk(18)
    for _ in range(3):
        messages = [*each.compact(messages).messages, *talk(14)]
    assert [request.previous_summary for request in summarizer.requests] == [None, "One.", "One and two."]
    assert [list(request.previous) for request in summarizer.requests] == [[], [0, 1], [0, 1]]
    assert sum(m["content"] == UNDERSTOOD for m in messages) == 1


def test_B8_a_marked_message_is_a_summary_only_in_this_preset_directly_after_the_head() -> None:
    forged = user(f"{COMPACT_SUMMARY}\nForged.")
    for each, messages, previous in (
        (small_budgeted, [SYSTEM, forged, *talk(18)], "Forged."),
        (small_budgeted, [SYSTEM, user("hi"), forged, *talk(18)], None),
        (small_reserve, [SYSTEM, forged, *talk(18)], None),
    ):
        summarizer = FakeSummarizer(SO_FAR)
        each(summarizer).compact(messages)
        assert summarizer.requests[0].previous_summary == previous


def test_B8_a_list_with_only_the_summary_calls_no_model() -> None:
    summarizer = FakeSummarizer(SO_FAR)
    each = small_budgeted(summarizer, preserve=0.0)
    first = each.compact(talk(18), force=True)
    assert each.compact(first.messages, force=True).reason == "nothing_to_fold"


@pytest.mark.parametrize("failing", [down, lambda _: "", lambda _: " \n"])
def test_B7_budgeted_falls_back_to_truncation_in_the_same_shape(failing: Any) -> None:
    messages = talk(18)
    with pytest.warns(FoldlineWarning, match="truncate"):
        result = small_budgeted(failing).compact(messages)
    assert (result.changed, result.fallback) == (True, "truncate")
    kept = len(result.messages) - 2
    line = f"[Context truncated. Earlier conversation contained {18 - kept} messages about: 0 word"
    assert result.messages[0]["content"].startswith(f"{COMPACT_SUMMARY}\n{line}")
    assert result.messages[1] == assistant(UNDERSTOOD)
    assert result.messages[2:] == messages[-kept:]


def test_B7_truncating_twice_adds_up_in_the_shape_of_budgeted_too() -> None:
    each = small_budgeted(down)
    messages = talk(18)
    with pytest.warns(FoldlineWarning):
        first = each.compact(messages)
    with pytest.warns(FoldlineWarning):
        second = each.compact([*first.messages, *talk(14)])
    assert second.summary.count("[Context truncated.") == 1
    gone = len(first.dropped) + sum(first.sources[i] is not None for i in second.dropped if i < len(first.sources))
    gone += sum(i >= len(first.sources) for i in second.dropped)
    assert f"contained {gone} messages" in second.summary


def test_B9_budgeted_calls_its_hooks_in_order() -> None:
    received: list[Any] = []
    hooks = {"before": received.append, "session_start": received.append, "boundary": received.append}
    messages = talk(18)
    result = small_budgeted(hooks=hooks).compact(messages)
    assert [type(each) for each in received] == [PreCompact, SessionStart, CompactBoundary]
    assert received[1].source == "compact"
    assert received[2].as_message()["compact_metadata"] == {"trigger": "auto", "pre_tokens": result.tokens_before}


def test_B9_a_forced_compaction_is_manual() -> None:
    received: list[Any] = []
    small_budgeted(hooks={"boundary": received.append}).compact(talk(6), force=True)
    assert received[0].trigger == "manual"


def test_B10_budgeted_shortens_old_results_first_if_configured() -> None:
    messages = [user("go"), openai_call("a"), openai_result("a", "r" * 3_000), *talk(2)]
    summarizer = FakeSummarizer()
    result = small_budgeted(summarizer, prune_recent=2, threshold=0.6).compact(messages)
    assert (result.steps, summarizer.requests) == (("ClearToolResults",), [])
    assert len(result.messages[2]["content"]) == 1_000
    assert len(result.messages) == 5


def test_B11_budgeted_compacts_several_times_in_one_session() -> None:
    each, messages = small_budgeted(), talk(18)
    for number in range(1, 6):
        result = each.compact(messages)
        assert result.event is not None
        assert result.event.round == number
        messages = [*result.messages, *talk(14)]


# --- T: layer --------------------------------------------------------------------------------------------


def small_layer(summarizer: Any = None, **more: Any) -> fl.Compactor:
    """Fires at 800 tokens and keeps 10 messages."""
    options: dict[str, Any] = {"system_reserve": 0, "output_reserve": 0, "safety_buffer": 0, "mend": False, **more}
    return fl.presets.layer(summarizer or (lambda _: SO_FAR), 1_000, **options)


def coding(count: int = 50) -> list[Any]:
    """The session of the seed's picture: a system message, the task, calls and results."""
    messages: list[Any] = [SYSTEM, user("Build a flashcard app")]
    while len(messages) < count:
        number = len(messages)
        messages += [openai_call(f"c{number}", content="Now let's go on"), openai_result(f"c{number}", "r" * 100)]
    return messages[:count]


def test_T1_layer_counts_in_utf16_units_by_four_and_two_a_message() -> None:
    for text, tokens in (("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("😀😀", 1), ("😀😀a", 2)):
        counts = small_layer().counter.count_messages([user(text)])
        assert counts.total == 2 + tokens
    assert small_layer().counter.count("") == 0
    call = openai_call("a", '{"path":"x"}')  # go: 1, the arguments: 3
    assert small_layer().counter.count_messages([call]).total == 2 + 1 + 3
    assert small_layer().counter.count_messages([call, openai_result("a", "ok")]).total == 6 + 2 + 1  # "ok" in quotes


def test_T1_layer_over_counts() -> None:
    """Conservative, as in the seed: each part is rounded up."""
    text = "word " * 400
    assert small_layer().counter.count(text) >= fl.count_tokens(text)


@pytest.mark.parametrize(("tokens", "fires"), [(93_599, False), (93_600, True)])
def test_T2_layer_fires_at_93600(tokens: int, fires: bool) -> None:
    each = fl.presets.layer()
    assert each.trigger.should_compact(at(tokens, message_count=40)) is fires
    assert repr(each.trigger) == repr(TokenThreshold())
    assert each.strategy.keep == fl.KeepMessages(10)


def test_T2_a_real_list_reaches_the_threshold() -> None:
    """11 messages of 3 tokens and one that brings the total to 93,600."""
    rest = 93_600 - 11 * 3 - 2
    for chars, reason in ((rest * 4, "token_threshold"), (rest * 4 - 4, "not_triggered")):
        messages = [user("x" * chars), *[user("y")] * 11]
        result = fl.presets.layer(lambda _: SO_FAR).compact(messages)
        assert result.reason == reason


def test_T3_model_limits_have_an_explicit_default() -> None:
    for model, limit in (
        ("gpt-4o", 128_000),
        ("gpt-4-turbo", 128_000),
        ("gpt-4", 8_192),
        ("claude-3-5-sonnet-20240620", 200_000),
        ("claude-3-haiku-20240307", 200_000),
    ):
        assert fl.models.context_limit(model) == limit
    assert fl.models.context_limit("no-such-model", default=128_000) == 128_000
    with pytest.raises(fl.errors.UnknownModelError):
        fl.models.context_limit("no-such-model")


def test_T5_layer_gives_the_picture_of_the_seed() -> None:
    """50 messages, 10 kept: the system message, the summary, then the former [40] to [49]."""
    messages = coding(50)
    result = small_layer().compact(messages)
    assert result.messages[0] is SYSTEM
    assert result.messages[1] == assistant(f"{SESSION_SUMMARY} (Compaction Round 1)\n\n{SO_FAR}")
    assert result.messages[2:] == messages[40:]
    assert len(result.messages) == 12


def test_T8_layer_gives_messages_and_an_event() -> None:
    messages = coding(50)
    ids = [f"db-{i}" for i in range(50)]
    before = copy.deepcopy(messages)
    result = small_layer().compact(messages, ids=ids)
    event = result.event
    assert event is not None
    assert (event.round, event.tokens_before, event.tokens_after, event.summary, event.compacted_ids) == (
        1,
        result.tokens_before,
        result.tokens_after,
        SO_FAR,
        tuple(ids[1:40]),
    )
    assert messages == before


def test_T8_without_a_compaction_the_tokens_are_the_same() -> None:
    result = small_layer().compact(coding(20))
    assert (result.changed, result.event, result.summary) == (False, None, "")
    assert result.tokens_before == result.tokens_after


def test_T9_event_and_marks_are_one_step_and_active_messages_reload() -> None:
    store = MemoryStore()
    ids = store.extend(coding(50))
    result = small_layer(store=store).compact(store.messages(), ids=store.ids())
    restarted = MemoryStore(store.entries)
    assert restarted.messages() == store.messages() == result.messages
    assert restarted.compacted_ids() == set(ids[1:40])
    assert restarted.last_round() == 1
    assert len(restarted.entries) == 51
    again = small_layer(store=restarted).compact(
        [*restarted.messages(), *(more := coding(40)[1:])], ids=[*restarted.ids(), *restarted.extend(more)]
    )
    assert again.event is not None
    assert again.event.round == 2
    assert restarted.messages() == again.messages


def test_T9_a_store_failure_changes_neither_messages_nor_store() -> None:
    class Failing(MemoryStore):
        def save_context(self, event: Any, context: Any) -> None:
            raise OSError

    store, messages = Failing(), coding(50)
    ids = store.extend(messages)
    before = store.entries
    each = small_layer(store=store)
    with pytest.warns(FoldlineWarning, match="unchanged"):
        result = each.compact(messages, ids=ids)
    assert (result.messages, result.outcome) == (messages, "failed")
    assert isinstance(result.error, StoreError)
    assert store.entries == before
    assert store.messages() == messages


def test_T9_ids_unknown_to_the_store_are_refused() -> None:
    store = MemoryStore()
    store.extend(coding(50))
    before = store.entries
    with pytest.warns(FoldlineWarning):
        result = small_layer(store=store).compact(store.messages())  # without ids
    assert result.error is not None
    assert result.error.code == "unknown_entry"
    assert store.entries == before


def test_T9_a_round_is_stored_once() -> None:
    store = MemoryStore()
    ids = store.extend(talk(3))
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, SO_FAR, (ids[0],), 0.0)
    context = [ContextEntry(None, user(SO_FAR)), ContextEntry(ids[1]), ContextEntry(ids[2])]
    store.save_context(event, context)
    with pytest.raises(StoreError) as caught:
        store.save_context(event, context)
    assert caught.value.code == "stale_round"
    assert len(store.entries) == 4


def test_T9_messages_appended_meanwhile_stay_after_the_context() -> None:
    store = MemoryStore()
    ids = store.extend(talk(3))
    late = store.append(user("late"))
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, SO_FAR, (ids[0],), 0.0)
    store.save_context(event, [ContextEntry(None, user(SO_FAR)), ContextEntry(ids[1]), ContextEntry(ids[2])])
    assert store.messages() == [user(SO_FAR), *talk(3)[1:], user("late")]
    assert store.ids()[-1] == late
    assert MemoryStore(store.entries).messages() == store.messages()


def test_T9_a_journal_with_a_gap_is_refused() -> None:
    store = MemoryStore()
    store.extend(talk(3))
    with pytest.raises(StoreError):
        MemoryStore([store.entries[0], store.entries[2]])


def test_T9_the_store_holds_copies() -> None:
    store, message = MemoryStore(), user(["a"])
    store.append(message)
    message["content"].append("b")
    assert store.messages() == [user(["a"])]


def test_T10_each_round_integrates_the_previous_one_and_reports_its_number() -> None:
    summarizer = FakeSummarizer("One.", "### Session Summary (Compaction Round 9)\n\nOne and two.", "Three.")
    each, messages = small_layer(summarizer), coding(50)
    for number in range(1, 4):
        result = each.compact(messages)
        assert result.messages[1]["content"].startswith(f"## Session Summary (Compaction Round {number})\n\n")
        assert result.messages[1]["content"].count("Session Summary") == 1
        messages = [*result.messages, *coding(42)[2:]]
    assert [request.previous_summary for request in summarizer.requests] == [None, "One.", "One and two."]
    assert [request.round for request in summarizer.requests] == [1, 2, 3]


# --- T11: the edge-case table, row by row --------------------------------------------------------------


def test_T11_a_single_huge_tool_result_is_truncated_for_the_summarizer() -> None:
    summarizer = FakeSummarizer(SO_FAR)
    head = [SYSTEM, user("go"), openai_call("a")]
    messages = [*head, openai_result("a", "r" * 10_001), *coding(20)[2:]]
    small_layer(summarizer).compact(messages)
    seen = summarizer.requests[0].messages
    assert len(seen[3]["content"]) == 2_000
    assert seen[:3] == head
    at_the_limit = FakeSummarizer(SO_FAR)
    small_layer(at_the_limit).compact([*head, openai_result("a", "r" * 10_000), *coding(20)[2:]])
    assert len(at_the_limit.requests[0].messages[3]["content"]) == 10_000


@pytest.mark.filterwarnings("ignore:the request has:foldline.errors.FoldlineWarning")
def test_T11_all_messages_are_recent() -> None:
    """Twelve large messages; one call and its results reach back to the start."""
    results = [openai_result(f"c{i}", "r" * 500) for i in range(11)]
    calls = {
        "role": "assistant",
        "content": None,
        "tool_calls": [openai_call(f"c{i}")["tool_calls"][0] for i in range(11)],
    }
    messages = [SYSTEM, calls, *results]
    summarizer = FakeSummarizer()
    result = small_layer(summarizer).compact(messages)
    assert (result.messages, result.changed) == (messages, False)


def test_T11_summary_generation_fails() -> None:
    messages = coding(50)
    each = small_layer(down)
    with pytest.warns(FoldlineWarning, match="unchanged"):
        result = each.compact(messages)
    assert result.messages == messages
    assert all(new is old for new, old in zip(result.messages, messages))
    assert isinstance(result.error, SummaryError)


def test_T11_an_orphaned_tool_message_keeps_its_call() -> None:
    """With 9 of 50 kept, the boundary falls on a result; the call before it is kept as well."""
    messages = coding(50)
    assert messages[41]["role"] == "tool"
    result = small_layer(keep_messages=9).compact(messages)
    assert result.messages[2:] == messages[40:]
    assert fl.validate(result.messages, "openai") == []


@pytest.mark.filterwarnings("ignore:the request has:foldline.errors.FoldlineWarning")
@pytest.mark.parametrize("messages", [[], [SYSTEM], [user("x" * 9_000)]])
def test_T11_an_empty_conversation(messages: list[Any]) -> None:
    for force in (False, True):
        assert small_layer(FakeSummarizer()).compact(messages, force=force).messages == messages


@pytest.mark.filterwarnings("ignore:the request has:foldline.errors.FoldlineWarning")
def test_T11_a_very_short_session() -> None:
    each = small_layer()
    long = [user("x" * 4_000) for _ in range(11)]
    assert each.compact(long).reason == "not_triggered"
    assert each.compact([*long, *long]).reason != "not_triggered"


# --- all ---------------------------------------------------------------------------------------------------

PRESETS = ("gent", "reserve", "budgeted", "layer")
DIALECTS = {"openai_chat": "openai", "anthropic": "anthropic", "gemini": "gemini", "openai_responses": "responses"}


def said(format: str, role: str, text: str) -> Any:
    if format == "gemini":
        return {"role": {"assistant": "model"}.get(role, role), "parts": [{"text": text}]}
    return {"role": role, "content": text}


@pytest.mark.parametrize("format", DIALECTS)
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("first", ["user", "assistant"])
def test_every_preset_gives_valid_messages_in_every_round(name: str, format: str, first: str) -> None:
    """Even if the kept part begins with the model's message."""
    make: dict[str, Any] = {
        "gent": lambda: fl.presets.gent(
            lambda _: SO_FAR, 3 + (first == "user"), trigger=MessageCount(8), format=format
        ),
        "reserve": lambda: small_reserve(format=format),
        "budgeted": lambda: small_budgeted(format=format),
        "layer": lambda: small_layer(format=format, keep_messages=5 + (first == "user")),
    }
    each, messages = make[name](), [said(format, "user", "task " + WORDS)]
    rounds = 0
    for number in range(60):
        role = "user" if messages[-1].get("role") in ("assistant", "model") else "assistant"
        messages.append(said(format, role, f"{number} {WORDS}"))
        result = each.compact(messages)
        assert result.error is None
        assert fl.validate(result.messages, DIALECTS[format], format=format) == []
        rounds += result.changed
        messages = result.messages
    assert rounds >= 3


@pytest.mark.parametrize(
    ("make", "options", "path"),
    [
        (fl.presets.gent, {"keep_recent": -1}, "keep_recent"),
        (fl.presets.gent, {"trigger": 5}, "trigger"),
        (fl.presets.gent, {"summarizer": 5}, "summarizer"),
        (fl.presets.reserve, {"context_window": -1}, "context_window"),
        (fl.presets.reserve, {"reserve_tokens": 200_000}, "reserve_tokens"),
        (fl.presets.reserve, {"keep_recent_tokens": 183_617}, "keep_recent_tokens"),
        (fl.presets.reserve, {"summary_tokens": 1.5}, "summary_tokens"),
        (fl.presets.budgeted, {"threshold": 0.0}, "threshold"),
        (fl.presets.budgeted, {"threshold": float("nan")}, "threshold"),
        (fl.presets.budgeted, {"critical": 0.5}, "critical"),
        (fl.presets.budgeted, {"preserve": 1.1}, "preserve"),
        (fl.presets.budgeted, {"of": "words"}, "of"),
        (fl.presets.budgeted, {"prune_recent": -1}, "prune_recent"),
        (fl.presets.budgeted, {"context_limit": 1_000}, "max_output_tokens"),
        (fl.presets.layer, {"model_context_limit": 11_000}, "safety_buffer"),
        (fl.presets.layer, {"threshold": 80}, "threshold"),
        (fl.presets.layer, {"keep_messages": -1}, "keep_messages"),
        (fl.presets.layer, {"on_failure": "shrug"}, "on_failure"),
        (fl.presets.layer, {"no_such": 1}, "no_such"),
    ],
)
def test_a_wrong_option_of_a_preset_is_a_config_error(make: Any, options: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**options)
    assert caught.value.path == path


def test_default_policies_are_those_of_the_seeds_and_can_be_replaced() -> None:
    policies = {name: getattr(fl.presets, name)().on_failure for name in PRESETS}
    assert policies == {"gent": "raise", "reserve": "unchanged", "budgeted": "truncate", "layer": "unchanged"}
    assert fl.presets.gent(on_failure="clear").on_failure == "clear"


def test_default_counters_are_those_of_the_seeds_and_can_be_replaced() -> None:
    text = "naïve 😀 text, 25 long…"
    for name, counter in (("reserve", "chars/4"), ("budgeted", "bytes/4+4"), ("layer", "utf16/4+2")):
        count = fl.TokenCounter(counter).count_messages([user(text)]).total
        assert getattr(fl.presets, name)().counter.count_messages([user(text)]).total == count
    assert fl.presets.reserve(counter="o200k_base").counter.count(text) == fl.count_tokens(text)


def test_the_extractive_summarizer_merges_summaries_of_every_shape() -> None:
    """The request of the first round is in the summary of the third, once, and not as something the user said."""
    for make in (small_budgeted, small_layer):
        each = make(fl.summarizers.Extractive())
        messages = [SYSTEM, user("Rename the module to parser."), *coding(50)[2:]]
        for _ in range(3):
            result = each.compact(messages, force=True)
            assert result.changed
            messages = [*result.messages, *coding(42)[2:]]
        text = result.summary
        assert text.count("Rename the module to parser.") == 1
        assert COMPACT_SUMMARY not in text
        assert "Session Summary" not in text
        assert UNDERSTOOD not in text


def test_a_strategy_with_a_shape_keeps_the_callers_objects() -> None:
    """Even if an earlier summary is kept because nothing was folded."""
    first = small_layer().compact(coding(50))
    again = small_layer().compact([*first.messages, user("short")], force=True)
    assert all(any(new is old for old in [*first.messages, *again.messages]) for new in again.messages)
    window = fl.strategies.Shaped(SlidingWindow(3), fl.presets.budgeted().strategy.shape)  # type: ignore[attr-defined]
    outcome = window.run(talk(6), fl.strategies.StrategyRequest())
    assert len(outcome.messages) == 3


def test_the_event_loop_gives_the_same_result() -> None:
    import asyncio

    async def scenario() -> None:
        for make in (small_reserve, small_budgeted, small_layer):
            result = await make(FakeSummarizer(Completion(SO_FAR))).acompact(coding(50))
            assert result.messages == make().compact(coding(50)).messages

    asyncio.run(scenario())
