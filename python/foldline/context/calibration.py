"""Calibrates a token counter against reported usage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foldline._util.checks import token_number
from foldline.errors import ConfigError

__all__ = ["Calibration"]


class Calibration:
    """Learns a counter's error from reported usage, and corrects counts.

    The model is ``reported = ratio * counted + offset * messages``, fitted over the newest ``window`` observations:

    1. Outliers are left out: observations whose log ratio lies more than 3.5 robust standard deviations (1.4826 times
       the median absolute deviation, taken as at least 2 %) from the median, from ``FIT_FROM`` observations on.
    2. The ratio is the median of reported / counted, weighted by counted: the line of least absolute deviations
       through the origin. Weights are capped at twice the median, so that no single observation decides. The offset
       is 0.
    3. If every observation gives its number of messages, and there are ``FIT_FROM``: over observations divided by their
       messages, the ratio is the median slope of all pairs, weighted by their distance. It is at most the ratio r of
       step 2 and at least min(1, r). The offset is the median of the residuals, at least 0.

    No ratio is below the floor, so corrected counts are never below ``floor * tokens`` and never shrink as tokens or
    messages grow. Equal observations in equal order give equal numbers.

    Sources: Iglewicz and Hoaglin 1993 (3.5 as a limit on outliers); Theil 1950, Sen 1968 (median of pairwise slopes).

    Observe whole requests, or differences between two of them: differences cancel the parts of every request that were
    not counted, such as tool schemas. Not thread-safe.

    Args:
        window: Number of observations used, 1 to 1,000.
        floor: The least ratio, in (0, 1].
        ConfigError: An argument is out of range.

    Examples:
        >>> calibration = Calibration()
        >>> for counted in (800, 2_400, 5_000):
        ...     _ = calibration.observe(counted, reported=round(1.28 * counted))
        >>> calibration.apply(10_000), calibration.samples
        (12800, 3)
    """

    __slots__ = ("_offset", "_ratio", "_samples", "floor", "window")

    #: Share of errors that the error bound covers.
    COVERAGE = 0.9
    #: Number of observations from which on outliers are excluded and an offset is fitted.
    FIT_FROM = 5

    def __init__(self, *, window: int = 64, floor: float = 0.5) -> None:
        if not 1 <= token_number(window, "window") <= 1_000:
            raise ConfigError("must lie in [1, 1000]", code="bad_window", path="window")
        least: object = floor
        if isinstance(least, bool) or not isinstance(least, (int, float)) or not 0 < least <= 1:
            raise ConfigError("must lie in (0, 1]", code="bad_floor", path="floor")
        self.window = window
        self.floor = float(floor)
        self._samples: list[_Sample] = []
        self._ratio = 1.0
        self._offset = 0.0

    def observe(self, counted: int, reported: int, messages: int = 0) -> bool:
        """Adds one observation.

        Args:
            counted: Tokens by the counter.
            reported: Tokens reported by the provider for the same messages.
            messages: Number of messages; 0 if unknown, then no offset is fitted.

        Returns:
            Whether the observation was used: zeros are ignored.

        Raises:
            ConfigError: A number is negative or not whole.

        Complexity: O(window ** 2 * log(window)): about 2 ms for 64.
        """
        counted, reported = token_number(counted, "counted"), token_number(reported, "reported")
        messages = token_number(messages, "messages")
        if not counted or not reported:
            return False
        error = abs(self.apply(counted, messages) - reported) / reported if self._samples else None
        self._samples = [*self._samples, _Sample(counted, reported, messages, error)][-self.window :]
        self._fit()
        return True

    def apply(self, tokens: int, messages: int = 0) -> int:
        """Predicts the provider's report for a count of tokens, given its number of messages. O(1).

        Raises:
            ConfigError: A number is negative or not whole.
        """
        tokens, messages = token_number(tokens, "tokens"), token_number(messages, "messages")
        least = math.ceil(self.floor * tokens)
        return max(least, math.floor(self._ratio * tokens + self._offset * messages + 0.5))

    @property
    def ratio(self) -> float:
        """Reported tokens per counted token; 1 before the first observation."""
        return self._ratio

    @property
    def offset(self) -> float:
        """Additional reported tokens per message."""
        return self._offset

    @property
    def samples(self) -> int:
        """Number of observations in the window."""
        return len(self._samples)

    @property
    def error_bound(self) -> float | None:
        """The relative error that 90 % of the window's observations without outliers stayed within.

        Each error is that of the prediction from earlier observations. The rank is that of the next observation,
        ``ceil(0.9 * (n + 1))`` of n, at most n. None until there are two observations.
        """
        errors = sorted(sample.error for sample in self._kept() if sample.error is not None)
        if not errors:
            return None
        return errors[min(len(errors), math.ceil(self.COVERAGE * (len(errors) + 1))) - 1]

    def to_dict(self) -> dict[str, Any]:
        """The calibration as JSON-compatible data."""
        samples = [[sample.counted, sample.reported, sample.messages, sample.error] for sample in self._samples]
        return {"version": 1, "window": self.window, "floor": self.floor, "samples": samples}

    @classmethod
    def from_dict(cls, data: object) -> Calibration:
        """Restores a calibration from the data of `to_dict`.

        Raises:
            ConfigError: The data are not a calibration of this version.
        """
        if not isinstance(data, Mapping) or data.get("version") != 1 or not isinstance(data.get("samples"), list):
            raise ConfigError("not a calibration of this version", code="bad_calibration", path="data")
        calibration = cls(window=data.get("window", 64), floor=data.get("floor", 0.5))
        for number, sample in enumerate(data["samples"][-calibration.window :]):
            calibration._samples.append(_Sample.of(sample, f"samples[{number}]"))
        calibration._fit()
        return calibration

    def __repr__(self) -> str:
        bound = "" if self.error_bound is None else f", error_bound={self.error_bound:.3f}"
        return f"Calibration(ratio={self.ratio:.3f}, offset={self.offset:.1f}, samples={self.samples}{bound})"

    def _kept(self) -> list[_Sample]:
        """The observations without outliers."""
        if len(self._samples) < self.FIT_FROM:
            return self._samples
        logs = [math.log(sample.reported / sample.counted) for sample in self._samples]
        middle = _median([(log, 1.0) for log in logs])
        deviation = max(0.02, 1.4826 * _median([(abs(log - middle), 1.0) for log in logs]))
        return [sample for sample, log in zip(self._samples, logs) if abs(log - middle) <= 3.5 * deviation]

    def _fit(self) -> None:
        kept = self._kept()
        self._ratio, self._offset = 1.0, 0.0
        if not kept:
            return
        heaviest = 2 * _median([(sample.counted, 1.0) for sample in kept])
        ratio = _median([(sample.reported / sample.counted, min(sample.counted, heaviest)) for sample in kept])
        self._ratio = max(self.floor, ratio)
        if len(kept) < self.FIT_FROM or not all(sample.messages for sample in kept):
            return
        points = [(sample.counted / sample.messages, sample.reported / sample.messages) for sample in kept]
        slopes = [
            ((y2 - y1) / (x2 - x1), abs(x2 - x1))
            for i, (x1, y1) in enumerate(points)
            for x2, y2 in points[i + 1 :]
            if abs(x2 - x1) > 1e-9 * (x1 + x2)
        ]
        if slopes:
            self._ratio = min(self._ratio, max(self.floor, min(1.0, self._ratio), _median(slopes)))
            self._offset = max(0.0, _median([(y - self._ratio * x, 1.0) for x, y in points]))


@dataclass(frozen=True, slots=True)
class _Sample:
    """An observation, with the relative error of its prediction."""

    counted: int
    reported: int
    messages: int
    error: float | None

    @classmethod
    def of(cls, data: object, path: str) -> _Sample:
        """Restores an observation written by `Calibration.to_dict`."""
        if not isinstance(data, list) or len(data) != 4:
            raise ConfigError("not an observation", code="bad_calibration", path=path)
        counted, reported, messages = (token_number(value, path) for value in data[:3])
        error = data[3]
        if not counted or not reported or not (error is None or (isinstance(error, (int, float)) and error >= 0)):
            raise ConfigError("not an observation", code="bad_calibration", path=path)
        return cls(counted, reported, messages, error)


def _median(values: list[tuple[float, float]]) -> float:
    """The median of (value, weight): the smallest value that half of the weight does not exceed."""
    values = sorted(values)
    half, below = sum(weight for _, weight in values) / 2, 0.0
    for value, weight in values:
        below += weight
        if below >= half:
            return value
    return values[-1][0]
