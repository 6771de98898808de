"""LiteLLM's proxy as a process: a client of OpenAI's SDK in front of it, a server on this machine behind it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adapter_checks as checks
import openai
import openai_loop
import pytest
from adapter_checks import SUMMARY, TURNS, Record, Script
from fake_server import serving

HERE = Path(__file__).resolve().parent
KEY = "sk-of-this-test"

#: Until the proxy answers: it imports for many seconds.
START_S = 180


@dataclass(repr=False)
class ProxyRecord(Record):
    """What a run showed: the folds are those that the hook's process wrote down."""

    log: Path = Path()

    @property
    def folds(self) -> int:
        return self._lines().count("fold")

    def count_summaries(self) -> None:
        self.summaries = self._lines().count("summary")

    def _lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").split() if self.log.exists() else []


@dataclass(repr=False)
class Proxy:
    """A running proxy, and what its server behind it saw."""

    client: openai.OpenAI
    record: ProxyRecord
    script: Script

    def turn(self, history: list[Any], turn: int, name: str, *, stream: bool = False) -> str:
        """One turn; gives what a user sees."""
        self.script.session = name
        history.append({"role": "user", "content": checks.prompt(turn)})
        goes_on, seen = True, ""
        while goes_on:
            answer: Any = self.client.chat.completions.create(
                model="gpt-4o", messages=history, tools=openai_loop.TOOLS, stream=stream,
                extra_body={"metadata": {"session_id": name}},
            )  # type: ignore[call-overload, unused-ignore]  # fmt: skip
            if stream:
                deltas = [chunk.choices[0].delta for chunk in answer if chunk.choices]
                text = "".join(delta.content or "" for delta in deltas)
                found = [call for delta in deltas for call in delta.tool_calls or ()]
            else:
                message = answer.choices[0].message
                text, found = message.content or "", message.tool_calls or []
            calls = [(call.id, call.function.name, call.function.arguments) for call in found]
            seen += text
            goes_on = openai_loop.answered(history, text or None, calls)
        return seen

    def turns(self) -> None:
        history = openai_loop.beginning()
        for turn in range(TURNS):
            self.turn(history, turn, "a")
        self.record.count_summaries()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_until_ready(process: subprocess.Popen[bytes], base: str, output: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, output.read_text(encoding="utf-8", errors="replace")[-3_000:]
        try:
            with urllib.request.urlopen(f"{base}/health/liveliness", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
    raise AssertionError("the proxy does not start")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    processes: list[subprocess.Popen[bytes]] = []
    record, script = ProxyRecord(log=tmp_path / "log"), Script()
    with serving(script, record) as behind:
        (tmp_path / "hooks.py").write_text("from proxy_hooks import fold\n", encoding="utf-8")
        (tmp_path / "config.yaml").write_text(
            "model_list:\n"
            "  - model_name: gpt-4o\n"
            f"    litellm_params: {{model: openai/gpt-4o, api_base: {behind}, api_key: none}}\n"
            "litellm_settings: {callbacks: hooks.fold, num_retries: 0}\n"
            f"general_settings: {{master_key: {KEY}}}\n",
            encoding="utf-8",
        )

        def start(sabotage: str = "") -> Proxy:
            port, output = free_port(), tmp_path / "output"
            paths = (str(HERE), str(HERE.parents[1] / "python"))
            environment = os.environ | {
                "PYTHONPATH": os.pathsep.join(paths),
                "FOLDLINE_PROXY_LOG": str(record.log),
                "FOLDLINE_SABOTAGE": sabotage,
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            }
            command = [str(Path(sys.executable).with_name("litellm")), "--config", "config.yaml"]
            with output.open("wb") as stream:
                process = subprocess.Popen(
                    [*command, "--host", "127.0.0.1", "--port", str(port)],
                    cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
                )  # fmt: skip
            processes.append(process)
            base = f"http://127.0.0.1:{port}"
            wait_until_ready(process, base, output)
            client = openai.OpenAI(base_url=f"{base}/v1", api_key=KEY, max_retries=0)
            return Proxy(client, record, script)

        yield start
        for process in processes:
            process.terminate()
            process.wait(30)


def test_four_turns(started: Any, row: Any) -> None:
    proxy = started()
    proxy.turns()
    checks.check(proxy.record)
    row("LiteLLM, proxy", "litellm", proxy.record)


def test_two_sessions_in_turns_and_no_summary_in_their_streams(started: Any) -> None:
    proxy = started()
    histories = {name: openai_loop.beginning() for name in ("a", "b")}
    seen = ""
    for turn in range(TURNS):
        for name, history in histories.items():
            seen += proxy.turn(history, turn, name, stream=True)
    proxy.record.count_summaries()
    checks.check(proxy.record, sessions=2)
    assert SUMMARY not in seen
    assert SUMMARY not in str(histories)


@pytest.mark.parametrize("name", checks.SABOTAGE)
def test_sabotage_is_noticed(started: Any, name: str) -> None:
    proxy = started(name)
    checks.assert_noticed(name, proxy.turns, proxy.record)
