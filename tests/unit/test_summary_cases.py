"""What a summary tells the next agent: cases of open problems, decisions, earlier summaries, requests, steps, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.summary_cases import failures, own_cases, shared_cases

OWN = Path(__file__).parents[1] / "cases" / "summaries" / "talks.json"


@pytest.mark.parametrize("case", [*own_cases(OWN)], ids=lambda case: case["name"])
def test_a_summary_says_what_the_next_agent_needs(case: dict[str, object]) -> None:
    assert failures(case) == []


def test_summaries_of_the_shared_cases_say_what_the_next_agent_needs(shared: Path) -> None:
    checked = 0
    for case in shared_cases(shared):
        assert failures(case) == []
        checked += 1
    assert checked > 0


def said(text: str) -> dict[str, object]:
    return {"role": "assistant", "content": text}


def work() -> list[dict[str, object]]:
    """A task, a long look, an edit and a step that is left."""

    def call(id: str, name: str, **given: object) -> dict[str, object]:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": given}]}

    def result(id: str, text: str) -> dict[str, object]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}

    return [
        {"role": "user", "content": "Add a flag to /repo/src/cli.py. Never push to main."},
        call("a", "Read", file_path="/repo/src/cli.py"),
        result("a", "def main(): ...\n" * 200),
        call("b", "Edit", file_path="/repo/src/cli.py", old_string="a", new_string="b"),
        result("b", "The file has been updated."),
        {"role": "assistant", "content": "The flag is there. Next: the manual page."},
        {"role": "user", "content": "Go on."},
    ]


@pytest.mark.parametrize(
    ("form", "headings"),
    [
        (None, ("## Current request", "## Next steps", "## Files")),
        ("handover", ("## Current request", "## Next steps", "## Files")),
        ("document", ("## Goal", "## Next Steps", "<modified-files>")),
        ("session", ("#### Original Task", "#### Completed Work", "#### Pending Work")),
    ],
)
def test_a_form_has_the_headings_that_a_model_is_asked_for(form: Any, headings: tuple[str, ...]) -> None:
    result = fl.compact(work(), fl.KeepMessages(1), summarizer=fl.summarizers.Extractive(form))
    places = [result.summary.find(heading) for heading in headings]
    assert -1 not in places
    assert places == sorted(places)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(fl.errors.ConfigError) as caught:
        fl.summarizers.Extractive("table")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.path) == ("bad_form", "form")


def test_a_summary_leaves_the_request_below_the_threshold() -> None:
    """A richer one would trigger the next fold at once."""
    trigger = fl.triggers.Utilization(0.8)
    strategy = fl.strategies.Summarize(keep=fl.KeepMessages(1), summary_tokens=1_000)
    talk = [
        {"role": role, "content": f"{i}: never touch file_{i}.py, " + "mind the rest. " * 30}
        for i in range(12)
        for role in ("user", "assistant")
    ]
    compactor = fl.Compactor(trigger, strategy, counter="chars/4", context_window=1_000)
    result = compactor.compact(talk)
    assert result.changed
    assert not compactor.compact(list(result.messages)).changed


def test_nothing_is_shortened_beside_unused_room(shared: Path) -> None:
    """A page of 1,000 tokens with a tenth of them unused has all of its items whole, but for messages of commits."""
    count = fl.TokenCounter("o200k_base").count
    seen = 0
    for file in ("claude-code-entire/*.jsonl", "openai-tau-airline/*24.json"):
        for path in sorted(shared.glob(file)):
            for transcript in list(fl.read(path, on_problem=lambda problem: None))[:40]:
                messages = transcript.messages[:-1]
                if len(messages) < 12:
                    continue
                request = fl.typing.SummarizeRequest(
                    messages=messages,
                    folded=tuple(range(len(messages))),
                    format=transcript.format,
                    max_tokens=1_000,
                    count=count,
                )
                text = fl.summarizers.Extractive().summarize(request).text
                if count(text) >= 900:
                    continue
                seen += 1
                original = json.dumps(messages, ensure_ascii=False)
                for line in text.splitlines():
                    for before in (part[-12:] for part in line.split("…")[:-1]):
                        assert f"{before}…" in original or "git commit" in line, (transcript.id, line)
    assert seen > 20


def test_thoughts_of_a_tool_are_no_work() -> None:
    call = {"type": "function", "function": {"name": "think", "arguments": json.dumps({"thought": "Book it. " * 9})}}
    messages = [
        {"role": "user", "content": "Book flight HAT136."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", **call}]},
        {"role": "tool", "tool_call_id": "1", "content": ""},
    ]
    request = fl.typing.SummarizeRequest(
        messages=messages, folded=(0, 1, 2), format="openai_chat", max_tokens=500, count=len
    )
    assert "think" not in fl.summarizers.Extractive().summarize(request).text


def test_an_unanswered_request_is_the_next_step() -> None:
    messages = [
        {"role": "user", "content": "Which flights go to Seattle in the morning?"},
        {"role": "assistant", "content": "HAT136 leaves at seven, HAT218 leaves at six."},
        {"role": "user", "content": "Book HAT136 for two passengers."},
    ]
    request = fl.typing.SummarizeRequest(
        messages=messages, folded=(0, 1, 2), format="openai_chat", max_tokens=2_000, count=len
    )
    text = fl.summarizers.Extractive().summarize(request).text
    assert "## Next steps" in text
    assert "Go on with the current request" in text


def test_a_page_without_room_for_all_rules_lists_them_without_numbers() -> None:
    rules = [f"Never open port {8000 + 7 * i} of the {word} gateway." for i, word in enumerate("abcdefghijkl")]
    messages = [message for rule in rules for message in ({"role": "user", "content": rule}, said("Noted."))]

    def page(room: int) -> list[str]:
        request = fl.typing.SummarizeRequest(
            messages=messages, folded=tuple(range(len(messages))), format="openai_chat", max_tokens=room, count=len
        )
        text = fl.summarizers.Extractive().summarize(request).text
        assert len(text) <= room
        return [line for line in text.splitlines() if "Never open port" in line]

    wide, narrow = page(2_000), page(500)
    assert len(wide) == 12
    assert all(line.startswith("- [") for line in wide)
    assert 8 <= len(narrow) < 12
    assert not any(line.startswith("- [") for line in narrow[1:])
