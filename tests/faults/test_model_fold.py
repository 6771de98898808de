"""Compaction by the provider: request fields, and OpenAI's call through its own client."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

import foldline as fl
from faults import model_server as server
from faults.model_server import ModelServer
from foldline.strategies import ModelFold, StrategyRequest
from foldline.strategies.model_fold import native_compactions

Serve = Callable[..., ModelServer]

COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA" * 8, "created_by": "me", "unknown": [1]}


def said(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def session() -> list[dict[str, Any]]:
    """Instructions, two turns with a call each, and an unanswered call."""
    items = [said("developer", "Be careful."), said("user", "Fix it. " + "word " * 100)]
    for call in ("a", "b"):
        items += [
            {"type": "function_call", "call_id": call, "name": "run", "arguments": "{}"},
            {"type": "function_call_output", "call_id": call, "output": "line " * 300},
            said("assistant", "Done. " + "word " * 50),
        ]
    return [
        *items,
        said("user", "And now?"),
        {"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"},
    ]


def answer(*items: Any) -> bytes:
    usage = {"input_tokens": 900, "output_tokens": 40, "total_tokens": 940}
    body = {"id": "r", "object": "response.compaction", "created_at": 1, "output": list(items), "usage": usage}
    return json.dumps(body).encode()


# --- fields of requests -----------------------------------------------------------------------------


def test_fields_for_anthropic() -> None:
    strategy = ModelFold(
        "anthropic",
        compact_at_tokens=150_000,
        instructions="Keep the names of files.",
        pause_after_compaction=True,
        clear_tool_uses_at_tokens=100_000,
        keep_tool_uses=3,
        clear_at_least_tokens=5_000,
        exclude_tools=["memory"],
    )
    clear = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 100_000},
        "keep": {"type": "tool_uses", "value": 3},
        "clear_at_least": {"type": "input_tokens", "value": 5_000},
        "exclude_tools": ["memory"],
    }
    compact = {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 150_000},
        "instructions": "Keep the names of files.",
        "pause_after_compaction": True,
    }
    assert strategy.request_fields() == {
        "context_management": {"edits": [clear, compact]},
        "betas": ["context-management-2025-06-27", "compact-2026-01-12"],
    }


def test_the_fields_are_arguments_of_the_sdks(serve: Serve) -> None:
    """The clients' own methods send them unchanged."""
    anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
    served = serve(server.answering(), server.saying(b"{}"))
    fields = ModelFold("anthropic", compact_at_tokens=150_000).request_fields()
    with anthropic.Anthropic(base_url=served.origin, api_key="k") as client:
        client.beta.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi."}], **fields)
    assert served.requests[0].body["context_management"] == fields["context_management"]
    assert served.requests[0].headers["anthropic-beta"] == "compact-2026-01-12"
    fields = ModelFold("openai", compact_at_tokens=200_000).request_fields()
    with openai.OpenAI(base_url=served.base_url, api_key="k") as client:
        client.responses.create(model="m", input="Hi.", **fields)
    assert served.requests[1].body["context_management"] == fields["context_management"]


def test_server_side_compaction_changes_nothing_locally() -> None:
    items = session()
    outcome = ModelFold("openai", compact_at_tokens=1).run(items, StrategyRequest())
    assert not outcome.changed
    assert all(new is old for new, old in zip(outcome.messages, items))


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"provider": "gemini", "compact_at_tokens": 9}, "provider"),
        ({"provider": "openai"}, "compact_at_tokens"),
        ({"provider": "openai", "compact_at_tokens": 0}, "compact_at_tokens"),
        ({"provider": "openai", "compact_at_tokens": 9, "clear_tool_uses_at_tokens": 9}, "clear_tool_uses_at_tokens"),
        ({"provider": "openai", "compact": print}, "model"),
        ({"provider": "anthropic", "compact": print, "model": "m"}, "compact"),
        ({"provider": "anthropic", "compact_at_tokens": 9, "keep_tool_uses": 3}, "keep_tool_uses"),
        ({"provider": "anthropic", "clear_tool_uses_at_tokens": 9, "exclude_tools": "memory"}, "exclude_tools"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], path: str) -> None:
    with pytest.raises(fl.errors.ConfigError) as caught:
        ModelFold(**options)
    assert caught.value.path == path


# --- opaque results ---------------------------------------------------------------------------------


def test_blocks_and_items_of_providers_are_recognized() -> None:
    block = {"type": "compaction", "content": "They renamed it.", "encrypted_content": "x", "signature": "s"}
    failed = {"type": "compaction", "content": None}
    messages = [
        {"role": "user", "content": "compaction"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "Go on."}]},
        {"role": "assistant", "content": [failed]},
        COMPACTION,
        {"type": "compaction", "summary": "an entry of pi's"},
    ]
    assert native_compactions(messages) == [1, 3]


@pytest.mark.parametrize("keep", [fl.KeepMessages(1), fl.KeepTokens(10)])
def test_a_kept_block_is_the_same_object(keep: Any) -> None:
    block = {"type": "compaction", "content": "They renamed it.", "signature": "s"}
    tail = {"role": "assistant", "content": [block, {"type": "text", "text": "Go on."}]}
    messages = [{"role": ("user", "assistant")[i % 2], "content": "word " * 100} for i in range(7)] + [tail]
    result = fl.compact(messages, keep, summarizer=lambda folded: "So far.", format="anthropic")
    assert result.changed
    assert result.messages[-1] is tail
    assert result.messages[-1]["content"][0] is block


# --- the call ---------------------------------------------------------------------------------------


def client_at(served: ModelServer) -> Any:
    return pytest.importorskip("openai").OpenAI(base_url=served.base_url, api_key="k", max_retries=0)


def test_items_are_sent_and_replaced(serve: Serve) -> None:
    items = session()
    before = copy.deepcopy(items)
    kept = said("user", items[1]["content"][0]["text"])
    served = serve(server.saying(answer(kept, COMPACTION)))
    with client_at(served) as client:
        strategy = ModelFold("openai", compact=client.responses.compact, model="gpt-5.4", instructions="Mind it.")
        compactor = fl.Compactor(fl.triggers.Manual(), strategy)
        result = compactor.compact(items, force=True, instructions="And that.")
    assert items == before
    assert result.error is None
    assert result.changed
    (request,) = served.requests
    assert request.path == "/v1/responses/compact"
    # Neither the leading instructions nor the unanswered call.
    assert request.body["input"] == items[1:9]
    assert (request.body["model"], request.body["instructions"]) == ("gpt-5.4", "Mind it.\n\nAnd that.")
    assert result.messages == [items[0], kept, COMPACTION, items[9]]
    assert result.messages[0] is items[0]
    assert result.messages[-1] is items[9]
    assert result.sources == (0, 1, None, 9)
    assert native_compactions(result.messages) == [2]
    assert result.messages[1] is items[1]
    problems = [[problem.code for problem in fl.validate(each, "responses")] for each in (items, result.messages)]
    assert problems == [["call_unanswered"]] * 2
    assert result.completions[0].input_tokens == 900


def test_pinned_groups_stay_in_their_position(serve: Serve) -> None:
    items = session()
    served = serve(server.saying(answer(COMPACTION)))
    with client_at(served) as client:
        strategy = ModelFold("openai", compact=client.responses.compact, model="gpt-5.4")
        outcome = strategy.run(items, StrategyRequest(pins=(3,)))
    assert served.requests[0].body["input"] == [items[1], *items[4:9]]
    assert outcome.messages == [items[0], items[2], items[3], COMPACTION, items[9]]
    assert outcome.summarized == (1, 4, 5, 6, 7, 8)


def test_an_earlier_compaction_is_sent_too(serve: Serve) -> None:
    items = [said("developer", "Be careful."), dict(COMPACTION), *session()[1:]]
    served = serve(server.saying(answer({**COMPACTION, "id": "cmp_2"})))
    with client_at(served) as client:
        outcome = ModelFold("openai", compact=client.responses.compact, model="m").run(items, StrategyRequest())
    assert served.requests[0].body["input"][0] == COMPACTION
    assert outcome.messages == [items[0], {**COMPACTION, "id": "cmp_2"}, items[-1]]


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (server.failing(500), "server_error"),
        (server.failing(400), "request_rejected"),
        (server.failing(429, retry_after="0"), "rate_limited"),
        (server.hanging_up, "connection_failed"),
        (server.saying(b"<html>", content_type="text/html"), "no_compaction"),
        (server.saying(b'{"output": []}'), "no_compaction"),
        (server.saying(b'{"output": [{"type": "compaction"}]}'), "no_compaction"),
        (server.saying(b'{"output": 7}'), "no_compaction"),
    ],
)
def test_a_failure_changes_nothing(serve: Serve, behaviour: Any, code: str) -> None:
    items = session()
    before = copy.deepcopy(items)
    with client_at(serve(behaviour)) as client:
        strategy = ModelFold("openai", compact=client.responses.compact, model="m")
        with pytest.warns(fl.errors.FoldlineWarning):
            result = fl.Compactor(fl.triggers.Manual(), strategy).compact(items, force=True)
    assert isinstance(result.error, fl.errors.SummaryError)
    assert result.error.code == code
    assert result.messages == items == before


def test_other_dialects_have_no_compaction_call() -> None:
    messages = [{"role": "user", "content": f"{i} " + "word " * 50} for i in range(4)]
    with pytest.raises(fl.errors.SummaryError, match=r"^wrong_format"):
        ModelFold("openai", compact=lambda **body: body, model="m").run(messages, StrategyRequest())
