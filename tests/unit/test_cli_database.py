"""`foldline compact --database`: rows of SQLite and PostgreSQL in, one file out, and the database unchanged."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.services import DATABASES, database_url

sa = pytest.importorskip("sqlalchemy")


def talk(turns: int = 3) -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[i % 2], "content": f"Step {i}: " + "please mind the tests of this step. " * 40}
        for i in range(2 * turns)
    ]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "foldline", "compact", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, **options)
    assert "Traceback" not in ran.stderr
    return ran


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Tables:
    """A private table in a database, and a way to read it again."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind, self.url = kind, url
        self.engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        self.name = f"talks_{uuid.uuid4().hex}"

    def fill(self, rows: list[tuple[Any, Any]], type_: str = "TEXT") -> None:
        with self.engine.begin() as connection:
            connection.execute(sa.text(f"CREATE TABLE {self.name} (id TEXT, messages {type_})"))
            statement = sa.text(f"INSERT INTO {self.name} VALUES (:id, CAST(:messages AS {type_}))")
            connection.execute(statement, [{"id": id, "messages": messages} for id, messages in rows])

    def rows(self) -> list[Any]:
        with self.engine.begin() as connection:
            return list(connection.execute(sa.text(f"SELECT id, messages FROM {self.name} ORDER BY id")))

    def drop(self) -> None:
        with self.engine.begin() as connection:
            connection.execute(sa.text(f"DROP TABLE IF EXISTS {self.name}"))
        self.engine.dispose()


@pytest.fixture(params=DATABASES)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    made = Tables(request.param, database_url(request.param, tmp_path))
    yield made
    made.drop()


@pytest.fixture(params=DATABASES)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database that no other test writes to."""
    url = database_url(request.param, tmp_path)
    if request.param == "sqlite":
        yield url
        return
    name = f"alone_{uuid.uuid4().hex}"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    yield f"{url.rpartition('/')[0]}/{name}"
    with engine.connect() as connection:
        connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


def test_a_row_is_folded_like_a_line(tables: Tables, tmp_path: Path) -> None:
    talks = {f"t{i}": talk(2 + i % 3) for i in range(100)}
    tables.fill([(id, json.dumps(messages)) for id, messages in talks.items()])
    before = tables.rows()
    (tmp_path / "same.jsonl").write_text(
        "".join(json.dumps({"id": id, "messages": messages}) + "\n" for id, messages in talks.items())
    )
    options = ["--out", tmp_path / "out", "--keep-messages", 2]
    ran = run(tmp_path / "same.jsonl", "--database", tables.url, "--table", tables.name, "--jobs", 2, *options)
    assert (ran.returncode, ran.stderr) == (0, "")
    out = tmp_path / "out" / f"{tables.name}.jsonl"
    for found, expected in zip(records(out), records(tmp_path / "out" / "same.jsonl")):
        assert {**found, "meta": None} == {**expected, "meta": None}
    assert [record["id"] for record in records(out)] == list(talks)
    assert (out.stat().st_mode & 0o777) == 0o600  # the permissions of the database are unknown
    assert tables.rows() == before


def test_a_query_names_its_columns(tables: Tables, tmp_path: Path) -> None:
    tables.fill([("a", json.dumps(talk(1))), ("b", json.dumps(talk())), (None, json.dumps(talk()))])
    query = f"SELECT id || '::x' AS id, messages, 100 % 7 AS other FROM {tables.name} WHERE id <> 'a' OR id IS NULL"
    ran = run("--database", tables.url, "--query", query + " ORDER BY 1", "--out", tmp_path / "out", "--compress", "gz")
    assert (ran.returncode, ran.stderr) == (0, "")
    found = [stored.id for stored in fl.read(tmp_path / "out" / "query.jsonl.gz")]
    assert sorted(found) in (["1", "b::x"], ["2", "b::x"])  # without a name, the id is the row number


@pytest.mark.service
@pytest.mark.parametrize("tables", ["postgresql"], indirect=True)  # SQLite has no such type
def test_json_columns_need_no_parsing(tables: Tables, tmp_path: Path) -> None:
    tables.fill([("a", json.dumps(talk()))], "JSONB")
    assert run("--database", tables.url, "--table", tables.name, "--out", tmp_path / "out").returncode == 0
    assert records(tmp_path / "out" / f"{tables.name}.jsonl")[0]["messages"] == talk()


def test_a_bad_row_is_reported_and_the_rest_is_folded(tables: Tables, tmp_path: Path) -> None:
    rows: list[tuple[str, Any]] = [("a", json.dumps(talk())), ("b", "{secret"), ("c", None), ("d", json.dumps([1]))]
    tables.fill([*rows, ("e", json.dumps({"messages": talk(), "user": "someone"}))])
    ran = run("--database", tables.url, "--table", tables.name, "--out", tmp_path / "out")
    assert ran.returncode == 1
    assert [line for line in ran.stderr.splitlines() if "row 2" in line and "bad_json" in line]
    assert len(ran.stderr.splitlines()) == 3
    assert "secret" not in ran.stderr
    found = records(tmp_path / "out" / f"{tables.name}.jsonl")
    assert [record["id"] for record in found] == ["a", "e"]
    assert found[1]["meta"] == {"user": "someone"}
    strict = run("--database", tables.url, "--table", tables.name, "--out", tmp_path / "strict", "--strict")
    assert strict.returncode == 1
    assert not (tmp_path / "strict" / f"{tables.name}.jsonl").exists()


def test_an_unreadable_source_is_reported_and_nothing_is_written(tables: Tables, tmp_path: Path) -> None:
    tables.fill([("a", json.dumps(talk()))])
    cases = [
        (["--table", "nowhere"], "missing_table"),
        (["--query", "SELEC id"], "bad_query"),
        (["--query", f"SELECT id FROM {tables.name}"], "missing_column"),
    ]
    if tables.kind == "sqlite":  # other tests create session tables on the same server
        cases.append(([], "missing_table"))
    for options, code in cases:
        ran = run("--database", tables.url, *options, "--out", tmp_path / "out", "--dry-run")
        assert (ran.returncode, ran.stderr.count(code)) == (1, 1), options
        ran = run("--database", tables.url, *options, "--out", tmp_path / "out")
        assert (ran.returncode, ran.stderr.count(code)) == (1, 1), options
        assert [path.name for path in (tmp_path / "out").iterdir()] == [".foldline"]


def test_a_query_cannot_write(tables: Tables, tmp_path: Path) -> None:
    tables.fill([("a", json.dumps(talk()))])
    before = tables.rows()
    query = f"DELETE FROM {tables.name} RETURNING id, messages"
    ran = run("--database", tables.url, "--query", query, "--out", tmp_path / "out")
    assert ran.returncode == 1
    assert ("not_writable" if tables.kind == "sqlite" else "bad_query") in ran.stderr  # no cursor can be made for it
    assert tables.rows() == before
    if tables.kind == "postgresql":  # a cursor can be made for it, and it writes
        with tables.engine.begin() as connection:
            body = f"BEGIN DELETE FROM {tables.name}; RETURN '[]'; END"
            make = f"CREATE FUNCTION {tables.name}() RETURNS text LANGUAGE plpgsql AS $$ {body} $$"
            connection.execute(sa.text(make))
        ran = run("--database", tables.url, "--query", f"SELECT {tables.name}() AS messages", "--out", tmp_path / "out")
        assert (ran.returncode, "not_writable" in ran.stderr) == (1, True), ran.stderr
        assert tables.rows() == before
        with tables.engine.begin() as connection:
            connection.execute(sa.text(f"DROP FUNCTION {tables.name}()"))


def test_sessions_of_the_store_are_folded_from_their_originals(empty_database: str, tmp_path: Path) -> None:
    names = [f"{uuid.uuid4()}" for _ in range(2)]
    for name in names:
        with fl.stores.SqlStore(empty_database, session=name) as store:
            store.extend(talk())
            strategy = fl.strategies.Summarize(lambda messages: "They spoke of tests.", keep_recent=2)
            compactor = fl.Compactor(fl.triggers.MessageCount(2), strategy, store=store)
            assert compactor.compact(store.messages(), ids=store.ids()).event is not None
            before = store.messages()
    ran = run("--database", empty_database, "--out", tmp_path / "out", "--keep-messages", 2)
    assert (ran.returncode, ran.stderr) == (0, "")
    found = {record["id"]: record for record in records(tmp_path / "out" / "sessions.jsonl")}
    assert set(found) == set(names)
    for name in names:
        result = fl.compact(talk(), fl.KeepMessages(2))
        assert found[name]["messages"] == result.messages
    with fl.stores.SqlStore(empty_database, session=names[1]) as store:
        assert store.messages() == before


def test_damaged_rows_of_the_store_are_named_and_the_rest_is_folded(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    for name in ("a", "b"):
        with fl.stores.SqlStore(url, session=name) as store:
            store.extend(talk())
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for seq, text in ((1, "{"), (2, "[" * 200_000), (3, "5"), (4, '{"x": 1}')):
            change = sa.text("UPDATE foldline_messages SET message = :text WHERE session_id = 'a' AND seq = :seq")
            assert connection.execute(change, {"text": text, "seq": seq}).rowcount == 1
    ran = run("--database", url, "--out", tmp_path / "out", "--keep-messages", 2)
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 4
    for seq in (1, 2, 3, 4):
        assert f"{url}, line {seq}: " in ran.stderr, ran.stderr
    assert ran.stderr.count("(a row of messages of session 1)") == 4
    found = {record["id"]: record for record in records(tmp_path / "out" / "sessions.jsonl")}
    assert found["a"]["messages"] == fl.compact(talk()[4:], fl.KeepMessages(2)).messages
    assert found["b"]["messages"] == fl.compact(talk(), fl.KeepMessages(2)).messages
    engine.dispose()


def test_the_password_appears_in_no_output(tmp_path: Path) -> None:
    url = "postgresql://someone:hunter2@127.0.0.1:1/nowhere?password=hunter3"
    ran = run("--database", url, "--table", "t", "--out", tmp_path / "out")
    assert ran.returncode == 1
    assert "unreachable" in ran.stderr
    assert "someone" in ran.stderr
    everything = ran.stdout + ran.stderr + (tmp_path / "out" / ".foldline" / "run.json").read_text()
    assert not re.search("hunter[23]", everything)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--database", "hunter2"], "is not the URL"),
        (["--database", "nothing://hunter2@host"], "kind that SQLAlchemy does not support"),
        (["--database", "sqlite:///hunter2.db"], "no such file"),
        (["--database", "sqlite://"], "no such file"),
        (["--table", "t", "in.jsonl"], "--table goes with --database"),
        (["--database", "postgresql://host", "--table", "t", "--query", "q"], "exclude each other"),
        ([], "Missing argument 'PATH"),
    ],
)
def test_wrong_usage_is_refused_before_any_work(tmp_path: Path, options: list[str], said: str) -> None:
    (tmp_path / "in.jsonl").write_text("")
    ran = run(*options, "--out", "out", cwd=tmp_path)
    assert (ran.returncode, said in ran.stderr, "hunter2" in ran.stderr) == (2, True, False), ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_rows_are_streamed_with_bounded_memory(tables: Tables, tmp_path: Path) -> None:
    text = json.dumps([{"role": "user", "content": "x" * 100_000}])
    with tables.engine.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE {tables.name} (id TEXT, messages TEXT)"))
        for begin in range(0, 2_500, 100):
            rows = [{"id": f"{begin + i}", "messages": text} for i in range(100)]
            connection.execute(sa.text(f"INSERT INTO {tables.name} VALUES (:id, :messages)"), rows)
    # Not `getrusage`: its maximum includes the process that started this one.
    program = "import sys; from foldline.cli import main; code = main(sys.argv[1:]);"
    program += "print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM'))); sys.exit(code)"
    command = [sys.executable, "-c", program, "compact", "--database", tables.url, "--table", tables.name]
    command += ["--out", str(tmp_path / "out"), "--heuristic", "chars/4"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stderr
    assert len((tmp_path / "out" / f"{tables.name}.jsonl").read_bytes().splitlines()) == 2_500
    held = next(line.split() for line in ran.stdout.splitlines() if line.startswith("VmHWM"))
    assert held[2] == "kB"
    assert int(held[1]) < 200_000  # of 250 MB


@pytest.mark.service
def test_a_dropped_connection_leaves_the_older_file(tmp_path: Path) -> None:
    tables = Tables("postgresql", database_url("postgresql", tmp_path))
    text = json.dumps(talk())
    try:
        tables.fill([(f"{i:05}", text) for i in range(4_000)])
        out = tmp_path / "out" / "query.jsonl"
        arguments = ["--database", f"{tables.url}?application_name={tables.name}"]
        arguments += ["--out", tmp_path / "out", "--keep-messages", 2]
        assert run(*arguments, "--query", f"SELECT * FROM {tables.name} LIMIT 3").returncode == 0
        before = out.read_bytes()
        done = threading.Event()

        def cut() -> None:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :name"
            while not done.wait(0.05):
                if list((tmp_path / "out").glob(".foldline-*.tmp")):
                    with tables.engine.begin() as connection:
                        connection.execute(sa.text(query), {"name": tables.name})

        cutting = threading.Thread(target=cut)
        cutting.start()
        ran = run(*arguments, "--query", f"SELECT * FROM {tables.name}")
        done.set()
        cutting.join()
        assert ran.returncode == 1
        assert "unreachable" in ran.stderr
        assert out.read_bytes() == before
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".foldline", "query.jsonl"]
    finally:
        tables.drop()
