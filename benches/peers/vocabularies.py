"""Tokenizer files of open models: documents of a megabyte, foldline beside gigatoken and the reference libraries.

The files are those of foldline-vocab, so that nothing is measured unless it is installed. Every round has a text of its
own, of the same pieces in another order: otherwise a library that remembers long pieces would be timed on its memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from peers import Count
from results import Row, agree
from texts import documents, shuffled
from timing import cpu

#: The measured files: two of byte-level BPE, two of BPE over characters with byte fallback.
FILES = ("qwen3.json", "deepseek-v3.json", "mistral-v1.model", "mistral-v3.model")

#: Rounds before those that are timed.
WARM = 2


def folder() -> Path | None:
    """The folder of foldline-vocab, if it is installed."""
    found = find_spec("foldline_vocab")
    return Path(found.origin).parent if found and found.origin else None


def vocabularies(rounds: int) -> Iterator[Row]:
    """A row for each file and kind of document."""
    vocabulary = folder()
    if vocabulary is None:
        return
    for file in FILES:
        load, reference = _counters(vocabulary / file), reference_of(Path(file))
        if reference not in load:
            continue
        for kind, document in documents().items():
            texts = [shuffled(document, seed) for seed in range(WARM + rounds)]
            work: dict[str, Callable[[], Any]] = {name: partial(count, texts[0]) for name, count in load.items()}
            wrong = agree(work, load[reference](texts[0]))
            best = dict.fromkeys(work, float("inf"))
            for number, text in enumerate(texts):
                # The references take a second each.
                for library in [name for name in work if name != reference or number == WARM]:
                    seconds = cpu(partial(load[library], text))
                    if number >= WARM:
                        best[library] = min(best[library], seconds)
            speeds = {library: len(document.encode()) / seconds / 1e6 for library, seconds in best.items()}
            sample = f"{Path(file).stem} {kind}"
            yield Row("1 MB, tokenizer files", sample, "MB/s", True, speeds, "1 MB, tokenizer files", wrong)


def _counters(file: Path) -> dict[str, Count]:
    """A counter of each library that reads this file; one that cannot is left out."""
    counters: dict[str, Count] = {}
    for name, load in (("foldline", _foldline), ("gigatoken", _gigatoken), (reference_of(file), _reference)):
        with contextlib.suppress(Exception):
            counters[name] = load(file)
    return counters


def reference_of(file: Path) -> str:
    """The library that defines the counts of a file."""
    return "tokenizers" if file.suffix == ".json" else "sentencepiece"


def _foldline(file: Path) -> Count:
    import foldline as fl

    return fl.TokenCounter(str(file)).count


def _gigatoken(file: Path) -> Count:
    from gigatoken import Tokenizer

    tokenizer = Tokenizer.from_json(file.read_bytes()) if file.suffix == ".json" else Tokenizer.from_sentencepiece(file)
    encode = tokenizer.backend.encode
    return lambda text: len(encode(text))


def _reference(file: Path) -> Count:
    if file.suffix == ".json":
        import tokenizers

        tokenizer = tokenizers.Tokenizer.from_file(str(file))
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    return lambda text: len(processor.encode(text))
