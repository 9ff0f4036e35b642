"""A number with its interval: what every domain returns and every report shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Above this an interval is infinite, or says what no sample can: its end would be rounded to that of all that can be.
MOST_CONFIDENCE = 0.999999
#: More resamples change nothing that is shown, and take all memory.
MOST_RESAMPLES = 100_000


@dataclass(frozen=True)
class Figure:
    """A point estimate with an interval.

    Parameters
    ----------
    value
        The point estimate.
    lower, upper
        Ends of the interval; both ``nan`` where none was asked for.
    larger_is_better
        True where a larger value is the better one (accuracy), False where it is the worse one (error).
    confidence
        Nominal coverage of the interval, in (0, 1).
    """

    value: float
    lower: float
    upper: float
    larger_is_better: bool = True
    confidence: float = 0.95

    def __format__(self, spec: str) -> str:
        """Format as ``value [lower, upper]``, each number with `spec` (default ``.3f``)."""
        spec = spec or ".3f"
        if math.isnan(self.lower) or math.isnan(self.upper):
            return f"{self.value:{spec}}"
        return f"{self.value:{spec}} [{self.lower:{spec}}, {self.upper:{spec}}]"

    def __str__(self) -> str:
        return format(self)

    def _refuse_order(self, other: object) -> bool:
        raise TypeError("a Figure is an estimate with an interval: compare its .value, .lower or .upper")

    __lt__ = __le__ = __gt__ = __ge__ = _refuse_order
