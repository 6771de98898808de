"""Compaction by the provider itself, if its API offers it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from foldline._util.checks import token_number
from foldline.errors import ConfigError, SummaryError
from foldline.planning import Analysis, analyze
from foldline.strategies.base import DirectStrategy, StrategyRequest, StrategyResult
from foldline.typing import Completion, Message, Messages

__all__ = ["ModelFold", "native_compactions"]

#: Types of edits and betas of Anthropic's Messages API, as its SDK 2.12 names them.
_COMPACT, _COMPACT_BETA = "compact_20260112", "compact-2026-01-12"
_CLEAR, _CLEAR_BETA = "clear_tool_uses_20250919", "context-management-2025-06-27"
#: Types of Responses items that only the provider can read, as the format readers treat them.
_ITEMS = frozenset(("compaction", "compaction_summary", "context_compaction"))


class ModelFold(DirectStrategy):
    """Delegates compaction to the provider: by request fields, or at OpenAI by a call.

    The provider's compaction (a block, an item) is opaque. It is kept unchanged and sent back.

    In requests: add the fields of `request_fields`. The provider compacts when its threshold is exceeded, and the
    strategy itself leaves the messages unchanged. Append the provider's answer, including the compaction.

    With ``compact``, such as the SDK's ``client.responses.compact``, the strategy sends the items to it and replaces
    them by the result. System and developer messages, pinned groups, and everything from the first unanswered call on
    are not sent and keep their places.

    Args:
        provider: ``"anthropic"`` (Messages) or ``"openai"`` (Responses).
        compact_at_tokens: Input tokens at which the provider compacts; None for never.
        clear_tool_uses_at_tokens: Anthropic: input tokens at which it clears tool results, oldest first.
        keep_tool_uses: Anthropic: number of newest tool uses that it keeps then. Default: the provider's own.
        clear_at_least_tokens: Anthropic: the least to clear; otherwise nothing is cleared.
        exclude_tools: Anthropic: tools whose results stay.
        instructions: Instructions for the summary. For Anthropic they replace its own prompt. ``compact`` also gets
            the caller's.
        pause_after_compaction: Anthropic: whether it answers with the compaction alone, and waits.
        compact: OpenAI: called with ``model``, ``input`` and, if set, ``instructions`` and ``timeout``; returns an
            object or a dict with ``output`` and ``usage``. In `Compactor.acompact` it runs in a thread.
        model: OpenAI: the model for ``compact``.

    Raises:
        ConfigError: An option is out of range, or belongs to the other provider.

    Examples:
        >>> strategy = ModelFold("anthropic", compact_at_tokens=150_000, clear_tool_uses_at_tokens=100_000)
        >>> strategy.request_fields()["betas"]
        ['context-management-2025-06-27', 'compact-2026-01-12']
        >>> ModelFold("openai", compact_at_tokens=200_000).request_fields()
        {'context_management': [{'type': 'compaction', 'compact_threshold': 200000}]}
    """

    def __init__(
        self,
        provider: Literal["anthropic", "openai"],
        *,
        compact_at_tokens: int | None = None,
        clear_tool_uses_at_tokens: int | None = None,
        keep_tool_uses: int | None = None,
        clear_at_least_tokens: int | None = None,
        exclude_tools: Iterable[str] = (),
        instructions: str | None = None,
        pause_after_compaction: bool = False,
        compact: Callable[..., Any] | None = None,
        model: str | None = None,
    ) -> None:
        if provider not in ("anthropic", "openai"):
            raise ConfigError("must be anthropic or openai", code="bad_provider", path="provider")
        self.provider = provider
        self.compact_at_tokens = _at_least_one(compact_at_tokens, "compact_at_tokens")
        self.clear_tool_uses_at_tokens = _at_least_one(clear_tool_uses_at_tokens, "clear_tool_uses_at_tokens")
        self.keep_tool_uses = None if keep_tool_uses is None else token_number(keep_tool_uses, "keep_tool_uses")
        self.clear_at_least_tokens = _at_least_one(clear_at_least_tokens, "clear_at_least_tokens")
        self.exclude_tools = _names(exclude_tools)
        self.instructions = instructions
        self.pause_after_compaction = bool(pause_after_compaction)
        self.compact = compact
        self.model = model
        of_clearing = ("keep_tool_uses", "clear_at_least_tokens", "exclude_tools")
        if provider == "openai":
            self._without("clear_tool_uses_at_tokens", *of_clearing, "pause_after_compaction")
        else:
            self._without("compact", "model")
            if clear_tool_uses_at_tokens is None:
                self._without(*of_clearing, why="requires clear_tool_uses_at_tokens")
        if compact is not None and not model:
            raise ConfigError("required with compact", code="missing_option", path="model")
        if compact is None and compact_at_tokens is None and clear_tool_uses_at_tokens is None:
            raise ConfigError("no threshold and no compact given", code="missing_option", path="compact_at_tokens")

    def __repr__(self) -> str:
        return f"ModelFold({self.provider!r})"

    def _without(self, *names: str, why: str = "not an option of this provider") -> None:
        for name in names:
            if getattr(self, name):
                raise ConfigError(why, code="bad_option", path=name)

    def request_fields(self) -> dict[str, Any]:
        """The fields to add to every request.

        Returns:
            For Anthropic ``context_management`` and ``betas``, arguments of ``client.beta.messages.create``; for OpenAI
            ``context_management``, an argument of ``client.responses.create``. Empty if only ``compact`` is used.
        """
        if self.provider == "openai":
            if self.compact_at_tokens is None:
                return {}
            return {"context_management": [{"type": "compaction", "compact_threshold": self.compact_at_tokens}]}
        edits: list[dict[str, Any]] = []
        betas = []
        if self.clear_tool_uses_at_tokens is not None:
            edit: dict[str, Any] = {"type": _CLEAR, "trigger": _tokens(self.clear_tool_uses_at_tokens)}
            if self.keep_tool_uses is not None:
                edit["keep"] = {"type": "tool_uses", "value": self.keep_tool_uses}
            if self.clear_at_least_tokens is not None:
                edit["clear_at_least"] = _tokens(self.clear_at_least_tokens)
            if self.exclude_tools:
                edit["exclude_tools"] = list(self.exclude_tools)
            edits.append(edit)
            betas.append(_CLEAR_BETA)
        if self.compact_at_tokens is not None:
            edit = {"type": _COMPACT, "trigger": _tokens(self.compact_at_tokens)}
            if self.instructions is not None:
                edit["instructions"] = self.instructions
            if self.pause_after_compaction:
                edit["pause_after_compaction"] = True
            edits.append(edit)
            betas.append(_COMPACT_BETA)
        return {"context_management": {"edits": edits}, "betas": betas}

    def calls_functions(self) -> bool:
        """It does, and they may take any time."""
        return True

    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Calls ``compact`` if set; otherwise leaves the messages to the provider."""
        if self.compact is None:
            return StrategyResult.unchanged(messages)
        analysis = analyze(messages, format=request.format)
        if analysis.format != "openai_responses":
            raise SummaryError("the messages are not items of Responses", code="wrong_format")
        sent = _compactable(messages, analysis, request)
        if len(sent) < 2:
            return StrategyResult.unchanged(messages)
        items, completion = self._called([messages[index] for index in sent], request)
        request.state.stats.count_tokens(completion.model, completion.input_tokens, completion.output_tokens)
        request.deadline.check()
        return _placed(messages, sent, items, completion, self.name)

    def _called(self, items: list[Message], request: StrategyRequest) -> tuple[list[Any], Completion]:
        assert self.compact is not None  # noqa: S101 - for the type checker
        body: dict[str, Any] = {"model": self.model, "input": items}
        told = "\n\n".join(each for each in (self.instructions, request.instructions) if each)
        if told:
            body["instructions"] = told
        request.deadline.check()
        left_s = request.deadline.remaining_s()
        if left_s is not None:
            body["timeout"] = left_s
        failure: SummaryError
        try:
            answer = _dumped(self.compact(**body))
        except Exception as error:  # noqa: BLE001 - any error of an SDK is classified by its message
            from foldline.summarizers._remote.sdk import failure_of

            failure = failure_of(error, answered=False).error
        else:
            return _read(answer, str(self.model))
        raise failure


def native_compactions(messages: Messages) -> list[int]:
    """Indices of messages with a provider's own compaction (Responses items, Anthropic blocks).

    A block of Anthropic without content is a failed compaction and does not count.

    Examples:
        >>> block = {"type": "compaction", "content": "They renamed it."}
        >>> native_compactions([{"role": "user", "content": "Go on."}, {"role": "assistant", "content": [block]}])
        [1]
        >>> native_compactions([{"type": "compaction", "encrypted_content": "gAAA"}])
        [0]
    """
    return [index for index, message in enumerate(messages) if _is_compaction(message)]


def _is_compaction(message: Message) -> bool:
    if message.get("type") in _ITEMS:
        return isinstance(message.get("encrypted_content"), str)
    content = message.get("content")
    return isinstance(content, (list, tuple)) and any(
        isinstance(part, Mapping)
        and part.get("type") == "compaction"
        and (part.get("content") is not None or part.get("encrypted_content") is not None)
        for part in content
    )


def _compactable(messages: Messages, analysis: Analysis, request: StrategyRequest) -> list[int]:
    """Indices of the items to compact together."""
    groups = [tuple(group) for group in analysis.groups]
    kept = {index for group in groups if not set(group).isdisjoint(request.pins) for index in group}
    end = min(analysis.open_calls, default=len(messages))
    # A group that the end would split is excluded whole, which may split another one.
    while straddling := [group for group in groups if min(group) < end <= max(group)]:
        end = min(map(min, straddling))
    is_head = [message.get("role") in ("system", "developer") for message in messages[:end]]
    return [index for index in range(end) if index not in kept and not is_head[index]]


def _placed(messages: Messages, sent: list[int], items: list[Any], completion: Completion, name: str) -> StrategyResult:
    """The new list: unsent messages before the last sent one, the returned items, then the rest."""
    gone = set(sent)
    before = [index for index in range(sent[-1] + 1) if index not in gone]
    after = range(sent[-1] + 1, len(messages))
    found = _found([(index, messages[index]) for index in sent], items)
    sources = [*before, *found, *after]
    came = [item if index is None else messages[index] for item, index in zip(items, found)]
    new = [*(messages[index] for index in before), *came, *(messages[index] for index in after)]
    summarized = tuple(index for index in sent if index not in set(found))
    return StrategyResult(new, tuple(sources), summarized=summarized, completions=(completion,), steps=(name,))


def _found(sent: list[tuple[int, Message]], items: list[Any]) -> list[int | None]:
    """For each item the index of the equal message that was sent, in order; None for a new item."""
    places: dict[str, list[int]] = {}
    for index, message in reversed(sent):
        places.setdefault(_key(message), []).append(index)
    found: list[int | None] = []
    last = -1
    for item in items:
        rest = places.get(_key(item), [])
        while rest and rest[-1] <= last:
            rest.pop()
        found.append(rest.pop() if rest else None)
        last = found[-1] if found[-1] is not None else last
    return found


def _key(item: object) -> str:
    return json.dumps(item, sort_keys=True, default=lambda _: None)


def _read(answer: Mapping[str, Any], model: str) -> tuple[list[Any], Completion]:
    output = answer.get("output")
    items = [_dumped(item) for item in output] if isinstance(output, (list, tuple)) else []
    if not native_compactions(items):
        raise SummaryError("the provider answered without a compaction", code="no_compaction")
    usage = answer.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    read, written = usage.get("input_tokens"), usage.get("output_tokens")
    return items, Completion(
        "", model, read if isinstance(read, int) else None, written if isinstance(written, int) else None
    )


def _dumped(value: Any) -> dict[str, Any]:
    """An SDK object as a dict, with only the fields that the API sent."""
    dump = getattr(value, "model_dump", None)
    dumped = dump(mode="json", exclude_unset=True, warnings=False) if callable(dump) else value
    if not isinstance(dumped, dict):
        raise SummaryError("the provider's answer is not an object", code="no_compaction")
    return dumped


def _tokens(value: int) -> dict[str, Any]:
    return {"type": "input_tokens", "value": value}


def _at_least_one(value: int | None, path: str) -> int | None:
    if value is not None and token_number(value, path) < 1:
        raise ConfigError("must be at least 1", code="bad_number", path=path)
    return value


def _names(names: Iterable[str]) -> tuple[str, ...]:
    given = () if isinstance(names, str) else tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in given):
        raise ConfigError("must be names of tools", code="bad_tool", path="exclude_tools")
    return given
