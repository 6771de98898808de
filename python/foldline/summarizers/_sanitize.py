"""Sanitizes a model's output to plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from foldline import _core

__all__ = ["neutralized", "settled", "well_formed"]

T = TypeVar("T")


def neutralized(text: str) -> tuple[str, bool]:
    """A text without role, tool and foldline markers, and whether anything was replaced.

    Markers are escaped at their beginning: ``<`` as ``&lt;``, the bracket of ``[INST]`` as ``&#91;``; a line that
    begins like a turn (``Human:``) is quoted. An image becomes a link, so that rendering the summary fetches nothing.
    Full-width and similar characters, and letters separated by invisible ones, are matched by their appearance;
    invisible characters that no script needs are removed. Latin look-alikes of other alphabets are not recognized.
    Idempotent.

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
    """Writes a text within a budget so that its sanitized form also fits.

    Args:
        write: Writes within ``max_tokens`` by the given counter; returns the text and an extra value.
        count: The counter.
        max_tokens: The budget.
        safe: Sanitizes the text.
    """
    text, about = write(count)
    done = safe(text)
    if done != text and count(done) > max_tokens:
        text, about = write(lambda text: count(safe(text)))
        done = safe(text)
    return done, about


def well_formed(text: str) -> str:
    """A text without lone surrogates: pairs become their character, a lone one U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
