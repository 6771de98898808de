"""`count_batch` on columns through the Arrow C interface: every type of text, chunks, slices, nulls, bad producers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import foldline as fl
from foldline.errors import ConfigError, MessageError, TextTypeError
from unit.samples import CANARY, WORDS, holds_no_content

pa = pytest.importorskip("pyarrow")

COUNTER = fl.TokenCounter()

TEXTS = ["hello world", "", None, "a", WORDS, "对话" * 20, None, "exactly12byt", "thirteen byte", "🙂", "a"]
COUNTS = [0 if text is None else COUNTER.count(text) for text in TEXTS]

TYPES = {"string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view()}
INDEX_TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]


class Stream:
    """A column that offers only the stream, as other libraries do."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self._column.__arrow_c_stream__(requested_schema)


class Array:
    """An array that offers only its capsules."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


def dictionary(texts: list[str | None], index_type: Any = None, value_type: Any = None) -> Any:
    """The texts as an array of dictionary type."""
    known = list(dict.fromkeys(text for text in texts if text is not None))
    keys = pa.array([None if text is None else known.index(text) for text in texts], index_type or pa.int32())
    return pa.DictionaryArray.from_arrays(keys, pa.array(known, value_type or pa.string()))


def arrays() -> Iterator[tuple[str, Any]]:
    for name, text_type in TYPES.items():
        yield name, pa.array(TEXTS, text_type)
        yield f"dictionary of {name}", dictionary(TEXTS, value_type=text_type)


ARRAYS = dict(arrays())


# --- Types, slices, chunks ---------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_every_text_type_counts_like_the_list(array: Any, threads: int) -> None:
    for column in (array, Array(array), pa.chunked_array([array]), Stream(pa.chunked_array([array]))):
        counts = COUNTER.count_batch(column, threads=threads)
        assert (counts.dtype, counts.shape) == (np.int64, (len(TEXTS),))
        assert counts.tolist() == COUNTS


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_every_slice_counts_like_that_slice_of_the_list(array: Any) -> None:
    for start in range(len(TEXTS) + 1):
        for stop in range(start, len(TEXTS) + 1):
            assert COUNTER.count_batch(array[start:stop]).tolist() == COUNTS[start:stop]
            assert COUNTER.count_batch(array[start:][: stop - start]).tolist() == COUNTS[start:stop]


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_chunks_count_in_order(array: Any) -> None:
    for cut in range(len(TEXTS) + 1):
        column = pa.chunked_array([array[:cut], array[cut:cut], array[cut:]])
        assert COUNTER.count_batch(column).tolist() == COUNTS
        assert COUNTER.count_batch(Stream(column)).tolist() == COUNTS


@pytest.mark.parametrize("index_type", INDEX_TYPES, ids=str)
def test_dictionary_keys_may_be_any_integer_type(index_type: Any) -> None:
    assert COUNTER.count_batch(dictionary(TEXTS, index_type)).tolist() == COUNTS


@pytest.mark.parametrize("name", ARRAYS)
def test_empty_columns_give_empty_arrays(name: str) -> None:
    array = ARRAYS[name]
    columns = [array[:0], array[3:3], pa.chunked_array([], array.type), pa.chunked_array([array[:0], array[:0]])]
    for column in columns:
        counts = COUNTER.count_batch(column)
        assert (counts.dtype, counts.shape) == (np.int64, (0,))


def test_texts_longer_than_a_view_in_several_buffers() -> None:
    texts = ["x" * n for n in range(40)] + ["text " * 100_000, "a", "other " * 100_000]
    expected = [COUNTER.count(text) for text in texts]
    parts = [pa.array(texts[i : i + 5], pa.string_view()) for i in range(0, len(texts), 5)]
    assert COUNTER.count_batch(pa.array(texts, pa.string_view())).tolist() == expected
    assert COUNTER.count_batch(pa.concat_arrays(parts)).tolist() == expected


def test_a_large_column_counts_the_same_on_any_number_of_threads() -> None:
    texts = [f"{i} {WORDS}" * (i % 30) for i in range(2_000)]
    expected = [COUNTER.count(text) for text in texts]
    for text_type in TYPES.values():
        array = pa.array(texts, text_type)
        for column in (array, pa.chunked_array([array[:7], array[7:1500], array[1500:]]), array.dictionary_encode()):
            for threads in (1, 2, 5, None):
                assert COUNTER.count_batch(column, threads=threads).tolist() == expected


def test_the_storage_of_an_extension_type_is_counted() -> None:
    array = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(['{"a": 1}', None]))
    assert COUNTER.count_batch(array).tolist() == [COUNTER.count('{"a": 1}'), 0]


# --- Nulls -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["o200k_base", "bytes/4+4", "auto", len], ids=str)
def test_a_null_counts_zero_and_is_never_passed_to_a_function(spec: Any) -> None:
    counter = fl.TokenCounter(spec)
    for array in ARRAYS.values():
        assert counter.count_batch(array).tolist() == [0 if t is None else counter.count(t) for t in TEXTS]


@pytest.mark.parametrize("text_type", [*TYPES.values(), pa.null(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_columns_with_only_nulls(text_type: Any) -> None:
    assert COUNTER.count_batch(pa.nulls(5, text_type)).tolist() == [0] * 5
    assert COUNTER.count_batch(pa.chunked_array([pa.nulls(2, text_type), pa.nulls(1, text_type)])).tolist() == [0] * 3


def test_null_values_and_null_keys_of_a_dictionary() -> None:
    values = pa.array(["hello world", None, "a"])
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 0]), values)
    assert COUNTER.count_batch(array).tolist() == [2, 0, 0, 1, 2]
    nothing = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.nulls(1))
    assert COUNTER.count_batch(nothing).tolist() == [0]


# --- Dictionaries are counted once -------------------------------------------------------------------


def test_each_value_in_use_is_counted_once() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text)

    array = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2, None, 2, 0]), pa.array(["a", "unused", "ccc"]))
    counter = fl.TokenCounter(count)
    assert counter.count_batch(array).tolist() == [3, 1, 3, 0, 3, 1]
    assert seen == ["ccc", "a"]
    seen.clear()
    column = pa.chunked_array([array[:1], array[1:3], array])
    assert counter.count_batch(column, threads=4).tolist() == [3, 1, 3, 3, 1, 3, 0, 3, 1]
    assert seen == ["ccc", "a"]


def test_chunks_may_have_different_dictionaries() -> None:
    column = pa.chunked_array([dictionary(["a", "hello world"]), dictionary(["hello world", "one two three"])])
    assert COUNTER.count_batch(column).tolist() == [1, 2, 2, 3]


# --- Refused columns ---------------------------------------------------------------------------------

NOT_TEXT = {
    "int64": pa.array([1, 2]),
    "binary": pa.array([b"a"]),
    "large_binary": pa.array([b"a"], pa.large_binary()),
    "binary_view": pa.array([b"a"], pa.binary_view()),
    "list": pa.array([["a"]]),
    "struct": pa.array([{CANARY: "a"}]),
    "bool": pa.array([True]),
    "double": pa.array([1.5]),
    "timestamp": pa.array([0], pa.timestamp("s", "UTC")),
    "dictionary of int64": pa.array([1, 1]).dictionary_encode(),
    "dictionary of binary": pa.array([b"a"]).dictionary_encode(),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays([2], ["a"]),
}


@pytest.mark.parametrize("name", NOT_TEXT)
@pytest.mark.parametrize("wrap", [Array, lambda array: Stream(pa.chunked_array([array]))], ids=["array", "stream"])
def test_a_column_of_another_type_is_a_type_error(name: str, wrap: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError) as caught:
        COUNTER.count_batch(wrap(NOT_TEXT[name]))
    assert isinstance(caught.value, TextTypeError)
    assert caught.value.code in ("not_text", "bad_arrow")
    holds_no_content(caught.value)


@pytest.mark.parametrize("array", [NOT_TEXT["int64"], NOT_TEXT["list"]], ids=["int64", "list"])
def test_an_empty_column_of_another_type_is_a_type_error_too(array: Any) -> None:
    for column in (array[:0], pa.chunked_array([], array.type)):
        with pytest.raises(TypeError):
            COUNTER.count_batch(column)


def test_a_table_is_refused_before_it_is_read() -> None:
    read: list[int] = []

    def batches() -> Iterator[Any]:
        read.append(1)
        yield pa.record_batch({"text": ["a"]})

    schema = pa.schema({"text": pa.string()})
    batch = pa.record_batch({CANARY: ["a"]})
    for table in (batch, pa.table({CANARY: ["a"]}), pa.RecordBatchReader.from_batches(schema, batches())):
        with pytest.raises(TextTypeError) as caught:
            COUNTER.count_batch(table)
        assert caught.value.code == "not_text"
        holds_no_content(caught.value)
    assert read == []


def test_the_error_names_the_type() -> None:
    with pytest.raises(TextTypeError, match="Utf8, LargeUtf8, Utf8View, a Dictionary of these or Null, not Int64"):
        COUNTER.count_batch(pa.array([1]))


def test_the_number_of_threads_is_checked_first() -> None:
    with pytest.raises(ConfigError):
        COUNTER.count_batch(pa.array([1]), threads=0)


# --- Bad producers -----------------------------------------------------------------------------------


def from_buffers(text_type: Any, length: int, *buffers: bytes, offset: int = 0) -> Any:
    """An array built without validation."""
    return pa.Array.from_buffers(text_type, length, [None, *map(pa.py_buffer, buffers)], offset=offset)


def offsets(*values: int, kind: type[np.signedinteger[Any]] = np.int32) -> bytes:
    return np.array(values, kind).tobytes()


def view(length: int, buffer: int, offset: int) -> bytes:
    return np.array([length, 0, buffer, offset], np.int32).tobytes()


LONG = CANARY.encode() + b"x" * 50
BAD = {
    "offsets descend": (from_buffers(pa.string(), 3, offsets(0, 3, 1, 4), b"abcd"), "bad_offsets", 1),
    "offsets beyond the end": (from_buffers(pa.string(), 3, offsets(0, 3, 90, 4), b"abcd"), "bad_offsets", 1),
    "negative offsets": (from_buffers(pa.string(), 3, offsets(0, 1, -2, 4), b"abcd"), "bad_offsets", 1),
    "large offsets descend": (
        from_buffers(pa.large_string(), 3, offsets(0, 3, 1, 4, kind=np.int64), b"abcd"),
        "bad_offsets",
        1,
    ),
    "large offsets beyond all": (
        from_buffers(pa.large_string(), 2, offsets(0, 1 << 62, 4, kind=np.int64), b"abcd"),
        "bad_offsets",
        0,
    ),
    "large offsets that add up beyond all": (
        from_buffers(pa.large_string(), 8, offsets(*[0, 1 << 62] * 4, 4, kind=np.int64), b"abcd"),
        "bad_offsets",
        0,
    ),
    "no UTF-8": (from_buffers(pa.string(), 2, offsets(0, 1, 3), b"a\xff\xfe"), "bad_utf8", 1),
    "a cut character": (from_buffers(pa.string(), 2, offsets(0, 2, 3), "é对".encode()[:3]), "bad_utf8", 1),
    "a surrogate": (from_buffers(pa.string(), 1, offsets(0, 3), b"\xed\xa0\xbd"), "bad_utf8", 0),
    "a view beyond its buffer": (from_buffers(pa.string_view(), 1, view(20, 0, 50), LONG), "bad_offsets", 0),
    "a view of no buffer": (from_buffers(pa.string_view(), 1, view(20, 7, 0), LONG), "bad_offsets", 0),
    "a view with huge numbers": (from_buffers(pa.string_view(), 1, view(-1, -1, -1), LONG), "bad_offsets", 0),
    "a view of no UTF-8": (from_buffers(pa.string_view(), 1, view(20, 0, 0), b"\xff" * 60), "bad_utf8", 0),
    "a key beyond the dictionary": (
        pa.DictionaryArray.from_arrays(pa.array([0, 5]), pa.array(["a"]), safe=False),
        "bad_offsets",
        1,
    ),
    "a negative key": (
        pa.DictionaryArray.from_arrays(pa.array([0, -1]), pa.array(["a"]), safe=False),
        "bad_offsets",
        1,
    ),
    "a dictionary of no UTF-8": (
        pa.DictionaryArray.from_arrays(
            pa.array([0, 0, None, 1, 1]), from_buffers(pa.string(), 2, offsets(0, 1, 2), b"a\xff")
        ),
        "bad_utf8",
        3,
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("array", "code", "index"), BAD.values(), ids=BAD)
def test_data_from_a_producer_is_validated(array: Any, code: str, index: int, threads: int) -> None:
    for column in (array, Stream(pa.chunked_array([array]))):
        with pytest.raises(MessageError) as caught:
            COUNTER.count_batch(column, threads=threads)
        assert (caught.value.code, caught.value.index) == (code, index)
        holds_no_content(caught.value)


def test_bad_bytes_under_a_null_or_outside_a_slice_do_not_matter() -> None:
    array = from_buffers(pa.string(), 3, offsets(0, 1, 2, 3), b"a\xffb")
    assert COUNTER.count_batch(array[2:]).tolist() == [1]
    mask = pa.py_buffer(bytes([0b101]))
    with_null = pa.Array.from_buffers(pa.string(), 3, [mask, *array.buffers()[1:]])
    assert COUNTER.count_batch(with_null).tolist() == [1, 0, 1]


def test_the_first_bad_text_by_index_is_named_on_any_number_of_threads() -> None:
    texts = ["word " * 10_000] * 40
    good = pa.array(texts)
    bad = from_buffers(pa.string(), 1, offsets(0, 1), b"\xff")
    column = pa.chunked_array([good[:13], bad, good, bad, good])
    for threads in (1, 2, 4):
        with pytest.raises(MessageError) as caught:
            COUNTER.count_batch(column, threads=threads)
        assert (caught.value.code, caught.value.index) == ("bad_utf8", 13)


def test_the_first_bad_text_by_index_is_named_among_mixed_scripts() -> None:
    texts = ["the words of a text " * 2_000, "消息一条也没有丢失。" * 2_000] * 20
    of_han, of_letters = ("对话" * 100).encode() + b"\xff", b"a text " * 100 + b"\xff"
    bad = [from_buffers(pa.string(), 1, offsets(0, len(text)), text) for text in (of_han, of_letters)]
    for first in (0, 1):
        column = pa.chunked_array([pa.array(texts), bad[first], pa.array(texts), bad[1 - first]])
        for threads in (1, 2):
            with pytest.raises(MessageError) as caught:
                COUNTER.count_batch(column, threads=threads)
            assert (caught.value.code, caught.value.index) == ("bad_utf8", 40)


class Producer:
    """An object with both methods and configurable results."""

    def __init__(self, method: str, answer: Callable[[], Any]) -> None:
        setattr(type(self), method, lambda self, requested_schema=None: answer())


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_stream__"])
@pytest.mark.parametrize("answer", [None, 5, (), ("a", "b"), "capsule"], ids=repr)
def test_a_producer_without_capsules_is_refused(method: str, answer: Any) -> None:
    producer = type("P", (Producer,), {})(method, lambda: answer)
    with pytest.raises(TextTypeError) as caught:
        COUNTER.count_batch(producer)
    assert caught.value.code == "bad_arrow"


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_stream__"])
def test_an_exception_of_the_producer_propagates_unchanged(method: str) -> None:
    error = RuntimeError("from the producer")

    def fail() -> Any:
        raise error

    with pytest.raises(RuntimeError) as caught:
        COUNTER.count_batch(type("P", (Producer,), {})(method, fail))
    assert caught.value is error


def test_a_consumed_stream_is_refused() -> None:
    capsule = pa.chunked_array([["a"]]).__arrow_c_stream__()
    again = type("P", (Producer,), {})("__arrow_c_stream__", lambda: capsule)
    assert COUNTER.count_batch(again).tolist() == [1]
    with pytest.raises(TextTypeError) as caught:
        COUNTER.count_batch(again)
    assert caught.value.code == "bad_arrow"


def test_a_consumed_array_is_refused() -> None:
    capsules = pa.array(["a"]).__arrow_c_array__()
    again = type("P", (Producer,), {})("__arrow_c_array__", lambda: capsules)
    assert COUNTER.count_batch(again).tolist() == [1]
    with pytest.raises(TextTypeError) as caught:
        COUNTER.count_batch(again)
    assert caught.value.code == "bad_arrow"


def test_columns_are_released_after_the_call() -> None:
    before = pa.total_allocated_bytes()
    for _ in range(5):
        array = pa.array(["text " * 1000] * 100)
        COUNTER.count_batch(array, threads=2)
        COUNTER.count_batch(pa.chunked_array([array.dictionary_encode()]), threads=2)
        with pytest.raises(TextTypeError):
            COUNTER.count_batch(pa.array([1] * 1000))
        del array
    assert pa.total_allocated_bytes() == before


# --- A function as counter ---------------------------------------------------------------------------


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_an_exception_of_a_counting_function_propagates_from_a_column(array: Any) -> None:
    error = RuntimeError("from the function")

    def count(text: str) -> int:
        if text == "🙂":
            raise error
        return 1

    with pytest.raises(RuntimeError) as caught:
        fl.TokenCounter(count).count_batch(array, threads=2)
    assert caught.value is error
