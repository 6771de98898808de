"""`foldline compact`, in process: where outputs are written, and that sources stay unchanged."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import foldline as fl
from foldline._util import files as output
from foldline.batch import compactor as batch
from foldline.cli import main
from foldline.reading.files import read_stream

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"

KEYS = [
    "id",
    "format",
    "messages",
    "summary",
    "tokens_before",
    "tokens_after",
    "actions",
    "status",
    "error",
    "plan_hash",
    "meta",
]


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Foldline = Callable[..., Answer]


@pytest.fixture
def foldline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Foldline:
    def call(*arguments: object, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Answer(code, out, err)

    return call


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def talk(turns: int = 8) -> list[dict[str, Any]]:
    """Long enough for a summary to be shorter."""
    return [
        {"role": ("user", "assistant")[i % 2], "content": f"Step {i}: " + "please mind the tests of this step. " * 40}
        for i in range(2 * turns)
    ]


def lines(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def written(out: Path) -> dict[str, bytes]:
    """The contents of the output folder, bookkeeping and leftovers included."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(tmp_path: Path) -> Iterator[None]:
    yield
    assert [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")] == []


# Folding of transcripts


def test_an_output_equals_the_fold_of_the_library(foldline: Foldline, sources: Path, out: Path) -> None:
    source = sources / "chat.jsonl"
    messages = talk()
    source.write_text(lines({"id": "a", "user": "someone", "tools": [{"name": "f"}], "messages": messages}))
    answer = foldline("compact", source, "--out", out, "--keep-messages", 3, "--pin", 1, "--summary-tokens", 400)
    assert (answer.code, answer.err) == (0, "")
    result = fl.compact(messages, fl.KeepMessages(3), pins=[1], summary_tokens=400, tools=[{"name": "f"}])
    [line] = (out / "chat.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert list(record) == KEYS
    assert isinstance(result.plan, fl.Plan)
    assert record == {
        "id": "a",
        "format": "openai_chat",
        "messages": result.messages,
        "summary": result.summary,
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "actions": result.plan.actions,
        "status": "folded",
        "error": None,
        "plan_hash": result.plan.fingerprint,
        "meta": {"line": 1, "user": "someone", "tools": [{"name": "f"}]},
    }


def test_a_transcript_within_budget_is_not_changed(foldline: Foldline, sources: Path, out: Path) -> None:
    (sources / "chat.jsonl").write_text(lines({"id": "a", "messages": talk(1)}))
    assert foldline("compact", sources, "--out", out).code == 0
    record = json.loads((out / "chat.jsonl").read_text())
    assert (record["status"], record["summary"], record["messages"]) == ("unchanged", None, talk(1))
    assert record["tokens_before"] == record["tokens_after"]
    assert set(record["actions"]) == {"keep"}


def test_a_transcript_that_cannot_fit_is_unchanged_and_a_problem(foldline: Foldline, sources: Path, out: Path) -> None:
    (sources / "chat.jsonl").write_text(lines({"id": "a", "messages": talk()}))
    answer = foldline("compact", sources, "--out", out, "--fit", 10)
    assert answer.code == 1
    assert "chat.jsonl: a: infeasible" in answer.err
    record = json.loads((out / "chat.jsonl").read_text())
    assert (record["status"], record["messages"], record["actions"]) == ("infeasible", talk(), None)
    assert record["error"]["code"] == "infeasible"


def test_an_unreadable_transcript_is_unchanged_and_a_problem(foldline: Foldline, sources: Path, out: Path) -> None:
    bad = [{"role": "user", "content": 5, "secret": "hunter2"}]
    (sources / "chat.jsonl").write_text(lines({"id": "a", "messages": bad}, {"id": "b", "messages": talk(1)}))
    answer = foldline("compact", sources, "--out", out)
    assert answer.code == 1
    assert "chat.jsonl: a, message 0: " in answer.err
    assert "hunter2" not in answer.err
    failed, good = map(json.loads, (out / "chat.jsonl").read_text().splitlines())
    assert (failed["status"], failed["messages"], failed["tokens_before"]) == ("failed", bad, None)
    assert failed["error"]["index"] == 0
    assert good["status"] == "unchanged"


def test_a_failing_summary_leaves_the_messages(
    foldline: Foldline, sources: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch.BatchCompactor, "row_folder", lambda *_: None)  # no summary of the core itself fails so
    monkeypatch.setattr("foldline.summarizers.extractive.settled", lambda *_: ("", "{}"))
    (sources / "chat.jsonl").write_text(lines({"id": "a", "messages": talk()}))
    answer = foldline("compact", sources, "--out", out, "--keep-messages", 2)
    assert answer.code == 1
    record = json.loads((out / "chat.jsonl").read_text())
    assert (record["status"], record["messages"]) == ("failed", talk())
    assert record["error"]["code"] == "empty_summary"
    assert record["plan_hash"]


@pytest.mark.parametrize(
    "sample",
    [
        "claude-code-session.jsonl",
        "pi-session.jsonl",
        "openai-tools.jsonl",
        "chinese-dialogues.jsonl",
        "gemini-cli-session.json",
        "swe-agent-trajectory.traj",
    ],
)
def test_outputs_read_back_with_identical_messages(foldline: Foldline, out: Path, tmp_path: Path, sample: str) -> None:
    source = DATA / sample
    before = hashes(DATA)
    assert foldline("compact", source, "--out", out, "--keep-tokens", 10**9).code == 0
    originals = list(fl.read(source))
    again = list(fl.read(out / source.name, on_problem=pytest.fail))
    assert [(t.id, t.format, t.messages) for t in again] == [(t.id, t.format, t.messages) for t in originals]
    assert hashes(DATA) == before
    # Folding its own output again gives the same; the context around the messages does not accumulate.
    twice = tmp_path / "twice"
    assert foldline("compact", out, "--out", twice, "--keep-tokens", 10**9).code == 0
    assert (twice / source.name).read_bytes() == (out / source.name).read_bytes()


@pytest.mark.parametrize("sample", ["claude-code-session", "pi-session"])
def test_folded_outputs_read_back(foldline: Foldline, out: Path, sample: str) -> None:
    source = DATA / f"{sample}.jsonl"
    assert foldline("compact", source, "--out", out, "--pin", 0).code == 0
    record = json.loads((out / source.name).read_text())
    [again] = fl.read(out / source.name, on_problem=pytest.fail)
    assert record["status"] == "folded"
    assert (again.id, again.format, again.messages) == (record["id"], record["format"], record["messages"])
    assert again.messages[1] == next(iter(fl.read(source))).messages[0]
    assert record["tokens_after"] < record["tokens_before"]
    # The entries of the session are still in its file.
    assert {"entries", "sources", "branches"}.isdisjoint(record["meta"])
    assert fl.TokenCounter().count_messages(again.messages, format=again.format).total == record["tokens_after"]


HOSTILE = [
    "lone \\ud83d half",
    "\u2028 \u2029 \x85 \x00 \x1f \x7f",
    "漢字 🎉 é",
    '"\\\n\r\t',
]


@pytest.mark.parametrize("text", ["\ud83d", "\udc00x", *HOSTILE])
def test_every_text_is_written_so_that_it_reads_back(text: str) -> None:
    line = batch.json_text({"messages": [{"content": text, text: 1}]}).encode()
    assert b"\n" not in line
    assert json.loads(line) == {"messages": [{"content": text, text: 1}]}


def test_text_is_written_legibly_where_possible() -> None:
    assert "漢字".encode() in batch.json_text("漢字").encode()


def test_unusual_values_round_trip(foldline: Foldline, sources: Path, out: Path) -> None:
    source = sources / "odd.jsonl"
    extra = '"a":1e999,"b":-0.0,"c":123456789012345678901234567890,"d":1.10,"e":NaN,"f":{"":null}'
    texts = ",".join('{"role":"user","content":' + json.dumps(text) + "," + extra + "}" for text in HOSTILE)
    source.write_text('{"id":"a","messages":[' + texts + "]}\n")
    assert foldline("compact", source, "--out", out).code == 0
    [original] = fl.read(source)
    [again] = fl.read(out / "odd.jsonl", on_problem=pytest.fail)
    assert repr(again.messages) == repr(original.messages)


# Forms


def test_a_list_in_one_document_gives_a_list(foldline: Foldline, sources: Path, out: Path) -> None:
    conversations = [{"id": name, "messages": talk(1)} for name in "abc"]
    forms = {
        "pretty.json": json.dumps(conversations, indent=2),
        "flat.json": json.dumps(conversations),
        "pretty.jsonl": json.dumps(conversations, indent=2),
        "lines.json": lines(*conversations),
        "lists.jsonl": lines(conversations[:1], conversations[1:]),
        "one.json": json.dumps(conversations[:1], indent=2),
        "messages.json": json.dumps(talk(1), indent=2),
        "object.json": json.dumps(conversations[0], indent=2),
        "loose.jsonl": lines(*talk(1)),
    }
    for name, text in forms.items():
        (sources / name).write_text(text)
    (sources / "packed.json.gz").write_bytes(gzip.compress(forms["flat.json"].encode()))
    answer = foldline("compact", sources, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    (out / "packed.json").write_bytes(gzip.decompress((out / "packed.json.gz").read_bytes()))
    for name in ("pretty.json", "flat.json", "pretty.jsonl", "packed.json"):
        assert [record["id"] for record in json.loads((out / name).read_text())] == ["a", "b", "c"], name
    for name in ("lines.json", "lists.jsonl"):
        assert [json.loads(line)["id"] for line in (out / name).read_text().splitlines()] == ["a", "b", "c"], name
    for name in ("one.json", "messages.json", "object.json", "loose.jsonl"):
        assert json.loads((out / name).read_text())["messages"] == talk(1), name
    for path in out.iterdir():
        if path.is_file():
            assert all(t.messages == talk(1) for t in fl.read(path, on_problem=pytest.fail)), path


PACKED = {
    "auto": ["a.jsonl.gz", "b.jsonl", "z.json.zst"],
    "gz": ["a.jsonl.gz", "b.jsonl.gz", "z.json.gz"],
    "zst": ["a.jsonl.zst", "b.jsonl.zst", "z.json.zst"],
    "none": ["a.jsonl", "b.jsonl", "z.json"],
}


def unpacked(path: Path) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    data = path.read_bytes()
    match path.suffix:
        case ".gz":
            assert data[4:10] == b"\0\0\0\0\0\xff"  # neither time nor system
            return gzip.decompress(data)
        case ".zst":
            return bytes(zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read())
        case _:
            return data


@pytest.mark.parametrize("compress", PACKED)
def test_results_use_the_compression_of_their_source_or_the_requested_one(
    foldline: Foldline, sources: Path, out: Path, compress: str
) -> None:
    zstandard = pytest.importorskip("zstandard")
    (sources / "a.jsonl.gz").write_bytes(gzip.compress(lines({"id": "a", "messages": talk(1)}).encode()))
    (sources / "b.jsonl").write_text(lines({"id": "b", "messages": talk(1)}))
    packed = zstandard.ZstdCompressor().compress(lines([{"id": "z", "messages": talk(1)}] * 2).encode())
    (sources / "z.json.zst").write_bytes(packed)
    options = [] if compress == "auto" else ["--compress", compress]
    assert foldline("compact", sources, "--out", out, *options).code == 0
    assert sorted(written(out)) == [".foldline/run.json", *PACKED[compress]]
    names = [out / name for name in PACKED[compress]]
    assert [json.loads(unpacked(name))["id"] for name in names[:2]] == ["a", "b"]
    assert len(json.loads(unpacked(names[2]))) == 2
    assert [stored.id for name in names for stored in fl.read(name)] == ["a", "b", "z", "z"]
    for record in json.loads((out / ".foldline" / "run.json").read_bytes())["files"]:
        data = (out / record["output"]).read_bytes()
        assert (record["output_bytes"], record["output_sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_compressed_results_are_deterministic_and_resumable(foldline: Foldline, sources: Path, out: Path) -> None:
    for suffix in ("gz", "zst"):
        (sources / suffix).mkdir()
        (sources / suffix / "a.jsonl").write_text(lines(*({"id": i, "messages": talk(3)} for i in range(20))))
        assert foldline("compact", sources / suffix, "--out", out / suffix, "--compress", suffix).code == 0
        first = written(out / suffix)
        times = (out / suffix / f"a.jsonl.{suffix}").stat().st_mtime_ns
        assert foldline("compact", sources / suffix, "--out", out / suffix, "--compress", suffix, "--resume").code == 0
        assert (out / suffix / f"a.jsonl.{suffix}").stat().st_mtime_ns == times
        assert foldline("compact", sources / suffix, "--out", out / suffix, "--compress", suffix).code == 0
        assert written(out / suffix) == first
        other = foldline("compact", sources / suffix, "--out", out / suffix, "--resume")
        assert (other.code, "other options: compress" in other.err) == (2, True)


def test_folders_are_mirrored(foldline: Foldline, sources: Path, out: Path, tmp_path: Path) -> None:
    for name in ("x/a.jsonl", "x/y/b.jsonl", "c.jsonl"):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text(lines({"id": name, "messages": talk(1)}))
    single = tmp_path / "single.jsonl"
    single.write_text(lines({"id": "single", "messages": talk(1)}))
    before = hashes(sources)
    answer = foldline("compact", sources, single, "-", "--out", out, stdin=lines({"messages": talk(1)}).encode())
    assert answer.code == 0
    names = [".foldline/run.json", "c.jsonl", "single.jsonl", "stdin.jsonl", "x/a.jsonl", "x/y/b.jsonl"]
    assert sorted(written(out)) == names
    assert hashes(sources) == before


def test_equal_runs_write_equal_bytes(foldline: Foldline, tmp_path: Path) -> None:
    results = []
    for run in ("one", "two"):
        folder = tmp_path / run / "in"
        folder.mkdir(parents=True)
        (folder / "chat.jsonl").write_text(lines({"messages": talk()}, {"messages": talk(1)}))
        foldline("compact", folder, "--out", tmp_path / run / "out", "--keep-messages", 2)
        results.append(written(tmp_path / run / "out"))
    assert results[0] == results[1]
    assert set(results[0]) == {"chat.jsonl", ".foldline/run.json"}


# Reports


def test_the_manifest_and_the_report_agree(foldline: Foldline, sources: Path, out: Path) -> None:
    (sources / "a.jsonl").write_text(lines({"messages": talk()}, {"messages": talk(1)}) + "{x}\n")
    (sources / "notes.txt").write_text("Nothing to see.\n")
    answer = foldline("compact", sources, "--out", out, "--keep-messages", 3, "--pin", 0, "--json")
    assert answer.code == 1
    reports = [json.loads(line) for line in answer.out.splitlines()]
    manifest = json.loads((out / ".foldline" / "run.json").read_text())
    assert manifest["files"] == reports
    assert manifest["complete"] is True
    assert manifest["foldline"] == fl.__version__
    assert manifest["options"] == {
        "keep": {"kind": "KeepMessages", "n": 3},
        "counter": "o200k_base",
        "context_window": None,
        "reserve_tokens": 0,
        "pins": [0],
        "summary_tokens": 1000,
        "min_gain_tokens": 0,
        "thinking": "keep",
        "summarizer": "extractive",
        "strict": False,
        "compress": "auto",
    }
    first, second = reports
    assert (first["source"], first["output"]) == ("a.jsonl", "a.jsonl")
    assert (first["transcripts"], first["folded"], first["unchanged"], first["problems"]) == (2, 1, 1, 1)
    assert (second["source"], second["output"], second["problems"]) == ("notes.txt", None, 1)
    assert manifest["totals"]["tokens_before"] == first["tokens_before"]


@pytest.mark.parametrize(
    ("options", "keep"),
    [
        (["--keep-fraction", "0.25"], {"kind": "KeepFraction", "f": 0.25, "of": "tokens"}),
        (["--context-window", "50000", "--reserve-tokens", "10000"], {"kind": "FitTokens", "n": 40_000}),
        ([], {"kind": "KeepTokens", "n": 20_000}),
    ],
)
def test_the_manifest_names_the_keep(
    foldline: Foldline, sources: Path, out: Path, options: list[str], keep: dict[str, Any]
) -> None:
    assert foldline("compact", sources, "--out", out, *options).code == 0
    assert json.loads((out / ".foldline" / "run.json").read_text())["options"]["keep"] == keep


def test_the_report_is_a_table_of_lines(foldline: Foldline, sources: Path, out: Path) -> None:
    for name in "ab":
        (sources / name).write_text(lines({"messages": talk(1)}))
    rows = [line.split("\t") for line in foldline("compact", sources, "--out", out).out.splitlines()]
    assert [row[0] for row in rows] == ["source", "a", "b", "total"]
    assert rows[3][1] == "2"


def test_a_pin_out_of_range_in_every_transcript_is_wrong_usage(foldline: Foldline, sources: Path, out: Path) -> None:
    (sources / "a.jsonl").write_text(lines({"messages": talk(1)}))
    answer = foldline("compact", sources, "--out", out, "--pin", 2)
    assert answer.code == 2
    assert "--pin" in answer.err


def test_long_work_without_a_terminal_prints_progress_lines(
    foldline: Foldline, sources: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (sources / name).write_text(lines({"messages": talk(1)}, {"messages": talk(1)}))
    monkeypatch.setattr("foldline._cli.progress._LINE_EVERY_S", 0.0)
    answer = foldline("compact", sources, "--out", out)
    assert answer.code == 0
    assert answer.err.splitlines()[-1].startswith("2 of 2 files, 4 transcripts, ")


# Strict


def test_strict_stops_and_writes_no_output_for_the_bad_file(foldline: Foldline, sources: Path, out: Path) -> None:
    for name in ("a.jsonl", "c.jsonl"):
        (sources / name).write_text(lines({"id": name, "messages": talk(1)}))
    (sources / "b.jsonl").write_text(lines({"id": "b", "messages": talk(1)}) + "{x}\n")
    answer = foldline("compact", sources, "--out", out, "--strict")
    assert answer.code == 1
    assert answer.err.count("\n") == 1
    assert sorted(written(out)) == [".foldline/run.json", "a.jsonl"]
    assert json.loads((out / ".foldline" / "run.json").read_text())["complete"] is False
    assert foldline("compact", sources, "--out", out).code == 1
    assert sorted(written(out)) == [".foldline/run.json", "a.jsonl", "b.jsonl", "c.jsonl"]


# Output locations


def test_outputs_never_collide(foldline: Foldline, sources: Path, out: Path, tmp_path: Path) -> None:
    for name in ("one/a.jsonl", "two/a.jsonl", "three/a.jsonl.gz", "four/a.jsonl/b.jsonl"):
        (sources / name).parent.mkdir(parents=True)
        (sources / name).write_text(lines({"messages": talk(1)}))
    for pair in (
        ("one", "two"),
        ("one/a.jsonl", "two/a.jsonl"),
        ("one", "one"),
        ("one", "one/a.jsonl"),
        ("one", "four"),
        ("four", "one"),
    ):
        answer = foldline("compact", *(sources / path for path in pair), "--out", out)
        assert answer.code == 2, pair
        assert "would both become a.jsonl" in answer.err, pair
        assert not out.exists()
    answer = foldline("compact", sources / "one", sources / "three", "--out", out, "--compress", "none")
    assert (answer.code, "would both become a.jsonl" in answer.err, out.exists()) == (2, True, False)
    assert foldline("compact", sources / "one", sources / "three", "--out", out).code == 0


def test_sources_are_never_overwritten(
    foldline: Foldline, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = sources / "in"
    inner.mkdir()
    for path in (sources / "a.jsonl", inner / "b.jsonl", sources / "b.jsonl"):
        path.write_text(lines({"id": str(path), "messages": talk(1)}))
    (tmp_path / "link").symlink_to(sources)
    (tmp_path / "a.jsonl").symlink_to(sources / "a.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = hashes(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path, out in (
        ("in", "in"),
        ("in", "in/deeper"),
        ("in", "in/../in"),
        ("in", "link"),
        ("link", "in/new"),
        ("in/a.jsonl", "in"),
        ("in/in/b.jsonl", "in/in"),
        ("a.jsonl", "in"),
        ("a.jsonl", "."),
        (".", "."),
        (".", "new"),
        ("in/a.jsonl", "in/a.jsonl"),
        ("in/a.jsonl", "in/a.jsonl/x"),
        ("in/a.jsonl", "loop"),
    ):
        answer = foldline("compact", path, "--out", out, "--keep-messages", 1)
        assert answer.code == 2, (path, out)
        assert answer.err
        assert hashes(tmp_path) == before, (path, out)


def test_an_input_folder_inside_the_output_folder_is_allowed_unless_overwritten(
    foldline: Foldline, sources: Path, tmp_path: Path
) -> None:
    (sources / "a.jsonl").write_text(lines({"messages": talk(1)}))
    before = hashes(sources)
    assert foldline("compact", sources, "--out", tmp_path).code == 0
    assert hashes(sources) == before
    nested = sources / "in"
    nested.mkdir()
    (nested / "a.jsonl").write_text(lines({"messages": talk(2)}))
    before = hashes(sources)
    assert foldline("compact", sources, "--out", tmp_path).code == 2
    assert hashes(sources) == before


def test_the_bookkeeping_folder_is_reserved(foldline: Foldline, sources: Path, out: Path) -> None:
    (sources / ".foldline").write_text(lines({"messages": talk(1)}))
    answer = foldline("compact", sources / ".foldline", "--out", out)
    assert answer.code == 2
    assert "bookkeeping" in answer.err


def test_an_older_output_is_replaced_and_a_link_is_not_followed(
    foldline: Foldline, sources: Path, out: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious.jsonl"
    precious.write_text("precious")
    out.mkdir()
    (out / "link.jsonl").symlink_to(precious)
    (out / "old.jsonl").write_text("old")
    for name in ("link.jsonl", "old.jsonl"):
        (sources / name).write_text(lines({"messages": talk(1)}))
    assert foldline("compact", sources, "--out", out).code == 0
    assert precious.read_text() == "precious"
    for name in ("link.jsonl", "old.jsonl"):
        assert not (out / name).is_symlink()
        assert json.loads((out / name).read_text())["status"] == "unchanged"


def test_linked_folders_below_the_output_are_not_entered(
    foldline: Foldline, sources: Path, out: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    out.mkdir()
    (out / "sub").symlink_to(elsewhere)
    (sources / "sub").mkdir()
    for name in ("sub/a.jsonl", "b.jsonl"):
        (sources / name).write_text(lines({"messages": talk(1)}))
    answer = foldline("compact", sources, "--out", out)
    assert answer.code == 1
    assert "linked_folder" in answer.err
    assert list(elsewhere.iterdir()) == []
    assert (out / "b.jsonl").exists()


def test_private_file_modes_are_preserved(foldline: Foldline, sources: Path, out: Path) -> None:
    for name, mode in (("private.jsonl", 0o600), ("open.jsonl", 0o644)):
        (sources / name).write_text(lines({"messages": talk(1)}))
        (sources / name).chmod(mode)
    umask = os.umask(0o022)
    try:
        assert foldline("compact", sources, "--out", out).code == 0
    finally:
        os.umask(umask)
    assert (out / "private.jsonl").stat().st_mode & 0o777 == 0o600
    assert (out / "open.jsonl").stat().st_mode & 0o777 == 0o644


def test_conversations_are_streamed(sources: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the tenth is read, the ninth is being folded and at most one waits."""
    (sources / "a.jsonl").write_text(lines(*({"id": i, "messages": talk(1)} for i in range(10))))
    order = []
    original = batch.compact

    def noted(messages: Any, *arguments: Any, **options: Any) -> Any:
        order.append("fold")
        return original(messages, *arguments, **options)

    def read(*arguments: Any, **options: Any) -> Iterator[fl.StoredTranscript]:
        for transcript in read_stream(*arguments, **options):
            order.append("read")
            yield transcript

    monkeypatch.setattr(batch.BatchCompactor, "row_folder", lambda *_: None)  # the core creates no Python objects
    monkeypatch.setattr(batch, "compact", noted)
    monkeypatch.setattr("foldline._cli.fold_file.read_stream", read)
    assert main(["compact", str(sources), "--out", str(out)]) == 0
    assert order == ["read", "fold"] * 10


# Atomic files


def test_a_file_is_replaced_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail(error: type[BaseException]) -> None:
        with output.replacing(path) as stream:
            stream.write(b"half")
            raise error

    for error in (OSError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error):
            fail(error)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
    with output.replacing(path) as stream:
        stream.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_file_and_folder_are_synced_before_and_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    seen = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append((os.fstat(descriptor).st_ino, path.exists())))
    with output.replacing(path) as stream:
        stream.write(b"new")
    assert seen == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_a_failing_rename_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(OSError), output.replacing(path) as stream:
        stream.write(b"new")
    assert list(tmp_path.iterdir()) == [path]
