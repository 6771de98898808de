"""What content is in every dialect: a text, a list of parts, any other JSON value; unknown parts and files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .media import PICTURE, Medium, files_in, is_data, media_in
from .parts import File, Opaque, Part, Text


def compact(value: Any) -> str:
    """Compact JSON of the values in the cases: texts and whole numbers."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def without_data(value: Any) -> Any:
    """A copy in which the data of files, as a URL or as plain base64, is empty text."""
    if isinstance(value, str):
        return "" if is_data(value) else value
    if isinstance(value, Mapping):
        return {key: without_data(item) for key, item in value.items()}
    return [without_data(item) for item in value] if isinstance(value, list | tuple) else value


def unknown(value: Any) -> Opaque:
    """An unknown part, which is any JSON value: its JSON text without the data of files, and these files."""
    files = files_in(value)
    if any(data is not None and not is_data(data) for _, data in files):
        raise ValueError("the oracle does not read files that are too short for data")
    return Opaque(compact(without_data(value)), tuple(medium for medium, _ in files))


def picture_or_file(part: Any) -> File:
    """A part that is a picture or a file: nothing of it is text. What does not say more is a picture."""
    return File(media_in(part) or (Medium(PICTURE),))


def parts_of(content: Any, read_part: Callable[[Mapping[str, Any]], Part]) -> tuple[Part, ...]:
    """The parts of a message's content: absent, a text, a list, or an object, which is an unknown part."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, Mapping):
        return (unknown(content),)
    return tuple(part_of(part, read_part) for part in content)


def part_of(part: Any, read_part: Callable[[Mapping[str, Any]], Part]) -> Part:
    """One item of a list of parts: a text, an object that the dialect reads, any other value."""
    if isinstance(part, str):
        return Text(part)
    return read_part(part) if isinstance(part, Mapping) else unknown(part)


def keyed_text(part: Mapping[str, Any], key: str = "text") -> Part:
    """A part whose text is under a key; unknown without it."""
    return Text(part[key]) if isinstance(part.get(key), str) else unknown(part)


def typed(part: Mapping[str, Any]) -> str | None:
    """The type of a part, if it is a text."""
    kind = part.get("type")
    return kind if isinstance(kind, str) else None


def result_of(content: Any) -> tuple[tuple[str, ...], tuple[Medium, ...]]:
    """The texts and media of a result's content: a text, an object, or a list of texts, pictures and other values."""
    if content is None:
        return (), ()
    if isinstance(content, str):
        return (content,), ()
    texts: list[str] = []
    media: list[Medium] = []
    for block in content if isinstance(content, list | tuple) else [content]:
        is_block = isinstance(block, Mapping) and block is not content
        if isinstance(block, str):
            texts.append(block)
        elif is_block and block.get("type") in ("image", "image_url"):
            media += picture_or_file(block).media
        elif is_block and isinstance(block.get("text"), str):
            texts.append(block["text"])
        else:
            texts.append(unknown(block).text)
            media += unknown(block).media
    return tuple(texts), tuple(media)


def objects_in(content: Any) -> list[Any]:
    """The objects in a content that is a list."""
    return [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
