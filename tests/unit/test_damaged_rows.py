"""A damaged row of a database is left out and named, the rest of its session is read, and the session goes on."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

import foldline as fl
from foldline.errors import FoldlineWarning, StoreError
from foldline.stores import SqlStore
from foldline.stores._databases import store_error
from foldline.typing import Problem
from unit.samples import CANARY, talk, user
from unit.services import DATABASES, database_url, postgres_url

DEEP = '{"role":"user","content":' + "[" * 200 + "]" * 200 + "}"

#: Texts that are no message, and the codes that name them.
TEXTS = {
    "torn": ('{"role":"user","content":"' + CANARY, "bad_json"),
    "empty": ("", "bad_json"),
    "not JSON": (CANARY, "bad_json"),
    "two values": ('{"role":"user"}{"role":"user"}', "glued_values"),
    "a list": (f'["{CANARY}"]', "not_an_object"),
    "a number": ("7", "not_an_object"),
    "null": ("null", "not_an_object"),
    "no message": (json.dumps({"content": CANARY}), "not_a_message"),
    "a role that is no text": ('{"role":7}', "not_a_message"),
    "content that is a number": (json.dumps({"role": "user", "content": 7, "note": CANARY}), "not_a_message"),
    "nested too deep": (DEEP, "nesting_too_deep"),
    "nested far too deep": ("[" * 100_000, "nesting_too_deep"),
}


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return database_url(request.param, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = SqlStore(url, session=f"test-{uuid.uuid4()}")
    yield opened
    opened.close()


def change(store: SqlStore, statement: str, **values: Any) -> None:
    with store._database.writing() as connection:
        connection.execute(sa.text(statement), {"s": store.id, **values})


def compacted(store: SqlStore) -> list[str]:
    """Eight messages, of which the first four became a summary; the ids of all."""
    ids = store.extend(talk(6))
    strategy = fl.strategies.Summarize(lambda messages: "So far.", keep_recent=2)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4")
    assert compactor.compact(store.messages(), ids=store.ids()).changed
    return ids + store.extend(talk(2))


@contextlib.contextmanager
def warned() -> Iterator[list[str]]:
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    told += [str(each.message) for each in caught if each.category is FoldlineWarning]


def codes(problems: tuple[Problem, ...]) -> list[tuple[str, int | None]]:
    return [(problem.code, problem.line) for problem in problems]


@pytest.mark.parametrize(("text", "code"), TEXTS.values(), ids=TEXTS.keys())
def test_a_damaged_message_is_left_out_and_named_once(store: SqlStore, text: str, code: str) -> None:
    ids = store.extend(talk(5))
    change(store, "UPDATE foldline_messages SET message = :m WHERE session_id = :s AND seq = 3", m=text)
    rest = [each for i, each in enumerate(talk(5)) if i != 2]
    with warned() as told:
        assert store.messages() == store.restore() == rest
        assert store.ids() == [each for each in ids if each != "m3"]
    assert len(told) == 1
    assert store.id in told[0]
    assert "position 3" in told[0]
    assert code in told[0]
    assert CANARY not in told[0]
    (problem,) = store.problems
    assert (problem.code, problem.line, problem.path) == (code, 3, store.id)
    assert CANARY not in str(problem)
    # Reading and appending leave the row as it is.
    assert store.append(user("next")) == "m6"
    with pytest.warns(FoldlineWarning), SqlStore(str(store_url(store)), session=store.id) as again:
        assert again.messages() == [*rest, user("next")]
    with store._database.reading() as connection:
        query = "SELECT message FROM foldline_messages WHERE session_id = :s AND seq = 3"
        assert connection.execute(sa.text(query), {"s": store.id}).scalar_one() == text


def store_url(store: SqlStore) -> str:
    return store._database._engine.url.render_as_string(hide_password=False)


@pytest.mark.parametrize(("text", "code"), TEXTS.values(), ids=TEXTS.keys())
def test_a_damaged_context_or_event_hides_nothing_else(store: SqlStore, text: str, code: str) -> None:
    ids = compacted(store)
    whole = store.active()
    change(store, "UPDATE foldline_contexts SET message = :m WHERE session_id = :s AND position = 0", m=text)
    with warned() as told:
        assert store.active() == whole[1:]
    assert len(told) == 1
    assert "foldline_contexts, position 0" in told[0]
    change(store, "UPDATE foldline_messages SET message = :m WHERE session_id = :s AND id = :id", m=text, id=ids[4])
    with warned():
        assert store.active() == whole[2:]
        assert [each.id for each in store.history()] == [each for each in ids if each != ids[4]]
    # An event may be any object.
    if code != "not_a_message":
        change(store, "UPDATE foldline_compactions SET event = :m WHERE session_id = :s", m=text)
        with warned():
            assert store.events() == ()
            assert store.active() == whole[2:]
        assert ("foldline_compactions", code) in {
            (problem.detail.removeprefix("a row of "), problem.code) for problem in store.problems
        }
    assert store.last_round() == 1
    # The session can be compacted again.
    strategy = fl.strategies.Summarize(lambda messages: "More.", keep_recent=1)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4")
    with warned():
        assert compactor.compact(store.messages(), ids=store.ids()).changed
        assert store.messages()[-1] == talk(2)[1]
    assert store.last_round() == 2


def test_a_context_that_names_what_is_missing_is_named(store: SqlStore) -> None:
    ids = compacted(store)
    whole = store.active()
    change(store, "DELETE FROM foldline_messages WHERE session_id = :s AND id = :id", id=ids[4])
    with warned() as told:
        assert store.active() == (whole[0], *whole[2:])
    assert ["missing_entry" in each for each in told] == [True]
    assert codes(store.problems) == [("missing_entry", 1)]


def test_a_retry_of_an_append_whose_row_is_damaged_is_refused(store: SqlStore) -> None:
    store.append(user("a"), id="mine")
    change(store, "UPDATE foldline_messages SET message = 'x' WHERE session_id = :s")
    with pytest.raises(StoreError) as caught:
        store.append(user("a"), id="mine")
    assert caught.value.code == "corrupt"


def test_numbers_of_a_session_that_are_too_small_are_replaced(store: SqlStore) -> None:
    """The next number of a message is greater than any in use, so that no row is overwritten or out of order."""
    compacted(store)
    change(store, "UPDATE foldline_sessions SET next_seq = 2, round = 0 WHERE id = :s")
    assert store.last_round() == 1
    assert codes(store.problems) == [("bad_number", None)]
    before = store.messages()
    assert store.append(user("next")) == "m10"
    assert store.messages() == [*before, user("next")]
    assert store.problems == ()


# --- SQLite: values of any type -----------------------------------------------------------------------------


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="a")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("CAST(x'7b22726f6c65223a2275736572222c22636f6e74656e74223a22ff227d' AS TEXT)", "bad_utf8"),
        ("CAST(x'ff' AS TEXT)", "bad_utf8"),
        ("x'7b7d'", "not_text"),
        ("x'ff00'", "not_text"),
    ],
)
def test_bad_utf8_and_blobs_are_damage_of_their_row_alone(sqlite_store: SqlStore, value: str, code: str) -> None:
    """Bad UTF-8 ended the whole query, and was reported as a database that cannot be reached."""
    ids = sqlite_store.extend(talk(3))
    change(sqlite_store, f"UPDATE foldline_messages SET message = {value} WHERE seq = 2")
    with warned() as told:
        assert sqlite_store.ids() == [ids[0], ids[2]]
    assert [code in each for each in told] == [True]
    assert codes(sqlite_store.problems) == [(code, 2)]
    sqlite_store.append(user("next"))
    change(sqlite_store, f'UPDATE foldline_messages SET message = \'{{"role":"user"}}\', id = {value} WHERE seq = 2')
    with warned():
        assert sqlite_store.ids() == [ids[0], ids[2], "m4"]
    assert codes(sqlite_store.problems) == [("bad_id", 2)]


@pytest.mark.parametrize("value", ["'x'", "x'ff'", "NULL", "-5", "3.5", "9223372036854775807"])
@pytest.mark.parametrize("column", ["next_seq", "round"])
def test_a_damaged_row_of_a_session_does_not_stop_it(sqlite_store: SqlStore, column: str, value: str) -> None:
    sqlite_store.close()
    compacted(sqlite_store)
    before = sqlite_store.messages()
    with sqlite_store._database.writing() as connection:
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = on")
        if value == "NULL":  # as if the file was changed
            connection.exec_driver_sql("PRAGMA writable_schema = on")
            connection.exec_driver_sql(
                "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'foldline_sessions'"
            )
            connection.exec_driver_sql("PRAGMA writable_schema = off")
    sqlite_store.close()
    change(sqlite_store, f"UPDATE foldline_sessions SET {column} = {value}")
    with warned() as told:
        assert sqlite_store.last_round() == 1
    assert len(told) == (column == "round")
    assert [problem.code for problem in sqlite_store.problems] == ["bad_number"]
    assert sqlite_store.append(user("next")) == "m10"
    assert sqlite_store.messages() == [*before, user("next")]
    strategy = fl.strategies.Summarize(lambda messages: "More.", keep_recent=1)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=sqlite_store, counter="chars/4")
    with warned():
        assert compactor.compact(sqlite_store.messages(), ids=sqlite_store.ids()).changed
    assert (sqlite_store.last_round(), sqlite_store.problems) == (2, ())


@pytest.mark.parametrize(
    ("table", "column", "where"),
    [
        ("messages", "seq", "seq = 8"),
        ("contexts", "position", "position = 1"),
        ("contexts", "message_id", "position = 1"),
        ("marks", "message_id", "message_id = 'm2'"),
        ("compactions", "seq", "seq = 7"),
    ],
)
@pytest.mark.parametrize("value", ["CAST(x'ff' AS TEXT)", "x'ff'", "-5", "99999999999999999"])
def test_any_damaged_column_is_named_and_the_session_goes_on(
    sqlite_store: SqlStore, table: str, column: str, where: str, value: str
) -> None:
    compacted(sqlite_store)
    whole = sqlite_store.messages()
    change(sqlite_store, f"UPDATE foldline_{table} SET {column} = {value} WHERE {where}")
    with warned() as told:
        rest = sqlite_store.messages()
        sqlite_store.compacted_ids()
    is_text = column == "message_id" and value.lstrip("-").isdigit()  # a text of digits may be an id
    if not is_text:
        assert told or table == "messages"
        assert sqlite_store.problems
    if table != "compactions":
        assert len(rest) >= len(whole) - 1
        assert all(each in whole for each in rest)
    assert sqlite_store.append(user("next")) == "m10"
    with warned():
        assert sqlite_store.messages() == [*rest, user("next")]


def test_a_version_of_the_tables_that_cannot_be_read_is_an_error(sqlite_store: SqlStore, tmp_path: Path) -> None:
    for version in ("0", "-1"):
        change(sqlite_store, f"UPDATE foldline_schema SET version = {version}")
        with pytest.raises(StoreError) as caught:
            SqlStore(f"sqlite:///{tmp_path / 'x.db'}", session="b")
        assert caught.value.code == "corrupt"


def test_an_error_that_quotes_bytes_of_the_file_is_an_error_without_content(
    sqlite_store: SqlStore, tmp_path: Path
) -> None:
    """sqlite3 cannot decode its own message then, and raises another error, which holds the bytes."""
    sqlite_store.append(user(CANARY))
    sqlite_store.close()
    place = tmp_path / "x.db"
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    data = place.read_bytes()
    place.write_bytes(data.replace(b"CREATE TABLE foldline_marks (", b"CREATE TABLE foldline_marks \xff"))
    with pytest.raises(StoreError) as caught, SqlStore(f"sqlite:///{place}", session="a") as store:
        store.messages()
    assert caught.value.code in ("corrupt", "store_failed")
    assert caught.value.__cause__ is None


def test_a_session_whose_name_is_damaged_hides_no_other(sqlite_store: SqlStore) -> None:
    sqlite_store.of("b")
    change(sqlite_store, "UPDATE foldline_sessions SET id = CAST(x'ff' AS TEXT) WHERE id = 'b'")
    assert sqlite_store.sessions() == ("a",)


def test_an_error_of_sqlite_without_a_code_is_not_reported_as_unreachable() -> None:
    error = sqlite3.OperationalError("Could not decode to UTF-8 column 'x' with text 'y'")
    assert store_error(sa.exc.OperationalError("", {}, error)).code == "store_failed"


# --- PostgreSQL: bytes in another encoding ------------------------------------------------------------------


@pytest.mark.service
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "UTF8", "LATIN1"])
def test_bad_utf8_in_postgresql_is_damage_of_its_row_alone(encoding: str) -> None:
    """In a database without an encoding, or one whose pages were damaged: the server returns the bytes as they are."""
    name = f"foldline_{uuid.uuid4().hex}"
    admin = sa.create_engine(
        sa.make_url(postgres_url()).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    try:
        with admin.connect() as connection:
            connection.execute(
                sa.text(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
            )
        url = sa.make_url(postgres_url()).set(database=name).render_as_string(hide_password=False)
        session = "seß"
        with SqlStore(url, session=session) as store:
            store.extend([*talk(3), user("é\0\ud800")])
            whole = store.active()
        with admin.connect() as connection:  # bytes are accepted without an encoding
            set_encoding = sa.text("UPDATE pg_database SET encoding = pg_char_to_encoding(:e) WHERE datname = :n")
            connection.execute(set_encoding, {"e": "SQL_ASCII", "n": name})
            bad = 'E\'{"role":"user","content":"\\xff\\xfe"}\''
            with psycopg.connect(url) as changing:
                changing.execute(f"UPDATE foldline_messages SET message = {bad} WHERE seq = 2".encode())
            connection.execute(set_encoding, {"e": encoding, "n": name})
        with SqlStore(url, session=session) as store, warned() as told:
            found = store.active()
            problems = codes(store.problems)
            store.append(user("next"))
            assert store.messages()[-1] == user("next")
        if encoding == "LATIN1":  # any bytes are text
            assert (len(found), problems, told) == (4, [], [])
        else:
            assert found == (whole[0], *whole[2:])
            assert problems == [("bad_utf8", 2)]
            assert len(told) == 1
    finally:
        with admin.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        admin.dispose()
