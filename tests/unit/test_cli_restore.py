"""`foldline restore`, in process: what comes out, exit codes, and that the session stays as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import foldline as fl
from foldline.cli import main
from foldline.stores import JsonlSession
from unit.samples import talk, user


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Foldline = Callable[..., Answer]


@pytest.fixture
def foldline(capsys: pytest.CaptureFixture[str]) -> Foldline:
    def call(*arguments: object) -> Answer:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Answer(code, out, err)

    return call


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session of eight messages that was compacted twice."""
    path = tmp_path / "session.jsonl"
    store = JsonlSession(path, id="s")
    for text in ("One.", "Two."):
        store.extend(talk(4, f"{text} {'word ' * 40}"))
        strategy = fl.strategies.Summarize(lambda messages, text=text: text, keep_recent=1)
        compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4")
        assert compactor.compact(store.messages(), ids=store.ids()).changed
    return path


ORIGINALS = [*talk(4, f"One. {'word ' * 40}"), *talk(4, f"Two. {'word ' * 40}")]


def test_the_original_messages_come_out_and_the_session_stays(foldline: Foldline, session: Path) -> None:
    before = session.read_bytes(), session.stat().st_mtime_ns
    answer = foldline("restore", session)
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out) == {"id": "s", "format": "openai_chat", "messages": ORIGINALS}
    assert (session.read_bytes(), session.stat().st_mtime_ns) == before


def test_what_comes_out_is_a_conversation_that_can_be_read(foldline: Foldline, session: Path, tmp_path: Path) -> None:
    out = tmp_path / "original.jsonl"
    answer = foldline("restore", session, "--out", out)
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    (transcript,) = fl.read(out)
    assert (transcript.id, transcript.messages) == ("s", ORIGINALS)


def test_a_branch_may_be_named(foldline: Foldline, session: Path) -> None:
    store = JsonlSession(session)
    first = store.entries[0].id
    store.branch(first)
    store.append(user("elsewhere"))
    assert len(json.loads(foldline("restore", session).out)["messages"]) == 2
    answer = foldline("restore", session, "--leaf", store.leaves()[0])
    assert json.loads(answer.out)["messages"] == ORIGINALS
    assert foldline("restore", session, "--leaf", "nobody").code == 2


def test_damage_is_listed_with_line_and_offset_and_the_rest_comes_out(foldline: Foldline, session: Path) -> None:
    lines = session.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join([*lines[:3], b"\0\0\0\n", *lines[3:], b'{"type":"mess']))
    answer = foldline("restore", session)
    assert answer.code == 1
    assert json.loads(answer.out)["messages"] == ORIGINALS
    first, second = answer.err.splitlines()
    assert f"line 4, offset {sum(map(len, lines[:3]))}: nul_bytes" in first
    assert f"line {len(lines) + 2}, offset" in second
    assert second.endswith("torn_line")
    strict = foldline("restore", session, "--strict")
    assert (strict.code, strict.out, len(strict.err.splitlines())) == (1, "", 1)


def test_a_message_that_was_changed_after_it_was_covered_is_told(foldline: Foldline, session: Path) -> None:
    session.write_bytes(session.read_bytes().replace(b"1 One. word", b"1 One. worm", 1))
    answer = foldline("restore", session)
    assert answer.code == 1
    assert "covered_changed" in answer.err
    assert len(json.loads(answer.out)["messages"]) == 8


@pytest.mark.parametrize(
    "data", [b"hello\n", b"\x89PNG\r\n", b'{"messages": []}\n', b'[{"role":"user","content":"a"}]']
)
def test_what_is_no_session_is_a_problem(foldline: Foldline, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    answer = foldline("restore", path)
    assert (answer.code, answer.out) == (1, "")
    assert "not_a_session" in answer.err
    assert path.read_bytes() == data


def test_an_empty_session_is_a_problem(foldline: Foldline, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"")
    answer = foldline("restore", path)
    assert answer.code == 1
    assert "no_transcript" in answer.err
    assert json.loads(answer.out)["messages"] == []


def test_wrong_usage_is_2(foldline: Foldline, session: Path, tmp_path: Path) -> None:
    before = session.read_bytes()
    assert foldline("restore").code == 2
    assert foldline("restore", tmp_path / "none.jsonl").code == 2
    assert foldline("restore", tmp_path).code == 2
    assert foldline("restore", session, "--out", tmp_path).code == 2
    assert foldline("restore", session, "--out", tmp_path / "none" / "x.jsonl").code == 2
    (tmp_path / "link.jsonl").symlink_to(session)
    for itself in (session, tmp_path / "link.jsonl"):
        assert foldline("restore", session, "--out", itself).code == 2
    assert session.read_bytes() == before
    assert foldline("restore", tmp_path / "link.jsonl").code == 0


def test_a_session_in_a_folder_that_is_read_only_is_restored(foldline: Foldline, session: Path) -> None:
    session.chmod(0o400)
    session.parent.chmod(0o500)
    try:
        assert foldline("restore", session).code == 0
    finally:
        session.parent.chmod(0o700)


def test_a_recorded_session_of_pi_comes_out_whole(shared: Path, foldline: Foldline) -> None:
    source = shared / "pi" / "large-session.jsonl"
    (recorded,) = fl.read(source)
    record: dict[str, Any] = json.loads(foldline("restore", source).out)
    assert (record["format"], record["messages"]) == ("pi", recorded.messages)


def test_the_command_is_there(session: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "foldline", "restore", str(session)], capture_output=True, text=True, check=True
    )
    assert len(json.loads(done.stdout)["messages"]) == 8
