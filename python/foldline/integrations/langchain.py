"""LangChain, LangGraph and deepagents: a middleware, a hook before the model, and twins of what trims today.

Examples:
    A middleware of an agent folds what is sent; the state keeps every message::

        agent = create_agent(model, tools, middleware=[FoldMiddleware(model="gpt-5", summarizer=chat_model)])

    In a graph::

        agent = create_react_agent(model, tools, pre_model_hook=fold_hook(model="gpt-5"))
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, NotRequired, Unpack

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import (
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_config
from langgraph.types import Command

from foldline._core import TokenCounter
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, StoreError
from foldline.folding.trim import trim
from foldline.integrations._folder import Folded, Folder
from foldline.integrations._langchain_messages import LangChainCodec, Tools, system_of
from foldline.integrations._options import AdapterOptions, compactor_for, pins_for
from foldline.summarizers import LangChainModel

__all__ = ["FoldHook", "FoldMiddleware", "FoldState", "fold_hook", "token_counter", "trim_messages"]

#: The name under which agents have a middleware that summarizes: one of the same name replaces it.
_NAME = "SummarizationMiddleware"

_KEY = "_foldline"


class FoldState(AgentState[Any]):
    """The state of an agent, with its newest fold: a checkpoint holds it, and a restart folds on from there."""

    _foldline: NotRequired[Annotated[dict[str, Any] | None, PrivateStateAttr]]  # type: ignore[valid-type]


class FoldMiddleware(AgentMiddleware[Any, Any, Any]):
    """Folds the messages of each model call. The agent's state keeps every message.

    Put it last in the list of middleware: the first is outermost, and this one should see what the others have added.
    Tools and system prompt are counted as they are at each call. Folds are remembered by thread (``thread_id``), and in
    the checkpoint.

    Args:
        name: Its name. An agent has each name once; deepagents replace their own summarization by this one.
        **options: See `AdapterOptions`. A summarizer may be a chat model of LangChain: what it writes is not streamed
            to the user.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """

    state_schema = FoldState

    def __init__(self, *, name: str = _NAME, **options: Unpack[AdapterOptions]) -> None:
        super().__init__()
        self._name = name
        self._folder = _folder(options)
        self._tools = Tools()

    @property
    def name(self) -> str:
        """Its name among the middleware of an agent."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Calls the model with the folded messages."""
        session = self._begin(request)
        folded = self._folder.fold(request.messages, session=session, **self._around(request))
        return self._answer(handler(_with(request, folded)), request, folded)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """`wrap_model_call` without blocking the event loop."""
        session = self._begin(request)
        folded = await self._folder.afold(request.messages, session=session, **self._around(request))
        return self._answer(await handler(_with(request, folded)), request, folded)

    def _begin(self, request: ModelRequest[Any]) -> str | None:
        """The session of a request. The fold of its checkpoint is known from now on."""
        session = _session(_current_config())
        known = (request.state or {}).get(_KEY)
        if isinstance(known, dict):
            self._folder.compactor.restore([json.dumps(known)], session=session)
        return session

    def _around(self, request: ModelRequest[Any]) -> dict[str, Any]:
        return {"tools": self._tools.schemas(request.tools), "system": system_of(request.system_message)}

    def _answer(
        self, response: ModelResponse[Any], request: ModelRequest[Any], folded: Folded
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The model's answer, with the fold for the state if it is a new one."""
        try:
            fold = None if folded.result is None else folded.result.fold
        except StoreError:  # a message that is not JSON: the fold is remembered, but no checkpoint can hold it
            fold = None
        if fold is None:
            return response
        kept = json.loads(fold)
        if kept == (request.state or {}).get(_KEY):
            return response
        update: Command[Any] = Command(update={_KEY: kept})
        return ExtendedModelResponse(response, update)


class FoldHook(Runnable[Any, Any]):
    """Folds the messages of a graph's state for the next model call. The state keeps every message.

    As ``pre_model_hook`` it gives ``llm_input_messages``; in a node call it with the messages and the node's
    configuration, or await `afold`. Folds are remembered by thread (``thread_id``); with a ``store`` a restart finds
    them.

    Made by `fold_hook`.
    """

    def __init__(
        self, folder: Folder, *, tools: Sequence[Any] | None, system: str | SystemMessage | None, key: str
    ) -> None:
        self._folder = folder
        self._around: dict[str, Any] = {"tools": Tools().schemas(tools), "system": system_of(system)}
        self._key = key

    def __call__(self, messages: Any, config: RunnableConfig | None = None) -> Any:
        """The messages to send; for a state, the update of a hook."""
        return self.invoke(messages, config)

    def fold(self, messages: Sequence[BaseMessage], config: RunnableConfig | None = None) -> list[BaseMessage]:
        """The messages to send."""
        return self._folder.fold(convert_to_messages(messages), session=_session(config), **self._around).messages

    async def afold(self, messages: Sequence[BaseMessage], config: RunnableConfig | None = None) -> list[BaseMessage]:
        """`fold` without blocking the event loop."""
        session = _session(config)
        folded = await self._folder.afold(convert_to_messages(messages), session=session, **self._around)
        return folded.messages

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As LangGraph calls a hook: the update for a state, or the messages for a list."""
        del kwargs
        config = config or _current_config()
        if isinstance(input, (list, tuple)):
            return self.fold(input, config)
        messages = _messages_in(input, self._key)
        return {"llm_input_messages": _unstreamed(self.fold(messages, config), messages)}

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """`invoke` without blocking the event loop."""
        del kwargs
        config = config or _current_config()
        if isinstance(input, (list, tuple)):
            return await self.afold(input, config)
        messages = _messages_in(input, self._key)
        return {"llm_input_messages": _unstreamed(await self.afold(messages, config), messages)}


def fold_hook(  # type: ignore[misc]  # tools and system are a graph's own, not those of a compactor
    *,
    tools: Sequence[Any] | None = None,
    system: str | SystemMessage | None = None,
    messages_key: str = "messages",
    **options: Unpack[AdapterOptions],
) -> FoldHook:
    """A hook for LangGraph: ``pre_model_hook=fold_hook(...)``, or ``fold(messages, config)`` in a node.

    Args:
        tools: The tools that the model is bound to: a hook does not see them.
        system: The prompt that is added after the hook, such as ``prompt=`` of an agent: it is counted, not sent.
        messages_key: The key of the messages in the state.
        **options: See `AdapterOptions`.

    Raises:
        ConfigError: An option is out of range.
        UnknownModelError: The model is unknown, and window and counter are not both given.
    """
    return FoldHook(_folder(options), tools=tools, system=system, key=messages_key)


def trim_messages(
    messages: Sequence[Any],
    *,
    max_tokens: int,
    token_counter: TokenCounter | str | Callable[[str], int] | None = None,
    strategy: str = "last",
    allow_partial: bool = False,
    start_on: str | None = None,
    include_system: bool = True,
    pins: Any = (),
    tools: Sequence[Any] | None = None,
    system: str | SystemMessage | None = None,
) -> list[BaseMessage]:
    """The newest messages that fit: LangChain's function of this name, with pairs kept whole and exact counts.

    Args:
        messages: The messages, or what LangChain converts to messages.
        max_tokens: The most tokens, ``tools`` and ``system`` included.
        token_counter: Token counter, or the name of an encoding or model. Default: `o200k_base`.
        strategy: ``"last"``; ``"first"`` is not supported.
        allow_partial: Whether results of tools are cleared or shortened to keep more messages.
        start_on: ``"human"`` if the first message after the system messages must be the user's.
        include_system: Whether leading system messages stay.
        pins: Predicates: the messages for which one is true stay.
        tools: Tools that are sent with the messages.
        system: The system prompt, if it is not among the messages.

    Returns:
        The messages, as the objects that were given; a cleared or shortened one is a copy.

    Raises:
        ConfigError: An option is out of range.
    """
    if strategy != "last":
        raise ConfigError("must be last", code="bad_strategy", path="strategy")
    if start_on not in (None, "human"):
        raise ConfigError("must be human", code="bad_start", path="start_on")
    found: list[BaseMessage] = convert_to_messages(messages)
    if not include_system:
        while found and isinstance(found[0], SystemMessage):
            found = found[1:]
    codec = LangChainCodec()
    dicts = [codec.dicts(message)[0] for message in found]
    predicates = pins_for(pins)
    result = trim(
        dicts,
        max_tokens,
        counter=_counter(token_counter),
        pins=[i for i, message in enumerate(found) if any(predicate(message) for predicate in predicates)],
        start_on_user=start_on is not None,
        clear=allow_partial,
        shorten=allow_partial,
        tools=Tools().schemas(tools),
        system=system_of(system),
        format="langchain",
    )
    new: list[BaseMessage] = []
    for message, source in zip(result.messages, result.sources):
        if source is None:
            new.append(codec.summary(message))
        elif message is dicts[source]:
            new.append(found[source])
        else:
            new.append(codec.edited(found[source], [dicts[source]], [(0, message)]))
    return new


def token_counter(
    counter: TokenCounter | str | Callable[[str], int] | None = None, *, tools: Sequence[Any] | None = None
) -> Callable[..., int]:
    """A counter for LangChain: ``trim_messages(..., token_counter=token_counter("gpt-5"))``.

    Args:
        counter: Token counter, or the name of an encoding or model. Default: `o200k_base`.
        tools: Tools that are sent with every list.

    Returns:
        A function from a list of messages, with ``tools=`` if wanted, to its tokens.

    Raises:
        ConfigError: The encoding is unknown.
    """
    count, schemas, codec = _counter(counter), Tools(), LangChainCodec()
    always = tools

    def count_tokens(messages: Sequence[Any], *, tools: Sequence[Any] | None = None) -> int:
        """Tokens of the messages as a request."""
        dicts = [codec.dicts(message)[0] for message in convert_to_messages(messages)]
        return count.count_messages(dicts, tools=schemas.schemas(tools or always), format="langchain").total

    return count_tokens


# --- Parts --------------------------------------------------------------------------------------------


def _folder(options: Any) -> Folder:
    given = dict(options)
    pins = pins_for(given.pop("pins", ()))
    if isinstance(given.get("summarizer"), BaseChatModel):
        given["summarizer"] = LangChainModel(given["summarizer"])
    return Folder(LangChainCodec(), compactor_for(**given), pins)


def _counter(counter: TokenCounter | str | Callable[[str], int] | None) -> TokenCounter:
    if isinstance(counter, str):
        try:
            return TokenCounter(counter)
        except ConfigError:
            return TokenCounter.for_model(counter)
    return as_counter(counter)


def _with(request: ModelRequest[Any], folded: Folded) -> ModelRequest[Any]:
    return request.override(messages=folded.messages) if folded.changed else request


def _messages_in(state: Any, key: str) -> list[Any]:
    found: list[Any] = state[key] if isinstance(state, dict) else getattr(state, key)
    return found


def _unstreamed(folded: list[BaseMessage], messages: Sequence[Any]) -> list[BaseMessage]:
    """The messages of a hook's update, of which the user's stream shows none.

    LangGraph streams what a node returns unless the node was given a message with that id. A summary gets the id of a
    message that it replaces.
    """
    sent = {message.id for message in folded}
    free = iter([number for each in messages if (number := getattr(each, "id", None)) and number not in sent])
    return [
        message.model_copy(update={"id": next(free, None)}) if message.id is None else message for message in folded
    ]


def _current_config() -> RunnableConfig | None:
    """The configuration of the running node; None outside of a graph."""
    try:
        found: RunnableConfig = get_config()
    except RuntimeError:
        return None
    return found


def _session(config: RunnableConfig | None) -> str | None:
    """The thread, and within it the graph that runs: an agent called by another one has messages of its own."""
    known: Any = (config or {}).get("configurable") or {}
    thread = known.get("thread_id")
    if thread is None:
        return None
    graph, _, _ = str(known.get("checkpoint_ns") or "").rpartition("|")  # the last part is the node
    return f"{thread}|{graph}" if graph else str(thread)
