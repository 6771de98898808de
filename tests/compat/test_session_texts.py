"""What was typed, said, called and returned in every recorded session is in its messages once, or named with a reason.

The files are read once more here, entry by entry, without foldline: each function lists the texts of one program's
entries that reach a model or come from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import foldline as fl

Dict = dict[str, Any]

BUNDLED = Path(__file__).parents[2]


def texts(value: Any) -> Iterator[str]:
    """Every text below a value, without keys and the names of kinds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in ("type", "role"):
                yield from texts(each)


def values_of(path: Path) -> list[Any]:
    """The JSON values of a file: one document, or values on lines, also several on one."""
    text = path.read_text("utf-8")
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    values = []
    for line in text.splitlines():
        at = 0
        while at < len(line.rstrip()):
            value, at = json.JSONDecoder().raw_decode(line, at)
            values.append(value)
    return values


def claude_code(values: list[Dict]) -> Iterator[Any]:
    """The contents of users and assistants, and the prompts that a turn took from the queue."""
    seen: set[str] = set()
    queued: list[str] = []
    for entry in values:
        if "uuid" in entry and (entry["uuid"] in seen or seen.add(entry["uuid"])):
            continue
        if entry["type"] in ("user", "assistant"):
            yield entry["message"]["content"]
        elif entry.get("operation") == "enqueue":
            queued.append(entry["content"])
        elif entry.get("operation") == "remove":
            yield queued.pop(0)
        elif entry.get("operation") == "dequeue":
            del queued[:1]


def codex(values: list[Dict]) -> Iterator[Any]:
    """The items. The events repeat their texts, which another test of this module checks."""
    for entry in values:
        if entry["type"] == "response_item" and entry["payload"]["type"] != "ghost_snapshot":
            yield entry["payload"]


def gemini_cli(values: list[Dict]) -> Iterator[Any]:
    """The texts of user and model, the calls, and their results."""
    (session,) = values
    for record in session["messages"]:
        if record["type"] not in ("user", "gemini"):
            continue
        yield record["content"] or []
        for call in record.get("toolCalls", []):
            yield [call["id"], call["name"], call["args"], call.get("result") or []]


def pi(values: list[Dict]) -> Iterator[Any]:
    """The messages of all branches."""
    for entry in values:
        if entry["type"] == "message":
            yield entry["message"]
        elif entry["type"] in ("branch_summary", "custom_message"):
            raise AssertionError("the recorded sessions have none")


def swe_agent(values: list[Dict]) -> Iterator[Any]:
    """The messages of the history."""
    (trajectory,) = values
    yield from trajectory["history"]


def inspect(values: list[Dict]) -> Iterator[Any]:
    """The texts, calls and results of each sample."""
    (log,) = values
    for sample in log["samples"]:
        for message in sample["messages"]:
            yield [message["content"], message.get("tool_call_id", [])]
            for call in message.get("tool_calls") or []:
                yield [call["id"], call["function"], *call["arguments"].values()]


PROGRAMS: dict[str, Callable[[list[Dict]], Iterator[Any]]] = {
    "claude_code": claude_code,
    "codex": codex,
    "gemini_cli": gemini_cli,
    "pi": pi,
    "swe_agent": swe_agent,
    "inspect": inspect,
}


def found_in(program: str, transcripts: list[fl.StoredTranscript]) -> Counter[str]:
    """The texts of the messages and of the abandoned branches."""
    found: Counter[str] = Counter()
    for transcript in transcripts:
        for messages in (transcript.messages, *(each["messages"] for each in transcript.meta.get("branches", []))):
            for message in messages:
                if program == "inspect":
                    found.update(texts([message["content"], message.get("tool_call_id", [])]))
                    for call in message.get("tool_calls") or []:
                        arguments = json.loads(call["function"]["arguments"])
                        found.update(texts([call["id"], call["function"]["name"], *arguments.values()]))
                elif program in ("claude_code", "gemini_cli"):
                    found.update(texts(message.get("content", message.get("parts"))))
                else:
                    # A result with a list of one id gets this id under its usual key too.
                    is_copied = program == "swe_agent" and "tool_call_ids" in message
                    found.update(texts({k: v for k, v in message.items() if k != "tool_call_id" or not is_copied}))
    return found


def sessions(shared: Path) -> list[Path]:
    recorded = [path for path in shared.glob("*/*") if path.suffix in (".json", ".jsonl", ".traj")]
    return sorted([*recorded, BUNDLED / "tests" / "unit" / "data" / "sessions" / "inspect-browser.json"])


def test_every_text_is_in_messages_once_or_named(shared: Path) -> None:
    checked: Counter[str] = Counter()
    for path in sessions(shared):
        transcripts = list(fl.read(path, on_problem=lambda _: None))
        program = transcripts[0].meta.get("session_format")
        if program not in PROGRAMS:
            continue
        said: Counter[str] = Counter()
        for content in PROGRAMS[program](values_of(path)):
            said.update(texts(content))
        # Blank texts are left out.
        found = found_in(program, transcripts)
        missing, repeated = said - found, found - said
        assert {text for text in missing if text.strip()} == set(), path.name
        assert {text for text in repeated if text.strip()} == set(), path.name
        checked[program] += 1
    assert checked.keys() == PROGRAMS.keys()
    assert sum(checked.values()) >= 45


def test_the_events_of_every_rollout_repeat_its_items(shared: Path) -> None:
    checked = 0
    for path in sorted(shared.glob("codex-rollout/*.jsonl")):
        (transcript,) = fl.read(path)
        held = "\n".join(texts(transcript.messages))
        named = {each["entry"] for each in transcript.meta.get("unread", [])}
        for at, entry in enumerate(values_of(path)):
            event = entry["payload"] if entry["type"] == "event_msg" else {}
            if event.get("type") in ("user_message", "agent_message"):
                assert (event["message"].strip() in held) != (at in named)
                checked += 1
    assert checked >= 5


def test_every_entry_is_in_a_message_a_branch_counted_or_a_problem(shared: Path) -> None:
    for path in sessions(shared):
        problems: list[fl.Problem] = []
        transcripts = list(fl.read(path, on_problem=problems.append))
        meta = transcripts[0].meta
        if meta.get("session_format") not in PROGRAMS or meta["session_format"] == "inspect":
            continue
        used: set[int] = set()
        for transcript in transcripts:
            used.update(*transcript.meta["sources"])
            for branch in transcript.meta.get("branches", []):
                used.update(*branch["sources"])
        damaged = [problem for problem in problems if problem.code != "glued_values"]
        assert len(meta["entries"]) == len(used) + meta["skipped_entries"] + len(damaged), path.name
