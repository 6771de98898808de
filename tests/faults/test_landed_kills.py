"""I14 under kills that really land: batches of ten seconds and more, on recorded conversations, killed by SIGKILL.

Before each kill the processes are stopped and shown to be at work: a file that is written and not in place, or a call
to the model without a stored answer. A kill that would hit nothing is not counted. After `--resume` the output has the
bytes of an uninterrupted run, and no call is repeated but those in flight. The count `landed_kills` is for all tests of
this file together.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.counting_model import CountingModel
from faults.long_runs import (
    LONG_S,
    Calls,
    command,
    contents,
    finished,
    frozen,
    is_calling,
    is_settled,
    marked,
    recorded,
    send,
    share,
    start,
    state,
    unfinished,
    until,
    workers,
    write_files,
)

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what is in flight is read from /proc"),
]

#: Calls of a run with a model, and the delay of an answer for each process: together more than `LONG_S`.
CALLS, DELAY_S = 90, 0.13

#: Options of a run with a model.
WITH_MODEL = ("--summarizer", "openai:counting", "--summary-tokens", 400)


@pytest.fixture(scope="module")
def straight(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Recorded conversations, repeated until a run takes `LONG_S`, and the output of an uninterrupted run."""
    base = tmp_path_factory.mktemp("straight")
    conversations, files, more, seconds = recorded(shared), 0, 48, 0.0
    while seconds < LONG_S:
        write_files(base / "in", conversations, range(files, files + more))
        files += more
        began = time.monotonic()
        assert finished(start(command(base / "in", base / f"out-{files}"))) == ""
        seconds = time.monotonic() - began
        more = max(8, int(files * (1.1 * LONG_S / seconds - 1)))
    expected = contents(base / f"out-{files}")
    assert len(expected) == files + 1
    return base / "in", expected


class Killer:
    """Waits for work, shows that it is in flight, and counts the kills that landed.

    Args:
        kind: The kind of kill, which is also the seed of its waiting times.
    """

    def __init__(self, kind: str) -> None:
        self.wanted = share(kind)
        self.landed = 0
        self.random = random.Random(kind)

    @property
    def is_done(self) -> bool:
        return self.landed >= self.wanted

    def sleep(self, longest_s: float = 1.0) -> None:
        """Waits for a random time in which work goes on."""
        time.sleep(self.random.uniform(0, self.random.choice((0.05, 0.3, 1.0)) * longest_s))


def wait_for_work(process: subprocess.Popen[str], out: Path) -> bool:
    """Whether a file is being written; false if the run ends first."""

    def at_work() -> bool:
        return any(unfinished(pid, out) for pid in (process.pid, *workers(process.pid)))

    until(lambda: process.poll() is not None or at_work(), "no work was seen")
    return process.poll() is None


@pytest.mark.timeout(0)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_batch_resumes_to_the_same_bytes(
    straight: tuple[Path, dict[str, str]], tmp_path: Path, jobs: int
) -> None:
    folder, expected = straight
    killer, rounds = Killer(f"batch-{jobs}"), 0
    while not killer.is_done:
        rounds += 1
        out = tmp_path / f"out-{rounds}"
        while True:
            process = start(command(folder, out, "--jobs", jobs, "--resume"))
            is_hit, crew = False, list[int]()
            # A kill that would hit nothing is not made: the run goes on to its next file.
            while not (is_hit or killer.is_done) and wait_for_work(process, out):
                killer.sleep()
                crew = workers(process.pid)
                with frozen([process.pid, *crew]):
                    is_hit = process.poll() is None and any(unfinished(pid, out) for pid in (process.pid, *crew))
                    # Workers notice the end of their batch; every other time they are killed with it.
                    takes_all = killer.landed % 2 == 0
                    for pid in (process.pid, *(crew if takes_all else ())) if is_hit else ():
                        send(pid, signal.SIGKILL)
            if not is_hit:
                break
            process.communicate()
            until(lambda: not any(state(pid) for pid in crew), "a worker outlives its batch")  # noqa: B023
            assert process.returncode == -signal.SIGKILL
            assert not (takes_all or jobs == 1) or list(out.rglob(".foldline-*.tmp"))
            assert contents(out) != expected
            killer.landed += 1
        finished(process)
        assert contents(out) == expected
    assert killer.landed == killer.wanted


@pytest.mark.timeout(0)
def test_a_killed_worker_costs_at_most_its_file(straight: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, expected = straight
    killer, rounds = Killer("worker"), 0
    while not killer.is_done:
        rounds += 1
        out = tmp_path / f"out-{rounds}"
        process = start(command(folder, out, "--jobs", 2))
        while not killer.is_done and wait_for_work(process, out):
            killer.sleep()
            crew = workers(process.pid)
            with frozen([process.pid, *crew]):
                victims = [pid for pid in crew if unfinished(pid, out)]
                if victims and process.poll() is None:
                    victim = killer.random.choice(victims)
                    send(victim, signal.SIGKILL)
                    killer.landed += 1
        # A file whose workers were killed twice is left out and named; the next run folds it.
        error = finished(process, (0, 1))
        assert (process.returncode == 1) == ("worker_died" in error), error
        finished(start(command(folder, out, "--jobs", 2, "--resume")))
        assert contents(out) == expected
    assert killer.landed == killer.wanted


@pytest.fixture(scope="module")
def model() -> Iterator[CountingModel]:
    serving = CountingModel()
    yield serving
    serving.close()


@pytest.fixture(scope="module")
def summarized(
    model: CountingModel, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str]]:
    """Recorded conversations, as many as take `LONG_S` with a model, and the output of an uninterrupted run."""
    base = tmp_path_factory.mktemp("summarized")
    write_files(base / "in", recorded(shared), range(CALLS // 5), 5)
    model.delay_s = DELAY_S
    began = time.monotonic()
    assert finished(start(command(base / "in", base / "out", *WITH_MODEL), model.environment)) == ""
    assert time.monotonic() - began > LONG_S
    assert (len(model.asked), model.paid_again()) == (CALLS, 0)
    return base / "in", contents(base / "out")


@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", ["model-1", "model-2", "model-worker"])
def test_a_killed_batch_repeats_no_call_but_those_in_flight(
    model: CountingModel, summarized: tuple[Path, dict[str, str]], tmp_path: Path, kind: str
) -> None:
    folder, expected = summarized
    jobs = 1 if kind == "model-1" else 2
    model.delay_s = DELAY_S * jobs
    words = (*WITH_MODEL, "--jobs", jobs)
    killer, rounds, scratch = Killer(kind), 0, tmp_path / "scratch"
    while not killer.is_done:
        rounds += 1
        out, calls = tmp_path / f"out-{rounds}", Calls(model.asked)
        model.asked.clear()
        while True:
            process = start(command(folder, out, *words, "--resume"), model.environment)
            crew: list[int] = []
            while not killer.is_done and process.poll() is None:
                asked = sum(model.asked.values())
                # From the first call of this life on, so that some are answered and stored before the kill.
                until(
                    lambda: process.poll() is not None or sum(model.asked.values()) > asked,  # noqa: B023
                    "no call was seen",
                )
                killer.sleep(2.5)
                crew = workers(process.pid)
                with frozen([process.pid, *crew]):
                    callers = [pid for pid in (process.pid, *crew) if is_calling(pid, model.port)]
                    if not callers or not calls.in_flight(out, scratch):
                        continue
                    victim = killer.random.choice(callers) if kind == "model-worker" else process.pid
                    send(victim, signal.SIGKILL)
                    killer.landed += 1
                    if victim != process.pid:
                        until(lambda: state(victim) in ("Z", "X", ""), "a killed worker lives")  # noqa: B023
                        until(lambda: is_settled(model.port), "a call does not end")
                        calls.killed(calls.in_flight(out, scratch), 1, jobs)
                if victim == process.pid:
                    break
            finished(process, (0, 1, -signal.SIGKILL))
            until(lambda: not any(state(pid) for pid in crew), "a worker outlives its batch")  # noqa: B023
            if process.returncode == -signal.SIGKILL:
                # Only now: until a worker notices the death of its batch it may store an answer and ask again.
                until(lambda: is_settled(model.port), "a call does not end")
                calls.killed(calls.in_flight(out, scratch), jobs, jobs)
            if process.returncode == 0:
                break
        assert contents(out) == expected
        assert len(model.asked) == CALLS
        calls.check()
    assert killer.landed == killer.wanted


@pytest.mark.engine
@pytest.mark.timeout(0)
def test_a_killed_run_on_ray_resumes_to_the_same_bytes(
    straight: tuple[Path, dict[str, str]], tmp_path: Path, environment: dict[str, str]
) -> None:
    folder, expected = straight
    killer, rounds = Killer("ray"), 0

    def actors(out: Path) -> list[int]:
        """The processes of this Ray that write an output."""
        mark = f"FOLDLINE_RAY_TEST={environment['FOLDLINE_RAY_TEST']}".encode()
        return [pid for pid in marked(mark) if unfinished(pid, out)]

    while not killer.is_done:
        rounds += 1
        out = tmp_path / f"out-{rounds}"
        while True:
            words = command(folder, out, "--engine", "ray", "--jobs", 2, "--resume")
            process = start(words, environment)
            kills = killer.landed
            # An actor is killed, the run goes on; then the driver, and the next run resumes.
            while not killer.is_done and process.poll() is None and killer.landed < kills + 2:
                until(lambda: process.poll() is not None or actors(out), "no work was seen")  # noqa: B023
                killer.sleep()
                with frozen([process.pid]):
                    writers = actors(out)
                    if not writers or process.poll() is not None:
                        continue
                    send(process.pid if killer.landed > kills else killer.random.choice(writers), signal.SIGKILL)
                    killer.landed += 1
            error = finished(process, (0, 1, -signal.SIGKILL))
            assert (process.returncode == 1) <= ("worker_died" in error), error[-3_000:]
            if process.returncode == 0 and killer.is_done:
                break
            until(lambda: not actors(out), "an actor outlives its driver")  # noqa: B023
            if process.returncode == 0:
                break
        finished(start(command(folder, out, "--jobs", 2, "--resume")))
        assert contents(out) == expected
    assert killer.landed == killer.wanted
