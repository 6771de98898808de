"""The content of summaries and the prompts for them: A4, A5, T6, T7, T10 through the presets."""

from __future__ import annotations

import json
import re
from typing import Any

import foldline as fl
from foldline.presets import SESSION_SUMMARY
from foldline.summarizers import Extractive
from foldline.testing import FakeModel
from unit.prompt_reading import recovered, sections
from unit.samples import WORDS, assistant, openai_result, talk, user

SYSTEM = {"role": "system", "content": "You are a careful engineer."}
SO_FAR = "So far, so good."

#: The headings of the seed's document, in order.
DOCUMENT = (
    *("## Goal", "## Constraints & Preferences", "## Progress", "### Done", "### In Progress", "### Blocked"),
    *("## Key Decisions", "## Next Steps", "## Critical Context", "<read-files>", "<modified-files>"),
)
#: The headings of the seed's session summary.
SESSION = (
    *("#### Original Task", "#### Completed Work", "| File/Component | Action | Description |"),
    *("#### Key Technical Decisions", "#### Current State", "- Working on:", "- Last completed:"),
    *("#### Pending Work", "- [ ]", "#### Errors & Resolutions"),
)


def touch(id: str, tool: str, path: str) -> list[Any]:
    """A call that reads or edits a file, and its result."""
    function = {"name": tool, "arguments": json.dumps({"file_path": path})}
    call = {"id": id, "type": "function", "function": function}
    return [assistant(None, tool_calls=[call]), openai_result(id, "x = 1\n" * 60)]


def reserve(summarizer: Any, **more: Any) -> fl.Compactor:
    return fl.presets.reserve(summarizer, 8_000, 1_000, 100, **more)


def layer(summarizer: Any, **more: Any) -> fl.Compactor:
    return fl.presets.layer(summarizer, 20_000, keep_messages=2, **more)


def in_order(headings: tuple[str, ...], text: str) -> bool:
    places = [text.find(heading) for heading in headings]
    return -1 not in places and places == sorted(places)


def rules(model: FakeModel, call: int) -> str:
    """The system message of a call: the rules and the form."""
    return str(model.calls[call]["messages"][0]["content"])


def block(tag: str, text: str) -> set[str]:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return set(found[1].splitlines()) if found else set()


# --- A4, A5 --------------------------------------------------------------------------------------------


def test_A4_the_prompt_asks_for_the_document() -> None:
    model = FakeModel(SO_FAR)
    assert reserve(model).compact([SYSTEM, *talk(12)], force=True).changed
    assert in_order(DOCUMENT, rules(model, 0))


def test_A4_files_are_collected_from_calls_and_accumulate_over_compactions() -> None:
    """By the summarizer without a model, verbatim in the blocks of the document."""
    each = reserve(Extractive())
    first = each.compact(
        [SYSTEM, user("Go. " + WORDS), *touch("a", "Read", "a.py"), *touch("b", "Edit", "b.py"), *talk(4)], force=True
    )
    assert (block("read-files", first.summary), block("modified-files", first.summary)) == ({"a.py"}, {"b.py"})
    second = each.compact(
        [*first.messages, *touch("c", "Read", "c.py"), *touch("d", "Edit", "a.py"), *talk(4)], force=True
    )
    assert block("modified-files", second.summary) == {"a.py", "b.py"}
    assert "c.py" in block("read-files", second.summary)


def test_A4_files_that_a_model_omits_are_added_to_the_summary() -> None:
    each = reserve(FakeModel("## Goal\nGo.", "## Goal\nGo on."))
    first = each.compact([SYSTEM, user("Go. " + WORDS), *touch("b", "Edit", "src/b.py"), *talk(4)], force=True)
    assert "src/b.py" in first.summary
    second = each.compact([*first.messages, *touch("d", "Edit", "src/d.py"), *talk(4)], force=True)
    assert "src/b.py" in second.summary
    assert "src/d.py" in second.summary


def test_A5_the_prompt_of_a_second_round_contains_the_first_summary_to_merge() -> None:
    model = FakeModel("The first.", "Both.")
    each = reserve(model, mend=False)
    first = each.compact([SYSTEM, *talk(12)], force=True)
    second = each.compact([*first.messages, *talk(12)], force=True)
    assert "None (first compaction)." in model.prompts[0]
    assert sections(model.prompts[1])["summary"] == "The first."
    assert "Merge; do not put one under the other" in model.prompts[1]
    assert second.summary == "Both."


# --- T6, T7, T10 ---------------------------------------------------------------------------------------


def task(count: int = 20) -> list[Any]:
    return [SYSTEM, user("Build a flashcard app with <SM-2>."), *talk(count)[1:]]


def test_T6_the_prompt_has_the_previous_summary_the_task_the_round_and_the_sections() -> None:
    model = FakeModel(SO_FAR, SO_FAR)
    each = layer(model, mend=False)
    first = each.compact(task(), force=True)
    prompt = model.prompts[0]
    assert "None (first compaction)." in prompt
    assert sections(prompt)["task"] == "Build a flashcard app with &lt;SM-2&gt;."
    assert "(Compaction Round 1)" in rules(model, 0)
    assert in_order(SESSION, rules(model, 0))
    each.compact([*first.messages, *talk(20)], force=True)
    again = model.prompts[1]
    assert sections(again)["summary"].endswith(SO_FAR)
    assert "(Compaction Round 2)" in rules(model, 1)
    assert in_order(SESSION, rules(model, 1))


def test_T6_the_target_is_four_fifths_of_the_cap_and_the_temperature_is_low() -> None:
    """The seed says 800 of 1,000; here the label of the message counts as well."""
    model = FakeModel(SO_FAR)
    layer(model).compact(task(200), force=True)
    (call,) = model.calls
    assert 900 <= call["max_tokens"] <= 1_000
    assert f"At most {call['max_tokens'] - call['max_tokens'] // 5} tokens" in model.prompts[0]
    assert call["temperature"] == 0.3


def test_T6_a_model_without_temperature_is_called_without_it() -> None:
    class Plain:
        def complete(self, messages: Any, *, max_tokens: int, timeout_s: float | None = None) -> fl.typing.Completion:
            return fl.typing.Completion(SO_FAR)

    assert layer(Plain()).compact(task(), force=True).error is None


def test_T7_messages_are_numbered_blocks_with_results_cut_at_500_and_all_at_2000() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
    messages = [
        *(SYSTEM, user("task"), assistant("Let me look.", tool_calls=[call]), openai_result("a", "r" * 600)),
        *(user("u" * 2_500), assistant("ok"), user("next"), assistant("ok")),
    ]
    model = FakeModel(SO_FAR)
    assert layer(model).compact(messages, force=True).error is None
    shown = recovered(model.prompts[0])
    assert shown[2] == ("ASSISTANT", 'Let me look.\n[Tool: read({"path": "a.py"})]')
    assert shown[3] == ("TOOL", f"[Result: {'r' * 500}[… 100 characters left out …]]")
    assert shown[4] == ("USER", f"{'u' * 2_000}[… 500 characters left out …]")
    assert list(shown) == [1, 2, 3, 4, 5]


def test_T7_a_huge_result_is_shortened_first() -> None:
    """Everything else stays whole, and the result keeps the length that every result may have."""
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [user("t" * 1_900), assistant(None, tool_calls=[call]), openai_result("a", "r" * 900_000), *talk(3)]
    model = FakeModel(SO_FAR)
    assert layer(model).compact(messages, force=True).error is None
    shown = recovered(model.prompts[0])
    assert shown[0] == ("USER", "t" * 1_900)
    assert shown[2][1].count("r" * 500) == 1
    assert len(shown[2][1]) < 600


def test_T10_a_summary_with_the_models_heading_has_one_heading() -> None:
    model = FakeModel("## Session Summary (Compaction Round 1)\n\n#### Original Task\nBuild it.")
    result = layer(model, mend=False).compact(task(), force=True)
    assert result.messages[1]["content"].count(SESSION_SUMMARY) == 1
