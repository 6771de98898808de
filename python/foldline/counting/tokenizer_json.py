"""Counters from tokenizer files, by the core or by the `tokenizers` package (extra ``hf``)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from foldline._core import TokenCounter
from foldline.errors import ConfigError

__all__ = ["load_counter", "tokenizer_json"]


def tokenizer_json(path: str | os.PathLike[str], *, engine: Literal["foldline", "hf"] | None = None) -> TokenCounter:
    """A counter that counts as a model's own tokenizer.

    Text that looks like a special token counts as plain text, no special tokens are added, and truncation or padding
    settings of the file are ignored. Only the texts of messages are counted: the file does not contain the chat
    template, so counts of messages are ``"estimated"``. Same as ``TokenCounter(path, engine=engine)``.

    Args:
        path: The file, or a model's folder (with ``engine="hf"``, one that has a ``tokenizer.json``).
        engine: ``"foldline"`` for the core, which supports BPE models; ``"hf"`` for the `tokenizers` package, which
            supports all, is slower, and gives counts of the kind ``"estimated"``. Default: ``"foldline"``.

    Raises:
        ConfigError: ``bad_tokenizer`` if the file cannot be read, ``unsupported_tokenizer`` if it has a part that the
            core does not support, ``missing_extra`` without the `tokenizers` package.

    Complexity: loading takes about 0.1 to 1 s, once for each file of a process. The core then counts as fast as with
    its own encodings, the package at a few MB/s on one thread.

    Examples:
        >>> import json, pathlib, tempfile, pytest
        >>> _ = pytest.importorskip("tokenizers")
        >>> model = {"type": "WordLevel", "vocab": {"?": 0, "hello": 1, "world": 2}, "unk_token": "?"}
        >>> text = json.dumps({"model": model, "pre_tokenizer": {"type": "Whitespace"}, "added_tokens": []})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "tokenizer.json")
        ...     _ = path.write_text(text)
        ...     counter = tokenizer_json(path, engine="hf")
        >>> counter.count("hello, world")
        3
    """
    return TokenCounter(Path(path), engine=engine)


def load_counter(path: str) -> Callable[[str], int]:
    """The counting function of a tokenizer file.

    The core calls this function for ``engine="hf"``.

    Raises:
        ConfigError: As for `tokenizer_json`.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        detail = "engine=\"hf\" needs the package tokenizers: pip install 'foldline[hf]'"
        raise ConfigError(detail, code="missing_extra", path="counter") from None
    # A model's folder has the file under this name.
    file = Path(path, "tokenizer.json") if Path(path).is_dir() else path
    try:
        tokenizer = Tokenizer.from_file(os.fspath(file))
    except Exception:  # noqa: BLE001 - the package raises bare exceptions that quote the file
        detail = "the file cannot be read as a tokenizer.json"
        raise ConfigError(detail, code="bad_tokenizer", path="counter") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False))

    return count
