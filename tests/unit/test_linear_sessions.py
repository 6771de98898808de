"""Sessions and conversations cost linear time, however their entries refer to each other.

Each is read, folded or searched for evidence at a size and at 64 times that size, see `tests/growth.py`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import foldline as fl
from foldline._core import RowFolder
from foldline.batch import BatchCompactor
from growth import MOST_GROWTH, growth
from unit.shelf import lines

Dict = dict[str, Any]


# --- Codex ----------------------------------------------------------------------------------------------


def rollout(kind: str, payload: Dict) -> Dict:
    return {"timestamp": "t", "type": kind, "payload": payload}


def item(words: str, role: str = "user") -> Dict:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": words}]}


def said(words: str, role: str = "user") -> Dict:
    return rollout("response_item", item(words, role))


def rolled_back(turns: int) -> Dict:
    return rollout("event_msg", {"type": "thread_rolled_back", "num_turns": turns})


def compacted(words: str) -> Dict:
    return rollout("compacted", {"message": "s", "replacement_history": [item(words)]})


def reviewed(words: str) -> Dict:
    return rollout("event_msg", {"type": "exited_review_mode", "review_output": {"overall_explanation": words}})


# --- Claude Code ----------------------------------------------------------------------------------------

TEXT = {"type": "text", "text": "x"}


def entry(i: int, kind: str = "user", content: Any = "a", **message: Any) -> Dict:
    parent = f"u{i - 1}" if i else None
    message = {"role": kind, "content": content} | message
    return {"type": kind, "uuid": f"u{i}", "parentUuid": parent, "sessionId": "s", "message": message}


def queued(operation: str, words: str) -> Dict:
    return {"type": "queue-operation", "operation": operation, "content": words, "sessionId": "s", "timestamp": "t"}


def boundary(i: int) -> Dict:
    return {"type": "system", "subtype": "compact_boundary", "uuid": f"b{i}", "sessionId": "s"}


def tool_use(i: int) -> Dict:
    return {"type": "tool_use", "id": f"c{i}", "name": "f", "input": {}}


def tool_result(i: int) -> Dict:
    return {"type": "tool_result", "tool_use_id": f"c{i}", "content": "r"}


# --- Gemini CLI, SWE-agent ------------------------------------------------------------------------------

HEADER = {"sessionId": "s", "projectHash": "h"}


def record(i: int) -> Dict:
    return {"id": f"r{i}", "timestamp": "t", "type": "user", "content": [{"text": "a"}]}


def rewound(i: int) -> Dict:
    return {"$rewindTo": f"r{i}"}


def restated(*records: Dict) -> Dict:
    return {"$set": {"messages": list(records)}}


def history(agents: int) -> Dict:
    return {"trajectory": [], "history": [{"role": "user", "agent": f"a{i}", "content": "a"} for i in range(agents)]}


#: Entries of a session of a size, and the smaller size.
SESSIONS: Final[dict[str, tuple[Callable[[int], list[Dict]], int]]] = {
    "rollbacks of no turn": (lambda n: [said("a")] * n + [rolled_back(0)] * n, 100),
    "rollbacks of all turns": (lambda n: [said("a")] * n + [rolled_back(1)] * n, 100),
    "a rollback after each turn": (lambda n: [said("a"), said("b"), rolled_back(1)] * n, 100),
    "rollbacks behind compactions": (
        lambda n: [each for i in range(n) for each in (said(f"a{i}"), compacted(f"s{i}"))] + [rolled_back(1)] * n,
        100,
    ),
    "reviews beside a large answer": (
        lambda n: [said("x" * 50 * n, "assistant"), *(reviewed(f"y{i}") for i in range(n))],
        250,
    ),
    "texts that leave the queue in reverse": (
        lambda n: [*(queued("enqueue", f"{i}") for i in range(n)), *(queued("dequeue", f"{n - i}") for i in range(n))],
        1_000,
    ),
    "texts that were never in the queue": (
        lambda n: [*(queued("enqueue", f"{i}") for i in range(n)), *(queued("remove", f"z{i}") for i in range(n))],
        1_000,
    ),
    "boundaries before an answer in many entries": (
        lambda n: [entry(0), *map(boundary, range(n)), *(entry(i + 1, "assistant", [TEXT], id="m") for i in range(n))],
        500,
    ),
    "sub-agents": (lambda n: [entry(0), *(entry(i) | {"isSidechain": True, "agentId": f"{i}"} for i in range(n))], 500),
    "records of a log": (lambda n: [HEADER, *map(record, range(n))], 1_000),
    "rewinds of a log": (lambda n: [HEADER, *map(record, range(n)), *(rewound(n - 1 - i) for i in range(n))], 1_000),
    "restatements of one record": (lambda n: [HEADER, *[restated(record(0))] * n], 1_000),
    "restatements of many records": (lambda n: [HEADER, *[restated(*map(record, range(n)))] * 2], 500),
}


def agents_of(count: int) -> list[Dict]:
    return [history(count)]


@pytest.mark.parametrize("name", [*SESSIONS, "agents"])
def test_reading_takes_linear_time(name: str, tmp_path: Path) -> None:
    make, small = SESSIONS.get(name, (agents_of, 500))
    path = tmp_path / ("s.traj" if name == "agents" else "s.jsonl")

    def of(count: int) -> Callable[[], object]:
        path.write_bytes(lines(make(count)))
        return lambda: list(fl.read(path))

    assert of(3)()
    assert growth(of, small) < MOST_GROWTH


# --- JSON text ------------------------------------------------------------------------------------------


def talk(content: Any = "c", **beside: Any) -> Dict:
    messages = [
        {"role": "user", "content": "x" * 200},
        {"role": "assistant", "content": "b" * 100},
        {"role": "user", "content": content},
    ]
    return {"messages": messages} | beside


def tool(i: int, options: int = 1) -> Dict:
    schema = {"type": "object", "properties": {"a": {"type": "string", "enum": [f"v{j}" for j in range(options)]}}}
    return {"type": "function", "function": {"name": f"f{i}", "parameters": schema}}


def results(count: int) -> Dict:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"c{i}", "type": "function", "function": function} for i in range(count)]
    answers = [{"role": "tool", "tool_call_id": f"c{i}", "content": "r" * 400} for i in range(count)]
    before = [{"role": "user", "content": "x" * 8_000}, {"role": "assistant", "content": "y" * 8_000}]
    now = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    return {"messages": [*before, *now, *answers]}


#: A conversation with a value that has as many items.
CONVERSATIONS: Final[dict[str, Callable[[int], Dict]]] = {
    "parts of a message": lambda n: talk([TEXT] * n),
    "parts of the system text": lambda n: talk(system=[TEXT] * n),
    "tools": lambda n: talk(tools=[tool(i) for i in range(n)]),
    "values of a parameter": lambda n: talk(tools=[tool(0, n)]),
    "summaries": lambda n: talk(summaries=[0] * n),
}


def folding(data: bytes, keep: fl.KeepMessages | fl.FitTokens) -> Callable[[], list[Any]]:
    """Folds a session or a row in the core."""
    folder = BatchCompactor(keep, counter="chars/4", summary_tokens=300).row_folder(1)
    assert folder is not None
    if RowFolder.begins(data.partition(b"\n")[0]) == "session":
        return lambda: (folder.session(data) or ([],))[0]
    return lambda: folder.feed(data, is_last=True)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_folding_a_row_takes_linear_time(name: str) -> None:
    def of(count: int) -> Callable[[], list[Any]]:
        return folding(lines([CONVERSATIONS[name](count)]), fl.KeepMessages(1))

    assert [row.status for row in of(3)()] == ["folded"]
    assert growth(of, 1_000) < MOST_GROWTH


def test_clearing_the_results_of_a_row_takes_linear_time() -> None:
    def of(count: int) -> Callable[[], list[Any]]:
        return folding(lines([results(count)]), fl.FitTokens(60 * count))

    assert [row.status for row in of(100)()] == ["folded"]
    assert growth(of, 300) < MOST_GROWTH


def calls_and_results(count: int) -> list[Dict]:
    calls = [entry(i + 1, "assistant", [tool_use(i)], id=f"m{i}") for i in range(count)]
    return [*calls, entry(count + 1, content=[tool_result(i) for i in range(count)])]


#: Entries of a session, one of which has as many blocks.
BLOCKS: Final[dict[str, Callable[[int], list[Dict]]]] = {
    "of a prompt": lambda n: [entry(1, content=[TEXT] * n)],
    "of an answer": lambda n: [entry(1, "assistant", [TEXT] * n, id="m")],
    "of the results of many calls": calls_and_results,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_folding_the_blocks_of_an_entry_takes_linear_time(name: str) -> None:
    def of(count: int) -> Callable[[], list[Any]]:
        data = lines([entry(0, content="x" * 4_000), *BLOCKS[name](count), entry(count + 2)])
        return folding(data, fl.KeepMessages(1))

    assert [row.status for row in of(3)()] == ["folded"]
    assert growth(of, 500) < MOST_GROWTH


# --- Evidence -------------------------------------------------------------------------------------------


def called(i: int, name: str, arguments: Dict, answer: str | None = "ok") -> list[Dict]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{i}", "type": "function", "function": function}],
    }
    return [call, *([{"role": "tool", "tool_call_id": f"c{i}", "content": answer}] if answer else [])]


def created(count: int) -> list[Dict]:
    return [each for i in range(count) for each in called(i, "TaskCreate", {"subject": f"subject number{i}"})]


def todos(*words: str, status: str = "pending") -> Dict:
    return {"todos": [{"content": each, "status": status} for each in words]}


def each_of(count: int, call: Callable[[int], list[Dict]]) -> list[Dict]:
    return [each for i in range(count) for each in call(i)]


EVIDENCE: Final[dict[str, tuple[Callable[[int], list[Dict]], int]]] = {
    "a list of tasks": (lambda n: called(0, "TodoWrite", todos(*map(str, range(n)))), 1_000),
    "completed lists": (lambda n: each_of(n, lambda i: called(i, "TodoWrite", todos(f"{i}", status="completed"))), 250),
    "tasks and drops": (
        lambda n: created(n) + [{"role": "user", "content": f"skip the thingy{i} please"} for i in range(n)],
        50,
    ),
    "calls since the last text": (lambda n: each_of(n, lambda i: called(i, "Bash", {"command": f"make t{i}"})), 500),
    "open calls": (lambda n: each_of(n, lambda i: called(i, "f", {"i": i}, None)), 500),
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence_takes_linear_time(name: str) -> None:
    make, small = EVIDENCE[name]

    def of(count: int) -> Callable[[], object]:
        messages = [{"role": "user", "content": "go"}, *make(count)]
        return lambda: fl.evidence(messages).to_dict()

    assert growth(of, small) < MOST_GROWTH


# --- The same as a slow reading -------------------------------------------------------------------------


def texts_after(entries: list[Dict]) -> list[str]:
    """The texts of a rollout's messages, with a walk over all of them for each rollback."""
    texts: list[str] = []
    for each in entries:
        if each["type"] == "response_item":
            texts.append(each["payload"]["content"][0]["text"])
            continue
        turns = each["payload"]["num_turns"]
        prompts = [at for at, text in enumerate(texts) if not text.startswith(("<", "# AGENTS.md"))]
        if turns > 0 and prompts:
            del texts[prompts[max(len(prompts) - turns, 0)] :]
    return texts


def test_rollbacks_leave_what_a_walk_over_all_messages_leaves(tmp_path: Path) -> None:
    draw = random.Random("rollbacks")
    path = tmp_path / "rollout.jsonl"
    for _ in range(200):
        words = ("a", "b", "<context>", "# AGENTS.md of the project")
        entries = [
            rolled_back(draw.choice((0, 1, 1, 2, 3, 40))) if draw.random() < 0.3 else said(f"{draw.choice(words)}{i}")
            for i in range(draw.randint(1, 40))
        ]
        path.write_bytes(lines([rollout("session_meta", {"id": "s"}), *entries]))
        messages = [message for session in fl.read(path) for message in session.messages]
        assert [message["content"][0]["text"] for message in messages] == texts_after(entries)
