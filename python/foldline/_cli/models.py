"""Models for `foldline compact`, and their prices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from foldline._cli.estimate import Predictor
from foldline.batch.cache import CachedSummarizer, Metered, SummaryCache
from foldline.errors import FoldlineError
from foldline.summarizers import Extractive, Prompted
from foldline.typing import Completion, Messages, Summarizer

__all__ = ["SUMMARIZERS", "Price", "make_predictor", "make_summarizer"]

SUMMARIZERS = "extractive|openai:MODEL"

_OPENAI = "openai:"


@dataclass(frozen=True, slots=True)
class Price:
    """Token prices of a model in US dollars, from the package genai-prices."""

    model: str

    def __call__(self, input_tokens: int, output_tokens: int) -> float:
        """The price of a call.

        Raises:
            click.UsageError: The package is missing, or does not know the model.
        """
        try:
            from genai_prices import Usage, calc_price
        except ImportError:
            raise click.UsageError(
                "--max-cost needs the package genai-prices: pip install 'foldline[prices]'"
            ) from None
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        try:
            return float(calc_price(usage, self.model, provider_id="openai").total_price)
        except LookupError:
            raise click.UsageError(f"--max-cost: no price is known for {self.model}") from None


def make_summarizer(
    name: str,
    cache: Path,
    counter: str,
    *,
    max_requests: int | None = None,
    max_cost: float | None = None,
    with_costs: bool = False,
) -> tuple[Summarizer, SummaryCache | None]:
    """The summarizer, and the cache of its paid summaries.

    Args:
        name: ``extractive`` or ``openai:MODEL``.
        cache: The cache file.
        counter: Name of the counter, part of the cache's identity.
        max_requests: As for `Metered`.
        max_cost: As for `Metered`, in US dollars.
        with_costs: Whether the cost, if prices are known, and answers from the cache are counted.

    Raises:
        click.UsageError: Unknown name, or a missing option.
    """
    _check(name)
    if name == "extractive":
        for option, value in (("--max-requests", max_requests), ("--max-cost", max_cost)):
            if value is not None:
                raise click.BadParameter("requires a model; extractive uses none", param_hint=option)
        return Extractive(), None
    from foldline.summarizers import OpenAICompatible

    model_name = name.removeprefix(_OPENAI)
    try:
        model = OpenAICompatible(model_name)
    except FoldlineError as error:
        raise click.BadParameter(f"{error.detail} ({error.path})", param_hint="--summarizer") from None
    price = None
    if max_cost is not None:
        price = Price(model_name)
        price(1, 1)
    elif with_costs:
        price = known_price(model_name)
    store = SummaryCache(cache)
    metered = Metered(model, store, max_requests=max_requests, max_cost=max_cost, price=price)
    return CachedSummarizer(Prompted(metered), store, f"{model!r} {counter}", counts_hits=with_costs), store


def known_price(model: str) -> Price | None:
    """The prices of a model; None if they are not known."""
    price = Price(model)
    try:
        price(1, 1)
    except click.UsageError:
        return None
    return price


def make_predictor(name: str) -> Predictor:
    """A `Predictor` for a summarizer, with prices if known.

    Raises:
        click.UsageError: Unknown name.
    """
    _check(name)
    if name == "extractive":
        return Predictor(None, None)
    return Predictor(Prompted(_Unasked()), known_price(name.removeprefix(_OPENAI)))


class _Unasked:
    """A placeholder model."""

    def complete(self, messages: Messages, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
        """Is never called."""
        raise NotImplementedError


def _check(name: str) -> None:
    if name != "extractive" and not (name.startswith(_OPENAI) and len(name) > len(_OPENAI)):
        raise click.BadParameter(f"must be {SUMMARIZERS.replace('|', ' or ')}", param_hint="--summarizer")
