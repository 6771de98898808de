"""A model on this machine is reached directly, whatever proxy the environment names; any other goes through it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

import foldline as fl
from faults import model_server as server
from faults.model_server import TEXT, ModelServer

pytest.importorskip("httpx2")

VARIABLES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
#: Names of this machine in a URL, each with an address that it resolves to.
LOOPBACK = {
    "127.0.0.1": "127.0.0.1",
    "localhost": "127.0.0.1",
    "LocalHost": "127.0.0.1",
    "[::1]": "::1",
    "[::ffff:127.0.0.1]": "127.0.0.1",
}
if sys.platform != "darwin":  # which has only the first address of that network
    LOOPBACK |= {host: host for host in ("127.0.0.53", "127.255.255.254")}
MESSAGES = [{"role": "user", "content": "Sum it up."}]

Model = Callable[..., Any]


def compatible(origin: str, **options: Any) -> Any:
    return fl.summarizers.OpenAICompatible("m", f"{origin}/v1", "", 20.0, **options)


def openai_sdk(origin: str) -> Any:
    return fl.summarizers.OpenAISDK("m", client_options={"base_url": f"{origin}/v1", "api_key": "k"}, timeout_s=20.0)


def anthropic_sdk(origin: str) -> Any:
    return fl.summarizers.AnthropicSDK("m", client_options={"base_url": origin, "api_key": "k"}, timeout_s=20.0)


def google_sdk(origin: str) -> Any:
    options = {"http_options": {"base_url": origin}, "api_key": "k"}
    return fl.summarizers.GoogleGenAI("m", client_options=options, timeout_s=20.0)


MODELS = {"openai": openai_sdk, "anthropic": anthropic_sdk, "google.genai": google_sdk, "httpx2": compatible}


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """A server that the variable of the test names as the proxy. It answers itself."""
    for name in (*VARIABLES, "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ModelServer(server.answering("by the proxy")) as proxy:
        monkeypatch.setenv(getattr(request, "param", "ALL_PROXY"), proxy.origin)
        yield proxy


@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize("proxy", VARIABLES, indirect=True)
def test_a_loopback_address_is_reached_without_the_proxy(proxy: ModelServer, host: str) -> None:
    with (
        ModelServer(server.answering(), host=LOOPBACK[host]) as served,
        compatible(f"http://{host}:{served.port}") as model,
    ):
        assert model.complete(MESSAGES, max_tokens=100).text == TEXT
    assert len(served.requests) == 1
    assert proxy.requests == []


@pytest.mark.parametrize("package", MODELS)
def test_every_client_reaches_a_loopback_address_without_the_proxy(proxy: ModelServer, package: str) -> None:
    importlib.import_module(package)
    with ModelServer(server.answering()) as served, MODELS[package](served.origin) as model:
        assert model.complete(MESSAGES, max_tokens=100).text == TEXT
    assert len(served.requests) == 1
    assert proxy.requests == []


@pytest.mark.parametrize("host", ["model.invalid", "localhost.invalid", "notlocalhost", "192.0.2.1", "128.0.0.1"])
@pytest.mark.parametrize("proxy", VARIABLES, indirect=True)
def test_another_address_is_reached_through_the_proxy(proxy: ModelServer, host: str) -> None:
    with compatible(f"http://{host}:8080") as model:
        assert model.complete(MESSAGES, max_tokens=100).text == "by the proxy"
    (request,) = proxy.requests
    assert request.path == f"http://{host}:8080/v1/chat/completions"


def test_a_given_transport_sends_the_requests_to_a_loopback_address(proxy: ModelServer) -> None:
    httpx2 = importlib.import_module("httpx2")
    answer = {"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=answer))
    with compatible("http://localhost:8080", transport=transport) as model:
        assert model.complete(MESSAGES, max_tokens=100).text == TEXT
    assert proxy.requests == []
