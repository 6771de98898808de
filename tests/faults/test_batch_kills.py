"""`foldline compact` killed at random points and resumed: the same bytes, and no summary is paid for twice (I14)."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import foldline as fl
from depth import cases
from faults.counting_model import CountingModel

pytest.importorskip("httpx2")

KILLS = cases("batch_kills")
FILES, TRANSCRIPTS = 6, 8


@pytest.fixture
def model() -> Iterator[CountingModel]:
    serving = CountingModel()
    yield serving
    serving.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    for i in range(FILES):
        path = folder / f"part-{i % 3}" / f"{i}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as stream:
            for j in range(TRANSCRIPTS):
                name = f"conversation-{i}-{j}"
                talk = [
                    {"role": ("user", "assistant")[k % 2], "content": f"{name} step {k}: " + "mind the tests. " * 60}
                    for k in range(8)
                ]
                stream.write(json.dumps({"id": name, "messages": talk}) + "\n")
    return folder


def command(folder: Path, out: Path, *more: object) -> list[str]:
    options = ["--summarizer", "openai:counting", "--keep-messages", "2", "--summary-tokens", "400", *map(str, more)]
    return [sys.executable, "-m", "foldline", "compact", str(folder), "--out", str(out), *options]


def outputs(out: Path) -> dict[str, str]:
    """Hashes of all that lies in the output folder, but for the cache."""
    files = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith("cache.")]
    return {path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(model: CountingModel, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words],
        env=model.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.timeout(120 + 10 * KILLS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_and_resumed_runs_write_the_bytes_of_one_that_was_not(
    model: CountingModel, folder: Path, tmp_path: Path, jobs: int
) -> None:
    straight = run(model, *command(folder, tmp_path / "straight"))
    assert (straight.returncode, straight.stderr) == (0, "")
    expected = outputs(tmp_path / "straight")
    assert len(expected) == FILES + 1
    assert model.paid_again() == 0
    random_ = random.Random(jobs)
    kills, rounds = 0, 0
    while kills < KILLS // 2 + KILLS % 2:
        # A folder of its own for as many kills as it takes to finish.
        out, asked = tmp_path / f"out-{rounds}", Counter(model.asked)
        model.asked.clear()
        rounds += 1
        here = in_flight = 0
        while True:
            before = sum(model.asked.values())
            process = subprocess.Popen(
                command(folder, out, "--jobs", jobs, "--resume"),
                env=model.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            wanted = random_.randrange(0, 6) if kills + here < KILLS else 10**9
            while process.poll() is None and wanted:
                wanted -= model.came.acquire(timeout=0.05)
            time.sleep(random_.uniform(0, random_.choice((0.002, 0.02, 0.2))))
            process.send_signal(signal.SIGKILL)
            _, stderr = process.communicate()
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, stderr
            here += 1
            # A worker waits for one answer at a time.
            in_flight += min(jobs, sum(model.asked.values()) - before)
            while model.came.acquire(blocking=False):
                pass
        assert outputs(out) == expected
        assert set(model.asked) == set(asked)
        assert model.paid_again() <= in_flight
        kills += here
    assert kills >= KILLS // 2


def test_what_is_finished_is_not_folded_again(model: CountingModel, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(model, *command(folder, out)).returncode == 0
    before, asked = outputs(out), sum(model.asked.values())
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.jsonl")}
    again = run(model, *command(folder, out, "--resume", "--jobs", 2))
    assert (again.returncode, again.stderr) == (0, "")
    assert outputs(out) == before
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.jsonl")} == times
    # An output that was touched, one that is gone, and an input that is another one are made anew.
    (out / "part-0" / "0.jsonl").write_text("touched")
    (out / "part-1" / "1.jsonl").unlink()
    changed = folder / "part-2" / "2.jsonl"
    changed.write_text(changed.read_text().replace("step 0", "step zero"))
    assert run(model, *command(folder, out, "--resume")).returncode == 0
    now = outputs(out)
    assert {name for name in now if now[name] != before.get(name)} == {"part-2/2.jsonl", ".foldline/run.json"}
    # The answers were in the cache, but those to the changed conversations.
    assert sum(model.asked.values()) == asked + TRANSCRIPTS


def test_a_run_goes_on_only_as_it_was_called(model: CountingModel, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(model, *command(folder, out)).returncode == 0
    before = outputs(out)
    other = run(model, *command(folder, out, "--resume", "--pin", 0))
    assert other.returncode == 2
    assert "other options: pins" in other.stderr
    assert outputs(out) == before


def test_a_limit_on_requests_holds_over_processes_and_is_no_end(
    model: CountingModel, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    limited = run(model, *command(folder, out, "--jobs", 2, "--max-requests", 5))
    assert limited.returncode == 1
    assert "spending_limit" in limited.stderr
    assert sum(model.asked.values()) == 5
    more = run(model, *command(folder, out, "--resume", "--max-requests", 7))
    assert more.returncode == 1
    assert sum(model.asked.values()) == 7
    assert run(model, *command(folder, out, "--resume")).returncode == 0
    assert (sum(model.asked.values()), model.paid_again()) == (FILES * TRANSCRIPTS, 0)
    assert run(model, *command(folder, tmp_path / "straight")).returncode == 0
    assert outputs(out) == outputs(tmp_path / "straight")


def test_two_files_with_the_same_conversations_pay_once(model: CountingModel, folder: Path, tmp_path: Path) -> None:
    for path in folder.rglob("*.jsonl"):
        path.with_suffix(".copy").write_bytes(path.read_bytes())
    assert run(model, *command(folder, tmp_path / "out", "--jobs", 4)).returncode == 0
    assert (len(model.asked), model.paid_again()) == (FILES * TRANSCRIPTS, 0)


def test_a_second_run_into_the_same_folder_is_refused(model: CountingModel, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(command(folder, out), env=model.environment, stderr=subprocess.PIPE)
    assert model.came.acquire(timeout=60)
    second = run(model, *command(folder, out, "--resume"))
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert second.returncode == 2
    assert "another run uses the folder" in second.stderr


def test_a_dry_run_foretells_requests_and_tokens_and_asks_nobody(
    model: CountingModel, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    told = run(model, *command(folder, out, "--dry-run", "--json"))
    assert (told.returncode, told.stderr) == (0, "")
    assert not out.exists()
    assert sum(model.asked.values()) == 0
    files = [json.loads(line) for line in told.stdout.splitlines()]
    assert [each["requests"] for each in files] == [TRANSCRIPTS] * FILES
    assert run(model, *command(folder, out)).returncode == 0
    assert sum(model.asked.values()) == TRANSCRIPTS * FILES
    counter = fl.TokenCounter()
    sent = sum(counter.count(message["content"]) for body in model.bodies for message in body["messages"])
    # Names of fences are random, so not to the token.
    assert abs(sent - sum(each["input_tokens"] for each in files)) < 0.01 * sent
    assert all(each["output_tokens_at_most"] <= 400 * TRANSCRIPTS for each in files)


def test_a_dry_run_tells_the_cost_where_prices_are_known(model: CountingModel, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    from genai_prices import Usage, calc_price

    words = [word.replace("openai:counting", "openai:gpt-4o-mini") for word in command(folder, tmp_path / "out")]
    told = [json.loads(line) for line in run(model, *words, "--dry-run", "--json").stdout.splitlines()]
    usage = Usage(
        input_tokens=sum(each["input_tokens"] for each in told),
        output_tokens=sum(each["output_tokens_at_most"] for each in told),
    )
    price = float(calc_price(usage, "gpt-4o-mini", provider_id="openai").total_price)
    assert sum(each["cost_at_most"] for each in told) == pytest.approx(price)
    # What costs more than is allowed is not asked for; not a call fits into next to nothing.
    limited = run(model, *words, "--max-cost", price / 1000)
    assert (limited.returncode, sum(model.asked.values())) == (1, 0)
    assert "spending_limit" in limited.stderr
    unknown = run(model, *command(folder, tmp_path / "other", "--max-cost", 1))
    assert (unknown.returncode, "no price is known" in unknown.stderr) == (2, True)
