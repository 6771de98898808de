"""The fillers that `Plan.apply` inserts between messages that a fold made adjacent."""

from __future__ import annotations

from typing import Any

import foldline as fl


def turn(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def test_two_model_turns_of_gemini_are_separated() -> None:
    """A server tool without its result keeps its turn; the user's turn after it is folded, and no problem is added."""
    code = turn("model", {"executableCode": {"language": "PYTHON", "code": "print(1)"}})
    messages = [turn("user", text("a")), code, turn("user", text("b " * 99)), turn("model", text("c"))]
    found = fl.validate(messages, "gemini")
    assert [(problem.index, problem.code) for problem in found] == [(1, "served_call_unanswered")]
    plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4")
    assert plan.actions == ["summarize", "keep", "summarize", "keep"]
    folded = plan.apply(messages, "So far.")
    assert fl.validate(folded, "gemini") == found
    assert folded[1] is code
    assert folded[2:] == [turn("user", text("Go on.")), messages[3]]


def test_a_list_without_a_fold_is_not_changed() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    plan = fl.plan(messages, fl.KeepMessages(2), counter="chars/4")
    assert plan.apply(messages, alternate=True) == messages


def test_messages_that_were_adjacent_before_are_not_separated() -> None:
    """Adjacent messages of the caller stay adjacent: only the effect of the fold is repaired."""
    words = "word " * 40
    messages = [{"role": role, "content": words} for role in ("user", "assistant", "user", "user", "assistant")]
    plan = fl.plan(messages, fl.KeepMessages(3), counter="chars/4")
    folded = plan.apply(messages, "So far.", alternate=True)
    assert [message["role"] for message in folded] == ["user", "assistant", "user", "user", "assistant"]
    assert folded[1]["content"] == "Understood."
    assert all(new is old for new, old in zip(folded[2:], messages[2:], strict=True))


def test_compact_accepts_the_option() -> None:
    messages = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "word " * 99} for i in range(9)]
    result = fl.compact(messages, fl.KeepMessages(3), counter="chars/4", summary_tokens=200, alternate=True)
    assert result.error is None
    assert fl.validate(result.messages, "openai", alternate=True) == []
    assert fl.validate(messages, "openai", alternate=True) == []


def test_check_accepts_the_strict_rules(tmp_path: Any, capsys: Any) -> None:
    import json

    from foldline.cli import main

    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]))
    assert main(["check", str(path), "--provider", "openai"]) == 0
    assert main(["check", str(path), "--provider", "openai", "--alternate", "--single-system"]) == 1
    assert "roles_not_alternating" in capsys.readouterr().err


def test_fillers_keep_calls_with_their_results() -> None:
    """A user filler directly after the model's message, a model filler directly before the user's."""
    call = {"id": "c", "type": "function", "function": {"name": "go", "arguments": "{}"}}
    pair = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "42"},
    ]

    def says(role: str, content: str) -> dict[str, str]:
        return {"role": role, "content": content}

    models = [says("user", "u"), says("assistant", "a"), says("user", "v"), *pair, says("assistant", "b")]
    messages = [*models, says("user", "w"), says("assistant", "x")]
    plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4", pins=[1, 3, 5])
    folded = plan.apply(messages, "So far.", alternate=True)
    assert folded[1:] == [models[1], says("user", "Go on."), *pair, models[5], says("user", "Go on."), messages[7]]

    users = [says("user", "u"), *pair, says("assistant", "a"), says("user", "v"), says("assistant", "b")]
    plan = fl.plan(users, fl.KeepMessages(1), counter="chars/4", pins=[1, 4])
    folded = plan.apply(users, "So far.", alternate=True)
    assert folded[1:] == [*pair, says("assistant", "Understood."), users[4], users[5]]
