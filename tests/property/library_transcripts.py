"""Builds transcripts of libraries (the AI SDK, LangChain, gent, ShareGPT) from the same scripts; see `transcripts`.

No provider accepts them unconverted, so there are no valid ones: every transcript is a wild one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .transcripts import Dict, Pending, Step, Writer, arguments, text


class LibraryWriter(Writer):
    """Common base of the library writers: each of their scripts is wild."""

    def valid_step(self, step: Step) -> None:
        """No provider has to accept the transcript."""
        getattr(self, step.kind)(step)

    def texts(self, step: Step) -> Any:
        """A string, or two text parts."""
        if step.b % 3:
            return text(step.a, step.size)
        return [{"type": "text", "text": text(step.a, step.size)}, {"type": "text", "text": text(step.b, 5)}]

    def orphan(self, step: Step) -> None:
        """A result of a missing call."""
        self.results([Pending(f"gone_{step.a % 2}", "tool_0", 0)], step)

    def repeat(self, step: Step) -> None:
        """A second result for a call that has one."""
        if self.answered:
            self.results([Pending(self.answered[step.a % len(self.answered)], "tool_0", 0)], step)

    def answer_all(self, step: Step) -> None:
        """Answers the newest batch, in order or out of order."""
        batch = self.last_batch()
        self.take(batch)
        self.results(batch if step.b % 2 else batch[::-1], step)

    def answer_one(self, step: Step) -> None:
        """Answers one or two open calls, sometimes of different messages, sometimes next to an orphan."""
        chosen = self.pending[step.a % len(self.pending) :][: 1 + step.b % 2] if self.pending else []
        self.take(chosen)
        self.results([*chosen, Pending("gone_2", "tool_0", 0)] if chosen and step.a % 6 == 0 else chosen, step)

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """Results of these calls."""
        raise NotImplementedError


class AiSdkWriter(LibraryWriter):
    """Writes messages of the AI SDK, of version 4 and of later ones."""

    def head(self, size: int) -> None:
        """System texts."""
        for number in range(size):
            self.add("system", text(0, 30 + number))

    def user(self, step: Step) -> None:
        """A user message, sometimes with a document."""
        content = self.texts(step)
        if step.a == 6 and isinstance(content, list):
            content.append({"type": "file", "mediaType": "application/pdf", "data": "QUJD" * 100, "filename": "a.pdf"})
        self.add("user", content)

    def reasoning(self, step: Step) -> list[Dict]:
        """Reasoning with its signature, often absent."""
        signed = {"providerOptions": {"anthropic": {"signature": "c2ln"}}}
        return [{"type": "reasoning", "text": text(step.b, 9), **signed}] if step.a % 3 == 0 else []

    def assistant(self, step: Step) -> None:
        """Text, sometimes after reasoning."""
        reasoning = self.reasoning(step)
        self.add("assistant", [*reasoning, {"type": "text", "text": "so"}] if reasoning else self.texts(step))

    def other_role(self, step: Step) -> None:
        """An unknown role."""
        self.add("critic", text(step.a, step.size))

    def system(self, step: Step) -> None:
        """A system message in the middle, which is an ordinary message."""
        self.add("system", text(step.a, step.size))

    def call(self, call: Pending, step: Step, number: int) -> Dict:
        """A call under the keys of either version; arguments are a value, sometimes a text."""
        given: Any = text(step.a, step.size % 20) if step.b == 5 else arguments(step.a + number, step.size % 20)
        ids = {"toolCallId": call.id} if call.id is not None else {}
        return {**ids, "toolName": call.name, ("args" if step.a % 2 else "input"): given}

    def write_calls(self, calls: Sequence[Pending], step: Step) -> None:
        """In the content, outside it, or both."""
        written = [self.call(call, step, number) for number, call in enumerate(calls)]
        parts = self.reasoning(step) + [{"type": "text", "text": text(step.a, step.size)}] * (step.size % 2)
        within = [{"type": "tool-call", **call} for call in written]
        if step.b % 4 == 2:
            self.add("assistant", text(step.a, step.size % 9), toolCalls=written)
        elif step.b % 4 == 3 and all(call.id for call in calls):
            self.add("assistant", parts + within, toolCalls=written)
        else:
            self.add("assistant", parts + within)

    def calls(self, step: Step) -> None:
        """Parallel calls."""
        self.write_calls(self.make_calls(step), step)

    def anonymous_call(self, step: Step) -> None:
        """Calls without ids."""
        calls = [Pending(None, f"tool_{(step.b + n) % 2}", len(self.messages)) for n in range(1 + step.a % 2)]
        self.write_calls(calls, step)
        self.pending.extend(calls)

    def result(self, call: Pending, step: Step) -> Dict:
        """A result under the keys of either version: a text, a value, an error, texts, or missing."""
        output = text(step.a, step.size * 3)
        rows = {"rows": [output, 3, {}], "n": step.size}
        forms: tuple[Dict, ...] = (
            {"result": output},
            {"result": rows, "isError": True},
            {"output": {"type": "text", "value": output}},
            {"output": {"type": "json", "value": rows}},
            {"output": {"type": "error-text", "value": output}},
            {"output": {"type": "content", "value": [{"type": "text", "text": output}, {"type": "text", "text": "b"}]}},
            {"output": {"type": "execution-denied", "reason": output}},
            {"output": rows} if step.a % 2 else {},
        )
        ids = {"toolCallId": call.id} if call.id is not None else {}
        return {"type": "tool-result", **ids, "toolName": call.name, **forms[step.b], "x": 1}

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """All in one message, or each in its own."""
        parts = [
            self.result(call, step._replace(a=step.a + n, b=(step.b + n) % 8, size=(step.size * (n + 1)) % 1500))
            for n, call in enumerate(calls)
        ]
        for part in [parts] if step.a % 2 and parts else [[part] for part in parts]:
            self.add("tool", part)

    def anonymous_result(self, step: Step) -> None:
        """A result by name alone."""
        self.results([Pending(None, f"tool_{step.a % 3}", 0)], step)

    def own(self, step: Step) -> None:
        """A tool that ran at the provider, with its result."""
        served = {"toolCallId": f"srv_{step.a % 3}", "toolName": "search", "providerExecuted": True}
        output = {"type": "json", "value": [text(step.a, step.size)]}
        call = {"type": "tool-call", **served, "input": {"q": 1}}
        self.add("assistant", [call, {"type": "tool-result", **served, "output": output}])


class LangChainWriter(LibraryWriter):
    """Writes message dicts of LangChain, in all three forms."""

    def put(self, kind: str, body: Dict, step: Step) -> None:
        """Appends a message in one of the three forms."""
        classes = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}
        if step.b == 3 and kind in classes:
            path = ["langchain", "schema", "messages", classes[kind]]
            self.messages.append({"lc": 1, "type": "constructor", "id": path, "kwargs": body})
        elif step.a % 2:
            self.messages.append({"type": kind, "data": {**body, "additional": {"x": [1]}}})
        else:
            self.messages.append({**body, "type": kind, "response_metadata": {}})

    def head(self, size: int) -> None:
        """System, then developer."""
        for number in range(size):
            more = {"additional_kwargs": {"__openai_role__": "developer"}} if number % 2 else {}
            self.put("system", {"content": text(0, 30 + number), **more}, Step("", number, 0, 0))

    def user(self, step: Step) -> None:
        """A user message: a string, or texts with and without a type; sometimes a name."""
        content = self.texts(step)
        if isinstance(content, list) and step.a % 3 == 0:
            content = [content[0]["text"], *content[1:]]
        self.put("human", {"content": content, "name": "alice" if step.a % 4 == 0 else None}, step)

    def summary(self, step: Step) -> None:
        """A summary of an earlier fold."""
        labelled = f'<foldline-history version="1" round="{step.a}">\n{text(step.b, step.size)}\n'
        self.put("human", {"content": labelled if step.b % 2 else [{"type": "text", "text": labelled}]}, step)

    def system(self, step: Step) -> None:
        """A system message in the middle, which is an ordinary message."""
        self.put("system", {"content": text(step.a, step.size)}, step)

    def other_role(self, step: Step) -> None:
        """A message with a custom role."""
        self.put("chat", {"content": text(step.a, step.size), "role": "critic"}, step)

    def blocks(self, step: Step) -> list[Dict]:
        """Thinking in a provider's form or LangChain's, often absent."""
        thinking = {"type": "thinking", "thinking": text(step.b, 9), "signature": "c2ln"}
        reasoning = {"type": "reasoning", "reasoning": text(step.b, 9), "extras": {"signature": "c2ln"}}
        return [[thinking], [reasoning], []][step.a % 3]

    def assistant(self, step: Step) -> None:
        """Text, sometimes after thinking, sometimes with separate reasoning."""
        more = {"additional_kwargs": {"reasoning_content": text(step.b, 20)}} if step.b % 4 == 1 else {}
        blocks = self.blocks(step)
        content = [*blocks, {"type": "text", "text": text(step.a, step.size)}] if blocks else self.texts(step)
        self.put("ai", {"content": content, "tool_calls": [], **more}, step)

    def calls(self, step: Step) -> None:
        """Parallel calls: listed, in blocks, outside the content, or in several of these places."""
        calls = self.make_calls(step)
        given = [arguments(step.a + n, step.size % 20) for n in range(len(calls))]
        pairs = list(zip(calls, given, strict=True))
        listed = [{"name": c.name, "args": g, "id": c.id, "type": "tool_call"} for c, g in pairs]
        blocks: list[Dict] = [{"type": "tool_use", "id": c.id, "name": c.name, "input": g} for c, g in pairs]
        if step.a % 4 == 3:
            blocks = [{"type": "function_call", "call_id": c.id, "name": c.name, "arguments": "{}"} for c in calls]
        beside = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": "{}"}} for c in calls]
        content: Any = [*self.blocks(step), {"type": "text", "text": text(step.a, step.size)}]
        body: Dict = {"content": content if step.b % 2 else text(step.a, step.size % 7)}
        place = (step.b + step.size) % 6
        if place == 5:
            # A call with unparsable arguments.
            body |= {"tool_calls": listed[1:], "invalid_tool_calls": [listed[0] | {"args": '{"a', "error": "bad"}]}
        elif place != 4:
            body["tool_calls"] = listed if place else listed[:1]
        if place in (0, 1, 4):
            body["content"] = [*content, *blocks]
        if place in (1, 2):
            body["additional_kwargs"] = {"tool_calls": beside}
        self.put("ai", body, step)

    def anonymous_call(self, step: Step) -> None:
        """OpenAI's older call, which has no id."""
        call = Pending(None, f"tool_{step.b % 2}", len(self.messages))
        function = {"name": call.name, "arguments": "{}"}
        self.put("ai", {"content": "", "additional_kwargs": {"function_call": function}}, step)
        self.pending.append(call)

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """Each in its own message: a string, or texts; fields outside the content are not sent."""
        for number, call in enumerate(calls):
            content: Any = text(step.a + number, (step.size * (number + 1) * 3) % 1500)
            if step.b % 4 == 0:
                content = [{"type": "text", "text": content}, {"type": "text", "text": text(step.b, step.size)}]
            named = {"name": call.name} if step.a % 2 or call.id is None else {}
            if call.id is None and step.a % 2:
                self.put("function", {"content": content, **named}, step)
            else:
                ids = {"tool_call_id": call.id} if call.id is not None else {}
                more = {"artifact": {"rows": [1, 2]}, "status": ("success", "error")[step.a % 2]}
                self.put("tool", {"content": content, **ids, **named, **more}, step)

    def anonymous_result(self, step: Step) -> None:
        """A result by name alone."""
        self.results([Pending(None, f"tool_{step.a % 3}", 0)], step)

    def own(self, step: Step) -> None:
        """A tool that ran at the provider, with its result."""
        key = f"srv_{step.a % 3}"
        call = {"type": "server_tool_use", "id": key, "name": "search", "input": {"q": 1}}
        result = {"type": "web_search_tool_result", "tool_use_id": key, "content": text(step.a, step.size)}
        self.put("ai", {"content": [call, result, {"type": "text", "text": "so"}]}, step)


class GentWriter(LibraryWriter):
    """Writes iterations of gent, in lower case or under Go's names."""

    def unit(self, step: Step, *messages: Dict, origin: str = "") -> None:
        """Appends an iteration, sometimes with an importance, sometimes an invalid one."""
        scores: tuple[Any, ...] = (None, 10, 9.5, "10", 10.0, True, -3, None)
        score = scores[step.b] if step.a % 4 == 0 else None
        metadata = None if score is None else {"gent:importance_score": score}
        unit = {"messages": list(messages), "origin": origin, "metadata": metadata}
        if step.a % 4 == 1:
            unit = {name.capitalize(): value for name, value in unit.items()}
        elif step.a % 4 == 2 and not origin:
            del unit["metadata"]
        self.messages.append(unit)

    @staticmethod
    def parts(step: Step) -> Dict:
        """One text in short form, or two text parts."""
        if step.b % 3:
            return {"text": text(step.a, step.size)}
        return {"parts": [{"type": "text", "text": text(a, size)} for a, size in ((step.a, step.size), (step.b, 5))]}

    def head(self, size: int) -> None:
        """A system iteration is an ordinary one."""
        for number in range(size):
            self.unit(Step("", 3, number, 0), {"role": "system", "text": text(0, 30 + number)})

    def user(self, step: Step) -> None:
        """The user, or an observation."""
        self.unit(step, {"role": ("human", "generic")[step.a % 2], **self.parts(step)})

    def assistant(self, step: Step) -> None:
        """The model, sometimes with results."""
        observed = [{"role": "human", **self.parts(step._replace(a=step.b))}] if step.a % 2 else []
        self.unit(step, {"role": "ai", **self.parts(step)}, *observed)

    def summary(self, step: Step) -> None:
        """A summary of an earlier fold, marked by its label or by its origin."""
        labelled = f'<foldline-history version="1" round="{step.a}">\n{text(step.b, step.size)}\n'
        if step.b % 2:
            self.unit(step, {"role": "generic", "text": labelled})
        else:
            self.unit(step, {"role": "generic", "text": text(step.b, step.size)}, origin="compacted_synthetic")

    def system(self, step: Step) -> None:
        """A system iteration in the middle, sometimes empty."""
        self.unit(step, *([{"role": "system", **self.parts(step)}] if step.b else []))

    def other_role(self, step: Step) -> None:
        """An unknown role, and a file."""
        data = {"type": "binary", "binary": {"mime_type": "application/pdf", "data": "QUJD" * 100}}
        self.unit(step, {"role": "critic", "parts": [data]}, origin="retrieved_history")

    def calls(self, step: Step) -> None:
        """Parallel calls with their answers in the same iteration, in any order; one may be missing or in excess."""
        calls = [Pending(self.new_id(step, n), f"tool_{n}", 0) for n in range(1 + step.a % 3)]
        parts = self.parts(step).get("parts", [])
        for call in calls:
            function = {"name": call.name, "arguments": f'{{"q": "{text(5, step.size % 30)}"}}'}
            ids = {"id": "" if step.b == 4 else call.id}
            entry = {"type": "function", "function": function, **ids}
            parts = [*parts, {"type": "tool_call", "tool_call": entry}]
        answered = calls[step.b % 2 :] + [Pending("gone", "tool_9", 0)] * (step.b == 6)
        answers = [self.answer(call, step, number) for number, call in enumerate(answered[:: 1 if step.a % 2 else -1])]
        tools = [{"role": "tool", "parts": [part]} for part in answers]
        if step.b % 3 == 1 and answers:
            tools = [{"role": "tool", "parts": answers}]
        self.unit(
            step, {"role": "ai", "parts": parts}, *tools, origin=("", "original", "compacted_modified")[step.b % 3]
        )

    @staticmethod
    def answer(call: Pending, step: Step, number: int) -> Dict:
        """A part with a result."""
        content = text(step.a + number, (step.size * (number + 1) * 3) % 1500)
        ids = {"tool_call_id": "" if step.b == 4 else call.id}
        return {"type": "tool_response", "tool_response": {**ids, "name": call.name, "content": content, "x": 1}}

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """Answers without their calls; they belong only to their iteration."""
        if calls:
            parts = [self.answer(call, step, number) for number, call in enumerate(calls)]
            self.unit(step, {"role": "tool", "parts": parts})

    def anonymous_call(self, step: Step) -> None:
        """Calls without ids, answered by name."""
        self.calls(step._replace(b=4))

    def anonymous_result(self, step: Step) -> None:
        """A result by name alone."""
        self.results([Pending("", f"tool_{step.a % 3}", 0)], step._replace(b=4))

    def own(self, step: Step) -> None:
        """Every call of an iteration is answered in it."""
        self.calls(step)


class ShareGptWriter(LibraryWriter):
    """Writes training conversations with calls in the text, or by a speaker of their own."""

    def add(self, role: str, content: Any, **more: Any) -> None:
        """Appends a message, under one of the names of its speaker."""
        names = {"user": ("human", "user"), "assistant": ("gpt", "assistant"), "tool": ("tool", "observation")}
        speaker = names.get(role, (role, role))[len(self.messages) % 2]
        value = "".join(part["text"] for part in content) if isinstance(content, list) else content
        self.messages.append({"from": speaker, "value": value, **more})

    def head(self, size: int) -> None:
        """System texts, with an example of a call that is none."""
        for number in range(size):
            self.add("system", text(0, 30 + number) + "<tool_call>" * number)

    def user(self, step: Step) -> None:
        """The user."""
        self.add("user", text(step.a, step.size), **({"weight": 0} if step.b == 3 else {}))

    def assistant(self, step: Step) -> None:
        """The model, which may speak of a call."""
        self.add("assistant", "<tool_call></tool_call> is one. " * (step.b == 2) + text(step.a, step.size))

    def system(self, step: Step) -> None:
        """A system message in the middle, which is an ordinary message."""
        self.add("system", text(step.a, step.size))

    def other_role(self, step: Step) -> None:
        """A speaker with a name of its own."""
        self.add("narrator", text(step.a, step.size))

    def calls(self, step: Step) -> None:
        """Calls in a text, or one by a speaker of its own; none of them has an id."""
        calls = [Pending(None, "", len(self.messages)) for _ in range(1 + step.a % 3)]
        self.pending.extend(calls)
        if len(calls) == 1 and step.b % 2:
            self.messages.append({"from": "function_call", "value": text(step.b, step.size)})
        else:
            call = f"<tool_call>{text(step.b, step.size)}</tool_call>"
            self.add("assistant", text(step.a, step.size % 9) + call * len(calls) + "\n" * (step.a % 2))

    def anonymous_call(self, step: Step) -> None:
        """Every call is without an id."""
        self.calls(step)

    def results(self, calls: Sequence[Pending], step: Step) -> None:
        """All in one message, or each in its own; a single one often without a mark."""
        responses = [f"<tool_response>{text(step.a + n, step.size * 3)}" for n, _ in enumerate(calls)]
        if len(responses) == 1 and step.b % 2:
            responses = [text(step.a, step.size * 3)]
        for response in ["".join(responses)] if step.a % 2 and responses else responses:
            self.add("tool", response)

    def anonymous_result(self, step: Step) -> None:
        """A result that may answer nothing."""
        self.results([Pending(None, "", 0)], step)

    def own(self, step: Step) -> None:
        """A tool that ran elsewhere leaves a text."""
        self.add("assistant", text(step.b, step.size))
