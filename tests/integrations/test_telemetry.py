"""Telemetry with the SDK of OpenTelemetry."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import foldline as fl

SECRET = "the-secret-of-the-house"
MESSAGES = [{"role": "user", "content": f"Step {i}. {SECRET} " + "word " * 60} for i in range(9)]


def summarize(messages: Any) -> fl.summarizers.Completion:
    return fl.summarizers.Completion("Steps were done.", "gpt-4o", 900, 12, "stop")


def fail(messages: Any) -> str:
    raise RuntimeError(SECRET)


def compactor(writer: Any) -> fl.Compactor:
    return fl.Compactor(fl.triggers.MessageCount(5), fl.strategies.Summarize(writer, keep_recent=2))


@pytest.fixture
def sdk() -> Any:
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([reader])

    def metrics() -> dict[str, list[Any]]:
        data: Any = reader.get_metrics_data()
        found = [m for r in data.resource_metrics for scope in r.scope_metrics for m in scope.metrics]
        return {metric.name: list(metric.data.data_points) for metric in found}

    return spans, metrics, {"tracer_provider": tracers, "meter_provider": meters}


def test_a_fold_is_a_span_a_count_and_two_histograms(sdk: Any) -> None:
    spans, metrics, providers = sdk
    each = compactor(summarize)
    stop = fl.telemetry.instrument(each, **providers)
    with providers["tracer_provider"].get_tracer("app").start_as_current_span("turn"):
        result = each.prepare(MESSAGES, session="s1")
    assert result.outcome == "folded"
    span, parent = spans.get_finished_spans()
    assert span.name == "foldline.compact"
    assert span.parent.span_id == parent.context.span_id
    attributes = dict(span.attributes)
    assert attributes["gen_ai.conversation.id"] == "s1"
    assert attributes["gen_ai.conversation.compacted"] is True
    assert attributes["gen_ai.usage.input_tokens"] == 900
    assert attributes["gen_ai.usage.output_tokens"] == 12
    assert attributes["gen_ai.response.model"] == "gpt-4o"
    assert attributes["foldline.outcome"] == "folded"
    assert attributes["foldline.tokens.saved"] == result.tokens_before - result.tokens_after
    assert attributes["foldline.counter.kind"] == "exact"
    assert attributes["foldline.tokens.floor"] == result.floor
    assert len(attributes["foldline.attempt.id"]) == 32
    assert 0 <= span.end_time - span.start_time < 60e9
    assert SECRET not in span.to_json()
    points = metrics()
    (count,) = points["foldline.compactions"]
    assert count.value == 1
    assert dict(count.attributes) == {
        "foldline.outcome": "folded", "foldline.reason": "message_count", "foldline.trigger": "auto",
    }  # fmt: skip
    assert points["foldline.compaction.duration"][0].count == 1
    assert points["foldline.compaction.tokens_saved"][0].sum == result.tokens_before - result.tokens_after
    stop()
    each.prepare([*MESSAGES, *MESSAGES], session="s2")
    assert len(spans.get_finished_spans()) == 2


def test_a_failure_is_an_error_with_its_code(sdk: Any) -> None:
    spans, metrics, providers = sdk
    each = compactor(fail)
    fl.telemetry.instrument(each, **providers)
    with pytest.warns(fl.errors.FoldlineWarning):
        each.compact(MESSAGES)
    (span,) = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "summarizer_failed"
    assert span.attributes["gen_ai.conversation.compacted"] is False
    assert SECRET not in span.to_json()
    (count,) = metrics()["foldline.compactions"]
    assert count.attributes["error.type"] == "summarizer_failed"
    assert "foldline.compaction.tokens_saved" not in metrics()


def test_a_call_that_does_not_trigger_records_nothing(sdk: Any) -> None:
    spans, _, providers = sdk
    each = compactor(summarize)
    fl.telemetry.instrument(each, **providers)
    assert each.compact(MESSAGES[:2]).reason == "not_triggered"
    assert spans.get_finished_spans() == ()


def test_log_records_have_no_content(caplog: pytest.LogCaptureFixture) -> None:
    each = compactor(summarize)
    fl.telemetry.log_attempts(each)
    with caplog.at_level(logging.INFO, "foldline"):
        each.compact(MESSAGES)
    (record,) = caplog.records
    assert record.getMessage().startswith("compaction folded (message_count): ")
    values: Any = record.foldline  # type: ignore[attr-defined]
    assert values["calls"] == 1
    assert SECRET not in json.dumps(values)
