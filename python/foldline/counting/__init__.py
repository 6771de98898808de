"""Counting: counters by name or file, and the model table."""

from foldline.counting.counters import as_counter
from foldline.counting.tokenizer_json import tokenizer_json

__all__ = ["as_counter", "tokenizer_json"]
