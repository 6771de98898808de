"""Reads the data sections of a prompt and unescapes their text."""

from __future__ import annotations

import html
import re
from typing import Any

#: The sections of a prompt: kind, nonce, content.
SECTION = re.compile(r"<(data|task|facts|summary)-([0-9a-f]{32})>\n(.*?)\n</\1-\2>", re.DOTALL)
_HEADER = re.compile(r"^\[(\d+)\] ([A-Z_]+):\n", re.MULTILINE)
_SEPARATOR = "\n\n---\n\n"


def sections(prompt: str) -> dict[str, str]:
    """The escaped text of every section, by its kind."""
    return {kind: text for kind, _, text in SECTION.findall(prompt)}


def nonces(prompt: str) -> set[str]:
    """The nonces of the sections."""
    return {nonce for _, nonce, _ in SECTION.findall(prompt)}


def recovered(prompt: str) -> dict[int, tuple[str, str]]:
    """Role and text of every message in the data of a prompt, by its index."""
    found: dict[int, tuple[str, str]] = {}
    data = sections(prompt)["data"]
    headers = list(_HEADER.finditer(data))
    for header, following in zip(headers, [*headers[1:], None]):
        body = data[header.end() : None if following is None else following.start()]
        body = body if following is None else body.removesuffix(_SEPARATOR)
        found[int(header[1])] = header[2], html.unescape(body)
    return found


def said(call: dict[str, Any]) -> str:
    """All text that one model call sent."""
    return "\n".join(str(message["content"]) for message in call["messages"])
