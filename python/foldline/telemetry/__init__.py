"""Telemetry of compactions: spans and metrics of OpenTelemetry, and log records without content.

It watches compactors from outside: where it is not used, nothing is imported and nothing is measured.
"""

from foldline.telemetry import names
from foldline.telemetry.logs import log_attempts
from foldline.telemetry.otel import instrument

__all__ = ["instrument", "log_attempts", "names"]
