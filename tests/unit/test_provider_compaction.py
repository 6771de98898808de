"""A compaction of the provider inside a list: it stays, and what comes after it may be folded behind it."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl

COUNTER = "chars/4"
WORDS = "word " * 40  # 50 tokens
DIALECTS = ("openai_responses", "anthropic")


def said(dialect: str, role: str, text: str) -> dict[str, Any]:
    """A message of a role."""
    if dialect == "anthropic":
        return {"role": role, "content": f"{text} {WORDS}"}
    kind = "input_text" if role == "user" else "output_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": f"{text} {WORDS}"}]}


def turns(dialect: str, count: int, first: int = 0) -> list[Any]:
    """Turns of a user and a model."""
    return [said(dialect, role, f"{role} {n}.") for n in range(first, first + count) for role in ("user", "assistant")]


def compaction(dialect: str, text: str = "The service is on port 8099.") -> list[Any]:
    """The provider's compaction as its answer has it."""
    if dialect == "anthropic":
        content = [{"type": "compaction", "content": text}, {"type": "text", "text": "I go on."}]
        return [{"role": "assistant", "content": content}]
    return [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAAB0bWFkZQ" * 8}]


def fold(messages: Any, keep: Any, dialect: str) -> fl.FoldResult:
    return fl.compact(messages, keep, counter=COUNTER, format=dialect, summary_tokens=100)


@pytest.mark.parametrize("before", [0, 1, 5])
@pytest.mark.parametrize("after", [1, 4, 30])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_comes_after_it_is_folded_behind_it(dialect: str, before: int, after: int) -> None:
    earlier = [*turns(dialect, before), *([said(dialect, "user", "Go.")] if dialect == "anthropic" else [])]
    opaque = compaction(dialect)
    messages = [*earlier, *opaque, *turns(dialect, after, before)]
    result = fold(messages, fl.KeepMessages(2), dialect)
    if after == 1 and not earlier:
        assert result.outcome == "unchanged"
        return
    places = [place for place, source in enumerate(result.sources) if source is None]
    assert result.outcome == "folded"
    assert [message is opaque[0] for message in result.messages].count(True) == 1
    assert result.messages[0] is opaque[0]
    assert places == [1]  # after the compaction: the provider passes over what is before it
    assert list(result.sources[2:]) == [len(messages) - 2, len(messages) - 1]
    assert result.plan.reasons[len(earlier)] == ("compaction" if earlier else "head")  # type: ignore[union-attr]
    assert fl.validate(result.messages, "responses" if dialect == "openai_responses" else dialect) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_budget_is_met_and_a_second_fold_goes_on(dialect: str) -> None:
    messages = [*turns(dialect, 5), said(dialect, "user", "Go."), *compaction(dialect), *turns(dialect, 40, 5)]
    first = fold(messages, fl.FitTokens(800), dialect)
    assert (first.outcome, first.fits) == ("folded", True)
    again = fold([*first.messages, *turns(dialect, 40, 50)], fl.FitTokens(800), dialect)
    assert (again.outcome, again.fits) == ("folded", True)
    assert [source for source in again.sources if source is None] == [None]
    assert again.messages[0] is first.messages[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_only_the_newest_one_stays(dialect: str) -> None:
    """It replaces the earlier ones, too."""
    older, newest = compaction(dialect, "First."), compaction(dialect, "Second.")
    go = [said(dialect, "user", "Go.")]
    messages = [*turns(dialect, 2), *go, *older, *turns(dialect, 2, 2), *go, *newest, *turns(dialect, 6, 4)]
    result = fold(messages, fl.KeepMessages(2), dialect)
    assert result.messages[0] is newest[0]
    assert not any(message is older[0] for message in result.messages)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_before_it_leaves_everything_after_it(dialect: str) -> None:
    messages = [*turns(dialect, 5), said(dialect, "user", "Go."), *compaction(dialect), *turns(dialect, 1, 5)]
    result = fold(messages, fl.KeepMessages(7), dialect)
    assert list(result.sources) == [None, 6, 7, 8, 9, 10, 11, 12, 13]


def test_without_a_clean_place_after_it_no_cut_passes() -> None:
    """A pinned call before it, whose result is after it: a summary would stand between them."""
    call = {"type": "function_call", "call_id": "c", "name": "go", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "Done."}
    dialect = "openai_responses"
    messages = [*turns(dialect, 3), call, *compaction(dialect), result, *turns(dialect, 9, 3)]
    folded = fl.compact(messages, fl.KeepMessages(2), counter=COUNTER, format=dialect, pins=[6], summary_tokens=100)
    kept = [source for source in folded.sources if source is not None]
    assert kept == list(range(6, len(messages)))
    assert folded.sources[0] is None
    assert list(fold(messages, fl.KeepMessages(2), dialect).sources[:2]) == [7, None]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_trim_keeps_it(dialect: str) -> None:
    messages = [*turns(dialect, 5), said(dialect, "user", "Go."), *compaction(dialect), *turns(dialect, 40, 5)]
    result = fl.trim(messages, 500, counter=COUNTER, format=dialect)
    assert (result.outcome, result.fits, result.messages[0]) == ("folded", True, messages[11])


BLOCK = {"type": "compaction", "content": "So far: port 8099."}
KEEPS = (fl.KeepMessages(1), fl.KeepMessages(2), fl.KeepTokens(60), fl.KeepTurns(1), fl.FitTokens(700))


def call(name: str = "tool_use", **more: Any) -> dict[str, Any]:
    return {"type": name, "id": f"{name}_1", "name": "ask", "input": {}, **more}


def answered() -> list[Any]:
    """A compaction beside a call, which the user's next message answers."""
    result = {"type": "tool_result", "tool_use_id": "tool_use_1", "content": "x"}
    return [{"role": "assistant", "content": [BLOCK, call()]}, {"role": "user", "content": [result]}]


def served() -> list[Any]:
    """A turn over two messages: a call of a server tool, and its result before the compaction."""
    result = {"type": "web_search_tool_result", "tool_use_id": "server_tool_use_1", "content": []}
    before = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call("server_tool_use")]}
    return [before, {"role": "assistant", "content": [result, BLOCK, {"type": "text", "text": "Found."}]}]


def unanswered() -> list[Any]:
    """A call of a server tool beside the compaction; the provider goes on in the next message."""
    waits = {"role": "assistant", "content": [BLOCK, call("mcp_tool_use", server_name="s")]}
    return [waits, {"role": "assistant", "content": "It runs."}]


@pytest.mark.parametrize(
    ("made", "keep"),
    [
        pytest.param(made, keep, id=f"{made.__name__}-{keep!r}")
        for made in (answered, served, unanswered)
        for keep in KEEPS
        # Behind a turn that begins before the compaction nothing is folded: the list would begin with the model.
        if made is not served or not isinstance(keep, fl.FitTokens)
    ],
)
@pytest.mark.parametrize("pins", [(), (1,), (0,)], ids=repr)
@pytest.mark.parametrize("before", [0, 2])
def test_a_summary_never_parts_what_belongs_to_a_compaction(
    before: int, pins: tuple[int, ...], made: Any, keep: Any
) -> None:
    earlier = turns("anthropic", before)
    opening = [said("anthropic", "user", "Go.")] if made is not answered or before else []
    # A call without a result ends the list.
    later = turns("anthropic", 4, 10) if made is not unanswered else []
    messages = [*earlier, *opening, *made(), *later]
    assert fl.validate(messages, "anthropic") == []
    for _ in range(3):
        folded = fl.compact(messages, keep, counter=COUNTER, format="anthropic", pins=pins, summary_tokens=100)
        assert fl.validate(folded.messages, "anthropic") == []
        messages, pins = [*folded.messages, *(turns("anthropic", 2, 20) if later else [])], ()
