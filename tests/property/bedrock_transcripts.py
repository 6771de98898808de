"""Builds transcripts of Bedrock's Converse API from the same scripts; see `transcripts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .transcripts import AnthropicWriter, Dict, Pending, Step, text


class BedrockWriter(AnthropicWriter):
    """Writes messages of the Converse API; in a valid conversation the sides take turns."""

    def head(self, size: int) -> None:
        """At most one leading system text; a valid conversation then starts with the user."""
        if size:
            self.messages.append({"role": "system", "content": [{"text": text(0, 30)}]})
        if self.valid:
            self.add("user", [{"text": "hello"}])

    def add(self, role: str, content: Any, **more: Any) -> None:
        """Appends a message; between two of one side a short one of the other, if the conversation is valid."""
        other = "assistant" if role == "user" else "user"
        if self.valid and self.messages and self.messages[-1]["role"] == role:
            self.messages.append({"role": other, "content": [{"text": "well"}]})
        self.messages.append({"role": role, "content": content, **more})

    def block(self, step: Step) -> Dict:
        """A nonempty text block."""
        return {"text": text(step.a, max(step.size, 1))}

    def content(self, step: Step) -> Any:
        """Blocks, sometimes with a mark for the prompt cache; in wild transcripts a string, or a blank text."""
        if not self.valid and step.b % 5 == 3:
            return text(step.a, step.size)
        blocks = [self.block(step)] if self.valid else [{"text": text(step.a, step.size)}]
        if step.b % 4 == 1 and sum("cachePoint" in str(each) for each in self.messages) < 4:
            blocks.append({"cachePoint": {"type": "default"}})
        return blocks

    def summary(self, step: Step) -> None:
        """A summary of an earlier fold."""
        labelled = f'<foldline-history version="1" round="{step.a}">\n{text(step.b, step.size)}\n'
        self.add("user", [{"text": labelled}])

    def thinking(self, step: Step) -> list[Dict]:
        """A reasoning block, sometimes redacted, sometimes absent."""
        if step.a % 3 == 0:
            plain = {"text": text(step.b, step.size % 50 + 1), "signature": "c2ln"}
            return [{"reasoningContent": {"reasoningText": plain}}]
        return [{"reasoningContent": {"redactedContent": "AAAA"}}] if step.a % 7 == 1 else []

    @staticmethod
    def call(call: Pending, given: Any) -> Dict:
        """A `toolUse` block."""
        return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": given}}

    def result(self, call: Pending, step: Step) -> Dict:
        """A `toolResult` block: texts, a JSON value, or nothing."""
        content: list[Dict] = [{"text": text(step.a, step.size * 3)}]
        if step.b % 4 == 0:
            content.append({"text": text(step.b, step.size)})
        elif step.b % 4 == 1:
            content = [{"json": {"rows": [text(step.a, step.size % 40), {}], "n": step.size, "ok": True}}]
        elif step.b == 7 and not self.valid:
            content = []
        fails = step.a % 5 == 0 and not (self.valid and not step.size)
        status = {"status": "error" if fails else "success"} if step.a % 2 or fails else {}
        return {"toolResult": {"toolUseId": call.id, "content": content, **status}}

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """A user message with results, sometimes with text before or after them."""
        if not calls:
            return
        blocks: list[Dict] = [
            self.result(call, step._replace(a=step.a + n, size=(step.size * (n + 1)) % 1500))
            for n, call in enumerate(calls)
        ]
        if step.b % 4 == 1:
            blocks.append(self.block(step))
        elif step.b % 4 == 2:
            blocks.insert(0, self.block(step))
        self.add("user", blocks)

    def own(self, step: Step) -> None:
        """A call of a tool that Bedrock runs, with its result; in wild transcripts also one of the caller's."""
        key = f"srv_{step.a % 3}"
        served = self.valid or step.b % 2
        call: Dict = {"toolUseId": key, "name": "nova_grounding", "input": {"query": "a"}}
        result: Dict = {"toolUseId": key, "content": [{"text": text(step.a, step.size + 1)}], "status": "success"}
        if served:
            result["type"] = "nova_grounding_result"
            call |= {"type": "server_tool_use"} if step.b % 3 else {}
        self.add("assistant", [{"toolUse": call}, {"toolResult": result}, self.block(step)])
