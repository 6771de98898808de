"""Keeps: how much of a conversation stays verbatim."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from foldline._util.checks import whole_number
from foldline.errors import ConfigError

__all__ = ["FitTokens", "Keep", "KeepFraction", "KeepIterations", "KeepMessages", "KeepTokens", "KeepTurns"]


@dataclass(frozen=True, slots=True)
class _Counted:
    kind: ClassVar[str]
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole_number(self.n, "n"))


@dataclass(frozen=True, slots=True)
class KeepTokens(_Counted):
    """At least ``n`` recent tokens stay verbatim; a larger turn is split."""

    kind: ClassVar[str] = "tokens"


@dataclass(frozen=True, slots=True)
class KeepMessages(_Counted):
    """At least ``n`` recent messages stay verbatim."""

    kind: ClassVar[str] = "messages"


@dataclass(frozen=True, slots=True)
class KeepTurns(_Counted):
    """At least ``n`` recent turns stay verbatim."""

    kind: ClassVar[str] = "turns"


@dataclass(frozen=True, slots=True)
class KeepIterations(_Counted):
    """At least ``n`` recent groups (a call with its results, or a message alone) stay verbatim."""

    kind: ClassVar[str] = "iterations"


@dataclass(frozen=True, slots=True)
class FitTokens(_Counted):
    """At most ``n`` tokens in all after folding.

    If folding is not enough, results are cleared and shortened. The budget has priority over ``min_gain_tokens`` and
    ``thinking="fold"``.
    """

    kind: ClassVar[str] = "fit"


@dataclass(frozen=True, slots=True)
class KeepFraction:
    """At least the fraction ``f`` of the counting messages, or of their tokens, stays verbatim."""

    kind: ClassVar[str] = "fraction"
    f: float
    of: Literal["tokens", "messages"] = "tokens"

    def __post_init__(self) -> None:
        f: object = self.f
        if isinstance(f, bool) or not isinstance(f, numbers.Real) or f != f:
            raise ConfigError("must be a number", code="bad_fraction", path="f")
        if not 0 <= self.f <= 1:
            hint = f"; {self.f:g} percent is {self.f / 100:g}" if 1 < self.f <= 100 else ""
            raise ConfigError(f"must lie in [0, 1]{hint}", code="bad_fraction", path="f")
        if self.of not in ("tokens", "messages"):
            raise ConfigError("must be tokens or messages", code="bad_keep", path="of")


Keep: TypeAlias = KeepTokens | KeepFraction | KeepMessages | KeepTurns | KeepIterations | FitTokens


def resolved_keep(keep: Keep | None, context_window: int | None, reserve_tokens: int) -> Keep:
    """The keep. Default: fit into the window less the reserve. Also checks window and reserve."""
    if context_window is not None:
        context_window = whole_number(context_window, "context_window")
        if whole_number(reserve_tokens, "reserve_tokens") >= context_window:
            raise ConfigError("must be smaller than the window", code="reserve_over_window", path="reserve_tokens")
    elif reserve_tokens:
        raise ConfigError("a reserve needs a window", code="missing_window", path="reserve_tokens")
    if keep is not None:
        return keep
    if context_window is None:
        raise ConfigError("give a keep or a window", code="missing_keep", path="keep")
    return FitTokens(context_window - reserve_tokens)


def limit_of(keep: Keep) -> int | None:
    """The tokens of a keep that is a budget; None for one that is not."""
    return keep.n if isinstance(keep, FitTokens) else None


def checked_keep(keep: object, path: str = "keep") -> None:
    """Checks that an object is a keep.

    Raises:
        ConfigError: It is not a keep (``bad_keep``).
    """
    if not isinstance(keep, Keep):
        raise ConfigError(f"not a keep{_keep_hint(keep)}", code="bad_keep", path=path)


def _keep_hint(value: object) -> str:
    """The keep that was probably meant, for an error."""
    if isinstance(value, type) and issubclass(value, Keep):
        example = {"fraction": "0.5", "tokens": "20_000", "fit": "20_000"}.get(value.kind, "20")
        return f" but the class of one; give an instance, such as {value.__name__}({example})"
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 2**53:
        if value < 1:
            return f"; to keep a share of the tokens, give KeepFraction({value:g})"
        n = round(value)
        return f"; for a budget in tokens, give FitTokens({n}); to keep the newest tokens, KeepTokens({n})"
    return "; give FitTokens(n), KeepTokens(n), KeepFraction(f), KeepMessages(n), KeepTurns(n) or KeepIterations(n)"
