"""Faults seen in other libraries that shorten conversations: each by name, shown to be absent here.

`tests/cases/peers.json` has the same faults as single plans with numbers worked out by hand; these tests search for
them over sweeps of budgets, on real conversations, and through all of `compact`.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import FoldlineWarning, SummaryError
from foldline.summarizers import Completion, FromFunction
from unit.samples import assistant, openai_call, openai_result, talk, user

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "examples" / "data"
COUNTER = fl.TokenCounter("o200k_base")
NOTE = "Earlier messages were left out."
NOTE_TOKENS = 80
BUDGETS = 76
SYSTEM = {"role": "system", "content": "Answer in the form of a report. " * 4}


def recorded(name: str) -> list[list[dict[str, Any]]]:
    lines = (SAMPLES / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["messages"] for line in lines]


def calls(*ids: str, arguments: str = "{}") -> dict[str, Any]:
    """An assistant message with several calls."""
    made = [{"id": id, "type": "function", "function": {"name": "go", "arguments": arguments}} for id in ids]
    return assistant(None, tool_calls=made)


def words(rng: random.Random, most: int = 120) -> str:
    return " ".join(rng.choices(["read", "the", "file", "and", "report", "what", "failed"], k=rng.randint(5, most)))


def parallel_run(turns: int = 6, seed: int = 1) -> list[dict[str, Any]]:
    """Turns with up to five calls at once, their results in any order."""
    rng = random.Random(seed)
    messages = [SYSTEM]
    for turn in range(turns):
        ids = [f"call_{turn}_{i}" for i in range(1 + turn % 5)]
        messages += [user(words(rng)), calls(*ids)]
        messages += [openai_result(id, words(rng)) for id in rng.sample(ids, len(ids))]
        messages.append(assistant(words(rng)))
    return [*messages, user(words(rng))]


def one_user_run(steps: int = 20) -> list[dict[str, Any]]:
    """One request, then the steps of an agent."""
    rng = random.Random(2)
    messages = [SYSTEM, user("Find out why the tests fail, and mend them. " * 6)]
    for step in range(steps):
        messages += [openai_call(f"call_{step}"), openai_result(f"call_{step}", words(rng))]
    return messages


def late_run(distance: int) -> list[dict[str, Any]]:
    """A call whose result comes `distance` messages later."""
    return [
        *talk(6),
        openai_call("late"),
        *[(assistant, user)[i % 2](f"meanwhile {i}") for i in range(distance - 1)],
        openai_result("late"),
        *talk(6),
    ]


def sweep(messages: Sequence[Any]) -> list[int]:
    """Budgets from nearly nothing to nearly everything."""
    total = COUNTER.count_messages(messages, format="openai_chat").total
    return [total * i // (BUDGETS + 1) for i in range(1, BUDGETS + 1)]


def fitted(messages: Sequence[Any], budget: int, **options: Any) -> fl.Plan | None:
    """The plan for a budget; None if infeasible."""
    planned = fl.plan(messages, fl.FitTokens(budget), counter=COUNTER, summary_tokens=NOTE_TOKENS, **options)
    if isinstance(planned, fl.Infeasible):
        assert planned.floor > budget
        return None
    return planned


def torn_pairs(messages: Sequence[Any]) -> list[str]:
    """Ids of results without an earlier call, and of calls without a later result; found without foldline."""
    waiting: list[str] = []
    torn = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                torn.append(message["tool_call_id"])
        waiting += [call["id"] for call in message.get("tool_calls") or ()]
    return torn + waiting


def is_in(message: Any, messages: Sequence[Any]) -> bool:
    """Whether the list contains this very object."""
    return any(each is message for each in messages)


def quietly(messages: Any, keep: Any = None, **options: Any) -> fl.FoldResult:
    """`compact` with an expected failure: it warns, and returns the very same objects."""
    before = copy.deepcopy(messages)
    with pytest.warns(FoldlineWarning):
        result = fl.compact(messages, keep or fl.KeepMessages(2), counter="chars/4", **options)
    assert messages == before
    assert result.error is not None
    assert not result.changed
    assert not result.summary
    assert len(result.messages) == len(messages)
    assert all(ours is theirs for ours, theirs in zip(result.messages, messages))
    assert result.tokens_after == result.tokens_before
    return result


class Recorder:
    """A summarizer that records its tasks."""

    def __init__(self, text: str = "What came before.") -> None:
        self.text = text
        self.requests: list[fl.typing.SummarizeRequest] = []

    def summarize(self, request: Any) -> Completion:
        self.requests.append(request)
        return Completion(self.text, model="stub")


# --- orphan results at some budgets -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [*recorded("openai-tools"), parallel_run(), one_user_run()],
    ids=[*(f"recorded {i}" for i in range(len(recorded("openai-tools")))), "parallel", "one user"],
)
def test_no_orphan_results_at_any_budget(messages: list[dict[str, Any]]) -> None:
    assert not torn_pairs(messages)
    answered = 0
    for budget in sweep(messages):
        planned = fitted(messages, budget)
        if planned is None:
            continue
        answered += 1
        folded = planned.apply(messages, NOTE)
        assert not torn_pairs(folded), budget
        assert not fl.validate(folded, "openai"), budget
        assert COUNTER.fits(folded, budget, format="openai_chat"), budget
    assert answered >= 20  # A planner that always refuses would otherwise pass.


def test_the_sweep_finds_the_fault_if_it_is_present() -> None:
    """The newest messages that fit, ignoring pairs: half of the budgets tear one."""
    messages = parallel_run()
    torn = 0
    for budget in sweep(messages):
        start = len(messages)
        while start and COUNTER.fits(messages[start - 1 :], budget, format="openai_chat"):
            start -= 1
        torn += bool(torn_pairs(messages[start:]))
    assert torn > BUDGETS / 3


def test_every_budget_at_or_above_the_floor_has_an_answer() -> None:
    """A library that is safe only by refusing is not better."""
    messages = parallel_run()
    floor = fl.plan(messages, fl.FitTokens(10**6), counter=COUNTER, summary_tokens=NOTE_TOKENS).floor
    assert fitted(messages, floor - 1) is None
    assert all(fitted(messages, budget) is not None for budget in range(floor, floor + 200))


# --- parallel calls split ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_parallel_calls_are_never_split(seed: int) -> None:
    messages = parallel_run(seed=seed)
    groups = [group for group in fl.analyze(messages).groups if len(group) > 1]
    assert max(map(len, groups)) == 6  # The call and its five results.
    keeps = [fl.FitTokens(budget) for budget in sweep(messages)]
    keeps += [fl.KeepMessages(n) for n in range(len(messages))]
    keeps += [fl.KeepTokens(n) for n in sweep(messages)]
    for keep in keeps:
        planned = fl.plan(messages, keep, counter=COUNTER)
        if isinstance(planned, fl.Infeasible):
            continue
        folded = set(planned.folded)
        assert all(folded.issuperset(group) or folded.isdisjoint(group) for group in groups), keep


# --- a one-user agent run cut to its system message -------------------------------------------------------


def test_a_one_user_agent_run_is_not_cut_to_its_system_message() -> None:
    messages = one_user_run()
    answered = 0
    for budget in sweep(messages):
        planned = fitted(messages, budget)
        if planned is None:
            continue
        answered += 1
        folded = planned.apply(messages, NOTE)
        assert folded[0] is messages[0]
        assert folded[1]["role"] == "user"  # The summary, if the request itself is folded.
        assert folded[-1]["role"] == "tool"  # The newest call and its result.
        assert folded[-1]["tool_call_id"] == messages[-1]["tool_call_id"]
    assert answered >= 40


def test_a_pinned_request_survives_every_step_of_its_agent_run() -> None:
    messages = one_user_run()
    for budget in sweep(messages):
        planned = fitted(messages, budget, pins=[1])
        if planned is not None:
            assert is_in(messages[1], planned.apply(messages, NOTE))


def test_a_one_user_agent_run_uses_the_budget_it_has() -> None:
    """Whole turns alone would keep nothing of a run with one turn."""
    messages = one_user_run()
    budget = sweep(messages)[BUDGETS // 2]
    planned = fitted(messages, budget)
    assert planned is not None
    assert planned.turn_prefix is not None
    assert planned.tokens_kept > budget * 0.7


# --- a system message alone over budget, without an error -------------------------------------------------


def test_a_system_message_over_budget_is_infeasible_with_its_floor() -> None:
    messages = [{"role": "system", "content": "Be brief. " * 500}, *talk(8)]
    planned = fl.plan(messages, fl.FitTokens(400), counter=COUNTER)
    assert isinstance(planned, fl.Infeasible)
    assert not planned
    assert planned.why
    newest = [messages[0], messages[-1]]
    assert planned.floor == COUNTER.count_messages(newest, format="openai_chat").total
    assert fl.plan(messages, fl.FitTokens(planned.floor), counter=COUNTER)
    assert isinstance(fl.plan(messages, fl.FitTokens(planned.floor - 1), counter=COUNTER), fl.Infeasible)


@pytest.mark.filterwarnings("ignore:the budget cannot be met:foldline.errors.FoldlineWarning")
def test_an_infeasible_budget_makes_no_call_and_changes_nothing() -> None:
    messages = [{"role": "system", "content": "Be brief. " * 500}, *talk(8)]
    writer = Recorder()
    result = fl.compact(messages, fl.FitTokens(400), counter=COUNTER, summarizer=writer)
    assert isinstance(result.plan, fl.Infeasible)
    assert not writer.requests
    assert not result.changed
    assert all(ours is theirs for ours, theirs in zip(result.messages, messages, strict=True))


# --- history replaced though the model never ran ----------------------------------------------------------


def raises(_: Any) -> str:
    raise ConnectionError("no network")


FAILING: dict[str, tuple[Any, str]] = {
    "raises": (raises, "summarizer_failed"),
    "empty": (lambda _: "", "empty_summary"),
    "blank": (lambda _: " \n\t\u3000", "empty_summary"),
    "none": (lambda _: None, "not_a_text"),
    "bytes": (lambda _: b"So far.", "not_a_text"),
    "cut off": (lambda _: Completion("So far, the user", finish_reason="length"), "incomplete_summary"),
    "refused": (lambda _: Completion("I cannot.", finish_reason="content_filter"), "incomplete_summary"),
    "called a tool": (lambda _: Completion("So far.", finish_reason="tool_calls"), "incomplete_summary"),
    "longer than what it replaces": (lambda _: "So far. " * 2_000, "summary_too_long"),
}


@pytest.mark.parametrize("how", FAILING)
def test_a_failed_summary_leaves_the_very_same_history(how: str) -> None:
    function, code = FAILING[how]
    result = quietly(talk(10), summarizer=function)
    assert isinstance(result.error, SummaryError)
    assert result.error.code == code


@pytest.mark.parametrize("how", FAILING)
def test_a_failed_summary_can_be_raised(how: str) -> None:
    function, code = FAILING[how]
    messages = talk(10)
    before = copy.deepcopy(messages)
    with pytest.raises(SummaryError) as caught:
        fl.compact(messages, fl.KeepMessages(2), counter="chars/4", summarizer=function, on_failure="raise")
    assert caught.value.code == code
    assert messages == before


def test_a_summary_that_breaks_the_budget_is_refused() -> None:
    """The room was 100 tokens; 300 come, fewer than the folded messages, and still too many."""
    result = quietly(talk(20), fl.FitTokens(400), summarizer=lambda _: "word " * 240, summary_tokens=100)
    assert result.error is not None
    assert result.error.code == "summary_over_budget"


def test_a_function_that_modifies_its_argument_does_not_change_the_history() -> None:
    messages = talk(10)
    before = copy.deepcopy(messages)

    def meddles(folded: list[Any]) -> str:
        folded[0]["content"] = "Something else was said."
        return "So far."

    result = fl.compact(messages, fl.KeepMessages(2), counter="chars/4", summarizer=meddles)
    assert result.changed
    assert messages == before


def test_a_summarizer_that_modifies_the_list_does_not_change_the_fold() -> None:
    messages = talk(10)
    before = list(messages)

    class Meddles(Recorder):
        def summarize(self, request: Any) -> Completion:
            request.messages.insert(0, {"role": "user", "content": "Something else was said."})
            del request.messages[5:]
            return super().summarize(request)

    result = fl.compact(messages, fl.KeepMessages(2), counter="chars/4", summarizer=Meddles())
    assert result.error is None
    assert all(ours is theirs for ours, theirs in zip(result.messages[-2:], before[-2:], strict=True))
    assert len(result.messages) == 3


def test_a_plan_is_not_applied_without_a_summary() -> None:
    planned = fl.plan(talk(10), fl.KeepMessages(2), counter="chars/4")
    for nothing in (None, "", "  "):
        with pytest.raises(fl.errors.ConfigError) as caught:
            planned.apply(talk(10), nothing)
        assert caught.value.code == "missing_summary"


# --- the summarizer seeing only a part of the removed messages ------------------------------------------


@pytest.mark.parametrize("keep", [fl.KeepMessages(3), fl.KeepTokens(200), fl.KeepFraction(0.2), fl.FitTokens(700)])
def test_the_summarizer_receives_exactly_the_removed_messages(keep: Any) -> None:
    messages = parallel_run(seed=3)
    writer = Recorder()
    result = fl.compact(messages, keep, counter="chars/4", summarizer=writer, summary_tokens=100)
    assert result.changed
    (request,) = writer.requests
    assert list(request.folded) == result.plan.folded
    removed = [i for i, message in enumerate(messages) if not is_in(message, result.messages)]
    edited = [i for i, action in enumerate(result.plan.actions) if action in ("clear", "shorten")]
    assert sorted({*request.folded, *edited}) == removed
    assert all(request.messages[i] is messages[i] for i in request.folded)


def test_a_function_gets_every_folded_message_whole() -> None:
    """Regardless of length: nothing is truncated before the summarizer sees it."""
    messages = [user("first " * 100_000), *talk(30), user("newest")]
    seen: list[Any] = []

    def function(folded: list[Any]) -> str:
        seen.extend(folded)
        return "So far."

    result = fl.compact(messages, fl.KeepMessages(1), counter="chars/4", summarizer=FromFunction(function))
    assert result.plan.folded == list(range(31))
    assert seen == messages[:31]


# --- a group larger than the budget making compaction fire on every call ----------------------------------


def test_a_group_larger_than_the_budget_is_folded_once() -> None:
    large = "line of a log, " * 4_000
    messages = [SYSTEM, user("Read the log."), *talk(8), user("Now."), openai_call("big"), openai_result("big", large)]
    budget = 600
    writer = Recorder()

    def step() -> fl.FoldResult:
        return fl.compact(messages, fl.FitTokens(budget), counter=COUNTER, summarizer=writer, summary_tokens=100)

    first = step()
    assert first.changed
    assert first.tokens_after <= budget
    assert not fl.validate(first.messages, "openai")
    messages = first.messages
    for _ in range(3):
        again = step()
        assert not again.changed
        assert again.error is None
        messages = again.messages
    assert len(writer.requests) == 1


@pytest.mark.parametrize("messages", [parallel_run(), one_user_run()], ids=["parallel", "one user"])
def test_a_history_folded_to_fit_is_not_folded_again(messages: list[dict[str, Any]]) -> None:
    for budget in sweep(messages):
        planned = fitted(messages, budget)
        if planned:
            folded = planned.apply(messages, NOTE)
            again = fitted(folded, budget)
            assert again is not None
            assert not again, budget


# --- pairs looked for only a few messages around the cut; a result further away orphaned ------------------


@pytest.mark.parametrize("distance", [1, 2, 5, 6, 7, 20, 60])
def test_no_cut_separates_a_call_from_a_distant_result(distance: int) -> None:
    messages = late_run(distance)
    call, result = 6, 6 + distance
    assert [call, result] in fl.analyze(messages).groups
    assert not set(range(call + 1, result + 1)) & set(fl.analyze(messages).legal_cuts)
    keeps: list[Any] = [fl.KeepMessages(n) for n in range(len(messages))]
    keeps += [fl.KeepIterations(n) for n in range(len(messages))]
    keeps += [fl.KeepTurns(n) for n in range(8)]
    keeps += [each(n) for n in sweep(messages) for each in (fl.KeepTokens, fl.FitTokens)]
    keeps += [fl.KeepFraction(i / 20, of="messages") for i in range(21)]
    for keep in keeps:
        planned = fl.plan(messages, keep, counter=COUNTER)
        if isinstance(planned, fl.Infeasible):
            continue
        folded = set(planned.folded)
        assert (call in folded) == (result in folded), keep
        if planned:
            assert not torn_pairs(planned.apply(messages, NOTE)), keep


def test_results_of_many_parallel_calls_stay_with_them() -> None:
    """The last of forty results is forty messages after its call, as the API allows."""
    ids = [f"call_{i}" for i in range(40)]
    messages = [*talk(4), calls(*ids), *[openai_result(id) for id in reversed(ids)], *talk(4)]
    for n in range(len(messages)):
        planned = fl.plan(messages, fl.KeepMessages(n), counter="chars/4")
        if planned:
            assert not fl.validate(planned.apply(messages, NOTE), "openai"), n


def test_an_unanswered_call_is_kept_at_any_position() -> None:
    """Its result may be pending: if the call were folded, the result would be an orphan."""
    messages = [*talk(4), openai_call("open"), *talk(8)]
    planned = fl.plan(messages, fl.KeepMessages(1), counter="chars/4")
    folded = planned.apply(messages, NOTE)
    assert is_in(messages[4], folded)
    assert not torn_pairs([*folded, openai_result("open")])


# --- ids reused across turns ------------------------------------------------------------------------------


def test_ids_reused_across_turns_are_separate_pairs() -> None:
    messages: list[Any] = []
    for _ in range(5):
        messages += [user(), calls("call_0", "call_1"), openai_result("call_1"), openai_result("call_0"), assistant()]
    groups = fl.analyze(messages).groups
    assert [group for group in groups if len(group) > 1] == [[i, i + 1, i + 2] for i in range(1, 25, 5)]
    for turns in range(1, 5):
        planned = fl.plan(messages, fl.KeepTurns(turns), counter="chars/4")
        assert planned.cut == 25 - 5 * turns
        assert not fl.validate(planned.apply(messages, NOTE), "openai")


# --- a second compaction losing the first one's kept tail -------------------------------------------------


def test_a_second_compaction_folds_the_first_ones_tail_into_its_summary() -> None:
    messages = talk(10)
    first = fl.compact(messages, fl.KeepMessages(4), counter="chars/4", summarizer=Recorder("First part."))
    tail = messages[6:]
    assert first.messages[1:] == tail
    writer = Recorder("Both parts.")
    grown = [*first.messages, *talk(6)]
    second = fl.compact(grown, fl.KeepMessages(4), counter="chars/4", summarizer=writer)
    seen = [grown[i] for i in writer.requests[0].folded]
    assert seen[0] is first.messages[0]  # The first summary,
    assert all(is_in(message, seen) for message in tail)  # and all messages that it had kept.
    assert len(fl.analyze(second.messages).summaries) == 1


def test_over_many_rounds_no_message_is_lost_unseen() -> None:
    """A message that is neither in the list nor was shown to a summarizer is lost silently."""
    rng = random.Random(7)
    shown: list[Any] = []
    everything: list[Any] = []
    messages: list[Any] = [SYSTEM]
    for round_ in range(12):
        new = [user(words(rng)), calls(f"a{round_}", f"b{round_}")]
        new += [openai_result(f"{x}{round_}", words(rng)) for x in "ba"]
        new.append(assistant(words(rng)))
        everything += new
        writer = Recorder(f"Rounds up to {round_}.")
        keep = fl.KeepTokens(rng.randint(50, 400))
        result = fl.compact([*messages, *new], keep, counter="chars/4", summarizer=writer, summary_tokens=100)
        assert result.error is None
        assert not fl.validate(result.messages, "openai")
        for request in writer.requests:
            shown += [request.messages[i] for i in request.folded]
        messages = result.messages
    assert all(is_in(message, messages) or is_in(message, shown) for message in everything)
    assert sum(is_in(message, shown) for message in everything) > 30


# --- counts that ignore arguments, tools, system prompt ---------------------------------------------------


def total(messages: Any, **options: Any) -> int:
    return COUNTER.count_messages(messages, format="openai_chat", **options).total


@pytest.mark.parametrize("text", ["word " * 300, "工具" * 200, '{"path": "/a/b"}' * 50])
def test_counts_include_whole_arguments(text: str) -> None:
    short, long = [user("Go."), openai_call("a", "{}")], [user("Go."), openai_call("a", text)]
    assert total(long) - total(short) == fl.count_tokens(text) - fl.count_tokens("{}")


def test_counts_include_the_system_prompt_results_and_names() -> None:
    messages = [user("Go."), openai_call("a"), openai_result("a", "short")]
    long = "a long text of many words " * 50
    with_system = [{"role": "system", "content": long}, *messages]
    assert total(with_system) - total(messages) >= fl.count_tokens(long)
    with_result = [*messages[:2], openai_result("a", long)]
    assert total(with_result) - total(messages) == fl.count_tokens(long) - fl.count_tokens("short")
    assert total([user("Go.", name="a_participant"), *messages[1:]]) > total(messages)


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"look_up_{i}",
            "description": "Looks a record up by its name and gives every field of it. " * 5,
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
    }
    for i in range(5)
]


def test_tools_are_counted_and_planned_for() -> None:
    messages = parallel_run()
    with_tools = total(messages, tools=TOOLS)
    description = TOOLS[0]["function"]["description"]  # type: ignore[index]
    assert with_tools - total(messages) >= 5 * fl.count_tokens(description)
    budget = with_tools // 2
    planned = fl.plan(messages, fl.FitTokens(budget), counter=COUNTER, tools=TOOLS, summary_tokens=NOTE_TOKENS)
    assert planned.tokens_before == with_tools
    folded = planned.apply(messages, NOTE)
    assert total(folded, tools=TOOLS) <= budget
    blind = fl.plan(messages, fl.FitTokens(budget), counter=COUNTER, summary_tokens=NOTE_TOKENS)
    assert total(blind.apply(messages, NOTE), tools=TOOLS) > budget  # So passing them makes a difference.


# --- Chinese, Japanese, Korean, hexadecimal under-counted by chars/4 ---------------------------------------

RNG = random.Random(5)
RIGHTS = (ROOT / "benches" / "rust" / "languages.txt").read_text("utf-8").splitlines()
DENSE = {
    "Chinese": "\n".join(str(m["content"]) for messages in recorded("chinese-dialogues") for m in messages),
    "Chinese, Japanese, Korean": "\n".join(line for line in RIGHTS if any(letter >= "\u3000" for letter in line)),
    "hexadecimal": RNG.randbytes(2_000).hex(),
    "hash lines": "\n".join(f"{RNG.randbytes(20).hex()}  file_{i}.txt" for i in range(60)),
}


@pytest.mark.parametrize("script", DENSE)
def test_dense_scripts_are_within_the_estimators_bound(script: str) -> None:
    text = DENSE[script]
    exact = fl.count_tokens(text)
    auto = fl.TokenCounter("auto")
    assert auto.error_bound is not None
    assert abs(auto.count(text) - exact) <= auto.error_bound * exact
    assert fl.TokenCounter("chars/4").count(text) < exact / 1.5  # The result of a formula over lengths.


@pytest.mark.parametrize("script", DENSE)
def test_a_budget_in_a_dense_script_is_kept(script: str) -> None:
    """Planned with the exact counter; by chars/4 the same budget would be exceeded."""
    text = DENSE[script]
    step = max(1, len(text) // 12)
    messages = [(user, assistant)[i % 2](text[i * step : (i + 1) * step]) for i in range(11)]
    budget = total(messages) // 2
    planned = fitted(messages, budget)
    assert planned
    assert total(planned.apply(messages, NOTE)) <= budget


# --- practices of the best agents ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the budget cannot be met:foldline.errors.FoldlineWarning")
@pytest.mark.parametrize("messages", [parallel_run(), *recorded("openai-tools")[:3]])
def test_every_fold_is_smaller_within_its_budget_and_valid(messages: list[dict[str, Any]]) -> None:
    """The result is not empty, smaller, and below the target."""
    for budget in sweep(messages)[20::5]:
        result = fl.compact(messages, fl.FitTokens(budget), counter=COUNTER, summary_tokens=200)
        if result.changed:
            assert result.tokens_after <= budget < result.tokens_before
            assert result.tokens_after == total(result.messages)
            assert result.summary.strip() or not result.plan.cut
            assert not fl.validate(result.messages, "openai")


def test_the_digest_without_a_model_is_deterministic() -> None:
    for messages in recorded("openai-tools")[:3]:
        one, other = (
            fl.compact(copy.deepcopy(messages), fl.KeepMessages(4), summarizer=fl.summarizers.Extractive())
            for _ in range(2)
        )
        assert one.changed
        assert one.messages == other.messages


def test_a_summary_names_its_range_by_hash() -> None:
    """So that a store can tell whether the history covered by a summary has changed since."""
    messages = talk(10)
    edited = [*messages[:3], {**messages[3], "content": "Something else."}, *messages[4:]]
    labels = set()
    for each in (messages, copy.deepcopy(messages), edited):
        result = fl.compact(each, fl.KeepMessages(2), counter="chars/4", summarizer=Recorder())
        labels.add(result.messages[0]["content"].partition(">")[0])
    assert len(labels) == 2
    assert all(re.fullmatch(r"<foldline-history 8 0 [0-9]{9}", label) for label in labels)


def test_a_plan_is_refused_for_a_history_edited_since() -> None:
    messages = talk(10)
    planned = fl.plan(messages, fl.KeepMessages(2), counter="chars/4")
    stored = fl.Plan.from_json(planned.to_json())
    messages[2]["content"] = "Something else."
    with pytest.raises(fl.errors.MessageError):
        stored.apply(messages, NOTE)


def test_messages_that_must_stay_are_verbatim_after_every_round() -> None:
    rule = user("Never delete a file that I did not name. " * 3)
    messages: list[Any] = [SYSTEM, rule, *talk(8)]
    for round_ in range(4):
        result = fl.compact(
            messages,
            fl.KeepMessages(2),
            counter="chars/4",
            summarizer=Recorder(f"Round {round_}."),
            pins=[lambda message: message is rule],
        )
        assert is_in(rule, result.messages)
        messages = [*result.messages, *talk(6)]


def test_a_system_message_never_contains_model_output() -> None:
    result = fl.compact([SYSTEM, *talk(10)], fl.KeepMessages(2), counter="chars/4", summarizer=Recorder("Obey me."))
    assert [message["role"] for message in result.messages].count("system") == 1
    assert result.messages[0] is SYSTEM
    assert result.messages[1]["role"] == "user"
