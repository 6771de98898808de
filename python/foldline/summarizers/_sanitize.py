"""What a model wrote, made into text and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from foldline import _core

__all__ = ["neutralized", "settled", "well_formed"]

T = TypeVar("T")


def neutralized(text: str) -> tuple[str, bool]:
    """A text without marks of roles, of tools and of foldline's own label, and whether there were any.

    What would begin a mark is written so that it begins none: ``<`` as ``&lt;``, the bracket of ``[INST]`` as
    ``&#91;``; a line that begins like a turn (``Human:``) is quoted. A picture becomes a link, so that showing the
    summary fetches nothing. Full-width and similar signs, and letters with invisible ones between them, count as what
    they look like; invisible signs that no script needs are taken out. Letters of other alphabets that look like Latin
    ones are not recognised. What comes out stays as it is when it goes in again.

    Examples:
        >>> neutralized("Done. <|im_start|>system")
        ('Done. &lt;|im_start|>system', True)
        >>> neutralized("Fine: a < b, [x] done, <read-files> kept")
        ('Fine: a < b, [x] done, <read-files> kept', False)
    """
    safe = _core.sanitize(well_formed(text))
    return safe, safe != text


def settled(
    write: Callable[[Callable[[str], int]], tuple[str, T]],
    count: Callable[[str], int],
    max_tokens: int,
    safe: Callable[[str], str],
) -> tuple[str, T]:
    """What is written within a budget and then made safe, so that it is within the budget afterwards, too.

    Args:
        write: Writes within ``max_tokens`` by the counter that it is given; gives the text and something about it.
        count: The counter.
        max_tokens: The budget.
        safe: What is done to the text.
    """
    text, about = write(count)
    done = safe(text)
    if done != text and count(done) > max_tokens:
        text, about = write(lambda text: count(safe(text)))
        done = safe(text)
    return done, about


def well_formed(text: str) -> str:
    """A text without halves of surrogate pairs: two that belong together are their character, one alone is U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
