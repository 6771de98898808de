"""`foldline compact --report`: facts in records, figures that are those of the outputs, pages of samples; progress."""

from __future__ import annotations

import html
import json
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from faults.counting_model import CountingModel
from foldline._cli.pace import Pace
from foldline.batch.report import BatchReport, rows_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"


def run(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "foldline", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, **more)
    assert "Traceback" not in ran.stderr
    return ran


def talk(name: str, steps: int) -> dict[str, Any]:
    request = {"role": "user", "content": f"Fix src/{name}.py, and never touch the lock file of {name}."}
    rest = [
        {"role": ("assistant", "user")[i % 2], "content": f"{name}, step {i}: mind the tests. " * 30}
        for i in range(steps)
    ]
    return {"id": name, "messages": [request, *rest]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sessions, conversations of all outcomes, and a line that is none."""
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(EXAMPLES / "claude-code-session.jsonl", folder)
    lines = [json.dumps(talk(f"talk{i}", steps)) for i, steps in enumerate((1, 4, 9, 20, 33))]
    (folder / "talks.jsonl").write_text("\n".join([*lines, "{x}"]) + "\n")
    (folder / "several.json").write_text(json.dumps([talk("one", 12), talk("two", 1)]))
    return folder


OPTIONS = ("--keep-tokens", 1_000, "--summary-tokens", 300)


def records(out: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of every output."""
    found = {}
    for path in sorted(each for each in out.iterdir() if each.is_file()):
        lines = [line.rstrip(",") for line in path.read_text().splitlines() if line not in ("[", "]")]
        found[path.name] = [json.loads(line) for line in lines]
    return found


def test_a_report_adds_facts_and_warnings_and_changes_nothing_else(folder: Path, tmp_path: Path) -> None:
    run("compact", folder, "--out", tmp_path / "plain", *OPTIONS)
    run("compact", folder, "--out", tmp_path / "told", *OPTIONS, "--report", tmp_path / "r.json")
    plain, reported = records(tmp_path / "plain"), records(tmp_path / "told")
    assert not any("facts" in record for each in plain.values() for record in each)
    assert "seconds" not in (tmp_path / "plain" / ".foldline" / "run.json").read_text()
    for name, each in reported.items():
        for record in each:
            facts, warnings = record.pop("facts"), record.pop("warnings")
            assert (facts is not None) == (record["summary"] is not None)
            assert all(set(warning) == {"code", "index"} for warning in warnings)
        assert each == plain[name]


def test_facts_of_a_record_are_those_of_the_fold(tmp_path: Path) -> None:
    file = EXAMPLES / "claude-code-session.jsonl"
    run("compact", file, "--out", tmp_path / "out", *OPTIONS, "--report", tmp_path / "r.json")
    (record,) = records(tmp_path / "out")[file.name]
    (source,) = (each for each in fl.read(file) if "#" not in each.id)
    folded = fl.batch.BatchCompactor(fl.KeepTokens(1_000), summary_tokens=300).fold(source, source.format)
    for name in ("kept", "added", "dropped"):
        expected = [(fact.kind, fact.text, fact.message) for fact in getattr(folded.facts, name)]
        assert [(fact["kind"], fact["text"], fact["message"]) for fact in record["facts"][name]] == expected
    assert record["facts"]["dropped"]
    assert isinstance(folded.plan, fl.Plan)
    assert [(each["code"], each["index"]) for each in record["warnings"]] == folded.plan.warnings


def test_the_figures_are_those_of_the_outputs(folder: Path, tmp_path: Path) -> None:
    ran = run("compact", folder, "--out", tmp_path / "out", *OPTIONS, "--report", tmp_path / "r.json", "--jobs", 2)
    assert ran.returncode == 1  # the bad line
    figures = json.loads((tmp_path / "r.json").read_text())
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == 0o600
    rows = [(name, record) for name, each in records(tmp_path / "out").items() for record in each]
    outcomes = Counter(record["status"] for _, record in rows)
    assert {each["status"]: each["transcripts"] for each in figures["outcomes"]} == outcomes
    assert set(outcomes) == {"folded", "unchanged"}
    assert figures["transcripts"] == len(rows)
    assert figures["problems"] == 1
    for name in ("tokens_before", "tokens_after"):
        assert figures[name] == sum(record[name] for _, record in rows)
    saved = Counter(
        min(9, 10 * (record["tokens_before"] - record["tokens_after"]) // record["tokens_before"])
        for _, record in rows
        if record["status"] == "folded"
    )
    assert [each["folded"] for each in figures["savings"]] == [saved[k] for k in range(10)]
    facts = [record["facts"] for _, record in rows if record["facts"]]
    for name in ("kept", "added", "dropped"):
        assert figures["facts"][name] == sum(len(each[name]) for each in facts)
    kinds = Counter(fact["kind"] for each in facts for fact in each["dropped"])
    assert figures["facts"]["dropped_by_kind"] == kinds
    largest = sorted(rows, key=lambda each: -each[1]["tokens_before"])
    assert [each["id"] for each in figures["largest"][:3]] == [record["id"] for _, record in largest[:3]]
    lost = max((len(record["facts"]["dropped"]), record["id"]) for _, record in rows if record["facts"])
    assert (figures["most_lost"][0]["dropped"], figures["most_lost"][0]["id"]) == lost
    manifest = json.loads((tmp_path / "out" / ".foldline" / "run.json").read_text())
    times = sorted((each["seconds"] for each in manifest["files"]), reverse=True)
    assert [each["seconds"] for each in figures["slowest"]] == times[:10]
    assert figures["cost"] is None


def test_outcomes_come_worst_first_with_their_codes(tmp_path: Path) -> None:
    lines = [talk("fits", 1), talk("too-large", 1), talk("folds", 20)]
    lines[1]["messages"][0]["content"] = "word " * 3_000
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ("--fit", 700, "--pin", 0, "--report", tmp_path / "r")
    shown = run("compact", tmp_path / "a.jsonl", "--out", tmp_path / "out", *options)
    outcomes = [(each["status"], each["code"]) for each in json.loads((tmp_path / "r").read_text())["outcomes"]]
    assert outcomes == [("infeasible", "infeasible"), ("unchanged", None), ("folded", None)]
    lines_shown = shown.stdout.splitlines()
    at = lines_shown.index("Outcomes")
    assert [line.split() for line in lines_shown[at + 1 : at + 4]] == [
        ["1", "infeasible", "infeasible"],
        ["1", "unchanged"],
        ["1", "folded"],
    ]
    assert max(map(len, lines_shown)) <= 120


def test_parquet_has_columns_of_facts_and_their_figures(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = [json.dumps(talk("folds", 20)), "{"]
    pq.write_table(pa.table({"id": ["a", "b"], "messages": texts}), tmp_path / "in.parquet")
    report = ("--report", tmp_path / "r.json", "--samples", 1)
    run("compact", tmp_path / "in.parquet", "--out", tmp_path / "out", *OPTIONS, *report)
    folded, failed = pq.read_table(tmp_path / "out" / "in.parquet").to_pylist()
    assert (failed["facts"], failed["warnings"]) == (None, "[]")
    facts = json.loads(folded["facts"])
    figures = json.loads((tmp_path / "r.json").read_text())
    assert figures["facts"]["kept"] == len(facts["kept"]) > 0
    assert [(each["status"], each["code"]) for each in figures["outcomes"]] == [
        ("failed", "bad_json"),
        ("folded", None),
    ]
    pages = {each["id"]: each["page"] for each in figures["samples"]}
    assert pages == {"a": "r-samples/001-a.html", "b": None}
    assert facts["kept"][0]["text"] in html.unescape((tmp_path / pages["a"]).read_text())
    plain = fl.batch.BatchCompactor(fl.KeepTokens(1_000))
    assert "facts" not in plain.schema().names


def test_samples_are_pages_and_without_them_there_is_no_content(folder: Path, tmp_path: Path) -> None:
    run("compact", folder, "--out", tmp_path / "a", *OPTIONS, "--report", tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    assert "lock file" not in text
    assert "mind the tests" not in text
    assert not any(each["page"] for each in json.loads(text)["samples"])
    shown = run("compact", folder, "--out", tmp_path / "b", *OPTIONS, "--report", tmp_path / "b.json", "--samples", 2)
    samples = json.loads((tmp_path / "b.json").read_text())["samples"]
    assert {each["status"] for each in samples} == {"folded", "unchanged"}
    assert len({(each["source"], each["id"]) for each in samples}) == len(samples)
    for each in samples:
        page = tmp_path / each["page"]
        assert page.read_text().endswith("</html>")
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert f"{len(samples)} pages in b-samples" in shown.stdout
    again = run("compact", folder, "--out", tmp_path / "c", *OPTIONS, "--report", tmp_path / "b.json", "--samples", 2)
    assert again.returncode == shown.returncode
    assert json.loads((tmp_path / "b.json").read_text())["samples"] == samples


def test_a_resumed_run_reports_all_files(folder: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out", *OPTIONS, "--report", tmp_path / "r.json")
    run("compact", folder, *out)
    figures = json.loads((tmp_path / "r.json").read_text())
    (tmp_path / "out" / "talks.jsonl").unlink()
    run("compact", folder, *out, "--resume")
    resumed = json.loads((tmp_path / "r.json").read_text())
    for each in (figures, resumed):
        del each["seconds"], each["slowest"]
    assert resumed == figures
    # A run without facts cannot be continued by one that reports them.
    run("compact", folder, "--out", tmp_path / "plain", *OPTIONS)
    refused = run("compact", folder, "--out", tmp_path / "plain", *out[2:], "--resume")
    assert refused.returncode == 2
    assert "other options: facts" in refused.stderr


def test_wrong_usage_is_2(folder: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    assert run("compact", folder, *out, "--samples", 1).returncode == 2
    assert run("compact", folder, *out, "--report", tmp_path / "r", "--dry-run").returncode == 2
    assert run("compact", folder, *out, "--report", tmp_path / "missing" / "r").returncode == 2


def test_json_has_the_same_figures(folder: Path, tmp_path: Path) -> None:
    shown = run("compact", folder, "--out", tmp_path / "out", *OPTIONS, "--report", tmp_path / "r.json", "--json")
    assert json.loads(shown.stdout.splitlines()[-1]) == {"report": json.loads((tmp_path / "r.json").read_text())}


@pytest.fixture
def model() -> Iterator[CountingModel]:
    serving = CountingModel()
    yield serving
    serving.close()


def test_costs_and_answers_from_the_cache(model: CountingModel, tmp_path: Path) -> None:
    lines = [json.dumps(talk(f"conversation-0-{i}", 20)) for i in range(3)]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, lines[0]]) + "\n")  # one is there twice
    options = ("--summarizer", "openai:counting", *OPTIONS, "--report", tmp_path / "r.json")
    run("compact", tmp_path / "a.jsonl", "--out", tmp_path / "out", *options, env=model.environment)
    cost = json.loads((tmp_path / "r.json").read_text())["cost"]
    assert (cost["requests"], cost["cache_hits"]) == (3, 1)
    assert (cost["input_tokens"], cost["output_tokens"]) == (300, 36)
    assert "cost" not in cost  # no price is known
    run("compact", tmp_path / "a.jsonl", "--out", tmp_path / "out", *options, env=model.environment)
    again = json.loads((tmp_path / "r.json").read_text())["cost"]
    assert (again["requests"], again["cache_hits"]) == (0, 4)


def test_memory_of_a_report_does_not_grow_with_its_transcripts() -> None:
    report = BatchReport(samples=2)
    record = {"source": "a", "problems": 0, "transcripts": 1, "input_bytes": 9, "seconds": 0.5}

    def rows(count: int) -> Iterator[dict[str, Any]]:
        for i in range(count):
            fact = {"kind": "request", "text": "t", "message": 0}
            facts = {"kept": [], "added": [], "dropped": [fact] * (i % 7)}
            yield {
                "id": str(i), "status": "folded", "error": None, "tokens_before": 1_000 + i, "tokens_after": i % 900,
                "facts": facts, "warnings": [],
            }  # fmt: skip

    report.add_file(record, rows(5_000))
    figures = report.to_dict()
    assert [each["id"] for each in figures["largest"]] == [str(i) for i in range(4_999, 4_989, -1)]
    assert len(figures["most_lost"]) == 10
    assert {each["dropped"] for each in figures["most_lost"]} == {6}
    assert len(figures["samples"]) == 2 * sum(each["folded"] > 0 for each in figures["savings"])


@pytest.mark.parametrize("compress", ["gz", "zst"])
def test_compressed_outputs_are_read(folder: Path, tmp_path: Path, compress: str) -> None:
    run("compact", folder, "--out", tmp_path / "plain", *OPTIONS)
    run("compact", folder, "--out", tmp_path / "packed", *OPTIONS, "--compress", compress)
    for path in (tmp_path / "plain").glob("*.json*"):
        assert list(rows_of(tmp_path / "packed" / f"{path.name}.{compress}")) == list(rows_of(path))


# Progress


def test_the_pace_of_work_says_done_of_total_rate_rest_and_file() -> None:
    pace = Pace(40, 12, 1_200, 30.0, 900_000_000, 300_000_000, "logs/a.jsonl")
    assert pace.line() == "12 of 40 files, 1,200 transcripts, 10.0 MB/s, 1:00 left, logs/a.jsonl"
    assert Pace(40, 10, 1_200, 3_600.0).line() == "10 of 40 files, 1,200 transcripts, 3:00:00 left"
    assert Pace(40, 0, 0, 0.0, 900).line() == "0 of 40 files, 0 transcripts"
