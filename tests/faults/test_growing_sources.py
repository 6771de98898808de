"""Sources that change while they are folded: what was folded is what was hashed, and `--resume` folds the rest."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foldline._cli.progress import Reporter
from foldline.cli import main

#: More than what is read into memory at once.
LARGE = 9 << 20


def line(name: str) -> str:
    return json.dumps({"id": name, "messages": [{"role": "user", "content": f"{name} " + "word " * 3_000}]}) + "\n"


#: Lines before and after the change.
FIRST = [line(f"first-{i}") for i in range(LARGE // 15_000)]
LATER = [line(f"later-{i}") for i in range(15)]
TRIM = ["trim", "--fit", "100000", "--heuristic", "chars/4"]
COMPACT = ["compact", "--heuristic", "chars/4"]


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Does something once, when the first transcript was folded."""

    def set_up(change: Callable[[], object]) -> None:
        advance = Reporter.advance
        waiting = [change]

        def changed(self: Reporter, **counts: Any) -> None:
            if waiting:
                waiting.pop()()
            advance(self, **counts)

        monkeypatch.setattr(Reporter, "advance", changed)

    return set_up


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def ids(path: Path) -> list[str]:
    data = path.read_bytes()
    text = gzip.decompress(data).decode() if path.suffix == ".gz" else data.decode()
    if text.startswith("["):
        return [record["id"] for record in json.loads(text)]
    return [json.loads(each)["id"] for each in text.splitlines()]


def record(out: Path) -> dict[str, Any]:
    (found,) = json.loads((out / ".foldline" / "run.json").read_text())["files"]
    return found


@pytest.mark.parametrize("command", [COMPACT, TRIM], ids=["core", "python"])
@pytest.mark.parametrize("lines", [FIRST, FIRST[:20]], ids=["large", "small"])
@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_a_source_that_grows_is_folded_again(
    tmp_path: Path, changing: Any, command: list[str], lines: list[str], suffix: str
) -> None:
    def packed(text: list[str]) -> bytes:
        data = "".join(text).encode()
        return gzip.compress(data, 0) if suffix.endswith("gz") else data

    source, out = tmp_path / f"in.{suffix}", tmp_path / "out"
    source.write_bytes(packed(lines))
    before = source.read_bytes()
    changing(lambda: append(source, packed(LATER)))
    name, *options = command
    words = [name, str(source), "--out", str(out), *options]
    assert main(words) == 0
    told = record(out)
    assert (told["input_bytes"], told["input_sha256"]) == (len(before), hashlib.sha256(before).hexdigest())
    assert len(ids(out / source.name)) == told["transcripts"] == len(lines)
    assert main([*words, "--resume"]) == 0
    assert ids(out / source.name) == [json.loads(each)["id"] for each in lines + LATER]
    assert record(out)["input_sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert main([name, str(source), "--out", str(tmp_path / "straight"), *options]) == 0
    assert (tmp_path / "straight" / source.name).read_bytes() == (out / source.name).read_bytes()


def test_a_source_that_is_replaced_is_folded_as_it_was_opened_and_then_again(tmp_path: Path, changing: Any) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out"
    source.write_text("".join(FIRST))
    (tmp_path / "new").write_text("".join(LATER))
    changing(lambda: (tmp_path / "new").rename(source))
    assert main(["compact", str(source), "--out", str(out)]) == 0
    assert len(ids(out / "in.jsonl")) == len(FIRST)
    assert main(["compact", str(source), "--out", str(out), "--resume"]) == 0
    assert len(ids(out / "in.jsonl")) == len(LATER)


def test_a_source_that_is_cut_off_is_folded_again(tmp_path: Path, changing: Any) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out"
    source.write_text("".join(FIRST))
    kept = "".join(FIRST[:-5])
    changing(lambda: source.write_text(kept))
    main(["compact", str(source), "--out", str(out)])
    assert main(["compact", str(source), "--out", str(out), "--resume"]) == 0
    assert len(ids(out / "in.jsonl")) == len(FIRST) - 5


def test_a_torn_archive_that_is_completed_meanwhile_is_folded_again(tmp_path: Path, changing: Any) -> None:
    """Its bad end was read, its later bytes were not: they do not count as folded."""
    source, out = tmp_path / "in.jsonl.gz", tmp_path / "out"
    whole = gzip.compress("".join(FIRST).encode(), 0)
    source.write_bytes(whole[:-4_000])
    changing(lambda: append(source, whole[-4_000:]))
    assert main(["compact", str(source), "--out", str(out)]) == 1
    assert main(["compact", str(source), "--out", str(out), "--resume"]) == 0
    assert len(ids(out / "in.jsonl.gz")) == len(FIRST)


def test_an_archive_with_a_corrupt_middle_is_known_by_all_of_its_bytes(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl.gz", tmp_path / "out"
    whole = bytearray(gzip.compress("".join(FIRST).encode(), 0))
    whole[len(whole) // 2 : len(whole) // 2 + 70_000] = b"\xff" * 70_000
    source.write_bytes(whole)
    assert main(["compact", str(source), "--out", str(out)]) == 1
    assert record(out)["input_sha256"] == hashlib.sha256(whole).hexdigest()
    placed = (out / source.name).stat().st_mtime_ns
    assert main(["compact", str(source), "--out", str(out), "--resume"]) == 1  # its problems are known
    assert (out / source.name).stat().st_mtime_ns == placed


@pytest.mark.parametrize("rows", [20, 800], ids=["small", "large"])
def test_a_parquet_file_that_is_rewritten_is_folded_again(tmp_path: Path, changing: Any, rows: int) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    def write(path: Path, names: list[str]) -> None:
        texts = [json.dumps([{"role": "user", "content": f"{name} " + "word " * 3_000}]) for name in names]
        table = pa.table({"id": names, "messages": texts})
        pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=8)

    source, out, new = tmp_path / "in.parquet", tmp_path / "out", tmp_path / "new.parquet"
    write(source, [f"first-{i}" for i in range(rows)])
    write(new, [f"later-{i}" for i in range(rows)])
    assert (source.stat().st_size > 8 << 20) == (rows == 800)
    rewritten = new.read_bytes()
    changing(lambda: source.write_bytes(rewritten))
    main(["compact", str(source), "--out", str(out)])
    assert main(["compact", str(source), "--out", str(out), "--resume"]) == 0
    assert pq.read_table(out / "in.parquet")["id"].to_pylist() == [f"later-{i}" for i in range(rows)]


def test_a_document_is_folded_as_one_list_from_one_reading(tmp_path: Path, changing: Any) -> None:
    source, out = tmp_path / "in.json", tmp_path / "out"
    source.write_text(json.dumps([json.loads(each) for each in FIRST], indent=1))
    changing(lambda: append(source, b"".join(each.encode() for each in LATER)))
    assert main(["compact", str(source), "--out", str(out)]) == 0
    assert (out / "in.json").read_text().startswith("[")
    assert len(ids(out / "in.json")) == len(FIRST)
