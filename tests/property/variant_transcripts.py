"""Builds messages of the AI SDK's user interfaces, of Mistral and of Cohere from the same scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .library_transcripts import LibraryWriter
from .transcripts import Dict, OpenAIWriter, Pending, Step, arguments, text


class AiSdkUiWriter(LibraryWriter):
    """Writes messages of a user interface: a call and its result are one part, which a later step may complete."""

    def say(self, role: str, parts: list[Dict], step: Step) -> None:
        """Appends a message, sometimes with an id and metadata."""
        more = {"id": f"m{len(self.messages)}", "metadata": {"at": 1}} if step.a % 2 else {}
        self.messages.append({**more, "role": role, "parts": parts})

    def texts(self, step: Step) -> list[Dict]:
        """One or two texts."""
        parts = [{"type": "text", "text": text(step.a, step.size), "state": "done"}]
        return parts if step.b % 3 else [*parts, {"type": "text", "text": text(step.b, 5)}]

    def head(self, size: int) -> None:
        """System texts."""
        for number in range(size):
            self.say("system", [{"type": "text", "text": text(0, 30 + number)}], Step("", number, 0, 0))

    def user(self, step: Step) -> None:
        """A user message, sometimes with data of the application."""
        data = [{"type": "data-place", "data": {"town": text(step.b, 7)}}] if step.a == 6 else []
        self.say("user", [*self.texts(step), *data], step)

    def summary(self, step: Step) -> None:
        """A summary of an earlier fold."""
        labelled = f'<foldline-history version="1" round="{step.a}">\n{text(step.b, step.size)}\n'
        self.say("user", [{"type": "text", "text": labelled}], step)

    def assistant(self, step: Step) -> None:
        """Text, sometimes after reasoning and with its sources."""
        reasoning = [{"type": "reasoning", "text": text(step.b, 9)}] if step.a % 3 == 0 else []
        source = [{"type": "source-url", "sourceId": "s", "url": "https://example.org"}] if step.b == 2 else []
        self.say("assistant", [{"type": "step-start"}, *reasoning, *self.texts(step), *source], step)

    def other_role(self, step: Step) -> None:
        """An unknown role."""
        self.say("critic", self.texts(step), step)

    def system(self, step: Step) -> None:
        """A system message in the middle, which is an ordinary message."""
        self.say("system", self.texts(step), step)

    def calls(self, step: Step) -> None:
        """Parallel calls, most of them with their results."""
        parts = [self.part(call, step._replace(b=step.b + n)) for n, call in enumerate(self.make_calls(step))]
        self.pending.clear()
        self.say("assistant", [{"type": "step-start"}, *parts], step)

    def part(self, call: Pending, step: Step) -> Dict:
        """A call in one of its states, under its own type or in the form of version 4."""
        output: Any = text(step.a, step.size * 3) if step.b % 2 else {"rows": [text(step.a, step.size)]}
        given = arguments(step.a, step.size % 20)
        if step.a % 4 == 3:
            result = {"state": "result", "result": output} if step.b % 5 else {"state": "call"}
            inner = {"toolCallId": call.id, "toolName": call.name, "args": given, **result}
            return {"type": "tool-invocation", "toolInvocation": inner}
        states: tuple[Dict, ...] = (
            {"state": "output-available", "output": output},
            {"state": "output-available", "output": output},
            {"state": "output-error", "errorText": text(step.a, step.size)},
            {"state": "input-available"} if step.size > 40 else {"state": "output-available", "output": None},
        )
        kind = {"type": "dynamic-tool", "toolName": call.name} if step.a % 4 == 2 else {"type": f"tool-{call.name}"}
        return {**kind, "toolCallId": call.id, "input": given, **states[step.b % 4]}

    def answer_all(self, step: Step) -> None:
        """Results are in the parts of their calls; the model speaks instead."""
        self.assistant(step)

    def answer_one(self, step: Step) -> None:
        """The same."""
        self.user(step)

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """There are no messages of results."""
        self.assistant(step)

    def anonymous_call(self, step: Step) -> None:
        """Every call has an id."""
        self.calls(step)

    def anonymous_result(self, step: Step) -> None:
        """There is none."""
        self.user(step)

    def own(self, step: Step) -> None:
        """A tool that ran at the provider."""
        part = {"type": "tool-search", "toolCallId": f"srv_{step.a % 3}", "providerExecuted": True, "input": {"q": 1}}
        self.say("assistant", [{**part, "state": "output-available", "output": [text(step.a, step.size)]}], step)


class MistralWriter(OpenAIWriter):
    """Writes messages of Mistral's API: thinking in the content, ids of nine characters."""

    def head(self, size: int) -> None:
        """System texts: there is no role developer."""
        for number in range(size):
            self.add("system", text(0, 30 + number))

    def new_id(self, step: Step, number: int) -> str:
        """Nine letters and digits."""
        return (super().new_id(step, number).replace("_", "") + "0" * 9)[:9]

    def assistant(self, step: Step) -> None:
        """Text, often after thinking."""
        chunks = [{"type": "text", "text": text(step.b, step.size)}]
        thinking = [{"type": "thinking", "thinking": chunks, "closed": True}] if step.a % 2 else []
        self.add("assistant", [*thinking, {"type": "text", "text": text(step.a, step.size)}])

    def anonymous_call(self, step: Step) -> None:
        """Every call has an id."""
        self.calls(step)

    def anonymous_result(self, step: Step) -> None:
        """A late answer instead."""
        self.answer_one(step)


class CohereWriter(OpenAIWriter):
    """Writes messages of Cohere's API: plans before calls, results as documents."""

    def head(self, size: int) -> None:
        """System texts: there is no role developer."""
        for number in range(size):
            self.add("system", text(0, 30 + number))

    def assistant(self, step: Step) -> None:
        """Text, sometimes after thinking."""
        thinking = [{"type": "thinking", "thinking": text(step.b, step.size)}] if step.a % 3 == 0 else []
        self.add("assistant", [*thinking, {"type": "text", "text": text(step.a, step.size)}])

    def calls(self, step: Step) -> None:
        """Calls after a plan."""
        super().calls(step)
        last = self.messages[-1]
        last["tool_plan"] = last.pop("content") or text(step.b, step.size % 30)

    def answer(self, call: Pending, step: Step) -> None:
        """A result: documents, or a text."""
        super().answer(call, step)
        last = self.messages[-1]
        if last["role"] == "tool" and step.b % 4 == 1:
            data: Any = last["content"] if step.a % 2 else {"rows": [last["content"]]}
            last["content"] = [{"type": "document", "document": {"id": "1", "data": data}}]
            last.pop("name", None)

    def anonymous_call(self, step: Step) -> None:
        """Every call has an id."""
        self.calls(step)

    def anonymous_result(self, step: Step) -> None:
        """A late answer instead."""
        self.answer_one(step)
