#!/usr/bin/env python3
"""Pack the published pieces of Claude's tokenizers, and the classes of characters, for src-rust/count/claude.

    python scripts/claude_pieces.py FOLDER

FOLDER is the package ctok 1.3.0 (MIT), unpacked: `pip download --no-deps --python-version 3.12
--only-binary=:all: ctok==1.3.0`. The classes come from Unicode 15.0 (unicodedata2 15.0.0) and from the properties
Alphabetic and Mark of the package regex. Both are needed only here; what this writes is committed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

import regex
import unicodedata2 as unicodedata

OUT = Path(__file__).resolve().parent.parent / "src-rust" / "count" / "data"

#: Generation: its file, and the beginning of the SHA-256 of that file.
SOURCES = {"claude-3": ("pieces_v3.json", "4c6db216"), "claude-4.7": ("pieces_v4_7.json", "a785fc24")}

#: Control characters never reach a vocabulary: they stand for the markers.
MARKERS = {"⟨bow⟩": "\x01", "⟨eow⟩": "\x02", "⟨shift⟩": "\x03", "⟨caps⟩": "\x04"}

#: Punctuation beyond ASCII that belongs to runs of punctuation.
PUNCTUATION = "—»«•°„–−£§€…√→（№†└│·।─═█"
#: Symbols that are words: Runic golden numbers, Roman numerals, circled letters, Bamum number-letters.
SYMBOL_WORDS = ((0x16EE, 0x16F0), (0x2160, 0x2188), (0x24B6, 0x24E9), (0xA6E6, 0xA6EF))
#: Letters that are written without word boundaries.
IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF))
IDEOGRAPHIC = {0x3005, 0x3006, 0x3031, 0x3032, 0x3033, 0x3034, 0x3035, 0x303B, 0x303C}
IDEOGRAPHIC_SYMBOLS = "〄〒〓〠〶〷〾〿"
SELECTORS = (0xFE00, 0xFE0F)
#: Letters with case since Unicode 16.
NEW_LETTERS = "\u1c89\u1c8a\ua7cb\u0264"

SPACE, ASCII_DIGIT, ARABIC_DIGIT, PUNCT, WORD, STRAY, HARD_PUNCT, HARD_ND, HARD_NO, HARD_LETTER, SELECTOR = range(11)

ALPHABETIC = regex.compile(r"\p{Alphabetic}")
MARK = regex.compile(r"\p{M}")


def within(code: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Whether a code point is in one of the ranges."""
    return any(first <= code <= last for first, last in ranges)


def class_of(code: int) -> int:
    """The class of a character of the Basic Multilingual Plane."""
    c = chr(code)
    category = unicodedata.category(c)
    if c in NEW_LETTERS or within(code, SYMBOL_WORDS):
        return WORD
    if category[0] == "Z" or c in "\t\n\r\f\v":
        return SPACE
    if category == "Nd" and (code < 0x80 or 0x0660 <= code <= 0x0669 or 0x06F0 <= code <= 0x06F9):
        return ASCII_DIGIT if code < 0x80 else ARABIC_DIGIT
    if (code < 0x80 and category[0] in "PS") or c in PUNCTUATION:
        return PUNCT
    if SELECTORS[0] <= code <= SELECTORS[1]:
        return SELECTOR
    is_mark, is_alphabetic = bool(MARK.fullmatch(c)), bool(ALPHABETIC.fullmatch(c))
    if is_mark and is_alphabetic:
        # Vowels of Syriac form words of their own where nothing can hold them.
        is_syriac = code == 0x0711 or 0x0730 <= code <= 0x073F
        return STRAY if unicodedata.combining(c) and not is_syriac else WORD
    if not is_mark and category[0] == "L" and not within(code, IDEOGRAPHS) and code not in IDEOGRAPHIC:
        return WORD
    is_ideographic = 0x3001 <= code <= 0x303F and (category[0] == "P" or c in IDEOGRAPHIC_SYMBOLS)
    if is_mark or ((category[0] in "PS" or category in ("Cf", "Cn")) and not is_ideographic):
        return HARD_PUNCT
    return {"Nd": HARD_ND, "No": HARD_NO}.get(category, HARD_LETTER)


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def packed(pieces: Iterable[bytes]) -> bytes:
    """Sorted pieces: their number, then for each the bytes shared with the one before, and the others."""
    before, out, count = b"", bytearray(), 0
    for piece in sorted(set(pieces)):
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, piece, strict=False)))
        out += varint(shared) + varint(len(piece) - shared) + piece[shared:]
        before, count = piece, count + 1
    return varint(count) + bytes(out)


def marked(piece: str) -> bytes:
    """A piece with control characters for its markers."""
    for name, sign in MARKERS.items():
        piece = piece.replace(name, sign)
    return piece.encode()


def main(folder: Path) -> None:
    """Write the files."""
    for name, (source, expected) in SOURCES.items():
        data = next(folder.rglob(source)).read_bytes()
        assert hashlib.sha256(data).hexdigest().startswith(expected), source
        groups = json.loads(data)["tokens"]
        fallback = [bytes.fromhex(piece) for piece in groups.pop("bytes_fallback")]
        pieces = {marked(piece) for group in groups.values() for piece in group}
        pieces |= {marked(piece) + MARKERS["⟨eow⟩"].encode() for piece in groups["contractions"]}
        (OUT / f"{name}.pieces").write_bytes(packed(pieces) + packed(fallback))
    classes = bytearray()
    before = None
    for code in range(0x10000):
        if (now := class_of(code) if not 0xD800 <= code <= 0xDFFF else HARD_LETTER) != before:
            classes += code.to_bytes(2, "little") + bytes([now])
            before = now
    (OUT / "claude.classes").write_bytes(classes)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
