"""Builds OpenAI Responses and Gemini transcripts from the same scripts; see `transcripts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .transcripts import Dict, Pending, Step, Writer, arguments, text


class ResponsesWriter(Writer):
    """Writes Responses items: every call, output and piece of reasoning is one item."""

    def write(self, head: int, script: Sequence[Step]) -> list[Dict]:
        """In a valid list no two items have one id of their own."""
        seen: set[str] = set()
        for number, item in enumerate(super().write(head, script)):
            if self.valid and "id" in item:
                item["id"] = f"{item['id']}_{number}" if item["id"] in seen else item["id"]
                seen.add(item["id"])
        return self.messages

    def new_id(self, step: Step, number: int) -> str:
        """In a valid list no two calls have one id."""
        return super().new_id(step._replace(b=1 - number) if self.valid else step, number)

    def head(self, size: int) -> None:
        """System, then developer; sometimes a compaction, which belongs to the head too."""
        for number in range(size):
            self.message(("system", "developer")[number % 2], text(0, 30 + number))
        if size == 2:
            self.messages.append(self.compaction(1_000))

    def message(self, role: str, content: Any, **more: Any) -> None:
        """A message item; a text is written in short form, parts with their type."""
        kind = {"type": "message"} if isinstance(content, list) else {}
        self.messages.append({**kind, "role": role, "content": content, **more})

    @staticmethod
    def compaction(size: int) -> Dict:
        """A compaction by the provider."""
        return {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAAB" + text(5, size)}

    def parts(self, step: Step, kind: str) -> Any:
        """A string, or two text parts."""
        if step.b % 3:
            return text(step.a, step.size)
        return [{"type": kind, "text": text(step.a, step.size)}, {"type": kind, "text": text(step.b, 5)}]

    def user(self, step: Step) -> None:
        """A user message."""
        self.message("user", self.parts(step, "input_text"))

    def summary(self, step: Step) -> None:
        """A summary of an earlier fold."""
        labelled = f'<foldline-history version="1" round="{step.a}">\n{text(step.b, step.size)}\n'
        self.message("user", labelled if step.b % 2 else [{"type": "input_text", "text": labelled}])

    def reasoning(self, step: Step) -> None:
        """Reasoning in one of its forms, sometimes two items, often absent."""
        item: Dict = {"type": "reasoning", "id": f"rs_{step.a}", "summary": []}
        summary = [{"type": "summary_text", "text": text(step.b, step.size % 30)}]
        forms: tuple[Dict, ...] = (
            {"encrypted_content": "gAAAAAB" + text(5, step.size * 8), "summary": summary},
            {"content": [{"type": "reasoning_text", "text": text(step.b, step.size)}]},
            {"summary": summary},
            {},
        )
        if step.a % 2:
            self.messages.append(item | forms[step.b % 4])
        if step.a % 4 == 3:
            self.messages.append(item | forms[(step.b + 1) % 4])

    def assistant(self, step: Step) -> None:
        """A model message, sometimes after reasoning; a wild one may have reasoning and no text."""
        self.reasoning(step)
        if self.valid or step.size % 8:
            self.message("assistant", self.parts(step, "output_text"))

    def other_role(self, step: Step) -> None:
        """An unknown role or type; a compaction in the middle."""
        unknown: Dict = {"type": "telepathy_call", "id": "t", "thought": [1, text(step.a, step.size)]}
        if step.b % 3 == 0:
            self.message("critic", text(step.a, step.size))
        else:
            self.messages.append(unknown if step.b % 3 == 1 else self.compaction(step.size * 10))

    def system(self, step: Step) -> None:
        """A system message in the middle, which is an ordinary message."""
        self.message("system", text(step.a, step.size))

    def calls(self, step: Step) -> None:
        """Parallel calls of several kinds, sometimes after reasoning."""
        self.reasoning(step)
        for number, call in enumerate(self.make_calls(step)):
            given = arguments(step.a + number, step.size % 20)
            item: Dict = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": given}
            if step.b % 3 == 1:
                item["arguments"] = f'{{"q": "{text(5, step.size)}"}}'
            elif step.b % 3 == 2 and number == 1:
                item = {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": text(3, step.size)}
            elif step.a % 5 == 4:
                item = {"type": "local_shell_call", "id": "ls_1", "call_id": call.id, "action": {"command": ["ls"]}}
            self.messages.append(item)

    def answer(self, call: Pending, step: Step) -> None:
        """The output of a call: a string or texts; the list form of a shell output has no field for another text."""
        output: Any = text(step.a, step.size * 3)
        if step.b % 4 == 0:
            output = [{"type": "input_text", "text": output}, {"type": "input_text", "text": text(step.b, step.size)}]
        kind = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")[step.a % 3]
        item: Dict = {"type": kind, "call_id": call.id, "output": output}
        if step.b == 7 and step.a > 5:
            chunk = {"stdout": text(step.b, step.size), "outcome": {"type": "exit", "exit_code": 0}}
            item = {"type": "shell_call_output", "call_id": call.id, "output": [chunk]}
        self.messages.append(item)

    def answer_all(self, step: Step) -> None:
        """Answers the newest batch, in order or out of order."""
        batch = list(self.pending)[-3:] if not self.valid else list(self.pending)
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
        """An output of a missing call."""
        self.answer(Pending(f"gone_{step.a % 2}", "", 0), step)

    def repeat(self, step: Step) -> None:
        """A second output for a call that has one."""
        if self.answered:
            self.answer(Pending(self.answered[step.a % len(self.answered)], "", 0), step)

    def anonymous_call(self, step: Step) -> None:
        """Ids are required; calls with ids instead."""
        self.calls(step)

    def anonymous_result(self, step: Step) -> None:
        """Ids are required; a late answer instead."""
        self.answer_one(step)

    def own(self, step: Step) -> None:
        """Tools that ran at the provider, and the provider's list of its tools."""
        self.reasoning(step)
        key, output = f"srv_{step.a % 3}", text(step.a, step.size)
        served: tuple[Dict, ...] = (
            {
                "type": "web_search_call",
                "id": key,
                "status": "completed",
                "action": {"type": "search", "query": output},
            },
            {"type": "code_interpreter_call", "id": key, "code": output, "outputs": None},
            {"type": "mcp_call", "id": key, "name": "find", "arguments": "{}", "output": output, "server_label": "s"},
            {"type": "mcp_list_tools", "id": key, "tools": [{"name": output}], "server_label": "s"},
        )
        self.messages.append(served[step.b % 4])

    def valid_step(self, step: Step) -> None:
        """Every call gets all its outputs, though not at once."""
        if step.kind in ("calls", "answer_all", "anonymous_call"):
            self.calls(step)
            if step.b % 5 == 0:
                self.message("assistant", "Still at it.")
            self.answer_all(step)
        elif step.kind in ("user", "summary", "system", "own"):
            getattr(self, step.kind)(step)
        else:
            self.assistant(step)


class GeminiWriter(Writer):
    """Writes Gemini contents, in camelCase or in snake_case, with ids or without."""

    def head(self, size: int) -> None:
        """At most one system instruction; a valid conversation then starts with the user."""
        if size:
            self.turn("system", [{"text": text(0, 30)}])
        if self.valid:
            self.turn("user", [{"text": "hello"}])

    def turn(self, role: str, parts: list[Dict]) -> None:
        """Appends a content."""
        self.messages.append({"role": role, "parts": parts})

    def named(self, step: Step, camel: str, snake: str) -> str:
        """One of two spellings."""
        return camel if step.a % 2 else snake

    def texts(self, step: Step) -> list[Dict]:
        """One or two texts; in wild turns possibly empty or absent."""
        size = max(step.size, 1) if self.valid else step.size
        parts: list[Dict] = [{"text": text(step.a, size)}]
        if step.b % 3 == 0:
            parts.append({"text": text(step.b, 5), "thoughtSignature": "c2ln"})
        return [] if not self.valid and step.a == 7 and step.b == 7 else parts

    def user(self, step: Step) -> None:
        """A user turn."""
        self.turn("user", self.texts(step))

    def summary(self, step: Step) -> None:
        """A summary of an earlier fold."""
        self.turn("user", [{"text": f'<foldline-history version="1" round="{step.a}">\n{text(step.b, step.size)}\n'}])

    def ask(self) -> None:
        """In a valid conversation the model does not speak twice in a row."""
        if self.valid and self.messages[-1]["role"] == "model":
            self.turn("user", [{"text": "go on"}])

    def assistant(self, step: Step) -> None:
        """Model text, sometimes after a thought."""
        self.ask()
        thoughts: list[Dict] = [{"text": text(step.b, 9), "thought": True}] if step.a % 3 == 0 else []
        self.turn("model", thoughts + self.texts(step))

    def other_role(self, step: Step) -> None:
        """An unknown role."""
        self.turn("critic", self.texts(step))

    def system(self, step: Step) -> None:
        """A system instruction occurs only at the beginning; a user turn instead."""
        self.user(step)

    def calls(self, step: Step) -> None:
        """Parallel calls after a text; every other batch without ids."""
        self.ask()
        parts = self.texts(step) if step.size % 2 else []
        for number, call in enumerate(self.make_calls(step)):
            ids = {"id": call.id} if step.b % 2 and call.id else {}
            call.id = ids.get("id")
            name = self.named(step, "functionCall", "function_call")
            given = arguments(step.a + number, step.size % 25)
            parts.append({name: {**ids, "name": call.name, "args": given}, "thoughtSignature": "c2ln"})
        self.turn("model", parts)

    def part(self, call: Pending, step: Step) -> Dict:
        """A response: one text, an error, or an object; its id may be left out."""
        output = text(step.a, step.size * 3)
        deep = {"rows": [output, 3, True, {"k": None}], "n": step.size}
        forms: tuple[Dict, ...] = ({"result": output}, {"error": output}, deep, {"output": output})
        ids = {"id": call.id} if call.id is not None and step.b % 4 else {}
        response = {**ids, "name": call.name, "response": forms[step.b % 4]}
        return {self.named(step, "functionResponse", "function_response"): response}

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """A turn with responses, sometimes with text."""
        if not calls:
            return
        parts = [
            self.part(call, step._replace(a=step.a + n, size=(step.size * (n + 1)) % 1500))
            for n, call in enumerate(calls)
        ]
        if step.b % 4 == 1:
            parts.append({"text": "and"})
        self.turn("user" if step.a % 3 else "function", parts)

    def answer_all(self, step: Step) -> None:
        """Answers the newest batch in one turn, in order or out of order."""
        batch = self.last_batch()
        self.take(batch)
        self.results(batch if step.b % 2 else batch[::-1], step)

    def answer_one(self, step: Step) -> None:
        """Answers one or two open calls, sometimes of different turns, sometimes next to an orphan."""
        chosen = self.pending[step.a % len(self.pending) :][: 1 + step.b % 2] if self.pending else []
        self.take(chosen)
        self.results([*chosen, Pending("gone_2", "tool_9", 0)] if chosen and step.a % 6 == 0 else chosen, step)

    def orphan(self, step: Step) -> None:
        """A response to a missing call."""
        self.results([Pending(f"gone_{step.a % 2}", f"tool_{step.b}", 0)], step)

    def repeat(self, step: Step) -> None:
        """A second response to a call that has one."""
        if self.answered:
            self.results([Pending(self.answered[step.a % len(self.answered)], "tool_0", 0)], step)

    def anonymous_call(self, step: Step) -> None:
        """Calls without ids."""
        self.calls(step._replace(b=step.b - step.b % 2))

    def anonymous_result(self, step: Step) -> None:
        """A response by name alone."""
        self.results([Pending(None, f"tool_{step.a % 3}", 0)], step)

    def own(self, step: Step) -> None:
        """Code that ran at the provider, with its output; sometimes the output without the code."""
        self.ask()
        code = {self.named(step, "executableCode", "executable_code"): {"language": "PYTHON", "code": "print(1)"}}
        output = {"outcome": "OUTCOME_OK", "output": text(step.a, step.size)}
        result = {self.named(step, "codeExecutionResult", "code_execution_result"): output}
        parts = [code, result] if self.valid or step.b % 4 else [result]
        self.turn("model", [*parts, {"text": "done"}])

    def valid_step(self, step: Step) -> None:
        """Calls are followed by as many responses in the next turn."""
        if step.kind in ("calls", "answer_all", "anonymous_call"):
            self.calls(step)
            self.answer_all(step)
        elif step.kind in ("user", "summary", "own"):
            getattr(self, step.kind)(step)
        else:
            self.assistant(step)
