"""Sessions in databases: writes, concurrent writers, errors, older tables, the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import foldline as fl
from foldline.errors import ConfigError, FoldlineError, StoreError
from foldline.stores import AsyncSqlStore, SqlStore
from foldline.stores._schema import VERSION
from foldline.typing import ContextEntry
from unit.samples import CANARY, assistant, nested, talk, user
from unit.services import DATABASES, database_url, postgres_url

VERSION_1 = Path(__file__).parent / "data" / "sessions_v1.sql"


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return database_url(request.param, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = SqlStore(url, session=f"test-{uuid.uuid4()}")
    yield opened
    opened.close()


def code_of(action: Any) -> str:
    with pytest.raises(FoldlineError) as caught:
        action()
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    return caught.value.code


def rows(store: SqlStore, query: str) -> list[Any]:
    with store._database.reading() as connection:
        return list(connection.execute(sa.text(query), {"s": store.id}).all())


# --- Writes -------------------------------------------------------------------------------------------------


def test_messages_round_trip_as_json(store: SqlStore) -> None:
    odd = user(["é", "\ud800", "\0", 2**70, 1.5, None, True, {"a": ("b",)}], more={"x": "\U0001f600"})
    ids = store.extend([odd, assistant("ho")])
    held = user(["é", "\ud800", "\0", 2**70, 1.5, None, True, {"a": ["b"]}], more={"x": "\U0001f600"})
    assert store.messages() == [held, assistant("ho")] == store.restore()
    assert (ids, store.ids(), store.leaf) == (["m1", "m2"], ["m1", "m2"], "m2")


def test_sessions_of_a_database_are_separate_and_share_connections(store: SqlStore) -> None:
    other = store.of(f"{store.id}-other")
    store.append(user("a"))
    other.append(user("b"))
    assert (store.messages(), other.messages()) == ([user("a")], [user("b")])
    assert {store.id, other.id} <= set(store.sessions())
    assert other._database is store._database


def test_a_compaction_its_context_and_its_marks_are_rows(store: SqlStore) -> None:
    ids = store.extend(talk(6))
    strategy = fl.strategies.Summarize(lambda messages: "So far.", keep_recent=2)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4")
    event = compactor.compact(store.messages(), ids=store.ids()).event
    assert event is not None
    assert store.events() == (event,)
    ((*numbers, digest),) = rows(
        store,
        "SELECT seq, round, base, covered_from, covered_to, covered_count, tokens_before, tokens_after, input_sha256"
        " FROM foldline_compactions WHERE session_id = :s",
    )
    assert numbers == [7, 1, "context", ids[0], ids[3], 4, event.tokens_before, event.tokens_after]
    assert len(digest) == 64
    context = rows(store, "SELECT position, message_id FROM foldline_contexts WHERE session_id = :s ORDER BY position")
    assert context == [(0, "c7.0"), (1, ids[4]), (2, ids[5])]
    stored = rows(store, "SELECT count(*), count(message) FROM foldline_contexts WHERE session_id = :s")
    assert stored == [(3, 1)]  # a message unchanged since it was appended is not stored twice
    marks = rows(store, "SELECT message_id FROM foldline_marks WHERE session_id = :s ORDER BY message_id")
    assert [name for (name,) in marks] == ids[:4]
    assert store.leaf == "c7"


def test_one_input_is_compacted_once_by_any_number_of_writers(store: SqlStore) -> None:
    """By the database itself, even if two programs disagree on the rules."""
    ids = store.extend(talk(3))
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, "So far.", (ids[0],), 0.1)
    store.save_context(event, [ContextEntry(None, user("So far.")), ContextEntry(ids[1]), ContextEntry(ids[2])])
    copy = (
        "INSERT INTO foldline_compactions (session_id, seq, round, base, covered_from, covered_to, covered_count,"
        " input_sha256, tokens_before, tokens_after, event, created_at) SELECT session_id, 99, 9, base, covered_from,"
        " covered_to, covered_count, input_sha256, 0, 0, event, created_at FROM foldline_compactions"
        " WHERE session_id = :s"
    )
    with pytest.raises(StoreError), store._database.writing() as connection:
        connection.execute(sa.text(copy), {"s": store.id})
    assert len(store.events()) == 1


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (user({1: CANARY}), "not_json"),
        (user(float("inf")), "not_json"),
        (user({CANARY}), "not_json"),
        (user([10**5000]), "not_json"),
        (user(nested(129)), "limit_exceeded"),
    ],
)
def test_a_batch_with_an_unstorable_value_is_refused_as_a_whole(store: SqlStore, message: Any, code: str) -> None:
    store.append(user("hi"))
    assert code_of(lambda: store.extend([user("first"), message])) == code
    assert store.messages() == [user("hi")]


# --- Concurrent writers -------------------------------------------------------------------------------------


def test_an_append_with_a_stale_expected_leaf_is_refused(store: SqlStore, url: str) -> None:
    two = SqlStore(url, session=store.id)
    assert store.append(user("a"), expected_leaf=None) == "m1"
    assert code_of(lambda: two.append(user("b"), expected_leaf=None)) == "conflict"
    assert two.append(user("b"), expected_leaf="m1") == "m2"
    assert code_of(lambda: store.extend([user("c")], expected_leaf="m1")) == "conflict"
    assert store.messages() == [user("a"), user("b")]
    two.close()


def test_a_repeated_append_with_an_id_writes_nothing(store: SqlStore) -> None:
    store.append(user("a"), id="mine", expected_leaf=None)
    store.append(user("b"))
    before = rows(store, "SELECT * FROM foldline_sessions WHERE id = :s")
    assert store.append(user("a"), id="mine", expected_leaf=None) == "mine"
    assert code_of(lambda: store.append(user(CANARY), id="mine")) == "id_in_use"
    assert rows(store, "SELECT * FROM foldline_sessions WHERE id = :s") == before
    for taken in ("m3", "c3", "c3.0", "", "a\n"):
        assert code_of(lambda taken=taken: store.append(user("c"), id=taken)) == "bad_id"
    assert store.messages() == [user("a"), user("b")]


def test_threads_share_a_store(store: SqlStore) -> None:
    def work(name: int) -> None:
        for i in range(20):
            store.append(user(f"{name} {i}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = [each["content"] for each in store.messages()]
    assert sorted(said) == sorted(f"{name} {i}" for name in range(4) for i in range(20))
    for name in range(4):
        assert [each for each in said if each.startswith(f"{name} ")] == [f"{name} {i}" for i in range(20)]


def test_a_lock_timeout_is_an_error(store: SqlStore, url: str) -> None:
    store.append(user("hi"))
    late = SqlStore(url, session=store.id, lock_timeout_s=0.2)
    with store._database.writing() as connection:
        store._locked(connection)
        assert code_of(lambda: late.append(user(CANARY))) == "busy"
    late.append(user("ho"))
    assert store.messages() == [user("hi"), user("ho")]
    late.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_opens_its_own_connections(store: SqlStore) -> None:
    store.append(user("parent"))
    child = os.fork()
    if child == 0:
        try:
            store.append(user("child"))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.append(user("parent again"))
    assert [each["content"] for each in store.messages()] == ["parent", "child", "parent again"]


def test_two_concurrent_opens_create_the_tables_once(url: str, tmp_path: Path) -> None:
    if url.startswith("sqlite"):
        url = f"sqlite:///{tmp_path / 'new.db'}"
    errors: list[BaseException] = []
    session = f"test-{uuid.uuid4()}"

    def work() -> None:
        try:
            with SqlStore(url, session=session) as opened:
                opened.append(user("hi"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with SqlStore(url, session=session) as opened:
        assert len(opened.messages()) == 8


def test_opening_waits_for_a_new_file_that_another_process_writes(tmp_path: Path) -> None:
    """SQLite returns busy at once if the journal mode must change while another connection holds the lock."""
    file = tmp_path / "new.db"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(file, timeout=60)) as plain:
            plain.execute("PRAGMA journal_mode = WAL")
        assert (
            code_of(lambda: SqlStore(f"sqlite:///{file}", session="a", lock_timeout_s=0.05).append(user("hi")))
            == "busy"
        )
        release = threading.Timer(0.2, other.execute, ["COMMIT"])
        release.start()
        with SqlStore(f"sqlite:///{file}", session="a") as opened:
            opened.append(user("hi"))
        release.join()


# --- Errors -------------------------------------------------------------------------------------------------


def test_errors_contain_no_content_and_change_nothing(store: SqlStore) -> None:
    """A table that refuses rows, like a database on a full disk: the error names the row."""
    ids = store.extend(talk(3))
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, CANARY, (ids[0],), 0.1)
    context = [ContextEntry(None, user(CANARY)), ContextEntry(ids[1]), ContextEntry(ids[2])]
    name = f'"refuse_{uuid.uuid4()}"'
    trigger = {
        "sqlite": "CREATE TRIGGER refuse BEFORE INSERT ON foldline_marks BEGIN SELECT RAISE(ABORT, 'no'); END",
        "postgresql": f"ALTER TABLE foldline_marks ADD CONSTRAINT {name} CHECK (session_id <> '{store.id}') NOT VALID",
    }
    with store._database.writing() as connection:
        connection.execute(sa.text(trigger[store._database.kind]))
    try:
        assert code_of(lambda: store.save_context(event, context)) == "store_failed"
        assert (store.messages(), store.last_round(), store.events()) == (talk(3), 0, ())
        assert rows(store, "SELECT * FROM foldline_contexts WHERE session_id = :s") == []
    finally:
        mend = {
            "sqlite": "DROP TRIGGER refuse",
            "postgresql": f"ALTER TABLE foldline_marks DROP CONSTRAINT {name}",
        }
        with store._database.writing() as connection:
            connection.execute(sa.text(mend[store._database.kind]))
    store.save_context(event, context)
    assert store.messages() == [user(CANARY), *talk(3)[1:]]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "bad_url"),
        ("nonsense", "bad_url"),
        ("mysql://x/y", "unsupported_database"),
        ("sqlite://", "memory_database"),
        ("sqlite:///:memory:", "memory_database"),
        ("sqlite:////no/such/folder/x.db", "no_file"),
        (f"postgresql://{CANARY}:{CANARY}@127.0.0.1:1/x", "unreachable"),
    ],
)
def test_addresses_without_a_database_are_refused(url: str, code: str) -> None:
    assert code_of(lambda: SqlStore(url, session="a", lock_timeout_s=1)) == code


def test_options_are_checked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    assert code_of(lambda: SqlStore(url, session="")) == "bad_id"
    assert code_of(lambda: SqlStore(url, session="a" * 256)) == "bad_id"
    with pytest.raises(ConfigError):
        SqlStore(url, session="a", lock_timeout_s=-1)
    assert not (tmp_path / "x.db").exists() or (tmp_path / "x.db").stat().st_size == 0


@pytest.mark.service
def test_a_connection_closed_by_the_server_is_replaced() -> None:
    store = SqlStore(postgres_url(), session=f"test-{uuid.uuid4()}")
    store.append(user("a"))
    other = SqlStore(postgres_url(), session=store.id)
    end = sa.text("SELECT pg_terminate_backend(:pid)")
    with store._database.reading() as connection:
        pid = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
    with other._database.writing() as connection:
        connection.execute(end, {"pid": pid})
    store.append(user("b"))
    assert store.messages() == [user("a"), user("b")]
    with pytest.raises(StoreError) as caught, store._database.writing() as connection:
        pid = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
        with other._database.writing() as killing:
            killing.execute(end, {"pid": pid})
        connection.execute(sa.text("SELECT 1"))
    assert caught.value.code == "unreachable"
    store.append(user("c"))
    assert len(store.messages()) == 3
    store.close()
    other.close()


# --- SQLite -------------------------------------------------------------------------------------------------


def test_sqlite_commits_to_disk_in_a_private_file(tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="a")
    store.append(user("hi"))
    with store._database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    for name in ("x.db", "x.db-wal"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    (tmp_path / "link.db").symlink_to(tmp_path / "x.db")
    assert code_of(lambda: SqlStore(f"sqlite:///{tmp_path / 'link.db'}", session="a")) == "linked_file"
    assert code_of(lambda: SqlStore(f"sqlite:///{tmp_path}", session="a")) == "not_a_file"
    (tmp_path / "no.db").write_bytes(b"this is no database at all, whatever its name" * 100)
    assert code_of(lambda: SqlStore(f"sqlite:///{tmp_path / 'no.db'}", session="a")) == "corrupt"
    store.close()


def test_a_full_database_is_an_error_and_works_again_with_space(tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="a")
    store.append(user("hi"))

    def limited(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA max_page_count = 40")

    sa.event.listen(store._database._engine, "connect", limited)
    store.close()
    assert code_of(lambda: store.extend(user(CANARY + "." * 1000) for _ in range(500))) == "store_full"
    assert store.messages() == [user("hi")]
    sa.event.remove(store._database._engine, "connect", limited)
    store.close()
    store.append(user("ho"))
    assert store.messages() == [user("hi"), user("ho")]
    store.close()


# --- Versions of the tables ---------------------------------------------------------------------------------


def test_tables_of_version_1_are_migrated(tmp_path: Path) -> None:
    """A database of version 1 with a session that was compacted twice, and another session."""
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.executescript(VERSION_1.read_text(encoding="utf-8"))
    connection.close()
    store = SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="two rounds")
    assert rows(store, "SELECT version FROM foldline_schema") == [(VERSION,)]
    assert [each["content"].split()[0] for each in store.messages()] == ["Summary", "6", "7"]
    assert store.compacted_ids() == {"m1", "m2", "m3", "m4", "c5.0", "m6", "m7"}
    assert rows(store, "SELECT DISTINCT base FROM foldline_compactions") == [("context",)]
    assert store.last_round() == 2
    assert [each["content"] for each in store.restore()] == [f"{i}" for i in range(8)]
    store.extend(talk(4))
    strategy = fl.strategies.Summarize(lambda messages: "Three.", keep_recent=2)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4")
    assert compactor.compact(store.messages(), ids=store.ids()).changed
    again = SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="untouched")
    assert (again.messages(), again.compacted_ids()) == ([user("alone")], frozenset())
    store.close()
    again.close()


def test_tables_of_a_newer_version_are_not_changed(tmp_path: Path) -> None:
    SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="a").close()
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("UPDATE foldline_schema SET version = ?", (VERSION + 1,))
    connection.close()
    assert code_of(lambda: SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="b")) == "newer_schema"
    with sqlite3.connect(tmp_path / "x.db") as connection:
        assert connection.execute("SELECT id FROM foldline_sessions").fetchall() == [("a",)]
    connection.close()


# --- The event loop -----------------------------------------------------------------------------------------


def test_the_async_store_behaves_like_the_store(url: str) -> None:
    session = f"test-{uuid.uuid4()}"

    async def work() -> Any:
        async with await AsyncSqlStore.open(url, session=session) as store:
            await asyncio.gather(*(store.append(user(f"{i}")) for i in range(20)))
            await store.extend(talk(6))
            strategy = fl.strategies.Summarize(lambda messages: "So far.", keep_recent=2)
            compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store.sync, counter="chars/4")
            result = await compactor.acompact(await store.messages(), ids=await store.ids())
            other = await store.of(f"{session}-other")
            assert await other.append(user("x"), id="x", expected_leaf=None) == "x"
            with pytest.raises(StoreError):
                await other.append(user("y"), expected_leaf=None)
            return result, await store.active(), await store.history(), await store.events(), await store.last_round()

    result, active, history, events, last_round = asyncio.run(work())
    assert [each.message for each in active] == result.messages
    assert (len(history), events, last_round) == (26, (result.event,), 1)


def test_a_cancelled_task_ends_after_its_write(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncSqlStore.open(f"sqlite:///{tmp_path / 'x.db'}", session="a") as store:
            begun, go_on = threading.Event(), threading.Event()
            append = store.sync.append

            def slow(message: Any, **options: Any) -> str:
                begun.set()
                go_on.wait(30)
                return append(message, **options)

            store.sync.append = slow  # type: ignore[method-assign]
            task = asyncio.ensure_future(store.append(user("hi")))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=0.05)
            assert not done
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await store.messages() == [user("hi")]

    asyncio.run(work())


def test_without_the_extra_the_error_names_it() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; from foldline.stores import MemoryStore, SqlStore"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "pip install 'foldline[sql]'" in done.stderr
