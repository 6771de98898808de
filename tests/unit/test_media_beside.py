"""Media in places that only some services use: beside the content, as a bare text, by the address of a page."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl
from unit.media_files import base64_of, picture, sound

PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64_of(picture(512, 512))}"}}


@pytest.mark.parametrize(
    ("message", "least", "most"),
    [
        ({"role": "user", "content": "Look.", "images": [base64_of(picture(512, 512))]}, 200, 800),
        (
            {"role": "assistant", "content": "Here.", "images": [PICTURE]},
            200,
            800,
        ),
        ({"role": "assistant", "content": None, "audio": {"id": "audio_1"}}, 300, 1_300),
        ({"role": "assistant", "content": None, "audio": {"id": "a", "data": base64_of(sound(20))}}, 100, 700),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": base64_of(sound(20))}]}, 100, 700),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": "https://a.b/c.wav"}]}, 300, 1_300),
        ({"role": "user", "content": [{"type": "image_file", "image_file": {"file_id": "f"}}]}, 200, 1_700),
        ({"role": "user", "parts": [{"fileData": {"fileUri": "https://www.youtube.com/watch?v=a"}}]}, 10_000, 20_000),
        ({"role": "user", "parts": [{"fileData": {"fileUri": "https://youtu.be/a"}}]}, 10_000, 20_000),
    ],
    ids=[
        "ollama",
        "openrouter",
        "answer by id",
        "answer",
        "mistral",
        "mistral by url",
        "assistants",
        "page",
        "short page",
    ],
)
def test_media_beside_the_usual_places_cost_their_price(message: dict[str, Any], least: int, most: int) -> None:
    counts = fl.TokenCounter.for_model("gpt-4o").count_messages([message])
    assert least < counts.by_part["image"] < most
    assert counts.kind == "estimated"
