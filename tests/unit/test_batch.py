"""`count_batch`: lists, iterables and numpy arrays of texts, on any number of threads."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import foldline as fl
from foldline.errors import ConfigError, FoldlineError, MessageError, TextTypeError
from unit.samples import CANARY, WORDS, holds_no_content

TEXTS = ["", "a", WORDS, "对话" * 30, "a\ud83db", "\ud83d\ude00", "naïve 🙂", "x" * 500]
COUNTER = fl.TokenCounter()
ONE_BY_ONE = [COUNTER.count(text) for text in TEXTS]

MANY = [f"{i} {WORDS} {'对' * (i % 7)}" * (i % 40) for i in range(3_000)]
"""Some megabytes, enough to give every thread a share."""


# --- numpy -------------------------------------------------------------------------------------------

WITHOUT_SURROGATES = [text for text in TEXTS if text.isprintable()]


@pytest.mark.parametrize("dtype", [np.str_, np.object_, np.dtypes.StringDType()], ids=str)
def test_numpy_arrays_count_as_lists(dtype: Any) -> None:
    array = np.array(WITHOUT_SURROGATES, dtype=dtype)
    counts = COUNTER.count_batch(array)
    assert (counts.dtype, counts.shape) == (np.int64, (len(WITHOUT_SURROGATES),))
    assert counts.tolist() == [COUNTER.count(text) for text in WITHOUT_SURROGATES]
    assert COUNTER.count_batch(array[::-2]).tolist() == counts[::-2].tolist()
    assert COUNTER.count_batch(array[2:5]).tolist() == counts[2:5].tolist()


def test_arrays_of_either_byte_order_count_the_same() -> None:
    array = np.array(["对话", "abc", ""])
    assert COUNTER.count_batch(array.astype(">U2")).tolist() == COUNTER.count_batch(array.astype("<U2")).tolist()


def test_surrogates_in_arrays_count_like_those_in_lists() -> None:
    assert COUNTER.count_batch(np.array(TEXTS, dtype=object)).tolist() == ONE_BY_ONE
    assert COUNTER.count_batch(np.array(TEXTS)).tolist() == ONE_BY_ONE


@pytest.mark.parametrize("missing", [None, np.nan], ids=repr)
def test_a_missing_value_of_numpy_counts_zero(missing: Any) -> None:
    array = np.array(["hello world", missing, "a"], dtype=np.dtypes.StringDType(na_object=missing))
    assert COUNTER.count_batch(array).tolist() == [2, 0, 1]


def test_a_text_that_marks_missing_values_counts_as_text() -> None:
    array = np.array(["a", "hello world"], dtype=np.dtypes.StringDType(na_object="hello world"))
    assert COUNTER.count_batch(array).tolist() == [1, 2]


@pytest.mark.parametrize(
    "array",
    [np.array([1, 2]), np.array([1.5]), np.array([b"a"]), np.array([True]), np.array(["2026-01-01"], "datetime64[D]")],
    ids=lambda array: str(array.dtype),
)
def test_an_array_of_another_type_is_a_type_error(array: Any) -> None:
    with pytest.raises(TypeError) as caught:
        COUNTER.count_batch(array)
    assert type(caught.value) is TextTypeError
    assert isinstance(caught.value, MessageError)
    assert caught.value.code == "not_text"


@pytest.mark.parametrize("array", [np.array("a"), np.array([["a"], ["b"]])], ids=["none", "two"])
def test_an_array_of_texts_must_have_one_dimension(array: Any) -> None:
    with pytest.raises(TypeError) as caught:
        COUNTER.count_batch(array)
    assert isinstance(caught.value, TextTypeError)
    assert caught.value.code == "not_one_dimensional"


@pytest.mark.parametrize("dtype", [np.float64, np.str_, np.object_, np.dtypes.StringDType()], ids=str)
def test_an_empty_array_gives_an_empty_array(dtype: Any) -> None:
    counts = COUNTER.count_batch(np.array([], dtype=dtype))
    assert (counts.dtype, counts.shape) == (np.int64, (0,))


@pytest.mark.parametrize("over", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_type_error_can_be_pickled_like_the_others(over: Callable[[Any], Any]) -> None:
    error = TextTypeError("wrong", index=2, line=4, transcript=1)
    again = over(error)
    assert (type(again), vars(again), str(again)) == (TextTypeError, vars(error), str(error))
    assert str(error) == "not_text: wrong (line 4, transcript 1, message 2)"


# --- Threads -----------------------------------------------------------------------------------------


KINDS = [WORDS, "for (i = 0; i < 10; ++i) { a[i] += 1; }\n", "12.50, 13.75; ", "Сообщения. ", "消息一条也没有丢失。"]
MIXED = [f"{i} " + KINDS[i % len(KINDS)] * (20 + i % 23) for i in range(2_000)]
"""Scripts in turn, more than a megabyte, 512 bytes on average: foldline counts them grouped by script."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base", "r50k_base"])
def test_a_batch_of_mixed_scripts_counts_like_its_texts(encoding: str, threads: int) -> None:
    counter = fl.TokenCounter(encoding)
    expected = [counter.count(text) for text in MIXED]
    assert sum(len(text.encode()) for text in MIXED) > max(1 << 20, 512 * len(MIXED))
    assert counter.count_batch(MIXED, threads=threads).tolist() == expected
    assert counter.count_batch(np.array(MIXED, dtype=object), threads=threads).tolist() == expected


def test_a_batch_over_several_windows_counts_like_its_texts() -> None:
    times = 1 + (33 << 20) // sum(len(text.encode()) for text in MIXED)
    expected = [COUNTER.count(text) for text in MIXED]
    assert COUNTER.count_batch(MIXED * times).tolist() == expected * times


def test_a_counting_function_gets_the_texts_in_order() -> None:
    heard: list[str] = []
    fl.TokenCounter(lambda text: heard.append(text) or 1).count_batch(MIXED)
    assert heard == MIXED


@pytest.mark.parametrize("threads", [1, 2, 3, 7, None, np.int64(2)], ids=repr)
@pytest.mark.parametrize("spec", ["o200k_base", "chars/4", "auto", len], ids=str)
def test_the_number_of_threads_changes_no_count(spec: Any, threads: Any) -> None:
    counter = fl.TokenCounter(spec)
    assert counter.count_batch(TEXTS, threads=threads).tolist() == [counter.count(text) for text in TEXTS]
    assert counter.count_batch(MANY, threads=threads).tolist() == [counter.count(text) for text in MANY]


def test_more_threads_than_texts_are_allowed() -> None:
    assert COUNTER.count_batch([], threads=1024).tolist() == []
    assert COUNTER.count_batch(["hello world" * 10_000], threads=1024).tolist() == [
        COUNTER.count("hello world" * 10_000)
    ]


@pytest.mark.parametrize(
    "threads", [0, -1, 1025, 1 << 100, True, False, 1.0, 2.5, "2", [], float("nan"), np.bool_(True)], ids=repr
)
def test_threads_out_of_range_are_a_config_error(threads: Any) -> None:
    for call in (COUNTER.count_batch, COUNTER.count_transcripts):
        with pytest.raises(ConfigError) as caught:
            call([], threads=threads)
        assert (caught.value.code, caught.value.path) == ("bad_threads", "threads")


def test_the_threads_argument_is_keyword_only() -> None:
    with pytest.raises(TypeError):
        COUNTER.count_batch(["a"], 2)  # type: ignore[misc]


def test_an_iterable_is_read_in_windows_of_less_than_a_megabyte() -> None:
    size, read, ahead = 10_000, 0, []

    def texts() -> Iterator[str]:
        nonlocal read
        for i in range(400):
            read += 1
            yield f"{i:0{size}}"

    def count(text: str) -> int:
        ahead.append(read - int(text[-4:]))
        return len(text)

    assert fl.TokenCounter(count).count_batch(texts()).tolist() == [size] * 400
    assert 1 < max(ahead) * size < 1 << 20


def test_many_empty_texts_are_windows_too() -> None:
    assert fl.TokenCounter("o200k_base").count_batch([""] * 100_000 + ["a"]).tolist() == [0] * 100_000 + [1]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_function_is_called_in_the_calling_thread_in_order(threads: int) -> None:
    seen: list[str] = []
    names: set[str] = set()

    def count(text: str) -> int:
        seen.append(text)
        names.add(threading.current_thread().name)
        return len(text)

    texts = [str(i) * 30_000 for i in range(10)]
    assert fl.TokenCounter(count).count_batch(texts, threads=threads).tolist() == [30_000] * 10
    assert (seen, names) == (texts, {threading.current_thread().name})


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("size", [1, 50_000])
def test_an_exception_of_a_counting_function_ends_the_batch(threads: int, size: int) -> None:
    error = RuntimeError("from the function")
    calls: list[str] = []

    def count(text: str) -> int:
        calls.append(text)
        if text[0] == "c":
            raise error
        return 1

    with pytest.raises(RuntimeError) as caught:
        fl.TokenCounter(count).count_batch([letter * size for letter in "abcde"], threads=threads)
    assert caught.value is error
    assert len(calls) == 3


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_first_text_that_fails_is_named(threads: int) -> None:
    def count(text: str) -> int:
        return 1 << 32 if text[0] == "x" else 1

    texts = ["a" * 70_000] * 4 + ["x" * 70_000, "a" * 70_000, "x" * 70_000]
    with pytest.raises(FoldlineError) as caught:
        fl.TokenCounter(count).count_batch(texts, threads=threads)
    assert (caught.value.code, caught.value.index) == ("too_many_tokens", 4)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_item_that_is_not_a_text_is_named_with_any_number_of_threads(threads: int) -> None:
    with pytest.raises(MessageError) as caught:
        COUNTER.count_batch([*MANY, CANARY, 5], threads=threads)
    assert (caught.value.code, caught.value.index) == ("not_a_string", len(MANY) + 1)
    holds_no_content(caught.value)


def test_several_threads_may_count_batches_on_threads() -> None:
    expected = COUNTER.count_batch(MANY).tolist()
    found: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: found.append(COUNTER.count_batch(MANY, threads=3).tolist())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def run(script: str, *, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
    """Runs a script in a fresh interpreter."""
    code = textwrap.dedent(script)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout_s, check=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_batches_on_threads_work_in_a_forked_child() -> None:
    done = run(
        """
        import os, warnings, foldline as fl
        warnings.simplefilter("ignore")
        counter = fl.TokenCounter()
        texts = [f"{i} some words " * 500 for i in range(400)]
        lines = b"".join(b'[{"role": "user", "content": "some words %d"}]\\n' % i for i in range(5000))
        def counts():
            return counter.count_batch(texts, threads=4).tolist(), counter.count_transcripts(lines, threads=4).total
        expected = counts()
        child = os.fork()
        if child == 0:
            os._exit(0 if counts() == expected else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert counts() == expected
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


LINE = '[{"role": "user", "content": "some words"}]'
INTERRUPTED = {
    "long texts": ("['a' * (64 << 20), 'b' * (64 << 20)]", "counter.count_batch(given, threads=2)"),
    "the other thread's": ("['a' * 70_000, 'b' * (128 << 20)]", "counter.count_batch(given, threads=2)"),
    "short texts": ("['some words and more'] * 5_000_000", "counter.count_batch(given)"),
    "short texts on threads": ("['some words and more'] * 5_000_000", "counter.count_batch(given, threads=2)"),
    "lines": (f"b'{LINE}' + b'\\n{LINE}' * 2_000_000", "counter.count_transcripts(given, threads=2)"),
    "lists": (f"[{LINE}] * 5_000_000", "counter.count_transcripts(given)"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way")
@pytest.mark.parametrize(("given", "call"), INTERRUPTED.values(), ids=INTERRUPTED)
def test_ctrl_c_ends_every_thread(given: str, call: str) -> None:
    """If the signal were handled only afterwards, the call would complete. The counter stays usable."""
    script = textwrap.dedent(
        f"""
        import sys, numpy, foldline as fl
        counter = fl.TokenCounter()
        given = {given}
        # The first call imports what it needs, and CPython ends by the signal where one came while a dataclass was
        # being made (`exec` notes it as unhandled), even if it was caught. The call under test imports nothing.
        counter.count_transcripts([[]])
        sys.stdin.readline()
        print("counting", flush=True)
        try:
            {call}
            sys.stdout.write("finished\\n")
        except KeyboardInterrupt:
            assert counter.count_batch(["hello world"], threads=2).tolist() == [2]
            sys.stdout.write("interrupted\\n")
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "counting\n"
        threading.Event().wait(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
        process.wait()
    assert (out, err, process.returncode) == ("interrupted\n", "", 0)


def test_ctrl_c_while_numpy_is_imported() -> None:
    """numpy is imported when the first array is created; Ctrl-C during the import raises KeyboardInterrupt."""
    script = textwrap.dedent(
        """
        import sys

        class Finder:
            is_armed = False

            def find_spec(self, name, path=None, target=None):
                if name == "numpy" and self.is_armed:
                    raise KeyboardInterrupt

        finder = Finder()
        sys.meta_path.insert(0, finder)
        import foldline as fl

        counter, messages = fl.TokenCounter(), [{"role": "user", "content": "hello world"}]
        assert counter.count_messages(messages).total == 9 and "numpy" not in sys.modules
        calls = [
            lambda: counter.count_messages(messages).per_message,
            lambda: counter.count_batch(["hello world"]),
            lambda: counter.count_transcripts([messages]).per_message,
        ]
        for finder.is_armed in (True, False):
            for call in calls:
                try:
                    print(call().tolist())
                except KeyboardInterrupt:
                    print("interrupted")
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["interrupted"] * 3 + ["[6]", "[2]", "[6]"], "")
