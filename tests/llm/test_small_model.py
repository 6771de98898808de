"""A real model, small enough to be bad at it, writes summaries over HTTP: `make test-llm`.

SmolLM2-135M-Instruct runs on loopback (`serve.py`). What it writes differs from machine to machine; what is checked
here must hold whatever it writes. Without the server these tests are skipped.
"""

from __future__ import annotations

import asyncio
import copy
import os
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from facts import FACTS, session_with_facts

PYTHON = os.environ.get("FOLDLINE_LLM_PYTHON")
ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "examples" / "data"
pytestmark = pytest.mark.llm

TIMEOUT_S = 240.0
SESSIONS = ["openai-tools.jsonl", "gemini-cli-session.json", "chinese-dialogues.jsonl"]
PROVIDERS = {"openai_chat": "openai", "gemini": "gemini"}
#: With these the model comes to an end, if a poor one: after a paragraph, without saying things again and again.
BRIEF = {"stop": ["\n\n"], "repeat_penalty": 1.3}
#: The model reads 4,096 tokens of its own, which are smaller than those counted here.
MOST_TOKENS = 700


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the server."""
    command = [str(PYTHON), str(Path(__file__).with_name("serve.py"))]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as server:
        assert server.stdout is not None
        line = server.stdout.readline().strip()
        assert line.startswith("http://127.0.0.1:"), "the server did not start"
        yield line + "/v1"
        server.communicate("")


def session(name: str) -> list[dict[str, Any]]:
    """The beginning of a session, as long as the model can read."""
    messages = next(fl.read(DATA / name)).messages
    tokens = fl.TokenCounter("o200k_base").count_messages(messages).per_message
    # The system message stays, and is not read.
    head = sum(message.get("role") == "system" for message in messages[:1])
    end = len(messages)
    while end > head + 3 and sum(int(each) for each in tokens[head:end]) > MOST_TOKENS:
        end -= 1
    return messages[:end]


def model_at(address: str, **options: Any) -> fl.summarizers.OpenAICompatible:
    return fl.summarizers.OpenAICompatible("smollm2", address, "none", TIMEOUT_S, **{"temperature": 0, **options})


def folded(messages: list[dict[str, Any]], model: Any, *, asynchronous: bool = False, **options: Any) -> fl.FoldResult:
    """Folds; the messages are compared before and after."""
    before = copy.deepcopy(messages)
    options = {"summary_tokens": 250, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.errors.FoldlineWarning)
        if asynchronous:
            result = asyncio.run(fl.acompact(messages, fl.KeepMessages(1), summarizer=model, **options))
        else:
            result = fl.compact(messages, fl.KeepMessages(1), summarizer=model, **options)
    assert messages == before
    return result


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_it_answers(address: str, *, asynchronous: bool, stream: bool) -> None:
    asked = [{"role": "user", "content": "Write one short sentence about the sea."}]
    with model_at(address, stream=stream) as model:
        if asynchronous:
            completion = asyncio.run(model.acomplete(asked, max_tokens=200))
        else:
            completion = model.complete(asked, max_tokens=200)
    assert completion.text.strip()
    assert completion.finish_reason == "stop"
    assert completion.input_tokens is not None
    assert completion.output_tokens is not None
    assert completion.input_tokens > 0
    assert 0 < completion.output_tokens < 200


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_folded_or_left_as_it_was(address: str, name: str) -> None:
    messages = session(name)
    with model_at(address, extra_body=BRIEF) as model:
        result = folded(messages, model)
    if result.error is None:
        assert result.changed
        assert result.summary.strip()
        assert result.tokens_after < result.tokens_before
        provider = PROVIDERS[fl.detect_format(messages).format]
        known = {problem.code for problem in fl.validate(messages, provider)}
        assert {problem.code for problem in fl.validate(result.messages, provider)} <= known
    else:
        assert isinstance(result.error, fl.errors.SummaryError)
        assert result.messages == messages


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_prompt_that_is_too_long_says_so(address: str, *, asynchronous: bool, stream: bool) -> None:
    messages = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "word " * 1_000} for i in range(8)]
    with model_at(address, stream=stream) as model:
        result = folded(messages, model, asynchronous=asynchronous)
    assert result.error is not None
    assert result.error.code == "context_overflow"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_that_is_cut_off_is_refused(address: str, *, stream: bool) -> None:
    with model_at(address, stream=stream, extra_body={"max_tokens": 5}) as model:
        result = folded(session("openai-tools.jsonl"), model)
    assert result.error is not None
    assert result.error.code == "incomplete_summary"


def test_a_deadline_ends_a_model_that_is_at_work(address: str) -> None:
    asked = [{"role": "user", "content": "Count to a thousand, in words."}]
    # It never ends by itself.
    endless = {"ignore_eos": True}
    with model_at(address, extra_body=endless) as model, pytest.raises(fl.errors.SummaryError, match=r"^timeout"):
        model.complete(asked, max_tokens=3_000, timeout_s=1.0)


@pytest.mark.parametrize("name", SESSIONS)
def test_the_evidence_is_in_the_summary_or_named_as_dropped(address: str, name: str) -> None:
    with model_at(address, extra_body=BRIEF) as model:
        result = folded(session(name), model, summary_tokens=350)
    if result.error is not None:
        pytest.skip(f"no summary to mend: {result.error.code}")
    assert result.evidence is not None
    assert result.evidence["kept"] or result.evidence["added"]
    # A fact of several lines stands in a list, and its lines are set in.
    summary = " ".join(result.summary.split())
    for item in result.evidence["added"]:
        assert " ".join(item["text"].split()) in summary


def folded_in_the_end(messages: list[dict[str, Any]], model: Any, **options: Any) -> fl.FoldResult:
    """Folds, as often as the model needs to come to an end: what it writes differs with the nonce of the prompt.

    An answer that was cut off changes nothing, so that no fact is lost by it either.
    """
    for _ in range(6):
        result = folded(messages, model, **options)
        if result.error is None:
            return result
        assert result.error.code in ("incomplete_summary", "summary_over_limit")
        assert result.messages == messages
    pytest.fail("no answer came to its end")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_twelve_facts_survive_whatever_the_model_writes(
    address: str, record_property: Callable[[str, object], None], *, stream: bool
) -> None:
    with model_at(address, stream=stream, extra_body=BRIEF) as model:
        result = folded_in_the_end(session_with_facts(), model, summary_tokens=600)
    assert result.completion is not None
    assert [fact for fact in FACTS if fact not in result.summary] == []
    assert result.evidence is not None
    assert result.evidence["dropped"] == []
    alone = result.summary.partition("## Kept from the originals")[0]
    found = sum(fact in alone for fact in FACTS)
    record_property("facts of the model alone", found)
    print(f"{found} of {len(FACTS)} facts by the model alone, {len(FACTS)} with what was mended")


def test_where_the_room_is_small_the_weightiest_facts_survive(address: str) -> None:
    with model_at(address, extra_body=BRIEF) as model:
        result = folded_in_the_end(session_with_facts(), model, summary_tokens=300)
    assert result.evidence is not None
    weights = [item["weight"] for item in result.evidence["added"]]
    assert weights
    counter = fl.TokenCounter("o200k_base")
    assert counter.count(result.summary) <= 300
    # What was dropped is no longer there because of its size or its weight, and said so.
    for item in result.evidence["dropped"]:
        assert item["weight"] <= max(weights)
