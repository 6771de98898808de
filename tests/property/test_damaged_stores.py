"""Stores with damaged bytes and rows: what is damaged is named, the rest is read, the next append destroys nothing.

The count `damaged_stores` says how many stores of each kind are damaged. The oracle is `reference.stores`.
"""

from __future__ import annotations

import random
import secrets
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import foldline as fl
from depth import cases
from foldline.errors import FoldlineError, StoreError
from foldline.stores import JsonlSession, SqlStore, _databases
from reference import stores as reference

CASES: Final = cases("damaged_stores")
MARK: Final = "z9secret" + "q7word"
SESSION: Final = "damaged"


def texts(number: int) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"{MARK} {number} é 漢 \U0001f600 " + "word " * (number % 7)}


def filled(store: Any) -> None:
    """Two compactions, one of them with an edited message, a fold, and messages after them."""
    for first in (0, 8):
        store.extend(texts(number) for number in range(first, first + 8))
        strategy = fl.strategies.Summarize(lambda messages: f"So far {MARK}.", keep_recent=3)
        compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4")
        assert compactor.compact(store.messages(), ids=store.ids()).changed
    store.save_fold("s", '{"covered": 3}')
    store.extend(texts(number) for number in range(16, 20))


@pytest.fixture(scope="module")
def session_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The same bytes in every run, so that a number names its damage."""
    path = tmp_path_factory.mktemp("whole") / "session.jsonl"
    chance = random.Random("session file")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_hex", lambda size: chance.randbytes(size).hex())
        filled(JsonlSession(path, id="s", durability="none", clock=lambda: 1.7e9))
    return path.read_bytes()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "x.db"
    with SqlStore(f"sqlite:///{path}", session=SESSION) as store:
        filled(store)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.read_bytes()


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is synced: no power is cut here."""

    def set_fast(connection: sqlite3.Connection, _: float) -> None:
        connection.execute("PRAGMA synchronous = OFF").close()

    monkeypatch.setattr(_databases, "set_durable", set_fast)


# --- Damage of bytes ----------------------------------------------------------------------------------------


def spoil(data: bytes, at: int, chance: random.Random) -> bytes:
    """One damage at or after a place."""
    size = chance.choice((1, 1, 2, 7, 60))
    kind = chance.randrange(8)
    if kind == 0:  # a bit
        return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
    if kind == 1:  # other bytes
        return data[:at] + chance.randbytes(size) + data[at + size :]
    if kind == 2:  # lost bytes
        return data[:at] + data[at + size :]
    if kind == 3:  # new bytes
        return data[:at] + chance.choice((b"\0", b"\xff", b'"', b"{", b"}", b"\n", b"[" * 300, b"null")) + data[at:]
    if kind == 4:  # a run of zeros, as after a power cut
        return data[:at] + b"\0" * len(data[at : at + size]) + data[at + size :]
    if kind == 5:  # bytes from another place
        other = chance.randrange(len(data))
        return data[:at] + data[other : other + size] + data[at + size :]
    if kind == 6:  # a torn end
        return data[: max(at, len(data) - size)]
    return data[:at] + data[at : at + size] * 2 + data[at + size :]  # repeated bytes


def without_content(error: BaseException) -> None:
    assert MARK not in "".join(traceback.format_exception_only(error))


@pytest.mark.timeout(max(300, CASES))
def test_damaged_session_files(session_file: bytes, tmp_path: Path) -> None:
    begin = session_file.index(b"\n") + 1
    whole = {line: number for number, line in enumerate(session_file.split(b"\n")) if line}
    named = refused = 0
    for number in range(CASES):
        chance = random.Random(f"session files {number}")
        data = session_file
        for _ in range(chance.choice((1, 1, 2, 5))):
            data = spoil(data, chance.randrange(0 if number % 20 == 0 else begin, len(data)), chance)
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(data)
        try:
            store = JsonlSession(path, durability="none")
        except StoreError as error:
            code = error.code
        else:
            code = ""
        if code:  # only a file without a header is not recognised, and it is left as it is
            assert code == "not_a_session", number
            assert not data.startswith(session_file[:begin]), number
            assert path.read_bytes() == data, number
            refused += 1
            continue
        entries, problems = store.entries, store.problems
        # Whatever is damaged is named.
        lines = {problem.line for problem in problems}
        damaged = reference.damaged_lines(data)
        assert damaged <= lines, (number, damaged - lines)
        named += len(damaged)
        assert all(MARK not in str(problem) for problem in problems)
        # Whatever is not damaged is read, as it was written.
        read = {entry.line: entry for entry in entries}
        for at, line in enumerate(data.split(b"\n"), 1):
            if line in whole and whole[line] and (at not in lines or at in read):
                assert read[at].value == reference.value_of(line), number
        assert {at for at, line in enumerate(data.split(b"\n"), 1) if whole.get(line)} <= set(read), number
        for leaf in (*store.leaves(), None):
            assert [each.message for each in store.active(leaf)] == store.messages(leaf)
            store.restore(leaf)
            store.compacted_ids(leaf)
        store.check()
        store.load_folds("s", 5)
        # The next append destroys nothing, and can be read.
        before = store.messages()
        identity = store.append({"role": "user", "content": "next"})
        after = path.read_bytes()
        assert after.startswith(data), number
        again = JsonlSession(path, durability="none")
        assert again.messages() == store.messages() == [*before, {"role": "user", "content": "next"}], number
        assert again.leaf == identity, number
        assert set(again.problems) >= {problem for problem in problems if problem.code != "torn_line"}, number
        path.unlink()
    print(f"{CASES} session files, {named} damaged lines named, {refused} refused as no session")
    assert named > CASES // 4


# --- Damage of rows -----------------------------------------------------------------------------------------

#: Values of every type, and texts that are no message.
VALUES: Final[tuple[Callable[[random.Random], Any], ...]] = (
    lambda chance: chance.randbytes(chance.choice((0, 1, 9))),
    lambda chance: "",
    lambda chance: MARK,
    lambda chance: "[" * chance.choice((1, 200, 5000)),
    lambda chance: '{"role":"user"}{"role":"user"}',
    lambda chance: '{"role":"user","content":' + "[" * 150 + "]" * 150 + "}",
    lambda chance: chance.choice(
        ("null", "7", "[]", "{}", '"x"', "NaN", "1e999", "[[]]", '{"role":7}', '{"content":"x"}')
    ),
    lambda chance: chance.choice((-5, 0, 3.5, 2**53, 2**63 - 1, -(2**63), 1e300, -0.5)),
    lambda chance: "a\x01b",
    lambda chance: "x" * 300,
)

#: Columns to damage. The name of a session, and the number of a context's compaction, only lead to another place.
COLUMNS: Final = (
    *(("messages", "message"),) * 4,
    *(("contexts", "message"),) * 2,
    ("messages", "id"),
    ("messages", "seq"),
    ("contexts", "message_id"),
    ("contexts", "position"),
    ("compactions", "event"),
    ("compactions", "seq"),
    ("compactions", "round"),
    ("marks", "message_id"),
    ("folds", "fold"),
    ("sessions", "next_seq"),
    ("sessions", "round"),
)


def spoil_rows(place: Path, chance: random.Random) -> None:
    """Damages values of a database. A change that a constraint forbids is left out."""
    with sqlite3.connect(place, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        for _ in range(chance.choice((1, 1, 2, 6))):
            table, column = chance.choice(COLUMNS)
            found = connection.execute(f"SELECT rowid, CAST({column} AS BLOB) FROM foldline_{table}").fetchall()
            rowid, old = chance.choice(found)
            value: Any = chance.choice(VALUES)(chance)
            is_text = chance.random() < 0.5 and isinstance(old, bytes) and old
            if is_text:  # other bytes in its text, perhaps no UTF-8
                value = spoil(old, chance.randrange(len(old)), chance)
            try:
                new = "CAST(? AS TEXT)" if is_text else "?"
                connection.execute(f"UPDATE foldline_{table} SET {column} = {new} WHERE rowid = ?", (value, rowid))
            except (sqlite3.IntegrityError, OverflowError):
                continue
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def agree(store: SqlStore, expected: reference.Session, number: int) -> None:
    """What a store reads, and names, is what the oracle reads and names."""
    assert [(each.id, each.message) for each in store.history()] == expected.history, number
    assert [(each.id, each.message) for each in store.active()] == expected.active, number
    problems = store.problems
    named = {(problem.detail.removeprefix("a row of "), problem.line) for problem in problems}
    assert named == expected.damaged, number
    assert all(problem.path == SESSION and MARK not in str(problem) for problem in problems), number


@pytest.mark.timeout(max(300, CASES))
@pytest.mark.filterwarnings("ignore::foldline.errors.FoldlineWarning")
@pytest.mark.usefixtures("unsynced")
def test_damaged_rows_of_databases(database: bytes, tmp_path: Path) -> None:
    named = 0
    place = tmp_path / "x.db"
    for number in range(CASES):
        chance = random.Random(f"rows {number}")
        place.write_bytes(database)
        spoil_rows(place, chance)
        rows = reference.rows_of(str(place), SESSION)
        expected = reference.session_of(rows)
        named += len(expected.damaged)
        with SqlStore(f"sqlite:///{place}", session=SESSION) as store:
            agree(store, expected, number)
            store.events()
            store.compacted_ids()
            store.load_folds("s", 5)
            last_round = store.last_round()
            assert store.append({"role": "user", "content": "next"}).startswith("m"), number
            kept_rows(rows, reference.rows_of(str(place), SESSION), number)
            assert store.messages()[-1] == {"role": "user", "content": "next"}, number
            assert len(store.history()) == len(expected.history) + 1, number
            if number % 4 == 0 and last_round < 2**31 - 2:  # and it can be compacted again
                strategy = fl.strategies.Summarize(lambda messages: "Again.", keep_recent=1)
                compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4")
                assert compactor.compact(store.messages(), ids=store.ids()).changed, number
                kept_rows(rows, reference.rows_of(str(place), SESSION), number)
                assert store.messages()[-1] == {"role": "user", "content": "next"}, number
        for left in tmp_path.iterdir():
            left.unlink()
    print(f"{CASES} databases, {named} damaged rows named")
    assert named > CASES // 2


def kept_rows(before: Any, after: Any, number: int) -> None:
    """Every row is as it was; only marks of what is in the context again may be gone, and the session's row changes."""
    for table in ("messages", "compactions", "contexts", "folds"):
        for row in before[table]:
            assert row in after[table], (number, table)


@pytest.mark.timeout(max(300, CASES))
@pytest.mark.filterwarnings("ignore::foldline.errors.FoldlineWarning")
@pytest.mark.usefixtures("unsynced")
def test_damaged_bytes_of_databases(database: bytes, tmp_path: Path) -> None:
    whole = refused = 0
    place = tmp_path / "x.db"
    contents = [at for at in range(len(database)) if database.startswith(b"{", at)]
    for number in range(CASES):
        chance = random.Random(f"bytes of databases {number}")
        data = bytearray(database)
        for _ in range(chance.choice((1, 1, 3))):
            at = chance.choice(contents) + chance.randrange(60) if number % 3 else chance.randrange(len(data))
            for each in range(at, min(len(data), at + chance.choice((1, 1, 4, 40)))):
                data[each] = chance.randrange(256)
        place.write_bytes(data)
        is_sound, rows = sound(place)
        error: FoldlineError | None = None
        try:
            use(place)
        except FoldlineError as raised:
            error = raised
        if error is None:
            whole += is_sound
        else:
            without_content(error)
            assert isinstance(error, StoreError), number
            assert error.code != "unreachable", number
            assert not is_sound, (number, error.code)
            refused += 1
        if is_sound:
            after = reference.rows_of(str(place), SESSION)
            kept_rows(rows, after, number)
            if rows["sessions"]:
                place.write_bytes(data)
                for left in tmp_path.glob("x.db-*"):
                    left.unlink()
                with SqlStore(f"sqlite:///{place}", session=SESSION) as store:
                    agree(store, reference.session_of(rows), number)
        for left in tmp_path.iterdir():
            left.unlink()
    print(f"{CASES} databases, {whole} with sound pages read as the oracle does, {refused} refused")
    assert whole > CASES // 4


def use(place: Path) -> None:
    """Reads everything, and appends."""
    with SqlStore(f"sqlite:///{place}", session=SESSION, lock_timeout_s=1) as store:
        for read in (store.messages, store.restore, store.events, store.compacted_ids, lambda: store.problems):
            read()
        before = store.messages()
        identity = store.append({"role": "user", "content": "next"})
        assert store.messages() == [*before, {"role": "user", "content": "next"}]
        assert store.leaf == identity


def sound(place: Path) -> tuple[bool, dict[str, list[Any]]]:
    """Whether SQLite itself finds nothing wrong with a file, and its rows."""
    try:
        connection = sqlite3.connect(place)
        connection.text_factory = bytes
        try:
            is_sound = connection.execute("PRAGMA integrity_check").fetchall() == [(b"ok",)]
            known = connection.execute("SELECT count(*), min(version) FROM foldline_schema").fetchall()
        finally:
            connection.close()
        return is_sound and known == [(1, 3)], reference.rows_of(str(place), SESSION)
    except (sqlite3.Error, UnicodeDecodeError):  # an error may quote bytes of the file
        return False, {"sessions": []}
