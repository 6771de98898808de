"""Counters from a model's ``tokenizer.json``, by the `tokenizers` package (extra ``hf``)."""

from __future__ import annotations

import os
from collections.abc import Callable

from foldline._core import TokenCounter
from foldline.errors import ConfigError

__all__ = ["load_counter", "tokenizer_json"]


def tokenizer_json(path: str | os.PathLike[str]) -> TokenCounter:
    """A counter that counts as a model's own tokenizer.

    Text that looks like a special token counts as plain text, no special tokens are added, and truncation or padding
    settings of the file are ignored. Only the texts of messages are counted: the file does not contain the chat
    template, so the kind is ``"estimated"``. Same as ``TokenCounter(path)``; every counter argument accepts the path.

    Args:
        path: The file. As a counter's name it must end in ``tokenizer.json``; here it may have any name.

    Raises:
        ConfigError: ``missing_extra`` without the `tokenizers` package, ``bad_tokenizer`` if the file cannot be read.

    Complexity: that of the tokenizer: loading takes about 0.1 to 1 s, counting runs at a few MB/s on one thread.

    Examples:
        >>> import json, pathlib, tempfile, pytest
        >>> _ = pytest.importorskip("tokenizers")
        >>> model = {"type": "WordLevel", "vocab": {"?": 0, "hello": 1, "world": 2}, "unk_token": "?"}
        >>> text = json.dumps({"model": model, "pre_tokenizer": {"type": "Whitespace"}, "added_tokens": []})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "tokenizer.json")
        ...     _ = path.write_text(text)
        ...     counter = tokenizer_json(path)
        >>> counter.count("hello, world")
        3
    """
    name = os.fspath(path)
    return TokenCounter(name) if name.endswith("tokenizer.json") else TokenCounter(load_counter(name))


def load_counter(path: str) -> Callable[[str], int]:
    """The counting function of a tokenizer file.

    The core calls this function for counter names that end in ``tokenizer.json``.

    Raises:
        ConfigError: As for `tokenizer_json`.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        detail = "a tokenizer.json needs the package tokenizers: pip install 'foldline[hf]'"
        raise ConfigError(detail, code="missing_extra", path="counter") from None
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception:  # noqa: BLE001 - the package raises bare exceptions that quote the file
        detail = "the file cannot be read as a tokenizer.json"
        raise ConfigError(detail, code="bad_tokenizer", path="counter") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False))

    return count
