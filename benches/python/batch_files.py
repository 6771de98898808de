"""`foldline compact` over files of real sessions, compared with a Python loop over tiktoken and langchain.

    make bench-batch                                                       # 256 MB, 1 and 2 processes, the loop
    .venv-bench/bin/python benches/python/batch_files.py --megabytes 64
    .venv-bench/bin/python benches/python/batch_files.py --gigabytes 4 --memory   # one file, resident memory only
    .venv-bench/bin/python benches/python/batch_files.py --data FOLDER            # other sessions than the bundled ones

The input repeats the sessions, in every copy with other ids and other words in every text, so that
no text occurs twice. The command runs as a separate process. CPU time is that of all its processes, and figures
per second of CPU do not depend on the load of the machine; MB/s on the clock does. Resident memory is the sum over
all its processes, so that shared pages count once for each: an upper bound.

The loop works like typical scripts: ``json.loads``, tokens of every text by tiktoken, ``trim_messages`` with a counter,
``json.dumps``. It keeps the same tokens, but extracts no facts, writes no summary, makes no plan, keeps no manifest and
syncs nothing. ``naive`` counts a message at every call of langchain; ``counted once`` caches the count of each message.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import foldline as fl

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "examples" / "data"
MB = 1_000_000

#: Placeholder in texts for the number of each copy.
_MARK = "QxCoPyZ7"
_MARK_EVERY = 300
KEEP_TOKENS = 20_000


# --- the input ------------------------------------------------------------------------------------------------------


def templates(data: Path, kind: str) -> list[bytes]:
    """Templates of the input, with placeholders where copies differ: a transcript per line, or a session file each."""
    files = sorted(file for file in data.rglob("*") if file.suffix in (".jsonl", ".json", ".traj"))
    found = []
    for file in files:
        if kind == "sessions":
            if (piece := _session(file)) is not None:
                found.append(piece)
            continue
        for stored in fl.read(file, on_problem=lambda problem: None):
            record = {"id": f"{_MARK}-{stored.id}", "format": stored.format, "messages": marked(stored.messages)}
            found.append(_line(record))
    if not found:
        raise SystemExit(f"{data}: no transcripts")
    return found


def _session(file: Path) -> bytes | None:
    """A file of entries, one per line; None for any other."""
    lines = file.read_bytes().splitlines()
    try:
        entries = [json.loads(line) for line in lines if line.strip()]
    except ValueError:
        return None
    is_session = file.suffix == ".jsonl" and all(isinstance(entry, dict) and "type" in entry for entry in entries)
    return b"".join(_line(marked(entry)) for entry in entries) if is_session else None


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def marked(value: Any) -> Any:
    """The value with placeholders in all texts; strings without a blank (ids, names, data) stay."""
    if isinstance(value, str):
        return _marked_text(value) if len(value) >= 24 and " " in value else value
    if isinstance(value, list):
        return [marked(item) for item in value]
    if isinstance(value, dict):
        return {key: marked(item) for key, item in value.items()}
    return value


def _marked_text(text: str) -> str:
    pieces, begun = [], 0
    while (blank := text.find(" ", begun + (_MARK_EVERY if pieces else 0))) >= 0:
        pieces.append(text[begun:blank])
        begun = blank
    return f" {_MARK}".join([*pieces, text[begun:]]) if pieces else text


def copy_of(template: bytes, number: int) -> bytes:
    """The template for one copy: eight hexadecimal digits replace every placeholder."""
    return template.replace(_MARK.encode(), b"%08x" % (number * 2_654_435_761 % 2**32))


def make_input(folder: Path, pieces: Sequence[bytes], size: int, files: int, kind: str) -> list[Path]:
    """Files of together at least `size` bytes; for sessions as many files as necessary."""
    made: list[Path] = []
    number = written = 0
    if kind == "sessions":
        while written < size:
            piece = copy_of(pieces[number % len(pieces)], number)
            made.append(folder / f"session-{number:06}.jsonl")
            written += made[-1].write_bytes(piece)
            number += 1
        return made
    for index in range(files):
        made.append(folder / f"part-{index:03}.jsonl")
        with made[-1].open("wb") as stream:
            while stream.tell() < size / files:
                stream.write(copy_of(pieces[number % len(pieces)], number))
                number += 1
    return made


# --- the command ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """The measurements of a run.

    Attributes:
        name: The program.
        input_bytes: Bytes of file read.
        transcripts: Transcripts in them.
        output_bytes: Bytes written.
        clock_s: Seconds on the clock.
        cpu_s: Seconds of CPU of all its processes.
        resident_bytes: The peak memory of its processes together.
        folded: Folded transcripts; None if not counted.
    """

    name: str
    input_bytes: int
    transcripts: int
    output_bytes: int
    clock_s: float
    cpu_s: float
    resident_bytes: int | None = None
    folded: int | None = None

    @property
    def mb_per_clock_s(self) -> float:
        """MB of file per second on the clock."""
        return self.input_bytes / MB / self.clock_s

    @property
    def mb_per_cpu_s(self) -> float:
        """MB of file per second of CPU."""
        return self.input_bytes / MB / self.cpu_s


def run_command(source: Path, out: Path, jobs: int, size: int, keep_tokens: int, options: Sequence[str] = ()) -> Run:
    """Folds a folder by ``foldline compact`` in a separate process."""
    command = [sys.executable, "-c", "from foldline.cli import main; main()", "compact", str(source)]
    command += ["--out", str(out), "--jobs", str(jobs), "--keep-tokens", str(keep_tokens), *options]
    start = time.perf_counter()
    with (out.parent / f"{out.name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        with Resident(process.pid) as resident:
            _, status, usage = os.wait4(process.pid, 0)
        clock = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        said = (out.parent / f"{out.name}.log").read_text(errors="replace")[-2_000:]
        raise SystemExit(f"{shlex.join(command)}: exit code {process.returncode}\n{said}")
    try:
        manifest = json.loads((out / ".foldline" / "run.json").read_bytes())
    except FileNotFoundError:
        raise SystemExit(f"{fl.__file__}: this foldline is older than the benchmark; make bench-venv") from None
    written = sum(record["output_bytes"] or 0 for record in manifest["files"])
    found, folded = manifest["totals"]["transcripts"], manifest["totals"]["folded"]
    cpu = usage.ru_utime + usage.ru_stime
    return Run(f"foldline --jobs {jobs}", size, found, written, clock, cpu, resident.most, folded)


def predict(file: Path, out: Path, keep_tokens: int) -> dict[str, int]:
    """Transcripts, requests and tokens that a model would need for a file. No model is called."""
    command = [sys.executable, "-c", "from foldline.cli import main; main()", "compact", str(file), "--out", str(out)]
    command += ["--keep-tokens", str(keep_tokens), "--dry-run", "--summarizer", "openai:gpt-5-mini", "--json"]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()[0])
    return {key: told[key] for key in ("transcripts", "requests", "input_tokens", "output_tokens_at_most")}


class Resident(threading.Thread):
    """Samples the memory of a process and its descendants."""

    def __init__(self, pid: int, every_s: float = 0.02) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self._pid = pid
        self._every_s = every_s
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        while not self._ended.wait(self._every_s):
            self.most = max(self.most, resident_of_tree(self._pid))


def resident_of_tree(pid: int) -> int:
    """Resident bytes of a process and its descendants; shared pages count for each."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (OSError, ValueError):  # The process ended in the meantime.
                continue
            parents[int(folder.name)] = int(fields[1])
            sizes[int(folder.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")

    def is_below(process: int | None) -> bool:
        while process is not None and process != pid:
            process = parents.get(process)
        return process == pid

    return sum(size for process, size in sizes.items() if is_below(process))


# --- the loop -------------------------------------------------------------------------------------------------------


def run_loop(name: str, lines: Sequence[bytes], out: Path, keep_tokens: int, *, once: bool) -> Run:
    """The same work as typically scripted: one process, one transcript after the other."""
    import tiktoken
    from langchain_core.messages import trim_messages

    encoding = tiktoken.get_encoding("o200k_base")
    encoding.encode_ordinary("warm")

    def tokens_of(message: Any) -> int:
        return 3 + len(encoding.encode_ordinary(message.content))

    start, start_cpu = time.perf_counter(), time.process_time()
    with out.open("wb") as stream:
        for line in lines:
            record = json.loads(line)
            messages = [_message(message, index) for index, message in enumerate(record["messages"])]
            count = _counted_once(tokens_of) if once else tokens_of
            before = sum(map(count, messages))
            kept = trim_messages(
                messages,
                max_tokens=keep_tokens,
                strategy="last",
                include_system=True,
                token_counter=lambda given, count=count: sum(map(count, given)),  # type: ignore[misc]
            )
            indices = [int(message.id or 0) for message in kept]
            folded = {
                "id": record["id"],
                "messages": [record["messages"][index] for index in indices],
                "tokens_before": before,
                "tokens_after": sum(map(count, kept)),
            }
            stream.write(json.dumps(folded, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
    cpu, clock = time.process_time() - start_cpu, time.perf_counter() - start
    return Run(name, sum(map(len, lines)), len(lines), out.stat().st_size, clock, cpu)


def _counted_once(count: Callable[[Any], int]) -> Callable[[Any], int]:
    known: dict[str, int] = {}

    def remembered(message: Any) -> int:
        found = known.get(message.id)
        if found is None:
            found = known[message.id] = count(message)
        return found

    return remembered


def _message(message: dict[str, Any], index: int) -> Any:
    """A langchain message with all text of one of ours, in any dialect: other content as JSON."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    role = message.get("role")
    kind: Any = {"system": SystemMessage, "assistant": AIMessage, "model": AIMessage}.get(str(role), HumanMessage)
    return kind(content="\n".join(_texts({**message, "role": None})), id=str(index))


#: The keys of texts in messages, in all dialects of the sample.
_TEXT_KEYS = {"text", "content", "thinking", "arguments", "input", "output", "args", "response", "function", "parts"}
_TEXT_KEYS |= {"tool_calls", "functionCall", "functionResponse", "reasoning", "name"}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("input", "args", "arguments", "response") and isinstance(item, dict):
                yield json.dumps(item)
            elif key in _TEXT_KEYS:
                yield from _texts(item)


# --- the report -----------------------------------------------------------------------------------------------------


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--megabytes", type=float, default=256.0, help="MB of input (10^6 bytes)")
    size.add_argument("--gigabytes", type=float, help="GB of input instead")
    parser.add_argument("--memory", action="store_true", help="one file, one process, no loop: resident memory")
    parser.add_argument("--data", type=Path, default=DATA, help="a folder of sessions; else the bundled ones")
    parser.add_argument("--kind", choices=["lines", "sessions"], default="lines", help="what the input consists of")
    parser.add_argument("--files", type=int, default=8, help="files of the input (lines)")
    parser.add_argument("--jobs", type=int, action="append", help="processes; repeatable; else 1 and 2")
    parser.add_argument("--keep-tokens", type=int, default=KEEP_TOKENS)
    parser.add_argument("--loop-megabytes", type=float, default=8.0, help="MB that the loop works on; 0 for no loop")
    parser.add_argument("--rounds", type=int, default=1, help="runs of the command; the least CPU time counts")
    parser.add_argument("--option", action="append", default=[], help="an option of the command; repeatable")
    parser.add_argument("--folder", type=Path, help="where input and output go, and stay; else a temporary folder")
    parser.add_argument("--note", default="", help="what goes with the figures, such as the kind of build")
    parser.add_argument("--json", type=Path, help="where the figures go as JSON")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace, folder: Path) -> tuple[list[Run], dict[str, int] | None]:
    """All runs, and the model requests that one of the files would need."""
    size = int(options.gigabytes * 1e9 if options.gigabytes else options.megabytes * MB)
    pieces = templates(options.data, options.kind)
    (folder / "in").mkdir(parents=True)
    files = make_input(folder / "in", pieces, size, 1 if options.memory else options.files, options.kind)
    size = sum(file.stat().st_size for file in files)
    runs = []
    for jobs in options.jobs or ([1] if options.memory else [1, 2]):
        tries = []
        for _ in range(options.rounds):
            out = folder / f"out-{jobs}"
            shutil.rmtree(out, ignore_errors=True)
            tries.append(run_command(folder / "in", out, jobs, size, options.keep_tokens, options.option))
            if options.folder is None:
                shutil.rmtree(out)
        runs.append(min(tries, key=lambda run: run.cpu_s))
        print_runs(runs[-1:])
    if options.loop_megabytes and not options.memory:
        lines, wanted = [], options.loop_megabytes * MB
        loop_pieces = pieces if options.kind == "lines" else templates(options.data, "lines")
        for number in range(10**9):
            if wanted <= 0:
                break
            lines.append(copy_of(loop_pieces[number % len(loop_pieces)], number))
            wanted -= len(lines[-1])
        for name, once in (("loop, naive", False), ("loop, counted once", True)):
            runs.append(run_loop(name, lines, folder / "loop.jsonl", options.keep_tokens, once=once))
            print_runs(runs[-1:])
    asked = predict(files[0], folder / "predicted", options.keep_tokens) if options.json else None
    return runs, asked


def print_runs(runs: Sequence[Run]) -> None:
    """One line per run."""
    for run in runs:
        resident = "" if run.resident_bytes is None else f"  {run.resident_bytes / MB:6.0f} MB resident"
        print(
            f"{run.name:20} {run.input_bytes / MB:8.1f} MB  {run.clock_s:8.2f} s clock  {run.cpu_s:8.2f} s CPU"
            f"  {run.mb_per_clock_s:7.1f} MB/s clock  {run.mb_per_cpu_s:7.1f} MB/s CPU"
            f"  {run.cpu_s / run.transcripts * 1e3:7.2f} ms a transcript{resident}",
            flush=True,
        )


def print_ratios(runs: Sequence[Run]) -> None:
    """The speed-up of the command per MB, by CPU time of one process; and by the clock with all processes."""
    ours = [run for run in runs if run.resident_bytes is not None]
    for loop in (run for run in runs if run.resident_bytes is None):
        for run in ours:
            by_cpu = run.mb_per_cpu_s / loop.mb_per_cpu_s
            by_clock = run.mb_per_clock_s / loop.mb_per_clock_s
            print(f"{run.name} / {loop.name}: {by_cpu:.1f} times by CPU, {by_clock:.1f} times by the clock")


def record(options: argparse.Namespace, runs: Sequence[Run], command: str) -> dict[str, Any]:
    """The figures as data for the model of docs/scale.md."""
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "command": command,
        "foldline": fl.__version__,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "machine": platform.machine(),
        "note": options.note,
        "keep_tokens": options.keep_tokens,
        "kind": options.kind,
        "runs": [asdict(run) for run in runs],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    options = parsed(arguments)
    given = sys.argv[1:] if arguments is None else list(arguments)
    print(f"foldline {fl.__version__}, Python {platform.python_version()}, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory(prefix="foldline-bench-") as temporary:
        runs, asked = measure(options, options.folder or Path(temporary))
    print_ratios(runs)
    if options.json:
        command = shlex.join(["benches/python/batch_files.py", *_without_places(given)])
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(record(options, runs, command) | {"model": asked}, indent=2) + "\n")


def _without_places(arguments: Sequence[str]) -> list[str]:
    """The options without paths of one system."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in ("--folder", "--json", "--note"):
            skip = True
        elif not argument.startswith(("--folder=", "--json=", "--note=")):
            kept.append(argument)
    return kept


if __name__ == "__main__":
    main()
