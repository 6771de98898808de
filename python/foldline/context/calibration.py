"""What reported usage teaches about a counter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foldline._util.checks import token_number
from foldline.errors import ConfigError

__all__ = ["Calibration"]


class Calibration:
    """Learns from reported usage how far a counter is off, and corrects it.

    It takes ``reported = ratio * counted + offset * messages``, over the newest ``window`` observations:

    1. Outliers are left out while they are a minority: observations whose log ratio lies more than 3.5 robust standard
       deviations (1.4826 times the median absolute deviation, taken as at least 2 %) from the median, once there are 5.
    2. The ratio is the median of reported / counted, weighted by counted, which makes it the line of least absolute
       deviations through the origin; but none weighs more than two median ones, so that no single one decides. The
       offset is 0.
    3. Where every observation tells its messages, and there are 5: over observations divided by their messages, the
       ratio is the median slope of all pairs, weighted by their distance, at most the ratio of step 2 and not below 1
       unless that is; the offset is the median of what it leaves, at least 0.

    No ratio goes below the floor, so that what is applied never falls below ``floor * tokens`` and never shrinks as
    tokens or messages grow. Equal observations in equal order give equal numbers.

    Sources: Iglewicz and Hoaglin 1993 (3.5 as a limit on outliers); Theil 1950, Sen 1968 (median of pairwise slopes).

    Observe whole requests, or differences between two of them: those leave out what is in every request and was not
    counted, such as the schemas of tools. Not for use from two threads at once.

    Args:
        window: How many observations count, 1 to 1,000.
        floor: The least ratio, in (0, 1].

    Raises:
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
    #: From so many observations on, outliers are told apart and an offset is sought.
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
        """Learns from one report.

        Args:
            counted: What the counter said.
            reported: What the provider said of the same messages.
            messages: How many they were; 0 where that is not known, then no offset is sought.

        Returns:
            Whether something was learned: not from zeros.

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
        """What the provider is likely to report where the counter says ``tokens`` for so many messages. O(1).

        Raises:
            ConfigError: A number is negative or not whole.
        """
        tokens, messages = token_number(tokens, "tokens"), token_number(messages, "messages")
        least = math.ceil(self.floor * tokens)
        return max(least, math.floor(self._ratio * tokens + self._offset * messages + 0.5))

    @property
    def ratio(self) -> float:
        """Reported tokens a counted one; 1 before the first observation."""
        return self._ratio

    @property
    def offset(self) -> float:
        """Tokens a message beyond that."""
        return self._offset

    @property
    def samples(self) -> int:
        """Observations in the window."""
        return len(self._samples)

    @property
    def error_bound(self) -> float | None:
        """The relative error that 90 % of the observations in the window stayed within, outliers aside.

        Each is judged by what was known before it, so it is an error of prediction; the rank is that of the next
        observation, ``ceil(0.9 * (n + 1))`` of n, at most n. None until there are two.
        """
        errors = sorted(sample.error for sample in self._kept() if sample.error is not None)
        if not errors:
            return None
        return errors[min(len(errors), math.ceil(self.COVERAGE * (len(errors) + 1))) - 1]

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        samples = [[sample.counted, sample.reported, sample.messages, sample.error] for sample in self._samples]
        return {"version": 1, "window": self.window, "floor": self.floor, "samples": samples}

    @classmethod
    def from_dict(cls, data: object) -> Calibration:
        """What `to_dict` gave.

        Raises:
            ConfigError: It is not that.
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
        """The observations that are no outliers."""
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
    """An observation, with the relative error of what was predicted for it."""

    counted: int
    reported: int
    messages: int
    error: float | None

    @classmethod
    def of(cls, data: object, path: str) -> _Sample:
        """From what `Calibration.to_dict` wrote."""
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
