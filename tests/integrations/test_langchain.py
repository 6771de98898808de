"""Agents of LangChain, graphs of LangGraph, and deep agents, with a scripted chat model."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import adapter_checks as checks
import examples
import pytest
from adapter_checks import PIN, SUMMARY, TURNS, Record, Request, Script
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

import foldline as fl
from foldline.integrations.langchain import FoldMiddleware, fold_hook, token_counter, trim_messages


@tool(description=checks.tool_description("read_part"))
def read_part(part: str) -> str:
    return checks.result_of(part)


@tool(description=checks.tool_description("check_part"))
def check_part(part: str) -> str:
    return checks.result_of(part)


TOOLS = [read_part, check_part]


class Scripted(BaseChatModel):
    """Answers by the script and records what it gets."""

    script: Any
    record: Any
    tools: Any = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        from langchain_core.utils.function_calling import convert_to_openai_tool

        return self.model_copy(update={"tools": [convert_to_openai_tool(each) for each in tools]})

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        listed: Any = convert_to_openai_messages(messages)
        self.record.requests.append(Request(self.script.session, listed, list(self.tools), list(messages)))
        said = self.script.next()
        if isinstance(said, str):
            return AIMessage(said)
        return AIMessage("", tool_calls=[{"id": i, "name": name, "args": args} for i, name, args in said])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        calls = [
            {"id": c["id"], "name": c["name"], "args": f'{{"part": "{c["args"]["part"]}"}}', "index": i}
            for i, c in enumerate(answer.tool_calls)
        ]
        yield ChatGenerationChunk(message=AIMessageChunk(answer.content, tool_call_chunks=calls))


class Summaries(BaseChatModel):
    """Writes summaries, a word a chunk."""

    record: Any

    @property
    def _llm_type(self) -> str:
        return "summaries"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.record.summarize(messages)))])

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for word in self.record.summarize(messages).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(word + " "))


def pinned(message: Any) -> bool:
    return isinstance(message, HumanMessage) and message.text.startswith(PIN)


class Setting:
    """An agent of one kind with its record. `fresh` makes it once more, as a new process would."""

    def __init__(self, kind: str, saver: Any = None, **options: Any) -> None:
        self.kind, self.saver, self.options = kind, saver, options
        self.record, self.script = Record(), Script()
        self.model = Scripted(script=self.script, record=self.record)
        self.saver = InMemorySaver()
        self.fresh()

    def fresh(self) -> None:
        options = self.record.options(**self.options) | {"pins": [pinned]}
        if self.kind == "agent":
            middleware = FoldMiddleware(**options)
            self.folder = middleware._folder
            self.graph = create_agent(
                self.model, TOOLS, system_prompt=checks.SYSTEM, middleware=[middleware], checkpointer=self.saver
            )
            return
        if self.kind == "prebuilt":
            from langgraph.prebuilt import create_react_agent

            hook = fold_hook(**options, tools=TOOLS, system=checks.SYSTEM)
            self.folder = hook._folder
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.graph = create_react_agent(
                    self.model, TOOLS, prompt=checks.SYSTEM, pre_model_hook=hook, checkpointer=self.saver
                )
            return
        fold = fold_hook(**options, tools=TOOLS, system=checks.SYSTEM)
        self.folder = fold._folder
        bound = self.model.bind_tools(TOOLS)

        def call(state: Any, config: RunnableConfig) -> Any:
            return {"messages": [bound.invoke([SystemMessage(checks.SYSTEM), *fold(state["messages"], config)])]}

        async def acall(state: Any, config: RunnableConfig) -> Any:
            messages = await fold.afold(state["messages"], config)
            return {"messages": [await bound.ainvoke([SystemMessage(checks.SYSTEM), *messages])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", RunnableLambda(call, acall))
        graph.add_node("tools", ToolNode(TOOLS))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
        graph.add_edge("tools", "model")
        self.graph = graph.compile(checkpointer=self.saver)

    def config(self, session: str) -> Any:
        return {"configurable": {"thread_id": session}, "recursion_limit": 200}

    def turn(self, turn: int, session: str = "a") -> Any:
        self.script.session = session
        return self.graph.invoke({"messages": [HumanMessage(checks.prompt(turn))]}, self.config(session))

    def turns(self, count: int = TURNS) -> None:
        for turn in range(count):
            self.turn(turn)

    async def aturn(self, turn: int, session: str = "a") -> Any:
        self.script.session = session
        return await self.graph.ainvoke({"messages": [HumanMessage(checks.prompt(turn))]}, self.config(session))

    def messages(self, session: str = "a") -> list[BaseMessage]:
        """All messages of the state."""
        found: list[BaseMessage] = self.graph.get_state(self.config(session)).values["messages"]
        return found


KINDS = ["agent", "prebuilt", "graph"]


@pytest.mark.parametrize("kind", KINDS)
def test_four_turns(kind: str, row: Any) -> None:
    setting = Setting(kind)
    for turn in range(TURNS):
        setting.turn(turn)
    checks.check(setting.record)
    row(
        {"agent": "LangChain", "prebuilt": "LangGraph, pre_model_hook", "graph": "LangGraph, in a node"}[kind],
        "langchain" if kind == "agent" else "langgraph",
        setting.record,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_four_turns_on_an_event_loop(kind: str) -> None:
    setting = Setting(kind)

    async def run() -> None:
        for turn in range(TURNS):
            await setting.aturn(turn)

    asyncio.run(run())
    checks.check(setting.record)


@pytest.mark.parametrize("kind", KINDS)
def test_two_sessions_in_turns(kind: str) -> None:
    setting = Setting(kind)
    for turn in range(TURNS):
        for session in ("a", "b"):
            setting.turn(turn, session)
    checks.check(setting.record, sessions=2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_keeps_every_message(kind: str) -> None:
    setting = Setting(kind)
    for turn in range(TURNS):
        setting.turn(turn)
    messages = setting.messages()
    assert not any(SUMMARY in message.text for message in messages)
    assert sum(isinstance(message, HumanMessage) for message in messages) == TURNS
    assert sum(isinstance(message, ToolMessage) for message in messages) == TURNS * (checks.CALLS - 1 + 4)


def sent_by(middleware: FoldMiddleware, request: Any) -> list[Any]:
    """The messages of a call through a middleware."""
    sent: list[Any] = []
    middleware.wrap_model_call(request, lambda asked: sent.extend(asked.messages))  # type: ignore[arg-type, return-value]
    return sent


def test_kept_messages_are_the_same_objects() -> None:
    record = Record()
    seen: list[Any] = []
    middleware = FoldMiddleware(**record.options(), pins=[pinned])
    from langchain.agents.middleware import ModelRequest

    script, messages = Script(), [HumanMessage(PIN)]
    while len(seen) < 2:
        said = script.next()
        if isinstance(said, str):
            messages += [AIMessage(said), HumanMessage("Go on.")]
        else:
            messages.append(AIMessage("", tool_calls=[{"id": i, "name": n, "args": a} for i, n, a in said]))
            messages += [ToolMessage(checks.result_of(a["part"]), tool_call_id=i) for i, _, a in said]
        request = ModelRequest(model=Scripted(script=script, record=record), messages=list(messages), tools=TOOLS)
        sent = sent_by(middleware, request)
        if record.folds > len(seen):
            seen.append(sent)
            new = [m for m in sent if not any(m is known for known in messages)]
            assert len(new) == 1
            assert SUMMARY in new[0].text
            again = sent_by(middleware, request)
            assert [id(m) for m in again] == [id(m) for m in sent], "the same input gives the same answer"
    assert record.summaries == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_restart_from_the_checkpoint(kind: str, tmp_path: Any) -> None:
    """A new process has an empty memory: the agent's fold is in the checkpoint, a graph's in the store."""
    store = {} if kind == "agent" else {"store": fl.stores.MemoryStore()}
    setting = Setting(kind, **store)
    for turn in range(TURNS):
        setting.turn(turn)
        setting.fresh()
    checks.check(setting.record)


class Failing(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "failing"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise RuntimeError("no summary today")


@pytest.mark.parametrize("kind", KINDS)
def test_a_failing_summarizer_is_harmless(kind: str) -> None:
    setting = Setting(kind, summarizer=fl.summarizers.LangChainModel(Failing()))
    with pytest.warns(fl.errors.FoldlineWarning, match="not compacted, the messages are unchanged"):
        setting.turns(2)
    assert setting.record.folds == 0
    last = setting.record.requests[-1]
    assert len(last.messages) == len(setting.messages()[:-1]) + 1  # the system message, and the answer to come


def texts_of_stream(setting: Setting, *, is_async: bool) -> str:
    """All tokens that a user of the graph's stream sees."""
    seen: list[str] = []

    def take(piece: Any) -> None:
        message, _ = piece
        seen.append(message.text if isinstance(message, BaseMessage) else str(message))

    async def run() -> None:
        for turn in range(TURNS):
            messages = {"messages": [HumanMessage(checks.prompt(turn))]}
            pieces: AsyncIterator[Any] = setting.graph.astream(messages, setting.config("a"), stream_mode="messages")
            async for piece in pieces:
                take(piece)

    if is_async:
        asyncio.run(run())
    else:
        for turn in range(TURNS):
            messages = {"messages": [HumanMessage(checks.prompt(turn))]}
            for piece in setting.graph.stream(messages, setting.config("a"), stream_mode="messages"):
                take(piece)
    return "".join(seen)


@pytest.mark.parametrize("is_async", [False, True], ids=["stream", "astream"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_is_not_in_the_stream(kind: str, is_async: bool) -> None:
    record = Record()
    setting = Setting(kind)
    writer = fl.summarizers.LangChainModel(Summaries(record=setting.record), max_tokens_field=None)
    setting.options = {"summarizer": writer}
    setting.fresh()
    text = texts_of_stream(setting, is_async=is_async)
    checks.check(setting.record)
    assert "Turn 3 is done." in text
    assert SUMMARY not in text
    assert record.summaries == 0


@pytest.mark.parametrize("name", checks.SABOTAGE)
@pytest.mark.parametrize("kind", KINDS)
def test_sabotage_is_noticed(kind: str, name: str) -> None:
    setting = Setting(kind)
    checks.SABOTAGE[name](setting.folder)
    checks.assert_noticed(name, lambda: [setting.turn(turn) for turn in range(TURNS)], setting.record)


def test_a_chat_model_of_langchain_is_a_summarizer() -> None:
    record = Record()
    middleware = FoldMiddleware(
        model="gpt-4o", context_window=checks.WINDOW, summarizer=Summaries(record=record), keep=fl.KeepTokens(500)
    )
    messages: list[Any] = [HumanMessage("word " * 300) for _ in range(40)]
    folded = middleware._folder.fold(messages)
    assert folded.changed
    assert SUMMARY in folded.messages[0].text
    assert record.summaries == 1


# --- Deep agents --------------------------------------------------------------------------------------


@pytest.mark.newest
def test_deep_agents_use_it_instead_of_their_own(row: Any) -> None:
    from deepagents import create_deep_agent
    from langchain.agents.middleware import AgentMiddleware

    calls: list[str] = []
    record, script = Record(), Script()
    model = Scripted(script=script, record=record)
    middleware = FoldMiddleware(**record.options(12_000), pins=[pinned])
    import deepagents.middleware.summarization as built_in

    own = [each for each in vars(built_in).values() if isinstance(each, type) and issubclass(each, AgentMiddleware)]
    with pytest.MonkeyPatch.context() as patch:
        for each in own:
            for name in ("wrap_model_call", "before_model"):
                if name in vars(each):
                    patch.setattr(each, name, lambda *_, **__: calls.append("built-in"))
        agent = create_deep_agent(model, TOOLS, middleware=[middleware], checkpointer=InMemorySaver())
        for turn in range(TURNS):
            config: Any = {"configurable": {"thread_id": "a"}, "recursion_limit": 200}
            agent.invoke({"messages": [HumanMessage(checks.prompt(turn))]}, config)
    assert calls == []
    assert own
    checks.check(record, window=12_000)
    row("Deep Agents", "deepagents", record)


# --- Twins --------------------------------------------------------------------------------------------


def conversation() -> list[BaseMessage]:
    messages: list[BaseMessage] = [SystemMessage("Be brief.")]
    for i in range(20):
        messages += [
            HumanMessage(f"Question {i}. " + "word " * 30),
            AIMessage("", tool_calls=[{"id": f"c{i}", "name": "read_part", "args": {"part": str(i)}}]),
            ToolMessage("row " * 40, tool_call_id=f"c{i}"),
            AIMessage(f"Answer {i}."),
        ]
    return messages


def test_trim_messages_keeps_pairs_and_objects() -> None:
    messages = conversation()
    new = trim_messages(messages, max_tokens=600, start_on="human")
    assert isinstance(new[0], SystemMessage)
    assert isinstance(new[1], HumanMessage)
    assert all(any(each is known for known in messages) for each in new)
    checks.check_pairs(convert_to_openai_messages(new))  # type: ignore[arg-type]
    assert token_counter()(new) <= 600 < token_counter()(messages)
    without = trim_messages(messages, max_tokens=600, include_system=False)
    assert not isinstance(without[0], SystemMessage)


def test_the_counter_serves_langchains_own_function() -> None:
    from langchain_core.messages import trim_messages as langchains

    messages = conversation()
    new = langchains(messages, max_tokens=600, token_counter=token_counter("gpt-4o"), start_on="human")
    assert 0 < token_counter("gpt-4o")(new) <= 600
    listed: Any = convert_to_openai_messages(new)
    assert abs(Request("a", listed, []).tokens - token_counter()(new)) < 5 * len(new)
    assert token_counter()(new, tools=TOOLS) > token_counter()(new) + 1_000


@pytest.mark.parametrize("example", examples.examples("langchain"))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_example_of_the_document(example: str) -> None:
    script = Script(at={"a": checks.CALLS - 1})
    model = Scripted(script=script, record=Record())
    scope = examples.run(example, model=model, tools=TOOLS)
    assert scope["agent"] is not None
    assert len(model.record.requests) == 1
