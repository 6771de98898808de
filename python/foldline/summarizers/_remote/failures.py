"""Classifies failures of model calls: a stable error code, and whether to retry."""

from __future__ import annotations

import errno
import math
import re
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

from foldline._util.overflow import overflow_kind
from foldline.errors import SummaryError

__all__ = ["Failure", "of_answered_error", "of_connection", "of_status", "wait_asked_for"]

#: Statuses to retry besides 5xx: timeout, conflict (as in OpenAI's SDK), rate limit.
_AGAIN = frozenset((408, 409, 429))
#: Accepted form of a provider's error code: words only, so that it cannot contain request content or a key.
_CODE = re.compile(r"(?=.{3,48}\Z)(?:[a-z]+(?:_[a-z]+)*|[A-Z]+(?:_[A-Z]+)*)")
_DEPTH = 8


class Failure(Exception):
    """A failed try.

    Attributes:
        error: The error to raise if there is no further try.
        again: Whether a retry may succeed.
        wait_s: Seconds the provider asks to wait before a retry, or None.
    """

    def __init__(self, error: SummaryError, *, again: bool = False, wait_s: float | None = None) -> None:
        super().__init__(error.code)
        self.error = error
        self.again = again
        self.wait_s = wait_s


def wait_asked_for(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds requested by ``retry-after-ms`` or ``Retry-After`` (seconds or HTTP date); None if invalid.

    Examples:
        >>> wait_asked_for({"retry-after": "1.5"}), wait_asked_for({"retry-after-ms": "20", "retry-after": "7"})
        (1.5, 0.02)
        >>> wait_asked_for({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, now=50.0)
        10.0
        >>> wait_asked_for({"retry-after": "soon"}) is None
        True
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    stated = headers.get("retry-after")
    seconds = _seconds(stated)
    if seconds is not None or stated is None:
        return seconds
    try:
        at = parsedate_to_datetime(stated).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def of_status(status: int, headers: Mapping[str, str], body: object) -> Failure:
    """The failure for a status other than 200.

    Args:
        status: The status.
        headers: The headers, in lower case.
        body: The body, as JSON or text; only its code gets into the error.
    """
    error = SummaryError(_saying(f"the provider answered with status {status}", body), code=_code_of(status, body))
    again = (status in _AGAIN or status >= 500) and error.code not in ("context_overflow", "request_too_large")
    if headers.get("x-should-retry") in ("true", "false"):
        again = headers["x-should-retry"] == "true"
    return Failure(error, again=again, wait_s=wait_asked_for(headers))


def _code_of(status: int, body: object) -> str:
    kind = overflow_kind(body)
    if kind is not None:
        return "context_overflow" if kind == "context" else "request_too_large"
    codes = {401: "not_authorized", 403: "not_authorized", 404: "unknown_endpoint", 408: "server_timeout"}
    codes |= {413: "request_too_large", 429: "rate_limited"}
    if status in codes:
        return codes[status]
    if status >= 500:
        return "server_error"
    return "request_rejected" if status >= 400 else "unexpected_status"


def _saying(detail: str, body: object) -> str:
    """Adds the provider's error code to a detail, if it has an accepted form."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if isinstance(error, Mapping):
        for key in ("code", "type", "status"):
            code = error.get(key)
            if isinstance(code, str) and _CODE.fullmatch(code):
                return f"{detail} ({code})"
    return detail


def of_answered_error(body: object, *, code: str) -> SummaryError:
    """The error for an error object in an answer or stream event with status 200."""
    kind = overflow_kind(body)
    if kind is not None:
        code = "context_overflow" if kind == "context" else "request_too_large"
    return SummaryError(_saying("the provider answered with an error", body), code=code)


def of_connection(error: BaseException, *, answered: bool) -> Failure:
    """The failure of a connection that could not be opened, or broke.

    Args:
        error: The exception.
        answered: Whether an answer had begun: it may have been billed, so it is not retried.
    """
    names = [type(error).__name__]
    numbers = [each.errno or 0 for each in _chain(error) if isinstance(each, OSError)]
    names += [errno.errorcode[number] for number in numbers if number in errno.errorcode]
    what = "broke while it answered" if answered else "failed"
    code = "connection_lost" if answered else "connection_failed"
    return Failure(SummaryError(f"the connection {what} ({', '.join(names)})", code=code), again=not answered)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_DEPTH):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
