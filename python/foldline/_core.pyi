# What the compiled module has; checked against it by stubtest.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from foldline.errors import FoldlineError
from foldline.typing import Conversation, Texts

__all__ = [
    "AUTO_ERROR_BOUND",
    "PLACEHOLDER",
    "PROBLEM_CODES",
    "REPAIR_CODES",
    "SHORTEN_MARKER",
    "SUMMARY_LABEL",
    "Counts",
    "LineScanner",
    "Plan",
    "TokenCounter",
    "TranscriptCounts",
    "__version__",
    "analyze",
    "assemble_claude_code",
    "classify",
    "detect_format",
    "document_range",
    "extract_evidence",
    "extractive_summary",
    "model_all",
    "model_lookup",
    "model_register",
    "model_unregister",
    "plan",
    "repair",
    "validate",
]

__version__: str
AUTO_ERROR_BOUND: float
SUMMARY_LABEL: str
PLACEHOLDER: str
PROBLEM_CODES: list[str]
REPAIR_CODES: list[str]
SHORTEN_MARKER: str

@final
class TokenCounter:
    def __new__(cls, spec: str | Callable[[str], int] | None = None, /) -> TokenCounter: ...
    @classmethod
    def for_model(cls, model: str, *, encoding: str | None = None) -> TokenCounter: ...
    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def error_bound(self) -> float | None: ...
    def count(self, text: str) -> int: ...
    def count_batch(self, texts: Texts, *, threads: int | None = 1) -> NDArray[np.uint32]: ...
    def count_transcripts(
        self,
        transcripts: Iterable[Conversation] | Buffer,
        *,
        format: str = "auto",
        threads: int | None = 1,
        errors: Literal["raise", "null"] = "raise",
    ) -> TranscriptCounts: ...
    def fits(
        self,
        text_or_messages: str | Sequence[Mapping[str, Any]] | bytes,
        limit: int,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        format: str = "auto",
    ) -> bool: ...
    def count_messages(
        self,
        messages: Sequence[Mapping[str, Any]] | bytes,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        format: str = "auto",
    ) -> Counts: ...

@final
class Counts:
    @property
    def per_message(self) -> NDArray[np.uint32]: ...
    @property
    def overhead(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def error_bound(self) -> float | None: ...
    def __len__(self) -> int: ...

@final
class TranscriptCounts:
    @property
    def per_message(self) -> NDArray[np.uint32]: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...
    @property
    def overhead(self) -> NDArray[np.uint32]: ...
    @property
    def totals(self) -> NDArray[np.int64]: ...
    @property
    def lines(self) -> NDArray[np.int64] | None: ...
    @property
    def total(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def error_bound(self) -> float | None: ...
    @property
    def errors(self) -> tuple[FoldlineError, ...]: ...
    def __len__(self) -> int: ...

@final
class Plan:
    @classmethod
    def from_json(cls, text: str) -> Plan: ...
    def to_json(self) -> str: ...
    def apply(
        self,
        messages: Sequence[Mapping[str, Any]],
        summary: str | None = None,
        *,
        model: str | None = None,
        alternate: bool = False,
    ) -> list[Any]: ...
    @property
    def format(self) -> str: ...
    @property
    def actions(self) -> list[str]: ...
    @property
    def reasons(self) -> list[str]: ...
    @property
    def head(self) -> int: ...
    @property
    def cut(self) -> int: ...
    @property
    def turn_prefix(self) -> tuple[int, int] | None: ...
    @property
    def folded(self) -> list[int]: ...
    @property
    def tokens_before(self) -> int: ...
    @property
    def tokens_kept(self) -> int: ...
    @property
    def overhead(self) -> int: ...
    @property
    def summary_tokens(self) -> int: ...
    @property
    def floor(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def warnings(self) -> list[tuple[str, int | None]]: ...
    @property
    def fingerprint(self) -> str: ...
    def __bool__(self) -> bool: ...
    def __len__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class LineScanner:
    def __new__(cls, max_line_bytes: int = ...) -> LineScanner: ...
    def feed(self, chunk: bytes) -> tuple[list[tuple[int, int, bytes]], list[tuple[int, int, str]]]: ...
    def finish(self) -> tuple[list[tuple[int, int, bytes]], list[tuple[int, int, str]]]: ...

def plan(
    messages: Sequence[Mapping[str, Any]] | bytes,
    counter: TokenCounter,
    keep_kind: str,
    amount: float,
    of: str,
    *,
    summary_tokens: int,
    window: int | None,
    pins: list[int],
    importance: list[tuple[int, float]],
    summaries: list[int],
    tools: Sequence[Mapping[str, Any]] | None,
    format: str,
) -> Plan | tuple[int, str]: ...
def repair(
    messages: Sequence[Mapping[str, Any]],
    provider: str,
    *,
    open_calls: str,
    orphans: str,
    alternate: bool,
    single_system: bool,
    partial: bool,
    format: str,
) -> tuple[list[Any], list[tuple[int, str, str]], list[tuple[int, str, str]]]: ...
def validate(
    messages: Sequence[Mapping[str, Any]] | bytes,
    provider: str,
    *,
    alternate: bool,
    single_system: bool,
    partial: bool,
    format: str,
) -> list[tuple[int, str, str]]: ...
def analyze(messages: Sequence[Mapping[str, Any]] | bytes, pins: list[int], format: str) -> dict[str, Any]: ...
def classify(value: object) -> tuple[str, list[str]]: ...
def detect_format(messages: Sequence[Mapping[str, Any]], key: str | None = None) -> str: ...
def document_range(document: bytes) -> tuple[int, int] | None: ...
def assemble_claude_code(entries: list[Any]) -> dict[str, Any]: ...
def extract_evidence(messages: Sequence[Mapping[str, Any]] | bytes, indices: list[int], format: str) -> str: ...
def extractive_summary(
    messages: Sequence[Mapping[str, Any]] | bytes,
    indices: list[int],
    format: str,
    max_tokens: int,
    count: Callable[[str], int],
) -> tuple[str, str]: ...
def model_lookup(model: str) -> dict[str, Any] | None: ...
def model_all() -> list[dict[str, Any]]: ...
def model_register(
    name: str,
    *,
    like: str | None,
    provider: str | None,
    family: str | None,
    encoding: str | None,
    context_window: int | None,
    max_output_tokens: int | None,
    checked: str,
) -> None: ...
def model_unregister(name: str) -> bool: ...
