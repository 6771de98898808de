"""Counting: counters by name or file, counts of many transcripts, and the model table."""

from foldline._core import TranscriptCounts
from foldline.counting.counters import as_counter
from foldline.counting.tokenizer_json import tokenizer_json

__all__ = ["TranscriptCounts", "as_counter", "tokenizer_json"]
