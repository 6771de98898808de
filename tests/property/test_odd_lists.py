"""I20: an odd part never stops a list, whole or message by message; and whatever is broken becomes valid by repair.

The lists are recorded ones with odd values in them (`odd_lists`); for the libraries that no recording is of, written
ones.
"""

from __future__ import annotations

import copy
import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import foldline as fl
from depth import cases

from .odd_lists import broken, recorded, with_odd_values
from .strategies import PROVIDERS, random_sample
from .test_repair import POLICIES, UNREPAIRABLE, check

Json = Any

COUNTER: Final = fl.TokenCounter("chars/4")

SUMMARY: Final = "What came before."

WRITTEN: Final = ("ai_sdk", "langchain", "gent", "bedrock_converse")

#: The errors that are left to a list in which a message lost its role.
REFUSED: Final = ("ambiguous_format", "missing_role")


@pytest.fixture(scope="module")
def lists(shared: Path) -> dict[str, list[list[Json]]]:
    """Recorded lists of every dialect; written ones of those that nobody recorded."""
    draw = random.Random("libraries")
    written = {each: [random_sample(draw, formats=(each,)).messages for _ in range(60)] for each in WRITTEN}
    found = recorded(shared) | written
    assert set(found) == {"openai_chat", "openai_responses", "anthropic", "gemini", "pi", *WRITTEN}
    return found


def drawn(lists: dict[str, list[list[Json]]], count: int, salt: str) -> Iterator[tuple[random.Random, str, list[Json]]]:
    """Lists of every dialect in turn, each with its own source of chance."""
    formats = sorted(lists)
    for number in range(count):
        draw = random.Random(zlib.crc32(f"{salt}-{number}".encode()))
        format = formats[number % len(formats)]
        yield draw, format, draw.choice(lists[format])


def holds(messages: list[Json], format: str, keep: fl.planning.Keep) -> None:
    """A list is read, counted, planned and folded, and what is kept is given back as it was."""
    counts = COUNTER.count_messages(messages, format=format)
    assert len(counts.per_message) == len(messages)
    assert int(counts.per_message.sum()) + counts.overhead == counts.total
    assert COUNTER.count_messages(json.dumps(messages).encode(), format=format).total == counts.total
    plan = fl.plan(messages, keep, counter=COUNTER, format=format)
    if isinstance(plan, fl.Plan):
        assert plan.tokens_before == counts.total
        folded = iter(plan.apply(messages, SUMMARY if plan.cut else None))
        kept = [each for each, action in zip(messages, plan.actions, strict=True) if action in ("keep", "pin")]
        assert all(any(new is old for new in folded) for old in kept)
    live = fl.Transcript([], counter=COUNTER, format=format)
    for message in messages:
        live.append(message)
    assert live.total_tokens == counts.total


def whole(messages: list[Json]) -> tuple[str, int] | str:
    """The dialect and the tokens of a list whose dialect is detected, or the code of the error."""
    try:
        live = fl.Transcript(messages, counter=COUNTER)
    except fl.errors.MessageError as error:
        return error.code
    return live.format, live.total_tokens


def one_by_one(messages: list[Json]) -> tuple[str, int] | str:
    """The same of a transcript to which the messages are appended."""
    live = fl.Transcript([], counter=COUNTER)
    try:
        for message in messages:
            live.append(message)
    except fl.errors.MessageError as error:
        return error.code
    return live.format, live.total_tokens


def test_an_odd_value_never_stops_a_list(lists: dict[str, list[list[Json]]]) -> None:
    """Whatever any value but a message and its role is replaced by."""
    for draw, format, messages in drawn(lists, cases("odd_lists"), "odd"):
        odd = with_odd_values(draw, messages)
        before = copy.deepcopy(odd)
        keep = draw.choice((fl.KeepMessages(2), fl.FitTokens(draw.randrange(1, 200)), fl.KeepTurns(1)))
        try:
            holds(odd, format, keep)
            assert odd == before
        except Exception as error:
            error.add_note(f"{format}: {odd!r:.4000}")
            raise


def test_a_transcript_reads_message_by_message_what_it_reads_whole(lists: dict[str, list[list[Json]]]) -> None:
    """With the dialect detected, from any message on."""
    for draw, _, messages in drawn(lists, cases("odd_lists"), "one by one"):
        odd = with_odd_values(draw, messages)
        odd = odd[draw.randrange(len(odd)) :] if odd and draw.random() < 0.5 else odd
        found = whole(odd)
        assert one_by_one(odd) == found, odd
        # A message of LangChain has its role in its type.
        lost_role = any("role" not in message and message.get("type") == "odd" for message in odd)
        assert not isinstance(found, str) or (lost_role and found in REFUSED), (found, odd)


def test_whatever_is_broken_becomes_valid(lists: dict[str, list[list[Json]]]) -> None:
    """What is valid stays as it is, no text is lost, and a second repair does nothing."""
    sent = {format: lists[format] for format in lists if format in PROVIDERS}
    taken: Counter[str] = Counter()
    valid = 0
    for draw, format, messages in drawn(sent, cases("broken_lists"), "broken"):
        odd = broken(draw, messages)
        policy = draw.choice(POLICIES) if draw.random() < 0.3 else {}
        try:
            repaired = check(odd, PROVIDERS[format], policy)
        except Exception as error:
            error.add_note(f"{format}, {policy}: {odd!r:.4000}")
            raise
        taken.update({action.code for action in repaired.actions})
        valid += not repaired.actions
        assert {problem.code for problem in repaired.problems} <= UNREPAIRABLE
    wanted = {"call_answered", "orphan_as_text", "id_rewritten", "id_removed", "name_added", "result_moved"}
    assert wanted <= set(taken), taken
    assert valid > cases("broken_lists") // 50
