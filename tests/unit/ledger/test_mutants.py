"""No ledger row's tests are vacuous: with the behaviour broken, at least one test of the row fails.

Each mutant changes one constant or comparison of the library while the tests named after the row run.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from unit.services import reopening

#: Row, the broken module and function or constant, the original source, and its replacement.
MUTANTS = [
    ("G1", "foldline.compactor.result", "metadata_after", '"compacted_modified"', '"original"'),
    ("G2", "foldline.context.metadata", "Metadata.is_pinned", ">= PINNED_FROM", "> PINNED_FROM"),
    ("G2", "foldline.context.metadata", "Metadata.importance", "return 0.0", "return 10.0"),
    ("G3", "foldline.compactor._outcomes", "Outcomes.concluded", "self.parts.trigger.notify_compacted(state)", "pass"),
    ("G4", "foldline.compactor._outcomes", "Outcomes.failed", 'self.parts.on_failure == "raise"', "False"),
    ("G4", "foldline.loop.loop", "AgentLoop._steps", "(iteration {session.iteration})", ""),
    ("G5", "foldline.loop.loop", "AgentLoop._steps", "session.iteration or self.compact_first", "True"),
    ("G5", "foldline.loop.steps", "Session.begin", "self.stats.clear_gauge(gauge)", "pass"),
    ("G6", "foldline.triggers.stats", "StatThreshold.reason", "count - self._snapshot.get(key, 0) >=", "count >="),
    ("G6", "foldline.triggers.stats", "StatThreshold.reason", "get(key, 0) >= counted", "get(key, 0) > counted"),
    ("G6", "foldline.triggers.stats", "StatThreshold.reason", "level >= gauged", "level > gauged"),
    ("G7", "foldline.strategies.window", "SlidingWindow.__init__", "keep.n < 1", "False"),
    ("G8", "foldline.folding._ask", "request_for", '== "earlier_summary"', '== "none"'),
    ("G9", "foldline.strategies.base", "_count", "request.state.stats.count_tokens", "(lambda *_: None)"),
    ("G9", "foldline.context.state", "Stats.incr", "None if local else run.parent", "None"),
    ("G10", "foldline.testing", "_Script.next", "if not self._answers:", "if False:"),
    ("A1", "foldline.triggers.sizes", "ReserveTokens.reason", "_tokens(state) > limit", "_tokens(state) >= limit"),
    ("A2", "foldline.presets", "reserve", "KeepTokens(keep)", "KeepTokens(0)"),
    ("A3", "foldline.strategies.summarize", "Summarize.__init__", "isinstance(self.keep, KeepTokens)", "False"),
    ("A4", "foldline.folding._finish", "finish", "None if has_own or not mend else shown.evidence", "None"),
    ("A4", "foldline.summarizers._prompt.prompts", "_rules_of", "form.document", "_TURN_FORM"),
    ("A5", "foldline.folding._ask", "request_for", "(shown.messages, previous) or", "(shown.messages, ()) or"),
    ("A6", "foldline.stores.memory", "MemoryStore.save_context", "self._entries.append(compaction)", "pass"),
    ("A7", "foldline.config", "_window", "found = found or (told, ", "found = (told, "),
    ("A7", "foldline.config", "CompactionConfig.build", "not self.enabled or", "False or"),
    ("A8", "foldline.compactor.events", "Subscribers.emit", "_called(subscriber, event)", "pass"),
    ("A9", "foldline.context.usage", "ContextUsage.from_messages", "reported + counted, reported", "counted, reported"),
    ("B1", "foldline.context.usage", "TokenBudget.available", "self.room - self.message_tokens", "self.room"),
    ("B2", "foldline.triggers.sizes", "Utilization.reason", ">= self.critical", "> self.critical"),
    ("B2", "foldline.triggers.sizes", "Utilization.reason", "> self.threshold", ">= self.threshold"),
    ("B2", "foldline.loop.loop", "AgentLoop._iteration", '"max_tokens"', "None"),
    ("B3", "foldline.counting.models", "context_limit", 'startswith(_WITHOUT_LONG_CONTEXT)', 'startswith("x")'),
    ("B4", "foldline.presets", "budgeted", '"bytes/4+4"', '"chars/4"'),
    ("B5", "foldline.presets", "budgeted", "KeepFraction(preserve, of)", "KeepFraction(preserve / 2, of)"),
    ("B7", "foldline.strategies.truncate", "_line", "count += int(line[1])", "pass"),
    ("B7", "foldline.strategies.shaped", "Shaped.reshaped", "Shaped(strategy, self.shape)", "strategy"),
    ("B8", "foldline.presets", "_CompactSummary.messages", "[told, answer]", "[told]"),
    ("B8", "foldline.strategies.shaped", "Shaped._plain", "at = 0", "at = 1"),
    ("B9", "foldline.compactor._outcomes", "Outcomes.concluded", "SessionStart(), ", ""),
    ("B10", "foldline.strategies.clear", "prune_tool_results", "KeepMessages(preserve_recent)", "KeepMessages(0)"),
    ("B11", "foldline.compactor._outcomes", "Outcomes.concluded", "max(session.round, event.round)", "0"),
    ("T1", "foldline.presets", "layer", '"utf16/4+2"', '"chars/4"'),
    ("T6", "foldline.presets", "layer", '"session"', '"document"'),
    ("T6", "foldline.summarizers._prompt.prompting", "Prompt._shows_task", "self.words.form.shows_task or", "False or"),
    ("T6", "foldline.summarizers.prompted", "Prompted._function", '_takes(function, "temperature")', "False"),
    ("T7", "foldline.summarizers._prompt.blocks", "_body", "cut(piece.text, limits.result_chars, share)", "piece.text"),
    ("T7", "foldline.summarizers._prompt.blocks", "Block.text", "limits.content_chars", "None"),
    ("T2", "foldline.triggers.sizes", "TokenThreshold.reason", ">= self.threshold_of", "> self.threshold_of"),
    ("T3", "foldline.counting.models", "context_limit", "default is None", "False"),
    ("T4", "foldline.triggers.sizes", "TokenThreshold.reason", "self.keep_messages + 1", "self.keep_messages"),
    ("T5", "foldline.presets", "layer", "KeepMessages(keep_messages)", "KeepMessages(keep_messages + 1)"),
    ("T8", "foldline.compactor.result", "event_of", "tuple(ids[index] for index in gone)", "tuple(gone)"),
    ("T9", "foldline.compactor._commit", "saved", "store.save_context(event, context_of(outcome, ids))", "pass"),
    ("T9", "foldline.stores.memory", "MemoryStore.save_context", "if unknown:", "if False:"),
    ("T10", "foldline.presets", "_SessionSummary.messages", "{request.round}", "1"),
    ("A6", "foldline.stores._tree", "SessionTree._fold", "list(self._named(entry, listed, rest))", "context.messages"),
    ("A6", "foldline.stores._tree", "SessionTree._fold", '== "originals"', '== "no"'),
    ("A6", "foldline.stores._records", "new_context", "if message is None else message) for", "if True else 0) for"),
    ("A6", "foldline.stores.sql", "SqlStore._mark", "sorted(after - before)", "[]"),
    ("A6", "foldline.stores.sql", "SqlStore._save", "appended.get(each.id) == each.message", "each.id in appended"),
    ("T9", "foldline.stores._records", "new_context", "any(each not in held for each in known)", "False"),
    ("T9", "foldline.stores._records", "new_context", "if each.id not in known]", "if False]"),
    ("T9", "foldline.stores.jsonl", "JsonlSession._save", "if event.round <= main.round:", "if False:"),
    ("T9", "foldline.stores.jsonl", "JsonlSession._save", '.value.get("round") == event.round', ".id == event.round"),
    ("T9", "foldline.stores.sql", "SqlStore._save", "if event.round <= stored_rows.last_round():", "if False:"),
    ("T9", "foldline.stores.sql", "SqlStore._save", "if stored is not None and", "if False and"),
    ("T9", "foldline.stores.sql", "SqlStore._mark", "if str(each.id) not in after", "if False"),
    ("T9", "foldline.stores._rows", "SessionRows._numbered", "MESSAGES.c.seq > after", "MESSAGES.c.seq > after + 1"),
    ("T10", "foldline.stores._tree", "SessionTree._fold", "context.round = told if", "context.round = 0 if"),
    ("T10", "foldline.stores.sql", "SqlStore._save", "round=event.round,", "round=1,"),
    ("T11", "foldline.presets", "_Trimmed._trimmed", "self._clear.run(request.messages, asked)", "request"),
    ("T11", "foldline.triggers.sizes", "TokenThreshold.reason", "self.keep_messages + 1", "0"),
]  # fmt: skip

MODULES = (
    *("unit.ledger.test_G_when", "unit.ledger.test_G_how", "unit.ledger.test_G_loop", "unit.ledger.test_ABT_when"),
    *(
        "unit.ledger.test_ABT_how",
        "unit.ledger.test_compactor",
        "unit.ledger.test_presets",
        "unit.ledger.test_A_config",
        "unit.ledger.test_stores",
        "unit.ledger.test_summaries",
    ),
    "unit.test_usage",
)


def mutate(module: ModuleType, name: str, old: str, new: str) -> Callable[[], None]:
    """Replaces the code of a function in place; returns a function that restores it."""
    owner: Any = module
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    member = vars(owner)[last]
    function = member.fget if isinstance(member, property) else inspect.unwrap(member)
    source = textwrap.dedent(inspect.getsource(function))
    assert old in source, f"{name} no longer says {old}"
    lines = [line for line in source.splitlines() if not line.startswith("@")]
    space: dict[str, Any] = {}
    code = "from __future__ import annotations\n" + "\n".join(lines).replace(old, new)
    exec(compile(code, module.__file__ or "", "exec"), vars(module), space)
    broken: FunctionType = space[function.__name__]
    # The body itself is replaced, so that modules that imported the function see the mutant.
    whole, defaults, keywords = function.__code__, function.__defaults__, function.__kwdefaults__
    if broken.__code__.co_freevars != whole.co_freevars:
        pytest.fail(f"{name} closes over something")
    function.__code__ = broken.__code__

    def mend() -> None:
        function.__code__, function.__defaults__, function.__kwdefaults__ = whole, defaults, keywords

    return mend


def row_of(value: Any, names: int) -> Any:
    """The arguments of one case."""
    if isinstance(value, type(pytest.param())):
        return value.values
    return (value,) if names == 1 else value


def cases(function: Any) -> Iterator[dict[str, Any]]:
    """The arguments of a test, one dict per case; at most some forty cases."""
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    axes = []
    for mark in marks:
        names = [n.strip() for n in mark.args[0].split(",")] if isinstance(mark.args[0], str) else list(mark.args[0])
        axes.append([dict(zip(names, row_of(value, len(names)))) for value in mark.args[1]])
    for combination in itertools.islice(itertools.product(*axes), 40):
        yield {name: value for part in combination for name, value in part.items()}


def named_after(row: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    for name in MODULES:
        for test, function in list(vars(importlib.import_module(name)).items()):
            if test.startswith(f"test_{row}_"):
                for arguments in cases(function):
                    wanted = set(inspect.signature(function).parameters) - set(arguments)
                    if not wanted:
                        yield function, arguments
                    elif wanted == {"open_store"}:
                        yield from ((function, arguments | {"open_store": kind}) for kind in ("jsonl", "sqlite"))


def call(function: Any, arguments: dict[str, Any]) -> None:
    """Calls a test; a test with a store argument gets a new store."""
    kind = arguments.get("open_store")
    if kind is None:
        function(**arguments)
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        open_one = reopening(kind, Path(folder))

        def open_store() -> Any:
            store = open_one()
            stack.callback(getattr(store, "close", lambda: None))
            return store

        function(**arguments | {"open_store": open_store})


def failing(row: str) -> str | None:
    """The first failing test of a row; None if all pass."""
    for function, arguments in named_after(row):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call(function, arguments)
            except (Exception, pytest.fail.Exception) as error:
                return f"{function.__name__}: {type(error).__name__}"
    return None


@pytest.mark.parametrize("row", sorted({mutant[0] for mutant in MUTANTS}))
def test_the_tests_of_a_row_pass_on_the_original_code(row: str) -> None:
    assert next(named_after(row), None) is not None
    assert failing(row) is None


@pytest.mark.parametrize(
    ("row", "module", "name", "old", "new"), MUTANTS, ids=[f"{m[0]}-{m[2]}-{i}" for i, m in enumerate(MUTANTS)]
)
def test_a_broken_behaviour_fails_a_test_of_its_row(row: str, module: str, name: str, old: str, new: str) -> None:
    mend = mutate(importlib.import_module(module), name, old, new)
    try:
        found = failing(row)
    finally:
        mend()
    assert found is not None, "no test noticed"
