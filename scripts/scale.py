#!/usr/bin/env python3
"""The cost of folding very many transcripts, from that of folding some: cores, hours, requests, money, failures.

    python scripts/scale.py                                        # the table of docs/scale.md
    python scripts/scale.py --transcripts 1e8 --cores 200 --model-dollars-in 0.25 --model-dollars-out 2
    python scripts/scale.py --measured out/batch/batch.json        # other figures than those of benches/scale.json

The measured figures come from `benches/python/batch_files.py --json`. All others are assumptions: each is
an option, and listed in the table. Standard library only.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "benches" / "scale.json"
GB = 1e9


@dataclass(frozen=True)
class Measured:
    """A transcript of the benchmark, on average; and one core.

    Attributes:
        cpu_s: Seconds of CPU per transcript, extractive summary and writing included.
        input_bytes: Its bytes before.
        output_bytes: Its bytes after.
        resident_bytes: The memory of one process.
        requests: Model calls.
        input_tokens: Tokens that the model would read.
        output_tokens: Tokens that it would write at most.
        source: The date and the command of the run.
    """

    cpu_s: float
    input_bytes: float
    output_bytes: float
    resident_bytes: float
    requests: float
    input_tokens: float
    output_tokens: float
    source: str = ""

    @classmethod
    def of(cls, record: dict[str, Any]) -> Measured:
        """Reads the output of the benchmark: its run with one process."""
        run = next(run for run in record["runs"] if run["name"] == "foldline --jobs 1")
        asked, count = record["model"], run["transcripts"]
        note = f", {record['note']}" if record.get("note") else ""
        return cls(
            cpu_s=run["cpu_s"] / count,
            input_bytes=run["input_bytes"] / count,
            output_bytes=run["output_bytes"] / count,
            resident_bytes=run["resident_bytes"],
            requests=asked["requests"] / asked["transcripts"],
            input_tokens=asked["input_tokens"] / asked["transcripts"],
            output_tokens=asked["output_tokens_at_most"] / asked["transcripts"],
            source=f"{record['date']}, `{record['command']}`{note}",
        )


@dataclass(frozen=True)
class Assumed:
    """Values that are not measured here. The names are those of the options."""

    transcripts: float = 1e9
    cores: float = 1_000
    use: float = 0.7
    core_dollars_per_hour: float = 0.04
    block_mb: float = 128.0
    core_megabytes_per_s: float = 25.0
    get_dollars_per_million: float = 0.40
    put_dollars_per_million: float = 5.00
    deaths_per_core_hour: float = 0.002
    model_dollars_in: float = 0.25
    model_dollars_out: float = 2.00
    model_tokens_per_minute: float = 30e6
    model_call_s: float = 8.0
    model_failure_rate: float = 0.01
    model_attempts: int = 3


MEANINGS = {
    "transcripts": "transcripts",
    "cores": "cores at work",
    "use": "share of the time in which they are busy",
    "core_dollars_per_hour": "US dollars a core and hour",
    "block_mb": "MB of input a block: one file of the output, and what a death costs",
    "core_megabytes_per_s": "MB/s a core reads from, and writes to, an object store",
    "get_dollars_per_million": "US dollars a million reading requests",
    "put_dollars_per_million": "US dollars a million writing requests",
    "deaths_per_core_hour": "workers that die a core and hour",
    "model_dollars_in": "US dollars a million tokens that a model reads",
    "model_dollars_out": "US dollars a million tokens that it writes",
    "model_tokens_per_minute": "tokens a minute that the account may send and receive",
    "model_call_s": "seconds of a call",
    "model_failure_rate": "share of attempts that fail, each by itself",
    "model_attempts": "attempts of a call",
}


@dataclass(frozen=True)
class Cost:
    """The cost of a run. Hours are on the clock; ``model_`` fields are the additional cost of a model.

    Attributes:
        input_bytes: Bytes read.
        output_bytes: Bytes written.
        core_hours: Hours of CPU.
        compute_hours: Hours for that, on all cores.
        store_hours: Hours to read and write, on all cores, without other work.
        blocks: Blocks, and files of the output.
        get_requests: Read requests, one per block.
        put_requests: Write requests, one per block.
        deaths: Crashed workers.
        lost_core_hours: Repeated work: half a block per crash, on average.
        resident_bytes: Memory of all workers.
        dollars: For cores and requests.
        model_requests: Calls, including failed attempts.
        model_tokens: Tokens read and written.
        model_hours: Hours for them at the account's limit.
        model_in_flight: Concurrent calls at that rate.
        model_dollars: For tokens.
        model_failed: Transcripts without a summary after all attempts; they are not changed.
    """

    input_bytes: float
    output_bytes: float
    core_hours: float
    compute_hours: float
    store_hours: float
    blocks: float
    get_requests: float
    put_requests: float
    deaths: float
    lost_core_hours: float
    resident_bytes: float
    dollars: float
    model_requests: float
    model_tokens: float
    model_hours: float
    model_in_flight: float
    model_dollars: float
    model_failed: float

    @property
    def bottleneck(self) -> str:
        """The bottleneck without a model: cores or the object store."""
        return "cores" if self.compute_hours >= self.store_hours else "object store"

    @property
    def model_bottleneck(self) -> str:
        """The bottleneck with a model."""
        return "tokens a minute of the model" if self.model_hours >= self.compute_hours else self.bottleneck


def cost(measured: Measured, assumed: Assumed) -> Cost:
    """The arithmetic."""
    read = measured.input_bytes * assumed.transcripts
    written = measured.output_bytes * assumed.transcripts
    blocks = math.ceil(read / (assumed.block_mb * 1e6))
    core_hours = measured.cpu_s * assumed.transcripts / 3600
    deaths = core_hours / assumed.use * assumed.deaths_per_core_hour
    lost = deaths * core_hours / blocks / 2
    core_hours += lost
    # A failed call is repeated: 1 + p + p² + … calls, with as many terms as attempts.
    rate, attempts = assumed.model_failure_rate, assumed.model_attempts
    tries = sum(rate**i for i in range(attempts))
    asked = measured.requests * assumed.transcripts
    tokens_in = measured.input_tokens * assumed.transcripts * tries
    tokens_out = measured.output_tokens * assumed.transcripts
    model_hours = (tokens_in + tokens_out) / assumed.model_tokens_per_minute / 60
    dollars = core_hours / assumed.use * assumed.core_dollars_per_hour
    dollars += blocks / 1e6 * (assumed.get_dollars_per_million + assumed.put_dollars_per_million)
    return Cost(
        input_bytes=read,
        output_bytes=written,
        core_hours=core_hours,
        compute_hours=core_hours / assumed.cores / assumed.use,
        store_hours=(read + written) / (assumed.core_megabytes_per_s * 1e6) / assumed.cores / 3600,
        blocks=blocks,
        get_requests=blocks,
        put_requests=blocks,
        deaths=deaths,
        lost_core_hours=lost,
        resident_bytes=measured.resident_bytes * assumed.cores,
        dollars=dollars,
        model_requests=asked * tries,
        model_tokens=tokens_in + tokens_out,
        model_hours=model_hours,
        model_in_flight=asked * tries * assumed.model_call_s / 3600 / model_hours if model_hours else 0.0,
        model_dollars=(tokens_in * assumed.model_dollars_in + tokens_out * assumed.model_dollars_out) / 1e6,
        model_failed=asked * rate**attempts,
    )


def table(measured: Measured, assumed: Assumed) -> str:
    """The whole result in Markdown."""
    found = cost(measured, assumed)
    rows = [
        ("**measured**", ""),
        ("CPU a transcript", f"{measured.cpu_s * 1e3:.2f} ms"),
        ("a core and second", f"{measured.input_bytes / 1e6 / measured.cpu_s:.1f} MB of input"),
        ("input, output a transcript", f"{measured.input_bytes / 1e3:.1f} kB, {measured.output_bytes / 1e3:.1f} kB"),
        ("resident memory of a process", f"{measured.resident_bytes / 1e6:.0f} MB"),
        ("prompts a transcript, if a model is asked", f"{measured.requests:.2f}, {measured.input_tokens:,.0f} tokens"),
        ("**assumed**", ""),
        *((MEANINGS[name], f"{value:,g}") for name, value in dataclasses.asdict(assumed).items()),
        ("**without a model**", ""),
        ("input, output", f"{found.input_bytes / GB:,.0f} GB, {found.output_bytes / GB:,.0f} GB"),
        ("core hours", f"{found.core_hours:,.0f}"),
        ("hours on the clock", f"{max(found.compute_hours, found.store_hours):,.2f}"),
        ("hours to read and write alone", f"{found.store_hours:,.2f}"),
        ("files of the output", f"{found.blocks:,.0f}"),
        ("requests to the object store", f"{found.get_requests + found.put_requests:,.0f}"),
        ("workers that die, core hours done again", f"{found.deaths:,.1f}, {found.lost_core_hours:,.2f}"),
        ("memory of all workers", f"{found.resident_bytes / GB:,.0f} GB"),
        ("cost", f"${found.dollars:,.2f}"),
        ("bottleneck", found.bottleneck),
        ("**a model besides**", ""),
        ("calls", f"{found.model_requests:,.0f}"),
        ("tokens", f"{found.model_tokens:,.0f}"),
        ("hours at the account's limit", f"{found.model_hours:,.0f}"),
        ("calls at a time", f"{found.model_in_flight:,.0f}"),
        ("cost, at most", f"${found.model_dollars:,.0f}"),
        ("transcripts without a summary", f"{found.model_failed:,.0f}"),
        ("bottleneck", found.model_bottleneck),
    ]
    lines = [f"Measured: {measured.source}.", "", "| what | how much |", "|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {amount} |" for what, amount in rows)]) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--measured", type=Path, default=MEASURED, help="what the benchmark wrote")
    for field in dataclasses.fields(Assumed):
        kind = int if field.name == "model_attempts" else float
        name = f"--{field.name.replace('_', '-')}"
        parser.add_argument(name, type=kind, default=field.default, help=f"{MEANINGS[field.name]} [{field.default:,g}]")
    given = vars(parser.parse_args(arguments))
    measured = Measured.of(json.loads(given.pop("measured").read_text(encoding="utf-8")))
    print(table(measured, Assumed(**given)), end="")


if __name__ == "__main__":
    main()
