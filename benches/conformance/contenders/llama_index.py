"""llama-index's `Memory`. Its agents keep the system message separately, so the memory gets the rest of the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from judging import Count, Message, head_of, tokens

from .base import Contender


class _Memory:
    def __init__(self, count: Count) -> None:
        import tiktoken
        from llama_index.core.llms import ChatMessage
        from llama_index.core.memory import Memory
        from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

        self.memory, self.message, self.count = Memory, ChatMessage, count
        self.encode = tiktoken.get_encoding("o200k_base").encode_ordinary
        self.loop = asyncio.new_event_loop()
        # One database for all: creating it is not timed.
        self.store = SQLAlchemyChatStore(table_name="conformance")
        self.loop.run_until_complete(self.store.get_keys())
        self.calls = 0

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        head = head_of(messages)
        made = [self._object(index, message) for index, message in enumerate(messages) if index >= len(head)]
        limit = budget - tokens(head, self.count)
        self.calls += 1

        async def run() -> Any:
            memory = self.memory.from_defaults(
                session_id=str(self.calls),
                chat_store=self.store,
                token_limit=limit,
                token_flush_size=max(1, limit // 10),
                chat_history_token_ratio=1.0,
                tokenizer_fn=self.encode,
            )
            await memory.aput_messages(made)
            return await memory.aget()

        return lambda: self.loop.run_until_complete(run())

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        self.loop.run_until_complete(self.store.delete_messages(str(self.calls)))
        return [*head_of(messages), *(messages[message.additional_kwargs["index"]] for message in answer)]

    def _object(self, index: int, message: Message) -> Any:
        """A separate message; its index leads back to the original and costs a token or two of the count."""
        text = message.get("content") or ""
        if isinstance(text, list):
            text = "".join(part["text"] for part in text)
        more: dict[str, Any] = {key: message[key] for key in ("tool_calls", "tool_call_id", "name") if key in message}
        return self.message(role=message["role"], content=text, additional_kwargs=more | {"index": index})


CONTENDERS = [
    Contender(
        "llama-index Memory",
        "llama-index-core",
        "llama_index.core.memory",
        "Memory.from_defaults(token_limit=budget less the system message, which its agents keep beside the memory, "
        "token_flush_size=a tenth, chat_history_token_ratio=1 as there are no memory blocks, tokenizer_fn=o200k_base "
        "by tiktoken)",
        _Memory,
    )
]
