"""The SDKs' own clients against the same server: every failure is typed, in time, and changes nothing."""

from __future__ import annotations

import asyncio
import copy
import importlib
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

import foldline as fl
from faults import model_server as server
from faults.model_server import TEXT, Behaviour, Line, ModelServer

KEY = "sk-" + "k4nar1e" * 4
SECRET = "n1ghtingale"
GENEROUS_S = 30.0

Serve = Callable[..., ModelServer]


@pytest.fixture(scope="module", autouse=True)
def _sdks() -> None:
    """Load the SDKs before a deadline runs, and not while tests are collected: that takes seconds."""
    for package in ("openai", "anthropic", "google.genai"):
        importlib.import_module(package)


def messages() -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": f"{i} {SECRET} " + "word " * 200} for i in range(8)]


@dataclass(frozen=True)
class Way:
    """Which SDK, with which client, asked how."""

    sdk: str
    client: str
    asynchronous: bool

    def __str__(self) -> str:
        return f"{self.sdk}-{self.client}-{'async' if self.asynchronous else 'sync'}"

    def _made(self, address: str) -> Any:
        """A client of the SDK's, with its own retries left on."""
        if self.sdk == "openai":
            import openai

            return (openai.OpenAI, openai.AsyncOpenAI)[self.client == "asynchronous"](base_url=address, api_key=KEY)
        if self.sdk == "anthropic":
            import anthropic

            made = (anthropic.Anthropic, anthropic.AsyncAnthropic)[self.client == "asynchronous"]
            return made(base_url=address, api_key=KEY)
        from google import genai

        return genai.Client(api_key=KEY, http_options={"base_url": address, "retry_options": {"attempts": 4}})

    @contextmanager
    def model(self, served: ModelServer, **options: Any) -> Iterator[Any]:
        """A model of the SDK; its client is closed at the end."""
        address = served.base_url if self.sdk == "openai" else served.origin
        adapter = {
            "openai": fl.summarizers.OpenAISDK,
            "anthropic": fl.summarizers.AnthropicSDK,
            "google": fl.summarizers.GoogleGenAI,
        }[self.sdk]
        options = {"timeout_s": GENEROUS_S, **options}
        if self.client == "own":
            address_option = {"http_options": {"base_url": address}} if self.sdk == "google" else {"base_url": address}
            with adapter("asked-for", client_options={**address_option, "api_key": KEY}, **options) as model:
                yield model
            return
        client = self._made(address)
        try:
            yield adapter("asked-for", client, **options)
        finally:
            # An asynchronous client is closed on its event loop, in `fold`.
            if self.client == "synchronous":
                client.close()

    def fold(self, model: Any) -> fl.FoldResult:
        """Folds with a model; the messages are compared before and after."""
        given = messages()
        before = copy.deepcopy(given)

        async def main() -> fl.FoldResult:
            try:
                return await fl.acompact(given, fl.KeepMessages(2), summarizer=model)
            finally:
                if self.client == "asynchronous":
                    await model._client.close()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fl.errors.FoldlineWarning)
            if self.asynchronous:
                result = asyncio.run(main())
            else:
                result = fl.compact(given, fl.KeepMessages(2), summarizer=model)
        assert given == before
        return result

    def failed(self, served: ModelServer, **options: Any) -> str:
        """The code of a fold that failed and left everything as it was."""
        began = time.monotonic()
        with self.model(served, **options) as model:
            result = self.fold(model)
        assert time.monotonic() - began < GENEROUS_S
        assert isinstance(result.error, fl.errors.SummaryError)
        assert result.messages == messages()
        told = f"{result.error} {result.error!r} {result.error.__cause__!r} {result.error.__context__!r}"
        assert KEY not in told
        assert SECRET not in told
        return result.error.code


OWN = [Way(sdk, "own", asynchronous) for sdk in ("openai", "anthropic", "google") for asynchronous in (False, True)]
GIVEN = [
    *[Way(sdk, "synchronous", each) for sdk in ("openai", "anthropic", "google") for each in (False, True)],
    *[Way(sdk, "asynchronous", True) for sdk in ("openai", "anthropic")],
]


@pytest.fixture(params=OWN + GIVEN, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    way: Way = request.param
    return way


def test_B6_a_model_of_an_sdk_is_drained_and_writes_the_summary(way: Way, serve: Serve) -> None:
    served = serve(server.answering())
    with way.model(served, temperature=0.25) as model:
        result = way.fold(model)
    assert result.error is None
    assert TEXT in result.summary
    assert result.completion is not None
    assert (result.completion.model, result.completion.finish_reason) == ("served", "stop")
    assert (result.completion.input_tokens, result.completion.output_tokens) == (321, 12)
    (request,) = served.requests
    assert request.wants_stream
    assert "0.25" in str(request.body)
    assert SECRET in str(request.body)
    assert KEY in str(request.headers)


@dataclass(frozen=True)
class Row:
    """What the server does, and what comes of it."""

    behaviour: Behaviour
    code: str
    requests: int = 1


def breaking_with_an_error(line: Line) -> None:
    """An error in the middle of a stream, as each provider sends it."""
    line.head(content_type="text/event-stream")
    for piece in list(server.events(line.request.dialect))[:2]:
        line.send(piece)
    error = {"type": "overloaded_error", "message": f"no {SECRET} {KEY}", "code": 503, "status": "UNAVAILABLE"}
    body = {"error": {**error, "code": None}} if line.request.dialect == "openai" else {"type": "error", "error": error}
    line.send(server.event(body, "error" if line.request.dialect == "anthropic" else None))


ROWS = {
    "400": Row(server.failing(400, {"error": {"message": f"{SECRET} {KEY}", "type": "x"}}), "request_rejected"),
    "401": Row(server.failing(401), "not_authorized"),
    "404": Row(server.failing(404), "unknown_endpoint"),
    "too long for the model": Row(server.overflowing, "context_overflow"),
    "429": Row(server.failing(429, retry_after_ms="1"), "rate_limited", 3),
    "429 for an hour": Row(server.failing(429, retry_after="3600"), "rate_limited", 1),
    "500": Row(server.failing(500, retry_after_ms="1"), "server_error", 3),
    "empty": Row(server.answering(""), "empty_summary"),
    "white space": Row(server.answering(" \n\t "), "empty_summary"),
    "a tool call": Row(server.answering(None, end="tool_call"), "tool_call"),
    "cut off": Row(server.answering(end="length"), "incomplete_summary"),
    "no reason why it ended": Row(server.answering(end=None), "incomplete_stream"),
    # It came to its end, so it is asked for once more.
    "longer than what it replaces": Row(server.answering("and so on " * 600), "summary_too_long", 2),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_failure_is_typed_and_changes_nothing(way: Way, serve: Serve, row: str) -> None:
    served = serve(ROWS[row].behaviour)
    assert way.failed(served) == ROWS[row].code
    assert len(served.requests) == ROWS[row].requests


def test_a_filter_or_a_refusal(way: Way, serve: Serve) -> None:
    code = "refused" if way.sdk == "anthropic" else "content_filter"
    assert way.failed(serve(server.answering(end="filter"))) == code


def test_an_error_in_a_stream(way: Way, serve: Serve) -> None:
    """Google's SDK passes over it; then the stream ends without a reason."""
    code = "incomplete_stream" if way.sdk == "google" else "stream_error"
    assert way.failed(serve(breaking_with_an_error)) == code


@pytest.mark.parametrize("behaviour", [server.silent, server.silent_after_head, server.dripping_body])
def test_the_deadline_is_for_the_whole_call(way: Way, serve: Serve, behaviour: Behaviour) -> None:
    served = serve(behaviour)
    assert way.failed(served, timeout_s=2.0) == "timeout"
    assert len(served.requests) == 1


def dripping_events(line: Line) -> None:
    """Good events, and no end of them."""
    line.head(content_type="text/event-stream")
    pieces = [piece for piece in server.events(line.request.dialect) if b"build " in piece or b"message_start" in piece]
    for piece in pieces[:-1]:
        line.send(piece)
    line.drip(pieces[-1])


def test_a_stream_without_end_is_given_up_and_closed(way: Way, serve: Serve) -> None:
    served = serve(dripping_events)
    assert way.failed(served, timeout_s=2.0) == "timeout"
    assert served.gone.acquire(timeout=GENEROUS_S)


def test_text_beyond_the_cap(way: Way, serve: Serve) -> None:
    served = serve(server.answering("and so on " * 600))
    assert way.failed(served, max_bytes=2_000) == "response_too_large"


@pytest.mark.parametrize("way", OWN, ids=str)
@pytest.mark.parametrize(
    ("behaviour", "code", "requests"),
    [
        (server.hanging_up, "connection_failed", 3),
        (server.bursting(40_000_000), "response_too_large", 1),
        (server.flooding, "response_too_large", 1),
        (server.streaming(b'data: {"a": "\xff"}\n\n'), "bad_utf8", 1),
        (server.saying(b"{}", content_encoding="gzip"), "bad_compression", 1),
        (server.streaming(server.event("{", "message_start")), "not_json", 1),
    ],
    ids=["hung up", "a bomb", "without end", "bad UTF-8", "bad gzip", "half a JSON"],
)
def test_clients_of_our_own_are_bounded(way: Way, serve: Serve, behaviour: Behaviour, code: str, requests: int) -> None:
    served = serve(behaviour)
    assert way.failed(served, max_bytes=2**20) == code
    assert len(served.requests) == requests


@pytest.mark.parametrize(
    ("way", "behaviour"),
    [
        pytest.param(way, behaviour, id=f"{way}-{behaviour.__name__}")
        for way in OWN
        for behaviour in (server.flooding, server.endless)
        if (way.sdk, behaviour) != ("google", server.endless)  # its SDK reads comments as JSON and refuses long lines
    ],
)
def test_the_deadline_holds_where_there_is_always_more_to_read(way: Way, serve: Serve, behaviour: Behaviour) -> None:
    served = serve(behaviour)
    assert way.failed(served, timeout_s=0.7, max_bytes=2**40) == "timeout"


@pytest.mark.parametrize("way", OWN, ids=str)
def test_what_is_no_answer_at_all(way: Way, serve: Serve) -> None:
    served = serve(server.saying(b"<html><body>Sign in</body></html>", content_type="text/html"))
    assert way.failed(served) in ("no_choices", "incomplete_stream", "not_json")


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_an_asynchronous_client_needs_its_event_loop(sdk: str, serve: Serve) -> None:
    way = Way(sdk, "asynchronous", True)
    with way.model(serve(server.answering())) as model:
        with pytest.raises(fl.errors.SummaryError, match=r"^async_summarizer"):
            model.complete([], max_tokens=9)
        asyncio.run(model._client.close())


@pytest.mark.parametrize("way", [each for each in OWN if not each.asynchronous], ids=str)
def test_system_messages_go_where_they_belong(way: Way, serve: Serve) -> None:
    served = serve(server.answering())
    with way.model(served) as model:
        asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Well?"}]
        assert model.complete(asked, max_tokens=77).text == TEXT
    body = served.requests[0].body
    if way.sdk == "openai":
        assert (body["messages"], body["max_tokens"]) == (asked, 77)
    elif way.sdk == "anthropic":
        assert (body["system"], body["messages"], body["max_tokens"]) == ("Be brief.", asked[1:], 77)
    else:
        assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
        assert body["contents"] == [{"role": "user", "parts": [{"text": "Well?"}]}]
        assert body["generationConfig"]["maxOutputTokens"] == 77
