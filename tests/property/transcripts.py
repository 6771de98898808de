"""Builds OpenAI chat and Anthropic transcripts from a script of small integer steps.

A script is drawn by a generator: hypothesis (which shrinks it) or a seeded `random.Random` (which is
fast). Each step has a kind and three numbers; the writers below give them a meaning. "Wild" writers produce
all the disorder of real data: parallel calls, reused ids, late, missing, repeated and orphan results, text
next to results, thinking, earlier summaries. "Valid" writers produce only lists that the provider accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

Dict = dict[str, Any]

ALPHABETS: Final = (
    "the quick brown fox jumps over a lazy dog ",
    'say "yes" \\ or\n\tno\x07\x1f ',
    "对话压缩需要保持工具调用完整",
    "naïve façade «Ünïcödé» ",
    "🙂🚀👩‍💻✨",
    "0123456789abcdef",
)

KINDS: Final = (
    "user",
    "assistant",
    "calls",
    "answer_all",
    "answer_one",
    "orphan",
    "repeat",
    "summary",
    "system",
    "anonymous_call",
    "anonymous_result",
    "own",
    "other_role",
)
WEIGHTS: Final = (6, 5, 8, 7, 4, 1, 1, 1, 1, 1, 1, 1, 0.3)


class Step(NamedTuple):
    """One step of a script: its kind, two choices, and the length of its texts."""

    kind: str
    a: int
    b: int
    size: int


def text(a: int, size: int) -> str:
    """A text of `size` characters."""
    alphabet = ALPHABETS[a % len(ALPHABETS)]
    return (alphabet * (size // len(alphabet) + 1))[:size]


def arguments(a: int, size: int) -> Dict:
    """Arguments of a call: nested, with numbers that JavaScript formats differently."""
    numbers: tuple[Any, ...] = (1, 1.0, 0.5, 1e21, 12345678901234567890, -0.0, True, None)
    return {"path": text(a, size), "n": numbers[a % len(numbers)], "deep": [{}, [size]]}


@dataclass
class Pending:
    """A call that the script may answer, and its position."""

    id: str | None
    name: str
    at: int


@dataclass
class Writer:
    """Common state of both dialects: the messages so far, the open calls, the ids in use."""

    valid: bool
    messages: list[Dict] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    fresh: int = 0

    def write(self, head: int, script: Sequence[Step]) -> list[Dict]:
        """The transcript of a script after a head of `head` system messages."""
        self.head(head)
        for step in script:
            if self.valid:
                self.valid_step(step)
            else:
                getattr(self, step.kind)(step)
        return self.messages

    def head(self, size: int) -> None:
        """The leading system messages."""
        raise NotImplementedError

    def valid_step(self, step: Step) -> None:
        """A message that the provider accepts at this position."""
        raise NotImplementedError

    def add(self, role: str, content: Any, **more: Any) -> None:
        """Appends a message."""
        self.messages.append({"role": role, "content": content, **more})

    def new_id(self, step: Step, number: int) -> str:
        """A fresh id, or one of a few recurring ones."""
        if (step.b + number) % 3 == 0:
            return f"call_{(step.a + number) % 3}"
        self.fresh += 1
        return f"call_x{self.fresh}"

    def make_calls(self, step: Step) -> list[Pending]:
        """One to three parallel calls; in a valid transcript their ids differ."""
        calls: list[Pending] = []
        for number in range(1 + step.a % 3):
            key = self.new_id(step, number)
            if self.valid and any(key == call.id for call in calls):
                key = f"{key}_{number}"
            calls.append(Pending(key, f"tool_{(step.b + number) % 3}", len(self.messages)))
        self.pending.extend(calls)
        return calls

    def take(self, chosen: Sequence[Pending]) -> None:
        """Marks calls as answered."""
        for call in chosen:
            self.pending.remove(call)
            if call.id is not None:
                self.answered.append(call.id)

    def summary(self, step: Step) -> None:
        """A summary of an earlier fold."""
        labelled = f'<foldline-history version="1" round="{step.a}">\n{text(step.b, step.size)}\n'
        self.add("user", labelled if step.b % 2 else [{"type": "text", "text": labelled}])

    def last_batch(self) -> list[Pending]:
        """The open calls of the newest message that has any."""
        if not self.pending:
            return []
        newest = max(call.at for call in self.pending)
        return [call for call in self.pending if call.at == newest]


class OpenAIWriter(Writer):
    """Writes OpenAI chat messages."""

    def head(self, size: int) -> None:
        """System, then developer."""
        for number in range(size):
            self.add(("system", "developer")[number % 2], text(0, 30 + number))

    def user(self, step: Step) -> None:
        """A user message: a string, or a list of text parts; sometimes a named participant."""
        named = {"name": "alice"} if step.a % 4 == 0 else {}
        self.add("user", self.content(step), **named)

    def content(self, step: Step) -> Any:
        """A string, or two text parts."""
        size = max(step.size, 1) if self.valid else step.size
        if step.b % 3:
            return text(step.a, size)
        return [{"type": "text", "text": text(step.a, size)}, {"type": "text", "text": text(step.b, 5)}]

    def assistant(self, step: Step) -> None:
        """Plain text."""
        self.add("assistant", self.content(step))

    def other_role(self, step: Step) -> None:
        """An unknown role: an ordinary message."""
        self.add("critic", text(step.a, step.size))

    def system(self, step: Step) -> None:
        """A system message in the middle, which is an ordinary message."""
        self.add("system", text(step.a, step.size))

    def calls(self, step: Step) -> None:
        """Parallel calls, arguments as text or as an object, content null or text."""
        calls = []
        for number, call in enumerate(self.make_calls(step)):
            given: Any = arguments(step.a + number, step.size % 20)
            if (step.b + number) % 2:
                given = f'{{"q": "{text(5, step.size)}"}}'
            calls.append(self.call(call, given))
        self.add("assistant", None if step.b % 2 else text(step.a, step.size % 7), tool_calls=calls)

    @staticmethod
    def call(call: Pending, given: Any) -> Dict:
        """One entry of `tool_calls`."""
        entry: Dict = {"type": "function", "function": {"name": call.name, "arguments": given}}
        return {"id": call.id, **entry} if call.id is not None else entry

    def answer(self, call: Pending, step: Step) -> None:
        """A tool message for a call; the content is a string or a list of text parts."""
        content: Any = text(step.a, step.size * 3)
        if step.b % 4 == 0:
            content = [{"type": "text", "text": content}, {"type": "text", "text": text(step.b, step.size)}]
        if call.id is None and step.b % 2:
            self.add("function", content, name=call.name)
        else:
            named = {"name": call.name} if step.a % 2 or call.id is None else {}
            ids = {"tool_call_id": call.id} if call.id is not None else {}
            self.add("tool", content, **ids, **named)

    def answer_all(self, step: Step) -> None:
        """Answers the newest batch, in order or out of order."""
        batch = self.last_batch()
        self.take(batch)
        for number, call in enumerate(batch if step.b % 2 else batch[::-1]):
            self.answer(call, step._replace(a=step.a + number, size=(step.size * (number + 1)) % 1500))

    def answer_one(self, step: Step) -> None:
        """Answers any open call, possibly late."""
        if self.pending:
            call = self.pending[step.a % len(self.pending)]
            self.take([call])
            self.answer(call, step)

    def orphan(self, step: Step) -> None:
        """A result of a missing call."""
        self.answer(Pending(f"gone_{step.a % 2}", "tool_0", 0), step)

    def repeat(self, step: Step) -> None:
        """A second result for a call that has one."""
        if self.answered:
            self.answer(Pending(self.answered[step.a % len(self.answered)], "tool_0", 0), step)

    def anonymous_call(self, step: Step) -> None:
        """Calls without ids: the retired `function_call`, or `tool_calls` that lack them."""
        calls = [Pending(None, f"tool_{(step.b + n) % 2}", len(self.messages)) for n in range(1 + step.a % 2)]
        if step.b % 2:
            calls = calls[:1]
            function = {"name": calls[0].name, "arguments": "{}"}
            self.add("assistant", None, function_call=function)
        else:
            self.add("assistant", None, tool_calls=[self.call(call, "{}") for call in calls])
        self.pending.extend(calls)

    def anonymous_result(self, step: Step) -> None:
        """A result without id, with or without the name of its tool."""
        content = text(step.a, step.size * 2)
        name = f"tool_{step.a % 2}"
        if step.b % 3 == 0:
            self.add("function", content, name=name)
        else:
            self.add("tool", content, **({"name": name} if step.b % 3 == 1 else {}))

    def own(self, step: Step) -> None:
        """OpenAI chat has no results inside the calling message; an assistant message instead."""
        self.assistant(step)

    def valid_step(self, step: Step) -> None:
        """Calls are followed directly by all their answers."""
        if step.kind in ("calls", "answer_all", "anonymous_call"):
            self.calls(step)
            self.answer_all(step)
        elif step.kind in ("user", "summary", "system", "assistant"):
            getattr(self, step.kind)(step)
        else:
            self.assistant(step)


class AnthropicWriter(Writer):
    """Writes Anthropic messages."""

    def head(self, size: int) -> None:
        """At most one leading system text; a valid conversation then starts with the user."""
        if size:
            self.add("system", text(0, 30))
        if self.valid:
            self.add("user", "hello")

    def block(self, step: Step) -> Dict:
        """A nonempty text block."""
        return {"type": "text", "text": text(step.a, max(step.size, 1))}

    def content(self, step: Step) -> Any:
        """A string or a list of blocks; in wild transcripts possibly empty."""
        if step.b % 2:
            return text(step.a, max(step.size, 1) if self.valid else step.size)
        return [self.block(step)]

    def user(self, step: Step) -> None:
        """A user message."""
        self.add("user", self.content(step))

    def thinking(self, step: Step) -> list[Dict]:
        """A thinking block, sometimes redacted, sometimes absent."""
        if step.a % 3 == 0:
            return [{"type": "thinking", "thinking": text(step.b, step.size % 50 + 1), "signature": "c2ln"}]
        return [{"type": "redacted_thinking", "data": "AAAA"}] if step.a % 7 == 1 else []

    def assistant(self, step: Step) -> None:
        """Text, sometimes after thinking."""
        thinking = self.thinking(step)
        self.add("assistant", [*thinking, self.block(step)] if thinking else self.content(step))

    def system(self, step: Step) -> None:
        """There is no system message in the middle; a user message instead."""
        self.user(step)

    def other_role(self, step: Step) -> None:
        """An unknown role."""
        self.add("critic", self.content(step))

    def calls(self, step: Step) -> None:
        """Parallel calls after thinking and text, sometimes with thinking between them."""
        blocks = self.thinking(step)
        if step.size % 2:
            blocks.append(self.block(step))
        for number, call in enumerate(self.make_calls(step)):
            blocks.append(self.call(call, arguments(step.a + number, step.size % 25)))
            if step.b % 5 == 0:
                blocks.extend(self.thinking(step._replace(a=3)))
        self.add("assistant", blocks)

    @staticmethod
    def call(call: Pending, given: Any) -> Dict:
        """A `tool_use` block."""
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}

    def result(self, call: Pending, step: Step) -> Dict:
        """A `tool_result` block; content a string, a list of text blocks, or missing."""
        block: Dict = {"type": "tool_result", "tool_use_id": call.id}
        if step.b % 4 == 0:
            parts = [text(step.a, step.size * 3), text(step.b, step.size)]
            block["content"] = [{"type": "text", "text": part or "-"} for part in parts]
        elif step.b % 4 < 3 or step.size:
            block["content"] = text(step.a, step.size * 3)
        fails = step.a % 5 == 0 and not (self.valid and not block.get("content"))
        return {**block, "is_error": True} if fails else block

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """A user message with results, sometimes with text."""
        if not calls:
            return
        blocks: list[Dict] = [
            self.result(call, step._replace(a=step.a + n, size=(step.size * (n + 1)) % 1500))
            for n, call in enumerate(calls)
        ]
        if step.b % 4 == 1:
            blocks.append(self.block(step))
        elif step.b % 4 == 2 and not self.valid:
            blocks.insert(0, self.block(step))
        self.add("user", blocks)

    def answer_all(self, step: Step) -> None:
        """Answers the newest batch in one message, in order or out of order."""
        batch = self.last_batch()
        self.take(batch)
        self.results(batch if step.b % 2 else batch[::-1], step)

    def answer_one(self, step: Step) -> None:
        """Answers one or two open calls, sometimes of different messages, sometimes next to an orphan."""
        chosen = self.pending[step.a % len(self.pending) :][: 1 + step.b % 2] if self.pending else []
        self.take(chosen)
        self.results([*chosen, Pending("gone_2", "", 0)] if chosen and step.a % 6 == 0 else chosen, step)

    def orphan(self, step: Step) -> None:
        """A result of a missing call."""
        self.results([Pending(f"gone_{step.a % 2}", "", 0)], step)

    def repeat(self, step: Step) -> None:
        """A second result for a call that has one."""
        if self.answered:
            self.results([Pending(self.answered[step.a % len(self.answered)], "", 0)], step)

    def anonymous_call(self, step: Step) -> None:
        """Ids are required; calls with ids instead."""
        self.calls(step)

    def anonymous_result(self, step: Step) -> None:
        """Ids are required; a late answer instead."""
        self.answer_one(step)

    def own(self, step: Step) -> None:
        """A call answered in the same message, by a server tool or by disorder."""
        key = f"srv_{step.a % 3}"
        served = self.valid or step.b % 2
        call = {"type": "mcp_tool_use" if served else "tool_use", "id": key, "name": "tool_0"}
        call |= {"server_name": "s"} if served else {}
        result = {"type": "mcp_tool_result" if served else "tool_result", "tool_use_id": key}
        content = [{"type": "text", "text": text(step.a, step.size + 1)}]
        blocks = [{**call, "input": {}}, {**result, "content": content}, self.block(step)]
        if self.valid and step.b % 3 == 0:
            # A paused turn that the provider continued: the result opens the next message.
            self.add("assistant", blocks[:1])
            blocks = blocks[1:]
        self.add("assistant", blocks)

    def valid_step(self, step: Step) -> None:
        """Calls are followed by all their answers in the next message."""
        if step.kind in ("calls", "answer_all", "anonymous_call"):
            self.calls(step)
            self.answer_all(step)
        elif step.kind in ("user", "summary", "own"):
            getattr(self, step.kind)(step)
        else:
            self.assistant(step)
