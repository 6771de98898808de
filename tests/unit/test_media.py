"""Media cost the same in every dialect and place, and never nothing; old pictures are cleared in every dialect."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldline as fl
from foldline.strategies import ClearMedia, StrategyRequest
from unit.media_files import base64_of, pdf, picture, sound

PART = Callable[[str, str], Any]
"""A content part with a file, from its media type and base64."""


def data_url(kind: str, data: str) -> str:
    return f"data:{kind};base64,{data}"


def anthropic(kind: str, data: str) -> Any:
    name = "image" if kind.startswith("image") else "document"
    return {"type": name, "source": {"type": "base64", "media_type": kind, "data": data}}


def chat(kind: str, data: str) -> Any:
    if kind.startswith("image"):
        return {"type": "image_url", "image_url": {"url": data_url(kind, data)}}
    if kind.startswith("audio"):
        return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    return {"type": "file", "file": {"filename": "a.pdf", "file_data": data_url(kind, data)}}


def responses(kind: str, data: str) -> Any:
    if kind.startswith("image"):
        return {"type": "input_image", "image_url": data_url(kind, data)}
    return {"type": "input_file", "filename": "a", "file_data": data_url(kind, data)}


def gemini(kind: str, data: str) -> Any:
    return {"inlineData": {"mimeType": kind, "data": data}}


def ai_sdk(kind: str, data: str) -> Any:
    if kind.startswith("image"):
        return {"type": "image", "image": data, "mediaType": kind}
    return {"type": "file", "data": data, "mediaType": kind}


def langchain(kind: str, data: str) -> Any:
    name = kind.split("/", maxsplit=1)[0] if not kind.startswith("application") else "file"
    return {"type": name, "base64": data, "mime_type": kind}


def pi(kind: str, data: str) -> Any:
    return {"type": "image" if kind.startswith("image") else "file", "data": data, "mimeType": kind}


def user(part: Any) -> list[Any]:
    return [{"role": "user", "content": [part]}]


def call(name: str) -> Any:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}


PLACES: dict[str, tuple[str, Callable[[str, str], list[Any]]]] = {
    "anthropic": ("anthropic", lambda kind, data: user(anthropic(kind, data))),
    "anthropic result": (
        "anthropic",
        lambda kind, data: [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            user({"type": "tool_result", "tool_use_id": "t", "content": [anthropic(kind, data)]})[0],
        ],
    ),
    "chat": ("openai_chat", lambda kind, data: user(chat(kind, data))),
    "chat result": (
        "openai_chat",
        lambda kind, data: [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": None, "tool_calls": [call("f")]},
            {"role": "tool", "tool_call_id": "c", "content": [chat(kind, data)]},
        ],
    ),
    "chat with a block of Anthropic": ("openai_chat", lambda kind, data: user(anthropic(kind, data))),
    "responses": ("openai_responses", lambda kind, data: user(responses(kind, data))),
    "responses output": (
        "openai_responses",
        lambda kind, data: [
            {"role": "user", "content": "Go."},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [responses(kind, data)]},
        ],
    ),
    "gemini": ("gemini", lambda kind, data: [{"role": "user", "parts": [gemini(kind, data)]}]),
    "ai sdk": ("ai_sdk", lambda kind, data: user(ai_sdk(kind, data))),
    "langchain": ("langchain", lambda kind, data: [{"type": "human", "data": {"content": [langchain(kind, data)]}}]),
    "pi": ("pi", lambda kind, data: user(pi(kind, data))),
    "MCP": (
        "anthropic",
        lambda kind, data: [
            *user({"type": "odd", "content": {"resource": {"blob": data, "mimeType": kind, "uri": "file:///a"}}})
        ],
    ),
}

MODELS = ("gpt-4o", "gpt-4.1-mini", "claude-sonnet-4-5", "claude-opus-4-8", "gemini-2.5-pro", "gemini-3-pro-preview")

FILES = {
    "picture": ("image/png", picture()),
    "document": ("application/pdf", pdf(size=200_000)),
    "sound": ("audio/wav", sound(60)),
}


def total(messages: list[Any], format: str, model: str) -> int:
    counts = fl.TokenCounter.for_model(model).count_messages(messages, format=format)
    assert counts.kind == "estimated"
    assert (
        counts.total
        == fl.TokenCounter.for_model(model).count_messages(json.dumps(messages).encode(), format=format).total
    )
    return counts.total


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("place", PLACES)
def test_a_medium_costs_the_same_in_every_dialect_and_place(place: str, what: str, model: str) -> None:
    """The prices of a model do not depend on the form of the messages: only the text around a file differs."""
    kind, data = FILES[what]
    format, build = PLACES[place]
    found = total(build(kind, base64_of(data)), format, model)
    reference = total(PLACES["gemini"][1](kind, base64_of(data)), "gemini", model)
    assert reference > 200
    assert abs(found - reference) < 200, (found, reference)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("packed", [False, True])
@given(pages=st.integers(1, 40))
def test_the_pages_of_a_pdf_are_counted(place: str, packed: bool, pages: int) -> None:
    format, build = PLACES[place]
    one, many = (
        total(build("application/pdf", base64_of(pdf(count, 6_000, packed=packed))), format, "gemini-2.5-pro")
        for count in (1, 1 + pages)
    )
    assert many - one == 258 * pages


@given(seconds=st.integers(1, 40))
def test_the_seconds_of_sound_are_counted(seconds: int) -> None:
    for format, build in PLACES.values():
        one, many = (
            total(build("audio/wav", base64_of(sound(count, rate=4_000))), format, "gpt-4o")
            for count in (1, 1 + seconds)
        )
        assert many - one == 10 * seconds


def test_a_document_whose_pages_are_not_found_costs_a_page_for_100_kb() -> None:
    sizes = {1_000: 1, 100_000: 1, 250_000: 3, 1_000_000: 10}
    found = {
        size: total(user(anthropic("application/pdf", base64_of(pdf(size=size)))), "anthropic", "claude-sonnet-4-5")
        for size in sizes
    }
    for size, pages in sizes.items():
        assert found[size] - found[1_000] == 2333 * (pages - 1)


REFERENCES = {
    "anthropic url": ("anthropic", {"type": "document", "source": {"type": "url", "url": "https://a.example/b"}}),
    "anthropic file": ("anthropic", {"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
    "chat file": ("openai_chat", {"type": "file", "file": {"file_id": "file_1"}}),
    "responses file": ("openai_responses", {"type": "input_file", "file_id": "file_1"}),
    "responses url": ("openai_responses", {"type": "input_file", "file_url": "https://a.example/b"}),
    "ai sdk": ("ai_sdk", {"type": "file", "data": "https://a.example/b", "mediaType": "application/pdf"}),
    "mistral": ("openai_chat", {"type": "document_url", "document_url": "https://a.example/b"}),
    "picture": ("anthropic", {"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_file_that_is_only_referred_to_costs_a_page_or_picture(name: str) -> None:
    format, part = REFERENCES[name]
    assert total(user(part), format, "claude-sonnet-4-5") > 1_000


PLAIN = {
    "text document": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A word."}},
    "search result": {"type": "search_result", "source": "https://a.example", "title": "A", "content": []},
    "encrypted": {"type": "odd", "encrypted_content": "QUJD" * 100},
    "upload": {"type": "container_upload", "file_id": "file_1"},
    "comment": {"type": "odd", "data": "//uQ a comment that begins like the frame of a sound"},
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_no_medium_costs_its_text(name: str) -> None:
    assert total(user(PLAIN[name]), "anthropic", "claude-sonnet-4-5") < 120


def test_a_file_of_text_costs_its_text() -> None:
    text = base64_of(b"A line of text that the model reads.\n" * 100)
    found = total(user(chat("text/plain", text)), "openai_chat", "gpt-4o")
    assert 900 < found < 1_100


def test_a_picture_of_anthropic_in_a_list_without_tools_tells_the_dialect() -> None:
    messages = [*user(anthropic("image/png", base64_of(picture()))), {"role": "assistant", "content": "A chart."}]
    assert fl.detect_format(messages).format == "anthropic"
    chat_call = {"role": "assistant", "content": None, "tool_calls": [call("f")]}
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    for order in ([*messages, chat_call, result], [chat_call, result, *messages]):
        assert fl.detect_format(order).format == "openai_chat", "a foreign picture decides nothing against a call"
        assert fl.TokenCounter.for_model("claude-sonnet-4-5").count_messages(order).total > 1_000


# --- ClearMedia ----------------------------------------------------------------------------------------

PLACEHOLDERS: dict[str, Any] = {
    "anthropic": {"type": "text", "text": "[cleared]"},
    "anthropic result": {"type": "text", "text": "[cleared]"},
    "chat": {"type": "text", "text": "[cleared]"},
    "chat result": {"type": "text", "text": "[cleared]"},
    "responses": {"type": "input_text", "text": "[cleared]"},
    "responses output": {"type": "input_text", "text": "[cleared]"},
    "gemini": {"text": "[cleared]"},
    "ai sdk": {"type": "text", "text": "[cleared]"},
    "langchain": {"type": "text", "text": "[cleared]"},
    "pi": {"type": "text", "text": "[cleared]"},
}

PROVIDERS = {"anthropic": "anthropic", "openai_chat": "openai", "openai_responses": "responses", "gemini": "gemini"}
SHOT = base64_of(picture(1280, 800))


def numbered(messages: list[Any], number: int) -> list[Any]:
    """The messages of one step, with ids of their own."""
    text = json.dumps(messages)
    for key in ("id", "tool_use_id", "call_id", "tool_call_id"):
        for old in ("t", "c"):
            text = text.replace(f'"{key}": "{old}"', f'"{key}": "{old}{number}"')
    steps: list[Any] = json.loads(text)
    return steps


def session(place: str, steps: int) -> list[Any]:
    """Steps with a screenshot each; where a step is one message, the model answers."""
    _, build = PLACES[place]
    messages: list[Any] = []
    for number in range(steps):
        step = build("image/png", SHOT)
        messages += numbered(step, number)
        if len(step) == 1 and place == "gemini":
            messages.append({"role": "model", "parts": [{"text": f"Step {number}."}]})
        elif len(step) == 1 and place != "langchain":
            messages.append({"role": "assistant", "content": f"Step {number}."})
    return messages


def pictures_in(value: Any) -> int:
    return json.dumps(value).count(SHOT)


@pytest.mark.parametrize("place", PLACEHOLDERS)
@given(steps=st.integers(0, 8), keep=st.integers(0, 5))
def test_all_but_the_newest_pictures_become_texts(place: str, steps: int, keep: int) -> None:
    format = PLACES[place][0]
    messages = session(place, steps)
    before = copy.deepcopy(messages)
    outcome = ClearMedia(keep).run(messages, StrategyRequest(format=format))  # type: ignore[arg-type]
    new = outcome.messages
    assert messages == before
    assert pictures_in(new) == min(keep, steps)
    assert len(new) == len(messages)
    if steps <= keep:
        assert not outcome.changed
        assert new == messages
        return
    placeholder = json.dumps(PLACEHOLDERS[place])
    assert json.dumps(new).count(placeholder) == steps - keep
    for i, (old, made) in enumerate(zip(messages, new, strict=True)):
        assert (old is made) == (i not in outcome.edited), "unchanged messages are the same objects"
    # Pairs and order: with every picture back in its place the list is the old one.
    assert pictures_in(messages[: max(outcome.edited) + 1]) == steps - keep
    assert outcome.tokens is not None
    if format in PROVIDERS:
        provider: Any = PROVIDERS[format]
        assert fl.validate(new, provider, format=format) == fl.validate(messages, provider, format=format)


def test_pinned_and_open_messages_keep_their_pictures() -> None:
    messages = session("anthropic result", 4)[:-1]  # the last call is open
    outcome = ClearMedia(0).run(messages, StrategyRequest(pins=(2,)))
    assert outcome.edited == (5, 8)
    assert [pictures_in(message) for message in outcome.messages] == [0, 0, 1, *[0] * 8]


def test_a_message_of_several_pictures_keeps_the_newest() -> None:
    parts = [{"type": "text", "text": "Before."}, chat("image/png", SHOT), chat("image/png", SHOT)]
    messages = [{"role": "user", "content": parts, "name": "ann", "extra": {"a": 1}}]
    (made,) = ClearMedia(1).run(messages, StrategyRequest()).messages
    assert made == messages[0] | {"content": [parts[0], PLACEHOLDERS["chat"], parts[2]]}
    assert list(made) == ["role", "content", "name", "extra"]


FUNCTION_RESPONSE: dict[str, Any] = {
    "name": "look",
    "response": {"picture": {"$ref": "screen.png"}},
    "parts": [{"inlineData": {"mimeType": "image/png", "data": SHOT, "displayName": "screen.png"}}],
}
OTHER_PLACES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "a function response": (
        "gemini",
        [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": FUNCTION_RESPONSE}]},
        ],
        {"inlineData": {"mimeType": "text/plain", "data": base64_of(b"[cleared]"), "displayName": "screen.png"}},
    ),
    "what code drew": (
        "openai_responses",
        [
            {"role": "user", "content": "Go."},
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "code": "plot()",
                "container_id": "c",
                "outputs": [
                    {"type": "logs", "logs": "drawn"},
                    {"type": "image", "url": data_url("image/png", SHOT)},
                ],
            },
        ],
        {"type": "logs", "logs": "[cleared]"},
    ),
    "a generated picture": (
        "openai_responses",
        [
            {"role": "user", "content": "Go."},
            {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": SHOT},
        ],
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": None},
    ),
}


@pytest.mark.parametrize("name", OTHER_PLACES)
def test_where_no_text_part_is_taken_the_placeholder_has_the_form_that_is(name: str) -> None:
    format, messages, placeholder = OTHER_PLACES[name]
    outcome = ClearMedia(0).run(messages, StrategyRequest(format=format))  # type: ignore[arg-type]
    assert outcome.edited == (len(messages) - 1,)
    assert pictures_in(outcome.messages) == 0
    assert json.dumps(placeholder) in json.dumps(outcome.messages)
    assert outcome.messages[:-1] == messages[:-1]
    provider: Any = PROVIDERS[format]
    assert fl.validate(outcome.messages, provider) == fl.validate(messages, provider) == []
    assert not ClearMedia(0).run(outcome.messages, StrategyRequest(format=format)).changed  # type: ignore[arg-type]
    counter = fl.TokenCounter.for_model("gemini-2.5-pro" if format == "gemini" else "gpt-4o")
    before, after = (counter.count_messages(each, format=format).total for each in (messages, outcome.messages))  # type: ignore[arg-type]
    assert after < before - 100


UNCLEARABLE = {
    "a computer screenshot": [
        {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}},
        {
            "type": "computer_call_output",
            "call_id": "c",
            "output": {"type": "computer_screenshot", "image_url": data_url("image/png", SHOT)},
        },
    ],
    "a document": user(anthropic("application/pdf", base64_of(pdf(3)))),
    "text": [{"role": "user", "content": "No picture."}],
    "nothing": [],
}


@pytest.mark.parametrize("name", UNCLEARABLE)
def test_what_cannot_be_cleared_stays_as_it_is(name: str) -> None:
    outcome = ClearMedia(0).run(UNCLEARABLE[name], StrategyRequest())
    assert not outcome.changed
    assert outcome.messages == UNCLEARABLE[name]


@pytest.mark.parametrize("number", [-1, 1.5, "3", None])
def test_the_number_of_pictures_is_whole(number: Any) -> None:
    with pytest.raises(fl.errors.ConfigError) as caught:
        ClearMedia(number)
    assert caught.value.path == "keep_newest"


def test_a_compactor_clears_old_screenshots_before_it_summarizes() -> None:
    messages = session("anthropic result", 12)
    strategy = fl.strategies.Pipeline(ClearMedia(3), fl.strategies.Summarize(keep_recent=2))
    compactor = fl.Compactor(
        trigger=fl.triggers.MessageCount(5),
        strategy=strategy,
        counter=fl.TokenCounter.for_model("claude-sonnet-4-5"),
        context_window=200_000,
    )
    result = compactor.compact(messages)
    assert result.outcome == "folded"
    assert pictures_in(result.messages) <= 3
    assert repr(ClearMedia(3)) == "ClearMedia(keep_newest=3)"


# --- Where a file is, and what is none -------------------------------------------------------------------


def tokens_of_media(part: Any, format: str = "openai_chat") -> int:
    messages = [{"role": "user", "parts": [part]}] if format == "gemini" else user(part)
    counts = fl.TokenCounter("o200k_base").count_messages(messages, format=format)
    return counts.by_part.get("image", 0)


@pytest.mark.parametrize("key", ["file_url", "document_url", "audio_url", "url"])
def test_the_pages_of_a_document_in_a_url_are_counted_under_every_key(key: str) -> None:
    seven, one = (data_url("application/pdf", base64_of(pdf(pages))) for pages in (7, 1))
    assert tokens_of_media({"type": "document", key: seven}) == 7 * tokens_of_media({"type": "document", key: one})


def test_a_document_in_a_part_for_pictures_has_its_pages() -> None:
    document = data_url("application/pdf", base64_of(pdf(7)))
    as_document = tokens_of_media({"type": "file", "file": {"file_data": document}})
    assert tokens_of_media({"type": "image_url", "image_url": {"url": document}}) == as_document


def test_a_text_that_mentions_an_address_is_no_file() -> None:
    for text in ("see https://example.com for more", "://", "a b://c"):
        part = {"type": "document", "source": {"type": "text", "data": text}}
        assert tokens_of_media(part, "anthropic") == 0
    part = {"type": "document", "source": {"type": "url", "data": "https://example.com/a.pdf"}}
    assert tokens_of_media(part, "anthropic") > 0


def test_the_type_of_a_source_is_not_that_of_its_part() -> None:
    part = {"type": "image", "source": {"type": "file", "file_id": "f"}}
    assert tokens_of_media({"type": "odd", "inner": part}, "anthropic") == tokens_of_media(part, "anthropic")


def test_a_data_url_is_a_file_wherever_it_is() -> None:
    url = data_url("image/png", base64_of(picture(800, 600)))
    least = tokens_of_media({"type": "image_url", "image_url": {"url": url}})
    for part in ({"type": "odd", "payload": url}, {"type": "odd", "images": [url]}, {"type": "odd", "a": {"b": [url]}}):
        assert tokens_of_media(part) == least > 0


def test_a_file_under_two_keys_of_an_object_counts_once() -> None:
    url = data_url("image/png", base64_of(picture(800, 600)))
    assert tokens_of_media({"type": "odd", "url": url, "image_url": url}) == tokens_of_media(
        {"type": "odd", "url": url}
    )


@pytest.mark.parametrize("parts", [[{"text": "Nine degrees."}], [None], {"odd": "Nine degrees."}, "Nine degrees."])
def test_parts_of_a_response_that_are_no_files_are_no_pictures(parts: Any) -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    response = {"name": "f", "response": {"output": ""}, "parts": parts}
    messages = [
        {"role": "user", "parts": [{"text": "Go."}]},
        call,
        {"role": "user", "parts": [{"functionResponse": response}]},
    ]
    counts = fl.TokenCounter("o200k_base").count_messages(messages, format="gemini")
    bare = {"name": "f", "response": {"output": ""}}
    messages[2] = {"role": "user", "parts": [{"functionResponse": bare}]}
    without = fl.TokenCounter("o200k_base").count_messages(messages, format="gemini")
    assert without.total < counts.total < without.total + 30
    assert counts.by_part.get("image", 0) == 0
