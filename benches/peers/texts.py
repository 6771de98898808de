"""The samples: real texts by kind, a megabyte each, and message lists.

They come from the shared transcripts (the folder that FOLDLINE_SHARED names), otherwise from examples/data, and are
smaller. The multilingual text mixes Chinese dialogues and, in equal shares, Django's translations into
thirty languages (BSD licence), a few messages at a time.
"""

from __future__ import annotations

import base64
import gettext
import json
import os
import random
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "data"
MEGABYTE = 999_999  # bpe-openai refuses a million characters.
KINDS = ("prose", "code", "chat", "multilingual")
LANGUAGES = (
    "ja ko zh_Hant ru uk bg sr kk mn ar fa he hi mr bn ta te kn th el hy ka de fr es pt it pl cs tr vi fi".split()  # noqa: SIM905
)

Message = dict[str, Any]


def shared() -> Path | None:
    """The folder of shared transcripts, if present."""
    folder = Path(os.environ.get("FOLDLINE_SHARED", ROOT.parent / "shared")) / "data"
    return folder if folder.is_dir() else None


def documents() -> dict[str, str]:
    """A text of each kind, at most a megabyte."""
    chat = "".join(json.dumps(messages, indent=1) for messages in conversations())
    texts = {
        "prose": "\n".join(_prose()),
        "code": "\n".join(_code()),
        "chat": chat,
        "multilingual": "\n".join(_multilingual()),
    }
    return {kind: cut(text, MEGABYTE) for kind, text in texts.items()}


def conversations() -> list[list[Message]]:
    """Message lists of OpenAI Chat, with tool calls."""
    if data := shared():
        tasks = json.loads((data / "openai-tau-airline" / "gpt-4o-airline.tasks0-24.json").read_bytes())
        return [task["traj"] for task in tasks]
    lines = (EXAMPLES / "openai-tools.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["messages"] for line in lines]


def pieces(text: str, size: int, most: int) -> list[str]:
    """At most `most` parts of about `size` bytes, cut at characters."""
    data, found, start = text.encode(), [], 0
    while start < len(data) and len(found) < most:
        piece = data[start : start + size].decode("utf-8", "ignore")
        found.append(piece)
        start += len(piece.encode())
    return found


def cut(text: str, size: int) -> str:
    """The first bytes of a text, cut at a character."""
    return text.encode()[:size].decode("utf-8", "ignore")


def shuffled(text: str, seed: int) -> str:
    """The text in pieces of 40 to 400 characters and whole words, in another order for every seed."""
    rng = random.Random(seed)
    pieces, start = [], 0
    while start < len(text):
        end = start + rng.randint(40, 400)
        # A word is not cut where a space is near.
        end += max(text[end : end + 40].find(" "), 0)
        pieces.append(text[start:end])
        start = end
    rng.shuffle(pieces)
    return "".join(pieces)


def _sessions() -> Iterator[Any]:
    data = shared()
    paths = sorted((data / "claude-code-entire").glob("*.jsonl")) if data else [EXAMPLES / "claude-code-session.jsonl"]
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            content = entry.get("message", {}).get("content") if isinstance(entry.get("message"), dict) else None
            yield from content if isinstance(content, list) else ()


def _prose() -> Iterator[str]:
    for part in _sessions():
        if isinstance(part.get("text"), str):
            yield part["text"]
    for messages in conversations():
        yield from (message["content"] for message in messages if isinstance(message.get("content"), str))


def _code() -> Iterator[str]:
    for part in _sessions():
        given = part.get("input") if isinstance(part.get("input"), dict) else {}
        for text in (part.get("content"), given.get("content"), given.get("new_string")):
            if isinstance(text, str):
                yield text


def _multilingual() -> Iterator[str]:
    sources = [_chinese(), *map(_translations, LANGUAGES)]
    for turn in zip_longest(*(_groups(source, 5) for source in sources), fillvalue=""):
        yield from filter(None, turn)


def _groups(texts: Iterable[str], size: int) -> Iterator[str]:
    group: list[str] = []
    for text in texts:
        group.append(text)
        if len(group) == size:
            yield "\n".join(group)
            group = []


def _chinese() -> Iterator[str]:
    if data := shared():
        dialogues = json.loads((data / "kdconv-zh" / "film-dev.json").read_bytes())
        yield from (turn["message"] for dialogue in dialogues for turn in dialogue["messages"])
        return
    for line in (EXAMPLES / "chinese-dialogues.jsonl").read_text("utf-8").splitlines():
        yield from (message["content"] for message in json.loads(line)["messages"])


def _translations(language: str) -> Iterator[str]:
    """A language's messages in Django's catalogues; Article 1 of the Declaration if Django is not installed."""
    try:
        import django
    except ImportError:
        yield from (ROOT / "benches" / "rust" / "languages.txt").read_text("utf-8").splitlines()
        return
    for path in sorted(Path(django.__file__).parent.glob(f"**/{language}/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        yield from (text for key, text in catalogue.items() if key and isinstance(text, str))


# --- hostile text ---------------------------------------------------------------------------------------

FAMILIES = (
    "one letter", "spaces", "newlines", "digits", "^", "Han", "combining marks", "random bytes", "base64",
    "alternating case", "emoji joiners", "punctuation",
)  # fmt: skip


def hostile(family: str, size: int, seed: int) -> str:
    """A text of a family with `size` bytes, different for each seed and size; some families are slightly shorter.

    Otherwise a library that caches pre-tokens would be timed on its cache.
    """
    rng = random.Random(f"{family} {size} {seed}")
    letter = "aemtx"[seed % 5]  # few, since letters differ in cost, and all sizes must contain the same ones
    match family:
        case "one letter":
            return letter * (size - seed % 64)
        case "spaces":
            return " " * (size - seed % 64)
        case "newlines":
            return "\n" * (size - seed % 64)
        case "digits":
            return "0123456789"[seed % 10] * (size - seed % 64)
        case "^":
            return "^" * (size - seed % 64)
        case "Han":
            return "".join(map(chr, rng.choices(range(0x4E00, 0x9E00), k=size // 3)))
        case "combining marks":
            return "".join(map(chr, rng.choices(range(0x300, 0x36F), k=size // 2)))
        case "random bytes":
            return cut(rng.randbytes(size).decode("latin-1"), size)
        case "base64":
            return base64.b64encode(rng.randbytes(size * 3 // 4)).decode()[:size]
        case "alternating case":
            return (letter + letter.upper()) * (size // 2)
        case "emoji joiners":
            return (chr(0x1F466 + seed % 4) + "\u200d") * (size // 7)
        case _:
            return "".join(rng.choices("!#$%&()*+,-./:;<=>?@[]", k=size))
