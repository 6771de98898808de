"""Bad files, through the real program: the right exit code, no traceback, and the rest is processed."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import foldline as fl
from faults.permissions import bind_by_permissions, needs_permissions
from foldline import _core
from foldline.cli import main

SECRET = "hunter2"
CHAT = [{"role": "user", "content": "What is the capital of Peru?"}, {"role": "assistant", "content": "Lima."}]


def line(name: str = "good", messages: object = None) -> bytes:
    return json.dumps({"id": name, "messages": messages or CHAT}).encode() + b"\n"


def run(*arguments: object, stdin: bytes | None = None, **options: Any) -> subprocess.CompletedProcess[bytes]:
    ran = subprocess.run(
        [sys.executable, "-m", "foldline", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=120,
        **options,
    )
    assert b"Traceback" not in ran.stderr
    assert SECRET.encode() not in ran.stderr
    return ran


def records(path: Path) -> list[Any]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def leftovers(out: Path) -> list[Path]:
    return [path for path in out.rglob("*") if path.name.endswith(".tmp")]


class Bad(NamedTuple):
    """A bad file: its bytes, the problems that are told, and the transcripts that come out all the same."""

    content: bytes
    codes: list[str]
    ids: list[str]


DEEP = b'{"id":"deep","messages":[{"role":"user","content":[{"type":"odd","x":' + b"[" * 150 + b"]" * 150 + b"}]}]}\n"

FILES = {
    "torn last line": Bad(line("a") + b'{"id": "hunter2", "mess', ["torn_line"], ["a"]),
    "glued objects": Bad(line("a").strip() + line("b") + line("c"), ["glued_values"], ["a", "b", "c"]),
    "BOM": Bad(b"\xef\xbb\xbf" + line("a"), [], ["a"]),
    "CRLF": Bad(line("a").replace(b"\n", b"\r\n") + line("b").replace(b"\n", b"\r\n"), [], ["a", "b"]),
    "NUL runs": Bad(line("a") + b"\0" * 4096 + line("b"), ["nul_bytes"], ["a", "b"]),
    "bad UTF-8": Bad(b'{"hunter2": "\xff"}\n' + line("a"), ["bad_utf8"], ["a"]),
    "binary": Bad(bytes(range(256)) * 64, ["no_transcript"], []),
    "empty": Bad(b"", ["no_transcript"], []),
    "text": Bad(b"hunter2\nis no conversation\n", ["no_transcript"], []),
    "other JSON": Bad(b'{"hunter2": 1}\n', ["unknown_record"], []),
    "pretty-printed under .jsonl": Bad(json.dumps([json.loads(line("a"))], indent=2).encode(), [], ["a"]),
    "gzip that is none": Bad(b"\x1f\x8b\x08" + b"x" * 100, ["corrupt_compression"], []),
    "too deep to read": Bad(b'{"id":"x","messages":' + b"[" * 5000 + b"\n" + line("a"), ["nesting_too_deep"], ["a"]),
    "too deep to fold": Bad(DEEP + line("a"), ["nesting_too_deep"], ["deep", "a"]),
    "huge number": Bad(b'{"id":1,"x":' + b"9" * 5000 + b',"messages":[]}\n' + line("a"), ["bad_json"], ["a"]),
    "numbers without end": Bad(
        b'{"id":"inf","messages":[{"role":"user","content":"x","n":[NaN,-Infinity,1e999]}]}\n', [], ["inf"]
    ),
    "repeated ids": Bad(line("a") + line("a"), [], ["a", "a"]),
    "content of a wrong kind": Bad(
        line("a", [{"role": "user", "content": 5, "name": SECRET}]) + line("b"), ["message 0"], ["a", "b"]
    ),
    "two dialects": Bad(
        line("a", [{"role": "tool", "content": SECRET}, {"role": "toolResult", "content": SECRET}]) + line("b"),
        ["ambiguous_format"],
        ["b"],
    ),
    "a dialect that is not read": Bad(
        b'{"messages": [{"type": "user", "content": "x"}]}\n', ["unsupported_format"], []
    ),
}


@pytest.fixture(params=FILES)
def bad(request: pytest.FixtureRequest) -> Bad:
    return FILES[request.param]


def test_a_bad_file_is_told_and_the_rest_is_folded(bad: Bad, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "bad.jsonl").write_bytes(bad.content)
    (folder / "good.jsonl").write_bytes(line())
    ran = run("compact", folder, "--out", out, "--json")
    assert ran.returncode == (1 if bad.codes else 0), ran.stderr
    for code in bad.codes:
        assert code in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == len(bad.codes)
    assert all(text.startswith(str(folder / "bad.jsonl")) for text in ran.stderr.decode().splitlines())
    assert [record["id"] for record in records(out / "bad.jsonl")] == bad.ids
    assert [record["id"] for record in records(out / "good.jsonl")] == ["good"]
    assert (folder / "bad.jsonl").read_bytes() == bad.content
    reports = [json.loads(text) for text in ran.stdout.splitlines()]
    assert [report["transcripts"] for report in reports] == [len(bad.ids), 1]
    assert leftovers(out) == []
    if bad.ids:
        again = {t.id: t.messages for t in fl.read(out / "bad.jsonl", on_problem=pytest.fail)}
        assert repr(again) == repr({t.id: t.messages for t in fl.read(folder / "bad.jsonl") if t.id in again})


@pytest.mark.parametrize("command", ["count", "plan", "check"])
def test_a_bad_file_is_told_by_the_other_commands(
    bad: Bad, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_bytes(bad.content)
    (tmp_path / "good.jsonl").write_bytes(line())
    code = main([command, str(tmp_path), "--json"])
    out, err = capsys.readouterr()
    assert code == (1 if bad.codes else 0), err
    assert "Traceback" not in err
    assert SECRET not in err
    for text in bad.codes:
        assert text in err
    assert "good" in [json.loads(text)["id"] for text in out.splitlines()]


def test_a_bad_file_on_standard_input(bad: Bad, tmp_path: Path) -> None:
    ran = run("compact", "-", "--out", tmp_path / "out", stdin=bad.content)
    assert ran.returncode == (1 if bad.codes else 0), ran.stderr
    assert [record["id"] for record in records(tmp_path / "out" / "stdin.jsonl")] == bad.ids


def test_strict_stops_at_a_bad_file(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(line("a") + b"{x}\n{y}\n")
    ran = run("compact", tmp_path / "bad.jsonl", "--out", tmp_path / "out", "--strict")
    assert ran.returncode == 1
    assert ran.stderr.count(b"\n") == 1
    assert not (tmp_path / "out" / "bad.jsonl").exists()
    assert leftovers(tmp_path) == []


def test_a_line_beyond_the_limit_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scanner = _core.LineScanner
    monkeypatch.setattr(_core, "LineScanner", lambda: scanner(200))
    (tmp_path / "in.jsonl").write_bytes(line("a") + line("b" * 300) + line("c"))
    assert main(["compact", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out")]) == 1
    assert "line 2, offset " in capsys.readouterr().err
    monkeypatch.undo()
    assert [record["id"] for record in records(tmp_path / "out" / "in.jsonl")] == ["a", "c"]


def test_of_a_corrupt_archive_the_beginning_is_kept(tmp_path: Path) -> None:
    noise = random.Random(7)
    chats = [line(f"{i}", [{"role": "user", "content": f"{noise.getrandbits(80_000):x}"}]) for i in range(200)]
    packed = gzip.compress(b"".join(chats), 1)
    (tmp_path / "in.jsonl.gz").write_bytes(packed[: len(packed) * 3 // 4])
    ran = run("compact", tmp_path / "in.jsonl.gz", "--out", tmp_path / "out")
    assert ran.returncode == 1
    assert b"corrupt_compression" in ran.stderr
    written = gzip.decompress((tmp_path / "out" / "in.jsonl.gz").read_bytes())  # what is written is whole
    ids = [json.loads(line)["id"] for line in written.splitlines()]
    assert 0 < len(ids) < 160
    assert ids == [f"{i}" for i in range(len(ids))]


# Files that cannot be read


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_name_that_is_not_utf8_is_that_of_its_output(tmp_path: Path, jobs: int) -> None:
    folder, out = tmp_path / "in", tmp_path / os.fsdecode(b"out\xff")
    folder.mkdir()
    anonymous = json.dumps({"messages": CHAT}).encode() + b"\n"
    for name in (b"a\xff.jsonl", b"b.jsonl"):
        (folder / os.fsdecode(name)).write_bytes(anonymous * 2)
    for more in ((), ("--resume",)):
        ran = run("compact", folder, "--out", out, "--keep-messages", 1, "--jobs", jobs, *more)
        assert (ran.returncode, ran.stderr) == (0, b"")
        odd, plain = (records(out / os.fsdecode(name)) for name in (b"a\xff.jsonl", b"b.jsonl"))
        assert [record.pop("id") for record in odd] == ["a\udcff:0", "a\udcff:1"]
        assert [record.pop("id") for record in plain] == ["b:0", "b:1"]
        assert odd == plain


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    (folder / "good.jsonl").write_bytes(line())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "other.jsonl").write_bytes(line("other"))
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "link.jsonl").symlink_to(tmp_path / "elsewhere" / "other.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    ran = run("compact", folder, "--out", out)
    assert ran.returncode == 1
    problems = sorted(ran.stderr.decode().splitlines())
    names = [text.split(": ")[0].rsplit("/")[-1] for text in problems]
    assert names == ["dangling.jsonl", "linked", "loop.jsonl", "pipe.jsonl"]
    assert sorted(path.name for path in out.iterdir()) == [".foldline", "good.jsonl", "link.jsonl"]
    assert (tmp_path / "elsewhere" / "other.jsonl").read_bytes() == line("other")


@needs_permissions
def test_files_without_permission_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "locked").mkdir(parents=True)
    (folder / "secret.jsonl").write_bytes(line())
    (folder / "good.jsonl").write_bytes(line())
    (folder / "secret.jsonl").chmod(0)
    (folder / "locked").chmod(0)
    try:
        ran = run("compact", folder, "--out", tmp_path / "out", preexec_fn=bind_by_permissions)
        counted = run("count", folder / "secret.jsonl", folder / "good.jsonl", preexec_fn=bind_by_permissions)
    finally:
        (folder / "locked").chmod(0o700)
    assert ran.returncode == 1
    assert b"unreadable_file" in ran.stderr
    assert b"unreadable_folder" in ran.stderr
    assert (tmp_path / "out" / "good.jsonl").exists()
    assert counted.returncode == 1


def test_a_file_that_goes_or_fails_while_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As without permission, but for root too."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(line(name))
    opened = Path.open

    def failing(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "a":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", failing)
    assert main(["count", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 1
    out, err = capsys.readouterr()
    assert err == f"{tmp_path / 'a'}: unreadable_file (Permission denied)\n"
    assert [json.loads(text)["id"] for text in out.splitlines()] == ["b"]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "in" / os.fsdecode(b"caf\xe9\n\x1b[31m.jsonl")
    path.parent.mkdir()
    try:
        path.write_bytes(line() + b"{x}\n")
    except OSError:
        pytest.skip("the file system has no such names")
    ran = run("compact", tmp_path / "in", "--out", tmp_path / "out", "--json")
    assert ran.returncode == 1
    assert b"\x1b" not in ran.stderr
    assert ran.stderr.count(b"\n") == 1
    assert [record["id"] for record in records(tmp_path / "out" / path.name)] == ["good"]
    assert run("count", tmp_path / "in").returncode == 1
    assert run("count", tmp_path / "in", env=os.environ | {"PYTHONIOENCODING": "ascii"}).returncode == 1


@pytest.mark.parametrize("command", [["count", "-"], ["plan", "-"], ["check", "-"], ["compact", "-", "--out", "OUT"]])
def test_closed_standard_input_is_wrong_usage(tmp_path: Path, command: list[str]) -> None:
    arguments = [argument.replace("OUT", str(tmp_path / "out")) for argument in command]
    ran = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "foldline", *arguments],
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 2
    assert b"Traceback" not in ran.stderr
    assert b"standard input is closed" in ran.stderr


# Folders and disks that cannot be written


def test_an_output_folder_that_cannot_be_is_wrong_usage(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(line())
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / ".foldline").write_text("in the way")
    (tmp_path / "linked").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked" / ".foldline").symlink_to(tmp_path / "elsewhere")
    for out in ("file", "file/below", "half", "linked"):
        ran = run("compact", source, "--out", tmp_path / out)
        assert ran.returncode == 2, out
        assert b"--out" in ran.stderr, out
    assert (tmp_path / "file").read_text() == "in the way"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@needs_permissions
def test_a_read_only_output_folder_is_wrong_usage(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(line())
    out = tmp_path / "out"
    out.mkdir(mode=0o500)
    assert run("compact", source, "--out", out, preexec_fn=bind_by_permissions).returncode == 2


def test_one_output_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    for name in ("a/x.jsonl", "b.jsonl", "c.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(line(name))
    (out / "b.jsonl" / "full").mkdir(parents=True)
    (out / "a").write_text("in the way")
    ran = run("compact", folder, "--out", out)
    assert ran.returncode == 1
    assert ran.stderr.count(b"cannot_write") == 2
    assert [record["id"] for record in records(out / "c.jsonl")] == ["c.jsonl"]
    assert (out / "a").read_text() == "in the way"
    assert leftovers(out) == []


def small_files_only() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_full_disk_leaves_the_older_output_and_no_half_one(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    (folder / "big.jsonl").write_bytes(b"".join(line(f"{i}") for i in range(1000)))
    (folder / "small.jsonl").write_bytes(line())
    (out / "big.jsonl").write_text("older")
    ran = run("compact", folder, "--out", out, preexec_fn=small_files_only)
    assert ran.returncode == 1
    assert b"cannot_write" in ran.stderr
    assert (out / "big.jsonl").read_text() == "older"
    assert [record["id"] for record in records(out / "small.jsonl")] == ["good"]
    assert leftovers(out) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(line())
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "foldline", "count", str(source)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ran.returncode == 1
    assert ran.stderr.count(b"\n") == 1


# Sources


def test_sources_are_never_touched(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, bad in enumerate(FILES.values()):
        (folder / f"{number}.jsonl").write_bytes(bad.content)

    def state() -> list[tuple[str, str, int]]:
        files = sorted(folder.iterdir())
        return [(p.name, hashlib.sha256(p.read_bytes()).hexdigest(), p.stat().st_mtime_ns) for p in files]

    before = state()
    for command in (["count"], ["check"], ["compact", "--out", tmp_path / "out", "--keep-messages", "0"]):
        assert run(*command, folder).returncode == 1
    assert state() == before
