"""A chat completions server on this machine: answers by a script, streamed too, and refuses broken pairs."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import adapter_checks as checks
from adapter_checks import Record, Request, Script


class Handler(BaseHTTPRequestHandler):
    """Serves ``POST /v1/chat/completions``."""

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            try:
                checks.check_pairs(body["messages"])
            except AssertionError as error:
                return self._send(400, {"error": {"message": str(error), "type": "invalid_request_error"}})
            script: Script = self.server.script
            self.server.record.requests.append(Request(script.session, body["messages"], body.get("tools") or []))
            said = script.next()
        return self._stream(said, body) if body.get("stream") else self._send(200, _completion(said))

    def _send(self, status: int, value: dict[str, Any]) -> None:
        payload = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _stream(self, said: Any, body: Any) -> None:
        del body
        number = f"chunk-{next(_NUMBERS)}"
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        if isinstance(said, str):
            deltas += [{"content": word + " "} for word in said.split(" ")]
        else:
            deltas += [{"tool_calls": [{"index": i, **_call(*each)}]} for i, each in enumerate(said)]
        chunks = [_chunk(number, {"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas]
        chunks.append(_chunk(number, {"index": 0, "delta": {}, "finish_reason": _reason(said)}))
        chunks.append({**_chunk(number, None), "usage": _USAGE})
        payload = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(payload.encode())))
        self.end_headers()
        self.wfile.write(payload.encode())


#: Each answer has an id of its own: frameworks take messages of one id for one message.
_NUMBERS = itertools.count(1)

_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _call(number: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _reason(said: Any) -> str:
    return "stop" if isinstance(said, str) else "tool_calls"


def _chunk(number: str, choice: Any) -> dict[str, Any]:
    choices = [] if choice is None else [choice]
    return {"id": number, "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": choices}


def _completion(said: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
    if not isinstance(said, str):
        message["tool_calls"] = [_call(*each) for each in said]
    choice = {"index": 0, "message": message, "finish_reason": _reason(said)}
    number = f"completion-{next(_NUMBERS)}"
    return {"id": number, "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [choice],
            "usage": _USAGE}  # fmt: skip


@contextmanager
def serving(script: Script, record: Record, handler: type[Handler] = Handler) -> Iterator[str]:
    """Runs the server; gives its base address."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.script, server.record, server.lock = script, record, threading.Lock()
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
