"""I15 for strict chat templates: with `alternate`, folding alternating messages gives alternating messages."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import foldline as fl
from reference.history import LABEL
from reference.planner import Keep

from .invariants import SUMMARY, ask, is_plan, place_of_summary
from .strategies import SENT, Sample, random_keeps, random_sample, samples

FILLERS = ("Understood.", "Go on.")


def alternating(sample: Sample) -> Sample:
    """The same conversation in turns."""
    repaired = fl.repair(sample.messages, sample.provider, alternate=True)
    assert not repaired.problems
    pins = tuple(sorted({pin for pin in sample.pins if pin < len(repaired.messages)}))
    return Sample(sample.format, repaired.messages, pins, sample.summary_tokens, sample.counter)


def still_alternates(sample: Sample, keep: Keep) -> bool:
    """The folded list validates; kept messages are the same objects in order, plus fillers."""
    plan = ask(fl, sample, keep)
    if not is_plan(fl, plan):
        return False
    plain = plan.apply(sample.messages, summary=SUMMARY)
    folded = plan.apply(sample.messages, summary=SUMMARY, alternate=True)
    assert fl.validate(folded, sample.provider, alternate=True) == []
    if not plan.cut:
        assert folded == plain
        return False
    kept = [message for message in folded if text_of(message) not in FILLERS]
    expected = [message for message in plain if text_of(message) not in FILLERS]
    place = place_of_summary(plan, sample)
    assert kept[:place] + kept[place + 1 :] == expected[:place] + expected[place + 1 :]
    # The label counts the fillers between the summary and the first message after the cut.
    (covered, carried, *said), (*of_plain,) = labelled(kept[place]), labelled(expected[place])
    kept_on = sample.messages[plan.cut :]
    fillers = fillers_between(folded, kept[place], kept_on) - fillers_between(plain, expected[place], kept_on)
    assert [covered, carried - fillers, *said] == of_plain
    assert sum(any(new is old for old in sample.messages) for new in folded) >= sum(
        any(new is old for old in sample.messages) for new in plain
    )
    return len(folded) > len(plain)


def fillers_between(messages: list[Any], summary: Any, kept_on: list[Any]) -> int:
    """The fillers after a summary and before the first of the messages after the cut."""
    after = messages[messages.index(summary) + 1 :]
    first = next((i for i, message in enumerate(after) if any(message is each for each in kept_on)), len(after))
    return sum(text_of(message) in FILLERS for message in after[:first])


def labelled(message: dict[str, Any]) -> tuple[int, int, str, str]:
    """The parts of a summary: messages covered, messages carried, hash, text."""
    label = LABEL.fullmatch(text_of(message))
    assert label
    return int(label[1]), int(label[2]), label[3], label[4]


def text_of(message: dict[str, Any]) -> Any:
    """The text of a message that consists only of text."""
    content = message.get("content", message.get("parts"))
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        return content[0].get("text")
    return content


@given(sample=samples(valid=True, formats=SENT), data=st.data())
def test_I15_alternate(sample: Sample, data: st.DataObject) -> None:
    """Drawn by hypothesis."""
    sample = alternating(sample)
    rng = random.Random(data.draw(st.integers(0, 1_000)))
    still_alternates(sample, data.draw(st.sampled_from(random_keeps(rng, sample))))


def test_I15_alternate_seeded() -> None:
    """Many, of every provider; some need a filler."""
    filled: dict[str, int] = {}
    for number in range(600):
        rng = random.Random(f"alternate-{number}")
        sample = alternating(random_sample(rng, valid=True, formats=SENT))
        for keep in random_keeps(rng, sample):
            filled[sample.provider] = filled.get(sample.provider, 0) + still_alternates(sample, keep)
    assert set(filled) == {"openai", "responses", "anthropic", "gemini", "bedrock"}
    # Bedrock alternates in any case: `alternate` adds nothing.
    assert all(count for provider, count in filled.items() if provider != "bedrock")


def test_I6_fillers_are_not_folded_again() -> None:
    """Folding an alternating fold again would fold only a summary and its filler, so it is not done."""
    messages = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "word " * 40} for i in range(9)]
    plan = fl.plan(messages, fl.KeepMessages(3), counter="chars/4")
    folded = plan.apply(messages, summary=SUMMARY, alternate=True)
    assert [message["role"] for message in folded] == ["user", "assistant", "user", "assistant", "user"]
    again = fl.plan(folded, fl.KeepMessages(3), counter="chars/4")
    assert not again
