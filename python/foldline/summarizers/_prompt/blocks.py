"""Renders messages as blocks of a prompt: role, text, calls and results, truncated if long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foldline.summarizers._prompt.fencing import escaped
from foldline.summarizers.rendering import Piece, pieces_of, role_of, units_of
from foldline.typing import Message

__all__ = ["DOCUMENT_LIMITS", "SEPARATOR", "SESSION_LIMITS", "Block", "Limits", "block_of", "cut", "fitted"]

#: Separator between blocks.
SEPARATOR = "\n\n---\n\n"
#: Least length in characters to which a message is shortened while it could go into another call.
_LEAST_CHARS = 200
#: Upper bound of characters per token in ordinary text.
_MOST_CHARS_A_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Length limits of a message in a prompt, in characters; None for no limit.

    Attributes:
        result_chars: Limit of a tool result.
        argument_chars: Limit of a call with its arguments.
        reasoning_chars: Limit of reasoning.
        content_chars: Limit of the whole message.
        tail_share: Share of a truncated text taken from its end.
    """

    result_chars: int | None = 2_000
    argument_chars: int | None = 2_000
    reasoning_chars: int | None = 500
    content_chars: int | None = None
    tail_share: float = 0.25

    def at_most(self, result_chars: int, content_chars: int | None = None) -> Limits:
        """These limits, lowered to the given ones."""

        def least(a: int | None, b: int | None) -> int | None:
            return min((each for each in (a, b) if each is not None), default=None)

        return replace(
            self,
            result_chars=least(self.result_chars, result_chars),
            argument_chars=least(self.argument_chars, result_chars),
            reasoning_chars=least(self.reasoning_chars, result_chars),
            content_chars=least(self.content_chars, content_chars),
        )


#: Limits of the ``document`` form.
DOCUMENT_LIMITS = Limits()
#: Limits of `presets.layer`: beginnings only.
SESSION_LIMITS = Limits(result_chars=500, argument_chars=None, content_chars=2_000, tail_share=0.0)


def cut(text: str, limit: int | None, tail_share: float = 0.0) -> str:
    """A text truncated to ``limit`` characters, with a note of the number omitted.

    Examples:
        >>> cut("abcdefghij", 6, 0.5), cut("abcdefghij", 6), cut("abc", 6)
        ('abc[… 4 characters left out …]hij', 'abcdef[… 4 characters left out …]', 'abc')
    """
    if limit is None or len(text) <= limit:
        return text
    tail = int(limit * tail_share)
    end = text[len(text) - tail :] if tail else ""
    return f"{text[: limit - tail]}[… {len(text) - limit:,} characters left out …]{end}"


@dataclass(frozen=True, slots=True)
class Block:
    """A message in a prompt.

    Attributes:
        index: Its index in the list.
        units: Roles and parts; several if the message contains several.
        number: Its number in the whole history; None if it has none.
    """

    index: int
    units: tuple[tuple[str, tuple[Piece, ...]], ...]
    number: int | None

    def text(self, limits: Limits) -> str:
        """The block's text: ``[n] ROLE:`` with its number and the parts, truncated and then escaped.

        A message without a number was carried by an earlier summary: ``[kept] ROLE:``.

        Examples:
            >>> call = {"function": {"name": "read", "arguments": '{"path": "a.py"}'}}
            >>> message = {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}
            >>> print(block_of(message, 4, numbers=[None, *range(168, 180)]).text(DOCUMENT_LIMITS))
            [171] ASSISTANT:
            Let me look.
            [Tool: read({"path": "a.py"})]
        """
        number = "kept" if self.number is None else self.number
        bodies = [
            (role, escaped(cut(_body(pieces, limits), limits.content_chars, limits.tail_share)))
            for role, pieces in self.units
        ]
        if len(bodies) == 1:
            return f"[{number}] {bodies[0][0]}:\n{bodies[0][1]}"
        said = "\n\n".join(f"{role}:\n{body}" for role, body in bodies)
        return f"[{number}] ITERATION:\n{said}"


def block_of(
    message: Message,
    index: int,
    redact: Callable[[str], str] | None = None,
    *,
    numbers: Sequence[int | None] | None = None,
) -> Block:
    """The block of a message, with its number from ``numbers`` or else its index.

    ``redact`` is applied to whole texts, before truncation.
    """
    units = []
    for unit in units_of(message):
        pieces = pieces_of(unit)
        if redact is not None:
            pieces = [Piece(each.kind, redact(each.text)) for each in pieces]
        units.append((role_of(unit), tuple(pieces)))
    return Block(index, tuple(units), index if numbers is None else numbers[index])


def _body(pieces: Sequence[Piece], limits: Limits) -> str:
    share = limits.tail_share
    lines = []
    for piece in pieces:
        if piece.kind == "media":
            lines.append(f"[{piece.text} left out]")
        elif piece.kind == "call":
            lines.append(f"[Tool: {cut(piece.text, limits.argument_chars, share)}]")
        elif piece.kind == "result":
            lines.append(f"[Result: {cut(piece.text, limits.result_chars, share)}]")
        elif piece.kind == "reasoning":
            lines.append(f"[Thought: {cut(piece.text, limits.reasoning_chars, share)}]")
        else:
            lines.append(piece.text)
    return "\n".join(lines)


def fitted(
    blocks: Sequence[Block], limits: Limits, max_tokens: int, price: Callable[[str], int], *, whatever: bool = False
) -> list[str] | None:
    """The texts of blocks, shortened until they fit together: results first, then everything, the longest first.

    Args:
        blocks: The blocks.
        limits: Limits applied in any case.
        max_tokens: Maximum cost with separators.
        price: Tokens of a text as sent.
        whatever: Whether blocks may be shortened below `_LEAST_CHARS`.

    Returns:
        The texts; None if messages would become too short. A single block always fits, as far as its first line does.
    """

    def cost(texts: Sequence[str]) -> int:
        return price(SEPARATOR.join(texts))

    def texts(cap: Limits) -> list[str]:
        return [block.text(cap) for block in blocks]

    highest = max(_LEAST_CHARS, max_tokens * _MOST_CHARS_A_TOKEN)
    whole = texts(limits.at_most(highest, highest))
    if cost(whole) <= max_tokens:
        return whole
    for narrow in (limits.at_most, lambda n: limits.at_most(min(n, _LEAST_CHARS), n)):
        found = _widest(narrow, _LEAST_CHARS, highest, lambda cap: cost(texts(cap)) <= max_tokens)
        if found is not None:
            return texts(found)
    if len(blocks) > 1 and not whatever:
        return None
    found = _widest(lambda n: limits.at_most(n, n), 0, _LEAST_CHARS, lambda cap: cost(texts(cap)) <= max_tokens)
    return texts(limits.at_most(0, 0) if found is None else found)


def _widest(limits: Callable[[int], Limits], low: int, high: int, fits: Callable[[Limits], bool]) -> Limits | None:
    """The widest limits that fit, by binary search; None if the narrowest do not."""
    if not fits(limits(low)):
        return None
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(limits(middle)) else (low, middle)
    return limits(low)
