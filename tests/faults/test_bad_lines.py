"""Files of bad lines: memory is bounded, and problems are counts by code with the first few in detail."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import foldline as fl
from depth import cases
from foldline.cli import main
from foldline.reading import _chunks

GOOD = json.dumps({"id": "good", "messages": [{"role": "user", "content": "x"}]}).encode() + b"\n"
ENTRY = b'{"type":"user","uuid":"u","sessionId":"s","parentUuid":null,"message":{"role":"user","content":"x"}}\n'

#: Files by kind: how they begin, and the line that is repeated.
KINDS = {
    "no JSON": (b"", b"x\n"),
    "no JSON after a conversation": (GOOD, b"x\n"),
    "no JSON after an entry of a session": (ENTRY, b"x\n"),
    "torn objects": (b"", b"{x\n"),
    "a document without end": (b"[\n", b"1,\n"),
    "numbers": (b"", b"1\n"),
    "objects without messages": (GOOD, b"{}\n"),
    "NUL bytes": (b"", b"\0\n"),
    "bad UTF-8": (GOOD, b"\xff\n"),
    "glued values": (GOOD, b"1 1\n"),
    "a line of glued values": (GOOD, b"{}"),
    "blank lines": (b"", b"\n"),
    "messages that are none": (b"", b'{"messages":[{}]}\n'),
    "conversations without messages": (b"", b'{"messages":[]}\n'),
}

#: Peak memory beyond that of a run over one line, in MiB: windows of 16 MiB, some copies of them, and what is found in
#: a window of the most lines.
MOST_MIB = 96

CHILD = """
import sys
from foldline.cli import main
code = main(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print("peak", peak.split()[1])
sys.exit(code)
"""


def peak_mib(source: Path, command: str, out: Path) -> tuple[float, str]:
    """Peak resident memory of a process, and its standard error."""
    words = [command, str(source), "--heuristic", "chars/4"] if command != "check" else [command, str(source)]
    if command in ("compact", "trim"):
        words += ["--out", str(out)]
    if command == "trim":
        words += ["--fit", "1000"]
    ran = subprocess.run([sys.executable, "-c", CHILD, *words], capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return int(ran.stdout.split("peak ")[-1]) / 1024, ran.stderr


@pytest.fixture(scope="module")
def least_mib(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Peak memory of a run over one line."""
    folder = tmp_path_factory.mktemp("least")
    (folder / "in.jsonl").write_bytes(GOOD)
    return peak_mib(folder / "in.jsonl", "compact", folder / "out")[0]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak memory of a process")
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("kind", KINDS)
def test_memory_and_messages_are_bounded_whatever_share_of_the_lines_is_bad(
    kind: str, tmp_path: Path, least_mib: float
) -> None:
    begin, line = KINDS[kind]
    size = cases("bad_line_bytes")
    source = tmp_path / "in.jsonl"
    source.write_bytes(begin + line * (size // len(line)))
    peak, printed = peak_mib(source, "compact", tmp_path / "out")
    # The document is kept whole until it ends, twice when it is joined: it is one value.
    room = MOST_MIB + (3 * size / 2**20 if kind == "a document without end" else 0)
    # Conversations are written, and one record of each is held in a window.
    assert peak - least_mib < room
    assert len(printed) < 20_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak memory of a process")
@pytest.mark.parametrize("value", [b"{}", b"[]", b"7"], ids=["objects", "lists", "numbers"])
def test_a_line_of_too_many_values_is_not_read(value: bytes, tmp_path: Path, least_mib: float) -> None:
    """As Python objects they would take 30 times the line."""
    source = tmp_path / "in.jsonl"
    line = b"[" + (value + b",") * (1 << 23) + value + b"]\n"
    source.write_bytes(line + GOOD)
    peak, printed = peak_mib(source, "count", tmp_path / "out")
    assert peak - least_mib < MOST_MIB + 12 * len(line) / 2**20
    assert "too_many_values" in printed
    assert len(printed) < 20_000


@pytest.mark.deep
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("command", ["count", "plan", "check", "trim"])
def test_memory_of_the_other_commands_is_bounded(command: str, tmp_path: Path, least_mib: float) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(GOOD + b"x\n" * (cases("bad_line_bytes") // 2))
    peak, printed = peak_mib(source, command, tmp_path / "out")
    assert peak - least_mib < MOST_MIB
    assert len(printed) < 20_000


@pytest.mark.deep
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("line", [b"x\n", b"\n"], ids=["bad", "blank"])
def test_a_small_archive_of_many_bad_lines_is_bounded(line: bytes, tmp_path: Path, least_mib: float) -> None:
    """116 KB of gzip are 119 MB of lines."""
    source = tmp_path / "in.jsonl.gz"
    source.write_bytes(gzip.compress(line * ((24 << 20) // len(line))))
    peak, _ = peak_mib(source, "compact", tmp_path / "out")
    assert peak - least_mib < MOST_MIB


def test_problems_are_reported_in_detail_first_and_then_as_counts_by_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(GOOD + b"x\n" * 25 + b"\xff\n" * 12 + b"1\n" * 3 + GOOD)
    (folder / "b.jsonl").write_bytes(GOOD + b"x\n" * 11)
    for command in (["compact", "--out", str(tmp_path / "out"), "--json"], ["count"], ["check"], ["plan"]):
        assert main([command[0], str(folder), *command[1:]]) == 1
        out, err = capsys.readouterr()
        printed = err.splitlines()
        assert len(printed) == 10 + 10 + 3 + 2 + 10 + 1, command
        rest = [each for each in printed if "more" in each]
        assert sorted(rest) == [
            f"{folder / 'a.jsonl'}: bad_json (15 more)",
            f"{folder / 'a.jsonl'}: bad_utf8 (2 more)",
            f"{folder / 'b.jsonl'}: bad_json (1 more)",
        ]
        assert f"{folder / 'a.jsonl'}, line 2, offset {len(GOOD)}: bad_json" in printed
        if command[0] == "compact":
            assert [json.loads(line)["problems"] for line in out.splitlines()] == [40, 11]


def test_with_processes_the_same_problems_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.jsonl").write_bytes(GOOD + b"x\n" * 25)
    printed = []
    for jobs in ("1", "2"):
        command = [sys.executable, "-m", "foldline", "compact", str(folder), "--out", str(tmp_path / jobs)]
        ran = subprocess.run([*command, "--jobs", jobs, "--json"], capture_output=True, text=True, check=False)
        assert ran.returncode == 1
        printed.append((sorted(ran.stderr.splitlines()), sorted(ran.stdout.splitlines())))
    assert printed[0] == printed[1]
    assert len(printed[0][0]) == 33


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_pieces_of_few_lines_are_the_chunk(lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_chunks, "MAX_CHUNK_LINES", lines)
    for chunk in (b"", b"x", b"\n", b"\n\n\n", b"ab\ncd\n\nlonger than the piece\ne\nf", b"a\n" * 40 + b"rest"):
        pieces = list(_chunks.in_few_lines(chunk))
        assert b"".join(pieces) == chunk
        assert all(piece.endswith(b"\n") for piece in pieces[:-1])
        assert all(piece.count(b"\n") <= max(lines, 1) for piece in pieces)


@pytest.mark.parametrize("blank", [b"", b"\n" * 40_000, b" \r\n" * 40_000 + b"  "], ids=["none", "lines", "spaces"])
@pytest.mark.parametrize(
    "document",
    [
        json.dumps(json.loads(GOOD), indent=1).encode() + b"\n{\n",
        b"[\n" + GOOD + b"]",
        GOOD + b"x\n",
        b"x\n" + GOOD,
    ],
    ids=["documents", "list", "lines", "bad first line"],
)
def test_blank_beginnings_change_only_the_places(blank: bytes, document: bytes, tmp_path: Path) -> None:
    """Chunks of blank lines are not kept, but counted."""

    def read(data: bytes) -> tuple[list[tuple[str, int]], list[tuple[str, int | None, int | None]]]:
        (tmp_path / "in.jsonl").write_bytes(data)
        problems: list[fl.Problem] = []
        found = [(each.id, each.meta["line"]) for each in fl.read(tmp_path / "in.jsonl", on_problem=problems.append)]
        return found, [(each.code, each.line, each.offset) for each in problems]

    found, problems = read(document)
    lines, size = blank.count(b"\n"), len(blank)
    assert read(blank + document) == (
        [(name, line + lines) for name, line in found],
        [(code, line and line + lines, None if offset is None else offset + size) for code, line, offset in problems],
    )
