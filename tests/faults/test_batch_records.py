"""Garbage in the records of `foldline compact`: what is damaged is not believed, and one line says what to do."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults.permissions import bound_by_permissions, needs_permissions
from foldline._cli.progress import FileReport
from foldline._util.checks import fields_of
from foldline._util.files import failed_path, remedy
from foldline.cli import main
from foldline.typing import Completion
from unit.samples import talk

DEEP = b"[" * 200_000
MODES = [[], ["--resume"]]
RECORDS = ["run.json", "finished.jsonl"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sources, and an output folder of which one source was finished after the manifest was written."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.jsonl").write_text(json.dumps({"id": name, "messages": talk(8)}) + "\n")
    assert compact(tmp_path) == 0
    manifest = json.loads((tmp_path / "out/.foldline/run.json").read_bytes())
    line = json.dumps(manifest["files"].pop())
    (tmp_path / "out/.foldline/finished.jsonl").write_text(line + "\n")
    (tmp_path / "out/.foldline/run.json").write_text(json.dumps(manifest))
    return tmp_path


def compact(folder: Path, *more: str) -> int:
    arguments = ["compact", str(folder / "in"), "--out", str(folder / "out"), "--keep-messages", "1", *more]
    return main(arguments)


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "out").iterdir()) if path.is_file()}


def in_its_place(path: Path, what: str) -> None:
    path.unlink(missing_ok=True)
    if what == "folder":
        path.mkdir()
        (path / "x").write_text("x")
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "link to itself":
        path.symlink_to(path.name)
    else:
        path.symlink_to("/dev/zero")


PLACED = ["folder", "pipe", "link to itself", "link to a device"]


@pytest.mark.parametrize("more", MODES)
@pytest.mark.parametrize(
    "line", [DEEP, b"\x00\xff", b"9" * 9_000, b'{"source": ["a"]}', b'{"source": {}}', b"5", b"{}"]
)
def test_a_damaged_line_of_the_journal_is_not_believed(folder: Path, more: list[str], line: bytes) -> None:
    wanted = outputs(folder)
    journal = folder / "out/.foldline/finished.jsonl"
    journal.write_bytes(line + b"\n" + journal.read_bytes())
    assert compact(folder, *more) == 0
    assert outputs(folder) == wanted
    journal.write_bytes(line + b"\n")
    assert compact(folder, *more) == 0
    assert outputs(folder) == wanted


@pytest.mark.parametrize(
    "text", [DEEP, b'{"files":' + DEEP, b"\x00\xff", b'{"files": 5}', b'{"n":' + b"9" * 9_000 + b"}"]
)
def test_a_damaged_manifest_stops_only_a_resumed_run(
    folder: Path, text: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = folder / "out/.foldline/run.json"
    manifest.write_bytes(text)
    assert compact(folder, "--resume") == 2
    printed = capsys.readouterr().err.splitlines()[-1]
    assert str(manifest) in printed
    assert "without --resume" in printed
    assert manifest.read_bytes() == text
    assert compact(folder) == 0


FIELDS = [name for name in FileReport("x").record() if name != "source"]


@pytest.mark.parametrize("name", ["source", *FIELDS])
def test_a_record_with_a_value_of_another_type_is_folded_again(folder: Path, name: str) -> None:
    wanted = outputs(folder)
    manifest = folder / "out/.foldline/run.json"
    whole = json.loads(manifest.read_bytes())
    for value in ("x", [1], None, -1, 1.5, float("inf"), float("nan"), {}, True, 10**30, ["a"], "missing"):
        record = dict(whole["files"][0])
        if value is None and name == "output":
            continue  # a file without transcripts
        record[name] = value
        if value == "missing":
            del record[name]
        manifest.write_text(json.dumps(whole | {"files": [record]}))
        assert compact(folder, "--resume") == 0, value
        assert outputs(folder) == wanted
        assert json.loads(manifest.read_bytes())["files"][0] == whole["files"][0], value


@pytest.mark.skipif(os.name == "nt", reason="pipes and links of POSIX")
@pytest.mark.parametrize("more", MODES)
@pytest.mark.parametrize("what", PLACED)
@pytest.mark.parametrize("name", RECORDS)
def test_what_is_no_file_in_the_place_of_a_record_is_reported_with_a_remedy(
    folder: Path, name: str, what: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    place = folder / "out/.foldline" / name
    in_its_place(place, what)
    assert compact(folder, *more) == 1
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith(f"foldline: stopped: {place}: ")
    assert "move it away" in printed
    shutil.rmtree(place) if what == "folder" else place.unlink()
    assert compact(folder, *more) == 0


@needs_permissions
@pytest.mark.parametrize("more", MODES)
@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_cannot_be_read_is_reported_with_a_remedy(
    folder: Path, name: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    place = folder / "out/.foldline" / name
    place.chmod(0)
    with bound_by_permissions():
        assert compact(folder, *more) == 1
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith(f"foldline: stopped: {place}: ")
    assert "can be read and written" in printed


@pytest.mark.parametrize("what", ["file", "link", "unreadable"])
def test_a_folder_of_records_that_cannot_be_used_is_named(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_text(json.dumps({"messages": talk(8)}) + "\n")
    place = tmp_path / "out/.foldline"
    place.parent.mkdir()
    if what == "file":
        place.write_text("x")
    elif what == "link":
        place.symlink_to(tmp_path / "in")
    else:
        place.mkdir(mode=0)
    with bound_by_permissions():
        assert compact(tmp_path) == 2
    assert str(place) in capsys.readouterr().err.splitlines()[-1]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["a.jsonl"]


def test_what_is_left_of_the_probe_of_an_older_version_does_no_harm(folder: Path) -> None:
    (folder / "out/.foldline/probe").mkdir()
    assert compact(folder, "--resume") == 0


def test_version_and_options_of_a_manifest_do_not_reach_the_terminal_whole(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = folder / "out/.foldline/run.json"
    whole = json.loads(manifest.read_bytes())
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda it: it.update(foldline="\x1b[31m" + "x" * 9_000),
        lambda it: it["options"].update({"\x1b[31m" + "x" * 9_000: 1}),
    ]
    for change in changes:
        changed = json.loads(json.dumps(whole))
        change(changed)
        manifest.write_text(json.dumps(changed))
        assert compact(folder, "--resume") == 2
        printed = capsys.readouterr().err
        assert "\x1b" not in printed
        assert len(printed) < 400


def test_a_forged_output_is_named_by_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import hashlib

    report = ("--report", str(folder / "report.json"))
    assert compact(folder, *report) == 0
    manifest, output = folder / "out/.foldline/run.json", folder / "out/a.jsonl"
    whole = json.loads(manifest.read_bytes())
    (record,) = (each for each in whole["files"] if each["output"] == "a.jsonl")
    for text in (DEEP, b"[5]\n", b'{"status": 5, "id": "a"}\n', b"x"):
        output.write_bytes(text)
        record |= {"output_bytes": len(text), "output_sha256": hashlib.sha256(text).hexdigest()}
        manifest.write_text(json.dumps(whole))
        assert compact(folder, "--resume", *report) == 1
        printed = capsys.readouterr().err.splitlines()[-1]
        assert printed.startswith(f"foldline: stopped: {output}: ")
        assert "without --resume" in printed


def test_fields_of_a_record_have_their_types() -> None:
    known = fields_of(Completion, {"text": "x", "notes": ["a"], "input_tokens": 3, "evidence": {}})
    assert known == {"text": "x", "notes": ("a",), "input_tokens": 3, "evidence": {}}
    for name, value in [("text", None), ("notes", [1]), ("notes", "x"), ("input_tokens", 1.0), ("other", 1)]:
        assert fields_of(Completion, {"text": "x", name: value}) is None
    assert fields_of(Completion, ["text"]) is None


def test_an_error_of_a_file_names_the_file_and_what_to_do() -> None:
    assert failed_path(OSError(errno.EACCES, "no", "/a")) == "/a"
    assert failed_path(OSError(errno.EACCES, "no", b"/a", None, "/b")) == "/b"
    assert failed_path(OSError(errno.EACCES, "no", 3)) is None
    assert "make room" in remedy(OSError(errno.ENOSPC, ""))
    assert "move it away" in remedy(OSError(errno.EISDIR, ""))
    assert "can be read and written" in remedy(OSError(errno.EACCES, ""))
