"""`fl.batch.BatchCompactor`: rows in, rows out; a bad row does not affect the others."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.batch import CompactedRow
from foldline.errors import ConfigError

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"

COLUMNS = ["id", "messages", "summary", "tokens_before", "tokens_after", "actions", "status", "error", "plan_hash"]


def talk(turns: int = 8) -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[i % 2], "content": f"Step {i}: " + "please mind the tests of this step. " * 40}
        for i in range(2 * turns)
    ]


def stored(name: str, messages: list[Any], **meta: Any) -> fl.StoredTranscript:
    return fl.StoredTranscript(name, "openai_chat", messages, meta)


def letters(text: str) -> int:
    """A custom counter at module level, so that it can be pickled."""
    return len(text)


def refusing(messages: list[Any]) -> str:
    raise RuntimeError("hunter2")


class Broken(list[Any]):
    """A value that no JSON parser produces."""

    def __len__(self) -> int:
        raise ZeroDivisionError


# Rows


def test_a_row_equals_the_fold_of_its_transcript() -> None:
    tools = [{"name": "f", "description": "does something"}]
    compactor = fl.batch.BatchCompactor(fl.KeepMessages(3), pins=[1, 99], summary_tokens=400)
    [row] = compactor.compact_rows([stored("a", talk(), tools=tools)])
    result = fl.compact(talk(), fl.KeepMessages(3), pins=[1], summary_tokens=400, tools=tools)
    assert isinstance(result.plan, fl.Plan)
    assert row == CompactedRow(
        "a",
        "openai_chat",
        result.messages,
        result.summary,
        result.tokens_before,
        result.tokens_after,
        list(result.plan.actions),
        "folded",
        None,
        result.plan.fingerprint,
    )


def test_rows_are_produced_lazily() -> None:
    order: list[str] = []

    def source() -> Iterator[fl.StoredTranscript]:
        for name in "ab":
            order.append(f"read {name}")
            yield stored(name, talk(1))

    rows = fl.batch.BatchCompactor(fl.KeepMessages(3)).compact_rows(source())
    order += [f"row {next(rows).id}"]
    order += [f"row {next(rows).id}"]
    assert order == ["read a", "row a", "read b", "row b"]


def test_an_error_of_a_row_does_not_affect_other_rows() -> None:
    bad = [{"role": "user", "content": 5, "secret": "hunter2"}]
    transcripts = [stored("bad", bad), stored("odd", Broken()), stored("good", talk())]
    rows = list(fl.batch.BatchCompactor(fl.KeepMessages(3)).compact_rows(transcripts))
    assert [row.status for row in rows] == ["failed", "failed", "folded"]
    assert rows[0].error is not None
    assert (rows[0].error.index, rows[0].messages, rows[0].tokens_before) == (0, bad, None)
    assert rows[1].error is not None
    assert rows[1].error.code == "internal"
    assert "hunter2" not in str(rows[0].error)


def test_a_failed_summary_leaves_the_messages_and_no_content_in_the_error() -> None:
    [row] = fl.batch.BatchCompactor(fl.KeepMessages(3), summarizer=refusing).compact_rows([stored("a", talk())])
    assert (row.status, row.messages) == ("failed", talk())
    assert row.error is not None
    assert (row.error.code, "hunter2" in str(row.error)) == ("summarizer_failed", False)
    assert row.plan_hash


def test_a_row_that_cannot_fit_is_infeasible() -> None:
    [row] = fl.batch.BatchCompactor(fl.FitTokens(10)).compact_rows([stored("a", talk())])
    assert (row.status, row.messages, row.actions) == ("infeasible", talk(), None)
    assert row.error is not None
    assert row.error.code == "infeasible"


def test_options_are_checked_before_any_work() -> None:
    for options, path in (
        ({"format": "morse"}, "format"),
        ({"summary_tokens": -1}, "summary_tokens"),
        ({"counter": "abacus"}, "counter"),
        ({"context_window": 10, "reserve_tokens": 20}, "reserve_tokens"),
        ({"thinking": "hard"}, "thinking"),
        ({"summarizer": 3}, "summarizer"),
    ):
        with pytest.raises(ConfigError) as raised:
            fl.batch.BatchCompactor(fl.KeepMessages(3), **options)  # type: ignore[arg-type]
        assert raised.value.path == path


# Pickling


@pytest.mark.parametrize(
    "counter",
    [None, "chars/4", letters, fl.TokenCounter("cl100k_base"), fl.TokenCounter.for_model("claude-sonnet-4-5")],
    ids=["default", "estimate", "function", "encoding", "model"],
)
def test_a_pickled_compactor_gives_the_same_rows(counter: Any) -> None:
    compactor = fl.batch.BatchCompactor(fl.KeepMessages(3), counter=counter, pins=[1], summary_tokens=400)
    again = pickle.loads(pickle.dumps(compactor))
    assert list(again.compact_rows([stored("a", talk())])) == list(compactor.compact_rows([stored("a", talk())]))
    assert again.counter.model == compactor.counter.model


def test_a_counter_around_a_function_cannot_be_pickled() -> None:
    with pytest.raises(ConfigError, match="give the function"):
        pickle.dumps(fl.batch.BatchCompactor(fl.KeepMessages(3), counter=fl.TokenCounter(letters)))


def test_connections_and_environment_keys_are_not_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx2")
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    model = fl.summarizers.OpenAICompatible("m", base_url="http://127.0.0.1:1/v1")
    assert b"hunter2" not in pickle.dumps(fl.batch.BatchCompactor(fl.KeepMessages(3), summarizer=model))


# Arrow


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary"])
def test_a_batch_gives_a_batch_of_the_fixed_schema(kind: str) -> None:
    pa = pytest.importorskip("pyarrow")
    values = [json.dumps(talk()), json.dumps({"id": "own", "messages": talk(1)}), None, "{x", "[1, 2]", "7"]
    data = [None if value is None else value.encode() for value in values] if kind == "binary" else values
    batch = pa.record_batch({"messages": pa.array(data, getattr(pa, kind)()), "extra": [1] * 6})
    compactor = fl.batch.BatchCompactor(fl.KeepMessages(3), summary_tokens=400)
    answer = compactor(batch)
    assert isinstance(answer, pa.RecordBatch)
    assert answer.schema == compactor.schema()
    assert answer.schema.names == COLUMNS
    rows = answer.to_pylist()
    assert [row["id"] for row in rows] == ["0", "own", "2", "3", "4", "5"]
    assert [row["status"] for row in rows] == ["folded", "unchanged", "failed", "failed", "failed", "failed"]
    [expected] = compactor.compact_rows([stored("0", talk())])
    assert json.loads(rows[0]["messages"]) == expected.messages
    assert {key: rows[0][key] for key in COLUMNS[2:6]} == {key: getattr(expected, key) for key in COLUMNS[2:6]}
    assert rows[0]["plan_hash"] == expected.plan_hash
    assert json.loads(rows[3]["error"])["code"] == "bad_json"
    if kind != "binary":
        assert rows[3]["messages"] == "{x"


def test_an_id_column_takes_precedence_and_equal_tables_give_equal_tables() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"id": [7, 8], "messages": [json.dumps({"id": "own", "messages": talk(1)})] * 2})
    answer = fl.batch.BatchCompactor(fl.KeepMessages(3))(table)
    assert isinstance(answer, pa.Table)
    assert answer["id"].to_pylist() == ["7", "8"]
    assert answer.equals(fl.batch.BatchCompactor(fl.KeepMessages(3))(table))


def test_structs_are_read_without_their_nulls() -> None:
    pa = pytest.importorskip("pyarrow")
    messages = [{"role": "user", "content": "hi", "name": "someone"}, {"role": "assistant", "content": "hello"}]
    answer = fl.batch.BatchCompactor(fl.KeepMessages(3))(pa.table({"messages": [messages]}))
    assert json.loads(answer["messages"][0].as_py()) == messages


def test_text_that_is_not_utf8_is_preserved_in_the_messages() -> None:
    pa = pytest.importorskip("pyarrow")
    text = '[{"role":"user","content":"lone \\ud83d half"}]'
    [row] = fl.batch.BatchCompactor(fl.KeepMessages(3))(pa.table({"messages": [text]})).to_pylist()
    assert json.loads(row["messages"]) == json.loads(text)


def test_recorded_sessions_survive_a_batch() -> None:
    pa = pytest.importorskip("pyarrow")
    transcripts = [t for t in fl.read(DATA) if t.format == "openai_chat"]
    assert transcripts
    table = pa.table({"id": [t.id for t in transcripts], "messages": [json.dumps(t.messages) for t in transcripts]})
    compactor = fl.batch.BatchCompactor(fl.KeepTokens(2000))
    bare = [fl.StoredTranscript(t.id, t.format, t.messages) for t in transcripts]
    expected = [(row.id, row.status, row.tokens_after) for row in compactor.compact_rows(bare)]
    assert [(r["id"], r["status"], r["tokens_after"]) for r in compactor(table).to_pylist()] == expected


def test_an_empty_batch_and_a_missing_column() -> None:
    pa = pytest.importorskip("pyarrow")
    compactor = fl.batch.BatchCompactor(fl.KeepMessages(3))
    empty = pa.record_batch({"messages": pa.array([], pa.string())})
    assert (compactor(empty).num_rows, compactor(empty).schema) == (0, compactor.schema())
    with pytest.raises(ConfigError, match="no such column"):
        compactor(pa.record_batch({"text": ["x"]}))


def test_rows_need_no_pyarrow() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; import foldline as fl; "
        "c = fl.batch.BatchCompactor(fl.KeepMessages(1)); "
        "print([r.status for r in c.compact_rows([fl.StoredTranscript('a', 'openai_chat', [])])])\n"
        "try: c(None)\nexcept fl.errors.ConfigError as e: print(e.code)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.splitlines() == ["['unchanged']", "missing_extra"]
