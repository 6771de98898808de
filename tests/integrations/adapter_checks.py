"""What every adapter must show, whatever the framework: the script of a model, and the checks of what the model got.

Requests are in OpenAI's chat form here, and counted by tiktoken: nothing in these checks asks foldline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import tiktoken

import foldline as fl

WINDOW = 8_000
TURNS = 4
CALLS = 12
"""Calls of the model in a turn; all but the last call tools."""

PIN = "Never touch the folder /srv/ledger-7731."
MARK = "ledger-7731"
SUMMARY = "zebra-summary"
"""A word of every summary, which no other text has."""

SYSTEM = "You are a careful engineer. Answer in one sentence. " * 8

_ENCODING = tiktoken.get_encoding("o200k_base")


def tool_description(name: str) -> str:
    """A long description: the tools of a request have 3,000 tokens, so that it matters whether they are counted."""
    return f"{name}: reads one part of the plan. " + "It takes the name of the part, and never writes. " * 120


def result_of(part: str) -> str:
    """What the tool gives: about 160 tokens that differ from part to part."""
    number = sum(part.encode()) * 7919 % 9973
    return f"Part {part} has {number} rows. " + " ".join(f"{part}-{number + i} is fine," for i in range(18))


@dataclass(repr=False)  # frameworks write the model, and what it holds, into their traces
class Script:
    """The answers of a scripted model: for each session its next calls, or a text at the end of a turn."""

    session: str = "a"
    at: dict[str, int] = field(default_factory=dict)

    def next(self) -> list[tuple[str, str, dict[str, str]]] | str:
        """Calls as (id, tool, arguments), two of them at each third step; or the text that ends a turn."""
        step = self.at.get(self.session, 0)
        self.at[self.session] = step + 1
        if step % CALLS == CALLS - 1:
            return f"Turn {step // CALLS} is done."
        count = 2 if step % 3 == 0 else 1
        name = f"{self.session}{step}"
        return [(f"call_{name}_{i}", ("read_part", "check_part")[i], {"part": f"{name}-{i}"}) for i in range(count)]


def prompt(turn: int) -> str:
    """What the user says at the beginning of a turn. The first is to be pinned."""
    return f"{PIN} Check the plan." if turn == 0 else f"Go on with chapter {turn}."


@dataclass(repr=False)
class Request:
    """One call of the model: its messages with the system prompt, in OpenAI's form, and its tools."""

    session: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    objects: Sequence[Any] = ()

    @property
    def tokens(self) -> int:
        """Tokens by tiktoken, with OpenAI's framing of messages; tools as their JSON."""
        return self.tool_tokens + self.message_tokens

    @property
    def tool_tokens(self) -> int:
        """Tokens of the tools."""
        return count(json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in self.tools)

    @property
    def message_tokens(self) -> int:
        """Tokens of the messages."""
        texts: list[str] = []
        for message in self.messages:
            texts += list(texts_in(message.get("content")))
            for call in message.get("tool_calls") or ():
                texts += [call["function"]["name"], call["function"]["arguments"]]
        return count(texts) + 4 * len(self.messages)

    @property
    def summary(self) -> str:
        """The text of its summary, or nothing."""
        texts = ("".join(texts_in(message.get("content"))) for message in self.messages)
        return next((text for text in texts if SUMMARY in text), "")


def count(texts: Iterable[str]) -> int:
    """Tokens of texts by tiktoken."""
    return sum(len(_ENCODING.encode_ordinary(text)) for text in texts)


def texts_in(content: Any) -> Iterable[str]:
    """The texts of a content."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        yield str(part.get("text", "")) if isinstance(part, dict) else str(part)


@dataclass(repr=False)
class Record:
    """What a run showed."""

    requests: list[Request] = field(default_factory=list)
    summaries: int = 0
    window: int = WINDOW
    events: list[Any] = field(default_factory=list)

    def summarize(self, messages: Any) -> str:
        """A summarizer for the run."""
        self.summaries += 1
        return f"{SUMMARY} number {self.summaries}: the parts before were read, and all rows are fine."

    @property
    def folds(self) -> int:
        """Folds, by the events of the compactor."""
        return sum(isinstance(event, fl.typing.CompactionEvent) for event in self.events)

    @property
    def most_tokens(self) -> int:
        """Tokens of the largest request."""
        return max(request.tokens for request in self.requests)

    @property
    def copies(self) -> set[int]:
        """How often the pinned instruction is in a request."""
        return {json.dumps(request.messages, default=str).count(MARK) for request in self.requests}

    def options(self, window: int = WINDOW, **more: Any) -> dict[str, Any]:
        """The options of an adapter for the run."""
        return {"compactor": self.compactor(window, **more), "on_event": self.events.append}

    def compactor(self, window: int = WINDOW, summarizer: Any = None, **more: Any) -> fl.Compactor:
        """A compactor that summarizes at 80 % of the window, and makes a summary at each fold."""
        self.window = window
        writer = self.summarize if summarizer is None else summarizer
        # One summary a fold, also where the cut splits a turn.
        keep = fl.KeepTokens(window // 8)
        strategy = fl.strategies.Summarize(writer, keep, summary_tokens=500, split_turns=False)
        return fl.Compactor.for_model("gpt-4o", context_window=window, reserve_tokens=500, strategy=strategy, **more)


def check(record: Record, *, window: int = WINDOW, sessions: int = 1, calls: int | None = None) -> None:
    """All that must hold of a run, whatever the framework."""
    assert len(record.requests) == (TURNS * CALLS * sessions if calls is None else calls)
    assert record.folds >= 2 * sessions, f"{record.folds} folds"
    assert record.summaries == record.folds, f"{record.summaries} summaries in {record.folds} folds"
    assert record.copies == {1}, f"the pinned instruction is there {record.copies} times"
    for request in record.requests:
        assert request.tokens <= window, f"a request has {request.tokens} tokens"
        check_pairs(request.messages)
    check_memory(record, window)


def check_memory(record: Record, window: int) -> None:
    """A new summary comes only where the request before was nearly full."""
    last: dict[str, Request] = {}
    for request in record.requests:
        before = last.get(request.session)
        if before is not None and request.summary != before.summary:
            room = window - before.tool_tokens
            assert before.message_tokens > room // 2, f"folded again after {before.message_tokens} of {room} tokens"
        if before is not None and before.summary:
            assert request.summary, "the summary is gone"
        last[request.session] = request
    other = [r for r in record.requests if re.search(rf"\b{'b' if r.session == 'a' else 'a'}\d+-\d\b", str(r.messages))]
    assert not other, "a session sees another one"


def check_pairs(messages: Sequence[dict[str, Any]]) -> None:
    """As a chat completions API: each call is answered directly after it, each result answers a call."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a result without its call"
            waiting.discard(message["tool_call_id"])
            continue
        assert not waiting, "a call without its result"
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    assert not waiting, "a call without its result"


# --- Sabotage -----------------------------------------------------------------------------------------


def forget(folder: Any) -> None:
    """Breaks the memory of folds: each call has a compactor without one."""
    make = folder.compactor._histories.__class__
    known = folder.compactor._histories

    def without_memory(*arguments: Any) -> Any:
        found = make(known._make_session, None, max_folds=1, max_sessions=1)
        return found.history(*arguments)

    known.history = without_memory
    known.save = lambda *_: None


def unpin(folder: Any) -> None:
    """Breaks the pins."""
    folder.pins = ()


def ignore_tools(folder: Any) -> None:
    """Breaks the counting of tools and system prompt."""
    for name in ("fold", "afold"):
        fold = getattr(folder, name)
        setattr(folder, name, lambda messages, *, _fold=fold, session=None, **_: _fold(messages, session=session))


def split_pairs(folder: Any) -> None:
    """Breaks the pairs: the last call of a folded list, or one of its results, is lost."""
    fold, afold = folder.fold, folder.afold

    async def asplit(*arguments: Any, **options: Any) -> Any:
        return _without_a_result(await afold(*arguments, **options))

    folder.fold = lambda *arguments, **options: _without_a_result(fold(*arguments, **options))
    folder.afold = asplit


def _without_a_result(folded: Any) -> Any:
    if folded.changed:
        places = [i for i, message in enumerate(folded.messages) if "read_part" in str(message)]
        del folded.messages[places[-1]]
    return folded


def assert_noticed(name: str, run: Callable[[], object], record: Record, **options: Any) -> None:
    """A run with a broken adapter fails the checks, or the framework refuses the broken pairs itself."""
    try:
        run()
    except Exception:
        if name != "pairing":
            raise
        return
    with pytest.raises(AssertionError):
        check(record, **options)


SABOTAGE: dict[str, Callable[[Any], None]] = {
    "memory": forget,
    "pin": unpin,
    "per-call tools": ignore_tools,
    "pairing": split_pairs,
}
