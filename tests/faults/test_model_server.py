"""Every failure of a model over the network: a typed error, in time, and unchanged messages."""

from __future__ import annotations

import asyncio
import copy
import json
import socket
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import pytest

import foldline as fl
from faults import model_server as server
from faults.model_server import TEXT, Behaviour, ModelServer

pytest.importorskip("httpx2")

KEY = "sk-" + "k4nar1e" * 4
SECRET = "n1ghtingale"
"""Occurs in the messages; no error may contain it."""

GENEROUS_S = 20.0
"""Far more than any call may take, far less than the server hangs."""


def messages() -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": f"{i} {SECRET} " + "word " * 200} for i in range(8)]


@dataclass(frozen=True)
class Way:
    """The ways to request a summary."""

    asynchronous: bool
    stream: bool

    def __str__(self) -> str:
        return f"{'async' if self.asynchronous else 'sync'}-{'stream' if self.stream else 'whole'}"

    def fold(self, model: Any, **options: Any) -> fl.FoldResult:
        """Folds with a model; compares the messages before and after."""
        given = messages()
        before = copy.deepcopy(given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fl.errors.FoldlineWarning)
            if self.asynchronous:
                result = asyncio.run(fl.acompact(given, fl.KeepMessages(2), summarizer=model, **options))
            else:
                result = fl.compact(given, fl.KeepMessages(2), summarizer=model, **options)
        assert given == before
        return result


WAYS = [Way(asynchronous, stream) for asynchronous in (False, True) for stream in (False, True)]


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    way: Way = request.param
    return way


def model_at(address: str, way: Way, **options: Any) -> fl.summarizers.OpenAICompatible:
    return fl.summarizers.OpenAICompatible(
        "asked-for", address, KEY, **{"timeout_s": GENEROUS_S, "stream": way.stream, **options}
    )


def failed(way: Way, base_url: str, **options: Any) -> fl.errors.SummaryError:
    """The error of a fold that failed and changed nothing."""
    began = time.monotonic()
    with model_at(base_url, way, **options) as model:
        result = way.fold(model)
    assert time.monotonic() - began < GENEROUS_S
    assert isinstance(result.error, fl.errors.SummaryError)
    assert not result.changed
    assert result.messages == messages()
    told = f"{result.error} {result.error!r} {result.error.__cause__!r} {result.error.__context__!r}"
    assert KEY not in told
    assert SECRET not in told
    return result.error


# --- successes --------------------------------------------------------------------------------------


def test_a_model_writes_the_summary(way: Way, serve: Callable[..., ModelServer]) -> None:
    served = serve(server.answering())
    with model_at(served.base_url, way, temperature=0.3, extra_body={"seed": 7}) as model:
        result = way.fold(model)
    assert result.error is None
    assert TEXT in result.summary
    assert result.completion is not None
    assert (result.completion.model, result.completion.finish_reason) == ("served", "stop")
    assert (result.completion.input_tokens, result.completion.output_tokens) == (321, 12)
    (request,) = served.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (request.body["model"], request.body["temperature"], request.body["seed"]) == ("asked-for", 0.3, 7)
    assert 0 < request.body["max_tokens"] <= 1_000
    assert request.body["stream"] is way.stream


def test_B6_a_client_that_only_streams_is_drained(way: Way, serve: Callable[..., ModelServer]) -> None:
    """A client that never streams is read too: the answer decides, not the request."""
    other = Way(way.asynchronous, not way.stream)
    answers = {
        True: server.streaming(*server.events("openai")),
        False: server.saying(json.dumps(server.whole("openai")).encode()),
    }
    served = serve(answers[not way.stream])
    with model_at(served.base_url, way) as model:
        result = way.fold(model)
    assert TEXT in result.summary, other
    assert result.completion is not None
    assert result.completion.output_tokens == 12


def test_B6_a_separate_model_with_instructions_writes_the_summary(serve: Callable[..., ModelServer]) -> None:
    served = serve(server.answering())
    with fl.summarizers.OpenAICompatible("small", served.base_url, KEY) as small:
        strategy = fl.strategies.Summarize(small, keep=fl.KeepMessages(2))
        compactor = fl.Compactor(fl.triggers.Manual(), strategy)
        result = compactor.compact(messages(), force=True, instructions="Mind the header.")
        assert result.error is None
        assert result.changed
        again = asyncio.run(compactor.acompact(messages(), force=True, instructions="Mind the header."))
        assert again.changed
    for request in served.requests:
        assert request.body["model"] == "small"
        assert "Mind the header." in json.dumps(request.body["messages"])


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_transient_errors_are_retried(way: Way, serve: Callable[..., ModelServer], status: int) -> None:
    served = serve(
        server.failing(status, retry_after_ms="1"), server.failing(status, retry_after="0"), server.answering()
    )
    with model_at(served.base_url, way) as model:
        assert TEXT in way.fold(model).summary
    assert len(served.requests) == 3


def test_a_connection_closed_before_the_answer_is_retried(way: Way, serve: Callable[..., ModelServer]) -> None:
    served = serve(server.hanging_up, server.answering())
    with model_at(served.base_url, way) as model:
        assert TEXT in way.fold(model).summary
    assert len(served.requests) == 2


# --- failures ---------------------------------------------------------------------------------------

STREAM_ERROR = server.event({"error": {"message": f"no {SECRET}", "type": "overloaded_error", "code": KEY}})
CALL = server.whole("openai", end="tool_call")
CALL["choices"][0]["finish_reason"] = "stop"
CHUNK = list(server.events("openai"))[1]
ROWS: dict[str, tuple[Behaviour, str, int]] = {
    # statuses: at most three attempts, or one
    "400": (server.failing(400), "request_rejected", 1),
    "400 that repeats": (server.failing(400, {"error": {"message": SECRET, "code": KEY}}), "request_rejected", 1),
    "401": (server.failing(401), "not_authorized", 1),
    "403": (server.failing(403), "not_authorized", 1),
    "404": (server.failing(404), "unknown_endpoint", 1),
    "413": (server.failing(413), "request_too_large", 1),
    "422": (server.failing(422), "request_rejected", 1),
    "408": (server.failing(408, retry_after_ms="1"), "server_timeout", 3),
    "429": (server.failing(429, retry_after_ms="1"), "rate_limited", 3),
    "429 that says not to": (server.failing(429, x_should_retry="false"), "rate_limited", 1),
    "500": (server.failing(500, retry_after_ms="1"), "server_error", 3),
    "503 cut off": (server.failing(503, retry_after_ms="1", content_encoding="gzip"), "server_error", 3),
    "529": (server.failing(529, retry_after_ms="1"), "server_error", 3),
    "204": (server.saying(b"", 204), "unexpected_status", 1),
    "HTML with a 502": (server.saying(b"<html>", 502, "text/html", retry_after_ms="1"), "server_error", 3),
    "too long for the model": (server.overflowing, "context_overflow", 1),
    # connections
    "hung up": (server.hanging_up, "connection_failed", 3),
    "no HTTP": (server.babbling, "connection_failed", 3),
    "broken off": (server.breaking_off, "connection_lost", 1),
    # unusable answers
    "nothing": (server.saying(b""), "not_json", 1),
    "HTML": (server.saying(b"<html><body>Sign in</body></html>", content_type="text/html"), "not_json", 1),
    "half a JSON": (server.saying(b'{"choices": ['), "not_json", 1),
    "a list": (server.saying(b"[]"), "not_json", 1),
    "deep JSON": (server.saying(b"[" * 100_000), "not_json", 1),
    "an error": (server.saying(b'{"error": {"message": "no"}}'), "provider_error", 1),
    "no choices": (server.saying(b'{"choices": []}'), "no_choices", 1),
    "choices of another shape": (server.saying(b'{"choices": [7], "usage": 3}'), "no_choices", 1),
    "bad UTF-8": (server.saying(b'{"choices": "\xff"}'), "bad_utf8", 1),
    "half a character": (server.saying(b'{"choices": "\xe2\x82'), "bad_utf8", 1),
    "bad gzip": (server.saying(b"{}", content_encoding="gzip"), "bad_compression", 1),
    "a bomb": (server.bursting(40_000_000), "response_too_large", 1),
    "a bomb in a bomb": (server.bursting(40_000_000, layers=2), "response_too_large", 1),
    "without end": (server.endless, "response_too_large", 1),
    # answers of a model
    "empty": (server.answering(""), "empty_summary", 1),
    "null": (server.answering(None), "empty_summary", 1),
    "white space": (server.answering(" \n\t\u3000 "), "empty_summary", 1),
    "refused": (server.answering(end="refusal"), "refused", 1),
    "a tool call": (server.answering(None, end="tool_call"), "tool_call", 1),
    "a tool call beside a text": (server.answering(end="tool_call"), "tool_call", 1),
    "a tool call, said to be the end": (server.saying(json.dumps(CALL).encode()), "tool_call", 1),
    "cut off": (server.answering(end="length"), "incomplete_summary", 1),
    "filtered": (server.answering(end="filter"), "content_filter", 1),
    "ended for some reason": (server.answering(end="because"), "unknown_finish_reason", 1),
    "no reason why it ended": (server.answering(end=None), "incomplete_stream", 1),
    # The answer is complete, so it is retried once.
    "longer than what it replaces": (server.answering("and so on " * 600), "summary_too_long", 2),
    # streams
    "a stream of nothing": (server.streaming(), "no_choices", 1),
    "a stream that is done at once": (server.streaming(server.event("[DONE]")), "no_choices", 1),
    "a stream that just ends": (server.streaming(CHUNK), "incomplete_stream", 1),
    "a stream that is done in the middle": (server.streaming(CHUNK, server.event("[DONE]")), "incomplete_stream", 1),
    "an error in a stream": (server.streaming(CHUNK, STREAM_ERROR), "stream_error", 1),
    "an event of an error": (server.streaming(CHUNK, server.event({"message": "no"}, "error")), "stream_error", 1),
    "an event without JSON": (server.streaming(CHUNK, server.event("{")), "not_json", 1),
    "a stream in bad UTF-8": (server.streaming(CHUNK, b'data: {"a": "\xff"}\n\n'), "bad_utf8", 1),
    "an event of 2 MiB": (server.streaming(b"data: " + b"a" * 2**21 + b"\n\n"), "event_too_large", 1),
    "a line without end": (server.streaming(b"data: " + b"a" * 2**21), "event_too_large", 1),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_failure_is_typed_and_changes_nothing(way: Way, serve: Callable[..., ModelServer], row: str) -> None:
    behaviour, code, requests = ROWS[row]
    served = serve(behaviour)
    assert failed(way, served.base_url).code == code
    assert len(served.requests) == requests


HANGS = [
    server.silent, server.silent_after_head, server.dripping_head, server.dripping_body, server.dripping_events,
]  # fmt: skip


@pytest.mark.parametrize("behaviour", HANGS, ids=lambda each: each.__name__)
def test_the_deadline_covers_the_whole_call_and_closes_the_connection(
    way: Way, serve: Callable[..., ModelServer], behaviour: Behaviour
) -> None:
    served = serve(behaviour)
    assert failed(way, served.base_url, timeout_s=0.5).code == "timeout"
    assert len(served.requests) == 1
    assert served.gone.acquire(timeout=GENEROUS_S)


def test_the_deadline_holds_while_data_keeps_arriving(way: Way, serve: Callable[..., ModelServer]) -> None:
    served = serve(server.flooding if way.stream else server.endless)
    assert failed(way, served.base_url, timeout_s=0.7, max_bytes=2**40).code == "timeout"


def test_the_deadline_includes_earlier_attempts(way: Way, serve: Callable[..., ModelServer]) -> None:
    served = serve(server.failing(503, retry_after="0.1"), server.silent)
    assert failed(way, served.base_url, timeout_s=0.7).code == "timeout"
    assert len(served.requests) == 2


@pytest.mark.parametrize(
    "asked", [{"retry_after": "3600"}, {"retry_after_ms": "3600000"}, {"retry_after": formatdate(2**31, usegmt=True)}]
)
def test_a_retry_delay_past_the_deadline_is_not_started(
    way: Way, serve: Callable[..., ModelServer], asked: dict[str, str]
) -> None:
    served = serve(server.failing(429, **asked), server.answering())
    assert failed(way, served.base_url).code == "rate_limited"
    assert len(served.requests) == 1


@pytest.mark.parametrize("nonsense", ["soon", "nan", "inf"])
def test_an_invalid_retry_delay_is_replaced(serve: Callable[..., ModelServer], nonsense: str) -> None:
    served = serve(server.failing(429, retry_after=nonsense), server.answering())
    with model_at(served.base_url, WAYS[0]) as model:
        assert TEXT in WAYS[0].fold(model).summary
    assert len(served.requests) == 2


def test_a_refused_connection_is_a_typed_error(way: Way) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = failed(way, f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
    assert error.code == "connection_failed"
    assert "ECONNREFUSED" in str(error)


def test_redirects_are_not_followed(way: Way, serve: Callable[..., ModelServer]) -> None:
    elsewhere = serve(server.answering())
    served = serve(server.redirecting(f"{elsewhere.base_url}/chat/completions"))
    assert failed(way, served.base_url).code == "unexpected_status"
    assert elsewhere.requests == []


def test_on_failure_raise(way: Way, serve: Callable[..., ModelServer]) -> None:
    served = serve(server.answering(end="refusal"))
    with model_at(served.base_url, way) as model, pytest.raises(fl.errors.SummaryError, match=r"^refused"):
        way.fold(model, on_failure="raise")


def test_one_byte_over_the_size_limit(way: Way, serve: Callable[..., ModelServer]) -> None:
    body = json.dumps(server.whole("openai")).encode()
    served = serve(server.saying(body))
    with model_at(served.base_url, way, max_bytes=len(body)) as model:
        assert TEXT in way.fold(model).summary
    assert failed(way, served.base_url, max_bytes=len(body) - 1).code == "response_too_large"
