"""A model server on loopback for batches: real HTTP, one answer for each conversation."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class CountingModel:
    """A model on loopback that names the conversation in its answer, and counts the calls for each conversation.

    Args:
        delay_s: Time before each answer.
    """

    def __init__(self, delay_s: float = 0.01) -> None:
        self.delay_s = delay_s
        self.asked: Counter[str] = Counter()
        self.bodies: list[Any] = []
        self.came = threading.Semaphore(0)
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                name = re.findall(r"conversation-\d+-\d+", body)[0]
                with owner._lock:
                    owner.asked[name] += 1
                    owner.bodies.append(json.loads(body))
                owner.came.release()
                time.sleep(owner.delay_s)
                message = {"role": "assistant", "content": f"In {name} the tests were minded, step by step."}
                answer = {
                    "model": "counting",
                    "choices": [{"message": message, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 100, "completion_tokens": 12},
                }
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    return  # the client was killed

            def log_message(self, format: str, *arguments: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.server.server_address[1])

    @property
    def environment(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.port}/v1"
        return os.environ | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "secret"}

    def paid_again(self) -> int:
        return sum(self.asked.values()) - len(self.asked)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
