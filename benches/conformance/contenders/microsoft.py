"""semantic-kernel's truncation reducer, Microsoft agent-framework's compaction, autogen's token-limited context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from judging import Count, Message, head_of, tokens

from .base import Contender, Trimmer, by_identity


def _run(loop: asyncio.AbstractEventLoop, make: Callable[[], Any]) -> Callable[[], Any]:
    """A coroutine as a call; the loop is created once, so that this is not timed."""
    return lambda: loop.run_until_complete(make())


# --- semantic-kernel ------------------------------------------------------------------------------------


class _SemanticKernel:
    """It counts messages, so it gets the same share of them."""

    def __init__(self, _count: Count) -> None:
        from semantic_kernel.contents import ChatHistoryTruncationReducer

        self.reducer = ChatHistoryTruncationReducer
        self.loop = asyncio.new_event_loop()
        self.made: list[Any] = []

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        self.made = [self._object(message) for message in messages]
        target = max(1, int(share * len(messages)))
        reducer = self.reducer(messages=list(self.made), target_count=target, threshold_count=min(10, target))
        call = _run(self.loop, reducer.reduce)
        return lambda: (call(), reducer)

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        found = by_identity(answer[1].messages, self.made, messages)
        if None in found:  # Pydantic may have copied them, so the content is compared.
            found = by_identity(
                [next(own for own in self.made if own == each) for each in answer[1].messages], self.made, messages
            )
        return [message for message in found if message is not None]

    @staticmethod
    def _object(message: Message) -> Any:
        from semantic_kernel.contents import (
            AuthorRole,
            ChatMessageContent,
            FunctionCallContent,
            FunctionResultContent,
            TextContent,
        )

        text = message.get("content") or ""
        if isinstance(text, list):
            text = "".join(part["text"] for part in text)
        if message["role"] == "tool":
            items = [
                FunctionResultContent(id=message["tool_call_id"], name=message.get("name") or "look_up", result=text)
            ]
            return ChatMessageContent(role=AuthorRole.TOOL, items=items)
        items: list[Any] = [TextContent(text=text)] if text else []
        for call in message.get("tool_calls") or ():
            function = call["function"]
            items.append(FunctionCallContent(id=call["id"], name=function["name"], arguments=function["arguments"]))
        return ChatMessageContent(role=AuthorRole(message["role"]), items=items)


# --- agent-framework ------------------------------------------------------------------------------------


class _Tokenizer:
    """Its protocol: tokens of a message as it serialises it."""

    def __init__(self, count: Count) -> None:
        self.count = count

    def count_tokens(self, text: str) -> int:
        return self.count(text)


class _AgentFramework:
    def __init__(self, strategy: Callable[[int], Any], tokenizer: _Tokenizer) -> None:
        import agent_framework

        self.framework, self.strategy, self.tokenizer = agent_framework, strategy, tokenizer
        self.loop = asyncio.new_event_loop()
        self.made: list[Any] = []

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        self.made = [self._object(message) for message in messages]
        own, strategy = list(self.made), self.strategy(budget)
        apply = self.framework.apply_compaction
        return _run(self.loop, lambda: apply(own, strategy=strategy, tokenizer=self.tokenizer))

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        originals = by_identity(answer, self.made, messages)
        # New messages are texts: the collapsed results of tool calls.
        return [
            original if original is not None else {"role": str(own.role), "content": own.text}
            for own, original in zip(answer, originals)
        ]

    def _object(self, message: Message) -> Any:
        content, text = self.framework.Content, message.get("content") or ""
        if isinstance(text, list):
            text = "".join(part["text"] for part in text)
        if message["role"] == "tool":
            return self.framework.Message(
                "tool", [content.from_function_result(call_id=message["tool_call_id"], result=text)]
            )
        contents: list[Any] = [text] if text else []
        for call in message.get("tool_calls") or ():
            function = call["function"]
            contents.append(
                content.from_function_call(call_id=call["id"], name=function["name"], arguments=function["arguments"])
            )
        return self.framework.Message(message["role"], contents)


def _truncation(count: Count, *, first_user: bool = False) -> Trimmer:
    import agent_framework as framework

    tokenizer = _Tokenizer(count)
    return _AgentFramework(
        lambda budget: framework.TruncationStrategy(
            max_n=budget, compact_to=budget, tokenizer=tokenizer, preserve_first_user_group=first_user
        ),
        tokenizer,
    )


def _composed(count: Count) -> Trimmer:
    import agent_framework as framework

    tokenizer = _Tokenizer(count)

    def strategy(budget: int) -> Any:
        truncation = framework.TruncationStrategy(max_n=budget, compact_to=budget, tokenizer=tokenizer)
        return framework.TokenBudgetComposedStrategy(
            token_budget=budget,
            tokenizer=tokenizer,
            strategies=[framework.ToolResultCompactionStrategy(), truncation],
        )

    return _AgentFramework(strategy, tokenizer)


def _window(count: Count) -> Trimmer:
    import agent_framework as framework

    tokenizer = _Tokenizer(count)
    return _AgentFramework(
        lambda budget: framework.ContextWindowCompactionStrategy(
            max_context_window_tokens=budget, max_output_tokens=0, tokenizer=tokenizer
        ),
        tokenizer,
    )


# --- autogen --------------------------------------------------------------------------------------------


class _Autogen:
    """Its agents keep the system message separately, so the context gets the rest of the budget."""

    def __init__(self, count: Count) -> None:
        from autogen_core.model_context import TokenLimitedChatCompletionContext

        self.context, self.count = TokenLimitedChatCompletionContext, count
        self.loop = asyncio.new_event_loop()
        self.originals: dict[int, list[Message]] = {}
        self.made: list[Any] = []

    def count_tokens(self, messages: list[Any], *, tools: Any = ()) -> int:
        """The interface of a model client: the table's own rule without the per-request part."""
        return tokens([m for own in messages for m in self.originals[id(own)]], self.count) - tokens([], self.count)

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        head = head_of(messages)
        self.made, self.originals = [], {}
        for message in messages[len(head) :]:
            self._add(message)
        context = self.context(self, token_limit=budget - tokens(head, self.count), initial_messages=list(self.made))
        return _run(self.loop, context.get_messages)

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        return [*head_of(messages), *(message for own in answer for message in self.originals[id(own)])]

    def _add(self, message: Message) -> None:
        """A message in autogen's form: adjacent results are one message."""
        from autogen_core import FunctionCall
        from autogen_core.models import (
            AssistantMessage,
            FunctionExecutionResult,
            FunctionExecutionResultMessage,
            SystemMessage,
            UserMessage,
        )

        text = message.get("content") or ""
        if isinstance(text, list):
            text = "".join(part["text"] for part in text)
        if message["role"] == "tool":
            result = FunctionExecutionResult(
                content=text, name=message.get("name") or "look_up", call_id=message["tool_call_id"], is_error=False
            )
            if self.made and isinstance(self.made[-1], FunctionExecutionResultMessage):
                self.made[-1].content.append(result)
                self.originals[id(self.made[-1])].append(message)
                return
            own: Any = FunctionExecutionResultMessage(content=[result])
        elif message["role"] == "assistant":
            calls = [
                FunctionCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
                for call in message.get("tool_calls") or ()
            ]
            own = AssistantMessage(content=calls or text, source="assistant", thought=text if calls else None)
        elif message["role"] == "user":
            own = UserMessage(content=text, source="user")
        else:
            own = SystemMessage(content=text)
        self.made.append(own)
        self.originals[id(own)] = [message]


_TOKENIZER = "tokenizer=o200k_base by tiktoken"

CONTENDERS = [
    Contender(
        "semantic-kernel truncation reducer",
        "semantic-kernel",
        "semantic_kernel.contents",
        "ChatHistoryTruncationReducer(target_count=the budget's share of the messages, threshold_count=the same up to "
        "10, as in its samples)",
        _SemanticKernel,
        counts_tokens=False,
    ),
    Contender(
        "agent-framework TruncationStrategy",
        "agent-framework-core",
        "agent_framework",
        f"TruncationStrategy(max_n=compact_to=budget, {_TOKENIZER}), through apply_compaction",
        _truncation,
    ),
    Contender(
        "agent-framework TruncationStrategy, first user kept",
        "agent-framework-core",
        "agent_framework",
        "as above, preserve_first_user_group=True",
        lambda count: _truncation(count, first_user=True),
    ),
    Contender(
        "agent-framework TokenBudgetComposedStrategy",
        "agent-framework-core",
        "agent_framework",
        f"TokenBudgetComposedStrategy(token_budget=budget, {_TOKENIZER}, strategies=[ToolResultCompactionStrategy(), "
        "TruncationStrategy(max_n=compact_to=budget)])",
        _composed,
    ),
    Contender(
        "agent-framework ContextWindowCompactionStrategy",
        "agent-framework-core",
        "agent_framework",
        f"ContextWindowCompactionStrategy(max_context_window_tokens=budget, max_output_tokens=0, {_TOKENIZER})",
        _window,
    ),
    Contender(
        "autogen TokenLimitedChatCompletionContext",
        "autogen-core",
        "autogen_core.model_context",
        "TokenLimitedChatCompletionContext(token_limit=budget less the system message, which its agents keep beside "
        "the context), a model client that counts by the table's own rule",
        _Autogen,
    ),
]
