"""Draws transcripts with their pins, counter and summary reserve: by hypothesis, or fast from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, get_args

from hypothesis import strategies as st

from reference.counters import HEURISTICS, Counter
from reference.model import (
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
    read,
)
from reference.planner import Keep, KeepKind, Planner
from reference.rules import Rules

from .transcripts import KINDS, WEIGHTS, Pending, Step
from .writers import WRITERS

PROVIDERS: Final = {
    OPENAI_CHAT: "openai",
    OPENAI_RESPONSES: "responses",
    ANTHROPIC: "anthropic",
    GEMINI: "gemini",
    BEDROCK: "bedrock",
}
SENT: Final = tuple(PROVIDERS)
"""Dialects that a provider accepts directly."""
FORMATS: Final = (*SENT, AI_SDK, AI_SDK_UI, LANGCHAIN, GENT, MISTRAL, COHERE)
SIZES: Final = (0, 1, 3, 8, 20, 40, 41, 42, 80, 160, 300)
RESERVES: Final = (0, 0, 5, 25, 100)
FRACTIONS: Final = (0.1, 0.25, 0.3, 0.4, 0.5, 0.75, 0.9, 1.0)
KINDS_OF_KEEP: Final = get_args(KeepKind)


@dataclass(frozen=True)
class Sample:
    """All inputs of a plan except the keep."""

    format: str
    messages: list[dict[str, Any]]
    pins: tuple[int, ...] = ()
    summary_tokens: int = 0
    counter: str = "chars/4"

    def __post_init__(self) -> None:
        """Drops pins on the summaries of earlier folds, which are errors."""
        if self.pins and self.format != "auto":
            rules = Rules(read(self.messages, self.format), ())
            object.__setattr__(self, "pins", tuple(pin for pin in self.pins if not rules.is_summary(pin)))

    @property
    def price(self) -> Counter:
        """The oracle's counter."""
        return HEURISTICS[self.counter]

    @property
    def provider(self) -> str:
        """The provider that the messages are for."""
        return PROVIDERS[self.format]

    @cached_property
    def rules(self) -> Rules:
        """The oracle's rules."""
        return Rules(read(self.messages, self.format), self.pins)

    @cached_property
    def planner(self) -> Planner:
        """The oracle's planner."""
        return Planner(self.messages, self.price, self.format, self.pins, self.summary_tokens)

    def with_messages(self, messages: list[dict[str, Any]]) -> Sample:
        """The same with other messages."""
        return replace(self, messages=messages)


def random_sample(
    rng: random.Random, *, valid: bool = False, longest: int = 14, formats: Sequence[str] = FORMATS
) -> Sample:
    """One seeded transcript."""
    dialect = rng.choice(formats)
    script = [
        Step(kind, rng.randrange(8), rng.randrange(8), rng.choice(SIZES))
        for kind in rng.choices(KINDS, WEIGHTS, k=rng.randint(0, longest))
    ]
    messages = WRITERS[dialect](valid).write(rng.choice((0, 1, 1, 2)), script)
    density = rng.choice((0, 0, 0.1, 0.3))
    pins = tuple(index for index in range(len(messages)) if rng.random() < density)
    return Sample(dialect, messages, pins, rng.choice(RESERVES), rng.choice(sorted(HEURISTICS)))


@st.composite
def samples(draw: st.DrawFn, *, valid: bool = False, formats: Sequence[str] = FORMATS) -> Sample:
    """One transcript; shrinks to few and short messages, no pins and no reserve."""
    dialect = draw(st.sampled_from(formats))
    steps = st.builds(Step, st.sampled_from(KINDS), st.integers(0, 7), st.integers(0, 7), st.sampled_from(SIZES))
    messages = WRITERS[dialect](valid).write(draw(st.integers(0, 2)), draw(st.lists(steps, max_size=14)))
    indexes = st.integers(0, len(messages) - 1) if messages else st.nothing()
    pins = draw(st.sets(indexes, max_size=3)) if messages else set()
    return Sample(
        dialect,
        messages,
        tuple(sorted(pins)),
        draw(st.sampled_from(RESERVES)),
        draw(st.sampled_from(sorted(HEURISTICS))),
    )


def random_keeps(rng: random.Random, sample: Sample) -> list[Keep]:
    """Some of every keep, with amounts around the edges of this transcript."""
    planner = sample.planner
    total, floor, n = planner.tokens_before, planner.floor(), planner.n
    last = max(floor, planner.stays(max(planner.fitting_cuts())))  # below this amount results must be cleared
    return [
        Keep("keep_tokens", rng.choice((0, 1, total, total + 1))),
        Keep("keep_tokens", rng.randint(0, total)),
        Keep("keep_fraction", rng.choice(FRACTIONS), "tokens"),
        Keep("keep_fraction", rng.choice(FRACTIONS), "messages"),
        Keep("keep_messages", rng.randint(0, n + 1)),
        Keep("keep_turns", rng.randint(0, 4)),
        Keep("keep_iterations", rng.randint(0, 6)),
        Keep("fit_tokens", max(0, floor + rng.choice((-1, 0, 0, 1, 2, 7)))),
        Keep("fit_tokens", max(0, total - rng.choice((-1, 0, 1, 2, 10)))),
        Keep("fit_tokens", rng.randint(0, total)),
        Keep("fit_tokens", rng.randint(floor, total)),
        Keep("fit_tokens", rng.randint(floor, last)),
        Keep("fit_tokens", rng.randint(floor, last)),
    ]


def ladder(sample: Sample, kind: KeepKind) -> list[Keep]:
    """Growing amounts of one keep, for monotonicity."""
    planner = sample.planner
    n, total, floor = planner.n, planner.tokens_before, planner.floor()
    if kind == "keep_fraction":
        return [Keep("keep_fraction", f, "tokens") for f in FRACTIONS]
    if kind == "fit_tokens":
        steps = {max(0, floor + d) for d in (-2, -1, 0, 1, 2, 5)} | {total * k // 8 for k in range(9)}
        return [Keep("fit_tokens", amount) for amount in sorted(steps)]
    if kind == "keep_tokens":
        return [Keep("keep_tokens", total * k // 10) for k in range(12)]
    return [Keep(kind, amount) for amount in range(n + 2)]


@st.composite
def cases(draw: st.DrawFn, *, valid: bool = False, formats: Sequence[str] = FORMATS) -> tuple[Sample, Keep]:
    """A transcript and one of its keeps."""
    sample = draw(samples(valid=valid, formats=formats))
    keeps = random_keeps(random.Random(draw(st.integers(0, 2**16))), sample)
    return sample, draw(st.sampled_from(keeps))


def seeded(
    count: int, salt: str, *, valid: bool = False, longest: int = 14, formats: Sequence[str] = FORMATS
) -> Iterator[tuple[Sample, Keep]]:
    """Every keep of `count` seeded transcripts; another salt gives others."""
    for number in range(count):
        rng = random.Random(f"{salt}-{number}")
        sample = random_sample(rng, valid=valid, longest=longest, formats=formats)
        for keep in random_keeps(rng, sample):
            yield sample, keep


def new_message(rng: random.Random, sample: Sample) -> dict[str, Any]:
    """A message to append: any that the wild writer of the format could write next."""
    writer = WRITERS[sample.format](False)
    for index, ordinal in sorted(sample.rules.pairing.unanswered):
        call = read(sample.messages, sample.format)[index].calls[ordinal]
        writer.pending.append(Pending(call.id, call.name, index))
    while not writer.messages:
        kind = rng.choice(("user", "assistant", "calls", "answer_one", "orphan", "summary", "anonymous_result"))
        getattr(writer, kind)(Step(kind, rng.randrange(8), rng.randrange(8), rng.choice(SIZES)))
    return writer.messages[0]
