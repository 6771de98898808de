"""From cold message dicts to a cut, compared with langchain's `trim_messages` with tiktoken.

    make bench-trimming

Conversations of 100, 1,000 and 10,000 messages with parallel calls, their texts cut from the bundled sessions, all
different; half of the tokens stay. foldline detects the dialect, counts exactly with a counter with empty
caches, and plans. langchain gets its own message objects, and a counter that counts the same texts with tiktoken.
CPU time, the rounds of both in turn, the best of each.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import foldline as fl

Message = dict[str, Any]
DATA = Path(__file__).parents[2] / "examples" / "data"
LENGTHS = (100, 1_000, 10_000)
ROUNDS = {100: 9, 1_000: 7, 10_000: 5}
# Characters of the texts, in turn: most are short and a few are file contents. With ids, names and arguments a
# message has 570 bytes on average.
CHARACTERS = (60, 180, 900, 240, 1_700, 90, 420, 30, 1_200, 300)


def corpus() -> str:
    """The texts of the bundled sessions."""
    texts = []
    for path in sorted(DATA.glob("*.jsonl")):
        for session in fl.read(path):
            for message in session.messages:
                content = message.get("content")
                blocks = content if isinstance(content, list) else [{"text": content}]
                for block in blocks:
                    inner = block.get("text") or block.get("content") or block.get("thinking")
                    texts.append(inner if isinstance(inner, str) else "")
    return "\n".join(filter(None, texts))


def cut(text: str) -> Iterator[str]:
    """Endless different texts: each round begins a little further."""
    characters = itertools.cycle(CHARACTERS)
    for shift in itertools.count():
        at = shift * 37
        while at + max(CHARACTERS) < len(text):
            take = next(characters)
            yield text[at : at + take]
            at += take


def conversation(count: int, texts: Iterator[str]) -> list[Message]:
    """A list of messages: a question, two calls at once, their results, an answer."""

    def call(i: int) -> Message:
        arguments = f'{{"path": "src/module_{i}.py", "limit": {i % 2_000}}}'
        return {"id": f"call_{i:08x}", "type": "function", "function": {"name": "read_file", "arguments": arguments}}

    def turn(i: int) -> list[Message]:
        return [
            {"role": "user", "content": next(texts)},
            {"role": "assistant", "content": next(texts), "tool_calls": [call(i), call(i + 1)]},
            {"role": "tool", "tool_call_id": f"call_{i:08x}", "content": next(texts)},
            {"role": "tool", "tool_call_id": f"call_{i + 1:08x}", "content": next(texts)},
            {"role": "assistant", "content": next(texts)},
        ]

    return [message for i in range(0, count, 5) for message in turn(i)]


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def langchain(messages: list[Message], budget: int) -> Callable[[], object]:
    """langchain's way, after its objects are made: every text of a message is counted, with its calls."""
    import tiktoken
    from langchain_core.messages import convert_to_messages, trim_messages

    encoding = tiktoken.get_encoding("o200k_base")

    def count(found: Any) -> int:
        total = 0
        for each in found:
            total += len(encoding.encode_ordinary(str(each.content))) + 4
            for call in getattr(each, "tool_calls", ()):
                total += len(encoding.encode_ordinary(call["name"] + str(call["args"]))) + 4
        return total

    objects = convert_to_messages(messages)
    return lambda: trim_messages(
        objects, max_tokens=budget, token_counter=count, strategy="last", start_on="human", include_system=True
    )


def main() -> None:
    """Prints a line for each length."""
    texts = cut(corpus())
    print(f"foldline {fl.__version__}, one thread")
    for length in LENGTHS:
        messages = conversation(length, texts)
        size = sum(len(str(message["content"]).encode()) for message in messages)
        budget = fl.TokenCounter("o200k_base").count_messages(messages).total // 2

        def plan(messages: list[Message] = messages, budget: int = budget) -> object:
            return fl.plan(messages, fl.KeepTokens(budget), counter=fl.TokenCounter("o200k_base"))

        try:
            peer = langchain(messages, budget)
        except ImportError:
            sys.exit("langchain and tiktoken are not here: make bench-venv")
        ours, theirs = [], []
        for _ in range(ROUNDS[length]):
            theirs.append(seconds(peer))
            ours.append(seconds(plan))
        print(
            f"{length:>6,} messages, {size / 1e6:.2f} MB of content: plan {min(ours) * 1e3:.2f} ms, "
            f"trim_messages {min(theirs) * 1e3:,.1f} ms, {min(theirs) / min(ours):.0f} times"
        )


if __name__ == "__main__":
    main()
