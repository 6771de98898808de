"""Claude's tokens by the rules that ctok published, slow and obvious: the whole text is marked as one string, and the
fewest pieces are found over all of it. Never imports foldline; the pieces and classes are read from their packed files.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["GENERATIONS", "classes", "tokens"]

DATA: Final = Path(__file__).resolve().parents[2] / "src-rust" / "count" / "data"

#: Generation: pieces, whether the frame ends in a boundary, whether quotes are folded, shortest word of capitals.
GENERATIONS: Final = {
    "claude-3": ("claude-3.pieces", True, True, 4),
    "claude-4.7": ("claude-4.7.pieces", True, False, None),
    "claude-4.8": ("claude-4.7.pieces", False, False, None),
}

SPACE, ASCII, ARABIC, PUNCT, WORD, STRAY, HARD_PUNCT, HARD_ND, HARD_NO, HARD_LETTER, SELECTOR = range(11)
HARD: Final = (HARD_PUNCT, HARD_ND, HARD_NO, HARD_LETTER, SELECTOR)
B, E, S, C = "\x01", "\x02", "\x03", "\x04"
SPACES: Final = "\u00a0\u1680\u2028\u2029\u202f\u205f" + "".join(map(chr, range(0x2000, 0x200B)))
QUOTES: Final = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
CONTRACTIONS: Final = ("s", "t", "d", "m", "ll", "re", "ve")

Run = tuple[str, str]


@cache
def classes() -> list[int]:
    """The class of each character of the Basic Multilingual Plane."""
    packed = (DATA / "claude.classes").read_bytes()
    ranges = [(int.from_bytes(packed[i : i + 2], "little"), packed[i + 2]) for i in range(0, len(packed), 3)]
    ends = [start for start, _ in ranges[1:]] + [0x10000]
    return [each for (start, each), end in zip(ranges, ends, strict=True) for _ in range(start, end)]


def class_of(c: str) -> int:
    """The class of a character."""
    return classes()[ord(c)] if ord(c) < 0x10000 else HARD_LETTER


@cache
def pieces(file: str) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """The pieces, and the parts of characters."""
    packed, at = (DATA / file).read_bytes(), 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = packed[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    def read() -> frozenset[bytes]:
        nonlocal at
        found, before = set[bytes](), b""
        for _ in range(number()):
            shared, more = number(), number()
            before, at = before[:shared] + packed[at : at + more], at + more
            found.add(before)
        return frozenset(found)

    return read(), read()


@cache
def longest_piece(file: str) -> int:
    """Bytes of the longest piece."""
    return max(map(len, pieces(file)[0]))


@cache
def parts_of_character(file: str, c: str) -> int:
    """The fewest parts that cover a character that is no piece."""
    _, parts = pieces(file)
    data = c.encode()
    best = [0] + [99] * len(data)
    for end in range(1, len(data) + 1):
        best[end] = min(best[j] + 1 for j in range(end) if end - j == 1 or data[j:end] in parts)
    return best[-1]


def normalized(text: str, folds_quotes: bool) -> str:
    """The text as it is read."""
    text = unicodedata.normalize("NFC", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Cc" or c in "\t\n\0").replace("\0", " ")
    text = text.replace("\u0e4d\u0e32", "\u0e33")
    text = "".join(c for c in text if not "\ue000" <= c <= "\uf8ff")
    if folds_quotes:
        text = "".join(QUOTES.get(c, c) for c in text)
    return "".join(" " if c in SPACES else c for c in text)


def kind_of(c: str, before: str) -> str:
    """The kind of the run of a character after a run of a kind."""
    each = class_of(c)
    if each == STRAY:
        return "word" if before == "word" else "stray"
    if each == SELECTOR:
        return before if before.startswith("hard") else "hard letter"
    names = {SPACE: "space", ASCII: "digit", ARABIC: "digit", PUNCT: "punct", WORD: "word"}
    hard = {HARD_PUNCT: "hard punct", HARD_ND: "hard number", HARD_NO: "hard number", HARD_LETTER: "hard letter"}
    return (names | hard)[each]


def runs_of(text: str) -> list[Run]:
    """The kinds and texts of the runs."""
    found: list[Run] = []
    for c in text:
        kind = kind_of(c, found[-1][0] if found else "")
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + c)
        else:
            found.append((kind, c))
    return found


def edge(run: Run, c: str) -> str:
    """What kind of border a character gives to the edge of a run: `symbol`, `digit`, or none."""
    kind, body = run
    if kind.startswith("hard") and class_of(c) in (HARD_PUNCT, SELECTOR):
        return "symbol"
    uniform = kind == "digit" or len({class_of(each) for each in body}) == 1
    if kind in ("digit", "hard number") and uniform and class_of(c) in (ARABIC, HARD_ND, HARD_NO):
        return "digit"
    return ""


def is_capital(c: str) -> bool:
    """Whether a character is a capital with a small form."""
    return c != "\u03f4" and c.isupper() and c.lower() != c


def is_symbol(c: str) -> bool:
    """Whether a character of a word is no letter and no mark."""
    return unicodedata.category(c)[0] not in "LM"


def cased(body: str, least: int | None) -> str:
    """A word with the marker of its case."""

    def small(c: str) -> str:
        return c if c in "\u03f4\u0130" else c.lower()

    lower = "".join(map(small, body))
    if "\u1e9e" in body or not is_capital(body[0]):
        return body
    rest = [c for c in body[1:] if c != "\u0130"]
    if "\u0130" in body:
        return S + lower if body[0] != "\u0130" and not any(map(is_capital, rest)) else body
    all_capitals = all(is_capital(c) or (is_symbol(c) and not c.islower()) for c in body)
    if least is not None and len(body) >= least and all_capitals:
        return C + lower
    return S + lower if not any(map(is_capital, rest)) else body


def marked(text: str, generation: str, raw_begins_with_space: bool) -> str:
    """The text as one string with its markers."""
    _, boundary, _, least = GENERATIONS[generation]
    if boundary and raw_begins_with_space and text[:1] == " " and text[1:2] != " ":
        text = text[1:]
    runs = runs_of(text)
    if not runs:
        return B if boundary else ""

    def kind(i: int) -> str:
        return runs[i][0] if 0 <= i < len(runs) else ""

    def opens_word(i: int) -> bool:
        return runs[i] == ("punct", "'") and kind(i + 1) in ("word", "stray")

    def contracts(i: int) -> bool:
        if i == 0 or runs[i][0] != "word" or runs[i][1] not in CONTRACTIONS or runs[i - 1] != ("punct", "'"):
            return False
        if i == 1:
            return True
        before = runs[i - 2]
        circled = "\u24b6" <= before[1][-1] <= "\u24e9"
        return not (before[0] == "punct" or edge(before, before[1][-1]) or circled)

    def after_space(i: int) -> bool:
        return boundary if i == 0 else kind(i - 1) == "space" and runs[i - 1][1][-1] == " "

    def before_space(i: int) -> bool:
        return kind(i + 1) == "space" and runs[i + 1][1][0] == " " and runs[i + 1][1][:2] != "  "

    out = ""
    first = runs[0]
    own = not opens_word(0) and (
        first[0] in ("word", "punct", "stray") or bool(edge(first, first[1][0])) or first[1][0] == " "
    )
    if boundary and not own:
        out = " " if opens_word(0) else B
    for i, run in enumerate(runs):
        name, body = run
        if name == "word":
            fused = kind(i - 1) == "stray" if i else False
            word = body if fused else cased(body, least)
            head = word[0] if word[0] in S + C else ""
            out += head + ("" if fused or contracts(i) else B) + word[len(head) :] + E
        elif name == "stray":
            out += B + body + ("" if kind(i + 1) == "word" else E)
        else:
            begins = (name == "punct" and not opens_word(i)) or bool(edge(run, body[0]))
            ends = name == "punct" or bool(edge(run, body[-1]))
            out += B if begins and after_space(i) else ""
            out += body + (E if ends and before_space(i) else "")
    # One space between two markers vanishes, with the markers of case left where they are.
    for case in ("", S, C):
        out = out.replace(f"{E} {case}{B}", f"{E}{case}{B}")
    return out


def fewest(text: str, file: str) -> int:
    """The fewest pieces that cover a marked text, over all of it."""
    whole, _ = pieces(file)
    longest = longest_piece(file)
    best = [0]
    for end in range(1, len(text) + 1):
        c = text[end - 1]
        found = best[end - 1] + (1 if c.encode() in whole else parts_of_character(file, c))
        for start in range(max(0, end - longest), end - 1):
            if best[start] + 1 < found and text[start:end].encode() in whole:
                found = best[start] + 1
        best.append(found)
    return best[-1]


def tokens(text: str, generation: str) -> int:
    """Tokens of a text in a message, without its frame."""
    file, _, folds_quotes, _ = GENERATIONS[generation]
    text_read = normalized(text, folds_quotes)
    lines = len(text_read) - len(text_read.rstrip("\n"))
    closing = fewest("\n" * (lines + 2), file) - 1 if lines else 0
    return fewest(marked(text_read.rstrip("\n"), generation, text.startswith(" ")), file) + closing
