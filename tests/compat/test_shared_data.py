"""Every shared file reads, counts, plans, applies and validates."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from reference import counters, model

PROVIDERS = {
    "openai_chat": "openai",
    "openai_responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}

KEEPS = (
    fl.KeepTokens(20_000),
    fl.FitTokens(30_000),
    fl.KeepTokens(500),
    fl.KeepFraction(0.4),
    fl.KeepMessages(10),
    fl.KeepTurns(2),
    fl.KeepIterations(5),
    fl.FitTokens(4_000),
)

#: Problems of the files themselves, as they were published.
PROBLEMS = {
    "37_995ebed6e4_2_full.jsonl": ["glued_values", "repeated_entry"],
}

#: Messages and transcripts that must come out: (transcripts, messages).
EXPECTED = {
    "gpt-4o-airline.tasks0-24.json": (100, 2962),
    "large-session.jsonl": (1, 914),
    "openai-chat.jsonl": (200, None),
    "anthropic.jsonl": (114, None),
    "openai-responses.jsonl": (126, None),
    "gemini.jsonl": (151, None),
    "cohere.jsonl": (5, 9),
    "film-dev.json": (150, 3858),
    "ab_2b9748b105_0_full.jsonl": (1, 20),
    "ec_38b74f08e3_2_full.jsonl": (1, 0),
}

#: The dialect of every request of a file, plain text or not: the key that holds the messages speaks for it.
DIALECTS = {"openai-responses.jsonl": "openai_responses", "gemini.jsonl": "gemini"}


def files(folder: Path) -> list[Path]:
    """The files with transcripts."""
    found = sorted(path for path in folder.glob("*/*") if path.suffix in (".json", ".jsonl", ".traj"))
    assert len(found) == 56
    return found


def read(path: Path) -> tuple[list[fl.StoredTranscript], list[str]]:
    """The transcripts of a file and the codes of its problems."""
    problems: list[fl.Problem] = []
    transcripts = list(fl.read(path, on_problem=problems.append))
    return transcripts, [problem.code for problem in problems]


def transcripts_of(folder: Path) -> list[tuple[str, fl.StoredTranscript]]:
    """All transcripts with the names of their files."""
    return [(path.name, transcript) for path in files(folder) for transcript in read(path)[0]]


def values(line: str) -> Iterator[Any]:
    """The JSON values of a line, glued ones too."""
    at = 0
    while at < len(line):
        value, at = json.JSONDecoder().raw_decode(line, at)
        yield value


def test_every_file_reads(shared: Path) -> None:
    """Every file gives its messages; what is damaged is reported."""
    for path in files(shared):
        transcripts, problems = read(path)
        assert problems == PROBLEMS.get(path.name, []), path.name
        assert transcripts, path.name
        count, messages = EXPECTED.get(path.name, (len(transcripts), None))
        assert len(transcripts) == count
        if path.name in DIALECTS:
            assert {transcript.format for transcript in transcripts} == {DIALECTS[path.name]}, path.name
        if messages is not None:
            assert sum(len(transcript.messages) for transcript in transcripts) == messages


@pytest.mark.parametrize(("name", "answered"), [("gemini.jsonl", 142), ("openai-responses.jsonl", 107)])
def test_what_a_provider_answered_validates(shared: Path, name: str, answered: int) -> None:
    """The rules reject no recorded request that was answered, but those whose history is stored elsewhere."""
    transcripts, _ = read(shared / "pydantic-ai-requests" / name)
    taken = [transcript for transcript in transcripts if transcript.meta.get("usage")]
    assert len(taken) == answered
    stored = ("previous_response_id", "conversation")
    rejected = [each for each in taken if fl.validate(each.messages, PROVIDERS[each.format])]
    assert all(any(each.meta.get(key) for key in stored) for each in rejected)
    assert len(rejected) <= 3


def test_claude_code_sessions_lose_nothing(shared: Path) -> None:
    """Every content block of every user and assistant entry stands in exactly one message, as it was; so does every
    text that a running turn took from the queue."""
    checked = typed = 0
    for path in sorted(shared.glob("claude-code-*/*.jsonl")):
        transcripts, _ = read(path)
        if transcripts[0].format == "gemini":
            continue
        checked += 1
        entries: dict[str, Any] = {}
        blocks: Counter[str] = Counter()
        queued: list[str] = []
        copies = 0
        for line in path.read_text(encoding="utf-8").splitlines():
            for entry in values(line):
                if entry.get("type") in ("user", "assistant"):
                    entries.setdefault(entry["uuid"], entry)
                elif entry.get("operation") == "enqueue":
                    queued.append(entry["content"])
                elif entry.get("operation") == "remove":
                    # No recorded version writes another entry of a text that a turn took.
                    blocks[json.dumps(queued.pop(0))] += 1
                    typed += 1
                elif entry.get("operation") == "dequeue":
                    del queued[:1]
                elif entry.get("type") == "progress":
                    copies += "message" in entry["data"]
        for entry in entries.values():
            content = entry["message"]["content"]
            blocks.update(json.dumps(block) for block in (content if isinstance(content, list) else [content]))
        found: Counter[str] = Counter()
        for transcript in transcripts:
            for message in transcript.messages:
                content = message["content"]
                found.update(json.dumps(block) for block in (content if isinstance(content, list) else [content]))
        assert found == blocks, path.name
        unread = Counter(each["reason"] for each in transcripts[0].meta.get("unread", []))
        assert unread["copy_of_sub_agent"] == copies, path.name
    assert checked > 0
    assert typed == 6


def test_pi_sessions_lose_nothing(shared: Path) -> None:
    """Every message stands in the conversation or in a branch, as it was; every other entry is counted by kind."""
    path = shared / "pi" / "large-session.jsonl"
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ((transcript,), problems) = read(path)
    branches = [message for branch in transcript.meta.get("branches", []) for message in branch["messages"]]
    found = Counter(json.dumps(message) for message in [*transcript.messages, *branches])
    assert found == Counter(json.dumps(entry["message"]) for entry in entries if entry["type"] == "message")
    others = Counter(entry["type"] for entry in entries if entry["type"] != "message")
    assert transcript.meta["skipped_kinds"] == others
    assert problems == []


def test_rollouts_lose_nothing(shared: Path) -> None:
    """Every item stands as it was recorded, in its order."""
    paths = sorted(shared.glob("codex-rollout/*.jsonl"))
    assert len(paths) == 2
    for path in paths:
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        items = [entry["payload"] for entry in entries if entry["type"] == "response_item"]
        ((transcript,), problems) = read(path)
        assert transcript.format == "openai_responses"
        assert transcript.messages == items
        assert transcript.meta["entries"] == entries
        assert transcript.meta["skipped_entries"] == len(entries) - len(items)
        assert problems == fl.validate(transcript.messages, "responses") == []


def test_gemini_sessions_lose_nothing(shared: Path) -> None:
    """Every text, call and result of every record of the user and the model stands in one content, in its order."""
    names = ("ab_2b9748b105_0_full.jsonl", "ec_38b74f08e3_2_full.jsonl")
    paths = [*sorted(shared.glob("gemini-cli/*.json")), *(shared / "claude-code-entire" / name for name in names)]
    assert len(paths) == 6
    for path in paths:
        document = json.loads(path.read_text(encoding="utf-8"))
        texts, calls, results = [], [], []
        for record in document["messages"]:
            if record["type"] not in ("user", "gemini"):
                continue
            texts += [record["content"]] if record["content"] else []
            for call in record.get("toolCalls", []):
                calls.append({key: call[key] for key in ("id", "name", "args")})
                results += call["result"]
        ((transcript,), problems) = read(path)
        parts = [part for content in transcript.messages for part in content["parts"]]
        assert [part["text"] for part in parts if "text" in part] == texts
        assert [part["functionCall"] for part in parts if "functionCall" in part] == calls
        assert [part for part in parts if "functionResponse" in part] == results
        assert len(parts) == len(texts) + len(calls) + len(results)
        assert transcript.meta["entries"] == document.pop("messages")
        assert transcript.meta.items() >= document.items()
        assert problems == fl.validate(transcript.messages, "gemini") == []


def test_trajectories_lose_nothing(shared: Path) -> None:
    """Every entry of the history is a message as it was sent; the steps are beside."""
    paths = sorted(shared.glob("swe-agent/*.traj"))
    assert len(paths) == 10
    for path in paths:
        document = json.loads(path.read_text(encoding="utf-8"))
        ((transcript,), problems) = read(path)
        history = document.pop("history")
        sent = [
            entry | ({"tool_call_id": entry["tool_call_ids"][0]} if "tool_call_ids" in entry else {})
            for entry in history
        ]
        assert transcript.messages == sent
        assert transcript.meta["entries"] == history
        assert transcript.meta.items() >= document.items()
        assert problems == fl.validate(transcript.messages, "openai") == []


def test_dialogues_lose_nothing(shared: Path) -> None:
    """Every turn is a message with all that stood beside its text; the speakers take turns."""
    path = shared / "kdconv-zh" / "film-dev.json"
    transcripts, problems = read(path)
    assert problems == []
    dialogues = json.loads(path.read_text(encoding="utf-8"))
    for dialogue, transcript in zip(dialogues, transcripts, strict=True):
        turns = [{("message" if key == "content" else key): item for key, item in message.items() if key != "role"}
                 for message in transcript.messages]  # fmt: skip
        assert turns == dialogue.pop("messages")
        roles = [message["role"] for message in transcript.messages]
        assert roles == [("user", "assistant")[i % 2] for i in range(len(turns))]
        assert transcript.meta.items() >= (dialogue | {"roles": "assumed"}).items()


def test_the_table_of_the_data_is_true(shared: Path) -> None:
    """`docs/data.md` says what is read."""
    root = Path(__file__).resolve().parents[2]
    check = [root / "scripts" / "data_table.py", shared, "--check", root / "docs" / "data.md"]
    subprocess.run([sys.executable, *map(str, check)], check=True)


def test_counts_are_sums_of_exact_counts(shared: Path) -> None:
    """The oracle adds up tiktoken's counts and the documented framing; messages it cannot read are passed over."""
    import tiktoken

    peer = tiktoken.get_encoding("o200k_base")
    counter = fl.TokenCounter("o200k_base")
    compared = 0
    for _, transcript in transcripts_of(shared):
        if transcript.format not in PROVIDERS:
            continue
        price = counters.exact(lambda text: len(peer.encode_ordinary(text)), transcript.format)
        per_message = counter.count_messages(transcript.messages, format=transcript.format).per_message
        for message, found in zip(transcript.messages, per_message, strict=True):
            try:
                (read_message,) = model.read([message], transcript.format)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            assert found == price.message(read_message)
            compared += 1
    assert compared > 5_000


def test_dicts_and_bytes_count_and_plan_alike(shared: Path) -> None:
    """I11: the same from dicts or JSON bytes."""
    for spec in ("o200k_base", "utf16/4+2"):
        counter = fl.TokenCounter(spec)
        for _, transcript in transcripts_of(shared):
            data = json.dumps(transcript.messages).encode()
            options: dict[str, Any] = {"format": transcript.format}
            from_dicts = counter.count_messages(transcript.messages, **options)
            from_bytes = counter.count_messages(data, **options)
            assert from_dicts.per_message.tolist() == from_bytes.per_message.tolist()
            assert fl.plan(data, fl.KeepTokens(2_000), counter=counter, **options) == fl.plan(
                transcript.messages, fl.KeepTokens(2_000), counter=counter, **options
            )


@pytest.mark.parametrize("keep", KEEPS, ids=str)
def test_every_transcript_folds_to_a_valid_list(shared: Path, keep: fl.planning.Keep) -> None:
    """Order and unknown fields stay, problems never grow, budgets hold, the input is untouched."""
    counter = fl.TokenCounter("o200k_base")
    folded = 0
    for name, transcript in transcripts_of(shared):
        messages = transcript.messages
        before = copy.deepcopy(messages)
        summary_tokens = 200
        plan = fl.plan(
            messages, keep, counter=counter, summary_tokens=summary_tokens, format=transcript.format, pins=[]
        )
        if isinstance(plan, fl.Infeasible):
            assert isinstance(keep, fl.FitTokens)
            assert plan.floor > keep.n
            continue
        new = plan.apply(messages, summary="What came before." if plan.cut else None)
        assert messages == before, name
        kept = [i for i, action in enumerate(plan.actions) if action != "summarize"]
        edited = {i for i, action in enumerate(plan.actions) if action in ("clear", "shorten")}
        rest = new[: plan.head] + new[plan.head + 1 :] if plan.cut else new
        assert len(rest) == len(kept)
        for old, message in zip(kept, rest, strict=True):
            assert old in edited or message is messages[old]
        if isinstance(keep, fl.FitTokens):
            assert counter.count_messages(new, format=transcript.format).total <= keep.n
        folded += plan.cut > 0
        provider = PROVIDERS.get(transcript.format)
        if provider:
            problems = Counter(problem.code for problem in fl.validate(messages, provider))
            left = Counter(problem.code for problem in fl.validate(new, provider))
            assert left <= problems, name
    assert folded > 10


@pytest.mark.parametrize("keep", [fl.KeepTokens(20_000), fl.FitTokens(30_000)], ids=str)
def test_every_session_compacts(shared: Path, keep: fl.planning.Keep) -> None:
    """The main job on real sessions: it folds, it shrinks, it validates where the session did."""
    folded = 0
    for name, transcript in transcripts_of(shared):
        result = fl.compact(transcript.messages, keep, counter="o200k_base", format=transcript.format)
        assert result.error is None, name
        if not result.plan:
            continue
        folded += 1
        replaced = result.tokens_before - result.plan.overhead - result.plan.tokens_kept
        # A label and its provenance take some 50 tokens: what is hardly longer than that cannot shrink.
        assert result.tokens_after < result.tokens_before or replaced < 120, name
        assert result.evidence
        provider = PROVIDERS.get(transcript.format)
        if provider:
            valid = not fl.validate(transcript.messages, provider)
            problems = fl.validate(result.messages, provider)
            assert not (valid and problems), (name, problems)
    assert folded >= 14
