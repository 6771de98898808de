"""Plans at the edge: ties, sums that are just enough, many results in one message, equal lengths."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl
from unit.samples import assistant, openai_call, openai_result, user

WORD = "abcd"
"""One token by `chars/4`."""

PLACEHOLDER = "[cleared]"
THINKING = {"type": "thinking", "thinking": WORD * 40, "signature": "c2ln"}


def plan(messages: Any, keep: Any, **options: Any) -> Any:
    return fl.plan(messages, keep, **({"counter": "chars/4"} | options))


def speakers(order: str) -> list[dict[str, Any]]:
    """Messages of ten tokens: u from the user, a from the assistant."""
    return [(user if who == "u" else assistant)(WORD * 10) for who in order]


def served(*results: tuple[str, Any]) -> dict[str, Any]:
    """An Anthropic user message with results."""
    return user([{"type": "tool_result", "tool_use_id": id, "content": content} for id, content in results])


def calling(*ids: str) -> dict[str, Any]:
    return assistant([{"type": "tool_use", "id": id, "name": "go", "input": {}} for id in ids])


# --- other cuts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "keep", "cut", "start"),
    [
        ("uauaaaaua", 5, 4, 2),  # two before the cut, three after it
        ("uauaaaaua", 4, 5, 7),  # two before, two after
        ("uauaaaua", 4, 4, 2),  # equally far both ways: the earlier one
    ],
)
def test_the_nearest_start_of_a_turn_is_offered(order: str, keep: int, cut: int, start: int) -> None:
    made = plan(speakers(order), fl.KeepMessages(keep))
    assert made.cut == cut
    assert [other.cut for other in made.alternatives if other.why == "turn_start"] == [start]


def test_a_turn_as_large_as_the_kept_part_is_not_split() -> None:
    messages = [user(WORD * 3), user(WORD * 2), assistant(WORD * 8), user(WORD * 2)]
    assert plan(messages, fl.KeepTokens(10)).cut == 1
    longer = [*messages[:2], assistant(WORD * 9), messages[3]]
    assert plan(longer, fl.KeepTokens(10)).cut == 2


# --- chunks ---------------------------------------------------------------------------------------------


def test_kept_messages_go_with_the_chunk_before_them() -> None:
    messages = [user(WORD * 90), assistant(WORD), user(WORD * 9), assistant(WORD)]
    made = plan(messages, fl.KeepMessages(1), pins=[1])
    assert made.folded == [0, 2]
    assert made.chunks(10) == [fl.planning.Chunk(0, 2, 90, True), fl.planning.Chunk(2, 3, 9, False)]


# --- explanations and costs -----------------------------------------------------------------------------


def test_the_explanation_gives_the_saved_share() -> None:
    lines = plan(speakers("uuuu"), fl.KeepMessages(1), summary_tokens=2).explain().splitlines()
    assert "  28 saved (70 %)" in lines
    lines = plan(speakers("uu"), fl.KeepMessages(1), summary_tokens=15).explain().splitlines()
    assert "  5 more (25 %)" in lines


def test_the_predicted_cost_of_a_summary_is_its_cost() -> None:
    effect = plan(speakers("uuuu"), fl.KeepMessages(1)).cache_effect(3.0, 0.3, summary_cost=0.25)
    assert effect.summary_cost == 0.25


def test_an_infeasible_budget_reports_the_tokens_that_always_stay() -> None:
    messages = [{"role": "system", "content": WORD}, user(WORD), assistant(WORD), openai_call("a"), openai_result("a")]
    answer = plan(messages, fl.FitTokens(1), pins=[1])
    assert isinstance(answer, fl.Infeasible)
    assert "2 message(s) of head, pins and open calls and 2 message(s) of the newest group" in answer.why


# --- clearing and shortening ----------------------------------------------------------------------------


def test_a_result_whose_placeholder_costs_as_much_is_not_cleared() -> None:
    """One character longer than the placeholder, but not one token."""
    messages = [
        openai_call("a"),
        openai_call("b"),
        openai_result("a", "x" * (len(PLACEHOLDER) + 1)),
        openai_result("b", WORD * 300),
    ]
    before = plan(messages, fl.KeepMessages(9)).tokens_before
    made = plan(messages, fl.FitTokens(before - 100))
    assert (made.cut, made.actions) == (0, ["keep", "keep", "keep", "shorten"])


@pytest.mark.parametrize("short", ["ok", "x" * len(PLACEHOLDER)])
def test_of_two_results_in_a_message_only_the_longer_is_cleared(short: str) -> None:
    messages = [calling("a", "b"), calling("c"), served(("a", short), ("b", WORD * 300)), served(("c", "ok"))]
    before = plan(messages, fl.KeepMessages(9)).tokens_before
    made = plan(messages, fl.FitTokens(before - 100))
    assert made.actions == ["keep", "keep", "clear", "keep"]
    cleared = made.apply(messages)[2]["content"]
    assert [cleared[0]["content"], cleared[1]["content"] == WORD * 300] == [short, False]


def test_a_picture_is_cleared_even_with_a_short_text() -> None:
    data = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    picture = [{"type": "text", "text": "ok"}, {"type": "image", "source": data}]
    messages = [calling("a", "b"), calling("c"), served(("a", picture), ("b", WORD * 300)), served(("c", "ok"))]
    before = plan(messages, fl.KeepMessages(9)).tokens_before
    made = plan(messages, fl.FitTokens(before - 100))
    assert made.actions == ["keep", "keep", "clear", "keep"]
    cleared = made.apply(messages)[2]["content"]
    assert picture not in [each["content"] for each in cleared]


@pytest.mark.parametrize("count", [3, 32, 33, 40])
def test_as_few_results_of_a_message_as_possible_are_changed(count: int) -> None:
    """The longest first. One character is one token."""
    texts = {f"c{i}": "x" * 40 * (count - i) for i in range(count)}
    messages = [user("Go."), calling(*texts), served(*texts.items())]
    before = plan(messages, fl.KeepMessages(9), counter=len).tokens_before - len("Go.")
    saved = 0
    for changed, text in enumerate(texts.values(), 1):
        saved += len(text) - len(PLACEHOLDER)
        made = plan(messages, fl.FitTokens(before - saved), counter=len)
        assert made.tokens_after == before - saved
        given = [each["content"] for each in made.apply(messages, "So far.")[-1]["content"]]
        assert given == [PLACEHOLDER] * changed + list(texts.values())[changed:]


def test_few_results_are_tried_in_order_whatever_a_placeholder_costs() -> None:
    """Changing the first suffices; changing two or three would cost more again."""
    prices = {"a" * 40: 20, "b" * 39: 1, "c" * 38: 1, "d" * 37: 30, PLACEHOLDER: 5}

    def count(text: str) -> int:
        return prices.get(text, 1000 if "shortened" in text else 0)

    texts = list(prices)[:4]
    messages = [user("Go."), calling(*"abcd"), served(*zip("abcd", texts))]
    made = plan(messages, fl.FitTokens(37), counter=count)
    assert made.tokens_after == 37
    given = [each["content"] for each in made.apply(messages, "So far.")[-1]["content"]]
    assert given == [PLACEHOLDER, *texts[1:]]


# --- thinking -------------------------------------------------------------------------------------------


def thinker() -> dict[str, Any]:
    return assistant([THINKING, {"type": "text", "text": "Done."}])


@pytest.mark.parametrize(("pin", "stripped"), [(1, [1, 3, 5]), (2, [3, 5]), (3, [3, 5])])
def test_thinking_is_stripped_once_before_at_and_after_the_cut(pin: int, stripped: list[int]) -> None:
    messages = [user(), thinker(), user(), thinker(), user(), thinker(), user()]
    made = plan(messages, fl.KeepMessages(4 if pin != 3 else 3), pins=[pin], thinking="strip")
    assert made.stripped == stripped


def test_pinned_thinking_directly_after_the_head_is_stripped() -> None:
    messages = [thinker(), user(), thinker(), user()]
    assert plan(messages, fl.KeepMessages(1), pins=[0], thinking="strip").stripped == [0]


def test_pinned_thinking_at_the_cut_is_stripped_once() -> None:
    messages = [user(WORD * 400), thinker(), user(), assistant()]
    before = plan(messages, fl.KeepMessages(9)).tokens_before
    made = plan(messages, fl.FitTokens(before - 100), pins=[1], thinking="strip")
    assert (made.cut, made.stripped) == (1, [1])


def test_messages_in_the_head_keep_their_thinking() -> None:
    head = {"role": "system", "content": [THINKING, {"type": "text", "text": "Be brief."}]}
    made = plan(
        [head, user(), thinker(), user(), assistant()], fl.KeepMessages(1), thinking="strip", format="anthropic"
    )
    assert (made.head, made.stripped) == (1, [])
    assert [warning.code for warning in made.warnings] == []


def test_alternatives_with_room_for_a_summary_round_trip() -> None:
    tools = [{"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}}]
    made = plan(speakers("uaua"), fl.KeepMessages(2), summary_tokens=7, tools=tools)
    room = 7 + made.overhead
    assert made.overhead > 0
    assert [other.tokens_after - other.tokens_kept for other in made.alternatives] == [room] * len(made.alternatives)
    assert made.alternatives
    assert fl.Plan.from_json(made.to_json()) == made
