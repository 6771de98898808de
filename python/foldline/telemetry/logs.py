"""Log records of attempts, without content."""

from __future__ import annotations

import logging
from collections.abc import Callable

from foldline.compactor import Compactor
from foldline.compactor.events import AttemptEnded

__all__ = ["log_attempts"]

_LOGGER = logging.getLogger("foldline")
_LOGGER.addHandler(logging.NullHandler())


def log_attempts(compactor: Compactor, logger: logging.Logger | None = None) -> Callable[[], None]:
    """Logs every later attempt of a compactor: failures as warnings, all others as information.

    A record has no content; its ``foldline`` attribute holds the values of the attempt by name.

    Args:
        compactor: The compactor.
        logger: Default: the logger ``foldline``.

    Returns:
        A function that ends the logging.
    """
    into = _LOGGER if logger is None else logger

    def record(attempt: AttemptEnded) -> None:
        level = logging.INFO if attempt.error is None else logging.WARNING
        if into.isEnabledFor(level):
            into.log(
                level,
                "compaction %s (%s): %d -> %d tokens in %.3f s",
                attempt.outcome,
                attempt.error or attempt.reason,
                attempt.tokens_before,
                attempt.tokens_after,
                attempt.duration_s,
                extra={"foldline": attempt.as_dict()},
            )

    return compactor.watch(record)
