"""Chat models of LangChain as summarizers: a stand-in with their methods, and a real one."""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import foldline as fl

pytest.importorskip("httpx2")
pytest.importorskip("stamina")

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Well?"}]


def chunk(content: Any = "", **more: Any) -> SimpleNamespace:
    """A chunk of a message."""
    empty: dict[str, Any] = {"tool_calls": [], "additional_kwargs": {}, "response_metadata": {}, "usage_metadata": None}
    return SimpleNamespace(content=content, **{**empty, **more})


class ChatModel:
    """Streams what it is told to."""

    model_name = "chat"

    def __init__(self, *pieces: Any) -> None:
        self.pieces = pieces
        self.calls: list[tuple[str, Any, dict[str, Any]]] = []
        self.closed = threading.Event()

    def _said(self) -> Iterator[Any]:
        for piece in self.pieces:
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    def stream(self, messages: Any, **options: Any) -> Iterator[Any]:
        self.calls.append(("stream", messages, options))
        try:
            yield from self._said()
        finally:
            self.closed.set()

    async def astream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
        self.calls.append(("astream", messages, options))
        try:
            for piece in self._said():
                await asyncio.sleep(0)
                yield piece
        finally:
            self.closed.set()


def both(model: fl.summarizers.LangChainModel, **options: Any) -> list[Any]:
    """What it answers, without an event loop and with one: completions, or codes of errors."""

    def tried(ask: Any) -> Any:
        try:
            return ask()
        except fl.errors.SummaryError as error:
            return error.code

    return [
        tried(lambda: model.complete(ASK, max_tokens=9, **options)),
        tried(lambda: asyncio.run(model.acomplete(ASK, max_tokens=9, **options))),
    ]


def test_B6_a_stream_is_drained_and_its_usage_added_up() -> None:
    end = {"response_metadata": {"finish_reason": "stop", "model_name": "served"}}
    first = {"usage_metadata": {"input_tokens": 30, "output_tokens": 0}}
    last = {"usage_metadata": {"input_tokens": 0, "output_tokens": 4}}
    chat = ChatModel(chunk("So ", **first), chunk([{"type": "text", "text": "far."}]), chunk(**end, **last))
    model = fl.summarizers.LangChainModel(chat, request_options={"stop": ["x"]})
    answers = both(model)
    assert answers == [fl.summarizers.Completion("So far.", "served", 30, 4)] * 2
    assert chat.calls == [(name, ASK, {"stop": ["x"], "max_tokens": 9}) for name in ("stream", "astream")]


@pytest.mark.parametrize(
    ("pieces", "answer"),
    [
        ([chunk("So far.")], "So far."),
        ([chunk("So"), chunk(response_metadata={"stop_reason": "max_tokens"})], "incomplete_summary"),
        ([chunk("So"), chunk(response_metadata={"done_reason": "length"})], "incomplete_summary"),
        ([chunk(response_metadata={"finish_reason": "SAFETY"})], "content_filter"),
        ([chunk(additional_kwargs={"refusal": "No."})], "refused"),
        ([chunk("So", tool_calls=[{"name": "go"}])], "tool_call"),
        ([chunk(tool_call_chunks=[{"name": "go"}])], "tool_call"),
        ([chunk(" \n")], "empty_summary"),
        ([], "incomplete_stream"),
        ([chunk("So"), ValueError("k4nar1e")], "client_failed"),
        ([ConnectionError("k4nar1e")], "connection_failed"),
    ],
)
def test_what_comes_of_answers(pieces: list[Any], answer: str) -> None:
    model = fl.summarizers.LangChainModel(ChatModel(*pieces))
    assert [getattr(each, "text", each) for each in both(model)] == [answer] * 2


def test_the_deadline_is_for_the_whole_answer() -> None:
    chat = ChatModel()

    def slowly() -> Iterator[Any]:
        while not chat.closed.is_set():
            time.sleep(0.01)
            yield chunk("word ")

    chat._said = slowly  # type: ignore[method-assign]
    model = fl.summarizers.LangChainModel(chat, timeout_s=0.2)
    for ask in (
        lambda: model.complete(ASK, max_tokens=9),
        lambda: asyncio.run(model.acomplete(ASK, max_tokens=9)),
    ):
        with pytest.raises(fl.errors.SummaryError, match=r"^timeout"):
            ask()
        # The stream is closed, in its thread or on its loop.
        assert chat.closed.wait(20)
        chat.closed.clear()


def test_it_is_a_summarizer() -> None:
    messages = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "word " * 100} for i in range(6)]
    model = fl.summarizers.LangChainModel(ChatModel(chunk("So far.")), max_tokens_field=None)
    for result in (
        fl.compact(messages, fl.KeepMessages(2), summarizer=model),
        asyncio.run(fl.acompact(messages, fl.KeepMessages(2), summarizer=model)),
    ):
        assert result.error is None
        assert "So far." in result.summary
    assert [options for _, _, options in model._client.calls] == [{}, {}]


@pytest.mark.parametrize(
    ("given", "options", "path"),
    [
        (object(), {}, "chat_model"),
        (ChatModel(), {"max_attempts": 2}, "max_attempts"),
        (ChatModel(), {"temperature": 0}, "temperature"),
        (ChatModel(), {"timeout_s": 0}, "timeout_s"),
    ],
)
def test_options_out_of_range_are_refused(given: Any, options: dict[str, Any], path: str) -> None:
    with pytest.raises(fl.errors.ConfigError) as caught:
        fl.summarizers.LangChainModel(given, **options)
    assert caught.value.path == path


@pytest.mark.engine
def test_a_real_chat_model() -> None:
    fakes = importlib.import_module("langchain_core.language_models.fake_chat_models")
    model = fl.summarizers.LangChainModel(fakes.FakeListChatModel(responses=["So far."]))
    assert [answer.text for answer in both(model)] == ["So far."] * 2
