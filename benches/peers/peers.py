"""The compared libraries, each by its fastest way to a number of tokens on one thread."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

Count = Callable[[str], int]
Batch = Callable[[list[str]], Sequence[int]]


@dataclass(frozen=True)
class Peer:
    """One library: its package and the construction of its counters."""

    name: str
    package: str
    module: str
    load: Callable[[str], Count]
    batch: Callable[[str, int], Batch]

    def version(self) -> str:
        """The installed version."""
        return metadata.version(self.package)

    def missing(self) -> str | None:
        """The reason why it cannot be measured, if any."""
        try:
            import_module(self.module)
        except ImportError as error:
            return f"{type(error).__name__}: {error}"
        return None


def assets() -> Path:
    """The rank files of the crate tiktoken-rs, found once for this process and its children."""
    if "FOLDLINE_BENCH_RANKS" not in os.environ:
        sys.path.append(str(ROOT / "scripts"))
        from tiktoken_cache import crate_assets

        os.environ["FOLDLINE_BENCH_RANKS"] = str(crate_assets())
    return Path(os.environ["FOLDLINE_BENCH_RANKS"])


# --- foldline -------------------------------------------------------------------------------------------


def _foldline(encoding: str) -> Count:
    import foldline as fl

    return fl.TokenCounter(encoding).count


def _foldline_batch(encoding: str, threads: int) -> Batch:
    import foldline as fl

    counter: Any = fl.TokenCounter(encoding)
    if threads == 1:
        return counter.count_batch
    try:
        counter.count_batch(["a"], threads=threads)
    except TypeError:
        return _in_threads(counter.count_batch, threads)
    return lambda texts: counter.count_batch(texts, threads=threads)


def _in_threads(batch: Batch, threads: int) -> Batch:
    """A part of the batch for each Python thread."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads)

    def run(texts: list[str]) -> list[int]:
        size = -(-len(texts) // threads)
        parts = pool.map(batch, (texts[i : i + size] for i in range(0, len(texts), size)))
        return [int(count) for part in parts for count in part]

    return run


# --- tiktoken -------------------------------------------------------------------------------------------


def _tiktoken(encoding: str) -> Count:
    import tiktoken

    encode = tiktoken.get_encoding(encoding).encode_ordinary
    return lambda text: len(encode(text))


def _tiktoken_batch(encoding: str, threads: int) -> Batch:
    import tiktoken

    peer = tiktoken.get_encoding(encoding)
    if threads == 1:
        return lambda texts: [len(ids) for ids in map(peer.encode_ordinary, texts)]
    return lambda texts: [len(ids) for ids in peer.encode_ordinary_batch(texts, num_threads=threads)]


# --- gigatoken ------------------------------------------------------------------------------------------


def _gigatoken_tokenizer(encoding: str) -> Any:
    import gigatoken

    return gigatoken.Tokenizer.from_tiktoken(assets() / f"{encoding}.tiktoken")


def _gigatoken(encoding: str) -> Count:
    encode = _gigatoken_tokenizer(encoding).backend.encode
    return lambda text: len(encode(text))


def _gigatoken_batch(encoding: str, threads: int) -> Batch:
    import numpy as np

    tokenizer = _gigatoken_tokenizer(encoding)
    return lambda texts: np.diff(tokenizer.encode_batch(texts, parallel=threads > 1).layout.offsets.data)


# --- fastokens ------------------------------------------------------------------------------------------


def _fastokens_tokenizer(encoding: str) -> Any:
    import fastokens

    return fastokens.Tokenizer.from_tiktoken(str(assets() / f"{encoding}.tiktoken"), encoding=encoding)


def _fastokens(encoding: str) -> Count:
    encode = _fastokens_tokenizer(encoding).encode_ordinary
    return lambda text: len(encode(text))


def _fastokens_batch(encoding: str, threads: int) -> Batch:
    import numpy as np

    tokenizer = _fastokens_tokenizer(encoding)
    if threads == 1:
        return lambda texts: [len(ids) for ids in map(tokenizer.encode_ordinary, texts)]
    flat = tokenizer.encode_batch_flat
    return lambda texts: np.diff(np.frombuffer(flat(texts, split_special_tokens=True)[1], np.uint64))


# --- splintr --------------------------------------------------------------------------------------------


def _splintr(encoding: str) -> Count:
    import splintr

    encode = splintr.Tokenizer.from_pretrained(encoding).encode_ordinary
    return lambda text: len(encode(text))


def _splintr_batch(encoding: str, threads: int) -> Batch:
    import splintr

    tokenizer = splintr.Tokenizer.from_pretrained(encoding)
    if threads == 1:
        return lambda texts: [len(ids) for ids in map(tokenizer.encode_ordinary, texts)]
    return lambda texts: [len(ids) for ids in tokenizer.encode_batch(texts)]


# --- rs-bpe, bpe-openai ---------------------------------------------------------------------------------


def _rs_bpe(encoding: str) -> Count:
    from rs_bpe.bpe import openai

    return getattr(openai, encoding)().count


def _bpe_openai(encoding: str) -> Count:
    import bpe_openai

    peer = bpe_openai.get_encoding(encoding)
    runtime = getattr(peer, "_runtime", None)
    if runtime is not None:
        runtime.config.chunk_limit = sys.maxsize  # It refuses texts of more than 200,000 tokens.
    encode = peer.encode_ordinary
    return lambda text: len(encode(text))


def _one_by_one(load: Callable[[str], Count]) -> Callable[[str, int], Batch]:
    def batch(encoding: str, threads: int) -> Batch:
        count = load(encoding)
        if threads > 1:
            return _in_threads(lambda texts: list(map(count, texts)), threads)
        return lambda texts: list(map(count, texts))

    return batch


FOLDLINE = Peer("foldline", "foldline", "foldline", _foldline, _foldline_batch)
PEERS = (
    Peer("tiktoken", "tiktoken", "tiktoken", _tiktoken, _tiktoken_batch),
    Peer("gigatoken", "gigatoken", "gigatoken", _gigatoken, _gigatoken_batch),
    Peer("fastokens", "fastokens", "fastokens", _fastokens, _fastokens_batch),
    Peer("splintr", "splintr-rs", "splintr", _splintr, _splintr_batch),
    Peer("rs-bpe", "rs-bpe", "rs_bpe.bpe", _rs_bpe, _one_by_one(_rs_bpe)),
    Peer("bpe-openai", "bpe-openai", "bpe_openai", _bpe_openai, _one_by_one(_bpe_openai)),
)
ALL = (FOLDLINE, *PEERS)


def by_name(name: str) -> Peer:
    """The peer with a name."""
    return next(peer for peer in ALL if peer.name == name)
