"""I13 on PostgreSQL: a server that dies keeps what it acknowledged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unit.services import postgres_url

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "postgres.sh"

#: Appends and compacts until the server dies under it: a part of it is killed with -9, so that it goes through crash
#: recovery. Then everything that was acknowledged must be there.
CRASHES = """
import os, sys, time
import sqlalchemy as sa
import foldline as fl
from foldline.errors import StoreError
from foldline.stores import SqlStore

url = os.environ["FOLDLINE_TEST_POSTGRES_URL"]
store = SqlStore(url, session="a", lock_timeout_s=20)
killer = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
acknowledged, codes = [], set()
for crash in range(5):
    for number in range(20):
        message = {"role": "user", "content": f"{crash}:{number} " + "word " * 60}
        store.append(message, id=f"{crash}:{number}")
        acknowledged.append(message)
    strategy = fl.strategies.Summarize(lambda messages: f"So far {crash}.", keep_recent=3)
    compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4", on_failure="raise")
    assert compactor.compact(store.messages(), ids=store.ids()).changed
    context = store.messages()
    # A transaction that is open when the server dies leaves nothing.
    try:
        with store._database.writing() as connection:
            store._insert_all(connection, fl.stores.sql.MESSAGES, [
                {"seq": 10**6, "id": "never", "message": "{}", "created_at": ""}
            ])
            try:
                with killer.connect() as other:
                    other.execute(sa.text("COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID'"))
            except sa.exc.SQLAlchemyError:
                pass
            killer.dispose()
            time.sleep(0.3)
            connection.execute(sa.text("SELECT 1"))
    except StoreError as error:
        codes.add(error.code)
    for attempt in range(200):  # while it recovers
        try:
            restored = store.restore()
            break
        except StoreError as error:
            codes.add(error.code)
            time.sleep(0.1)
    assert restored == acknowledged
    assert store.messages() == context
    assert store.last_round() == crash + 1
assert codes == {"unreachable"}, codes
store.close()
print("kept", len(acknowledged))
"""


@pytest.mark.service
def test_I13_a_server_that_dies_keeps_what_it_acknowledged() -> None:
    """On a server of its own: others may be in use by other tests."""
    postgres_url()
    done = subprocess.run(
        [str(SCRIPT), sys.executable, "-c", CRASHES],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "kept 100"
