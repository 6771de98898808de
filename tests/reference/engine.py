"""The oracle under foldline's public names, to run the property tests on it and on broken copies of it.

`Engine()` implements the part of the public API that the property tests use. `Engine(planner=…)` takes
a `Planner` with a rule broken on purpose; a test that such an engine passes would be vacuous.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from . import extras
from .counters import HEURISTICS, Counter, Pieces, exact
from .extras import Decided
from .libraries import summary_of
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
    RawMessage,
    read,
)
from .planner import Infeasible as NothingFits
from .planner import Keep, Planned, Planner, applied
from .rules import SUMMARY_LABEL
from .validity import validate

LANGCHAIN_TYPES: Final = ("human", "ai", "system", "tool", "function", "chat", "constructor")
ANTHROPIC_ENDINGS: Final = ("tool_use", "tool_result", "thinking")
REASONS: Final = {"clear": "cleared_to_fit", "shorten": "shortened_to_fit", "summarize": "before_cut"}


def third(text: str) -> int:
    """Replaces an exact encoding, which the standard library does not have: a third of the bytes, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


def sniff(messages: Sequence[RawMessage]) -> str:
    """The format of a list, if any message or block determines it."""
    if any("messages" in message or "Messages" in message for message in messages):
        return GENT
    if any(message.get("type") in LANGCHAIN_TYPES for message in messages):
        return LANGCHAIN
    if any("toolCalls" in message or "'tool-" in str(message.get("content")) for message in messages):
        return AI_SDK
    if any("parts" in message for message in messages):
        typed = any("type" in part for message in messages for part in message.get("parts") or () if part)
        return AI_SDK_UI if typed else GEMINI
    if any("tool_plan" in message for message in messages):
        return COHERE
    if any("type" in message for message in messages):
        return OPENAI_RESPONSES
    contents = [message.get("content") for message in messages]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    if any("type" not in block for block in blocks):
        return BEDROCK
    if any(isinstance(block.get("thinking"), list) for block in blocks):
        return MISTRAL
    return ANTHROPIC if any(block["type"].endswith(ANTHROPIC_ENDINGS) for block in blocks) else OPENAI_CHAT


def counter_of(spec: Any, format: str) -> Counter:
    """A counter for a spec: a heuristic, a stand-in for an encoding, a callable, or a `TokenCounter`."""
    if isinstance(spec, TokenCounter):
        spec = spec.spec
    if callable(spec):
        return Pieces(spec)
    return HEURISTICS[spec] if spec in HEURISTICS else exact(third, format)


@dataclass(frozen=True)
class Counts:
    """Counts of a list of messages."""

    per_message: list[int]
    overhead: int

    @property
    def total(self) -> int:
        """Messages and overhead."""
        return sum(self.per_message) + self.overhead


@dataclass(frozen=True)
class Problem:
    """One finding of a validator."""

    index: int
    code: str
    detail: str = ""


class TokenCounter:
    """Counts texts, messages and transcripts."""

    def __init__(self, spec: str | Callable[[str], int]) -> None:
        self.spec = spec

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return counter_of(self.spec, OPENAI_CHAT).text(text)

    def count_messages(self, messages: Any, tools: None = None, format: str = "auto") -> Counts:
        """Counts of a list, given as dicts or as the bytes of a JSON array."""
        if isinstance(messages, bytes):
            messages = json.loads(messages)
        dialect = sniff(messages) if format == "auto" else format
        counter = counter_of(self.spec, dialect)
        return Counts([counter.message(message) for message in read(messages, dialect)], counter.overhead())


def summary_message(text: str, format: str, messages: Sequence[RawMessage]) -> dict[str, Any]:
    """A user message in the dialect's own shape."""
    if format in (LANGCHAIN, GENT, SHAREGPT):
        return summary_of(text, format, messages[0] if messages else {"type": "human", "data": {}})
    if format == GEMINI:
        return {"role": "user", "parts": [{"text": text}]}
    if format == OPENAI_RESPONSES:
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"role": "user", "content": text}


@dataclass(frozen=True)
class Chunk:
    """A chunk of folded messages."""

    start: int
    stop: int
    tokens: int
    is_oversized: bool


@dataclass(frozen=True)
class Alternative:
    """An alternative cut."""

    cut: int
    tokens_kept: int
    tokens_after: int
    folded: int
    is_mid_turn: bool
    why: str


@dataclass(frozen=True)
class OraclePlan:
    """A `Planned` with the attributes of a public plan."""

    planned: Planned
    format: str
    planner: Planner | None = None
    decided: Decided | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.planned, name)

    def __bool__(self) -> bool:
        return bool(self.planned)

    @property
    def reasons(self) -> list[str]:
        """A code for every message."""
        return [REASONS.get(action, "kept") for action in self.planned.actions]

    @property
    def tokens_kept(self) -> int:
        """Tokens of the kept messages, without stripped thinking."""
        return self.decided.tokens_kept if self.decided else self.planned.tokens_kept

    @property
    def tokens_after(self) -> int:
        """Tokens of the folded request."""
        assert self.decided
        return self.decided.tokens_after

    @property
    def stripped(self) -> list[int]:
        """Messages that lose their thinking."""
        return self.decided.stripped if self.decided else []

    @property
    def warnings(self) -> list[tuple[str, int | None]]:
        """Open calls, orphan results, messages that a pin covers in addition; then warnings about the decision."""
        assert self.planner
        assert self.decided
        rules = self.planner.rules
        grown = rules.pinned - rules.explicit_pins - {*range(rules.head)}
        found = [("open_call", index) for index in sorted({index for index, _ in rules.pairing.unanswered})]
        found += [("orphan_result", index) for index in sorted({index for index, _ in rules.orphans()})]
        return [*found, *(("pin_grown", index) for index in sorted(grown)), *self.decided.warnings]

    @property
    def alternatives(self) -> list[Alternative]:
        """Alternative cuts."""
        assert self.planner
        return [Alternative(*row) for row in extras.alternatives(self.planner, self.cut)]

    @property
    def first_changed_index(self) -> int | None:
        """The first index that changes."""
        assert self.planner
        return extras.first_changed(self.planner, self.planned)

    @property
    def tokens_prefix_kept(self) -> int:
        """Tokens before it, overhead included."""
        assert self.planner
        return self.planner.overhead + sum(self.planner.tokens[: self.first_changed_index])

    @property
    def tokens_rebilled(self) -> int:
        """Tokens after it, the summary included."""
        return self.tokens_after - self.tokens_prefix_kept

    def chunks(self, max_tokens: int) -> list[Chunk]:
        """Chunks of the folded messages."""
        assert self.planner
        return [Chunk(*row) for row in extras.chunks(self.planner, self.cut, max_tokens)]

    def apply(self, messages: Sequence[RawMessage], summary: str) -> list[Any]:
        """The folded messages."""
        labelled = f'{SUMMARY_LABEL}version="1">\n{summary}\n</foldline-history>'
        bare = [
            extras.without_thinking(message) if index in self.stripped else message
            for index, message in enumerate(messages)
        ]
        return applied(bare, self.planned, summary_message(labelled, self.format, messages), self.format)

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps({"planned": asdict(self.planned), "format": self.format})

    @classmethod
    def from_json(cls, text: str) -> OraclePlan:
        """Reads a plan from JSON."""
        raw = json.loads(text)
        fields = raw["planned"]
        fields["turn_prefix"] = fields["turn_prefix"] and tuple(fields["turn_prefix"])
        fields["shortened"] = {
            int(index): {int(ordinal): kept for ordinal, kept in texts.items()}
            for index, texts in fields["shortened"].items()
        }
        return cls(Planned(**fields), raw["format"])


class Engine:
    """Looks like the module `foldline` to a property test."""

    TokenCounter = TokenCounter
    Plan = OraclePlan
    Infeasible = NothingFits

    def __init__(self, planner: type[Planner] = Planner, plan_type: type[OraclePlan] = OraclePlan) -> None:
        self.planner = planner
        self.plan_type = plan_type

    def plan(
        self,
        messages: Sequence[RawMessage],
        keep: Keep,
        *,
        counter: Any = "chars/4",
        pins: Iterable[int] = (),
        summary_tokens: int = 0,
        min_gain_tokens: int = 0,
        thinking: str = "keep",
        format: str = "auto",
    ) -> OraclePlan | NothingFits:
        """Plans with the planner of this engine."""
        dialect = sniff(messages) if format == "auto" else format
        planner = self.planner(messages, counter_of(counter, dialect), dialect, pins, summary_tokens)
        decided = extras.decide(planner, keep, thinking, min_gain_tokens)
        if isinstance(decided, NothingFits):
            return decided
        return self.plan_type(decided.planned, dialect, planner, decided)

    @staticmethod
    def validate(messages: Sequence[RawMessage], provider: str) -> list[Problem]:
        """Problems with index and code."""
        return [Problem(index, code) for index, code in validate(messages, provider)]

    @staticmethod
    def KeepTokens(n: int) -> Keep:
        """At least n tokens."""
        return Keep("keep_tokens", n)

    @staticmethod
    def KeepFraction(f: float, of: str = "tokens") -> Keep:
        """At least a share of the counting tokens or messages."""
        return Keep("keep_fraction", f, of)

    @staticmethod
    def KeepMessages(n: int) -> Keep:
        """At least n messages."""
        return Keep("keep_messages", n)

    @staticmethod
    def KeepTurns(n: int) -> Keep:
        """The n newest turns."""
        return Keep("keep_turns", n)

    @staticmethod
    def KeepIterations(n: int) -> Keep:
        """At least n groups."""
        return Keep("keep_iterations", n)

    @staticmethod
    def FitTokens(n: int) -> Keep:
        """At most n tokens."""
        return Keep("fit_tokens", n)
