"""The invariants as functions of a module under test, a sample and a keep.

Each raises AssertionError if the invariant is broken and returns whether the case was relevant (a plan
that folds or changes something, a sample that was valid), so that a test can detect that it was vacuous.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from reference.model import BEDROCK, read, with_results
from reference.planner import CLEARED, MARKER, Keep, Planned
from reference.rules import Rules
from reference.validity import validate

from .strategies import Sample

SUMMARY: Final = "What happened so far."
GONE: Final = ("summarize", "drop")
ACTIONS: Final = frozenset({"keep", "pin", "clear", "shorten", "summarize", "drop"})


def public_keep(fl: Any, keep: Keep) -> Any:
    """A keep as an object of the module under test."""
    if keep.kind == "keep_fraction":
        return fl.KeepFraction(keep.amount, of=keep.of)
    names = {
        "keep_tokens": "KeepTokens",
        "keep_messages": "KeepMessages",
        "keep_turns": "KeepTurns",
        "keep_iterations": "KeepIterations",
        "fit_tokens": "FitTokens",
    }
    return getattr(fl, names[keep.kind])(int(keep.amount))


def ask(fl: Any, sample: Sample, keep: Keep) -> Any:
    """The plan, or the `Infeasible`, of the module under test."""
    return fl.plan(
        sample.messages,
        public_keep(fl, keep),
        counter=sample.counter,
        pins=list(sample.pins),
        summary_tokens=sample.summary_tokens,
        format=sample.format,
    )


def is_plan(fl: Any, answer: Any) -> bool:
    """Whether the answer is a plan."""
    return not isinstance(answer, fl.Infeasible)


def kept_of(plan: Any) -> list[int]:
    """The indexes that a plan keeps."""
    return [index for index, action in enumerate(plan.actions) if action not in GONE]


def fold(plan: Any, sample: Sample) -> tuple[list[Any], Any]:
    """The folded messages without the summary, and the summary message if there is one."""
    folded = [message for message in plan.apply(sample.messages, summary=SUMMARY) if not is_filler(message, sample)]
    if not plan.cut:
        return folded, None
    place = place_of_summary(plan, sample)
    return folded[:place] + folded[place + 1 :], folded[place]


def is_filler(message: Any, sample: Sample) -> bool:
    """Whether a message stands between two of one side, at a provider that requires that they take turns."""
    texts = {"user": "Go on.", "assistant": "Understood."}
    is_one = sample.format == BEDROCK and message["content"] == [{"text": texts.get(message["role"])}]
    return is_one and not any(message is old for old in sample.messages)


def place_of_summary(plan: Any, sample: Sample) -> int:
    """The index of the summary in the folded list."""
    before = sample.rules.summary_index(plan.cut)
    return sum(index < before for index in kept_of(plan))


# --- I1 to I3: kept messages -------------------------------------------------------------------------


def partition(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I1: every index once, kept or folded; pins (grown to groups), head and open groups stay."""
    plan = ask(fl, sample, keep)
    if not is_plan(fl, plan):
        return False
    rules, n = sample.rules, len(sample.messages)
    assert len(plan.actions) == len(plan.reasons) == n
    assert set(plan.actions) <= ACTIONS
    assert all(isinstance(reason, str) and reason for reason in plan.reasons)
    kept = kept_of(plan)
    gone = [index for index in range(n) if index not in kept]
    assert {index for index, action in enumerate(plan.actions) if action == "pin"} == rules.pinned
    assert {*rules.pinned, *rules.open, *range(rules.head)} <= set(kept)
    assert bool(plan.cut) == bool(gone)
    assert gone == [index for index in range(plan.cut) if rules.counting[index]]
    assert bool(plan) == any(action not in ("keep", "pin") for action in plan.actions)
    messages, summary = fold(plan, sample)
    assert len(messages) == len(kept)
    assert (summary is not None) == bool(gone)
    return bool(gone)


def identity(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I2: kept messages are the caller's own objects, in order; otherwise only contents of results differ."""
    before = copy.deepcopy(sample.messages)
    plan = ask(fl, sample, keep)
    if not is_plan(fl, plan):
        return False
    messages, _ = fold(plan, sample)
    kept = kept_of(plan)
    assert len(messages) == len(kept)
    assert sample.messages == before, "planning or applying changed the input"
    rules = sample.rules
    for index, new in zip(kept, messages, strict=True):
        old = sample.messages[index]
        if plan.actions[index] in ("keep", "pin"):
            assert new is old
            continue
        touched = rules.replaceable_results(index)
        blank = dict.fromkeys(touched, "")
        assert with_results(new, blank, sample.format) == with_results(old, blank, sample.format)
        assert list(new) == list(old) or "content" not in old
        contents = [result.content for result in read([new], sample.format)[0].results]
        was = read([old], sample.format)[0].results
        for ordinal in touched:
            if plan.actions[index] == "clear":
                assert contents[ordinal] == CLEARED
            else:
                assert _shortened("\n".join(was[ordinal].texts), was[ordinal].content, contents[ordinal])
    again = fl.Plan.from_json(plan.to_json())
    assert fold(again, sample) == fold(plan, sample)
    fields = ("cut", "turn_prefix", "actions", "reasons", "tokens_before", "tokens_kept", "floor")
    assert [getattr(again, name) for name in fields] == [getattr(plan, name) for name in fields]
    return bool(plan)


def _shortened(text: str, was: Any, now: Any) -> bool:
    """Whether a content is unchanged, the placeholder, or the head and tail of the text around the marker."""
    if now in (CLEARED, was):
        return True
    return any(now == text[: (k + 1) // 2] + MARKER + text[len(text) - k // 2 :] for k in range(1, len(text)))


def whole_groups(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I3: groups stay or go as a whole, open ones stay; the summary has its place, outside every group."""
    plan = ask(fl, sample, keep)
    if not is_plan(fl, plan):
        return False
    rules, kept = sample.rules, set(kept_of(plan))
    for group in rules.groups():
        assert kept.issuperset(group) or kept.isdisjoint(group)
    for index in rules.open:
        assert plan.actions[index] in ("keep", "pin")
    folded = list(plan.apply(sample.messages, summary=SUMMARY))
    if plan.cut:
        after = Rules(read(folded, sample.format))
        place = place_of_summary(plan, sample)
        # With everything before it folded, a compaction follows the instructions: then it is of the head.
        assert place == after.head or place == after.summary_index(place)
        assert after.is_summary(place)
        assert after.group(place) == [place]
        assert not any(group[0] < place < group[-1] for group in after.groups())
    return bool(plan.cut)


# --- I4, I5: budgets -------------------------------------------------------------------------------------


def sent(sample: Sample, messages: Sequence[Any]) -> int:
    """The cost of these messages by the oracle's counter, overhead included."""
    return sample.price.overhead() + sum(sample.price.message(message) for message in read(messages, sample.format))


def budget(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I4: a fit is within budget when counted again; if infeasible, no allowed cut fits."""
    plan = ask(fl, sample, keep)
    oracle = sample.planner
    if not is_plan(fl, plan):
        last = max(oracle.fitting_cuts())
        least = oracle.stays(last) - sum(
            oracle.saving(index) for index in [*oracle.clearable(last), *oracle.shortenable()]
        )
        reachable = [oracle.tokens_before, least]
        reachable += [oracle.stays(cut) for cut in oracle.fitting_cuts()]
        assert keep.kind == "fit_tokens"
        assert min(reachable) > keep.amount
        assert plan.floor == min(reachable)
        assert not plan
        assert isinstance(plan.why, str)
        return True
    messages, summary = fold(plan, sample)
    assert plan.tokens_kept == sent(sample, messages) - sample.price.overhead()
    assert plan.tokens_before == sent(sample, sample.messages)
    if keep.kind != "fit_tokens":
        return bool(plan.cut)
    reserve = sample.summary_tokens if summary is not None else 0
    assert sent(sample, messages) + reserve <= keep.amount
    assert plan.floor <= keep.amount
    return bool(plan)


def never_less(fl: Any, sample: Sample, keep: Keep) -> bool:
    """The other keeps: at least the requested amount stays, or nothing is folded."""
    plan = ask(fl, sample, keep)
    if keep.kind == "fit_tokens" or not plan.cut:
        return False
    oracle = sample.planner
    tail = range(plan.cut, oracle.n)
    tokens, messages = oracle.counted_tokens(tail), oracle.counted_messages(tail)
    turns = [turn for turn in oracle.rules.turns() if oracle.counted_messages(turn) and turn[0] >= plan.cut]
    groups = {oracle.rules.group_of[index] for index in tail if oracle.rules.counting[index]}
    everything = {"tokens": oracle.counted_tokens, "messages": oracle.counted_messages}[keep.of]
    reached = {
        "keep_tokens": tokens,
        "keep_messages": messages,
        "keep_turns": len(turns),
        "keep_iterations": len(groups),
        "keep_fraction": everything(tail),
    }[keep.kind]
    wanted = keep.amount * everything(range(oracle.n)) - 1e-9 if keep.kind == "keep_fraction" else keep.amount
    assert reached >= wanted
    return True


def same_as_oracle(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I5: every field of the answer equals the oracle's, synthesised texts included."""
    plan = ask(fl, sample, keep)
    expected = sample.planner.plan(keep)
    assert is_plan(fl, plan) == isinstance(expected, Planned), (plan, expected)
    assert plan.floor == expected.floor
    assert bool(plan) == bool(expected)
    if not isinstance(expected, Planned):
        return True
    for name in ("cut", "turn_prefix", "actions", "tokens_before", "tokens_kept"):
        found = getattr(plan, name)
        found = tuple(found) if isinstance(found, tuple) else found
        assert found == getattr(expected, name), name
    messages, _ = fold(plan, sample)
    for index, new in zip(kept_of(plan), messages, strict=True):
        if index in expected.shortened:
            assert new == with_results(sample.messages[index], expected.shortened[index], sample.format)
    return bool(plan)


# --- I6 to I8: repeated planning -------------------------------------------------------------------------


def idempotent(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I6: the folded messages, planned again, do not change while the summary is within its reserve."""
    plan = ask(fl, replace(sample, summary_tokens=0), keep)
    if keep.kind == "keep_fraction" or not is_plan(fl, plan) or not plan:
        return False
    _, summary = fold(plan, sample)
    size = sample.price.message(read([summary], sample.format)[0]) if summary else 0
    # A label may grow with its range; where the sides take turns, fillers are part of the reserve.
    filler = {"role": "assistant", "content": [{"text": "Understood."}]}
    fillers = 2 + 2 * len(sample.messages) if sample.format == BEDROCK else 0
    spare = fillers * sample.price.message(read([filler], BEDROCK)[0])
    sample = replace(sample, summary_tokens=size + 4 + spare)
    plan = ask(fl, sample, keep)
    if not is_plan(fl, plan) or not plan:
        return False
    folded = list(plan.apply(sample.messages, summary=SUMMARY))
    _, summary = fold(plan, sample)
    if summary and sample.price.message(read([summary], sample.format)[0]) > sample.summary_tokens:
        return False
    of_summary, kept = place_of_summary(plan, sample), kept_of(plan)
    summary = of_summary if plan.cut else None
    given = [new for new, message in enumerate(folded) if new != summary and not is_filler(message, sample)]
    place = dict(zip(kept, given, strict=True))
    pins = tuple(place[index] for index in sample.pins)
    again = ask(fl, replace(sample, messages=folded, pins=pins), keep)
    assert is_plan(fl, again)
    assert not again, (plan.cut, again.cut)
    assert list(again.apply(folded, summary=SUMMARY)) == folded
    return True


def monotone(fl: Any, sample: Sample, keeps: Sequence[Keep]) -> bool:
    """I7: with growing amounts of one keep, never fewer messages stay, and feasible stays feasible."""
    sizes = []
    for keep in keeps:
        plan = ask(fl, sample, keep)
        sizes.append(len(kept_of(plan)) if is_plan(fl, plan) else -1)
    assert sizes == sorted(sizes), list(zip(keeps, sizes, strict=True))
    return len(set(sizes)) > 1


def appended(fl: Any, sample: Sample, keep: Keep, new: dict[str, Any]) -> bool:
    """I8: an appended message that answers no earlier call never moves the cut back; it orphans nothing."""
    plan = ask(fl, sample, keep)
    if not is_plan(fl, plan):
        return False
    longer = sample.with_messages([*sample.messages, new])
    at = len(sample.messages)
    rules = longer.rules
    fixed = keep.kind not in ("keep_fraction", "fit_tokens")
    if fixed and rules.group(at) == [at]:
        after = ask(fl, longer, keep)
        assert after.cut >= plan.cut, (plan.cut, after.cut)
    folded = [*plan.apply(sample.messages, summary=SUMMARY), new]
    orphans_now = [ordinal for index, ordinal in rules.orphans() if index == at]
    later = Rules(read(folded, sample.format))
    orphans_later = [ordinal for index, ordinal in later.orphans() if index == len(folded) - 1]
    assert orphans_now == orphans_later
    return bool(plan.cut)


# --- I15 ---------------------------------------------------------------------------------------------------


def still_valid(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I15: if the input is valid for its provider, so is the folded list; both validators agree."""
    for messages in (sample.messages, ask_and_apply(fl, sample, keep)):
        found = {(problem.index, problem.code) for problem in fl.validate(messages, sample.provider)}
        assert found == set(validate(messages, sample.provider))
        if messages is sample.messages and found:
            return False
        assert not found
    return True


def ask_and_apply(fl: Any, sample: Sample, keep: Keep) -> list[Any]:
    """The folded messages, or the unchanged messages if infeasible."""
    plan = ask(fl, sample, keep)
    return list(plan.apply(sample.messages, summary=SUMMARY)) if is_plan(fl, plan) else sample.messages
