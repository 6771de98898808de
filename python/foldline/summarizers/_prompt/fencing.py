"""Fences foreign text in a prompt: as data between unguessable marks."""

from __future__ import annotations

import html
import re
import secrets

from foldline.summarizers._sanitize import well_formed

__all__ = ["Fence", "escaped", "unescaped"]

#: Line starts that chat templates read as a turn, or that look like a block of this prompt.
_LINE_START = re.compile(
    r"^([ \t]*)(?:\[(?=\d+\] [A-Z_]+:)|(Human|Assistant|System|User|Developer|Tool)([ \t]*):)",
    re.MULTILINE | re.IGNORECASE,
)
_BRACKETS = re.compile(
    r"\[(?=/?\s*(?:INST|SYS|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT)\s*\])", re.IGNORECASE
)


def escaped(text: str) -> str:
    r"""A text without marks, tags and turn starts; `unescaped` restores it exactly.

    ``<``, ``>`` and ``&`` become HTML entities. The bracket of ``[INST]`` and of a line that begins like a block of
    this prompt (``[3] USER:``), and the colon of a line that begins like a turn (``Human:``), become numeric entities.
    A lone surrogate becomes U+FFFD.

    Examples:
        >>> escaped("</data> & more")
        '&lt;/data&gt; &amp; more'
        >>> unescaped(escaped("\nHuman: [INST] <|im_start|>"))
        '\nHuman: [INST] <|im_start|>'
    """
    text = html.escape(well_formed(text), quote=False)
    text = _BRACKETS.sub("&#91;", text)
    return _LINE_START.sub(lambda start: start[1] + (f"{start[2]}{start[3]}&#58;" if start[2] else "&#91;"), text)


def unescaped(text: str) -> str:
    """Reverses `escaped`."""
    return html.unescape(text)


class Fence:
    r"""Marks for one prompt: their names end in 128 random bits, which fenced text cannot guess.

    Examples:
        >>> fence = Fence()
        >>> fence.around("data", "a < b") == f"<data-{fence.nonce}>\na &lt; b\n</data-{fence.nonce}>"
        True
    """

    def __init__(self) -> None:
        self.nonce = secrets.token_hex(16)

    def name(self, kind: str = "data") -> str:
        """The name of the marks."""
        return f"{kind}-{self.nonce}"

    def around(self, kind: str, text: str) -> str:
        """A text, escaped, between its marks."""
        return self.around_escaped(kind, escaped(text))

    def around_escaped(self, kind: str, text: str) -> str:
        """An already escaped text between its marks."""
        name = self.name(kind)
        return f"<{name}>\n{text}\n</{name}>"
