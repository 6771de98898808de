"""The design card of the ledger, row by row: the package and its dependencies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np

import foldline as fl
from faults import model_server
from unit.samples import talk

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["", "one", "two words", "日本語", "x" * 1000]


def test_D1_estimates_and_exact_counts_of_a_batch_are_numpy_arrays() -> None:
    for spec in ("o200k_base", "chars/4", "bytes/4+4", "utf16/4+2", "auto"):
        counter = fl.TokenCounter(spec)
        counts = counter.count_batch(TEXTS)
        assert isinstance(counts, np.ndarray)
        assert (counts.dtype, counts.shape) == (np.int64, (len(TEXTS),))
        assert counts.tolist() == [counter.count(text) for text in TEXTS]


def test_D1_counts_of_a_message_array_are_a_numpy_array() -> None:
    messages = talk(5)
    counts = fl.TokenCounter("o200k_base").count_messages(messages)
    assert (counts.per_message.dtype, counts.per_message.shape) == (np.int64, (len(messages),))
    assert counts.total == int(counts.per_message.sum()) + counts.overhead


def test_D4_the_wheel_supports_python_3_11_and_later_and_needs_only_numpy() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    names = [re.match(r"[\w-]+", line) for line in project["project"]["dependencies"]]
    assert [name[0] for name in names if name] == ["numpy"]
    assert project["project"]["requires-python"] == ">=3.11"
    assert project["build-system"]["build-backend"] == "maturin"
    assert "abi3-py311" in cargo["dependencies"]["pyo3"]["features"]


def test_D7_tools_are_those_of_the_card() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    assert {"pyo3", "numpy"} <= cargo["dependencies"].keys()
    assert "tiktoken-rs" in cargo["build-dependencies"]
    dev = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {"pytest", "pytest-benchmark"} <= {re.split(r"[<>=\[;~ ]", line)[0] for line in dev["test"]}
    assert "maturin" in {re.split(r"[<>=\[;~ ]", line)[0] for line in dev["dev"]}


def test_D2_cuts_of_transcripts_and_batches_respect_pairs_and_pins() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "The rule: never push."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
        *talk(3),
    ]
    plan = fl.plan(messages, fl.KeepMessages(4), pins=[0])
    # A cut before the result would tear the pair: it moves back to the call, and the pinned message stays.
    assert (plan.cut, plan.actions) == (0, ["pin", "keep", "keep", "keep", "keep", "keep"])
    deeper = fl.plan(messages, fl.KeepMessages(3), pins=[0])
    assert deeper.actions == ["pin", "summarize", "summarize", "keep", "keep", "keep"]
    batch = fl.plan_batch([messages, messages[:2], talk(5)], fl.KeepMessages(3))
    one_by_one = [fl.plan(each, fl.KeepMessages(3)) for each in (messages, messages[:2], talk(5))]
    assert isinstance(batch.cuts, np.ndarray)
    assert batch.cuts.tolist() == [plan.cut for plan in one_by_one]


def test_D5_stored_transcripts_are_compacted_in_a_batch() -> None:
    stored = [fl.typing.StoredTranscript(f"s{i}", "openai_chat", talk(8)) for i in range(3)]
    rows = list(fl.batch.BatchCompactor(keep=fl.KeepMessages(2)).compact_rows(stored))
    assert [row.id for row in rows] == ["s0", "s1", "s2"]
    assert all(row.tokens_after < row.tokens_before for row in rows)


def test_D3_a_client_writes_the_summary_when_a_trigger_fires_by_a_strategy() -> None:
    messages = talk(8)
    with model_server.ModelServer(model_server.answering("They counted to eight.")) as served:
        model = fl.summarizers.OpenAICompatible("m", served.base_url, "key", timeout_s=30)
        with model:
            strategy = fl.strategies.Summarize(model, keep_recent=2, mend=False)
            trigger = fl.triggers.MessageCount(6)
            quiet = fl.Compactor(trigger, strategy).compact(messages[:3])
            result = fl.Compactor(trigger, strategy).compact(messages)
    assert quiet.messages == messages[:3]
    assert result.messages[-2:] == messages[-2:]
    assert "They counted to eight." in result.messages[0]["content"]
    assert len(served.requests) == 1
