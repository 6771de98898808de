"""Damaged files: every problem is reported at its position, everything else is read, and no file is changed."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
import zstandard

import foldline as fl
from faults.permissions import bound_by_permissions, needs_permissions
from foldline import _core
from foldline.errors import MessageError
from foldline.reading import _chunks, _values

MESSAGES = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}]


def talk(id: Any, **more: Any) -> bytes:
    """A conversation as a line, newline included."""
    return json.dumps({"id": id, "messages": MESSAGES, **more}).encode() + b"\n"


A, B, C = talk("a"), talk("b"), talk("c")


class Reader:
    """Reads files of a folder, and checks that they are unchanged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[fl.Problem] = []

    def put(self, data: bytes, name: str = "file.jsonl") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def state(self) -> dict[str, tuple[bytes, int]]:
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    def path(self, path: Path, **options: Any) -> list[fl.StoredTranscript]:
        before = self.state()
        try:
            return list(fl.read(path, on_problem=self.problems.append, **options))
        finally:
            assert self.state() == before

    def bytes(self, data: bytes, name: str = "file.jsonl", **options: Any) -> list[str]:
        """Ids of the transcripts read."""
        return [each.id for each in self.path(self.put(data, name), **options)]

    def found(self) -> list[tuple[str, int | None, int | None]]:
        """Problems as (code, line, offset)."""
        return [(each.code, each.line, each.offset) for each in self.problems]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def size(*parts: bytes) -> int:
    """The number of bytes before a marker."""
    return sum(map(len, parts))


# --- Lines: (name, bytes, ids, problems) -------------------------------------------------------------

NUL = b"\x00" * 4096
TORN = B[:-20]
DIGITS = b'{"id": "big", "messages": [{"role": "user", "content": "x", "n": ' + b"9" * 5_000 + b"}]}\n"
DEEP = b'{"id": "deep", "messages": [{"role": "user", "content": "x", "n": ' + b"[" * 5_000
SHUT = b"]" * 5_000 + b"}]}\n"
NOT_UTF8 = b'{"id": "x", "messages": [{"role": "user", "content": "\xff"}]}\n'

Found = list[tuple[str, int | None, int | None]]
LINES: list[tuple[str, bytes, list[str], Found]] = [
    ("torn last line", A + TORN, ["a"], [("torn_line", 2, size(A, TORN))]),
    ("torn in a key", A + b'{"i', ["a"], [("torn_line", 2, size(A) + 3)]),
    ("torn after a bracket", A + b"{", ["a"], [("torn_line", 2, size(A) + 1)]),
    ("torn in the middle", A + TORN + b"\n" + C, ["a", "c"], [("bad_json", 2, size(A, TORN))]),
    ("last line without a newline", A + B[:-1], ["a", "b"], []),
    ("two glued", A[:-1] + B + C, ["a", "b", "c"], [("glued_values", 1, size(A) - 1)]),
    ("three glued", A[:-1] + B[:-1] + C, ["a", "b", "c"], [("glued_values", 1, size(A) - 1)]),
    ("glued with a blank", A[:-1] + b" " + B, ["a", "b"], [("glued_values", 1, size(A))]),
    ("glued to a torn one", A[:-1] + TORN + b"\n" + C, ["a", "c"], [("bad_json", 1, size(A) - 1 + size(TORN))]),
    ("a comma behind", A[:-1] + b",\n" + B, ["a", "b"], [("bad_json", 1, size(A) - 1)]),
    ("no JSON between", A + b"{oops}\n" + B, ["a", "b"], [("bad_json", 2, size(A) + 1)]),
    ("no JSON first", b"{oops}\n" + A + B, ["a", "b"], [("bad_json", 1, 1)]),
    ("words between", A + b"hello\n" + B, ["a", "b"], [("bad_json", 2, size(A))]),
    ("byte order mark", b"\xef\xbb\xbf" + A + B, ["a", "b"], []),
    ("CRLF", (A + B).replace(b"\n", b"\r\n"), ["a", "b"], []),
    ("blank lines", b"\n \n" + A + b"\r\n\t\n" + B + b"\n\n", ["a", "b"], []),
    ("NUL run before", NUL + A + B, ["a", "b"], [("nul_bytes", 1, 0)]),
    ("NUL run behind", A + B[:-1] + NUL, ["a", "b"], [("nul_bytes", 2, size(A, B) - 1)]),
    ("NUL run between", A + NUL + B + C, ["a", "b", "c"], [("nul_bytes", 2, size(A))]),
    ("NUL run as a line", A + NUL + b"\n" + B, ["a", "b"], [("nul_bytes", 2, size(A))]),
    ("NUL run at the end", A + NUL, ["a"], [("nul_bytes", 2, size(A))]),
    ("not UTF-8", A + NOT_UTF8 + B, ["a", "b"], [("bad_utf8", 2, size(A) + NOT_UTF8.index(b"\xff"))]),
    ("bytes of a picture", A + b"\x89PNG\x1a\xff\n" + B, ["a", "b"], [("bad_utf8", 2, size(A))]),
    ("surrogates in UTF-8", A + b'"\xed\xa0\xbd"\n' + B, ["a", "b"], [("bad_utf8", 2, size(A) + 1)]),
    ("nesting without end", A + DEEP + SHUT + B, ["a", "b"], [("nesting_too_deep", 2, None)]),
    ("nesting without end, torn", A + DEEP + b"\n" + B, ["a", "b"], [("nesting_too_deep", 2, None)]),
    ("5,000 digits", A + DIGITS + B, ["a", "b"], [("bad_json", 2, None)]),
    ("half a surrogate pair", A + talk("s", v="\ud83d") + B, ["a", "s", "b"], []),
    ("not a number", A + talk("n", v=float("nan"), w=float("-inf")) + B, ["a", "n", "b"], []),
    ("another kind of value", A + b"17\n" + B, ["a", "b"], [("unknown_record", 2, size(A))]),
    ("no conversation", A + b'{"a": 1}\n' + B, ["a", "b"], [("unknown_record", 2, size(A))]),
    ("the same id twice", A + B + A, ["a", "b", "a"], []),
    ("a control sign in a text", A + b'{"id": "\x01"}\n' + B, ["a", "b"], [("bad_json", 2, None)]),
]
each_line = pytest.mark.parametrize(("data", "ids", "found"), [case[1:] for case in LINES], ids=[c[0] for c in LINES])


def same(found: Found, expected: Found) -> bool:
    """Equal, if an offset is given."""
    cut = [(code, line, None if want[2] is None else at) for (code, line, at), want in zip(found, expected)]
    return len(found) == len(expected) and cut == expected


@each_line
@pytest.mark.parametrize("name", ["file.jsonl", "file.json", "file"])
def test_a_bad_line_is_reported_and_the_rest_is_read(
    reader: Reader, data: bytes, ids: list[str], found: Found, name: str
) -> None:
    assert reader.bytes(data, name) == ids
    assert same(reader.found(), found)
    assert all(each.path == str(reader.folder / name) for each in reader.problems)


@each_line
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 4096])
def test_chunk_boundaries_make_no_difference(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, data: bytes, ids: list[str], found: Found, chunk: int
) -> None:
    monkeypatch.setattr(_chunks, "_CHUNK_BYTES", chunk)
    assert reader.bytes(data) == ids
    assert same(reader.found(), found)


@each_line
def test_compressed_lines_are_reported_the_same(reader: Reader, data: bytes, ids: list[str], found: Found) -> None:
    assert reader.bytes(gzip.compress(data, mtime=0)) == ids
    assert same(reader.found(), found)


@each_line
def test_strict_stops_with_the_problem(reader: Reader, data: bytes, ids: list[str], found: Found) -> None:
    if not found:
        assert reader.bytes(data, strict=True) == ids
        return
    with pytest.raises(MessageError) as caught:
        reader.bytes(data, strict=True)
    assert caught.value.code == found[0][0]
    assert same(reader.found(), found[:1])


@each_line
def test_without_a_problem_callback_the_rest_is_read_silently(
    reader: Reader, capsys: pytest.CaptureFixture[str], data: bytes, ids: list[str], found: Found
) -> None:
    assert [each.id for each in fl.read(reader.put(data))] == ids
    assert capsys.readouterr() == ("", "")


@each_line
def test_no_problem_contains_content(reader: Reader, data: bytes, ids: list[str], found: Found) -> None:
    secret = data.replace(b"Go.", b"S3CR3T").replace(b"hello", b"S3CR3T")
    reader.bytes(secret)
    assert all("S3CR3T" not in str(each) + repr(each) for each in reader.problems)


def test_every_problem_is_reported(reader: Reader) -> None:
    data = A + b"{oops}\n" + NUL + B + NOT_UTF8 + C[:-1] + A + b"17\n" + b'{"x'
    assert reader.bytes(data) == ["a", "b", "c", "a"]
    codes = {(each.code, each.line) for each in reader.problems}
    assert codes == {
        ("bad_json", 2),
        ("nul_bytes", 3),
        ("bad_utf8", 4),
        ("glued_values", 5),
        ("unknown_record", 6),
        ("torn_line", 7),
    }


def test_many_bad_lines_are_all_reported(reader: Reader) -> None:
    assert reader.bytes(A + b"{oops}\n" * 900 + B) == ["a", "b"]
    assert [each.line for each in reader.problems] == list(range(2, 902))


def test_an_exception_of_the_problem_callback_propagates_unchanged(reader: Reader) -> None:
    error = LookupError("mine")

    def listen(problem: fl.Problem) -> None:
        raise error

    with pytest.raises(LookupError) as caught:
        list(fl.read(reader.put(A + b"{oops}\n" + B), on_problem=listen))
    assert caught.value is error


# --- Long lines --------------------------------------------------------------------------------------


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> int:
    """Lines of more than 500 bytes are too long."""
    scanner = _core.LineScanner
    monkeypatch.setattr(_core, "LineScanner", lambda: scanner(500))
    return 500


def line_of(length: int) -> bytes:
    """A conversation of `length` bytes, excluding the newline."""
    empty = len(talk("long", pad="")) - 1
    return talk("long", pad="x" * (length - empty))


@pytest.mark.parametrize("chunk", [1, 100, 499, 500, 501, 1 << 20])
def test_a_line_at_the_limit_is_read_and_one_byte_more_is_skipped(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, short_lines: int, chunk: int
) -> None:
    monkeypatch.setattr(_chunks, "_CHUNK_BYTES", chunk)
    assert reader.bytes(A + line_of(short_lines) + B) == ["a", "long", "b"]
    assert reader.problems == []
    assert reader.bytes(A + line_of(short_lines + 1) + B) == ["a", "b"]
    assert reader.found() == [("line_too_long", 2, size(A))]


@pytest.mark.parametrize("chunk", [100, 1 << 20])
@pytest.mark.parametrize("newline", [b"\n", b""])
def test_reading_continues_at_the_next_newline(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, short_lines: int, chunk: int, newline: bytes
) -> None:
    monkeypatch.setattr(_chunks, "_CHUNK_BYTES", chunk)
    long = line_of(10_000)
    data = A + long + B + long + long + C + long[:-1] + newline
    assert reader.bytes(data) == ["a", "b", "c"]
    places = [size(A), size(A, long, B), size(A, long, B, long), size(A, long, B, long, long, C)]
    assert reader.found() == [("line_too_long", line, at) for line, at in zip((2, 4, 5, 7), places)]


def test_a_long_first_line_is_skipped(reader: Reader, short_lines: int) -> None:
    assert reader.bytes(line_of(2_000) + A) == ["a"]
    assert reader.found() == [("line_too_long", 1, 0)]


def test_the_limit_is_far_above_real_lines(reader: Reader) -> None:
    assert reader.bytes(A + line_of(20_000_000) + B) == ["a", "long", "b"]
    assert reader.problems == []


# --- Whole documents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["file.jsonl", "file.json"])
@pytest.mark.parametrize("indent", [1, 2, 4, "\t"])
def test_an_indented_document_under_any_name_is_read(reader: Reader, name: str, indent: Any) -> None:
    document = json.dumps([{"id": key, "messages": MESSAGES} for key in "abc"], indent=indent).encode()
    assert reader.bytes(document, name) == ["a", "b", "c"]
    assert reader.bytes(b"\xef\xbb\xbf\r\n" + document.replace(b"\n", b"\r\n") + b"\r\n\r\n", name) == ["a", "b", "c"]
    assert reader.problems == []


def test_an_indented_document_reports_its_start(reader: Reader) -> None:
    document = b"\n\n" + json.dumps({"messages": MESSAGES}, indent=1).encode()
    (transcript,) = reader.path(reader.put(document))
    assert transcript.meta["line"] == 3


def test_a_truncated_indented_document_is_reported(reader: Reader) -> None:
    document = json.dumps({"messages": MESSAGES}, indent=1).encode()
    for length in range(5, len(document) - 1, 7):
        reader.problems.clear()
        assert reader.bytes(document[:length]) == []
        assert len(reader.problems) == 1


def test_a_document_larger_than_the_limit_is_reported(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.dumps({"messages": MESSAGES * 100}, indent=1).encode()
    monkeypatch.setattr(_chunks, "_CHUNK_BYTES", 64)
    monkeypatch.setattr(_values, "MAX_DOCUMENT_BYTES", len(document))
    assert reader.bytes(document) == ["file:0"]
    assert reader.problems == []
    monkeypatch.setattr(_values, "MAX_DOCUMENT_BYTES", len(document) - 1)
    assert reader.bytes(document) == []
    assert len(reader.problems) == 1


# --- Compression -------------------------------------------------------------------------------------

LARGE = b"".join(talk(str(i), pad=random.Random(i).randbytes(600).hex()) for i in range(4_000))
PACKED = gzip.compress(LARGE, compresslevel=1, mtime=0)


def flipped(data: bytes, at: int) -> bytes:
    """One byte changed."""
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


BROKEN = [
    ("cut off", PACKED[: len(PACKED) * 3 // 4]),
    ("cut off in the checksum", PACKED[:-3]),
    ("a wrong checksum", flipped(PACKED, len(PACKED) - 6)),
    ("a wrong byte", flipped(PACKED, len(PACKED) * 3 // 4)),
    ("junk behind", PACKED + b"junk"),
    ("a broken second member", PACKED + PACKED[: len(PACKED) // 2]),
]


@pytest.mark.parametrize("data", [case[1] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_the_start_of_a_broken_archive_is_read(reader: Reader, data: bytes) -> None:
    ids = reader.bytes(data, "file.jsonl.gz")
    assert ids[:1_000] == [str(i) for i in range(1_000)]
    assert [each.code for each in reader.problems].count("corrupt_compression") == 1


@pytest.mark.parametrize("lost", [1, 4, 8, 9, 100, 1_000])
def test_the_start_of_a_small_broken_archive_is_read(reader: Reader, lost: int) -> None:
    data = b"".join(talk(str(i), pad=random.Random(i).randbytes(60).hex()) for i in range(50))
    ids = reader.bytes(gzip.compress(data)[:-lost], "file.jsonl.gz")
    assert len(ids) > 30
    assert ids == [str(i) for i in range(len(ids))]
    assert "corrupt_compression" in [each.code for each in reader.problems]


def zstd_files() -> dict[str, tuple[bytes, set[int]]]:
    """Files of zstd, and the lengths at which they end with a frame."""
    talks = b"".join(talk(str(i), pad=random.Random(i).randbytes(90).hex()) for i in range(4))

    def in_blocks(**options: Any) -> bytes:
        packer = zstandard.ZstdCompressor(**options).compressobj()
        blocks = [packer.compress(talks) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for _ in range(3)]
        return b"".join(blocks) + packer.flush()

    plain, summed = (zstandard.ZstdCompressor(write_checksum=each).compress(talks) for each in (False, True))
    repeated = zstandard.ZstdCompressor(write_content_size=False).compress(b" " * 10_000)
    skippable = b"\x53\x2a\x4d\x18\x05\0\0\0other"
    ends = [len(plain), len(plain + skippable), len(plain + skippable + summed)]
    return {
        "one frame": (plain, {len(plain)}),
        "a checksum": (summed, {len(summed)}),
        "blocks": (in_blocks(), {len(in_blocks())}),
        "blocks and a checksum": (in_blocks(write_checksum=True), {len(in_blocks(write_checksum=True))}),
        "a repeated byte": (repeated, {len(repeated)}),
        "noise": (noise := zstandard.ZstdCompressor().compress(random.Random(1).randbytes(900)), {len(noise)}),
        "frames": (plain + skippable + summed, set(ends)),
    }


@pytest.mark.parametrize("name", zstd_files())
def test_a_zstd_file_that_is_cut_off_anywhere_is_a_problem(name: str) -> None:
    data, ends = zstd_files()[name]

    def codes(data: bytes) -> list[str]:
        found: list[str] = []
        for _ in _chunks.decompressed(io.BytesIO(data), lambda code, *_, **__: found.append(code)):
            pass
        return found

    for length in range(5, len(data) + 1):
        assert codes(data[:length]) == ([] if length in ends else ["corrupt_compression"]), length


@pytest.mark.parametrize(
    "data", [b"\x1f\x8b", b"\x1f\x8b\x08\x00", PACKED[:10], b"\x1f\x8b" + b"\xff" * 90, gzip.compress(b"", mtime=0)]
)
def test_an_empty_archive_is_one_problem(reader: Reader, data: bytes) -> None:
    assert reader.bytes(data) == []
    assert [each.code for each in reader.problems] in (["corrupt_compression"], ["no_transcript"])


def test_a_nested_archive_is_not_opened(reader: Reader) -> None:
    assert reader.bytes(gzip.compress(gzip.compress(A), mtime=0)) == []
    assert len(reader.problems) == 1


def test_a_small_archive_with_large_content_is_read_in_pieces(reader: Reader) -> None:
    bomb = gzip.compress(A + b" " * 60_000_000 + b"\n" + B, mtime=0)
    assert len(bomb) < 100_000
    assert reader.bytes(bomb) == ["a", "b"]


# --- Files without readable content ------------------------------------------------------------------

UNREADABLE = [
    ("empty", b""),
    ("newlines", b"\n\n\r\n"),
    ("a byte order mark", b"\xef\xbb\xbf"),
    ("NUL bytes", NUL),
    ("random bytes", random.Random(1).randbytes(20_000)),
    ("UTF-16", (A + B).decode().encode("utf-16")),
    ("UTF-16, big-endian", (A + B).decode().encode("utf-16-be")),
    ("UTF-32", A.decode().encode("utf-32")),
    ("EBCDIC", A.decode().encode("cp500")),
    ("prose", b"Dear all,\nthis is no transcript.\n"),
    ("CSV", b"role,content\nuser,hi\n"),
    ("XML", b"<xml><a/></xml>\n"),
    ("YAML", b"- role: user\n  content: hi\n"),
    ("a zip", b"PK\x03\x04" + b"\x00" * 60),
    ("SQLite", b"SQLite format 3\x00" + b"\x10\x00" * 300),
    ("nesting alone", b"[" * 100_000),
    ("one long digit", b"9" * 100_000),
    ("one quote", b'"'),
    ("a lone brace", b"}"),
]


@pytest.mark.parametrize("data", [case[1] for case in UNREADABLE], ids=[case[0] for case in UNREADABLE])
def test_a_file_without_readable_content_is_one_problem(reader: Reader, data: bytes) -> None:
    assert reader.bytes(data) == []
    assert len(reader.problems) == 1
    assert reader.problems[0].path == str(reader.folder / "file.jsonl")


@pytest.mark.parametrize("data", [case[1] for case in UNREADABLE], ids=[case[0] for case in UNREADABLE])
def test_a_file_without_readable_content_does_not_stop_a_folder(reader: Reader, data: bytes) -> None:
    reader.put(A, "1.jsonl")
    reader.put(data, "2.jsonl")
    reader.put(B, "3.jsonl")
    assert [each.id for each in reader.path(reader.folder)] == ["a", "b"]
    assert [each.path for each in reader.problems] == [str(reader.folder / "2.jsonl")]


def test_of_many_problems_the_most_informative_is_reported(reader: Reader) -> None:
    assert reader.bytes(b'{oops}\n{"messages": [{"type": "user", "content": "hi"}]}\n') == []
    assert [each.code for each in reader.problems] == ["unsupported_format"]


def test_any_bytes_give_transcripts_or_problems(reader: Reader) -> None:
    rng = random.Random(7)
    good = A + B + json.dumps(MESSAGES, indent=1).encode() + NUL + C
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data))
            how = rng.random()
            if how < 0.4:
                data[at] = rng.randrange(256)
            elif how < 0.6:
                del data[at : at + rng.randint(1, 40)]
            elif how < 0.8:
                data[at:at] = rng.choice([b"\n", b"{", b"]", b'"', b"\\", b"\x00", b"\xff", b"}{", b"\\ud800"])
            else:
                data = data[: at + 1]
        for each in reader.path(reader.put(bytes(data))):
            assert isinstance(each, fl.StoredTranscript)
            assert isinstance(each.messages, list)
    assert all(isinstance(each, fl.Problem) for each in reader.problems)


# --- Sessions ----------------------------------------------------------------------------------------


def entry(uuid: Any, **more: Any) -> dict[str, Any]:
    """A user line of a Claude Code session."""
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": str(uuid)}, **more}


SESSIONS: list[tuple[str, list[Any], list[str], list[tuple[str, int]]]] = [
    ("a repeated entry", [entry("1"), entry("2"), entry("1")], ["1", "2"], [("repeated_entry", 3)]),
    ("parents in a circle", [entry("1", parentUuid="2"), entry("2", parentUuid="1")], ["1", "2"], []),
    ("its own parent", [entry("1", parentUuid="1")], ["1"], []),
    ("a missing parent", [entry("1"), entry("2", parentUuid="gone")], ["1", "2"], []),
    ("parents of a wrong type", [entry("1", parentUuid=5), entry("2", parentUuid=[{}])], ["1", "2"], []),
    ("ids of a wrong type", [entry(5), entry(5), entry(None)], ["5", "5", "None"], []),
    ("a session id of a wrong type", [entry("1", sessionId=5)], ["1"], []),
    ("content null", [entry("1"), entry("2", message={"role": "user", "content": None})], ["1", None], []),
    ("a system entry without a message", [entry("1"), {"type": "system", "uuid": "x"}], ["1"], []),
]


@pytest.mark.parametrize(
    ("entries", "contents", "found"), [case[1:] for case in SESSIONS], ids=[case[0] for case in SESSIONS]
)
def test_entries_of_any_kind_are_read(
    reader: Reader, entries: list[Any], contents: list[Any], found: list[tuple[str, int]]
) -> None:
    data = b"".join(json.dumps(each).encode() + b"\n" for each in entries)
    (transcript,) = reader.path(reader.put(data))
    assert [each["content"] for each in transcript.messages] == contents
    assert [(each.code, each.line) for each in reader.problems] == found


def test_line_numbers_of_problems_include_blank_and_bad_lines(reader: Reader) -> None:
    parts = [json.dumps(each).encode() for each in (entry("1"), entry("2"), entry("1"))]
    data = b"\n" + parts[0] + b"\n\n{oops}\n" + parts[1] + b"\n" + parts[2] + b"\n"
    (transcript,) = reader.path(reader.put(data))
    assert len(transcript.messages) == 2
    assert {(each.code, each.line) for each in reader.problems} == {("bad_json", 4), ("repeated_entry", 6)}


def test_a_torn_session_keeps_its_complete_lines(reader: Reader) -> None:
    data = b"".join(json.dumps(entry(str(i))).encode() + b"\n" for i in range(5))
    (transcript,) = reader.path(reader.put(data[:-9]))
    assert len(transcript.messages) == 4
    assert [each.code for each in reader.problems] == ["torn_line"]


def test_pi_entries_of_any_kind_are_read(reader: Reader) -> None:
    values: list[Any] = [
        {"type": "session", "id": 5},
        {"type": "message", "id": "1", "parentId": "1", "message": MESSAGES[0]},
        {"type": "message", "id": "1", "parentId": "gone", "message": MESSAGES[1]},
        {"type": "compaction"},
        {"type": "message", "id": ["x"], "message": MESSAGES[0]},
    ]
    (transcript,) = reader.path(reader.put(b"".join(json.dumps(each).encode() + b"\n" for each in values)))
    assert transcript.messages == [*MESSAGES, MESSAGES[0]]
    assert transcript.meta["entry_ids"] == [["1"], ["1"], []]
    assert reader.problems == []


# --- Folders and file systems ------------------------------------------------------------------------


@pytest.fixture
def folder(reader: Reader) -> Path:
    """Three files."""
    for name, data in (("1.jsonl", A), ("2.jsonl", B), ("3.jsonl", C)):
        reader.put(data, name)
    return reader.folder


def ids(transcripts: list[fl.StoredTranscript]) -> list[str]:
    return [each.id for each in transcripts]


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError, IsADirectoryError, OSError, TimeoutError])
def test_a_file_that_cannot_be_opened_does_not_stop_a_folder(
    reader: Reader, folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    real = Path.open

    def fail(self: Path, *arguments: Any, **options: Any) -> Any:
        if self.name == "2.jsonl":
            raise error(f"no {self}")
        return real(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", fail)
        found = list(fl.read(folder, on_problem=reader.problems.append))
        with pytest.raises(error):
            list(fl.read(folder / "2.jsonl"))
    assert ids(found) == ["a", "c"]
    assert [(each.code, each.path) for each in reader.problems] == [("unreadable_file", str(folder / "2.jsonl"))]
    assert reader.problems[0].detail == error.__name__


class Failing(io.RawIOBase):
    """A file whose disk fails after some bytes."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self.left:
            raise OSError(5, "Input/output error")
        piece, self.left = self.left[:size], self.left[size:]
        return piece


def test_a_disk_that_fails_in_the_middle_does_not_stop_a_folder(
    reader: Reader, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def fail(self: Path, *arguments: Any, **options: Any) -> IO[Any]:
        return Failing(B + C[:9]) if self.name == "2.jsonl" else real(self, *arguments, **options)  # type: ignore[return-value]

    monkeypatch.setattr(Path, "open", fail)
    assert ids(list(fl.read(folder, on_problem=reader.problems.append))) == ["a", "b", "c"]
    assert [each.code for each in reader.problems] == ["unreadable_file"]


@needs_permissions
def test_a_file_without_permission_does_not_stop_a_folder(reader: Reader, folder: Path) -> None:
    (folder / "2.jsonl").chmod(0)
    with bound_by_permissions():
        assert ids(list(fl.read(folder, on_problem=reader.problems.append))) == ["a", "c"]
    assert [each.code for each in reader.problems] == ["unreadable_file"]
    (folder / "2.jsonl").chmod(0o600)


def test_a_file_deleted_before_its_turn_is_reported(reader: Reader, folder: Path) -> None:
    reading_ = fl.read(folder, on_problem=reader.problems.append)
    assert next(reading_).id == "a"
    (folder / "2.jsonl").unlink()
    assert [each.id for each in reading_] == ["c"]
    assert [(each.code, each.path) for each in reader.problems] == [("unreadable_file", str(folder / "2.jsonl"))]


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")
def test_a_file_deleted_while_it_is_read_is_read_to_its_end(reader: Reader) -> None:
    path = reader.put(b"".join(talk(str(i), pad="x" * 5_000) for i in range(600)))
    reading_ = fl.read(path, on_problem=reader.problems.append)
    assert next(reading_).id == "0"
    path.unlink()
    assert [each.id for each in reading_] == [str(i) for i in range(1, 600)]
    assert reader.problems == []


def test_a_file_that_grows_while_it_is_read_gives_whole_lines_or_a_torn_one(reader: Reader) -> None:
    path = reader.put(b"".join(talk(str(i), pad="x" * 5_000) for i in range(600)))
    reading_ = fl.read(path, on_problem=reader.problems.append)
    first = next(reading_)
    with path.open("ab") as stream:
        stream.write(A + TORN)
    found = [first.id, *(each.id for each in reading_)]
    assert found[:600] == [str(i) for i in range(600)]
    assert found[600:] in ([], ["a"])
    assert [each.code for each in reader.problems] in ([], ["torn_line"])


def symlink(target: Path, link: Path) -> None:
    try:
        link.symlink_to(target)
    except (OSError, NotImplementedError):
        pytest.skip("no symbolic links here")


def test_a_link_to_a_parent_folder_is_not_a_loop(reader: Reader, folder: Path) -> None:
    (folder / "deep").mkdir()
    symlink(folder, folder / "deep" / "up")
    symlink(folder / "deep", folder / "self")
    assert ids(list(fl.read(folder, on_problem=reader.problems.append))) == ["a", "b", "c"]
    assert reader.problems == []


def test_circular_links_are_skipped(reader: Reader, folder: Path) -> None:
    symlink(folder / "y", folder / "x")
    symlink(folder / "x", folder / "y")
    symlink(folder / "nothing", folder / "broken")
    assert ids(list(fl.read(folder, on_problem=reader.problems.append))) == ["a", "b", "c"]
    with pytest.raises(OSError, match="x"):
        list(fl.read(folder / "x"))


def test_a_link_to_a_file_is_read_as_that_file(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("other") / "real.jsonl"
    target.write_bytes(A)
    symlink(target, reader.folder / "link.jsonl")
    assert ids(list(fl.read(reader.folder))) == ids(list(fl.read(reader.folder / "link.jsonl"))) == ["a"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_in_a_folder_does_not_block(reader: Reader, folder: Path) -> None:
    os.mkfifo(folder / "1a.pipe")
    assert ids(list(fl.read(folder, on_problem=reader.problems.append))) == ["a", "b", "c"]
    assert reader.problems == []


@pytest.mark.parametrize("name", ["ein Name mit Blank.jsonl", "對話.jsonl", "🙂", "a;rm -rf *", "-", "--help", "a\nb"])
def test_a_file_of_any_name_is_read(reader: Reader, name: str) -> None:
    try:
        reader.put(A, name)
    except OSError:
        pytest.skip("no such name here")
    assert ids(reader.path(reader.folder)) == ids(reader.path(reader.folder / name)) == ["a"]


def test_an_empty_folder_with_empty_folders_gives_no_transcript(reader: Reader) -> None:
    (reader.folder / "a" / "b").mkdir(parents=True)
    assert reader.path(reader.folder) == []
    assert reader.problems == []


def test_strict_stops_a_folder_at_the_first_bad_file(reader: Reader, folder: Path) -> None:
    reader.put(b"{oops}\n" + B, "2.jsonl")
    reading_ = fl.read(folder, strict=True)
    assert next(reading_).id == "a"
    with pytest.raises(MessageError):
        next(reading_)
    assert list(reading_) == []


@pytest.fixture
def open_files(monkeypatch: pytest.MonkeyPatch) -> list[IO[Any]]:
    """The files opened through `Path.open`."""
    opened: list[IO[Any]] = []
    real = Path.open

    def remember(self: Path, *arguments: Any, **options: Any) -> IO[Any]:
        stream = real(self, *arguments, **options)
        opened.append(stream)
        return stream

    monkeypatch.setattr(Path, "open", remember)
    return opened


def finish(transcripts: Any) -> None:
    list(transcripts)


def leave(transcripts: Any) -> None:
    next(transcripts)
    transcripts.close()


def fail(transcripts: Any) -> None:
    with pytest.raises(MessageError):
        list(transcripts)


@pytest.mark.parametrize(("end", "strict"), [(finish, False), (leave, False), (fail, True)])
def test_files_are_closed_however_reading_ends(
    reader: Reader, open_files: list[IO[Any]], end: Callable[[Any], None], strict: bool
) -> None:
    path = reader.put((A + B) * 2_000 + b"{oops}\n")
    end(fl.read(path, strict=strict))
    reads = [stream for stream in open_files if "r" in stream.mode]
    assert reads
    assert all(stream.closed for stream in reads)
