"""The names of attributes, spans and metrics: ``gen_ai.*`` where OpenTelemetry has a name, ``foldline.*`` otherwise."""

from __future__ import annotations

__all__ = [
    "ATTRIBUTES",
    "CALLS",
    "COMPACTED",
    "COST",
    "ERROR_TYPE",
    "INSTRUMENTATION",
    "METRIC_COUNT",
    "METRIC_DURATION",
    "METRIC_SAVED",
    "OUTCOME",
    "REASON",
    "SPAN",
    "TRIGGER",
]

#: The instrumentation scope.
INSTRUMENTATION = "foldline"

#: The name of a span: one for each attempt.
SPAN = "foldline.compact"

#: Attempts, by outcome, reason, trigger and error.
METRIC_COUNT = "foldline.compactions"

#: Histogram of the duration of attempts, in seconds.
METRIC_DURATION = "foldline.compaction.duration"

#: Histogram of the tokens that a fold saves.
METRIC_SAVED = "foldline.compaction.tokens_saved"

OUTCOME = "foldline.outcome"
REASON = "foldline.reason"
TRIGGER = "foldline.trigger"
CALLS = "foldline.summarizer.calls"
COST = "foldline.cost_usd"

#: OpenTelemetry's name of the code of a failure.
ERROR_TYPE = "error.type"

#: Whether the conversation was compacted.
COMPACTED = "gen_ai.conversation.compacted"

#: The attribute of a span for each value of an attempt.
ATTRIBUTES = {
    "id": "foldline.attempt.id",
    "session": "gen_ai.conversation.id",
    "trigger": TRIGGER,
    "outcome": OUTCOME,
    "reason": REASON,
    "error": ERROR_TYPE,
    "tokens_before": "foldline.tokens.before",
    "tokens_after": "foldline.tokens.after",
    "tokens_saved": "foldline.tokens.saved",
    "length_before": "foldline.messages.before",
    "length_after": "foldline.messages.after",
    "floor": "foldline.tokens.floor",
    "fits": "foldline.fits",
    "counter": "foldline.counter",
    "counter_kind": "foldline.counter.kind",
    "round": "foldline.round",
    "strategy": "foldline.strategy",
    "fallback": "foldline.fallback",
    "model": "gen_ai.response.model",
    "calls": CALLS,
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
