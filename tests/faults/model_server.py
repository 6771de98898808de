"""A server on loopback with scripted misbehaviour: real sockets, raw bytes, one script entry per request.

It speaks three dialects, by the path of the request: chat completions of OpenAI, messages of Anthropic, and contents of
Gemini, each whole and as a stream. The bytes of a script entry are written unchanged.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

TEXT = "The build was broken by a missing header; it is fixed."
USAGE = {"input": 321, "output": 12}

#: How an entry ends a text: "stop", "length", "filter", "refusal", "tool_call", or None for no end.
End: TypeAlias = "str | None"


@dataclass
class Request:
    """A received request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float = field(default_factory=time.monotonic)

    @property
    def dialect(self) -> str:
        """The provider."""
        if self.path.endswith("/messages"):
            return "anthropic"
        return "gemini" if "enerateContent" in self.path else "openai"

    @property
    def wants_stream(self) -> bool:
        """Whether a stream was requested."""
        return bool(self.body.get("stream")) or "streamGenerateContent" in self.path


@dataclass
class Line:
    """The connection of a request."""

    socket: socket.socket
    request: Request
    server: ModelServer

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def head(self, status: int = 200, **headers: str) -> None:
        """The head of an answer; without a length, the body ends with the connection."""
        lines = [f"HTTP/1.1 {status} Whatever", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def hang(self) -> None:
        """Sends nothing until the client disconnects or the server stops."""
        self.socket.settimeout(0.02)
        while not self.server.ending.is_set():
            try:
                if not self.socket.recv(4096):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        if not self.server.ending.is_set():
            self.server.gone.release()

    def drip(self, piece: bytes, every_s: float = 0.02) -> None:
        """Repeats a chunk until the client disconnects or the server stops."""
        try:
            while not self.server.ending.wait(every_s):
                self.send(piece)
        except OSError:
            self.server.gone.release()


#: The handling of one request.
Behaviour: TypeAlias = Callable[[Line], None]


class ModelServer:
    """Serves on loopback; the n-th request gets the n-th behaviour, and later ones get the last.

    Args:
        script: The behaviours.
        host: The address to listen at.

    Attributes:
        requests: The received requests, in order.
        came: Counts requests.
        gone: Counts clients that closed a connection on which the server hung or dripped.
    """

    def __init__(self, *script: Behaviour, host: str = "127.0.0.1") -> None:
        self.script = script
        self.requests: list[Request] = []
        self.came = threading.Semaphore(0)
        self.gone = threading.Semaphore(0)
        self.ending = threading.Event()
        self._lock = threading.Lock()
        owner = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    owner._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Server((host, 0), Handler)
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.01), daemon=True)

    @property
    def port(self) -> int:
        """Its port."""
        port = self._server.server_address[1]
        assert isinstance(port, int)
        return port

    @property
    def origin(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """The URL of chat completions."""
        return f"{self.origin}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "chunked" in headers.get("transfer-encoding", ""):
            while not body.endswith(b"0\r\n\r\n"):
                body += connection.recv(65536)
            body = b"".join(piece for piece in re.findall(rb"[0-9a-f]+\r\n(.*?)\r\n", body, re.DOTALL | re.IGNORECASE))
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
        request = Request(first.split(" ")[1].partition("?")[0], headers, json.loads(body or b"{}"))
        with self._lock:
            behaviour = self.script[min(len(self.requests), len(self.script) - 1)]
            self.requests.append(request)
        self.came.release()
        behaviour(Line(connection, request, self))


# --- answers, in the three dialects ------------------------------------------------------------------


def whole(dialect: str, text: str | None = TEXT, end: End = "stop") -> dict[str, Any]:
    """An answer in one piece."""
    if dialect == "anthropic":
        content: list[dict[str, Any]] = [] if text is None else [{"type": "text", "text": text}]
        if end == "tool_call":
            content.append({"type": "tool_use", "id": "t", "name": "go", "input": {}})
        ends = {"stop": "end_turn", "length": "max_tokens", "tool_call": "tool_use", "filter": "refusal"}
        usage = {"input_tokens": USAGE["input"], "output_tokens": USAGE["output"]}
        body = {"id": "m", "type": "message", "role": "assistant", "model": "served", "content": content}
        return {**body, "stop_reason": ends.get(end or "", end), "stop_sequence": None, "usage": usage}
    if dialect == "gemini":
        parts: list[dict[str, Any]] = [] if text is None else [{"text": text}]
        if end == "tool_call":
            parts.append({"functionCall": {"name": "go", "args": {}}})
        ends = {"stop": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY", "tool_call": "STOP"}
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
        if end:
            candidate["finishReason"] = ends.get(end, end)
        usage = {"promptTokenCount": USAGE["input"], "candidatesTokenCount": USAGE["output"]}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served"}
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if end == "tool_call":
        message["tool_calls"] = [{"id": "t", "type": "function", "function": {"name": "go", "arguments": "{}"}}]
    if end == "refusal":
        message |= {"content": None, "refusal": "I cannot help with that."}
    ends = {"filter": "content_filter", "tool_call": "tool_calls", "refusal": "stop"}
    usage = {"prompt_tokens": USAGE["input"], "completion_tokens": USAGE["output"], "total_tokens": 333}
    choice = {"index": 0, "message": message, "finish_reason": ends.get(end or "", end)}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "served",
        "choices": [choice],
        "usage": usage,
    }


def event(data: object, name: str | None = None) -> bytes:
    """An event of a stream."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def events(dialect: str, text: str | None = TEXT, end: End = "stop") -> Iterator[bytes]:
    """The same answer as a stream."""
    pieces = re.findall(r"\S*\s*", text)[:-1] if text else [] if text is None else [""]
    answer = whole(dialect, text, end)
    if dialect == "anthropic":
        begun = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
        yield event({"type": "message_start", "message": begun}, "message_start")
        for i, block in enumerate(answer["content"]):
            empty = {**block, "text": ""} if block["type"] == "text" else block
            yield event({"type": "content_block_start", "index": i, "content_block": empty}, "content_block_start")
            for piece in pieces if block["type"] == "text" else ():
                delta = {"type": "text_delta", "text": piece}
                yield event({"type": "content_block_delta", "index": i, "delta": delta}, "content_block_delta")
            yield event({"type": "content_block_stop", "index": i}, "content_block_stop")
        if end:
            delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
            usage = {"output_tokens": USAGE["output"]}
            yield event({"type": "message_delta", "delta": delta, "usage": usage}, "message_delta")
            yield event({"type": "message_stop"}, "message_stop")
        return
    if dialect == "gemini":
        for piece in pieces:
            yield event({"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}, "index": 0}]})
        last = whole(dialect, None, end)
        if end:
            yield event(last)
        return
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "served"}
    yield event({**chunk, "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]})
    message = answer["choices"][0]["message"]
    deltas: list[dict[str, Any]] = [{"content": piece} for piece in pieces if message["content"] is not None]
    if "refusal" in message:
        deltas.append({"refusal": message["refusal"]})
    if "tool_calls" in message:
        deltas.append({"tool_calls": [{"index": 0, **message["tool_calls"][0]}]})
    for delta in deltas:
        yield event({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    if end:
        reason = answer["choices"][0]["finish_reason"]
        yield event({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        yield event({**chunk, "choices": [], "usage": answer["usage"]})
        yield event("[DONE]")


# --- behaviours -------------------------------------------------------------------------------------


def answering(text: str | None = TEXT, end: End = "stop") -> Behaviour:
    """A text, whole or streamed as requested."""

    def behave(line: Line) -> None:
        request = line.request
        if request.wants_stream:
            line.head(content_type="text/event-stream")
            for piece in events(request.dialect, text, end):
                line.send(piece)
        else:
            saying(json.dumps(whole(request.dialect, text, end)).encode())(line)

    return behave


def saying(body: bytes, status: int = 200, content_type: str = "application/json", **headers: str) -> Behaviour:
    """These bytes, regardless of the request."""

    def behave(line: Line) -> None:
        line.head(status, content_type=content_type, content_length=str(len(body)), **headers)
        line.send(body)

    return behave


def streaming(*pieces: bytes) -> Behaviour:
    """These bytes as a stream."""

    def behave(line: Line) -> None:
        line.head(content_type="text/event-stream")
        for piece in pieces:
            line.send(piece)

    return behave


def failing(status: int, body: object = None, **headers: str) -> Behaviour:
    """A status with an error."""
    error = body if body is not None else {"error": {"message": "no", "type": "some_error", "code": status}}
    return saying(json.dumps(error).encode(), status, **headers)


def overflowing(line: Line) -> None:
    """The request was too long for the model."""
    dialects = {
        "openai": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"},
        "anthropic": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"},
        "gemini": {
            "code": 400,
            "status": "INVALID_ARGUMENT",
            "message": "The input token count (9) exceeds the maximum",
        },
    }
    failing(400, {"type": "error", "error": dialects[line.request.dialect]})(line)


def silent(line: Line) -> None:
    """Accepts the request and never answers."""
    line.hang()


def silent_after_head(line: Line) -> None:
    """Only the head of an answer."""
    line.head(content_type="text/event-stream" if line.request.wants_stream else "application/json")
    line.hang()


def dripping_head(line: Line) -> None:
    """A head that never ends."""
    line.send(b"HTTP/1.1 200 OK\r\nx-slow: ")
    line.drip(b"a")


def dripping_body(line: Line) -> None:
    """An endless body without line ends."""
    line.head(content_type="text/event-stream" if line.request.wants_stream else "application/json")
    line.drip(b" ")


def dripping_events(line: Line) -> None:
    """An endless stream of valid events."""
    line.head(content_type="text/event-stream")
    line.drip(list(events(line.request.dialect))[2])


def hanging_up(line: Line) -> None:
    """Accepts the request and closes the connection."""
    line.socket.shutdown(socket.SHUT_RDWR)


def breaking_off(line: Line) -> None:
    """Announces a longer body and closes the connection."""
    line.head(content_type="application/json", content_length="5000")
    line.send(b'{"choices": [{')


def babbling(line: Line) -> None:
    """Not HTTP."""
    line.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")


def bursting(size_bytes: int, layers: int = 1) -> Behaviour:
    """A small body that decompresses to a large one."""
    body = b'{"choices": [{"message": {"content": "' + b"a" * size_bytes + b'"}, "finish_reason": "stop"}]}'
    for _ in range(layers):
        body = gzip.compress(body)

    def behave(line: Line) -> None:
        line.head(
            content_type="application/json",
            content_encoding=", ".join(["gzip"] * layers),
            content_length=str(len(body)),
        )
        line.send(body)

    return behave


def endless(line: Line) -> None:
    """An endless body at full speed."""
    line.head(content_type="text/event-stream" if line.request.wants_stream else "application/json")
    with contextlib.suppress(OSError):
        while not line.server.ending.is_set():
            line.send(b": keep alive\n" * 5000)


def flooding(line: Line) -> None:
    """An endless stream of valid events at full speed."""
    line.head(content_type="text/event-stream")
    piece = next(each for each in events(line.request.dialect) if b"build " in each)
    with contextlib.suppress(OSError):
        while not line.server.ending.is_set():
            line.send(piece * 100)


def redirecting(to: str) -> Behaviour:
    """Redirects the client."""
    return failing(307, location=to)


def scripted(*behaviours: Behaviour) -> Sequence[Behaviour]:
    """Behaviours for consecutive requests."""
    return behaviours
