"""The cache of summaries on a full disk and with damaged files: no answer is paid for twice, and no traceback."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from depth import cases
from faults.permissions import bound_by_permissions, needs_permissions
from faults.test_batch_kills import CountingModel
from faults.test_batch_records import PLACED, in_its_place
from foldline.batch.cache import CachedSummarizer, SummaryCache
from foldline.errors import StoreError, SummaryError
from foldline.typing import Completion, SummarizeRequest

REQUEST = SummarizeRequest(
    [{"role": "user", "content": f"{i} " + "word " * 40} for i in range(6)], [0, 1, 2, 3], 200, len, "openai_chat"
)
GARBAGE = b"no database at all, but a text that is long enough to be looked at" * 20


class Asked:
    """A summarizer whose answers fill pages of a database, and which counts its calls."""

    def __init__(self) -> None:
        self.times = 0

    def summarize(self, request: SummarizeRequest) -> Completion:
        self.times += 1
        return Completion(f"call {self.times}: " + "so far " * 1_000, "m")


@pytest.fixture
def cache(tmp_path: Path) -> SummaryCache:
    return SummaryCache(tmp_path / "cache.sqlite")


def fill(cache: SummaryCache) -> None:
    """Makes the database full for this process."""
    connection = cache._connection()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")


def names(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir() if path.suffix in (".answer", ".room"))


# A full disk


def test_an_answer_that_the_cache_has_no_room_for_waits_beside_it(cache: SummaryCache, tmp_path: Path) -> None:
    asked = Asked()
    fill(cache)
    first = CachedSummarizer(asked, cache, "m").summarize(REQUEST)
    assert names(tmp_path) == [".answer"]
    assert CachedSummarizer(asked, cache, "m").summarize(REQUEST) == first
    another = SummaryCache(cache.path)
    fill(another)  # another process on the same full disk
    assert CachedSummarizer(asked, another, "m").summarize(REQUEST) == first
    another.close()
    cache.close()
    again = SummaryCache(cache.path)  # there is room again
    assert CachedSummarizer(asked, again, "m").summarize(REQUEST) == first
    again.close()
    assert (asked.times, names(tmp_path)) == (1, [])


def test_without_room_for_its_answer_no_model_is_called(
    cache: SummaryCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    asked = Asked()
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(SummaryError, match="make room") as raised:
        CachedSummarizer(asked, cache, "m").summarize(REQUEST)
    assert (raised.value.code, asked.times, names(tmp_path)) == ("cache_failed", 0, [])


def test_a_reservation_is_used_again_and_removed_at_the_end(cache: SummaryCache, tmp_path: Path) -> None:
    writer = CachedSummarizer(Asked(), cache, "m")
    for number in range(3):
        writer.summarize(replace(REQUEST, instructions=f"{number}"))
    assert names(tmp_path) == [".room"]
    cache.close()
    assert names(tmp_path) == []


def test_the_reservation_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(
    cache: SummaryCache, tmp_path: Path
) -> None:
    code = (
        "import os, sys, signal; from foldline.batch.cache import SummaryCache\n"
        "SummaryCache(sys.argv[1]).room(1); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(cache.path)], check=False)
    assert names(tmp_path) == [".room"]
    reservation = cache.room(1)
    SummaryCache(cache.path).check()
    assert [path for path in tmp_path.iterdir() if path.suffix == ".room"] == [reservation.path]


@pytest.mark.mount
def test_on_a_disk_that_fills_up_no_answer_is_paid_for_twice(tmp_path: Path, model: CountingModel) -> None:
    """A disk of its own for each size, that is full at another point; then it is made larger and the run resumed."""
    source, disk = tmp_path / "in.jsonl", tmp_path / "disk"
    disk.mkdir()
    with source.open("w") as stream:
        for i in range(24):
            talk = [
                {
                    "role": ("user", "assistant")[k % 2],
                    "content": f"conversation-0-{i} step {k}: " + "mind the tests. " * 60,
                }
                for k in range(8)
            ]
            stream.write(json.dumps({"id": f"{i}", "messages": talk}) + "\n")
    options = "--summarizer openai:counting --keep-messages 2 --summary-tokens 400 --json --resume"
    run = f"{shlex.quote(sys.executable)} -m foldline compact {source} --out {disk}/out {options}"
    failed = 0
    for step in range(cases("full_disks")):
        model.asked.clear()
        size = 180 + step * 240 // cases("full_disks")
        script = (
            f"mount -t tmpfs -o size={size}k none {disk} && {run}; code=$?;"
            f" mount -o remount,size=64m {disk} && {run} && ls -a {disk}/out/.foldline >&2; echo $? $code >&2"
        )
        ran = subprocess.run(
            ["unshare", "-m", "sh", "-c", script], env=model.environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in ran.stderr
        last, first = ran.stderr.split()[-2:]
        assert (last, sum(model.asked.values()), model.paid_again()) == ("0", 24, 0), (size, ran.stderr)
        assert ".room" not in ran.stderr.replace("make room", "")
        assert ".answer" not in ran.stderr
        failed += first != "0"
    assert failed


# Damaged files


@pytest.fixture
def model() -> Iterator[CountingModel]:
    serving = CountingModel()
    yield serving
    serving.close()


@pytest.mark.parametrize("more", [[], ["--resume"], ["--resume", "--jobs", "2"]])
def test_garbage_in_the_place_of_the_cache_is_told_with_what_to_do(
    tmp_path: Path, model: CountingModel, more: list[str]
) -> None:
    talk = [{"role": ("user", "assistant")[k % 2], "content": f"conversation-0-0 {k}: " + "x " * 90} for k in range(8)]
    for name in "ab":
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.jsonl").write_text(json.dumps({"id": name, "messages": talk}) + "\n")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "foldline", "compact", str(tmp_path / "in"), "--out", str(out)]
    command += ["--summarizer", "openai:counting", "--keep-messages", "2", "--summary-tokens", "400"]
    assert subprocess.run(command, env=model.environment, check=False, capture_output=True).returncode == 0
    before = (out / ".foldline" / "run.json").read_bytes()
    for path in (out / ".foldline").glob("cache.sqlite*"):
        path.unlink()
    (out / ".foldline" / "cache.sqlite").write_bytes(GARBAGE)
    ran = subprocess.run(command + more, env=model.environment, check=False, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert str(out / ".foldline" / "cache.sqlite") in ran.stderr
    assert "move it away" in ran.stderr
    # Nothing is lost: without the garbage the run continues.
    assert (out / ".foldline" / "run.json").read_bytes() == before
    (out / ".foldline" / "cache.sqlite").unlink()
    assert (
        subprocess.run([*command, "--resume"], env=model.environment, check=False, capture_output=True).returncode == 0
    )
    assert model.asked == {"conversation-0-0": 1}


def test_another_database_in_the_place_of_the_cache_is_told(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "cache.sqlite") as other:
        other.execute("CREATE TABLE summaries (title TEXT)")
    with pytest.raises(SummaryError, match="no cache of summaries"):
        CachedSummarizer(Asked(), SummaryCache(tmp_path / "cache.sqlite"), "m").summarize(REQUEST)


STORED = {name: getattr(Completion("x"), name) for name in Completion.__slots__}

#: Texts that are no completion.
NO_COMPLETION = [
    "garbage", "", "[]", "{}", '{"text": "x"}', '{"notes": [], "other": 1}', "7", "null", '"x"', "[" * 100_000,
    '{"text":' * 100_000, "9" * 9_000, "x" * 50_000_000,
]  # fmt: skip

#: Values of SQL that are none.
NO_TEXT = ["5", "1.5", "1e999", "x''", "x'ff7b'", "cast(x'ff7b' as text)", "zeroblob(1000000)"]


def value_of(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


#: Values that a field may have, by the type of its default.
FIT: dict[type, tuple[Any, ...]] = {str: ("x",), type(None): (None, 5), tuple: ([],)}


def changed_fields() -> Iterator[str]:
    """Completions with a field of another type."""
    for name, value in STORED.items():
        for other in (5, -1, 1.5, None, [], {"a": 1}, True, "x", [5], float("inf"), 10**30):
            fit = (None, {"a": 1}) if name == "evidence" else FIT[type(value)]
            if not any(other == each and type(other) is type(each) for each in fit):
                yield json.dumps(STORED | {name: other})
    yield json.dumps(STORED | {"evidence": {"kept": 5}})
    yield json.dumps(STORED | {"evidence": {"kept": [{"kind": "file"}]}})
    yield json.dumps(STORED | {"text": "\u00e9"}, ensure_ascii=False)


@pytest.mark.parametrize("value", [*map(value_of, NO_COMPLETION), *NO_TEXT], ids=lambda value: str(value)[:24])
def test_a_damaged_row_is_a_miss(cache: SummaryCache, value: str) -> None:
    asked = Asked()
    writer = CachedSummarizer(asked, cache, "m")
    writer.summarize(REQUEST)
    cache._connection().execute(f"UPDATE summaries SET completion = {value}")
    again = writer.summarize(REQUEST)
    assert writer.summarize(REQUEST) == again
    assert asked.times == 2


def test_a_row_with_a_field_of_another_type_is_a_miss(cache: SummaryCache) -> None:
    asked = Asked()
    writer = CachedSummarizer(asked, cache, "m")
    times = 0
    for text in changed_fields():
        writer.summarize(REQUEST)
        cache._connection().execute("UPDATE summaries SET completion = ?", (text,))
        assert writer.summarize(REQUEST) == writer.summarize(REQUEST), text
        times += 1
        assert asked.times == times + 1, text
    assert times > 70


def test_a_row_without_a_value_is_a_miss(cache: SummaryCache) -> None:
    asked = Asked()
    writer = CachedSummarizer(asked, cache, "m")
    connection = cache._connection()
    connection.execute("DROP TABLE summaries")
    connection.execute("CREATE TABLE summaries (key BLOB PRIMARY KEY, completion TEXT)")
    writer.summarize(REQUEST)
    connection.execute("UPDATE summaries SET completion = NULL")
    assert writer.summarize(REQUEST) == writer.summarize(REQUEST)
    assert asked.times == 2


def test_every_completion_of_its_types_is_kept(cache: SummaryCache) -> None:
    whole = Completion("t\u00e9xt \ud800", "m", 0, 7, "length", 1, 2, {"files": [{"path": "a"}]}, "p/1", ("a", "b"))
    for number, completion in enumerate([whole, Completion("")]):
        cache.put(bytes([number]), completion)
        assert cache.get(bytes([number])) == completion


@pytest.mark.parametrize("amount", ["'x'", "x'ff'", "cast(x'ff' as text)", "1e999", "-1e999"])
def test_a_damaged_amount_is_an_error_until_it_is_forgotten(cache: SummaryCache, amount: str) -> None:
    cache.spend({}, requests=3)
    cache._connection().execute(f"UPDATE spent SET amount = {amount}")
    for call in (cache.spent, lambda: cache.spend({"requests": 9}, requests=1)):
        with pytest.raises(StoreError, match="forget_spent") as caught:
            call()
        assert (caught.value.code, caught.value.path) == ("cache_failed", str(cache.path))
    cache.forget_spent()
    assert cache.spend({"requests": 9}, requests=1) is None
    assert cache.spent() == {"requests": 1}


def test_a_damaged_waiting_answer_is_a_miss(cache: SummaryCache, tmp_path: Path) -> None:
    asked = Asked()
    writer = CachedSummarizer(asked, cache, "m")
    key = writer.key(REQUEST).hex()
    damaged = ["", "garbage", "[]", "[1, 2]", f'["{key}", 3]', f'["{key}", "garbage"]', "\0" * 9, "[" * 100_000]
    for number, text in enumerate(damaged):
        (tmp_path / f"cache.{number}.answer").write_text(text)
    (tmp_path / "cache.a.answer").mkdir()
    writer.summarize(REQUEST)
    assert asked.times == 1


def test_a_damaged_waiting_answer_hides_no_other(cache: SummaryCache, tmp_path: Path) -> None:
    asked = Asked()
    writer = CachedSummarizer(asked, cache, "m")
    key = writer.key(REQUEST).hex()
    (tmp_path / "cache.0.answer").write_text(json.dumps([key, "garbage"]))
    (tmp_path / "cache.1.answer").write_text(json.dumps([key, json.dumps(STORED | {"text": "paid"})]))
    assert writer.summarize(REQUEST).text == "paid"
    assert asked.times == 0


@pytest.mark.skipif(os.name == "nt", reason="pipes and links of POSIX")
@pytest.mark.parametrize("what", PLACED)
@pytest.mark.parametrize("name", ["cache.sqlite", "cache.lock", "cache.0.answer", "cache.0.room"])
def test_what_is_no_file_in_the_place_of_a_part_of_the_cache_is_told_or_does_no_harm(
    cache: SummaryCache, tmp_path: Path, name: str, what: str
) -> None:
    CachedSummarizer(Asked(), cache, "m").summarize(REQUEST)
    cache.close()
    in_its_place(tmp_path / name, what)
    writer = CachedSummarizer(asked := Asked(), cache, "m")
    if name in ("cache.0.answer", "cache.0.room"):
        writer.summarize(REQUEST)
    else:
        with pytest.raises(SummaryError) as caught:
            writer.summarize(REQUEST)
        assert (caught.value.code, caught.value.path) == ("cache_failed", str(tmp_path / name))
        assert "move it away" in caught.value.detail
    assert asked.times == 0


def test_a_folder_in_the_place_of_the_log_is_told(cache: SummaryCache, tmp_path: Path) -> None:
    cache.check()
    cache.close()
    (tmp_path / "cache.sqlite-wal").mkdir()
    with pytest.raises(StoreError, match="its -wal and -shm beside it") as caught:
        cache.check()
    assert caught.value.path == str(cache.path)


@needs_permissions
@pytest.mark.parametrize("name", ["cache.sqlite", "cache.lock"])
def test_a_cache_that_cannot_be_read_is_told_with_its_path(cache: SummaryCache, tmp_path: Path, name: str) -> None:
    cache.check()
    cache.close()
    (tmp_path / name).chmod(0)
    with bound_by_permissions(), pytest.raises(StoreError, match="can be read and written") as caught:
        cache.check()
    assert caught.value.path == str(tmp_path / name)
