"""A summarizer out of a model that answers messages."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from foldline import _core
from foldline.errors import ConfigError, SummaryError
from foldline.summarizers._checks import is_refusal, other_script, talk_of, usable
from foldline.summarizers._prompt.prompting import ModelCall, OutputBudget, Prompt, PromptTexts
from foldline.summarizers._prompt.prompts import FLAWS, FORMS, FormName, Kind
from foldline.typing import ChatModel, Completion, SummarizeRequest

__all__ = ["Prompted"]

#: The least share of a window that is left free where it is not the caller's own number: counters differ.
_SPARE_SHARE = 0.05
#: The share of a part's window that its summary may have, so that several fit into one prompt again.
_PART_SHARE = 0.25

#: A summary at work: calls come out, together where they may run together, and their answers go in.
Work: TypeAlias = "Generator[list[ModelCall], list[Completion], Completion]"


class Prompted:
    """Asks a model for the summary.

    The model gets the rules as a message of the system and the text of the folded messages as one of the user: as data
    between marks that nobody can guess, ``<``, ``>`` and ``&`` escaped. An earlier summary stands by itself, to be
    merged. On an event loop a model with ``acomplete`` is awaited.

    Where a prompt would be longer than the model's window, the messages are divided at legal cuts, each part is
    summarised by itself, and the summaries are merged in their order. A message that alone is too long is shortened.
    Every message reaches a call; where one of the calls fails, the summary fails.

    An answer that came to its end and refuses, is longer than its room, or is written in another script than the
    conversation, is asked for once more with what was wrong; there is one such call a summary.

    Args:
        model: Who is asked.
        prompt: A prompt of your own, sent as one message of the user, with ``{new_messages}`` and where wanted
            ``{existing_summary}``, ``{original_task}``, ``{facts}``, ``{instructions}``, ``{max_tokens}``,
            ``{max_words}``, ``{round}`` and ``{fence}`` (the name of the marks) in it.
        form: What is asked for without one: ``"document"`` (goal, constraints, progress, decisions, next steps,
            critical context, files), or ``"session"`` (that of `presets.layer`).
        instructions: What every summary is to mind, beside the instructions of a compaction.
        focus: What every summary is to be most detailed about.
        max_input_tokens: The most tokens of a prompt, by the counter of the fold. Without it the model's own
            ``max_input_tokens``, or its window where its name (``model``) is known; else there is no limit.
        max_concurrency: How many calls run at once on an event loop; without one they run one after the other.
        temperature: Given to a model whose ``complete`` takes one; without it that of the form.
        system_message: Whether the model takes a system message; without, the rules stand above the data.

    Raises:
        ConfigError: The prompt has no place for the messages, the model is none, or an option is out of range.
    """

    def __init__(
        self,
        model: ChatModel,
        prompt: str | None = None,
        *,
        form: FormName = "document",
        instructions: str | None = None,
        focus: str | None = None,
        max_input_tokens: int | None = None,
        max_concurrency: int = 4,
        temperature: float | None = None,
        system_message: bool = True,
    ) -> None:
        if not isinstance(model, ChatModel):
            raise ConfigError("must have complete", code="bad_model", path="model")
        if prompt is not None and "{new_messages}" not in prompt:
            raise ConfigError("has no {new_messages}", code="bad_prompt", path="prompt")
        if form not in FORMS:
            raise ConfigError(f"must be one of {', '.join(FORMS)}", code="bad_form", path="form")
        for name, number in (("max_input_tokens", max_input_tokens), ("max_concurrency", max_concurrency)):
            given: object = number
            if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
                raise ConfigError("must be a whole number from 1", code="bad_number", path=name)
        self.model = model
        self.words = PromptTexts(FORMS[form], prompt, instructions, focus, bool(system_message))
        self.max_input_tokens = max_input_tokens
        self.max_concurrency = max_concurrency
        temperature = self.words.form.temperature if temperature is None else temperature
        self._options = {} if temperature is None else {"temperature": temperature}
        if callable(getattr(model, "acomplete", None)):
            self.asummarize = self._asummarize  # what makes it a summarizer for event loops, too

    def __repr__(self) -> str:
        return f"Prompted({type(self.model).__name__})"

    @property
    def prompt_version(self) -> str:
        """The version of what it asks with: ``document/1``, or ``custom/`` and the beginning of a hash."""
        return self.words.version

    def messages_for(self, request: SummarizeRequest) -> list[dict[str, str]]:
        """What the model is sent where one call is enough: to look at, or to measure. Nothing is sent."""
        prompt = Prompt(self.words, request)
        return _whole(prompt, _kind(request), _room(request)).messages

    def summarize(self, request: SummarizeRequest) -> Completion:
        """Asks the model.

        Raises:
            SummaryError: No usable answer came, or the prompt does not fit into the model's window.
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
        """Asks the model, several times at once where there are several parts."""
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
        """The model's function, called with what it takes."""
        function: Callable[..., Any] = getattr(self.model, name)
        options = self._options if _takes(function, "temperature") else {}
        return lambda call, left_s: function(call.messages, max_tokens=call.room.most, timeout_s=left_s, **options)

    def _window(self, request: SummarizeRequest) -> int | None:
        """The most tokens of a prompt; None where nobody says."""
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

    # --- The work ------------------------------------------------------------------------------------------

    def _work(self, request: SummarizeRequest) -> Work:
        """One call, or one for each part and those that merge them."""
        prompt, tally = Prompt(self.words, request), _Tally(request, self.words.version)
        kind, room, window = _kind(request), _room(request), self._window(request)
        whole = _whole(prompt, kind, room)
        # Asking again takes a few words more.
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
            # One that is alone in its group waits for the next round.
            calls = [prompt.group(group, part) for group in merged if len(group) > 1]
            answers = iter((yield from tally.answers(calls)))
            texts = [next(answers) if len(group) > 1 else group[0] for group in merged]


class _Tally:
    """The answers of one summary: what they cost, and whether one was asked for again."""

    def __init__(self, request: SummarizeRequest, version: str) -> None:
        self._request = request
        self._version = version
        self._last = Completion("")
        self._input: list[int | None] = []
        self._output: list[int | None] = []
        self._notes: list[str] = []
        self._talk: str | None = None

    def answers(self, calls: list[ModelCall]) -> Generator[list[ModelCall], list[Completion], list[str]]:
        """The texts that are answered to some calls.

        Raises:
            SummaryError: One of them is unusable.
        """
        if not calls:
            return []
        completions = [self._counted(each) for each in (yield calls)]
        texts = []
        for call, completion in zip(calls, completions, strict=True):
            why = self._flaw(completion.text, call)
            if why is not None and "asked_again" not in self._notes:
                self._notes.append("asked_again")
                completion = self._counted((yield [call.again(FLAWS[why])])[0])
                why = self._flaw(completion.text, call)
            if why == "refused":
                raise SummaryError("the model refused", code="refused")
            if why == "other_script" and why not in self._notes:
                self._notes.append(why)
            self._last = completion
            texts.append(self._redacted(completion.text))
        return texts

    def _counted(self, answer: object) -> Completion:
        completion = usable(answer)
        self._input.append(completion.input_tokens)
        self._output.append(completion.output_tokens)
        return completion

    def _redacted(self, text: str) -> str:
        redact = self._request.redact
        return text if redact is None else redact(text)

    def _flaw(self, text: str, call: ModelCall) -> str | None:
        """What is wrong with an answer that a plainer word may mend."""
        if is_refusal(text):
            return "refused"
        # What is written of a part is cut where that is needed.
        if call.room.most >= self._request.max_tokens and self._request.count(text) > call.room.most:
            return "over_room"
        if self._talk is None:
            earlier = set(self._request.previous)
            self._talk = talk_of(self._request.messages, [i for i in self._request.folded if i not in earlier])
        return "other_script" if other_script(text, self._talk) else None

    def completion(self, text: str) -> Completion:
        """The summary, with what all calls together cost."""
        return replace(
            self._last,
            text=text,
            input_tokens=_sum(self._input),
            output_tokens=_sum(self._output),
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


def _sum(counts: Sequence[int | None]) -> int | None:
    """What is known of a sum; None where nothing is."""
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


def _timed(request: SummarizeRequest) -> Callable[[], float | None]:
    """What is left of the time, whenever it is asked for."""
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
    """The answers in their order. Where one fails the others are given up, and the first failure by place counts."""
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
