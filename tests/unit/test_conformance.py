"""The judge of benches/conformance: its own validator, its count, its shares. Needs no other library."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.samples import assistant, openai_call, openai_result, user

FOLDER = Path(__file__).resolve().parents[2] / "benches" / "conformance"
SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.fixture(scope="module")
def conformance() -> Iterator[Any]:
    """The modules of benches/conformance, which import each other by their short names."""
    names = {path.stem for path in FOLDER.glob("*.py")} | {"contenders"}

    def ours() -> list[str]:
        return [name for name in sys.modules if name.partition(".")[0] in names]

    before = {name: sys.modules.pop(name) for name in ours() if name != "__main__"}
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))
    for name in ours():
        if name != "__main__":
            del sys.modules[name]
    sys.modules.update(before)


def calls(*ids: str) -> dict[str, Any]:
    made = [{"id": id, "type": "function", "function": {"name": "go", "arguments": "{}"}} for id in ids]
    return assistant(None, tool_calls=made)


# --- the validator ----------------------------------------------------------------------------------------

VALID = {
    "a talk": [SYSTEM, user("a"), assistant("b"), user("c")],
    "a call and its result": [user("a"), openai_call("x"), openai_result("x"), assistant("b")],
    "parallel calls, results in any order": [user("a"), calls("x", "y"), openai_result("y"), openai_result("x")],
    "ids used again": [user("a"), calls("x"), openai_result("x"), calls("x"), openai_result("x")],
    "content as parts": [user([{"type": "text", "text": "a"}])],
    "a call beside text": [user("a"), openai_call("x", content="b"), openai_result("x")],
    "a developer message": [{"role": "developer", "content": "a"}, user("b")],
}

REJECTED = {
    "nothing at all": ([], ["no_messages"]),
    "one id of two calls in a message": (
        [user("a"), calls("x", "x"), openai_result("x"), openai_result("x")],
        ["duplicate_id"],
    ),
    "a result without a call": ([user("a"), openai_result("x")], ["tool_without_call"]),
    "a result of another call": (
        [user("a"), calls("x"), openai_result("y")],
        ["tool_without_call", "call_without_tool"],
    ),
    "a result behind another message": (
        [user("a"), calls("x"), user("b"), openai_result("x")],
        ["call_without_tool", "tool_without_call"],
    ),
    "one of two calls unanswered": ([user("a"), calls("x", "y"), openai_result("x")], ["call_without_tool"]),
    "an unanswered call at the end": ([user("a"), calls("x")], ["call_without_tool"]),
    "answered twice": ([user("a"), calls("x"), openai_result("x"), openai_result("x")], ["tool_without_call"]),
    "a role that there is not": ([{"role": "model", "content": "a"}], ["unknown_role"]),
    "an assistant without content or calls": ([user("a"), assistant(None)], ["no_content"]),
    "a user without content": ([{"role": "user"}], ["no_content"]),
    "no parts": ([user([])], ["no_content"]),
    "an empty list of calls": ([user("a"), assistant("b", tool_calls=[])], ["empty_tool_calls"]),
    "arguments that are no string": ([user("a"), openai_call("x", {}), openai_result("x")], ["bad_tool_call"]),
}


@pytest.mark.parametrize("name", VALID)
def test_the_scripts_validator_accepts_what_the_api_accepts(conformance: Any, name: str) -> None:
    assert conformance("judging").problems(VALID[name]) == []


@pytest.mark.parametrize("name", REJECTED)
def test_the_scripts_validator_finds_the_faults_that_the_api_rejects(conformance: Any, name: str) -> None:
    messages, codes = REJECTED[name]
    assert conformance("judging").problems(messages) == codes


@pytest.mark.parametrize("name", [*VALID, *(name for name in REJECTED if "call" in name or "answered" in name)])
def test_both_validators_agree_on_calls_and_results(conformance: Any, name: str) -> None:
    """The two are written independently, after the same rules."""
    messages = VALID.get(name) or REJECTED[name][0]
    assert bool(conformance("judging").problems(messages)) == bool(fl.validate(messages, "openai"))


def test_torn_pairs_are_counted_at_every_position(conformance: Any) -> None:
    unpaired = conformance("judging").unpaired
    late = [user("a"), calls("x", "y"), user("b"), openai_result("y"), user("c"), openai_result("x")]
    assert unpaired(late) == 0
    assert unpaired(late[:-1]) == 1
    assert unpaired(late[2:]) == 2
    assert unpaired([openai_result("x"), calls("x")]) == 2  # A result before its call answers nothing.


# --- the count --------------------------------------------------------------------------------------------


def test_the_count_includes_every_text_name_and_argument(conformance: Any) -> None:
    tokens = conformance("judging").tokens
    assert tokens([], len) == 3
    assert tokens([user("abc")], len) == 3 + 4 + 3
    assert tokens([user([{"type": "text", "text": "abc"}, {"type": "text", "text": "d"}])], len) == 3 + 4 + 4
    assert tokens([user("abc", name="me")], len) == 3 + 4 + 3 + 1 + 2
    assert tokens([openai_call("x", '{"a":1}')], len) == 3 + 4 + 2 + 7
    assert tokens([openai_result("x", "abcde", name="go")], len) == 3 + 4 + 5


def test_the_count_equals_foldlines_for_every_conversation(conformance: Any) -> None:
    """Otherwise one of the two would be wrong about the budget."""
    counter = fl.TokenCounter("o200k_base")
    for each in conformance("conversations").conversations():
        ours = counter.count_messages(each.messages, format="openai_chat").total
        assert conformance("judging").tokens(each.messages, counter.count) == ours, each.name


# --- kept messages ----------------------------------------------------------------------------------------


def test_the_system_message_is_kept_whole_or_not_at_all(conformance: Any) -> None:
    keeps = conformance("judging").keeps_head
    before = [SYSTEM, user("a")]
    assert keeps(before, before)
    assert keeps(before, [{"role": "system", "content": "Be brief.\n\nSummary: b"}])
    assert not keeps(before, [{"role": "system", "content": "Be"}, user("a")])
    assert not keeps(before, [user("Be brief.")])
    assert not keeps(before, [user("a"), SYSTEM])  # After other messages it is a different request.
    assert not keeps(before, [])
    assert keeps([user("a")], [])


def test_the_newest_user_message_is_kept_whole_or_not_at_all(conformance: Any) -> None:
    keeps = conformance("judging").keeps_newest_user
    before = [SYSTEM, user("old"), assistant("b"), user("new"), openai_call("x"), openai_result("x")]
    assert keeps(before, before[3:])
    assert not keeps(before, before[:3])
    assert not keeps(before, [user("ne")])
    assert not keeps(before, [assistant("new")])
    assert not keeps(before, [SYSTEM])


def test_an_answer_exists_if_system_and_newest_user_message_fit(conformance: Any) -> None:
    judging = conformance("judging")
    before = [SYSTEM, user("older"), assistant("b"), user("new"), assistant("c")]
    assert judging.least(before, len) == judging.tokens([SYSTEM, user("new")], len) == 3 + 4 + 9 + 4 + 3
    assert not judging.problems([SYSTEM, user("new")])


# --- conversations ----------------------------------------------------------------------------------------


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOLDLINE_SHARED", raising=False)


@pytest.mark.usefixtures("bundled")
def test_every_conversation_is_valid_before_it_is_shortened(conformance: Any) -> None:
    """Otherwise a library would be blamed for its input."""
    found = conformance("conversations").conversations()
    assert len(found) >= 30
    assert len({each.name for each in found}) == len(found)
    for each in found:
        assert conformance("judging").problems(each.messages) == [], each.name
        assert fl.validate(each.messages, "openai") == [], each.name
        assert each.messages[-1]["role"] in ("user", "tool"), each.name


def test_generated_conversations_are_deterministic_and_as_described(conformance: Any) -> None:
    conversations, judging = conformance("conversations"), conformance("judging")
    made = {each.name: each.messages for each in conversations.generated()}
    assert made == {each.name: each.messages for each in conversations.generated()}
    assert max(len(message.get("tool_calls") or ()) for message in made["results far from their call"]) == 16
    ids = [call["id"] for m in made["ids used again in every turn"] for call in m.get("tool_calls") or ()]
    assert len(set(ids)) == 2 < len(ids)
    users = [m["role"] for m in made["one user message, then an agent at work"]].count("user")
    assert users == 1

    def share(name: str, part: Callable[[list[Any]], list[Any]]) -> float:
        return judging.tokens(part(made[name]), fl.count_tokens) / judging.tokens(made[name], fl.count_tokens)

    assert share("a system message larger than most budgets", lambda messages: messages[:1]) > 0.6
    assert share("a group larger than most budgets", lambda messages: messages[-3:]) > 0.8
    for each in conversations.late_results():
        assert judging.unpaired(each.messages) == 0
        assert "tool_without_call" in judging.problems(each.messages)


# --- runs and shares --------------------------------------------------------------------------------------


def contender(conformance: Any, answer: Callable[[list[Any], int], list[Any]], *, counts_tokens: bool = True) -> Any:
    """A library with the given answer."""

    class Trimmer:
        def prepare(self, messages: list[Any], budget: int, share: float) -> Callable[[], Any]:
            return lambda: answer(messages, budget)

        def messages_of(self, answer: list[Any], messages: list[Any]) -> list[Any]:
            return answer

    made = conformance("contenders.base").Contender
    return made("stub", "stub", "stub", "none", lambda _: Trimmer(), counts_tokens=counts_tokens)


def row_of(conformance: Any, answer: Callable[[list[Any], int], list[Any]], **options: Any) -> Any:
    conversation = conformance("conversations").Conversation(
        "c", "generated", [SYSTEM, user("older " * 9), assistant("b " * 30), user("new")]
    )
    validate = lambda messages: fl.validate(messages, "openai")  # noqa: E731
    return conformance("runs").run(contender(conformance, answer, **options), [conversation], len, validate)


def test_budgets_range_from_nearly_nothing_to_nearly_everything(conformance: Any) -> None:
    budgets = conformance("runs").budgets_of(770)
    assert [budget for budget, _ in budgets] == list(range(10, 770, 10))
    assert budgets[0][1] == pytest.approx(1 / 77)


def test_a_correct_library_gets_full_shares(conformance: Any) -> None:
    def right(messages: list[Any], budget: int) -> list[Any]:
        if budget < 23:
            raise conformance("contenders.base").RefusedError
        return [messages[0], messages[-1]]

    row = row_of(conformance, right)
    assert len(row.all_runs()) == 76
    assert row.infeasible()
    assert (row.everything(), row.answered(), row.said_so(), row.refused(), row.raised()) == (1.0, 1.0, 1.0, 0, {})
    assert not row.changed_input


def test_each_fault_is_counted_in_its_column(conformance: Any) -> None:
    whole = row_of(conformance, lambda messages, _: messages).shares()
    assert whole["within"] == whole["everything"] == whole["said_so"] == 0.0
    assert whole["valid_for_foldline"] == whole["valid_for_script"] == whole["system"] == whole["user"] == 1.0
    system = row_of(conformance, lambda messages, _: messages[:1]).shares()
    assert (system["system"], system["user"], system["everything"]) == (1.0, 0.0, 0.0)
    orphan = row_of(conformance, lambda messages, _: [messages[0], openai_result("x", ""), messages[-1]]).shares()
    assert orphan["valid_for_foldline"] == orphan["valid_for_script"] == orphan["paired"] == 0.0


def test_a_library_without_token_budgets_is_run_without_one(conformance: Any) -> None:
    row = row_of(conformance, lambda messages, _: messages, counts_tokens=False)
    assert row.everything() == 1.0


def test_exceptions_are_listed_by_type_and_are_not_answers(conformance: Any) -> None:
    def fails(messages: list[Any], budget: int) -> list[Any]:
        raise KeyError("content")

    row = row_of(conformance, fails)
    assert row.raised() == {"KeyError": len(row.feasible())}
    assert (row.answered(), row.everything(), row.said_so()) == (0.0, 0.0, 1.0)
    assert row.share(lambda _: True) is None


def test_a_library_that_modifies_its_input_is_named(conformance: Any) -> None:
    def meddles(messages: list[Any], _: int) -> list[Any]:
        messages[0]["content"] = ""
        return messages

    assert row_of(conformance, meddles).changed_input


def test_shares_are_never_rounded_to_0_or_100_percent(conformance: Any) -> None:
    percent = conformance("table").percent
    assert [percent(share) for share in (0.0, 1e-6, 0.5, 0.99999, 1.0, None)] == [
        "0%",
        "0.1%",
        "50.0%",
        "99.9%",
        "100%",
        "–",
    ]


def test_the_table_lists_missing_libraries_exceptions_and_options(conformance: Any) -> None:
    table, conversations = conformance("table"), conformance("conversations")

    def fails_at_times(messages: list[Any], budget: int) -> list[Any]:
        if budget > 60:
            raise KeyError
        return messages[-1:]

    row = row_of(conformance, fails_at_times)
    every = [conversations.Conversation("c", "generated", [SYSTEM])]
    versions, missing = {"stub": "1.2"}, {"other": "ImportError: no"}
    about = table.conditions("make conformance", versions, missing, {"stub": "none"}, "foldline 0.0")
    text = table.as_markdown([row], [row], every, about)
    assert "Not measured: other (ImportError: no)." in text
    assert re.search(r"stub raised where an answer exists: KeyError \d+ times", text)
    assert "stub 1.2." in text
    assert "- **stub**: none." in text
    assert "make conformance" in text
    assert f"{len(row.feasible())} of them the system message" in text.replace("\n", " ")
    found = json.loads(table.as_json([row], [row], every, about))
    assert found["rows"][0]["conversations"]["c"]["runs"] == 76
    assert found["missing"] == missing


def test_every_contender_names_its_options_and_why_it_is_missing(conformance: Any) -> None:
    contenders = conformance("contenders").CONTENDERS
    assert contenders[0].package == "foldline"
    assert len({each.name for each in contenders}) == len(contenders) >= 12
    assert all(each.options for each in contenders)
    absent = conformance("contenders.base").Contender("no", "no", "no_such_module", "none", lambda _: None)
    assert absent.missing().startswith("ModuleNotFoundError")


def test_every_contender_is_pinned(conformance: Any) -> None:
    names = {
        line for line in (FOLDER / "requirements.txt").read_text("utf-8").splitlines() if line[:1] not in ("", "#")
    }
    assert {each.package for each in conformance("contenders").CONTENDERS} - {"foldline"} <= names
    lines = (FOLDER / "constraints.txt").read_text("utf-8").splitlines()
    assert names <= {line.partition("==")[0].replace("_", "-").lower() for line in lines}


@pytest.mark.filterwarnings("ignore::foldline.errors.FoldlineWarning")  # as the script does
def test_foldlines_rows_need_no_other_library(conformance: Any) -> None:
    """A short real run: valid, within the budget, and refusals only if there is no answer."""
    conversations, runs = conformance("conversations"), conformance("runs")
    some = [each for each in conversations.generated() if "agent" in each.name or "parallel" in each.name]
    counter = fl.TokenCounter("o200k_base")
    for each in conformance("contenders").CONTENDERS:
        if each.package == "foldline":
            row = runs.run(each, some, counter.count, lambda after: fl.validate(after, "openai"), budgets=12)
            shares = row.shares()
            assert row.raised() == {}, each.name
            assert shares["valid_for_foldline"] == shares["valid_for_script"] == shares["within"] == 1.0, each.name
            assert shares["said_so"] in (None, 1.0), each.name
            assert not row.changed_input
