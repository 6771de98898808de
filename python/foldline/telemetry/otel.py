"""Spans and metrics of OpenTelemetry. Needs its API alone (extra ``otel``); what is done with them is the SDK's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from foldline.compactor import Compactor
from foldline.compactor.events import AttemptEnded
from foldline.errors import ConfigError
from foldline.telemetry import names

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["instrument"]


def instrument(
    compactor: Compactor,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Callable[[], None]:
    """Records every later attempt of a compactor: a span, a counter, and histograms of duration and tokens saved.

    A span is a child of the one that is current where the attempt ends. No attribute holds content.

    Args:
        compactor: The compactor.
        tracer_provider: Default: the global one.
        meter_provider: Default: the global one.

    Returns:
        A function that ends the recording.

    Raises:
        ConfigError: The extra ``otel`` is missing (``missing_extra``).
    """
    try:
        from opentelemetry import metrics, trace
    except ImportError:
        detail = "install foldline[otel]"
        raise ConfigError(detail, code="missing_extra", path="telemetry") from None
    tracer = trace.get_tracer(names.INSTRUMENTATION, tracer_provider=tracer_provider)
    meter = metrics.get_meter(names.INSTRUMENTATION, meter_provider=meter_provider)
    count = meter.create_counter(names.METRIC_COUNT, "{attempt}", "Attempts to compact")
    duration = meter.create_histogram(names.METRIC_DURATION, "s", "Duration of attempts to compact")
    saved = meter.create_histogram(names.METRIC_SAVED, "{token}", "Tokens that a fold saves")

    def record(attempt: AttemptEnded) -> None:
        end_ns = time.time_ns()
        span = tracer.start_span(names.SPAN, start_time=end_ns - int(attempt.duration_s * 1e9))
        if span.is_recording():
            span.set_attributes(_attributes(attempt))
            if attempt.error is not None:
                span.set_status(trace.Status(trace.StatusCode.ERROR, attempt.error))
        span.end(end_ns)
        labels = {names.OUTCOME: attempt.outcome, names.REASON: attempt.reason, names.TRIGGER: attempt.trigger}
        if attempt.error is not None:
            labels[names.ERROR_TYPE] = attempt.error
        count.add(1, labels)
        duration.record(attempt.duration_s, labels)
        if attempt.tokens_saved > 0:
            saved.record(attempt.tokens_saved, labels)

    return compactor.watch(record)


def _attributes(attempt: AttemptEnded) -> dict[str, Any]:
    values = attempt.as_dict()
    found = {name: values[key] for key, name in names.ATTRIBUTES.items() if values[key] not in (None, "")}
    found[names.COMPACTED] = attempt.outcome in ("folded", "fallback")
    cost = attempt.cost_usd
    return found if cost is None else found | {names.COST: cost}
