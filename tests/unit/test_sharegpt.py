"""Training conversations in the form of ShareGPT: read, paired, planned, folded and written in their own form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from foldline.summarizers.rendering import pieces_of, role_of
from unit.shelf import Shelf, lines

Dict = dict[str, Any]

RECORDED = Path(__file__).parent / "data" / "sessions" / "sharegpt-tools.json"

CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
RESPONSE = '<tool_response>\n{"name": "f", "content": 3}\n</tool_response>'


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def says(speaker: str, value: Any, **more: Any) -> Dict:
    return {"from": speaker, "value": value} | more


HUMAN, GPT = says("human", "How many?"), says("gpt", "Three.")

#: Conversations with calls, and the groups that they form.
PAIRS: dict[str, tuple[list[Dict], list[list[int]]]] = {
    "a call in a text": ([HUMAN, says("gpt", CALL), says("tool", RESPONSE), GPT], [[0], [1, 2], [3]]),
    "two calls, two responses in one message": (
        [HUMAN, says("gpt", CALL + CALL), says("tool", RESPONSE + RESPONSE), GPT],
        [[0], [1, 2], [3]],
    ),
    "two calls, a message for each response": (
        [HUMAN, says("gpt", CALL + CALL), says("tool", RESPONSE), says("tool", RESPONSE), GPT],
        [[0], [1, 2, 3], [4]],
    ),
    "a call of a speaker of its own": (
        [HUMAN, says("function_call", '{"name": "f"}'), says("observation", "3"), GPT],
        [[0], [1, 2], [3]],
    ),
    "an example in the system prompt is no call": ([says("system", CALL), HUMAN, GPT], [[0], [1], [2]]),
}


@pytest.mark.parametrize(("messages", "groups"), PAIRS.values(), ids=PAIRS)
def test_calls_in_texts_are_paired_by_order(messages: list[Dict], groups: list[list[int]]) -> None:
    analysis = fl.analyze(messages)
    assert analysis.groups == groups
    assert analysis.open_calls == analysis.orphan_results == []


def test_the_form_is_detected_by_content_and_refused_in_a_mixture() -> None:
    assert fl.detect_format([HUMAN, GPT]).format == "sharegpt"
    assert fl.detect_format([says("narrator", "Once."), GPT]).format == "sharegpt"
    with pytest.raises(fl.errors.MessageError) as raised:
        fl.detect_format([HUMAN, {"role": "assistant", "content": "Three."}])
    assert raised.value.code == "ambiguous_format"


@pytest.mark.parametrize(
    ("message", "code", "path"),
    [({"value": "x"}, "missing_role", "from"), ({"from": 3, "value": "x"}, "bad_role", "from")],
)
def test_a_message_without_a_speaker_is_an_error(message: Dict, code: str, path: str) -> None:
    with pytest.raises(fl.errors.MessageError) as raised:
        fl.plan([HUMAN, message], fl.KeepMessages(1), format="sharegpt")
    assert (raised.value.code, raised.value.index, raised.value.path) == (code, 1, path)


@pytest.mark.parametrize("value", [None, 3, ["a"], {"a": 1}])
def test_an_odd_value_is_read_and_kept(value: Any) -> None:
    messages = [HUMAN, says("gpt", value), says("tool", value), GPT]
    folded = fl.plan(messages, fl.KeepMessages(3), format="sharegpt").apply(messages, summary="s")
    assert folded[-3:] == messages[-3:]


def test_every_text_is_counted_once() -> None:
    counter = fl.TokenCounter("chars/4")
    messages = [says("human", "a" * 40), says("gpt", CALL), says("tool", RESPONSE)]
    counts = counter.count_messages(messages)
    assert counts.per_message.tolist() == [counter.count(message["value"]) for message in messages]


@pytest.mark.parametrize(
    ("first", "names"), [("human", ("human", "gpt")), ("user", ("user", "assistant")), ("system", ("human", "gpt"))]
)
def test_a_summary_has_the_names_of_its_conversation(first: str, names: tuple[str, str]) -> None:
    messages = [says(first, "word " * 90), *(says(names[i % 2], "word " * 90) for i in range(6))]
    folded = fl.compact(messages, fl.KeepMessages(2))
    summary = next(message for message in folded.messages if message not in messages)
    assert set(summary) == {"from", "value"}
    assert summary["from"] == names[0]
    assert folded.summary is not None
    assert folded.summary in summary["value"]


def test_a_response_is_cleared_in_its_own_form() -> None:
    long = RESPONSE.replace("3", "3" * 4000)
    messages = [HUMAN, says("gpt", CALL), says("tool", long, weight=0), GPT, HUMAN, GPT, HUMAN, GPT]
    folded = fl.compact(messages, fl.FitTokens(60), counter=fl.TokenCounter("chars/4"))
    assert all(set(message) >= {"from", "value"} for message in folded.messages)
    assert long not in json.dumps(folded.messages)


def test_a_model_sees_speakers_and_texts() -> None:
    assert [role_of(says(each, "x")) for each in ("human", "gpt", "observation", "system")] == [
        *("USER", "ASSISTANT", "TOOL", "SYSTEM")
    ]
    assert [(piece.kind, piece.text) for piece in pieces_of(says("tool", "x"))] == [("result", "x")]


def test_recorded_conversations_are_read_whole_and_their_calls_are_pairs() -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))
    problems: list[fl.Problem] = []
    transcripts = list(fl.read(RECORDED, on_problem=problems.append))
    assert [each.messages for each in transcripts] == [each["conversations"] for each in recorded]
    assert {each.format for each in transcripts} == {"sharegpt"}
    assert problems == []
    for transcript in transcripts:
        analysis = fl.analyze(transcript.messages)
        calls = [i for i, message in enumerate(transcript.messages) if message["from"] == "function_call"]
        assert [group for group in analysis.groups if len(group) > 1] == [[i, i + 1] for i in calls]


@pytest.mark.parametrize(
    "rows",
    [
        lines([{"id": "a", "conversations": [HUMAN, GPT]}]),
        json.dumps([{"id": "a", "conversations": [HUMAN, GPT]}]).encode(),
        json.dumps([HUMAN, GPT]).encode(),
        lines([HUMAN, GPT]),
    ],
    ids=["lines", "a document", "one list", "loose messages"],
)
def test_every_form_of_a_file_is_read(shelf: Shelf, rows: bytes) -> None:
    transcript = shelf.read_one(rows, "a.json")
    assert (transcript.id.split(":")[0], transcript.format, transcript.messages) == ("a", "sharegpt", [HUMAN, GPT])
    assert shelf.problems == []


def test_conversations_with_roles_are_chat_messages(shelf: Shelf) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert shelf.read_one(lines([{"conversations": messages}])).format == "openai_chat"


def test_the_command_line_reads_conversations(shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [says("human" if i % 2 == 0 else "gpt", "word " * 80) for i in range(8)]
    path = str(shelf.put(lines([{"id": "a", "conversations": turns}]), "a.jsonl"))
    assert main(["count", path, "--json"]) == 0
    assert main(["plan", path, "--keep-turns", "2"]) == 0
    assert main(["compact", path, "--out", str(tmp_path / "out"), "--keep-turns", "2"]) == 0
    assert "Traceback" not in capsys.readouterr().err
    record = json.loads((tmp_path / "out" / "a.jsonl").read_text("utf-8"))
    assert (record["status"], record["format"], record["messages"][-4:]) == ("folded", "sharegpt", turns[-4:])
