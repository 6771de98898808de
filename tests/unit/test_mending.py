"""Check and mend: every summary is checked against the evidence, by `compact` and by strategies the same way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import foldline as fl
from facts import FACTS, session_with_facts
from foldline.errors import SummaryError
from foldline.folding._finish import MEND_SHARE, target_for
from foldline.strategies import Pipeline, StrategyRequest, Summarize
from foldline.summarizers import Completion, Extractive
from foldline.testing import FakeModel, FakeSummarizer
from foldline.triggers import MessageCount
from unit.samples import WORDS, assistant, openai_call, openai_result, talk, user

COUNTER = fl.TokenCounter("chars/4")
HEADING = "## Kept from the originals"


def work() -> list[Any]:
    """A task with constraints, files, an error and numbers; long enough for a summary to pay."""

    def step(id: str, name: str, arguments: dict[str, Any], result: str) -> list[Any]:
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        return [assistant(None, tool_calls=[call]), openai_result(id, result)]

    return [
        user("Add the flag --dry-run to src/cli.py. You must not touch the API. " + "Mind the rest. " * 40),
        *step("a", "Read", {"file_path": "src/cli.py"}, "def main(): ...\n" * 60),
        *step("b", "Edit", {"file_path": "src/cli.py", "old_string": "a", "new_string": "b"}, "ok"),
        *step("c", "Bash", {"command": "pytest tests/test_cli.py"}, "FAILED tests/test_cli.py::test_dry - boom\n" * 30),
        user("Use port 8443, and never push to main. " + "Please go on. " * 40),
        assistant("I will. " * 60),
        user("Now the docs."),
    ]


def mended(summary: Any, **options: Any) -> fl.FoldResult:
    options = {"counter": COUNTER, "summary_tokens": 600, **options}
    summarizer = summary if callable(summary) or hasattr(summary, "summarize") else (lambda _: summary)
    result = fl.compact(work(), fl.KeepMessages(1), summarizer=summarizer, **options)
    assert result.error is None, result.error
    return result


def by_strategy(summary: Any, **options: Any) -> fl.CompactionResult:
    strategy = Summarize(lambda _: summary, fl.KeepMessages(1), summary_tokens=600, **options)
    result = fl.Compactor(MessageCount(1), strategy, counter=COUNTER).compact(work())
    assert result.error is None, result.error
    return result


CALLERS: dict[str, Callable[..., Any]] = {"compact": mended, "Summarize": by_strategy}


@pytest.mark.parametrize("caller", CALLERS)
def test_missing_facts_are_added_after_a_summary_without_headings(caller: str) -> None:
    result = CALLERS[caller]("Something with a flag.")
    assert result.summary.startswith("Something with a flag.\n\n" + HEADING)
    for fact in ("You must not touch the API.", "never push to main", "src/cli.py", "8443"):
        assert fact in result.summary
    assert result.evidence is not None
    assert {item["kind"] for item in result.evidence["added"]} >= {"constraint"}
    assert result.summary in result.messages[0]["content"]
    assert all(
        set(item) >= {"kind", "text", "message", "weight", "tokens"}
        for key in ("kept", "added", "dropped")
        for item in result.evidence[key]
    )


@pytest.mark.parametrize("caller", CALLERS)
def test_missing_facts_go_under_the_headings_of_the_summary(caller: str) -> None:
    headings = ("## Current request", "## Rules and decisions of the user", "## Open problems", "## Next steps")
    text = "\n\n".join(f"{heading}\n- Something." for heading in (*headings, "## Files", "## Commands", "## Names"))
    summary = CALLERS[caller](text).summary
    rules = summary.partition(headings[1])[2].partition("##")[0]
    assert "You must not touch the API." in rules
    assert "never push to main" in rules
    assert "src/cli.py" in summary.partition("## Files")[2].partition("##")[0]
    assert "8443" in summary.partition("## Names")[2]
    assert [summary.count(heading) for heading in headings] == [1, 1, 1, 1]
    assert HEADING not in summary


def test_compact_and_a_strategy_mend_the_same_way() -> None:
    one, other = mended("Something with a flag."), by_strategy("Something with a flag.")
    assert one.summary == other.summary
    assert one.evidence == other.evidence


def test_evidence_lists_the_facts_found_and_their_fate() -> None:
    evidence = mended("Something.").evidence
    assert evidence is not None
    own = mended(Extractive()).evidence
    assert own is not None
    assert set(own) - {"kept", "dropped"} <= set(evidence)
    assert any(each["path"] == "src/cli.py" for each in evidence["files"])


def test_present_facts_are_not_added_again() -> None:
    first = mended("Something.")
    second = mended(first.summary)
    assert second.summary.strip() == first.summary.strip()
    assert second.evidence is not None
    assert first.evidence is not None
    assert second.evidence["added"] == []
    assert len(second.evidence["kept"]) == len(first.evidence["kept"]) + len(first.evidence["added"])


@pytest.mark.parametrize("summary_tokens", [60, 90, 120, 200, 400, 800])
def test_added_facts_fit_into_the_room(summary_tokens: int) -> None:
    result = mended("Something.", summary_tokens=summary_tokens)
    assert isinstance(result.plan, fl.Plan)
    assert result.tokens_after - result.plan.tokens_kept <= summary_tokens
    budget = 100 + summary_tokens
    fitted = fl.compact(
        work(), fl.FitTokens(budget), summarizer=lambda _: "Short.", counter=COUNTER, summary_tokens=summary_tokens
    )
    assert fitted.error is None
    assert fitted.changed
    assert fitted.tokens_after <= budget


def test_facts_without_room_are_reported_as_dropped() -> None:
    tight, wide = mended("Something.", summary_tokens=100), mended("Something.", summary_tokens=900)
    assert tight.evidence is not None
    assert wide.evidence is not None
    assert tight.evidence["dropped"]
    assert wide.evidence["dropped"] == []
    texts = [
        {item["text"] for key in ("kept", "added", "dropped") for item in each.evidence[key]} for each in (tight, wide)
    ]  # type: ignore[index]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("caller", CALLERS)
def test_mending_can_be_turned_off(caller: str) -> None:
    result = CALLERS[caller]("Something.", mend=False)
    assert result.summary == "Something."
    assert result.evidence is None


def test_extractive_is_not_mended() -> None:
    for mend in (True, False):
        result = mended(Extractive(), mend=mend)
        assert HEADING not in result.summary
        assert result.evidence is not None
        assert result.evidence["added"] == []


def test_a_completion_with_its_own_evidence_is_not_mended() -> None:
    evidence = {"files": []}
    result = mended(lambda _: Completion("Something.", evidence=evidence))
    assert (result.summary, result.evidence) == ("Something.", evidence)


def test_a_mended_summarizer_gets_four_fifths_of_the_room() -> None:
    assert MEND_SHARE == 0.2
    assert [target_for(n, mend=True) for n in (1, 4, 5, 1_000)] == [1, 4, 4, 800]
    assert target_for(1_000, mend=False) == 1_000
    for mend in (True, False):
        summarizer = FakeSummarizer("So far.")
        mended(summarizer, mend=mend)
        (request,) = summarizer.requests
        assert request.target_tokens == target_for(request.max_tokens, mend=mend)


def test_a_split_turn_is_mended_once_after_both_parts() -> None:
    steps = [each for i in range(6) for each in (openai_call(f"c{i}"), openai_result(f"c{i}", "r" * 600))]
    messages = [user("You must not touch the API. " + WORDS), assistant(), user("Never push to main."), *steps]
    summarizer = FakeSummarizer("History.", "Beginning.")
    outcome = Summarize(summarizer, fl.KeepTokens(300)).run(messages, StrategyRequest(counter=COUNTER))
    assert outcome.summary.count(HEADING) == 1
    before, _, behind = outcome.summary.partition(HEADING)
    assert before.startswith("History.")
    assert before.strip().endswith("Beginning.")
    assert "You must not touch the API." in behind
    assert "Never push to main." in behind


def test_an_earlier_summary_without_room_for_a_split_turn_is_rewritten() -> None:
    """Facts were added to it until its room was full."""
    steps = [each for i in range(8) for each in (openai_call(f"c{i}"), openai_result(f"c{i}", "r" * 600))]
    summarizer = FakeSummarizer("History. " + "word " * 200, "The same, shorter.", "Beginning.")
    strategy = Summarize(summarizer, fl.KeepTokens(300), summary_tokens=400)
    request = StrategyRequest(counter=COUNTER)
    first = strategy.run([user("Never push to main. " + WORDS), *talk(12), user("go on"), assistant()], request)
    summary = [message for message, source in zip(first.messages, first.sources) if source is None]
    second = strategy.run([*summary, user("Next task."), *steps], request)
    assert [each.part for each in summarizer.requests] == ["whole", "history", "turn_prefix"]
    assert summarizer.requests[1].previous_summary == first.summary.strip()
    assert second.summary.startswith("The same, shorter.\n\n## Beginning of the current turn\n\nBeginning.")
    assert "Never push to main." in second.summary


def test_half_of_a_split_turn_over_the_whole_room_is_refused_without_the_second_call() -> None:
    steps = [each for i in range(8) for each in (openai_call(f"c{i}"), openai_result(f"c{i}", "r" * 600))]
    summarizer = FakeSummarizer("and so on " * 300, "Beginning.")
    strategy = Summarize(summarizer, fl.KeepTokens(300), summary_tokens=400)
    with pytest.raises(SummaryError) as caught:
        strategy.run([*talk(12), user("go on"), assistant(), *steps], StrategyRequest(counter=COUNTER))
    assert caught.value.code == "summary_over_limit"
    assert [each.part for each in summarizer.requests] == ["history"]


def test_a_pipeline_and_a_shape_pass_the_evidence_on() -> None:
    strategy = Summarize(lambda _: "Something.", fl.KeepMessages(1), summary_tokens=600)
    clear = fl.strategies.ClearToolResults(fl.KeepMessages(20))
    result = fl.Compactor(MessageCount(1), Pipeline(clear, strategy), counter=COUNTER).compact(work())
    assert result.evidence is not None
    assert result.evidence["added"]
    before = Pipeline(
        Summarize(lambda _: "Something.", fl.KeepMessages(5), summary_tokens=600),
        fl.strategies.ClearToolResults(fl.KeepMessages(3)),
    )
    cleared = fl.Compactor(MessageCount(1), before, counter=COUNTER).compact(work())
    assert cleared.steps == ("Summarize", "ClearToolResults")
    assert cleared.evidence is not None
    assert cleared.evidence["added"]
    shaped = fl.presets.budgeted(lambda _: "Something.", 4_000, preserve=0.1, max_output_tokens=100)
    result = shaped.compact(work(), force=True)
    assert result.messages[0]["content"].startswith("[COMPACT SUMMARY]\nSomething.\n\n" + HEADING)
    assert result.evidence is not None
    assert result.evidence["added"]


def test_added_facts_survive_the_next_fold() -> None:
    """Whatever the next model writes, and although the original message is gone."""
    first = mended("Something.")
    model = FakeModel("Something else.")
    again = fl.compact(
        [*first.messages, *talk(6)], fl.KeepMessages(1), summarizer=model, counter=COUNTER, summary_tokens=900
    )
    assert again.error is None
    assert "You must not touch the API." in again.summary
    assert "never push to main" in again.summary
    assert again.summary.count(HEADING) == 1


@pytest.mark.parametrize("name", ["gent", "reserve", "budgeted", "layer"])
def test_presets_mend_unless_disabled(name: str) -> None:
    options: Any = {"keep_recent_tokens": 20} if name == "reserve" else {"keep_messages": 1} if name == "layer" else {}
    for mend in (True, False):
        result = getattr(fl.presets, name)(lambda _: "Something.", mend=mend, **options).compact(work(), force=True)
        assert result.changed
        assert (HEADING in result.summary) is mend
    settings = fl.config.load({"compaction": {"preset": name, "mend": False}})
    assert "mend" in settings.options
    with pytest.raises(fl.errors.ConfigError) as caught:
        fl.config.load({"compaction": {"preset": name, "mend": 1}})
    assert caught.value.path == "compaction.mend"


def test_the_event_loop_gives_the_same_result() -> None:
    import asyncio

    strategy = Summarize(FakeModel("Something."), fl.KeepMessages(1), summary_tokens=600)
    result = asyncio.run(fl.Compactor(MessageCount(1), strategy, counter=COUNTER).acompact(work()))
    assert result.summary == mended("Something.").summary


def test_mending_twice_is_idempotent() -> None:
    assert mended("Something.").summary == mended("Something.").summary


@pytest.mark.parametrize(("summary_tokens", "found"), [(450, 12), (600, 12)])
def test_twelve_facts_survive_an_empty_summary(summary_tokens: int, found: int) -> None:
    messages = session_with_facts()
    result = fl.compact(
        messages, fl.KeepMessages(1), summarizer=lambda _: "### Message 1", summary_tokens=summary_tokens
    )
    assert result.error is None
    assert sum(fact in result.summary for fact in FACTS) == found
    assert result.evidence is not None
    assert result.evidence["dropped"] == []
    assert result.tokens_after < result.tokens_before


def test_in_little_room_every_fact_is_in_the_summary_or_reported_as_dropped() -> None:
    result = fl.compact(
        session_with_facts(), fl.KeepMessages(1), summarizer=lambda _: "### Message 1", summary_tokens=250
    )
    assert result.evidence is not None
    missing = [fact for fact in FACTS if fact not in result.summary]
    dropped = " ".join(item["text"] for item in result.evidence["dropped"])
    assert missing
    assert [fact for fact in missing if fact not in dropped] == []
    assert fl.TokenCounter("o200k_base").count(result.summary) <= 250
