"""The types of arguments: messages, keeps, pins, counters, choices."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, assert_type

import foldline as fl


class ChatMessage(TypedDict):
    """A message as an SDK types it."""

    role: Literal["user", "assistant"]
    content: str


def is_important(message: dict[str, Any]) -> bool:
    return "important" in message


def four_characters(text: str) -> int:
    return len(text) // 4


def messages_may_be_of_any_type_of_dict(
    plain: list[dict[str, str]], loose: list[dict[str, Any]], typed: list[ChatMessage], data: bytes
) -> None:
    keep = fl.KeepMessages(2)
    for each in (plain, loose):
        fl.compact(each, keep)
    fl.compact(typed, keep)
    fl.compact(data, keep)
    fl.compact(tuple(loose), keep)
    live = fl.Transcript(loose, counter="chars/4")
    fl.compact(live, keep)
    fl.plan(live.snapshot(), keep)
    assert_type(live.total_tokens, int)
    fl.compact({"role": "user"}, keep)  # type: ignore[arg-type]
    fl.compact(["Go on."], keep)  # type: ignore[list-item]


def keeps(messages: list[dict[str, Any]]) -> None:
    choices: list[fl.planning.Keep] = [
        fl.KeepTokens(20_000),
        fl.KeepFraction(0.4, of="messages"),
        fl.KeepMessages(10),
        fl.KeepTurns(2),
        fl.KeepIterations(3),
        fl.FitTokens(8_000),
    ]
    for keep in choices:
        fl.compact(messages, keep, counter="o200k_base")
    fl.compact(messages, context_window=128_000, reserve_tokens=16_384)
    fl.KeepFraction(0.4, of="turns")  # type: ignore[arg-type]
    fl.KeepTokens("20_000")  # type: ignore[arg-type]


def pins(messages: list[dict[str, Any]], compactor: fl.Compactor) -> None:
    keep = fl.KeepMessages(2)
    fl.compact(messages, keep, pins=[1])
    fl.compact(messages, keep, pins=is_important)
    fl.compact(messages, keep, pins=[1, is_important, lambda message: message["role"] == "system"])
    fl.compact(messages, keep, pins=fl.planning.ByMetadata(lambda about: "spec" in about["tags"]))
    compactor.compact(messages, pins=[1, is_important])
    compactor.prepare(messages, pins=is_important)
    compactor.unpin(is_important)
    fl.compact(messages, keep, pins=["1"])  # type: ignore[list-item]
    fl.compact(messages, keep, pins=1)  # type: ignore[arg-type]
    compactor.unpin(1)  # type: ignore[arg-type]


def counters(messages: list[dict[str, Any]]) -> None:
    keep = fl.KeepMessages(2)
    for counter in (
        None,
        "chars/4",
        fl.TokenCounter("o200k_base"),
        fl.TokenCounter.for_model("gpt-5"),
        four_characters,
    ):
        fl.compact(messages, keep, counter=counter)
    fl.compact(messages, keep, counter=len)
    fl.compact(messages, keep, counter=4)  # type: ignore[arg-type]


def choices(messages: list[dict[str, Any]]) -> None:
    fl.trim(messages, 4_000, format="anthropic", whole_turns=True, system="Be brief.")
    fl.compact(
        messages, fl.KeepMessages(2), thinking="strip", on_failure="raise", system=[{"type": "text", "text": "Hi"}]
    )
    fl.compact(messages, fl.KeepMessages(2), on_failure="truncate")  # type: ignore[arg-type]
    fl.compact(messages, fl.KeepMessages(2), keep_recent=2)  # type: ignore[call-arg]
    fl.trim(messages, fl.FitTokens(4_000))  # type: ignore[arg-type]
    fl.trim(messages, 4_000, format="openai")  # type: ignore[arg-type]
    fl.plan_batch([messages], fl.KeepMessages(2), errors="ignore")  # type: ignore[arg-type]
    metadata = fl.context.Metadata()
    metadata.set_origin(0, "retrieved_history")
    metadata.set_origin(0, "retrieved")  # type: ignore[arg-type]


def names_that_moved() -> None:
    assert_type(fl.loop.AgentLoop, type[fl.loop.AgentLoop])
    assert_type(fl.models.lookup("gpt-5").context_window, int | None)
    fl.AgentLoop  # type: ignore[attr-defined]
    fl.Keep  # type: ignore[attr-defined]
