"""Training conversations in the form of ShareGPT, against the oracle: plans, folds, growth and detection."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from reference.model import SHAREGPT

from .invariants import ask, same_as_oracle
from .strategies import new_message, seeded
from .test_folds import floor, idempotent, tight

FORMATS = (SHAREGPT,)


def test_every_plan_equals_the_oracle(fl: Any, oracle_cases: int) -> None:
    seen: Counter[str] = Counter()
    for sample, keep in seeded(oracle_cases // 4, "sharegpt", formats=FORMATS):
        seen[keep.kind] += same_as_oracle(fl, sample, keep)
    assert all(seen.values())


def test_folds_are_within_their_budgets(fl: Any) -> None:
    seen: Counter[str] = Counter()
    for sample, keep in seeded(60, "sharegpt-folds", formats=FORMATS):
        seen["tight"] += tight(fl, sample, keep)
        seen["idempotent"] += idempotent(fl, sample, keep)
        floor(fl, sample, keep)
    assert min(seen.values()) > 20


def test_the_form_is_detected_in_every_list(fl: Any) -> None:
    for sample, keep in seeded(40, "sharegpt-auto", formats=FORMATS):
        if not sample.messages:
            continue
        assert fl.detect_format(sample.messages).format == SHAREGPT
        assert ask(fl, sample, keep).floor == sample.planner.floor()


def test_a_conversation_that_grows_is_planned_as_a_whole_one(fl: Any) -> None:
    rng = random.Random("sharegpt-grows")
    for sample, keep in seeded(8, "sharegpt-live", formats=FORMATS):
        live = fl.Transcript(sample.messages, counter=fl.TokenCounter(sample.counter), format=SHAREGPT)
        grown = sample
        for _ in range(3):
            message = new_message(rng, grown)
            live.append(message)
            grown = grown.with_messages([*grown.messages, message])
        whole = fl.Transcript(grown.messages, counter=fl.TokenCounter(sample.counter), format=SHAREGPT)
        assert live.total_tokens == whole.total_tokens == grown.planner.tokens_before, keep


ROLES = {"human": "user", "gpt": "assistant", "observation": "tool"}


def test_the_same_calls_under_role_and_content_form_the_same_groups(fl: Any) -> None:
    """Messages of a role and a content, in which Hermes and Qwen models write their calls, too."""
    paired = 0
    for sample, _ in seeded(300, "hermes", formats=FORMATS):
        if not sample.messages or any(each["from"] == "function_call" for each in sample.messages):
            continue
        chat = [{"role": ROLES.get(each["from"], each["from"]), "content": each["value"]} for each in sample.messages]
        found, expected = fl.analyze(chat, format="openai_chat"), fl.analyze(sample.messages, format=SHAREGPT)
        for name in ("head", "groups", "turns", "open_calls", "orphan_results", "legal_cuts"):
            assert getattr(found, name) == getattr(expected, name), (name, chat)
        paired += sum(len(group) > 1 for group in found.groups)
    assert paired > 50
