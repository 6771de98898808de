"""Models called from threads, event loops and forks, cancelled, dropped, pickled, and misconfigured."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from faults import model_server as server
from faults.model_server import TEXT, Line, ModelServer

httpx2 = pytest.importorskip("httpx2")

KEY = "sk-" + "k4nar1e" * 4
GENEROUS_S = 20.0
ASK = [{"role": "user", "content": "Well?"}]

Serve = Callable[..., ModelServer]


def model_at(served: ModelServer, **options: Any) -> fl.summarizers.OpenAICompatible:
    return fl.summarizers.OpenAICompatible("m", served.base_url, KEY, **{"timeout_s": GENEROUS_S, **options})


class Busy:
    """Answers after a delay, and records the number of concurrent requests."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, line: Line) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.03)
        with self._lock:
            self.now -= 1
        server.answering()(line)


# --- threads, loops, forks --------------------------------------------------------------------------


def test_many_threads_share_one_model(serve: Serve) -> None:
    busy = Busy()
    served = serve(busy)
    with model_at(served) as model, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: model.complete(ASK, max_tokens=9).text, range(48)))
    assert answers == [TEXT] * 48
    assert busy.most > 1


def test_several_event_loops_and_threads_share_one_model(serve: Serve) -> None:
    served = serve(server.answering())
    model = model_at(served)

    async def several() -> list[str]:
        done = await asyncio.gather(*[model.acomplete(ASK, max_tokens=9) for _ in range(6)])
        return [each.text for each in done]

    with ThreadPoolExecutor(4) as pool:
        loops = list(pool.map(lambda _: asyncio.run(several()), range(4)))
    assert loops == [[TEXT] * 6] * 4
    assert model.complete(ASK, max_tokens=9).text == TEXT
    asyncio.run(model.aclose())


def test_concurrent_requests_are_limited(serve: Serve) -> None:
    busy = Busy()
    served = serve(busy)
    with model_at(served, max_concurrency=2) as model:

        async def several() -> None:
            await asyncio.gather(*[model.acomplete(ASK, max_tokens=9) for _ in range(5)])

        with ThreadPoolExecutor(5) as pool:
            done = [pool.submit(model.complete, ASK, max_tokens=9) for _ in range(5)]
            asyncio.run(several())
            assert [each.result().text for each in done] == [TEXT] * 5
    assert busy.most == 2


def test_requests_per_minute_are_limited(serve: Serve) -> None:
    served = serve(server.answering())
    began = time.monotonic()
    with model_at(served, requests_per_minute=60 / 0.2) as model, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: model.complete(ASK, max_tokens=9), range(4)))
    # The n-th comes no earlier than n times the interval; the delay on top depends on the load.
    assert all(request.at - began > 0.199 * n for n, request in enumerate(served.requests))


def test_waiting_for_a_slot_counts_toward_the_deadline(serve: Serve) -> None:
    served = serve(server.answering())
    with model_at(served, requests_per_minute=0.5) as model:
        model.complete(ASK, max_tokens=9)
        with pytest.raises(fl.errors.SummaryError, match=r"^timeout"):
            model.complete(ASK, max_tokens=9, timeout_s=0.2)
    assert len(served.requests) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_opens_its_own_connections(serve: Serve) -> None:
    served = serve(server.answering())
    with model_at(served) as model:
        assert model.complete(ASK, max_tokens=9).text == TEXT
        child = os.fork()
        if child == 0:
            is_same = False
            try:
                is_same = model.complete(ASK, max_tokens=9).text == TEXT
                model.close()
            finally:
                os._exit(0 if is_same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert model.complete(ASK, max_tokens=9).text == TEXT
    assert len(served.requests) == 3


@pytest.mark.parametrize("way", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy])
def test_copies_open_their_own_connections(serve: Serve, way: Callable[[Any], Any]) -> None:
    served = serve(server.answering())
    with model_at(served, headers={"x-team": "blue"}, max_concurrency=1) as model:
        model.complete(ASK, max_tokens=9)
        with way(model) as twin:
            assert twin.complete(ASK, max_tokens=9).text == TEXT
    assert [request.headers["x-team"] for request in served.requests] == ["blue", "blue"]
    assert served.requests[1].headers["authorization"] == f"Bearer {KEY}"


def test_a_model_may_be_closed_and_used_again(serve: Serve) -> None:
    served = serve(server.answering())
    model = model_at(served)
    for _ in range(2):
        assert model.complete(ASK, max_tokens=9).text == TEXT
        model.close()
        model.close()


# --- cancellation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [server.silent, server.dripping_body])
def test_cancelling_closes_the_connection(serve: Serve, behaviour: Callable[[Line], None]) -> None:
    served = serve(behaviour)

    async def main(work: Callable[[], Any]) -> None:
        task = asyncio.ensure_future(work())
        await asyncio.to_thread(served.came.acquire)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with model_at(served) as model:
        asyncio.run(main(lambda: model.acomplete(ASK, max_tokens=9)))
        assert served.gone.acquire(timeout=GENEROUS_S)


def test_cancelling_a_fold_closes_the_connection(serve: Serve) -> None:
    served = serve(server.silent)
    messages = [{"role": ("user", "assistant")[i % 2], "content": "word " * 200} for i in range(8)]
    before = copy.deepcopy(messages)

    async def main(work: Callable[[], Any]) -> None:
        task = asyncio.ensure_future(work())
        await asyncio.to_thread(served.came.acquire)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with model_at(served) as model:
        strategy = fl.strategies.Summarize(model, keep=fl.KeepMessages(2))
        compactor = fl.Compactor(fl.triggers.Manual(), strategy)
        for work in (
            lambda: fl.acompact(messages, fl.KeepMessages(2), summarizer=model, on_failure="raise"),
            lambda: compactor.acompact(messages, force=True),
        ):
            asyncio.run(main(work))
            assert served.gone.acquire(timeout=GENEROUS_S)
    assert messages == before


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_call(serve: Serve) -> None:
    served = serve(server.silent)
    code = f"""
import foldline as fl
model = fl.summarizers.OpenAICompatible("m", {served.base_url!r}, "k", timeout_s=300)
try:
    model.complete([], max_tokens=9)
except KeyboardInterrupt:
    print("interrupted", flush=True)
input()
"""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-W", "error", "-c", code], text=True, **pipes) as child:
        until = time.monotonic() + GENEROUS_S
        while not served.requests and time.monotonic() < until:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        # The connection is closed although the process continues.
        assert served.gone.acquire(timeout=GENEROUS_S)
        out, err = child.communicate("\n", timeout=GENEROUS_S)
    assert (child.returncode, out, err) == (0, "interrupted\n", "")


def test_a_process_exits_quietly_with_open_models(serve: Serve) -> None:
    served = serve(server.answering(), server.silent)
    code = f"""
import threading
import foldline as fl
model = fl.summarizers.OpenAICompatible("m", {served.base_url!r}, "k", timeout_s=300)
other = fl.summarizers.OpenAICompatible("m", {served.base_url!r}, "k", timeout_s=300)
print(model.complete([], max_tokens=9).text)
threading.Thread(target=lambda: other.complete([], max_tokens=9), daemon=True).start()
input()
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as child:
        until = time.monotonic() + GENEROUS_S
        while len(served.requests) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        out, err = child.communicate("\n", timeout=GENEROUS_S)
    assert (child.returncode, out) == (0, TEXT + "\n")
    assert "ResourceWarning" not in err
    assert "Task was destroyed" not in err


def test_a_dropped_model_leaves_no_connection_open(serve: Serve) -> None:
    """Warnings about unclosed sockets are errors here."""

    def kept_alive(line: Line) -> None:
        body = b'{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}'
        line.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        line.hang()

    served = serve(kept_alive)
    model: Any = model_at(served)
    assert model.complete(ASK, max_tokens=9).text == "x"
    del model
    gc.collect()
    assert served.gone.acquire(timeout=GENEROUS_S)


# --- keys -------------------------------------------------------------------------------------------


def test_the_key_appears_in_no_output(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served = serve(server.failing(500, {"error": {"code": KEY, "message": KEY}}, retry_after_ms="1"))
    with caplog.at_level("DEBUG"), model_at(served, headers={"x-key": KEY}) as model:
        told = repr(model) + str(model)
        with pytest.raises(fl.errors.SummaryError) as caught:
            model.complete(ASK, max_tokens=9)
    told += f"{caught.value}{caught.value!r}{caught.value.__context__!r}{caught.value.__cause__!r}"
    assert KEY not in told
    assert KEY not in caplog.text
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert KEY.encode() not in pickle.dumps(fl.summarizers.OpenAICompatible("m", served.base_url))


def test_key_and_address_come_from_the_environment(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(server.answering())
    monkeypatch.setenv("OPENAI_BASE_URL", served.base_url + "/")
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    for key in (None, "given", ""):
        with fl.summarizers.OpenAICompatible("m", api_key=key) as model:
            model.complete(ASK, max_tokens=9)
    sent = [request.headers.get("authorization") for request in served.requests]
    assert sent == ["Bearer from-the-environment", "Bearer given", None]


def test_without_a_key_openais_own_endpoint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(fl.errors.ConfigError, match=r"^missing_api_key: .*\(at api_key\)$"):
        fl.summarizers.OpenAICompatible("m")
    fl.summarizers.OpenAICompatible("m", "http://localhost:1/v1")


# --- requests ---------------------------------------------------------------------------------------


def test_fields_of_the_request(serve: Serve) -> None:
    served = serve(server.answering())
    options: dict[str, Any] = {"max_tokens_field": "max_completion_tokens", "thinking_tokens": 100}
    with model_at(served, stream=True, extra_body={"stream_options": None, "top_p": 0.5}, **options) as model:
        model.complete([{"role": "user", "content": "\ud83d lone"}], max_tokens=9)
    (request,) = served.requests
    assert request.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "? lone"}],
        "max_completion_tokens": 109,
        "stream": True,
        "top_p": 0.5,
    }


def test_a_custom_transport_is_used() -> None:
    def handle(request: Any) -> Any:
        assert request.url == "https://elsewhere.example/v1/chat/completions"
        return httpx2.Response(200, json=server.whole("openai"))

    url = "https://elsewhere.example/v1"
    with fl.summarizers.OpenAICompatible("m", url, KEY, transport=httpx2.MockTransport(handle)) as model:
        assert model.complete(ASK, max_tokens=9).text == TEXT


def test_lone_surrogates_of_an_answer_are_replaced(serve: Serve) -> None:
    body = b'{"choices": [{"message": {"content": "so \\ud83d far"}, "finish_reason": "stop"}]}'
    with model_at(serve(server.saying(body))) as model:
        assert model.complete(ASK, max_tokens=9).text == "so \ufffd far"


def test_parts_of_an_answer_are_joined(serve: Serve) -> None:
    parts = (
        b'[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so "}, {"type": "text", "text": "far"}]'
    )
    body = b'{"choices": [{"message": {"content": ' + parts + b'}, "finish_reason": "stop"}], "usage": {}}'
    with model_at(serve(server.saying(body))) as model:
        completion = model.complete(ASK, max_tokens=9)
    assert (completion.text, completion.input_tokens, completion.output_tokens) == ("so far", None, None)


# --- options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"model": ""}, "model"),
        ({"model": 7}, "model"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"timeout_s": None}, "timeout_s"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 1.5}, "max_attempts"),
        ({"max_bytes": True}, "max_bytes"),
        ({"temperature": -0.1}, "temperature"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_tokens_field": "tokens"}, "max_tokens_field"),
        ({"thinking_tokens": -1}, "thinking_tokens"),
        ({"base_url": "localhost:8080"}, "base_url"),
        ({"base_url": "ftp://host/v1"}, "base_url"),
        ({"base_url": "http://[/v1"}, "base_url"),
        ({"base_url": f"http://user:{KEY}@host/v1"}, "base_url"),
        ({"base_url": f"http://host/v1?key={KEY}"}, "base_url"),
        ({"api_key": KEY + "\n"}, "api_key"),
        ({"api_key": "schlüssel"}, "api_key"),
        ({"headers": {"x-a": "1\r\nx-b: 2"}}, "headers"),
    ],
)
def test_options_out_of_range_are_refused_before_any_work(options: dict[str, Any], path: str) -> None:
    with pytest.raises(fl.errors.ConfigError) as caught:
        fl.summarizers.OpenAICompatible(**{"model": "m", "base_url": "http://host/v1", "api_key": "k", **options})
    assert caught.value.path == path
    assert KEY not in str(caught.value)


def test_without_the_extra_the_error_names_it(tmp_path: Path) -> None:
    (tmp_path / "httpx2.py").write_text("raise ImportError('no')\n")
    code = "import foldline as fl; fl.summarizers.OpenAICompatible('m', 'http://h/v1', 'k')"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert "ConfigError: missing_extra: needs the extra llm" in done.stderr


def test_reading_the_name_loads_no_client() -> None:
    code = (
        "import sys, foldline as fl; fl.summarizers.OpenAICompatible; print({'httpx2', 'stamina'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
