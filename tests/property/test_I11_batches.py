"""I11 for batches: counts are the same in every batch size, chunking, kind of column and number of threads."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .strategies import random_sample

SPECS = ("o200k_base", "chars/4", "auto")
THREADS = st.sampled_from((1, 2, 3, 8, None))

# Long ones too: a thread takes 64 KB of text at a time, so short batches never use a second thread.
TEXT = st.text(max_size=30)
LONG_TEXT = st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=30), st.integers(1, 4_000))
MAYBE_TEXTS = st.lists(st.one_of(st.none(), TEXT, LONG_TEXT), max_size=12)


@pytest.fixture(autouse=True)
def skip_on_reference(on_reference: bool) -> None:
    if on_reference:
        pytest.skip("the oracle counts one at a time")


def cut(data: st.DataObject, items: list[Any]) -> list[list[Any]]:
    """The items in runs of any length, some of them empty."""
    places = sorted(data.draw(st.lists(st.integers(0, len(items)), max_size=4), label="cuts"))
    return [items[i:j] for i, j in zip([0, *places], [*places, len(items)])]


@pytest.mark.parametrize("spec", SPECS)
@given(texts=MAYBE_TEXTS, data=st.data())
def test_I11_batch_sizes(fl: Any, spec: str, texts: list[str | None], data: st.DataObject) -> None:
    """Lists and arrays, cut anywhere."""
    counter = fl.TokenCounter(spec)
    known = [text for text in texts if text is not None]
    expected = [counter.count(text) for text in known]
    found: list[int] = []
    for batch in cut(data, known):
        found += counter.count_batch(batch, threads=data.draw(THREADS)).tolist()
    assert found == expected
    assert counter.count_batch(np.array(known, dtype=object), threads=data.draw(THREADS)).tolist() == expected


@pytest.mark.parametrize("spec", SPECS)
@given(texts=MAYBE_TEXTS, data=st.data())
def test_I11_columns(fl: Any, spec: str, texts: list[str | None], data: st.DataObject) -> None:
    """Arrow columns of every type, in chunks of any length, sliced out of longer ones, dictionaries or not."""
    pa = pytest.importorskip("pyarrow")
    counter = fl.TokenCounter(spec)
    expected = [0 if text is None else counter.count(text) for text in texts]
    text_type = data.draw(st.sampled_from((pa.string(), pa.large_string(), pa.string_view())), label="type")
    is_dictionary = data.draw(st.booleans(), label="is a dictionary")
    chunks = []
    for chunk in cut(data, texts):
        before, after = (data.draw(st.lists(TEXT, max_size=2)) for _ in range(2))
        array = pa.array([*before, *chunk, *after], text_type)
        if is_dictionary:
            plain = array.cast(pa.large_string()).dictionary_encode()
            array = pa.DictionaryArray.from_arrays(plain.indices, plain.dictionary.cast(text_type))
        chunks.append(array[len(before) : len(before) + len(chunk)])
    column = pa.chunked_array(chunks)
    assert counter.count_batch(column, threads=data.draw(THREADS)).tolist() == expected


@pytest.mark.parametrize("spec", SPECS)
@given(seed=st.integers(0, 1 << 32), size=st.integers(0, 8), repeat=st.sampled_from((1, 200)), data=st.data())
def test_I11_transcripts(fl: Any, spec: str, seed: int, size: int, repeat: int, data: st.DataObject) -> None:
    """Lists of transcripts and their JSON lines, cut anywhere."""
    counter = fl.TokenCounter(spec)
    samples = [random_sample(random.Random(f"I11-batches-{seed}-{i}")) for i in range(size)] * repeat
    objects = [{"format": sample.format, "messages": sample.messages} for sample in samples]
    alone = [counter.count_messages(sample.messages, format=sample.format) for sample in samples[:size]] * repeat
    found: list[list[int]] = []
    for batch in cut(data, objects):
        threads = data.draw(THREADS)
        as_lines = b"\n".join(json.dumps(one).encode() for one in batch)
        given = data.draw(st.sampled_from((batch, as_lines, memoryview(as_lines))), label="input")
        counted = counter.count_transcripts(given, threads=threads)
        found += [counted.per_message[i:j].tolist() for i, j in zip(counted.offsets, counted.offsets[1:])]
        assert counted.totals.tolist() == [c.total for c in alone[len(found) - len(batch) : len(found)]]
    assert found == [counts.per_message.tolist() for counts in alone]
