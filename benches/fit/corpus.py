"""Texts of many kinds to fit and judge a token estimator: real ones first, synthetic ones for missing kinds.

Every document (a session, a dialogue, a translated catalogue, a seed of random bytes) is entirely in one half of the
corpus, so that judged texts were never fitted. Equal texts count once. Long texts are cut to 4,000 characters.
"""

from __future__ import annotations

import base64
import gettext
import hashlib
import json
import random
import sysconfig
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST = 4_000
SHORTEST = 40
#: The most characters of one kind in one half, so that no kind dominates the others.
MOST_CHARS = 2_000_000

CODE_SUFFIXES = {
    ".go", ".py", ".rs", ".ts", ".tsx", ".js", ".jsx", ".sh", ".sql", ".css", ".html", ".yaml", ".yml", ".toml",
}  # fmt: skip
SCRIPTS = {
    "japanese": ["ja"],
    "korean": ["ko"],
    "chinese (traditional)": ["zh_Hant"],
    "cyrillic": ["ru", "uk", "bg", "sr", "be", "mk", "kk", "mn"],
    "arabic, hebrew": ["ar", "fa", "ug", "he"],
    "indic, thai": ["hi", "mr", "ne", "bn", "ta", "te", "kn", "ml", "pa", "th", "my"],
    "greek, caucasian": ["el", "hy", "ka"],
    "latin, not english": ["de", "fr", "es", "pt", "it", "nl", "sv", "pl", "cs", "hu", "tr", "vi", "fi", "ro", "lt"],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """A text with its kind; ``held_out`` if it is used to judge."""

    kind: str
    text: str
    held_out: bool


def corpus(shared: Path, seed: int = 7) -> list[Sample]:
    """All samples, the same ones for the same data and seed."""
    found: dict[tuple[str, bool], list[str]] = {}
    seen: set[str] = set()
    for kind, document, text in _documents(shared, random.Random(seed)):
        held_out = zlib.crc32(document.encode()) % 2 == 1
        for start in range(0, len(text), LONGEST):
            piece = text[start : start + LONGEST].encode("utf-8", "replace").decode()
            if len(piece) >= SHORTEST and piece not in seen:
                seen.add(piece)
                found.setdefault((kind, held_out), []).append(piece)
    samples = []
    for (kind, held_out), texts in sorted(found.items()):
        random.Random(seed).shuffle(texts)
        chars = 0
        for text in texts:
            chars += len(text)
            if chars > MOST_CHARS:
                break
            samples.append(Sample(kind, text, held_out))
    return samples


def _documents(shared: Path, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """(kind, document, text)."""
    for path in sorted(shared.glob("*/*")):
        if path.suffix in (".json", ".jsonl", ".traj"):
            yield from _transcripts(path)
    yield from _sources()
    yield from _catalogues()
    yield from _synthetic(rng)


def _transcripts(path: Path) -> Iterator[tuple[str, str, str]]:
    """The texts in files with conversations of any dialect, classified by their path."""
    raw = path.read_text(encoding="utf-8", errors="replace")
    if path.parent.name == "kdconv-zh":
        for number, dialogue in enumerate(json.loads(raw)):
            said = [turn["message"] for turn in dialogue["messages"]]
            yield "chinese", f"kdconv-{number}", "\n".join(said)
            for turn in dialogue["messages"]:
                for fact in turn.get("attrs", []):
                    yield "chinese", f"kdconv-{number}", fact["attrvalue"]
        return
    values = _values(raw)
    for number, value in enumerate(values):
        # Files with one request or conversation per line are many documents, sessions are one.
        is_list = path.parent.name in ("pydantic-ai-requests", "openai-tau-airline")
        document = f"{path.name}-{number}" if is_list else path.name
        if path.parent.name == "pydantic-ai-requests":
            value = value.get("body")
        elif number % 7 == 0:
            yield "json documents", document, json.dumps(_without_data(value), ensure_ascii=False)
        for kind, text in _texts(value, "prose"):
            yield kind, document, text


def _values(raw: str) -> list[Any]:
    try:
        value = json.loads(raw)
        return value if isinstance(value, list) else [value]
    except ValueError:
        pass
    values = []
    for line in raw.splitlines():
        try:
            values.append(json.loads(line))
        except ValueError:
            continue
    return values


def _without_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_data(item) for item in value]
    return value[:2_000] if isinstance(value, str) else value


def _texts(value: Any, kind: str) -> Iterator[tuple[str, str]]:
    """The texts below a value with their kinds."""
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, kind)
        return
    if isinstance(value, str):
        if kind:
            yield ("base64" if _is_base64(value) else kind), value
        return
    if not isinstance(value, dict):
        return
    if value.get("type") in ("tool_result", "function_call_output") or value.get("role") in ("tool", "toolResult"):
        kind = "tool output"
    arguments = next((value[key] for key in ("input", "arguments", "args") if key in value), None)
    if isinstance(arguments, dict) and ("name" in value or "tool" in value):
        yield "json arguments", json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        yield from _code(arguments)
        return
    if isinstance(arguments, str) and "name" in value:
        yield "json arguments", arguments
        return
    for key, item in value.items():
        if key in ("data", "image_url", "url") and isinstance(item, str) and len(item) > 400:
            yield "base64", item
        elif key in ("parameters", "input_schema", "parametersJsonSchema") and isinstance(item, dict):
            yield "json arguments", json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        elif key in ("content", "text", "thinking", "output", "observation", "thought", "stdout", "result", "summary"):
            of = {"output": "tool output", "observation": "tool output", "stdout": "tool output"}.get(key, kind)
            yield from _texts(item, of)
        elif isinstance(item, dict | list):
            yield from _texts(item, kind if key in ("message", "messages", "history", "payload", "traj") else "")


def _code(arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
    path = str(arguments.get("file_path") or arguments.get("path") or "")
    if Path(path).suffix in CODE_SUFFIXES:
        for key in ("content", "new_string", "newText"):
            if isinstance(arguments.get(key), str):
                yield "code", arguments[key]


def _is_base64(text: str) -> bool:
    return len(text) > 400 and " " not in text[:400] and "\n" not in text[:70] and "." not in text[:400]


def _sources() -> Iterator[tuple[str, str, str]]:
    """Source code in addition to that of the sessions: Python's own library."""
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.glob("*.py")) + sorted(library.glob("*/*.py")):
        if zlib.crc32(path.name.encode()) % 5 == 0 and "site-packages" not in path.parts:
            yield "code", f"stdlib-{path.name}", path.read_text(encoding="utf-8", errors="replace")


def _catalogues() -> Iterator[tuple[str, str, str]]:
    """Text in many languages: Django's translations (BSD licence), ten messages a text."""
    import django

    root = Path(django.__file__).parent
    for kind, languages in SCRIPTS.items():
        for language in languages:
            for path in sorted(root.glob(f"**/{language}/LC_MESSAGES/*.mo")):
                # Small catalogues repeat each other: one half gets the core, the other the applications.
                part = "core" if "conf" in path.parts else "applications"
                with path.open("rb") as file:
                    catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
                messages = [text for key, text in catalogue.items() if key and isinstance(text, str)]
                for start in range(0, len(messages), 10):
                    # The halves alternate from one language to the next.
                    yield (
                        kind,
                        _side(part == "core", languages.index(language)),
                        "\n".join(messages[start : start + 10]),
                    )


def _side(is_core: bool, language: int) -> str:
    """The name of a document in the required half: fitted for the core of every even language."""
    wanted = 0 if is_core == (language % 2 == 0) else 1
    return next(name for name in map(str, range(100)) if zlib.crc32(name.encode()) % 2 == wanted)


EMOJI = [
    "😀", "🎉", "👍🏽", "❤️", "👩‍💻", "🚀", "🔥", "✅", "❌", "⚠️",
    "📦", "🇩🇪", "👨‍👩‍👧", "🤖", "✨", "💡", "📝", "🐛", "⏳", "🙏",
]  # fmt: skip
WORDS = [
    "done", "the build", "is", "green", "now", "please", "check", "tests", "failed", "again", "merged", "great work",
]  # fmt: skip


def _synthetic(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    for number in range(160):
        size = rng.choice([48, 90, 300, 1_000, 3_000])
        data = rng.randbytes(size)
        digests = [hashlib.sha256(rng.randbytes(8)).hexdigest() for _ in range(size // 60 + 1)]
        lines = {
            "base64": [base64.b64encode(data).decode()],
            "hex": [
                data.hex(),
                data.hex().upper(),
                "\n".join(f"{digest[:40]} {number}.txt" for digest in digests),
                "\n".join(str(uuid.UUID(bytes=rng.randbytes(16))) for _ in range(size // 60 + 1)),
                _hexdump(data),
            ],
            "numbers": [
                "\n".join(",".join(_number(rng) for _ in range(6)) for _ in digests),
                json.dumps([rng.randint(0, 10 ** rng.randint(1, 12)) for _ in range(size // 8)]),
                "\n".join(_time(rng) for _ in digests),
            ],
            "emoji": [
                " ".join(rng.choice(WORDS) + rng.choice(["", " "]) + rng.choice(EMOJI) for _ in range(size // 12)),
                "".join(rng.choice(EMOJI) for _ in range(size // 20 + 20)),
            ],
        }  # fmt: skip
        for kind, texts in lines.items():
            for text in texts:
                yield kind, f"synthetic-{number}", text


def _hexdump(data: bytes) -> str:
    rows = (data[at : at + 16] for at in range(0, len(data), 16))
    return "\n".join(f"{16 * at:08x}: " + row.hex(" ", 2) for at, row in enumerate(rows))


def _number(rng: random.Random) -> str:
    return f"{rng.uniform(-1e3, 1e3):.{rng.randint(1, 6)}f}"


def _time(rng: random.Random) -> str:
    return f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}T{rng.randint(0, 23):02}:00:00Z"
