"""I13: many processes that append to one session lose nothing and fuse nothing, and each one's order stays.

The count `appends` says how many messages they append in all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from depth import cases
from foldline.stores import JsonlSession, SqlStore
from unit.samples import user
from unit.services import LASTING, database_url

WRITERS = 8
APPENDS = cases("appends")


@pytest.mark.timeout(max(300, APPENDS))
@pytest.mark.parametrize("kind", LASTING)
def test_I13_eight_writers_lose_nothing_and_fuse_nothing(kind: str, tmp_path: Path) -> None:
    session = f"writers {uuid.uuid4()}"
    place = str(tmp_path / "session.jsonl") if kind == "jsonl" else database_url(kind, tmp_path)
    each = APPENDS // WRITERS
    command = [sys.executable, str(Path(__file__).parent / "writing.py"), kind, place, session]
    writers = [
        subprocess.Popen([*command, str(name), str(each)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    told = [writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    print(kind, APPENDS, "appends,", sum(int(line.split()[1]) for line in told), "conflicts")
    store = JsonlSession(place) if kind == "jsonl" else SqlStore(place, session=session)
    held = [str(message["content"]).split(" ")[0].split(":") for message in store.restore()]
    assert len(held) == each * WRITERS
    for name in range(WRITERS):
        assert [int(number) for who, number in held if who == str(name)] == list(range(each))
    if isinstance(store, JsonlSession):
        lines = Path(place).read_bytes().splitlines()
        assert len(lines) == each * WRITERS + 1
        parents = [json.loads(line)["parentId"] for line in lines[1:]]
        assert parents == [None, *(entry.id for entry in store.entries[:-1])]  # one after the other
        assert store.problems == ()
    else:
        store.close()


def test_I13_threads_of_one_store_and_of_several_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    shared = JsonlSession(path)

    def work(name: int) -> None:
        store = shared if name < 4 else JsonlSession(path)
        for number in range(25):
            store.append(user(f"{name}:{number}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = [str(each["content"]).split(":") for each in JsonlSession(path).messages()]
    assert len(held) == 200
    for name in range(8):
        assert [int(number) for who, number in held if who == str(name)] == list(range(25))
    assert shared.messages() == JsonlSession(path).messages()
