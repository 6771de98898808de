"""Every shared file that the formats cover reads, counts, plans, applies and validates."""

from __future__ import annotations

import copy
import json
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

#: Files that hold a dialect which is not read yet, and say so.
UNSUPPORTED = {
    "gemini-cli": "unsupported_format",
    "codex-rollout": "unsupported_format",
    "kdconv-zh": "unsupported_format",
    "cohere.jsonl": None,
    "ab_2b9748b105_0_full.jsonl": "unsupported_format",
    "ec_38b74f08e3_2_full.jsonl": "unsupported_format",
}

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
    """What is covered gives its messages; what is not says so; what is damaged is reported."""
    for path in files(shared):
        transcripts, problems = read(path)
        expected = UNSUPPORTED.get(path.name, UNSUPPORTED.get(path.parent.name))
        if expected is not None:
            assert not transcripts, path.name
            assert set(problems) == {expected}, path.name
            continue
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
    """Every content block of every user and assistant entry stands in exactly one message, as it was."""
    for path in sorted(shared.glob("claude-code-*/*.jsonl")):
        transcripts, problems = read(path)
        if "unsupported_format" in problems:
            continue
        entries: dict[str, Any] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            for entry in values(line):
                if entry.get("type") in ("user", "assistant"):
                    entries.setdefault(entry["uuid"], entry)
        blocks: Counter[str] = Counter()
        for entry in entries.values():
            content = entry["message"]["content"]
            blocks.update(json.dumps(block) for block in (content if isinstance(content, list) else [content]))
        found: Counter[str] = Counter()
        for transcript in transcripts:
            for message in transcript.messages:
                content = message["content"]
                found.update(json.dumps(block) for block in (content if isinstance(content, list) else [content]))
        assert found == blocks, path.name


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
def test_every_transcript_folds_to_a_valid_list(shared: Path, keep: fl.Keep) -> None:
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
def test_every_session_compacts(shared: Path, keep: fl.Keep) -> None:
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
