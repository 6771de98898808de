"""The cache of summaries: hits, misses, sharing and limits."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.batch.cache import CachedSummarizer, Metered, SummaryCache
from foldline.errors import ConfigError, StoreError, SummaryError
from foldline.summarizers import Completion, FromFunction, Prompted
from foldline.typing import SummarizeRequest

REQUEST = SummarizeRequest(
    [{"role": "user", "content": f"{i} " + "word " * 40} for i in range(6)], [0, 1, 2, 3], 200, len, "openai_chat"
)


class Asked:
    """A summarizer that counts its calls."""

    def __init__(self) -> None:
        self.times = 0

    def summarize(self, request: SummarizeRequest) -> Completion:
        self.times += 1
        return Completion("so far", "m", 10, 2, notes=("asked_again",), prompt_version="document/1")


class Model:
    """A chat model that reports its usage."""

    def complete(self, messages: Any, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
        return Completion("so far", "m", 10, 2)


@pytest.fixture
def cache(tmp_path: Path) -> SummaryCache:
    return SummaryCache(tmp_path / "cache.sqlite")


def test_a_cached_summary_is_shared_and_survives_a_restart(cache: SummaryCache, tmp_path: Path) -> None:
    asked = Asked()
    first = CachedSummarizer(asked, cache, "m").summarize(REQUEST)
    cache.close()
    again = pickle.loads(pickle.dumps(cache))
    assert CachedSummarizer(asked, again, "m").summarize(REQUEST) == first
    assert (asked.times, first) == (1, Asked().summarize(REQUEST))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: replace(r, messages=[{"role": "user", "content": "other"}, *r.messages[1:]]),
        lambda r: replace(r, folded=[0, 1, 2]),
        lambda r: replace(r, max_tokens=201),
        lambda r: replace(r, target_tokens=100),
        lambda r: replace(r, format="anthropic"),
        lambda r: replace(r, instructions="mind the tests"),
        lambda r: replace(r, previous=[0]),
        lambda r: replace(r, previous_summary="before"),
        lambda r: replace(r, part="history"),
    ],
)
def test_another_request_is_a_miss(cache: SummaryCache, change: Callable[[SummarizeRequest], SummarizeRequest]) -> None:
    asked = Asked()
    writer = CachedSummarizer(asked, cache, "m")
    writer.summarize(REQUEST)
    writer.summarize(change(REQUEST))
    assert asked.times == 2


def test_another_model_or_prompt_is_a_miss_and_later_messages_do_not_matter(cache: SummaryCache) -> None:
    asked = Asked()
    CachedSummarizer(asked, cache, "m").summarize(REQUEST)
    grown = replace(REQUEST, messages=[*REQUEST.messages, {"role": "user", "content": "later"}])
    CachedSummarizer(asked, cache, "m").summarize(grown)
    assert asked.times == 1
    CachedSummarizer(asked, cache, "n").summarize(REQUEST)
    assert asked.times == 2
    keys = {CachedSummarizer(Prompted(Model(), focus=each), cache, "m").key(REQUEST) for each in ("a", None)}
    words = [CachedSummarizer(Prompted(Model(), "Sum up {new_messages}"), cache, "m").key(REQUEST)]
    assert words[0] not in keys


def test_failures_are_not_cached(cache: SummaryCache) -> None:
    def failing(messages: object) -> str:
        raise SummaryError("no answer came", code="timeout")

    with pytest.raises(SummaryError):
        CachedSummarizer(FromFunction(failing), cache, "m").summarize(REQUEST)
    assert CachedSummarizer(Asked(), cache, "m").summarize(REQUEST).text == "so far"


def test_text_that_is_not_utf8_has_a_key(cache: SummaryCache) -> None:
    odd = replace(REQUEST, messages=[{"role": "user", "content": "\ud83d"}] * 6)
    assert CachedSummarizer(Asked(), cache, "m").summarize(odd).text == "so far"


def test_a_file_that_is_not_a_cache_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "cache.sqlite").write_text("no database at all, but a text that is long enough to be looked at" * 20)
    with pytest.raises(StoreError) as raised:
        SummaryCache(tmp_path / "cache.sqlite").get(b"key")
    assert raised.value.code == "cache_failed"


def test_a_cache_works_in_a_batch_compactor(cache: SummaryCache) -> None:
    asked = Asked()
    compactor = fl.batch.BatchCompactor(
        fl.KeepMessages(1), summarizer=CachedSummarizer(asked, cache, "m"), summary_tokens=200, counter="chars/4"
    )
    talk = fl.StoredTranscript("a", "openai_chat", list(REQUEST.messages))
    rows = list(compactor.compact_rows([talk, talk]))
    assert (rows[0], asked.times, rows[0].status) == (rows[1], 1, "folded")


# Limits on spending


def test_the_call_limit_covers_all_callers(cache: SummaryCache) -> None:
    failures = []

    def ask() -> None:
        try:
            Metered(Model(), cache, max_requests=5).complete([], max_tokens=10)
        except SummaryError as error:
            failures.append(error.code)

    threads = [threading.Thread(target=ask) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == ["spending_limit"] * 4
    assert (cache.spent()["requests"], cache.spent()["input_tokens"]) == (5, 50)
    cache.forget_spent()
    assert cache.spent() == {}


def test_cost_is_reserved_before_a_call_and_settled_after_it(cache: SummaryCache) -> None:
    model = Metered(Model(), cache, max_cost=100.0, price=lambda read, written: float(read + written))
    model.complete([{"role": "user", "content": "x" * 20}], max_tokens=10)  # 20 bytes, 16 around them, 10 to write
    assert cache.spent()["cost"] == 12
    with pytest.raises(SummaryError) as raised:
        model.complete([{"role": "user", "content": "x" * 63}], max_tokens=10)
    assert raised.value.code == "spending_limit"
    assert cache.spent()["cost"] == 12
    model.complete([{"role": "user", "content": "x" * 62}], max_tokens=10)
    with pytest.raises(ConfigError):
        Metered(Model(), cache, max_cost=1.0)
