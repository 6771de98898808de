"""Gemini models called through Google's SDK."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from foldline.summarizers._remote.answers import Answer
from foldline.summarizers._remote.client import http_client
from foldline.summarizers._remote.remote import ModelRequest, extra_package
from foldline.summarizers._remote.sdk import SdkModel, split_system

__all__ = ["GoogleGenAI"]


class GoogleGenAI(SdkModel):
    """Calls a model through a client of the package `google-genai`: Gemini API or Vertex.

    Args:
        model: Name of the model.
        client: A ``google.genai.Client``, whose synchronous half is used (see `SdkModel`). Default: a new client, which
            reads the key from the environment as the SDK does.
        client_options: Arguments for the new client, such as ``api_key``, ``vertexai``, and ``http_options`` as a dict;
            never shown.
        request_options: Further fields of the ``config``.
        options: As for `OpenAICompatible`: ``timeout_s``, ``max_attempts``, ``max_bytes``, ``temperature``,
            ``requests_per_minute``, ``max_concurrency``, ``thinking_tokens``.

    Raises:
        ConfigError: An option is out of range, or the extra ``google`` or ``llm`` is missing.

    Examples:
        >>> import foldline as fl
        >>> fl.summarizers.GoogleGenAI("gemini-2.5-flash", client_options={"api_key": "secret"}, thinking_tokens=1_000)
        GoogleGenAI('gemini-2.5-flash')
    """

    needs: ClassVar = (("google.genai", "google"), ("httpx2", "llm"), ("stamina", "llm"))

    def _new_client(self) -> tuple[Any, Callable[[], Awaitable[object]]]:
        http = http_client(self.max_bytes)
        options = dict(self._client_options)
        # One attempt disables the SDK's own retries.
        own = {"httpx_async_client": http, "retry_options": {"attempts": 1}}
        options["http_options"] = {**own, **dict(options.get("http_options") or {})}
        client = extra_package("google.genai", "google").Client(**options)

        async def close() -> None:
            await client.aio.aclose()
            client.close()
            await http.aclose()

        return client.aio, close

    def _limited(self, client: Any, left_s: float) -> Any:  # noqa: ARG002 - limits are set per call
        return client

    def _is_async(self, client: Any) -> bool:
        return not hasattr(client, "aio")

    def _answer(self) -> Answer:
        return Answer(self.model)

    def _start(self, client: Any, request: ModelRequest) -> Any:
        system, others = split_system(request.messages)
        config: dict[str, Any] = {"max_output_tokens": request.max_tokens, "temperature": self.temperature}
        config |= {"system_instruction": system or None, "http_options": self._call_options(client)}
        roles = {"assistant": "model"}
        contents = [
            {"role": roles.get(each["role"], "user"), "parts": [{"text": str(each["content"])}]} for each in others
        ]
        config = {name: value for name, value in {**config, **self._request_options}.items() if value is not None}
        return client.models.generate_content_stream(model=self.model, contents=contents, config=config)

    def _call_options(self, client: Any) -> dict[str, Any] | None:
        """HTTP options for a given client: no retries, and a timeout per read."""
        if self._is_async(client):
            return None
        return {"timeout": int(self.timeout_s * 1_000), "retry_options": {"attempts": 1}}

    def _take(self, answer: Answer, piece: Any) -> None:
        answer.model = str(getattr(piece, "model_version", None) or answer.model)
        usage = getattr(piece, "usage_metadata", None)
        if usage is not None:
            written = [usage.candidates_token_count, getattr(usage, "thoughts_token_count", None)]
            known = [count for count in written if count is not None]
            answer.add_usage(usage.prompt_token_count, sum(known) if known else None)
            answer.add_cache_usage(getattr(usage, "cached_content_token_count", None))
        if getattr(getattr(piece, "prompt_feedback", None), "block_reason", None):
            answer.end_with("prohibited_content")
        for candidate in (getattr(piece, "candidates", None) or ())[:1]:
            for part in getattr(candidate.content, "parts", None) or ():
                answer.called_tool = answer.called_tool or part.function_call is not None
                if not part.thought:
                    answer.add_text(part.text)
            reason = candidate.finish_reason
            answer.end_with(getattr(reason, "value", reason))
