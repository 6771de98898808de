"""The four presets over one real session, through five rounds of growth and compaction: ``python examples/presets.py``.

A session is replayed message by message into a store. Whenever a preset's trigger fires, it compacts; the summaries are
`Extractive`, so no network and no model is needed. Windows are scaled to the session, so that each preset has five
rounds. Other sessions: ``python examples/presets.py FILE…``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import foldline as fl
from foldline.typing import Format, FormatOption, Provider

SESSION = Path(__file__).resolve().parent / "data" / "claude-code-session.jsonl"
PRESETS = ("gent", "reserve", "budgeted", "layer")
PROVIDERS: dict[Format, Provider] = {
    "openai_chat": "openai",
    "openai_responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
ROUNDS = 5


@dataclass(frozen=True)
class Round:
    """The figures of one compaction."""

    preset: str
    number: int
    reason: str
    tokens: tuple[int, int]
    messages: tuple[int, int]
    kept: int
    is_valid: bool
    result: fl.CompactionResult


@dataclass(frozen=True)
class Replay:
    """A session, replayed with a preset."""

    preset: str
    rounds: list[Round]
    messages: list[Any]
    metadata: fl.context.Metadata
    store: fl.stores.MemoryStore
    appended: list[Any]


def preset(name: str, tokens: int, length: int, **options: Any) -> fl.Compactor:
    """A preset scaled to a session with this number of tokens and messages."""
    window = max(4_000, tokens // 5)
    make: dict[str, Callable[[], fl.Compactor]] = {
        "gent": lambda: fl.presets.gent(
            keep_recent=max(1, length // 40),
            trigger=fl.triggers.StatThreshold().on_counter("iterations", max(2, length // 14)),
            **options,
        ),
        "reserve": lambda: fl.presets.reserve(None, window, window // 10, window // 5, **options),
        "budgeted": lambda: fl.presets.budgeted(None, window, preserve=0.30, max_output_tokens=window // 10, **options),
        "layer": lambda: fl.presets.layer(
            None,
            window,
            system_reserve=window // 60,
            output_reserve=window // 30,
            safety_buffer=window // 25,
            keep_messages=10,
            **options,
        ),
    }
    return make[name]()


def is_models(message: dict[str, Any]) -> bool:
    """Whether the model wrote a message; a Responses item without a role is the model's, except outputs."""
    if "role" in message:
        return message["role"] in ("assistant", "model")
    return not str(message.get("type", "")).endswith("_output")


def replay(session: fl.StoredTranscript, name: str) -> Replay:
    """Replays a session until the preset has compacted it five times, or the session ends."""
    tokens = fl.TokenCounter("chars/4").count_messages(session.messages, format=session.format).total
    store, stats, metadata = fl.stores.MemoryStore(), fl.Stats(), fl.context.Metadata()
    compactor = preset(name, tokens, len(session.messages), store=store, format=session.format)
    metadata.set_importance(0, 10)  # the task
    provider = PROVIDERS.get(session.format)
    messages: list[Any] = []
    rounds: list[Round] = []
    appended: list[Any] = []
    for message in session.messages:
        if len(rounds) == ROUNDS:
            break
        if is_models(message) and appended and not is_models(appended[-1]):
            # This message is the model's answer: the compaction must precede its request.
            for done in compacted(compactor, name, messages, stats, metadata, store, provider):
                rounds.append(done)
                messages, metadata = list(done.result.messages), done.result.metadata
            stats.incr("iterations")
        store.append(message)
        messages.append(message)
        appended.append(message)
    return Replay(name, rounds, messages, metadata, store, appended)


def compacted(
    compactor: fl.Compactor,
    name: str,
    messages: list[Any],
    stats: fl.Stats,
    metadata: fl.context.Metadata,
    store: fl.stores.MemoryStore,
    provider: Provider | None,
) -> Iterator[Round]:
    """One round, if the trigger fires."""
    state = fl.ContextState.of(
        messages,
        counter=compactor.counter,
        stats=stats,
        context_window=compactor.context_window,
        reserve_tokens=compactor.reserve_tokens,
        format=compactor.format,
    )
    result = compactor.compact(messages, state, metadata=metadata, ids=store.ids())
    if result.changed and result.event is not None:
        yield Round(
            name,
            result.event.round,
            result.reason,
            (result.tokens_before, result.tokens_after),
            (len(messages), len(result.messages)),
            sum(source is not None for source in result.sources),
            _is_valid(result.messages, messages, provider, compactor.format),
            result,
        )


def _is_valid(messages: list[Any], before: list[Any], provider: Provider | None, format: FormatOption) -> bool:
    """Whether the provider would accept the messages, if it would have accepted those before."""
    if provider is None:
        return True
    return not fl.validate(messages, provider, format=format) or bool(fl.validate(before, provider, format=format))


def main(paths: list[str]) -> int:
    """Prints the table."""
    print(f"{'preset':10}{'round':>5}  {'tokens':>18}  {'messages':>12}  {'kept':>5}  valid  why")
    for path in paths or [str(SESSION)]:
        for session in fl.read(path):
            for name in PRESETS:
                for each in replay(session, name).rounds:
                    tokens = f"{each.tokens[0]:,} > {each.tokens[1]:,}"
                    lengths = f"{each.messages[0]} > {each.messages[1]}"
                    valid = "yes" if each.is_valid else "NO"
                    row = f"{name:10}{each.number:5}  {tokens:>18}  {lengths:>12}  {each.kept:5}"
                    print(f"{row}  {valid:5}  {each.reason}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
