"""Folds a folder of Parquet files on a local Ray of 2 processors, slowly, and logs its summary requests.

ray_program.py IN OUT LOG [resume] [deadly] [listening] [dataset]

A line of the log is a process id and the number of a transcript. With ``deadly`` transcript 13 kills its worker.
With ``listening`` the listening addresses of Ray's processes are printed. With ``dataset`` Ray reads the files.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import foldline as fl
from foldline.batch.ray import compact_dataset, running


class Slow:
    """Writes a line of the log, then a summary."""

    def __init__(self, log: str, deadly: bool) -> None:
        self.log = log
        self.deadly = deadly

    def __repr__(self) -> str:
        return "Slow()"

    def __call__(self, messages: list[Any]) -> str:
        number = int(messages[0]["content"].split()[1].rstrip(":"))
        descriptor = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{os.getpid()} {number}\n".encode())
        os.close(descriptor)
        if self.deadly and number == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        return f"They spoke of transcript {number}."


def compactor(log: str, deadly: bool = False) -> fl.batch.BatchCompactor:
    return fl.batch.BatchCompactor(
        fl.KeepMessages(2), counter="chars/4", summary_tokens=300, summarizer=Slow(log, deadly)
    )


def listening() -> list[str]:
    """The listening addresses of this process and its relatives."""
    links = [link for pid in family(os.getpid()) for link in Path(f"/proc/{pid}/fd").glob("*") if link.is_symlink()]
    sockets = {str(link.readlink()).removeprefix("socket:[").removesuffix("]") for link in links if link.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.add(fields[1].partition(":")[0])
    return sorted(found)


def family(pid: int) -> set[int]:
    """A process and its descendants, including those reparented but in the session of Ray."""
    found = {pid}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name = stat.parent.name
            command = (stat.parent / "cmdline").read_bytes()
            environment = (stat.parent / "environ").read_bytes()
        except OSError:
            continue
        if b"FOLDLINE_RAY_TEST=" + os.environ["FOLDLINE_RAY_TEST"].encode() in environment and command:
            found.add(int(name))
    return found


def main(source: str, out: str, log: str, *modes: str) -> None:
    with running(2) as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        given = ray.data.read_parquet(source) if "dataset" in modes else source
        report = compact_dataset(given, compactor(log, "deadly" in modes), out=out, resume="resume" in modes)
        told: dict[str, Any] = {"totals": report.totals, "names": sorted(each.name for each in report.fragments)}
        if "listening" in modes:
            told |= {"listening": listening(), "statistics": os.environ.get("RAY_USAGE_STATS_ENABLED")}
            told["processes"] = len(family(os.getpid()))
        print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
