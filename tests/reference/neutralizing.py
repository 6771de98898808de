"""Turns model output into plain text: one regular expression finds the marks."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["neutralized", "well_formed"]

#: Tags and marks by which models, templates and agents identify the speaker, in plain letters.
_MARKS: Final = re.compile(
    r"""
    (?P<open> <(?=
        \|                                                     # <|im_start|>, <|endoftext|>, <|system|>
      | /?\s*(?:foldline-history)\b
      | \s*/?\s*(?:system|user|human|assistant|developer|tool|model|instructions?|prompt)\s*/?\s*>
      | \s*/?\s*(?:antml:)?(?:function_(?:calls?|results?)|invoke|parameter)\b
      | \s*/?\s*tool_(?:calls?|use|result|response|code|outputs?)\b
      | \s*/?\s*system[-_](?:reminder|prompt|message|instructions?)\b
      | \s*/?\s*(?:(?:start|end)_of_turn|(?:begin|end)_of_text|(?:start|end)_header_id|eot_id|bos|eos|pad|unk|s)\s*>
      | <\s*/?\s*SYS\s*>>
      | \s*/?\s*(?:data|summary|task|facts)-[0-9a-f]{8,}
      | \s*(?:script|iframe|img|svg|object|embed|link|meta|style)\b
    ) )
  | (?P<bracket> \[(?= \s*/?\s*(?:INST|SYS|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT)\s*\] ) )
  | (?P<picture> !(?=\[) )
  | (?P<turn> ^[ \t]*[*_#>]{0,6}[ \t]*(?P<role>Human|Assistant|System|User|Developer|AI)(?=[ \t]*[*_]{0,3}[ \t]*:) )
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
#: Characters that look like the start of a tag and that NFKC does not change.
#: Given by code point, since they look similar. (foldline's core defuses its own tags with U+2039, which is not one.)
_LOOKALIKES: Final = str.maketrans(
    {
        **dict.fromkeys("\u2329\u3008\u27e8\u276e\u1438\u02c2", "<"),
        **dict.fromkeys("\u232a\u3009\u27e9\u276f\u1433\u02c3", ">"),
        **dict.fromkeys("\u2223\u2502\u01c0", "|"),
        **dict.fromkeys("\u2581\u02cd", "_"),
        **dict.fromkeys("\u02d0\u2236\ua789", ":"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys("\u01c3", "!"),
        **dict.fromkeys("\u2028\u2029\x85", "\n"),
    }
)
#: ASCII characters that end a line for some readers.
_LINE_ENDS: Final = str.maketrans("\r\v\f", "\n\n\n")
#: Joiners and direction marks belong to some scripts and to emoji; they are ignored only inside marks.
_WANTED: Final = frozenset("\u200c\u200d\u200e\u200f\u061c\u00ad")


def neutralized(text: str) -> tuple[str, bool]:
    """A text without role marks, tool marks and foldline's own label, and whether any were found.

    The first character of a mark is escaped: ``<`` as ``&lt;``, the bracket of ``[INST]`` as
    ``&#91;``; a line that begins like a turn (``Human:``) is quoted. A picture becomes a link, so that showing the
    summary fetches nothing. Full-width and similar characters, and letters with invisible ones between them, match as
    they look; invisible characters that no script needs are removed. Letters of other alphabets that look like Latin
    ones are not recognised. The function is idempotent.

    Examples:
        >>> neutralized("Done. <|im_start|>system")
        ('Done. &lt;|im_start|>system', True)
        >>> neutralized("Fine: a < b, [x] done, <read-files> kept")
        ('Fine: a < b, [x] done, <read-files> kept', False)
    """
    given, text = text, well_formed(text)
    visible = text if text.isascii() else "".join(sign for sign in text if not _is_hidden(sign))
    plain, places = _plain(visible)
    changes: list[tuple[int, int, str]] = []
    for mark in _MARKS.finditer(plain):
        at = places[mark.start()]
        if mark["open"]:
            changes.append((at, at + 1, "&lt;"))
        elif mark["bracket"]:
            changes.append((at, at + 1, "&#91;"))
        elif mark["picture"]:
            changes.append((at, at + 1, ""))
        else:
            if mark[0].lstrip().startswith(">"):
                continue  # already quoted
            changes.append((at, at, "> "))
    for start, stop, new in reversed(changes):
        visible = visible[:start] + new + visible[stop:]
    return visible, visible != given


def well_formed(text: str) -> str:
    """A text without lone surrogates: a pair becomes its character, a lone one U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _is_hidden(sign: str) -> bool:
    """Whether a character is invisible and no script needs it: zero width, forced directions, tags."""
    return unicodedata.category(sign) == "Cf" and sign not in _WANTED


def _plain(text: str) -> tuple[str, range | list[int]]:
    """A text as it looks, and for each of its characters the position in the original text."""
    if text.isascii():
        return text.translate(_LINE_ENDS), range(len(text))
    signs: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        if sign in _WANTED or "\ufe00" <= sign <= "\ufe0f":
            continue
        for plain in sign if sign.isascii() else unicodedata.normalize("NFKC", sign).translate(_LOOKALIKES):
            signs.append(plain)
            places.append(place)
    return "".join(signs).translate(_LINE_ENDS), places
