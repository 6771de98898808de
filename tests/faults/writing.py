"""A concurrent writer: `python writing.py KIND PLACE SESSION NAME COUNT` appends and reports acknowledged writes.

It starts at a line on its standard input, so that all writers start at once. Every tenth append gives the expected
newest entry, is refused if another writer was faster, and is then retried.
"""

from __future__ import annotations

import sys

from foldline.errors import StoreError
from foldline.stores import JsonlSession


def main(kind: str, place: str, session: str, name: str, count: str) -> None:
    """Appends."""
    if kind == "jsonl":
        store = JsonlSession(place, lock_timeout_s=600)
    else:
        from foldline.stores import SqlStore

        store = SqlStore(place, session=session, lock_timeout_s=600)  # type: ignore[assignment]
    print("ready", flush=True)
    sys.stdin.readline()
    conflicts = 0
    for number in range(int(count)):
        message = {"role": "user", "content": f"{name}:{number} " + "x" * (number % 200)}
        if number % 10:
            store.append(message)
            continue
        for _ in range(5):
            try:
                store.append(message, expected_leaf=store.leaf)
                break
            except StoreError as error:
                if error.code != "conflict":
                    raise
                conflicts += 1
        else:
            store.append(message)
    print(f"done {conflicts}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
