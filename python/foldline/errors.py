"""One hierarchy of errors, with stable codes.

Every error gives a ``code``, a place (``index`` of the message, ``path`` inside it or name of the option) and a
``detail``. None contains message content, so they may be logged anywhere. A call that fails leaves its input unchanged.
"""

from __future__ import annotations

__all__ = [
    "CompactionError",
    "ConfigError",
    "FoldlineError",
    "FoldlineWarning",
    "InternalError",
    "LimitExceeded",
    "MessageError",
    "StoreError",
    "SummaryError",
    "TextTypeError",
    "UnknownModelError",
]


class FoldlineWarning(UserWarning):
    """A failure that was handled as the caller requested."""


class FoldlineError(Exception):
    """Base of all errors.

    Attributes:
        code: A stable machine-readable code, such as ``"missing_role"``.
        index: Index of the message concerned, if any.
        path: Path inside the message (``"content[2].text"``) or name of the option; may be empty.
        detail: The cause, without message content.
        transcript: Index of the transcript, if one of many is concerned.
        line: Line of a JSON Lines file, from 1, if one is concerned.
    """

    default_code = "error"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        index: int | None = None,
        path: str = "",
        transcript: int | None = None,
        line: int | None = None,
    ) -> None:
        self.detail = detail
        self.code = code or self.default_code
        self.index = index
        self.path = path
        self.transcript = transcript
        self.line = line
        super().__init__(detail)

    def __str__(self) -> str:
        places = []
        if self.line is not None:
            places.append(f"line {self.line}")
        if self.transcript is not None:
            places.append(f"transcript {self.transcript}")
        if self.index is not None:
            places.append(f"message {self.index}")
        if self.path:
            places.append(f"at {self.path}")
        where = f" ({', '.join(places)})" if places else ""
        return f"{self.code}: {self.detail}{where}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.detail, self.code, self.index, self.path, self.transcript, self.line)


def _rebuild(
    error_type: type[FoldlineError],
    detail: str,
    code: str,
    index: int | None,
    path: str,
    transcript: int | None,
    line: int | None,
) -> FoldlineError:
    return error_type(detail, code=code, index=index, path=path, transcript=transcript, line=line)


class MessageError(FoldlineError):
    """A message has a shape that foldline cannot read."""

    default_code = "bad_message"


class TextTypeError(MessageError, TypeError):
    """An array or column has another type than text."""

    default_code = "not_text"


class LimitExceeded(FoldlineError):
    """A documented limit was exceeded: nesting, bytes, number of messages."""

    default_code = "limit_exceeded"


class ConfigError(FoldlineError):
    """An option is out of range; ``path`` names it."""

    default_code = "bad_option"


class UnknownModelError(FoldlineError):
    """The model is not in the table."""

    default_code = "unknown_model"


class SummaryError(FoldlineError):
    """The summarizer gave no usable summary."""

    default_code = "summary_failed"


class CompactionError(FoldlineError):
    """A compaction failed for a reason other than its summary."""

    default_code = "compaction_failed"


class StoreError(FoldlineError):
    """Reading or writing a store failed."""

    default_code = "store_failed"


class InternalError(FoldlineError):
    """A defect in foldline itself."""

    default_code = "internal"
