"""The shared cases from public bug reports, with their variants and short forms written out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unit.media_files import base64_of, pdf, picture, sound

#: What a short form in a text stands for, by its kind and number.
SHORT_FORMS = {
    "pdf": lambda size: base64_of(pdf(size=size)),
    "png": lambda size: base64_of(picture(size=size)),
    "wav": lambda size: base64_of(sound(size=size)),
    "words": lambda count: " ".join(f"word{i}" for i in range(count)),
}


def cases(shared: Path, call: str) -> Iterator[dict[str, Any]]:
    """The cases and variants with this call, from the folder beside the recorded transcripts."""
    for path in sorted((shared.parent / "cases" / "field").glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        variants = case.pop("variants", [])
        for each in (case, *(case | variant for variant in variants)):
            if each["call"] == call:
                yield written_out(each)


def file_of(case: dict[str, Any], folder: Path) -> Path:
    """A file with the values of a case, a line each."""
    path = folder / f"{case['id']}.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in case["file"]), encoding="utf-8")
    return path


def written_out(value: Any, number: int | None = None) -> Any:
    """A value without its short forms; ``number`` stands for ``{i}``."""
    if isinstance(value, str):
        text = value if number is None else value.replace("{i}", str(number))
        return re.sub(r"\{\{(\w+):(\d+)\}\}", lambda found: SHORT_FORMS[found[1]](int(found[2])), text)
    if isinstance(value, dict):
        return {key: written_out(item, number) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    items: list[Any] = []
    for item in value:
        if isinstance(item, dict) and "$repeat" in item:
            for i in range(item["$repeat"]):
                items += written_out(item["of"], i)
        else:
            items.append(written_out(item, number))
    return items
