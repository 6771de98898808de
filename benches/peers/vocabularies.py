"""Tokenizer files of open models: documents of a megabyte, foldline beside gigatoken and the reference libraries.

The files are those of foldline-vocab, so that nothing is measured unless it is installed. Every round has a text of its
own, of the same pieces in another order: otherwise a library that remembers long pieces would be timed on its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from peers import Count
from results import Row, agree
from texts import documents, shuffled
from timing import cpu

#: The measured files: of byte-level BPE, and of BPE over characters with byte fallback.
BYTE_LEVEL = ("qwen3.json", "deepseek-v3.json")
BYTE_FALLBACK = ("mistral-v1.model", "mistral-v3.model")

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
    for file in (*BYTE_LEVEL, *BYTE_FALLBACK):
        load = _counters(vocabulary / file)
        reference = "tokenizers" if file in BYTE_LEVEL else "sentencepiece"
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
    """A counter of each library that reads this file."""
    import gigatoken

    import foldline as fl

    ours = fl.TokenCounter(str(file)).count
    if file.suffix == ".json":
        import tokenizers

        reference = tokenizers.Tokenizer.from_file(str(file))
        encode = gigatoken.Tokenizer.from_json(file.read_bytes()).backend.encode
        return {
            "foldline": ours,
            "gigatoken": lambda text: len(encode(text)),
            "tokenizers": lambda text: len(reference.encode(text, add_special_tokens=False).ids),
        }
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    encode = gigatoken.Tokenizer.from_sentencepiece(file).backend.encode
    return {
        "foldline": ours,
        "gigatoken": lambda text: len(encode(text)),
        "sentencepiece": lambda text: len(processor.encode(text)),
    }
