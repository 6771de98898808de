"""What is known of models: encoding, family, context window, longest output. A dated table; nothing is fetched.

Dated and suffixed names and providers' prefixes resolve to their model. What the table does not know, or knows
differently, is registered:

Examples:
    >>> from foldline import models
    >>> models.lookup("openai/gpt-4o-2024-11-20").context_window
    128000
    >>> models.register("my-gpt", like="gpt-4o", context_window=64_000)
    >>> models.lookup("my-gpt-2026-01-01").encoding, models.unregister("my-gpt")
    ('o200k_base', True)
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from foldline._core import model_all, model_lookup, model_register, model_unregister
from foldline.errors import ConfigError, UnknownModelError

__all__ = ["LONG_CONTEXT_BETA", "Model", "context_limit", "known", "lookup", "register", "unregister"]

#: What a beta flag begins with that widens the window of Sonnet models to a million tokens (Anthropic, 2025-08).
LONG_CONTEXT_BETA = "context-1m-"
_LONG_CONTEXT = 1_000_000
#: Sonnet models that were there before that flag, and that it does nothing for.
_WITHOUT_LONG_CONTEXT = ("claude-3", "claude-sonnet-3")


@dataclass(frozen=True, slots=True)
class Model:
    """What is known of a model.

    Attributes:
        name: Its name, or the beginning that it shares with its dated and suffixed names.
        provider: Who serves it: ``openai``, ``anthropic``, ``google``, or what was registered.
        family: Models that are framed alike: ``gpt-4o``, ``gpt-5``, ``gpt-4``, ``gpt-oss``, ``gpt-6``, ``claude``,
            ``claude-4.7``, ``gemini``; ``plain`` where the dialect of the messages decides.
        encoding: What its texts are counted in: its own encoding, or the one its count is fitted to.
        context_window: Tokens of input and output together, where known.
        max_output_tokens: Most tokens of output, where known.
        kind: How far counts of its texts can be trusted: ``exact``, ``calibrated`` or ``estimated``.
        error_bound: The relative error that nine of ten stay within, where it was measured.
        checked: When this was checked, as ``YYYY-MM-DD``.
    """

    name: str
    provider: str
    family: str
    encoding: str
    context_window: int | None
    max_output_tokens: int | None
    kind: str
    error_bound: float | None
    checked: str


def lookup(model: str, *, encoding: str | None = None, context_window: int | None = None) -> Model:
    """What is known of a model, by its name, a dated or suffixed name, or with a provider's prefix.

    Args:
        model: The name, as providers and gateways write it.
        encoding: Counts as this encoding, whatever is known.
        context_window: The window, whatever is known.

    Raises:
        ConfigError: A window that is no whole number from 1 to 2^32.
        UnknownModelError: Nothing is known of it, and encoding and window are not both given.
    """
    context_window = _tokens(context_window, "context_window")
    fields = model_lookup(model)
    if fields is None:
        if encoding is None or context_window is None:
            raise UnknownModelError("nothing is known of this model; give its encoding and context window")
        return Model(model, "", "plain", encoding, context_window, None, "exact", None, _today())
    if encoding is not None:
        fields.update(encoding=encoding, family="plain", kind="exact", error_bound=None)
    if context_window is not None:
        fields.update(context_window=context_window)
    return Model(**fields)


def context_limit(model: str, *, betas: Iterable[str] = (), default: int | None = None) -> int:
    """The context window of a model, with the beta flags of a request.

    Args:
        model: Its name, as for `lookup`.
        betas: Flags that are sent along; ``context-1m-…`` gives Sonnet models from 4 on a million tokens.
        default: The window where nothing is known of the model or of its window; there is no silent one.

    Raises:
        ConfigError: The default is no window, or the flags are no list of names.
        UnknownModelError: Nothing is known, and there is no default.

    Examples:
        >>> context_limit("claude-sonnet-4-5"), context_limit("claude-sonnet-4-5", betas=["context-1m-2025-08-07"])
        (200000, 1000000)
        >>> context_limit("no-such-model", default=128_000)
        128000
    """
    default = _tokens(default, "default")
    flags = [betas] if isinstance(betas, str) else list(betas)
    if isinstance(betas, str) or not all(isinstance(flag, str) for flag in flags):
        raise ConfigError("must be a list of names", code="bad_beta", path="betas")
    fields = model_lookup(model)
    if fields is None or fields["context_window"] is None:
        if default is None:
            raise UnknownModelError("nothing is known of this model's context window; give a default")
        return default
    window = int(fields["context_window"])
    name = str(fields["name"])
    widens = "sonnet" in name and not name.startswith(_WITHOUT_LONG_CONTEXT)
    if widens and any(flag.startswith(LONG_CONTEXT_BETA) for flag in flags):
        return max(window, _LONG_CONTEXT)
    return window


def register(
    name: str,
    *,
    like: str | None = None,
    provider: str | None = None,
    family: str | None = None,
    encoding: str | None = None,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
    checked: str | None = None,
) -> None:
    """Makes a model known to this process, or replaces what was known of that name.

    Dated and suffixed names resolve to it as well. The longest match wins, and what was registered comes before the
    table. ``TokenCounter.for_model`` and everything that takes a model's name sees it.

    Args:
        name: The name.
        like: A known model: what is not given here is taken from it.
        provider: Who serves it.
        family: How it is framed, one of those of `Model.family`; as the dialect of the messages where not given.
        encoding: What its texts are counted in; needed where ``like`` is not given.
        context_window: Tokens of input and output together.
        max_output_tokens: Most tokens of output.
        checked: When that was checked; today.

    Raises:
        ConfigError: An unknown encoding or family, an empty name, neither ``encoding`` nor ``like``, a window or
            output that is no whole number from 1 to 2^32.
        UnknownModelError: Nothing is known of ``like``.
    """
    model_register(
        name,
        like=like,
        provider=provider,
        family=family,
        encoding=encoding,
        context_window=_tokens(context_window, "context_window"),
        max_output_tokens=_tokens(max_output_tokens, "max_output_tokens"),
        checked=checked or _today(),
    )


def unregister(name: str) -> bool:
    """Forgets what was registered under this name; True where there was something. The table stays as it is."""
    return model_unregister(name)


def known() -> list[Model]:
    """All models that are known: the table, then what was registered."""
    return [Model(**fields) for fields in model_all()]


def _tokens(value: object, field: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**32:
        return value
    raise ConfigError("must be a whole number from 1 to 2^32", code="bad_tokens", path=field)


def _today() -> str:
    return dt.datetime.now(tz=dt.UTC).date().isoformat()
