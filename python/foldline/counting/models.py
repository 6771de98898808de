"""The model table: encoding, family, context window, longest output.

The table has a date for each model; nothing is fetched. Dated and suffixed names and names with a provider's prefix
resolve to their model. `register` adds models to the table or overrides it:

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
import os
from collections.abc import Iterable
from dataclasses import dataclass

from foldline._core import (
    model_all,
    model_lookup,
    model_missing,
    model_of_encoding,
    model_register,
    model_source,
    model_sources,
    model_unregister,
)
from foldline.errors import ConfigError, UnknownModelError
from foldline.typing import CountKind

__all__ = [
    "LONG_CONTEXT_BETA",
    "Model",
    "Source",
    "context_limit",
    "known",
    "lookup",
    "missing",
    "register",
    "source",
    "sources",
    "unregister",
]

#: Prefix of the beta flag that widens the window of Sonnet models to a million tokens (Anthropic, 2025-08).
LONG_CONTEXT_BETA = "context-1m-"
_LONG_CONTEXT = 1_000_000
#: Prefixes of older Sonnet models, on which the flag has no effect.
_WITHOUT_LONG_CONTEXT = ("claude-3", "claude-sonnet-3")


@dataclass(frozen=True, slots=True)
class Model:
    """The known facts of a model.

    Attributes:
        name: Its name, or the prefix shared by its dated and suffixed names.
        provider: The provider: ``openai``, ``anthropic``, ``google``, or a registered name.
        family: Models with the same framing: ``gpt-4o``, ``gpt-5``, ``gpt-4``, ``gpt-oss``, ``gpt-6``, ``claude``,
            ``claude-4.7``, ``claude-4.8``, ``gemini``, ``gemini-local``; ``chatml``, ``llama``, ``deepseek``,
            ``mistral``, ``gemma``, ``open`` for open models, whose templates are estimated; ``plain`` if the dialect of
            the messages decides.
        encoding: What counts its texts: the model's encoding, or the one its count is fitted to; the vocabulary of an
            open model, whose tokenizer file is needed; or the path of a tokenizer file.
        context_window: Tokens of input and output together, if known.
        max_output_tokens: Most tokens of output, if known.
        kind: Accuracy of counts of its texts: ``exact``, ``reconstructed``, ``calibrated`` or ``estimated``.
        error_bound: The relative error that nine of ten counts stayed within, if measured.
        checked: Date of the last check, as ``YYYY-MM-DD``.
    """

    name: str
    provider: str
    family: str
    encoding: str
    context_window: int | None
    max_output_tokens: int | None
    kind: CountKind
    error_bound: float | None
    checked: str


@dataclass(frozen=True, slots=True)
class Source:
    """What counts a model's texts on this machine.

    Attributes:
        place: Where it comes from: ``built in``; ``FOLDLINE_TOKENIZERS``, ``foldline-vocab`` or ``Hugging Face cache``
            for the vocabulary of an open model; ``path`` for a registered file. None if the file is missing.
        file: The tokenizer file, or a registered folder.
        encoding: The encoding, the vocabulary, or the path. That of a Gemini model is a vocabulary of Gemma, where one
            is found.
        family: The family of models whose framing is counted.
    """

    place: str | None
    file: str | None
    encoding: str
    family: str


def lookup(model: str, *, encoding: str | None = None, context_window: int | None = None) -> Model:
    """Looks a model up by its name, a dated or suffixed name, or with a provider's prefix.

    Args:
        model: The name, as providers and gateways write it.
        encoding: Overrides the encoding.
        context_window: Overrides the window.

    Raises:
        ConfigError: The window is not a whole number from 1 to 2^32, or the encoding is unknown.
        UnknownModelError: The model is unknown, and encoding and window are not both given.
    """
    context_window = _tokens(context_window, "context_window")
    fields = model_lookup(model)
    if fields is None:
        if encoding is None or context_window is None:
            raise UnknownModelError("unknown model; give its encoding and context window")
        family, kind, error_bound = model_of_encoding(encoding)
        return Model(model, "", family, encoding, context_window, None, kind, error_bound, _today())
    if encoding is not None:
        family, kind, error_bound = model_of_encoding(encoding)
        fields.update(encoding=encoding, family=family, kind=kind, error_bound=error_bound)
    if context_window is not None:
        fields.update(context_window=context_window)
    return Model(**fields)


def context_limit(model: str, *, betas: Iterable[str] = (), default: int | None = None) -> int:
    """The context window of a model, with the beta flags of a request.

    Args:
        model: Its name, as for `lookup`.
        betas: Beta flags of the request; ``context-1m-…`` gives Sonnet models from 4 on a million tokens.
        default: The window to use if the model or its window is unknown. Default: raise an error.

    Raises:
        ConfigError: The default is not a valid window, or the flags are not a list of names.
        UnknownModelError: The model or its window is unknown, and no default is given.

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
            raise UnknownModelError("the context window of this model is unknown; give a default")
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
    tokenizer: str | os.PathLike[str] | None = None,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
    checked: str | None = None,
) -> None:
    """Adds a model to this process's table, or replaces its entry.

    Dated and suffixed names resolve to it as well. The longest match wins; registered models come before the built-in
    table. ``TokenCounter.for_model`` and every function that takes a model's name use it.

    Args:
        name: The name; with an owner (``team/model``), it is that owner's model alone.
        like: A known model that supplies the values not given here.
        provider: The provider.
        family: A family of `Model.family`. Default: that of ``like`` or of the encoding; of a tokenizer file ``open``.
            With an encoding of OpenAI alone, the dialect of the messages decides.
        encoding: Encoding or vocabulary used for counting; required without ``like`` and ``tokenizer``.
        tokenizer: A tokenizer file or a model's folder, instead of an encoding. It must exist, is read at the first
            count, and may be relative to the current folder: the absolute path is kept.
        context_window: Tokens of input and output together.
        max_output_tokens: Most tokens of output.
        checked: Date of the check. Default: today.

    Raises:
        ConfigError: An unknown encoding or family, an empty name, none of ``encoding``, ``tokenizer`` and ``like`` or
            both of the first, a tokenizer file that does not exist or a folder without one, a window or output that is
            not a whole number from 1 to 2^32.
        UnknownModelError: ``like`` is unknown.
    """
    if tokenizer is not None and encoding is not None:
        raise ConfigError("give an encoding or a tokenizer, not both", code="two_encodings", path="tokenizer")
    model_register(
        name,
        like=like,
        provider=provider,
        family=family,
        encoding=encoding,
        tokenizer=None if tokenizer is None else os.fspath(tokenizer),
        context_window=_tokens(context_window, "context_window"),
        max_output_tokens=_tokens(max_output_tokens, "max_output_tokens"),
        checked=checked or _today(),
    )


def unregister(name: str) -> bool:
    """Removes a registered model; whether it was registered. The built-in table is unchanged."""
    return model_unregister(name)


def missing(model: str) -> str | None:
    """What prevents counting with a model; None if nothing does.

    It names the tokenizer file that is missing and where it is looked for, or the file that was found and what is wrong
    with it. The file is read, as counting does.

    Raises:
        UnknownModelError: The model is unknown.
    """
    return model_missing(model)


def source(model: str) -> Source:
    """What counts a model's texts, and where it is found. The file is not read: see `missing`.

    Raises:
        UnknownModelError: The model is unknown.

    Examples:
        >>> source("gpt-5")
        Source(place='built in', file=None, encoding='o200k_base', family='gpt-5')
    """
    return Source(**model_source(model))


def sources() -> list[Source]:
    """The source of each of `known`."""
    return [Source(**fields) for fields in model_sources()]


def known() -> list[Model]:
    """All known models: the built-in table, then the registered ones."""
    return [Model(**fields) for fields in model_all()]


def _tokens(value: object, field: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**32:
        return value
    raise ConfigError("must be a whole number from 1 to 2^32", code="bad_tokens", path=field)


def _today() -> str:
    return dt.datetime.now(tz=dt.UTC).date().isoformat()
