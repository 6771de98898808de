"""A2, A3, A5, B5, B7, B8, B10, B11, T5: recent tokens, shares, truncation, clearing, pipelines."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import foldline as fl
from foldline.errors import CompactionError, ConfigError
from foldline.strategies import (
    TURN_HEADING,
    ClearToolResults,
    FromFunction,
    NoOp,
    Pipeline,
    StrategyRequest,
    StrategyResult,
    Summarize,
    TruncateOldest,
    prune_tool_results,
)
from foldline.testing import FakeStrategy, FakeSummarizer
from unit.samples import WORDS, anthropic_call, anthropic_result, assistant, openai_call, openai_result, talk, user

CHARS = fl.TokenCounter("chars/4")
SYSTEM = {"role": "system", "content": "s"}


def request(**more: Any) -> StrategyRequest:
    return StrategyRequest(counter=CHARS, **more)


def step(i: int, size: int = 200) -> list[Any]:
    """A call and its result, `size` tokens by `chars/4`."""
    return [openai_call(f"c{i}"), openai_result(f"c{i}", "r" * size * 4)]


def sources(outcome: StrategyResult) -> list[int | None]:
    return list(outcome.sources)


# --- A2, A3, A5: keep recent tokens --------------------------------------------------------------------


def test_A2_the_cut_falls_on_a_turn_boundary() -> None:
    """Turns of 402 tokens; the newest 500 reach into the third."""
    messages = [SYSTEM, *[each for i in range(4) for each in (user("u" * 4), *step(i, 400))]]
    summarizer = FakeSummarizer("So far.")
    outcome = Summarize(summarizer, fl.KeepTokens(500)).run(messages, request())
    assert sources(outcome) == [0, None, 7, 8, 9, 10, 11, 12]
    assert [each.part for each in summarizer.requests] == ["whole"]


def test_A2_a_bash_execution_is_a_boundary_and_a_result_is_not() -> None:
    call = {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "go", "arguments": {}}]}
    result = {"role": "toolResult", "toolCallId": "c", "toolName": "go", "content": "r" * 400, "isError": False}
    bash = {"role": "bashExecution", "command": "ls", "output": "o" * 400, "exitCode": 0, "cancelled": False}
    messages = [user("u" * 400), call, result, bash, {"role": "assistant", "content": [{"type": "text", "text": "a"}]}]
    outcome = Summarize(FakeSummarizer("So far."), fl.KeepTokens(50)).run(messages, request(format="pi"))
    assert sources(outcome) == [None, 3, 4]


def test_A3_the_prefix_of_a_split_turn_gets_its_own_summary_and_is_merged() -> None:
    messages = [SYSTEM, user(WORDS), assistant(WORDS), user(WORDS), *step(0), *step(1), *step(2)]
    summarizer = FakeSummarizer("What was before.", "What was begun.")
    outcome = Summarize(summarizer, fl.KeepTokens(300), mend=False).run(messages, request())
    assert sources(outcome) == [0, None, 6, 7, 8, 9]
    history, prefix = summarizer.requests
    assert (history.part, list(history.folded)) == ("history", [1, 2])
    assert (prefix.part, list(prefix.folded)) == ("turn_prefix", [3, 4, 5])
    assert outcome.summary == f"What was before.\n\n{TURN_HEADING}\n\nWhat was begun."
    assert [each.text for each in outcome.completions] == ["What was before.", "What was begun."]
    assert outcome.summarized == (1, 2, 3, 4, 5)


def test_A3_both_parts_share_the_room_of_one_summary() -> None:
    messages = [user("u" * 4_000), assistant("a" * 4_000), user("u"), *step(0, 2_000), *step(1, 2_000)]

    class Filler:
        def summarize(self, asked: Any) -> Any:
            return fl.summarizers.Completion("x" * asked.max_tokens * 4)

    strategy = Summarize(Filler(), fl.KeepTokens(1_500), summary_tokens=400)
    outcome = strategy.run(messages, request())
    assert len(outcome.completions) == 2
    assert CHARS.count_messages(outcome.messages[:1]).total <= 400


def test_A3_without_history_before_the_turn_there_is_one_part() -> None:
    summarizer = FakeSummarizer("What was begun.")
    messages = [SYSTEM, user(WORDS), *step(0), *step(1), *step(2)]
    outcome = Summarize(summarizer, fl.KeepTokens(300), mend=False).run(messages, request())
    assert [(each.part, list(each.folded)) for each in summarizer.requests] == [("turn_prefix", [1, 2, 3])]
    assert outcome.summary == "What was begun."


def test_A3_an_earlier_summary_alone_before_the_turn_is_kept_verbatim() -> None:
    first = Summarize(FakeSummarizer("All of the past."), keep_recent=0, mend=False).run([SYSTEM, *talk(6)], request())
    messages = [*first.messages, user(WORDS), *step(0), *step(1), *step(2)]
    summarizer = FakeSummarizer("What was begun.")
    outcome = Summarize(summarizer, fl.KeepTokens(300), mend=False).run(messages, request())
    assert [each.part for each in summarizer.requests] == ["turn_prefix"]
    assert outcome.summary == f"All of the past.\n\n{TURN_HEADING}\n\nWhat was begun."


def test_A3_turns_are_not_split_if_disabled() -> None:
    messages = [SYSTEM, user(WORDS), assistant(WORDS), user(WORDS), *step(0), *step(1), *step(2)]
    for strategy in (
        Summarize(first := FakeSummarizer("So far."), fl.KeepTokens(300), split_turns=False, mend=False),
        Summarize(second := FakeSummarizer("So far."), keep_recent=2, mend=False),
    ):
        assert strategy.run(messages, request()).summary == "So far."
    assert [each.part for each in (*first.requests, *second.requests)] == ["whole", "whole"]


def test_A5_an_earlier_summary_is_merged_and_not_stacked() -> None:
    summarizer = FakeSummarizer("One.", "One and two.", "One, two and three.")
    strategy = Summarize(summarizer, fl.KeepTokens(60), mend=False)
    messages: list[Any] = [SYSTEM]
    for _ in range(3):
        messages = strategy.run([*messages, *talk(6)], request()).messages
    assert [each.previous_summary for each in summarizer.requests] == [None, "One.", "One and two."]
    assert [list(each.previous) for each in summarizer.requests] == [[], [1], [1]]
    assert sum("<foldline-history " in str(each["content"]) for each in messages) == 1
    assert "One, two and three." in messages[1]["content"]


def test_A5_a_summary_marked_by_metadata_is_merged_too() -> None:
    metadata = fl.context.Metadata()
    metadata.set_origin(0, "compacted_synthetic")
    summarizer = FakeSummarizer("New.")
    messages = [user("## Session Summary\nThe past."), *talk(6)]
    Summarize(summarizer, keep_recent=1).run(messages, request(metadata=metadata))
    assert summarizer.requests[0].previous_summary == "## Session Summary\nThe past."


# --- B5 ------------------------------------------------------------------------------------------------


def test_B5_forty_percent_of_the_messages_stay_and_no_pair_is_split() -> None:
    """Fourteen messages: with a share of 0.35 nine are summarised and five stay."""
    messages = [user("Help me refactor"), *step(0), user("Now fix the bug"), *step(1), user("Also add tests")]
    messages += [*step(2), user("Run the tests"), *step(3), user("Now deploy"), assistant("I'll push to git")]
    assert len(messages) == 14
    summarizer = FakeSummarizer("Earlier, I refactored code, fixed a bug, and added tests.")
    keep = fl.KeepFraction(0.40, of="messages")  # 40 % of 14 is 5.6, so at least 6; the pair 7, 8 is not split
    outcome = Summarize(summarizer, keep).run(messages, request())
    assert sources(outcome) == [None, 7, 8, 9, 10, 11, 12, 13]
    summarizer = FakeSummarizer("Earlier, I refactored code, fixed a bug, and added tests.")
    outcome = Summarize(summarizer, fl.KeepFraction(0.35, of="messages")).run(messages, request())
    assert sources(outcome) == [None, 9, 10, 11, 12, 13]
    assert list(summarizer.requests[0].folded) == list(range(9))


# --- B7 ------------------------------------------------------------------------------------------------


def test_B7_truncation_names_the_dropped_topics() -> None:
    messages = [SYSTEM, user("Fix the parser."), *step(0), user("Add\n tests."), assistant("Done."), *talk(4)]
    outcome = TruncateOldest().run(messages, request())
    assert outcome.summary == (
        "[Context truncated. Earlier conversation contained 5 messages about: Fix the parser.; Add tests.]"
    )
    assert sources(outcome) == [0, None, 6, 7, 8, 9]
    assert outcome.summary in outcome.messages[1]["content"]
    assert outcome.dropped == (1, 2, 3, 4, 5)
    assert outcome.plan is not None
    assert outcome.plan.actions[1:6] == ["drop"] * 5


def test_B7_tool_results_are_not_topics() -> None:
    messages = [user("Fix it."), anthropic_call("a"), anthropic_result("a", "secret output " * 20), *talk(3)]
    assert "about: Fix it.]" in TruncateOldest(fl.KeepMessages(3)).run(messages, request()).summary


def test_B7_long_topics_are_shortened_and_limited_in_number() -> None:
    messages = [user(f"{i} " + "x" * 500) for i in range(9)]
    summary = TruncateOldest(fl.KeepMessages(1)).run(messages, request()).summary
    assert summary.count("…") == 3
    assert len(summary) < 300


def test_B7_truncating_twice_adds_up() -> None:
    strategy = TruncateOldest(fl.KeepMessages(2))
    first = strategy.run([user("Fix the parser."), *talk(4)], request())
    assert "contained 3 messages about: Fix the parser." in first.summary
    second = strategy.run([*first.messages, user("Ship it."), assistant("Shipped.")], request())
    assert "contained 5 messages about: Fix the parser." in second.summary
    assert second.summary.count("Context truncated") == 1


def test_B7_an_earlier_summary_survives_a_truncation() -> None:
    first = Summarize(FakeSummarizer("Everything that matters."), keep_recent=1, mend=False).run(talk(5), request())
    second = TruncateOldest(fl.KeepMessages(1)).run([*first.messages, *talk(2)], request())
    assert second.summary.startswith(
        "Everything that matters.\n\n[Context truncated. Earlier conversation contained 2 "
    )


# --- B10: clearing and shortening ----------------------------------------------------------------------


def gemini_step(i: int, text: str) -> list[Any]:
    response = {"name": "go", "response": {"output": text}}
    return [
        {"role": "model", "parts": [{"text": "hm"}, {"functionCall": {"name": "go", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": response}]},
    ]


def responses_step(i: int, text: str) -> list[Any]:
    return [
        {"type": "function_call", "call_id": f"c{i}", "name": "go", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{i}", "output": text},
    ]


def pi_step(i: int, text: str) -> list[Any]:
    call = {"type": "toolCall", "id": f"c{i}", "name": "go", "arguments": {}}
    content = [{"type": "text", "text": text}]
    return [
        {"role": "assistant", "content": [call]},
        {"role": "toolResult", "toolCallId": f"c{i}", "toolName": "go", "content": content, "isError": False},
    ]


DIALECTS: dict[str, tuple[list[Any], Any]] = {
    "openai_chat": ([user("u")], lambda i, text: [openai_call(f"c{i}"), openai_result(f"c{i}", text)]),
    "anthropic": ([user("u")], lambda i, text: [anthropic_call(f"c{i}"), anthropic_result(f"c{i}", text)]),
    "gemini": ([{"role": "user", "parts": [{"text": "u"}]}], gemini_step),
    "openai_responses": ([{"type": "message", "role": "user", "content": "u"}], responses_step),
    "pi": ([user("u")], pi_step),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_B10_old_results_are_shortened_in_every_dialect(dialect: str) -> None:
    begin, make = DIALECTS[dialect]
    messages = [*begin, *make(0, "a" * 1_001), *make(1, "b" * 1_000), *make(2, "c" * 3_000)]
    before = copy.deepcopy(messages)
    pruned = prune_tool_results(messages, 2, counter=CHARS, format=dialect)
    assert messages == before
    assert [i for i, (new, old) in enumerate(zip(pruned, messages, strict=True)) if new is not old] == [2]
    text = json.dumps(pruned[2])
    assert 900 < text.count("a") < 1_001
    assert "[... shortened ...]" in text
    assert fl.validate(pruned, "openai") == [] if dialect == "openai_chat" else True


@pytest.mark.parametrize("dialect", DIALECTS)
def test_B10_old_results_are_cleared_in_every_dialect(dialect: str) -> None:
    begin, make = DIALECTS[dialect]
    messages = [*begin, *make(0, "a" * 1_001), *make(1, "b" * 1_001), *make(2, "c" * 3_000)]
    outcome = ClearToolResults(fl.KeepMessages(2)).run(messages, request(format=dialect))
    assert (outcome.edited, sources(outcome)) == ((2, 4), list(range(7)))
    assert "[cleared]" in json.dumps(outcome.messages[2])
    assert "aaaa" not in json.dumps(outcome.messages)
    assert "bbbb" not in json.dumps(outcome.messages)
    assert "cccc" in json.dumps(outcome.messages)
    again = ClearToolResults(fl.KeepMessages(2)).run(outcome.messages, request(format=dialect))
    assert not again.changed


def test_B10_recent_results_under_preserve_recent_are_not_changed() -> None:
    messages = [user("u"), *step(0, 600), *step(1, 600)]
    assert prune_tool_results(messages, 5, counter=CHARS) == messages
    assert prune_tool_results(messages, 99, counter=CHARS) == messages
    changed = prune_tool_results(messages, 0, counter=CHARS)
    assert [new is old for new, old in zip(changed, messages, strict=True)] == [True, True, False, True, False]
    with pytest.raises(ConfigError):
        prune_tool_results(messages, -1)


def test_several_results_of_one_message_are_cleared_independently() -> None:
    calls = assistant([{"type": "tool_use", "id": i, "name": f"tool_{i}", "input": {}} for i in "abc"])
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": text * 300} for i, text in zip("abc", "xyz")]
    blocks[2]["content"] = "short"
    messages = [user("u"), calls, user([*blocks, {"type": "text", "text": "and"}]), assistant("ok")]
    strategy = ClearToolResults(fl.KeepMessages(1), exclude=["tool_a"], min_chars=100)
    outcome = strategy.run(messages, request())
    contents = [block.get("content") for block in outcome.messages[2]["content"]]
    assert contents == ["x" * 300, "[cleared]", "short", None]


def test_excluded_tools_keep_their_results_even_if_ids_recur() -> None:
    def call(name: str) -> Any:
        function = {"name": name, "arguments": "{}"}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        }

    messages = [user("u"), call("todo"), openai_result("c"), call("go"), openai_result("c"), assistant("ok")]
    outcome = ClearToolResults(fl.KeepMessages(1), exclude={"todo"}).run(messages, request())
    assert outcome.edited == (4,)


def test_pinned_and_open_groups_keep_their_results() -> None:
    messages = [user("u"), *step(0), *step(1), assistant("ok")]
    assert ClearToolResults(fl.KeepMessages(1)).run(messages, request(pins=(1,))).edited == (4,)
    two = {**openai_call("a"), "tool_calls": [*openai_call("a")["tool_calls"], *openai_call("b")["tool_calls"]]}
    opened = [user("u"), two, openai_result("a"), user("and?"), assistant("ok")]
    assert not ClearToolResults(fl.KeepMessages(1)).run(opened, request()).changed


def test_a_gain_below_the_minimum_clears_nothing() -> None:
    messages = [user("u"), *step(0, 500), assistant("ok")]
    gain = 500 - CHARS.count("[cleared]")
    assert ClearToolResults(fl.KeepMessages(1), min_gain_tokens=gain).run(messages, request()).changed
    assert not ClearToolResults(fl.KeepMessages(1), min_gain_tokens=gain + 1).run(messages, request()).changed


def test_the_plan_of_a_clearing_reports_its_cost() -> None:
    messages = [user("u"), *step(0, 500), assistant("ok")]
    outcome = ClearToolResults(fl.KeepMessages(1)).run(messages, request())
    assert outcome.plan is not None
    assert outcome.plan.actions == ["keep", "keep", "clear", "keep"]
    assert outcome.plan.tokens_kept == CHARS.count_messages(outcome.messages).total
    assert outcome.plan.apply(messages) == outcome.messages


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"keep": 7}, "keep"),
        ({"min_chars": -1}, "min_chars"),
        ({"exclude": "todo"}, "exclude"),
        ({"exclude": [1]}, "exclude"),
        ({"min_gain_tokens": 0.5}, "min_gain_tokens"),
        ({"shorten_to_chars": 5}, "shorten_to_chars"),
    ],
)
def test_a_wrong_option_of_clearing_is_a_config_error(options: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ClearToolResults(**options)
    assert caught.value.path == path


# --- B11, T5 -------------------------------------------------------------------------------------------


def test_B11_the_strategy_that_does_nothing_changes_nothing() -> None:
    messages = talk(5)
    outcome = NoOp().run(messages, request())
    assert (outcome.messages, outcome.changed) == (messages, False)
    assert outcome.messages is not messages
    assert outcome.messages[0] is messages[0]


def test_T5_ten_of_fifty_messages_stay() -> None:
    """0 is the system message, 40 the first message kept."""
    messages = [SYSTEM, user("Build a flashcard app")]
    messages += [each for i in range(19) for each in step(i, 50)]
    messages += [each for i in range(19, 22) for each in step(i, 50)]
    messages += [assistant("All tests pass"), user("Add AI integration"), *step(22, 50)]
    assert len(messages) == 50
    outcome = Summarize(FakeSummarizer("## Session Summary"), fl.KeepMessages(10)).run(messages, request())
    assert sources(outcome) == [0, None, *range(40, 50)]
    assert len(outcome.messages) == 12


@pytest.mark.parametrize(("keep_last", "first"), [(10, 40), (9, 40), (8, 42), (7, 42), (4, 46), (3, 47), (2, 48)])
def test_T5_the_boundary_moves_back_before_tool_messages(keep_last: int, first: int) -> None:
    messages = [SYSTEM, user("task"), *[each for i in range(22) for each in step(i, 50)]]
    messages += [assistant("All tests pass"), user("Add AI integration"), *step(22, 50)]
    outcome = Summarize(FakeSummarizer("So far."), fl.KeepMessages(keep_last)).run(messages, request())
    assert sources(outcome)[2] == first


@pytest.mark.parametrize("count", [0, 1, 5, 11])
def test_T5_with_too_few_messages_nothing_is_done(count: int) -> None:
    messages = [SYSTEM, *talk(10)][:count]
    assert not Summarize(FakeSummarizer(), fl.KeepMessages(10)).run(messages, request()).changed


def test_T5_the_summary_of_an_earlier_round_is_recognized_and_not_counted() -> None:
    first = Summarize(FakeSummarizer("Round 1."), fl.KeepMessages(4)).run([SYSTEM, *talk(12)], request())
    nothing_new = Summarize(FakeSummarizer(), fl.KeepMessages(4)).run(first.messages, request())
    assert not nothing_new.changed


def test_T5_summaries_without_a_label_are_recognized_if_configured() -> None:
    def shape(text: str, asked: StrategyRequest) -> list[Any]:
        return [assistant(f"## Session Summary (Round {asked.round})\n{text}")]

    def is_summary(message: Any) -> bool:
        return message["role"] == "assistant" and str(message["content"]).startswith("## Session Summary")

    summarizer = FakeSummarizer("One.", "One and two.")
    strategy = Summarize(summarizer, fl.KeepMessages(2), shape=shape, is_summary=is_summary, mend=False)
    first = strategy.run([SYSTEM, *talk(6)], request())
    assert first.messages[1] == assistant("## Session Summary (Round 1)\nOne.")
    second = strategy.run([*first.messages, *talk(4)], request(round=2))
    assert summarizer.requests[1].previous_summary == "## Session Summary (Round 1)\nOne."
    assert second.messages[1] == assistant("## Session Summary (Round 2)\nOne and two.")
    assert sources(second) == [0, None, 6, 7]


def test_B8_a_summary_may_have_a_custom_shape() -> None:
    def shape(text: str, _: StrategyRequest) -> list[Any]:
        return [user(f"[COMPACT SUMMARY]\n{text}"), assistant("Understood.")]

    messages = [SYSTEM, *talk(6)]
    outcome = Summarize(FakeSummarizer("So far."), fl.KeepMessages(2), shape=shape, mend=False).run(messages, request())
    assert outcome.messages == [SYSTEM, user("[COMPACT SUMMARY]\nSo far."), assistant("Understood."), *messages[-2:]]
    assert sources(outcome) == [0, None, None, 5, 6]
    with pytest.raises(CompactionError) as caught:
        Summarize(FakeSummarizer("So far."), fl.KeepMessages(2), shape=lambda *_: [], mend=False).run(
            messages, request()
        )
    assert caught.value.code == "bad_shape"


# --- Pipeline and functions ----------------------------------------------------------------------------


def test_the_pipeline_stops_after_the_first_sufficient_step() -> None:
    messages = [user("u"), *step(0, 900), *step(1, 900), *talk(4)]
    summarizer = FakeSummarizer("So far.")
    pipeline = Pipeline(ClearToolResults(fl.KeepMessages(4)), Summarize(summarizer, keep_recent=2), target_tokens=500)
    outcome = pipeline.run(messages, request())
    assert (outcome.steps, outcome.edited, summarizer.requests) == (("ClearToolResults",), (2, 4), [])


def test_heavier_steps_follow_if_a_step_is_not_sufficient() -> None:
    messages = [user("u"), *step(0, 900), *step(1, 900), *talk(4)]
    summarizer = FakeSummarizer("So far.")
    pipeline = Pipeline(ClearToolResults(fl.KeepMessages(4)), Summarize(summarizer, keep_recent=2))
    outcome = pipeline.run(messages, request(pins=(3,), target_tokens=200))
    assert outcome.steps == ("ClearToolResults", "Summarize")
    assert sources(outcome) == [None, 3, 4, 7, 8]
    assert outcome.summarized == (0, 1, 2, 5, 6)
    assert outcome.messages[1] is messages[3]
    assert outcome.messages[2] is messages[4]  # pinned: neither cleared nor folded
    assert outcome.edited == ()  # the cleared result is part of the summary
    assert "[cleared]" in str(summarizer.requests[0].messages[2])


def test_a_pipeline_reports_indices_of_its_input_list() -> None:
    messages = talk(9)
    pipeline = Pipeline(
        FromFunction(lambda messages, _: messages[2:]),
        FakeStrategy(lambda messages, _: [*messages[:1], user("new"), *messages[3:]]),
    )
    outcome = pipeline.run(messages, request())
    assert sources(outcome) == [2, None, 5, 6, 7, 8]
    assert outcome.dropped == (0, 1, 3, 4)


def test_pins_and_metadata_move_from_step_to_step() -> None:
    metadata = fl.context.Metadata()
    metadata.set_importance(4, 10.0)
    pipeline = Pipeline(fl.strategies.SlidingWindow(4), Summarize(FakeSummarizer("So far."), keep_recent=1))
    outcome = pipeline.run(talk(9), request(pins=(6,), metadata=metadata))
    assert sources(outcome) == [None, 4, 6, 8]
    assert (outcome.dropped, outcome.summarized) == ((0, 1, 2), (3, 5, 7))


def test_a_pipeline_without_target_runs_everything() -> None:
    outcome = Pipeline(NoOp(), fl.strategies.SlidingWindow(5), fl.strategies.SlidingWindow(2)).run(talk(9), request())
    assert sources(outcome) == [7, 8]
    assert outcome.steps == ("SlidingWindow", "SlidingWindow")


@pytest.mark.parametrize("strategies", [(), (7,), (NoOp,)])
def test_a_pipeline_of_other_objects_is_a_config_error(strategies: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Pipeline(*strategies)
    assert caught.value.code == "bad_strategy"


def test_a_function_receives_copies_and_the_result_holds_the_callers_objects() -> None:
    messages = talk(5)
    before = copy.deepcopy(messages)

    def work(copies: list[Any], asked: StrategyRequest) -> list[Any]:
        assert asked.round == 3
        copies[1]["content"] = "shorter"
        return [copies[4], copies[1], user("new")]

    outcome = FromFunction(work).run(messages, request(round=3))
    assert messages == before
    assert outcome.messages[0] is messages[4]
    assert sources(outcome) == [4, 1, None]
    assert (outcome.edited, outcome.dropped) == ((1,), (0, 2, 3))


def test_a_function_that_does_not_return_a_list_is_an_error() -> None:
    with pytest.raises(CompactionError) as caught:
        FromFunction(lambda *_: "no list").run(talk(2), request())  # type: ignore[arg-type,return-value]
    assert caught.value.code == "not_a_list"
