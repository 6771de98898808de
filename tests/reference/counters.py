"""Counting by the seeds' heuristics, and exact message counts from a given text counter.

A `Counter` counts one message and the overhead of a list. Text is normalised first: two surrogates that
form a pair are one character, a lone one is U+FFFD.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol

from . import media
from .model import (
    AI_SDK,
    AI_SDK_UI,
    ANTHROPIC,
    BEDROCK,
    COHERE,
    GEMINI,
    GENT,
    LANGCHAIN,
    MISTRAL,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    SHAREGPT,
)
from .native import SERVED_CODE
from .parts import Call, Encrypted, File, Message, Opaque, Part, Reasoning, Result, Text

SURROGATE: Final = re.compile("[\ud800-\udfff]")
TOOL_ROLES: Final = ("tool", "function")


class Counter(Protocol):
    """The counter interface of the planner."""

    def text(self, text: str) -> int:
        """Tokens of a bare text, without any per-message part."""

    def message(self, message: Message) -> int:
        """Tokens of one message, framing included."""

    def overhead(self) -> int:
        """Tokens that a request costs beyond its messages."""


# --- text and JSON ------------------------------------------------------------------------------------------


def scalars(text: str) -> str:
    """The text as Unicode scalar values: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    if text.isascii() or not SURROGATE.search(text):
        return text
    out, i = [], 0
    while i < len(text):
        here = ord(text[i])
        after = ord(text[i + 1]) if i + 1 < len(text) else 0
        if 0xD800 <= here < 0xDC00 and 0xDC00 <= after < 0xE000:
            out.append(chr(0x10000 + ((here - 0xD800) << 10) + (after - 0xDC00)))
            i += 2
            continue
        out.append("\ufffd" if 0xD800 <= here < 0xE000 else text[i])
        i += 1
    return "".join(out)


def code_points(text: str) -> int:
    """Characters of the text."""
    return len(scalars(text))


def utf8_bytes(text: str) -> int:
    """Bytes of the text in UTF-8."""
    return len(scalars(text).encode("utf-8"))


def utf16_units(text: str) -> int:
    """Length of the text in UTF-16 units, as in JavaScript."""
    return len(scalars(text).encode("utf-16-le")) // 2


def number(value: float) -> str:
    """A float as ECMAScript writes it: `1.0` is `1`, `1e21` is `1e+21`, non-finite values are `null`."""
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign, digit_tuple, exponent = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, digit_tuple))
    point = len(digits) + int(exponent)  # position of the decimal point, counted from the first digit
    digits = digits.rstrip("0")
    minus = "-" if sign else ""
    if len(digits) <= point <= 21:
        return minus + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{minus}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return minus + digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + power


def compact(value: Any) -> str:
    """JSON without blanks, as `JSON.stringify` writes it; integers keep all their digits."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return json.dumps(scalars(value), ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{compact(key)}:{compact(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(map(compact, value)) + "]"
    raise TypeError(f"not JSON: {type(value).__name__}")


def arguments_text(call: Call) -> str:
    """The arguments of a call as text: a string unchanged, other values as compact JSON."""
    return call.arguments if isinstance(call.arguments, str) else compact(call.arguments)


def call_name(call: Call) -> str:
    """The name of a call as it is sent; Gemini's code execution has no name."""
    return "" if call.takes_names and call.name == SERVED_CODE else call.name


def quarter_up(amount: int) -> int:
    """A quarter, rounded up."""
    return -(-amount // 4)


# --- heuristics ---------------------------------------------------------------------------------------------


class Chars4:
    """`chars/4`: code points of all text, call names and arguments of a message, summed, / 4, rounded up."""

    def text(self, text: str) -> int:
        """A quarter of the characters, rounded up."""
        return quarter_up(code_points(text))

    def message(self, message: Message) -> int:
        """All characters of the message together, rounded up once."""
        total = 0
        for part in message.parts:
            if isinstance(part, Call):
                total += code_points(call_name(part)) + code_points(arguments_text(part))
            elif isinstance(part, Result):
                total += sum(code_points(text) for text in part.texts)
            elif not isinstance(part, File):
                total += code_points(part.text)
        return quarter_up(total)

    def overhead(self) -> int:
        """Zero."""
        return 0


class Bytes4Plus4:
    """`bytes/4+4`: UTF-8 bytes of the text content, results included, / 4, rounded down, + 4 a message."""

    def text(self, text: str) -> int:
        """A quarter of the bytes, rounded down."""
        return utf8_bytes(text) // 4

    def message(self, message: Message) -> int:
        """Text and result text only: neither reasoning nor calls."""
        total = sum(utf8_bytes(part.text) for part in message.parts if isinstance(part, Text | Opaque | Encrypted))
        for result in message.results:
            total += sum(utf8_bytes(text) for text in result.texts)
        return total // 4 + 4

    def overhead(self) -> int:
        """Zero."""
        return 0


class Utf16Plus2:
    """`utf16/4+2`: UTF-16 units, each part / 4 rounded up, + 2 a message; results are JSON."""

    def text(self, text: str) -> int:
        """A quarter of the units, rounded up."""
        return quarter_up(utf16_units(text))

    def message(self, message: Message) -> int:
        """Each text, call name, arguments and result separately. T1 does not mention reasoning."""
        total = 2
        for part in message.parts:
            if isinstance(part, Text | Opaque | Encrypted):
                total += self.text(part.text)
            elif isinstance(part, Call):
                total += self.text(call_name(part)) + self.text(arguments_text(part))
            elif isinstance(part, Result) and part.content is not None:
                total += self.text(compact(part.content))
        return total

    def overhead(self) -> int:
        """Zero."""
        return 0


HEURISTICS: Final[dict[str, Counter]] = {
    "chars/4": Chars4(),
    "bytes/4+4": Bytes4Plus4(),
    "utf16/4+2": Utf16Plus2(),
}


# --- a text counter over parts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Framing:
    """The framing that a provider adds around the text."""

    per_message: int = 0
    per_name: int = 0
    per_call: int = 0
    per_result: int = 0
    per_list: int = 0
    per_item: int | None = None
    """Replaces `per_message` for a message of the model or a tool without text (Responses, Gemini)."""
    per_system: int | None = None
    per_assistant: int | None = None
    prices: media.Prices = media.OPENAI
    """Of pictures and other media."""


FRAMING: Final = {
    OPENAI_CHAT: Framing(per_message=4, per_name=1, per_list=3),
    OPENAI_RESPONSES: Framing(per_message=4, per_item=0, per_call=11, per_list=3),
    ANTHROPIC: Framing(per_message=4, per_call=38, per_result=18, per_list=3, prices=media.ANTHROPIC),
    GEMINI: Framing(per_system=2, per_assistant=1, per_item=0, per_call=3, per_result=4, prices=media.GOOGLE),
    BEDROCK: Framing(per_message=4, per_call=38, per_result=18, per_list=3, prices=media.ANTHROPIC),
    AI_SDK: Framing(),
    AI_SDK_UI: Framing(),
    MISTRAL: Framing(),
    COHERE: Framing(),
    LANGCHAIN: Framing(),
    GENT: Framing(),
    SHAREGPT: Framing(),
}


def encrypted_tokens(part: Encrypted) -> int:
    """The cost of encrypted content by its length: base64 around an envelope of 650 bytes."""
    inside = max(0, len(part.text) // 4 * 3 - 650)
    return inside // 4 if part.is_reasoning else inside // 11 * 2


def pieces(message: Message) -> list[str]:
    """All counted text of a message, part by part."""
    out: list[str] = []
    if message.participant is not None and message.role not in TOOL_ROLES:
        out.append(message.participant)
    for part in message.parts:
        if isinstance(part, Text | Reasoning | Opaque):
            out.append(part.text)
        elif isinstance(part, Result):
            out.extend(part.texts)
        elif isinstance(part, Call):
            out.extend((call_name(part), arguments_text(part)))
    return out


@dataclass(frozen=True)
class Pieces:
    """Sum of a given text counter over parts plus framing; a plain callable has no framing."""

    count_text: Callable[[str], int]
    framing: Framing = Framing()

    def text(self, text: str) -> int:
        """The count of the text counter."""
        return self.count_text(text)

    def message(self, message: Message) -> int:
        """The parts, plus the framing of the message, its participant, calls and results."""
        total = sum(self.count_text(piece) for piece in pieces(message)) + self.around(message)
        total += sum(encrypted_tokens(part) for part in message.parts if isinstance(part, Encrypted))
        total += sum(media.price(medium, self.framing.prices) for medium in message.media)
        if message.participant is not None and message.role not in TOOL_ROLES:
            total += self.framing.per_name
        total += self.framing.per_call * len(message.calls)
        return total + self.framing.per_result * len(message.results)

    def around(self, message: Message) -> int:
        """The framing around a message, independent of its content."""
        texts: list[Part] = [part for part in message.parts if isinstance(part, Text | Opaque | File)]
        texts += [part for part in message.parts if isinstance(part, Encrypted) and not part.is_reasoning]
        special = {"system": self.framing.per_system, "assistant": self.framing.per_assistant}.get(message.role)
        if message.role in ("assistant", "tool") and not texts:
            special = self.framing.per_item
        return self.framing.per_message if special is None else special

    def overhead(self) -> int:
        """The framing of the list."""
        return self.framing.per_list


def exact(count_text: Callable[[str], int], format: str) -> Pieces:
    """The count of an exact encoding over messages of one format."""
    return Pieces(count_text, FRAMING[format])
