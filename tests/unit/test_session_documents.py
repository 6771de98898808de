"""`read`: logs of Inspect and checkpoints of the Gemini CLI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.samples import assistant, user
from unit.shelf import Shelf

Dict = dict[str, Any]

RECORDED = Path(__file__).parent / "data" / "sessions" / "inspect-browser.json"


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def log(*samples: Any) -> bytes:
    return json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": list(samples)}).encode()


def sample(id: Any, *messages: Any, epoch: int = 1) -> Dict:
    return {"id": id, "epoch": epoch, "input": "Go.", "messages": list(messages)}


def test_a_recorded_log_gives_chat_messages_with_paired_calls() -> None:
    problems: list[fl.Problem] = []
    (transcript,) = fl.read(RECORDED, on_problem=problems.append)
    (recorded,) = json.loads(RECORDED.read_text("utf-8"))["samples"]
    assert (transcript.id, transcript.format, problems) == ("1.1", "openai_chat", [])
    assert transcript.meta["entries"] == recorded["messages"]
    for message, entry in zip(transcript.messages, recorded["messages"], strict=True):
        assert (message["role"], message["content"]) == (entry["role"], entry["content"])
        for call, given in zip(message.get("tool_calls", []), entry.get("tool_calls", []), strict=True):
            assert (call["id"], call["function"]["name"]) == (given["id"], given["function"])
            assert json.loads(call["function"]["arguments"]) == given["arguments"]
    assert fl.validate(transcript.messages, "openai") == []
    assert fl.plan(transcript.messages, fl.KeepMessages(2)).cut == 7
    assert transcript.meta["log"]["eval"]["task"]


def test_each_sample_of_a_log_is_a_transcript(shelf: Shelf) -> None:
    transcripts = shelf.read(log(sample("a", user("Go.")), sample("a", user("Go."), epoch=2), 7), "log.json")
    assert [each.id for each in transcripts] == ["a.1", "a.2"]
    assert [(problem.code, problem.index) for problem in shelf.problems] == [("unknown_record", 2)]


def test_the_error_of_a_tool_is_its_result_if_there_is_no_other(shelf: Shelf) -> None:
    error = {"type": "timeout", "message": "Too slow."}
    results = [
        {"role": "tool", "tool_call_id": "a", "function": "f", "content": "", "error": error},
        {"role": "tool", "tool_call_id": "b", "function": "f", "content": "Half.", "error": error},
    ]
    transcript = shelf.read_one(log(sample(1, *results, {"content": "?"}, assistant("Done."))), "log.json")
    assert [each["content"] for each in transcript.messages] == ["Too slow.", "Half.", "Done."]
    assert [(problem.code, problem.index) for problem in shelf.problems] == [("entry_without_message", 2)]


# --- Checkpoints of the Gemini CLI ----------------------------------------------------------------------

CONTENTS = [{"role": "user", "parts": [{"text": "Go."}]}, {"role": "model", "parts": [{"text": "Done."}]}]
SHOWN = [{"id": 1, "type": "user", "text": "Go."}, {"id": 2, "type": "gemini", "text": "Done."}]

#: Checkpoints that `/chat save` writes, and those that a tool call writes.
CHECKPOINTS: dict[str, Any] = {
    "saved": CONTENTS,
    "saved by newer versions": {"history": CONTENTS, "authType": "oauth-personal"},
    "of a call, with what the user saw": {
        "history": SHOWN,
        "clientHistory": CONTENTS,
        "toolCall": {"name": "write_file", "args": {}},
        "commitHash": "abc",
    },
}


@pytest.mark.parametrize("checkpoint", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_a_checkpoint_gives_the_contents_that_were_sent(shelf: Shelf, checkpoint: Any) -> None:
    transcript = shelf.read_one(json.dumps(checkpoint).encode(), "checkpoint-tag.json")
    assert (transcript.format, transcript.messages) == ("gemini", CONTENTS)
    assert shelf.problems == []
