"""Strands Agents: a conversation manager that folds before each call of the model.

Examples:
    A session manager stores every message; a restored agent goes on with the folded list::

        agent = Agent(conversation_manager=FoldConversationManager(model="gpt-5"))
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from strands.agent.conversation_manager import ConversationManager
from strands.hooks import BeforeModelCallEvent, HookRegistry

from foldline.integrations._codec import Codec
from foldline.integrations._folder import Folded, Folder
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for
from foldline.typing import Message, Messages

__all__ = ["FoldConversationManager"]


class _Converse(Codec):
    """Messages of Converse as Anthropic's, block for block."""

    format = "anthropic"

    def dicts(self, message: Any) -> Sequence[Message]:
        """The message with its blocks."""
        return ({"role": message["role"], "content": [_block(block) for block in message["content"]]},)

    def summary(self, message: Message) -> Any:
        """A message of text."""
        return {"role": message["role"], "content": [{"text": message["content"]}]}

    def edited(self, original: Any, dicts: Sequence[Message], kept: Sequence[tuple[int, Message]]) -> Any:
        """A copy with new content of the results that were changed, without the blocks that are gone."""
        places = {id(block): place for place, block in enumerate(dicts[0]["content"])}
        known = {block.get("tool_use_id"): place for place, block in enumerate(dicts[0]["content"])}
        content = []
        for block in kept[0][1]["content"]:
            if id(block) in places:
                content.append(original["content"][places[id(block)]])
                continue
            result = original["content"][known[block["tool_use_id"]]]["toolResult"]
            content.append({"toolResult": {**result, "content": _texts(block["content"])}})
        return {**original, "content": content}


def _block(block: Mapping[str, Any]) -> Message:
    """A block of Converse as one of Anthropic's; another one is counted by its JSON."""
    if "text" in block:
        return {"type": "text", "text": block["text"]}
    if "toolUse" in block:
        use = block["toolUse"]
        return {"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
    if "toolResult" in block:
        result = block["toolResult"]
        content = [_result_part(part) for part in result["content"]]
        is_error = result.get("status") == "error"
        return {
            "type": "tool_result", "tool_use_id": result["toolUseId"], "content": content, "is_error": is_error,
        }  # fmt: skip
    name = next(iter(block), "empty")
    reasoning = block.get("reasoningContent", {}).get("reasoningText") if name == "reasoningContent" else None
    if reasoning is not None:
        signature = reasoning.get("signature") or ""
        return {"type": "thinking", "thinking": reasoning.get("text") or "", "signature": signature}
    return {"type": f"converse.{name}", "value": json.loads(json.dumps(block.get(name), default=_plain))}


def _result_part(part: Mapping[str, Any]) -> Message:
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    if "json" in part:
        return {"type": "text", "text": json.dumps(part["json"], ensure_ascii=False)}
    return _block(part)


def _texts(content: Any) -> list[dict[str, str]]:
    if isinstance(content, str):
        return [{"text": content}]
    return [{"text": part.get("text", "")} for part in content]


def _plain(value: Any) -> str:
    return f"{len(value)} bytes" if isinstance(value, (bytes, bytearray)) else type(value).__name__


class FoldConversationManager(ConversationManager):  # type: ignore[misc]
    """Folds an agent's messages in place before each call of its model, and after an overflow.

    Tools and system prompt are counted as they are at each call. A message whose metadata say ``custom.pinned`` stays,
    as for the managers of Strands. One manager serves one agent.

    Args:
        **options: See `AdapterOptions`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    def __init__(self, **options: Unpack[AdapterOptions]) -> None:
        super().__init__()
        given: dict[str, Any] = dict(options)
        pins = (*pins_for(given.pop("pins", ())), _is_marked)
        self._folder = Folder(_Converse(), compactor_for(**given), pins)
        self._session = uuid.uuid4().hex
        #: The messages that stand for `removed_message_count` stored ones.
        self._head: list[Any] = []

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Adds the hook before each call of the model."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._before_model_call)

    async def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        agent = event.agent
        folded = await self._folder.afold(agent.messages, session=self._session, **_around(agent))
        self._take(agent, folded)

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Does nothing: the messages are folded before a call, not after it."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:  # noqa: ARG002
        """Folds after an overflow, whatever the trigger says.

        Raises:
            Exception: The overflow, if nothing can be folded.
        """
        folded = self._folder.fold(agent.messages, session=self._session, force=True, **_around(agent))
        if not folded.changed and e is not None:
            raise e
        self._take(agent, folded)

    def _take(self, agent: Any, folded: Folded) -> None:
        """Puts the folded messages into the agent's list."""
        if not folded.changed:
            return
        before, after = list(agent.messages), folded.messages
        stored = len(before) - len(self._head)  # those after the head are the newest stored ones
        kept = 0
        while kept < min(stored, len(after)) and after[-1 - kept] is before[-1 - kept]:
            kept += 1
        self.removed_message_count += stored - kept
        self._head = after[: len(after) - kept]
        agent.messages[:] = after

    def get_state(self) -> dict[str, Any]:
        """The state for a session: the number of stored messages that are not in the list, and what replaces them."""
        return {**super().get_state(), "head": self._head}

    def restore_from_session(self, state: dict[str, Any]) -> list[Any] | None:
        """Restores the state; gives the messages before the stored ones that follow."""
        super().restore_from_session(state)
        self._head = list(state.get("head") or [])
        return list(self._head) or None


def _is_marked(message: Any) -> bool:
    """Whether a message's metadata pin it."""
    custom = (message.get("metadata") or {}).get("custom") or {}
    return bool(custom.get("pinned"))


def _around(agent: Any) -> dict[str, Any]:
    """The tools and the system prompt of an agent."""
    tools: Messages = [
        {"name": spec["name"], "description": spec["description"], "input_schema": _schema(spec)}
        for spec in agent.tool_registry.get_all_tool_specs()
    ]
    system = agent.system_prompt
    return {"tools": tools, "system": system if isinstance(system, str) else None}


def _schema(spec: Mapping[str, Any]) -> Any:
    schema = spec["inputSchema"]
    return schema.get("json", schema)
