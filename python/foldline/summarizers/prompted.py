"""A summarizer that prompts a chat model."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from foldline import _core
from foldline.errors import ConfigError, SummaryError
from foldline.summarizers._checks import is_refusal, is_within, other_script, refuse_tool_call, talk_of, usable
from foldline.summarizers._prompt.prompting import ModelCall, OutputBudget, Prompt, PromptTexts
from foldline.summarizers._prompt.prompts import FLAWS, FORMS, PREFIX_VERSION, FormName, Kind
from foldline.summarizers._prompt.reuse import prefix_call
from foldline.typing import ChatModel, Completion, RequestModel, SummarizeRequest

__all__ = ["Prompted"]

#: Share of a looked-up context window left free, since counters differ between models.
_SPARE_SHARE = 0.05
#: Share of the window that a part's summary may use, so that several fit into a merge prompt.
_PART_SHARE = 0.25

#: A running summary as a generator: yields calls that may run concurrently, receives their answers.
Work: TypeAlias = "Generator[list[ModelCall], list[Completion], Completion]"


class Prompted:
    """Prompts a chat model for the summary.

    The system message contains the rules; the user message contains the folded messages as data between unguessable
    marks, with ``<``, ``>`` and ``&`` escaped. An earlier summary is passed separately, to be merged. A model with
    ``acomplete`` is awaited on an event loop.

    If the prompt exceeds the model's window, the messages are split at legal cuts, each part is summarized, and the
    summaries are merged in order. A single message that is too long is shortened. Every message is part of some call;
    if a call fails, the summary fails.

    An answer that refuses, exceeds its limit, or is in another script than the conversation, is requested once more
    with the reason; at most one such retry per summary.

    Args:
        model: The chat model.
        prompt: Custom prompt, sent as one user message. Must contain ``{new_messages}``; may contain
            ``{existing_summary}``, ``{original_task}``, ``{facts}``, ``{instructions}``, ``{max_tokens}``,
            ``{max_words}``, ``{round}`` and ``{fence}`` (the name of the marks).
        form: Built-in prompt: ``"handover"`` (the sections of `Extractive`: request, rules and decisions, state, open
            problems, next steps, files, commands, names), ``"document"`` (as in `presets.reserve`: goal, constraints,
            progress, decisions, next steps, critical context, files) or ``"session"`` (as in `presets.layer`).
        instructions: Instructions for every summary, in addition to those of a compaction.
        focus: Topic that every summary treats in most detail.
        max_input_tokens: Maximum tokens of a prompt, by the fold's counter. Default: the model's ``max_input_tokens``,
            or the context window of a known model name (``model``); else no limit.
        max_concurrency: Maximum concurrent calls on an event loop; synchronous calls run one at a time.
        temperature: Passed to a model whose ``complete`` accepts it. Default: the form's.
        system_message: Whether the model accepts a system message; if not, the rules precede the data.
        reuse: ``"prefix"`` sends the agent's own request, message for message, with one instruction behind it, so that
            the provider serves all but that from its cache. The model must be the agent's, with the same options.
            Where it cannot (another dialect, ``redact``, a list that exceeds the window or waits for a result), the
            messages are rendered as without it; `Completion.prompt_version` says which was sent.

    Raises:
        ConfigError: The prompt does not contain ``{new_messages}``, the model is invalid, or an option is out of range.
    """

    def __init__(
        self,
        model: ChatModel,
        prompt: str | None = None,
        *,
        form: FormName = "handover",
        instructions: str | None = None,
        focus: str | None = None,
        max_input_tokens: int | None = None,
        max_concurrency: int = 4,
        temperature: float | None = None,
        system_message: bool = True,
        reuse: Literal["prefix"] | None = None,
    ) -> None:
        if not isinstance(model, ChatModel):
            raise ConfigError("must have a method complete", code="bad_model", path="model")
        if prompt is not None and "{new_messages}" not in prompt:
            raise ConfigError("must contain {new_messages}", code="bad_prompt", path="prompt")
        if form not in FORMS:
            raise ConfigError(f"must be one of {', '.join(FORMS)}", code="bad_form", path="form")
        if reuse not in (None, "prefix"):
            raise ConfigError("must be prefix or None", code="bad_reuse", path="reuse")
        if reuse is not None and prompt is not None:
            raise ConfigError("cannot be combined with a custom prompt", code="bad_reuse", path="reuse")
        if reuse is not None and not isinstance(model, RequestModel):
            raise ConfigError("needs a model with a dialect", code="bad_reuse", path="reuse")
        for name, number in (("max_input_tokens", max_input_tokens), ("max_concurrency", max_concurrency)):
            given: object = number
            if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
                raise ConfigError("must be a whole number from 1", code="bad_number", path=name)
        self.model = model
        self.words = PromptTexts(FORMS[form], prompt, instructions, focus, bool(system_message))
        self.reuse = reuse
        self.max_input_tokens = max_input_tokens
        self.max_concurrency = max_concurrency
        temperature = self.words.form.temperature if temperature is None else temperature
        self._options = {} if temperature is None else {"temperature": temperature}
        if callable(getattr(model, "acomplete", None)):
            self.asummarize = self._asummarize  # makes this a summarizer for event loops

    def __repr__(self) -> str:
        return f"Prompted({type(self.model).__name__})"

    @property
    def prompt_version(self) -> str:
        """The prompt version: ``document/1``, or ``custom/`` and a hash prefix."""
        return self.words.version

    def messages_for(self, request: SummarizeRequest) -> list[Any]:
        """The messages of a single-call prompt, for inspection or measuring. Does not call the model."""
        below = self._below_the_request(request)
        if below is not None:
            return below.messages
        prompt = Prompt(self.words, request)
        return _whole(prompt, _kind(request), _room(request)).messages

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Calls the model.

        Raises:
            SummaryError: No usable answer, or the prompt does not fit into the model's window.
        """
        timed, work = _timed(request), self._work(request)
        complete = self._function("complete")
        try:
            calls = next(work)
            while True:
                calls = work.send([complete(call, timed()) for call in calls])
        except StopIteration as end:
            completion: Completion = end.value
            return completion

    async def _asummarize(self, request: SummarizeRequest) -> Completion:
        """Calls the model, concurrently for several parts."""
        timed, work = _timed(request), self._work(request)
        complete = self._function("acomplete")
        free = asyncio.Semaphore(self.max_concurrency)

        async def one(call: ModelCall) -> Completion:
            async with free:
                answer: Completion = await complete(call, timed())
                return answer

        try:
            calls = next(work)
            while True:
                calls = work.send(await _together([one(call) for call in calls]))
        except StopIteration as end:
            completion: Completion = end.value
            return completion

    def _function(self, name: str) -> Callable[[ModelCall, float | None], Any]:
        """The model's method, called with the arguments it accepts."""
        function: Callable[..., Any] = getattr(self.model, name)
        options = self._options if _takes(function, "temperature") else {}
        return lambda call, left_s: function(
            call.messages, max_tokens=call.room.most, timeout_s=left_s, **options, **call.request
        )

    def _window(self, request: SummarizeRequest) -> int | None:
        """The maximum tokens of a prompt; None if unknown."""
        if self.max_input_tokens is not None:
            return self.max_input_tokens
        own = getattr(self.model, "max_input_tokens", None)
        if isinstance(own, int) and not isinstance(own, bool) and own > 0:
            return own
        name = getattr(self.model, "model", None)
        known = _core.model_lookup(name) if isinstance(name, str) and name else None
        window = known.get("context_window") if known else None
        if not window:
            return None
        return max(1, int(window * (1 - _SPARE_SHARE)) - request.max_tokens)

    def _below_the_request(self, request: SummarizeRequest) -> ModelCall | None:
        """The call below the agent's own request; None if ``reuse`` is off or the request cannot be sent as it is."""
        if self.reuse is None or not isinstance(self.model, RequestModel):
            return None
        kind, room, window = _kind(request), _room(request), self._window(request)
        return prefix_call(self.words, request, kind, room, self.model.dialect, window)

    # --- Steps --------------------------------------------------------------------------------------------

    def _work(self, request: SummarizeRequest) -> Work:
        """One call, or one per part and those that merge their summaries."""
        below = self._below_the_request(request)
        if below is not None:
            tally = _Tally(request, PREFIX_VERSION)
            (text,) = yield from tally.answers([below])
            return tally.completion(text)
        prompt, tally = Prompt(self.words, request), _Tally(request, self.words.version)
        kind, room, window = _kind(request), _room(request), self._window(request)
        whole = _whole(prompt, kind, room)
        # A retry adds a few words.
        window = None if window is None else max(1, window - max(prompt.again_tokens(why) for why in FLAWS.values()))
        if window is None or prompt.tokens(whole.messages) <= window:
            (text,) = yield from tally.answers([whole])
            return tally.completion(text)
        prompt.make_room(window)
        most = min(room.most, max(1, int(window * _PART_SHARE)))
        part = OutputBudget(most, most)
        chunks = prompt.chunks(prompt.part_tokens(part, window))
        if len(chunks) == 1:
            calls = prompt.fitting(kind, chunks[0], room, window)
            if len(calls) == 1:
                (text,) = yield from tally.answers(calls)
                return tally.completion(text)
        calls = [call for chunk in chunks for call in prompt.fitting("part", chunk, part, window)]
        texts = yield from tally.answers(calls)
        while True:
            merged = prompt.merging(texts, room, window)
            if isinstance(merged, ModelCall):
                (text,) = yield from tally.answers([merged])
                return tally.completion(text)
            # A text alone in its group is carried to the next round.
            calls = [prompt.group(group, part) for group in merged if len(group) > 1]
            answers = iter((yield from tally.answers(calls)))
            texts = [next(answers) if len(group) > 1 else group[0] for group in merged]


class _Tally:
    """The answers of one summary: token usage, and the one retry."""

    def __init__(self, request: SummarizeRequest, version: str) -> None:
        self._request = request
        self._version = version
        self._last = Completion("")
        self._counted: list[Completion] = []
        self._notes: list[str] = []
        self._talk: str | None = None

    def answers(self, calls: list[ModelCall]) -> Generator[list[ModelCall], list[Completion], list[str]]:
        """The texts answering some calls.

        Raises:
            SummaryError: An answer is unusable.
        """
        if not calls:
            return []
        completions = [self._count(each) for each in (yield calls)]
        texts = []
        for call, completion in zip(calls, completions, strict=True):
            why = self._flaw(completion.text, call)
            if why is not None and "asked_again" not in self._notes:
                self._notes.append("asked_again")
                completion = self._count((yield [call.again(FLAWS[why])])[0])
                why = self._flaw(completion.text, call)
            if why == "refused":
                raise SummaryError("the model refused", code="refused")
            if why == "other_script" and why not in self._notes:
                self._notes.append(why)
            self._last = completion
            # The fold refuses a text over its room, before anything reads it.
            texts.append(completion.text if why == "over_room" else self._redacted(completion.text))
        return texts

    def _count(self, answer: object) -> Completion:
        completion = usable(answer)
        self._counted.append(completion)
        return completion

    def _redacted(self, text: str) -> str:
        redact = self._request.redact
        return text if redact is None else redact(text)

    def _flaw(self, text: str, call: ModelCall) -> str | None:
        """The flaw of an answer that a retry may fix, or None.

        Raises:
            SummaryError: It is a tool call (``tool_call``).
        """
        # First, so that nothing reads it. An overlong summary of a part is shortened if needed.
        if call.room.most >= self._request.max_tokens and not is_within(text, call.room.most, self._request.count):
            return "over_room"
        refuse_tool_call(text)
        if is_refusal(text):
            return "refused"
        if self._talk is None:
            earlier = set(self._request.previous)
            self._talk = talk_of(self._request.messages, [i for i in self._request.folded if i not in earlier])
        return "other_script" if other_script(text, self._talk) else None

    def completion(self, text: str) -> Completion:
        """The summary, with the token usage of all calls."""
        return replace(
            self._last,
            text=text,
            input_tokens=_sum([each.input_tokens for each in self._counted]),
            output_tokens=_sum([each.output_tokens for each in self._counted]),
            cache_read_tokens=_known_sum([each.cache_read_tokens for each in self._counted]),
            cache_write_tokens=_known_sum([each.cache_write_tokens for each in self._counted]),
            prompt_version=self._version,
            notes=(*self._last.notes, *self._notes),
        )


def _kind(request: SummarizeRequest) -> Kind:
    if request.part == "turn_prefix":
        return "turn_prefix"
    return "update" if request.previous_summary else "first"


def _room(request: SummarizeRequest) -> OutputBudget:
    return OutputBudget(max(1, request.max_tokens), max(1, request.target_tokens or request.max_tokens))


def _whole(prompt: Prompt, kind: Kind, room: OutputBudget) -> ModelCall:
    return prompt.model_call(kind, prompt.texts(prompt.blocks), room, [block.index for block in prompt.blocks])


def _known_sum(counts: Sequence[int | None]) -> int | None:
    """The sum of the known counts; None if none is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum of the known counts; None if none is known."""
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


def _timed(request: SummarizeRequest) -> Callable[[], float | None]:
    """Returns a function for the remaining seconds; the clock starts at its first call."""
    started_s: float | None = None

    def left_s() -> float | None:
        nonlocal started_s
        if request.timeout_s is None:
            return None
        if started_s is None:
            started_s = time.monotonic()
            return request.timeout_s
        left = request.timeout_s - (time.monotonic() - started_s)
        if left <= 0:
            raise SummaryError("the summary took too long", code="timeout")
        return left

    return left_s


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(each.name == name or each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)


async def _together(calls: Sequence[Any]) -> list[Completion]:
    """The answers in order. On a failure the others are cancelled, and the first failed call's error is raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()
    return [task.result() for task in tasks]
