"""`foldline compact` over many files: workers, Parquet, patterns, huge lines."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main


def talk(turns: int = 4) -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[i % 2], "content": f"Step {i}: " + "please mind the tests of this step. " * 40}
        for i in range(2 * turns)
    ]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "foldline", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, **options)
    assert "Traceback" not in ran.stderr
    return ran


def written(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(6):
        lines = [json.dumps({"id": f"{i}-{j}", "messages": talk()}) for j in range(5)]
        (folder / f"{i}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


# Workers


def test_any_number_of_jobs_writes_the_same_files(folder: Path, tmp_path: Path) -> None:
    (folder / "bad.jsonl").write_text(json.dumps({"messages": talk(1)}) + "\n{x}\n")
    (folder / "notes.txt").write_text("Nothing to see.\n")
    runs = [run("compact", folder, "--out", tmp_path / f"{n}", "--keep-messages", 2, "--jobs", n) for n in (1, 3)]
    assert [each.returncode for each in runs] == [1, 1]
    assert runs[0].stdout == runs[1].stdout
    assert sorted(runs[0].stderr.splitlines()) == sorted(runs[1].stderr.splitlines())
    assert len(runs[0].stderr.splitlines()) == 2
    assert written(tmp_path / "1") == written(tmp_path / "3")


def test_standard_input_works_with_jobs(folder: Path, tmp_path: Path) -> None:
    ran = run("compact", "-", folder, "--out", tmp_path / "out", "--jobs", 2, input=json.dumps({"messages": talk()}))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "stdin.jsonl" in written(tmp_path / "out")


def test_a_strict_run_stops_its_workers(folder: Path, tmp_path: Path) -> None:
    (folder / "0.jsonl").write_text("{x}\n" + json.dumps({"messages": talk(1)}) + "\n{x}\n")
    ran = run("compact", folder, "--out", tmp_path / "out", "--jobs", 2, "--strict")
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    files = written(tmp_path / "out")
    assert "0.jsonl" not in files
    assert [name for name in files if name.endswith(".tmp")] == []
    assert json.loads(files[".foldline/run.json"])["complete"] is False


def children(process: subprocess.Popen[Any]) -> list[int]:
    """Its worker processes; the other child belongs to multiprocessing."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in listed if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def busy_workers(process: subprocess.Popen[Any], out: Path) -> list[int]:
    begun = time.monotonic()
    while not list(out.glob(".foldline-*.tmp")):
        assert process.poll() is None, "it ended before a worker was busy"
        assert time.monotonic() - begun < 60
        time.sleep(0.005)
    return children(process)


def slow(folder: Path) -> None:
    line = json.dumps({"messages": talk()}) + "\n"
    (folder / "slow.jsonl").write_text(line * 1500)


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")


@needs_proc
def test_a_killed_worker_costs_only_time(folder: Path, tmp_path: Path) -> None:
    slow(folder)
    expected = run("compact", folder, "--out", tmp_path / "straight", "--keep-messages", 2)
    assert expected.returncode == 0
    out = tmp_path / "out"
    command = [sys.executable, "-m", "foldline", "compact", str(folder), "--out", str(out), "--keep-messages", "2"]
    process = subprocess.Popen([*command, "--jobs", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for pid in busy_workers(process, out):
        os.kill(pid, signal.SIGKILL)
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, b"")
    files = written(out)
    assert {name: data for name, data in files.items() if not name.endswith(".tmp")} == written(tmp_path / "straight")


@needs_proc
def test_ctrl_c_ends_workers_and_leaves_no_partial_files(folder: Path, tmp_path: Path) -> None:
    slow(folder)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "foldline", "compact", str(folder), "--out", str(out), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    workers = busy_workers(process, out)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []
    assert [name for name in written(out) if name.endswith(".tmp")] == []
    assert run("compact", folder, "--out", out, "--resume", "--jobs", 2).returncode == 0
    assert run("compact", folder, "--out", tmp_path / "straight").returncode == 0
    assert written(out) == written(tmp_path / "straight")


def test_problems_are_reported_again_when_a_run_is_resumed(folder: Path, tmp_path: Path) -> None:
    (folder / "0.jsonl").write_text("{x}\n" + json.dumps({"messages": talk(1)}) + "\n")
    assert run("compact", folder, "--out", tmp_path / "out").returncode == 1
    again = run("compact", folder, "--out", tmp_path / "out", "--resume")
    assert again.returncode == 1
    assert "told_before" in again.stderr


def test_a_file_that_is_not_a_manifest_is_wrong_usage(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / ".foldline").mkdir(parents=True)
    (tmp_path / "out" / ".foldline" / "run.json").write_text("{")
    ran = run("compact", folder, "--out", tmp_path / "out", "--resume")
    assert (ran.returncode, "is not a manifest" in ran.stderr) == (2, True)


# Parquet


def test_parquet_input_gives_parquet_output(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    texts = [json.dumps(talk()), "{x", None, json.dumps(talk(1))] * 50
    table = pa.table({"id": [f"row {i}" for i in range(200)], "messages": texts, "extra": [1] * 200})
    source = tmp_path / "talks.parquet"
    pq.write_table(table, source)
    before = source.read_bytes()
    ran = run("compact", source, "--out", tmp_path / "out", "--keep-messages", 2, "--summary-tokens", 400)
    assert ran.returncode == 1
    told = ran.stderr.splitlines()  # of each code the first ten, and how many more
    assert len(told) == 2 * 11
    assert {line for line in told if "more" in line} == {
        f"{source}: bad_json (40 more)",
        f"{source}: unknown_record (40 more)",
    }
    folded = pq.read_table(tmp_path / "out" / "talks.parquet")
    assert folded.equals(fl.batch.BatchCompactor(fl.KeepMessages(2), summary_tokens=400)(table))
    assert folded["id"].to_pylist() == table["id"].to_pylist()
    assert set(folded["status"].to_pylist()) == {"folded", "failed", "unchanged"}
    assert source.read_bytes() == before
    manifest = json.loads((tmp_path / "out" / ".foldline" / "run.json").read_text())
    totals = manifest["totals"]
    assert (totals["transcripts"], totals["failed"], totals["problems"]) == (200, 100, 100)


def test_bad_parquet_is_a_problem_and_the_rest_is_folded(folder: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": ["x"]}), folder / "other.parquet")
    (folder / "torn.parquet").write_bytes((folder / "other.parquet").read_bytes()[:-20])
    ran = run("compact", folder, "--out", tmp_path / "out")
    assert ran.returncode == 1
    codes = [line.split(": ")[1].partition(" ")[0] for line in ran.stderr.splitlines()]
    assert sorted(codes) == ["bad_parquet", "missing_column"]
    assert sorted(written(tmp_path / "out")) == [".foldline/run.json", *(f"{i}.jsonl" for i in range(6))]


# Patterns


def test_a_pattern_expands_to_its_matching_files(folder: Path, tmp_path: Path) -> None:
    (folder / "x").mkdir()
    (folder / "x" / "7.jsonl").write_text(json.dumps({"messages": talk()}) + "\n")
    (folder / "[odd].jsonl").write_text(json.dumps({"messages": talk()}) + "\n")
    for pattern, expected in (
        ("in/[0-2].jsonl", ["0.jsonl", "1.jsonl", "2.jsonl"]),
        ("in/**/7.jsonl", ["x/7.jsonl"]),
        ("in/[odd].jsonl", ["[odd].jsonl"]),
    ):
        out = tmp_path / expected[0].replace("/", "-")
        assert run("compact", pattern, "--out", out, cwd=tmp_path).returncode == 0
        assert sorted(written(out)) == [".foldline/run.json", *expected]
    nothing = run("compact", "in/*.none", "--out", tmp_path / "none", cwd=tmp_path)
    assert (nothing.returncode, "no_match" in nothing.stderr) == (1, True)


# Size


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    line = json.dumps({"messages": talk()}) + "\n"
    (tmp_path / "large.jsonl").write_text(line * 8000)  # 100 MB, and more when parsed

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (130 << 20, 130 << 20))

    ran = run("compact", tmp_path / "large.jsonl", "--out", tmp_path / "out", preexec_fn=limit)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_parquet_rows_without_a_summary_are_folded_again_on_resume(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from foldline._cli.fold_file import compact_file
    from foldline._cli.progress import Reporter
    from foldline._cli.sources import Source

    def refuse(messages: list[Any]) -> str:
        raise fl.errors.SummaryError("not now")

    pq.write_table(pa.table({"id": ["a", "b"], "messages": [json.dumps(talk()), "{"]}), tmp_path / "in.parquet")
    compactor = fl.batch.BatchCompactor(fl.KeepMessages(2), counter="chars/4", summary_tokens=300, summarizer=refuse)
    source = Source(str(tmp_path / "in.parquet"), Path("in.parquet"))
    with Reporter() as reporter:
        report = compact_file(source, tmp_path / "out", Path("in.parquet"), compactor, reporter)
    assert (report.failed, report.retry) == (2, 1)  # invalid JSON stays invalid


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_manifest_has_the_bytes_of_every_file_small_and_large(tmp_path: Path, jobs: int) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for name, turns in (("small", 2), ("large", 3_000)):
        line = json.dumps({"messages": talk(turns)}) + "\n"
        (source / f"{name}.jsonl").write_text(line, encoding="utf-8")
    assert (source / "large.jsonl").stat().st_size > 8 << 20
    run("compact", source, "--out", out, "--jobs", jobs, "--keep-tokens", 500)
    files = {each["source"]: each for each in json.loads((out / ".foldline" / "run.json").read_text())["files"]}
    for path in source.iterdir():
        found = files[path.name]
        expected = (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        assert (found["input_bytes"], found["input_sha256"]) == expected
        output = (out / path.name).read_bytes()
        assert (found["output_bytes"], found["output_sha256"]) == (len(output), hashlib.sha256(output).hexdigest())


def test_a_missing_engine_is_wrong_usage(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'ray' else real(name, *more)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = run("compact", folder, "--out", tmp_path / "out", "--engine", "ray", env=os.environ | {"PYTHONPATH": path})
    assert (ran.returncode, "foldline[ray]" in ran.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


# Sources that are gone


def test_the_output_of_a_source_that_is_gone_is_named_and_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    text = json.dumps({"messages": [{"role": "user", "content": "x"}]}) + "\n"
    for name in ("renamed", "removed", "stays"):
        (folder / f"{name}.jsonl").write_text(text)
    command = ["compact", str(folder), "--out", str(out), "--json"]

    def run(*more: str) -> tuple[list[str], list[str]]:
        """Lines on standard error, and the older outputs in the manifest."""
        assert main([*command, *more]) == 0
        manifest = json.loads((out / ".foldline" / "run.json").read_text())
        return capsys.readouterr().err.splitlines(), manifest["earlier_outputs"]

    assert run() == ([], [])
    assert run("--resume") == ([], [])
    (folder / "renamed.jsonl").rename(folder / "new.jsonl")
    (folder / "removed.jsonl").unlink()
    gone = [
        f"warning: {out / name}: left from an earlier run; its source is not among those of this run"
        for name in ("removed.jsonl", "renamed.jsonl")
    ]
    for more in (["--resume"], [], ["--resume"]):
        assert run(*more) == (gone, ["removed.jsonl", "renamed.jsonl"]), more
        assert (out / "removed.jsonl").exists()
    (out / "removed.jsonl").unlink()
    (folder / "new.jsonl").rename(folder / "renamed.jsonl")  # it is back, under its old name
    assert run("--resume")[1] == ["new.jsonl"]


def test_the_older_output_of_a_source_that_gives_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out"
    source.write_text(json.dumps({"messages": [{"role": "user", "content": "x"}]}) + "\n")
    assert main(["compact", str(source), "--out", str(out)]) == 0
    source.write_text("")
    assert main(["compact", str(source), "--out", str(out), "--resume"]) == 1
    told = capsys.readouterr().err
    assert f"warning: {out / 'in.jsonl'}: left from an earlier run; nothing was written for its source" in told


def test_many_older_outputs_are_a_few_warnings_and_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number}.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "x"}]}) + "\n")
    assert main(["compact", str(folder), "--out", str(out)]) == 0
    for number in range(29):
        (folder / f"{number}.jsonl").unlink()
    assert main(["compact", str(folder), "--out", str(out)]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert (len(told), told[-1]) == (11, "warning: 19 more outputs are left from earlier runs")
    assert len(json.loads((out / ".foldline" / "run.json").read_text())["earlier_outputs"]) == 29
