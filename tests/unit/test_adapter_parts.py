"""What adapters need of the rest: alternation, folds kept elsewhere, ended attempts; their shared part."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

import foldline as fl
from foldline.compactor import _outcomes
from foldline.compactor.events import AttemptEnded
from foldline.integrations._codec import Codec, Dicts
from foldline.integrations._folder import Folder
from foldline.integrations._options import compactor_for, pins_for
from foldline.typing import Message

# --- Alternation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda alternate: fl.strategies.Summarize(keep=fl.KeepMessages(2), alternate=alternate),
        lambda alternate: fl.strategies.TruncateOldest(fl.KeepMessages(2), alternate=alternate),
        lambda alternate: fl.strategies.SlidingWindow(2, alternate=alternate),
    ],
    ids=["Summarize", "TruncateOldest", "SlidingWindow"],
)
def test_strategies_keep_the_alternation_of_a_list(make: Any) -> None:
    roles = ["user", "assistant"] * 6
    messages = [{"role": role, "content": f"{i} " + "word " * 80} for i, role in enumerate(roles)]
    request = fl.strategies.StrategyRequest(pins=(4,))
    plain, alternating = (make(alternate).run(messages, request).messages for alternate in (False, True))
    assert fl.validate(alternating, "openai", alternate=True) == []
    assert fl.validate(plain, "openai", alternate=True) != []


# --- Folds kept elsewhere -----------------------------------------------------------------------------


def history(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"Step {i}. " + "word " * 80} for i in range(count)]


def compactor(summarize: Any = None, **options: Any) -> fl.Compactor:
    return fl.Compactor(fl.triggers.MessageCount(8), fl.strategies.Summarize(summarize, keep_recent=2), **options)


@pytest.mark.parametrize("session", [None, "s"])
def test_a_fold_can_be_kept_elsewhere_and_given_back(session: str | None) -> None:
    first = compactor().prepare(history(9), session=session)
    assert first.fold is not None

    def refuse(messages: Any) -> str:
        raise AssertionError

    later = compactor(refuse)
    later.restore([first.fold], session=session)
    again = later.prepare(history(10), session=session)
    assert again.messages[:3] == first.messages
    assert again.outcome == "folded"
    assert again.fold == first.fold


def test_a_fold_of_another_history_does_no_harm() -> None:
    first = compactor().prepare(history(9), session="s")
    assert first.fold is not None
    later = compactor()
    later.restore([first.fold, first.fold], session="s")
    other = [{"role": "user", "content": "Hello."}]
    assert later.prepare(other, session="s").messages == other
    with pytest.raises(fl.errors.StoreError):
        later.restore(["{}"], session="s")
    with pytest.raises(fl.errors.StoreError, match="not a stored fold"):
        later.restore(["[" * 100_000], session="s")


def test_restoring_never_waits_for_a_call() -> None:
    first = compactor().prepare(history(9), session="s")
    fold = first.fold
    assert fold is not None
    each = compactor()
    found = each._histories.history("s", ())
    with found.lock:
        each.restore([fold], session="s")  # a call that waits would never end
    each._histories.leave(found)
    assert found.folds == []


# --- Ended attempts -----------------------------------------------------------------------------------


def test_every_attempt_ends_once() -> None:
    ended: list[AttemptEnded] = []
    each = compactor(lambda messages: "Steps were done.")
    stop = each.watch(ended.append)
    each.prepare(history(3), session="s")
    assert ended == []
    done = each.prepare(history(9), session="s")
    (attempt,) = ended
    assert (attempt.outcome, attempt.reason, attempt.session, attempt.round) == ("folded", "message_count", "s", 1)
    assert attempt.tokens_saved == done.tokens_before - done.tokens_after
    assert attempt.floor == done.floor
    assert attempt.counter_kind == "exact"
    assert attempt.calls == 1
    assert "Step" not in json.dumps(attempt.as_dict())
    stop()
    each.prepare(history(20), session="s")
    assert len(ended) == 1


@pytest.mark.parametrize("policy", ["unchanged", "raise", "truncate"])
def test_a_failed_attempt_ends_with_the_code(policy: Any) -> None:
    def fail(messages: Any) -> str:
        raise RuntimeError("secret")

    ended: list[AttemptEnded] = []
    each = compactor(fail, on_failure=policy)
    each.watch(ended.append)
    if policy == "raise":
        with pytest.raises(fl.errors.FoldlineError):
            asyncio.run(each.acompact(history(9)))
    else:
        with pytest.warns(fl.errors.FoldlineWarning):
            asyncio.run(each.acompact(history(9)))
    (attempt,) = ended
    assert attempt.error == "summarizer_failed"
    assert attempt.outcome == ("fallback" if policy == "truncate" else "failed")
    assert "secret" not in str(attempt)


def test_a_veto_ends_the_attempt() -> None:
    ended: list[AttemptEnded] = []
    each = compactor(hooks={"before": lambda event: False})
    each.watch(ended.append)
    each.compact(history(9))
    assert [(attempt.outcome, attempt.reason) for attempt in ended] == [("unchanged", "vetoed")]


def test_the_price_is_known_where_the_package_and_the_model_are() -> None:
    pytest.importorskip("genai_prices")
    ended: list[AttemptEnded] = []
    answer = fl.summarizers.Completion("Done.", "gpt-4o", 1_000_000, 0, "stop")
    each = compactor(lambda messages: answer)
    each.watch(ended.append)
    each.compact(history(9))
    assert ended[0].cost_usd is not None
    assert 0.5 < ended[0].cost_usd < 50


def test_an_attempt_that_nobody_watches_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[Any] = []
    monkeypatch.setattr(_outcomes, "attempt_of", lambda *parts: described.append(parts))
    each = compactor(lambda messages: "Steps were done.")
    assert each.prepare(history(9), session="s").event is not None
    assert described == []
    each.watch(lambda attempt: None)
    each.prepare(history(20), session="s")
    assert len(described) == 1


# --- The shared part of adapters ----------------------------------------------------------------------


class Box:
    """A message of a framework: some texts in one object."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts


class Boxes(Codec):
    format = "openai_chat"

    def __init__(self) -> None:
        self.conversions = 0

    def dicts(self, message: Box) -> list[Message]:
        self.conversions += 1
        return [{"role": "user", "content": text} for text in message.texts]

    def summary(self, message: Message) -> Box:
        return Box(message["content"])

    def edited(self, original: Box, dicts: Any, kept: Any) -> Box:
        return Box(*(each["content"] for _, each in kept))


def boxes(count: int) -> list[Box]:
    return [Box(f"{i} " + "word " * 60, f"{i} again " + "word " * 60) for i in range(count)]


def test_kept_objects_come_back_and_are_converted_once() -> None:
    codec, messages = Boxes(), boxes(5)
    folder = Folder(codec, compactor())
    folded = folder.fold(messages, session="s")
    assert folded.changed
    assert folded.messages[-1] is messages[-1]
    assert len(folded.messages) == 2
    messages.append(Box("More."))
    again = folder.fold(messages, session="s")
    assert codec.conversions == 6
    assert again.messages[0] is folded.messages[0], "the same summary object"
    assert again.messages[1:] == messages[4:]


def test_an_object_whose_attribute_was_replaced_is_converted_again() -> None:
    codec, messages = Boxes(), boxes(3)
    folder = Folder(codec, compactor())
    folder.fold(messages, session="s")
    messages[1].texts = ("New.",)
    folder.fold(messages, session="s")
    assert codec.conversions == 4


def test_a_cut_within_an_object_splits_a_copy() -> None:
    messages = boxes(5)
    strategy = fl.strategies.Summarize(keep=fl.KeepMessages(3), summary_tokens=200)
    folder = Folder(Boxes(), fl.Compactor(fl.triggers.MessageCount(8), strategy))
    folded = folder.fold(messages, session="s")
    assert [len(box.texts) for box in folded.messages] == [1, 1, 2]
    assert folded.edited == [folded.messages[1]]
    assert folded.messages[1].texts == messages[3].texts[1:]
    assert len(messages[3].texts) == 2


def test_a_pin_is_asked_about_the_object_and_never_about_a_summary() -> None:
    seen: list[Any] = []

    def pinned(box: Any) -> bool:
        seen.append(box)
        return box.texts[0].startswith("0 ")

    messages = boxes(5)
    folder = Folder(Boxes(), compactor(), [pinned])
    folded = folder.fold(messages, session="s")
    assert messages[0] in folded.messages
    assert all(type(box) is Box for box in seen)
    assert all(any(box is each for each in messages) for box in seen)


def test_a_message_that_cannot_be_read_leaves_the_list_unchanged() -> None:
    messages = [{"role": "user", "content": object()}]
    folder = Folder(Dicts("openai_chat"), compactor())
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        folded = asyncio.run(folder.afold(messages))
    assert folded.messages == messages
    assert folded.error is not None
    raising = Folder(Dicts("openai_chat"), compactor(on_failure="raise"))
    with pytest.raises(fl.errors.MessageError):
        raising.fold(messages)


class Compactions:
    """A store of compactions alone."""

    def save_compaction(self, event: Any) -> None:
        """Keeps nothing."""


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(fl.errors.ConfigError, match="give a model or a compactor"):
        compactor_for()
    with pytest.raises(fl.errors.ConfigError, match="cannot be combined with compactor"):
        compactor_for(compactor=compactor(), model="gpt-4o")
    with pytest.raises(fl.errors.ConfigError, match="save_fold"):
        compactor_for(model="gpt-4o", store=Compactions())  # type: ignore[arg-type]
    with pytest.raises(fl.errors.ConfigError, match="predicates"):
        pins_for([3])


def test_importing_the_adapters_imports_no_framework() -> None:
    code = """
import sys
import foldline as fl
names = set(dir(fl.integrations))
frameworks = {"agents", "crewai", "google.adk", "langchain", "langchain_core", "litellm", "pydantic_ai"}
frameworks |= {"opentelemetry"}
print(sorted(set(fl.integrations.__all__) - names), sorted(frameworks & set(sys.modules)), fl.telemetry.__name__)
print(sorted(frameworks & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["[]", "[]", "foldline.telemetry", "[]"]
    with pytest.raises(AttributeError, match="no attribute 'lang'"):
        _ = fl.integrations.lang
