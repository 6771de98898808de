"""Prices of models, by the optional package genai-prices."""

from __future__ import annotations

__all__ = ["price_of"]


def price_of(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """The price of a call in US dollars; None without the package, or if it does not know the model."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(calc_price(usage, model).total_price)
    except LookupError:
        return None
