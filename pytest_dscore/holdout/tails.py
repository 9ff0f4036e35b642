"""Exact binomial tails in log space, with boundaries that are exact.

Every bound of this package is put together from four numbers: a binomial probability, an upper tail, a lower tail and a
boundary ``n * (p + epsilon)``. They are computed here once, so that the demands on them (n to 10^7, probabilities far
below the smallest double, p of 0 or 1, integer boundaries taken as integers) are met in one place.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

#: Relative slack that every final probability is rounded up by. ``scipy.special.betainc`` and the sums here agree with
#: 60-digit arithmetic to about 1e-12 up to n = 10^7 (see tests/holdout/test_tails.py); the slack keeps rounding from
#: ever putting a bound below the true probability.
SLACK = 1e-11

_DEEP = 1e-270  # below this betainc nears the end of the doubles, and the continued fraction takes over


def fraction(value: float | Fraction) -> Fraction:
    """Return the decimal number that the user wrote: ``0.1`` gives exactly 1/10, not the nearest double.

    Parameters
    ----------
    value
        A finite number. A `Fraction` or an integer is taken as it is.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, np.floating):
        return Fraction(str(value))  # str of a NumPy scalar is its shortest decimal in its own precision
    return Fraction(repr(float(value)))


def boundaries(n: int, error: float | Fraction, epsilon: float | Fraction) -> tuple[int, int]:
    """Return the counts ``(a, b)`` at which a model overfits: ``count >= a`` or ``count <= b``.

    ``a = ceil(n (p + eps))`` and ``b = floor(n (p - eps))`` in rational arithmetic (spec, bound 1). A float cannot say
    1/3, so with float input a product within ``n * 1e-15`` of an integer is that integer; the slack widens both tails
    and is therefore always on the safe side. ``b`` is negative and ``a`` above `n` where the tail is empty.

    Parameters
    ----------
    n
        Number of test examples, at least 1.
    error
        Population error rate p, in [0, 1].
    epsilon
        Tolerance, above 0.
    """
    p, eps = fraction(error), fraction(epsilon)
    exact = isinstance(error, Fraction) and isinstance(epsilon, Fraction)
    slack = Fraction(0) if exact else Fraction(n, 10**15)
    return math.ceil(n * (p + eps) - slack), math.floor(n * (p - eps) + slack)


def _stirling_error(x: Floats) -> Floats:
    """Return ``log x! - log(sqrt(2 pi x) (x/e)^x)`` for integers x >= 1 (Loader 2000)."""
    if float(x.min(initial=16.0)) >= 16:
        return _stirling_series(x)
    small = np.minimum(x, 16.0)
    table = special.gammaln(small + 1) - (0.5 * np.log(2 * np.pi * small) + small * np.log(small) - small)
    return np.asarray(np.where(x < 16, table, _stirling_series(np.maximum(x, 16.0))), dtype=np.float64)


def _stirling_series(x: Floats) -> Floats:
    """Return the asymptotic series of `_stirling_error`, below 1e-16 off from x = 16 on."""
    y = 1 / (x * x)
    return np.asarray((1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - y / 1188) * y) * y) * y) / x, dtype=np.float64)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Return ``x log(x / mean) + mean - x`` without cancellation, for x >= 1 and mean > 0 (Loader's bd0)."""
    v = (x - mean) / (x + mean)
    near = np.abs(v) < 0.1
    w = np.where(near, v, 0.0)
    w2 = w * w
    total = (x - mean) * w
    term = 2 * x * w
    for i in range(1, 9):  # v^2 < 0.01: eight terms leave less than 1e-17 of the sum
        term = term * w2
        total = total + term / (2 * i + 1)
    if bool(near.all()):
        return np.asarray(total, dtype=np.float64)
    return np.asarray(np.where(near, total, x * np.log(x / mean) + mean - x), dtype=np.float64)


def log_pmf(x: Any, n: Any, p: float, q: float) -> Floats:
    """Return ``log P(Bin(n, p) = x)`` by Loader's saddle-point form (full accuracy where log-gammas cancel).

    Parameters
    ----------
    x, n
        Integer arrays of one shape (they broadcast); outside ``0 <= x <= n`` the result is ``-inf``.
    p, q
        The rate and its complement, given apart so that neither loses digits near 0 or 1.
    """
    x, n = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64))
    with np.errstate(all="ignore"):
        if p <= 0.0:
            return np.where((x == 0) & (n >= 0), 0.0, -np.inf)
        if q <= 0.0:
            return np.where((x == n) & (n >= 0), 0.0, -np.inf)
        inside = (x >= 1) & (x <= n - 1)
        if bool(inside.all()):
            return inner_log_pmf(x, n, p, q)
        y, m = np.where(inside, x, 1.0), np.where(inside, n, 2.0)
        result = np.where(inside, inner_log_pmf(y, m, p, q), -np.inf)
        log_p = math.log1p(-q) if q < 0.5 else math.log(p)
        log_q = math.log1p(-p) if p < 0.5 else math.log(q)
        result = np.where((x == n) & (n >= 0), n * log_p, result)
        return np.where((x == 0) & (n >= 0), n * log_q, result)


def inner_log_pmf(x: Floats, n: Floats, p: float | Floats, q: float | Floats) -> Floats:
    """Return Loader's expression, for ``1 <= x <= n - 1`` and rates in (0, 1), which may be arrays."""
    rest = n - x
    correction = _stirling_error(n) - _stirling_error(x) - _stirling_error(rest)
    exponent = correction - _deviance(x, n * p) - _deviance(rest, n * q)
    return np.asarray(exponent + 0.5 * np.log(n / (2 * np.pi * x * rest)), dtype=np.float64)


def scalar_log_pmf(x: int, n: int, p: float, q: float) -> float:
    """Return what `log_pmf` returns for one x and n, without the cost of arrays (it starts every run of a sum)."""
    if not 1 <= x <= n - 1 or p <= 0.0 or q <= 0.0 or min(x, n - x) < 16:
        return float(log_pmf(x, n, p, q))
    logs = 0.0
    for sign, count in ((1, n), (-1, x), (-1, n - x)):
        y = 1 / (count * count)
        logs += sign * (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - y / 1188) * y) * y) * y) / count
    for count, mean in ((x, n * p), (n - x, n * q)):
        v = (count - mean) / (count + mean)
        if abs(v) >= 0.1:
            logs -= count * math.log(count / mean) + mean - count
            continue
        term, w2 = 2 * count * v, v * v
        logs -= (count - mean) * v + sum(term * w2**i / (2 * i + 1) for i in range(1, 9))
    return logs + 0.5 * math.log(n / (2 * math.pi * x * (n - x)))


def _beta_fraction(a: Floats, b: Floats, p: float | Floats) -> Floats:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method."""
    tiny = 1e-300
    c = np.ones_like(a)
    d = 1 - (a + b) * p / (a + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    h = d.copy()
    for m in range(1, 500):
        for coefficient in (
            m * (b - m) * p / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * p / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + coefficient * d
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1 + coefficient / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            step = c * d
            h = h * step
        if bool(np.all(np.abs(step - 1) < 1e-15)):
            break
    return h


def _deep_log_upper(a: Floats, n: Floats, p: float, q: float) -> Floats:
    """Return ``log P(Bin(n, p) >= a)`` far in the tail (a well above n p), where doubles would underflow.

    ``I_p(a, n-a+1) = P(Bin(n, p) = a) * q * fraction``: the prefactor of DLMF 8.17.22 is a binomial probability.
    """
    return np.asarray(log_pmf(a, n, p, q) + math.log(q) + np.log(_beta_fraction(a, n - a + 1, p)), dtype=np.float64)


def log_upper(a: Any, n: Any, p: float, q: float) -> Floats:
    """Return ``log P(Bin(n, p) >= a)``.

    Parameters
    ----------
    a, n
        Integer arrays of one shape (they broadcast). ``a <= 0`` gives 0 (certain), ``a > n`` gives ``-inf``.
    p, q
        The rate and its complement.
    """
    a, n = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(n, dtype=np.float64))
    result = np.full(a.shape, -np.inf)
    result[a <= 0] = 0.0
    inner = (a > 0) & (a <= n)
    if q <= 0.0:
        result[inner] = 0.0
    if p <= 0.0 or q <= 0.0 or not bool(inner.any()):
        return result
    x, m = a[inner], n[inner]
    # The tail is the side of the mean that a lies on; the other side comes from its complement, which is small.
    tail = special.betainc(x, m - x + 1, p)
    above = x > m * p
    with np.errstate(divide="ignore"):
        logs = np.where(above, np.log(tail), np.log1p(-special.betainc(m - x + 1, x, q)))
    deep = above & (tail < _DEEP)
    if bool(deep.any()):
        logs[deep] = _deep_log_upper(x[deep], m[deep], p, q)
    result[inner] = np.minimum(logs, 0.0)
    return result


def log_lower(b: Any, n: Any, p: float, q: float) -> Floats:
    """Return ``log P(Bin(n, p) <= b)``; as `log_upper` with successes and failures exchanged."""
    return log_upper(np.asarray(n, dtype=np.float64) - np.asarray(b, dtype=np.float64), n, q, p)


def log_upper_each(a: Any, n: Any, p: Any, q: Any) -> Floats:
    """Return what `log_upper` returns, for many rates at once: all arguments are arrays of shapes that broadcast."""
    a, n, p, q = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (a, n, p, q)))
    result = np.where((a <= 0) | ((a <= n) & (q <= 0.0)), 0.0, -np.inf)
    inner = (a > 0) & (a <= n) & (p > 0.0) & (q > 0.0)
    x, m, rate, rest = a[inner], n[inner], p[inner], q[inner]
    above = x > m * rate
    ends = m - x + 1
    tail = special.betainc(np.where(above, x, ends), np.where(above, ends, x), np.where(above, rate, rest))
    with np.errstate(divide="ignore"):
        logs = np.where(above, np.log(tail), np.log1p(-tail))
    deep = above & (tail < _DEEP)
    x, m, rate, rest = x[deep], m[deep], rate[deep], rest[deep]
    within = np.minimum(x, m - 1)
    pmf = np.where(x < m, inner_log_pmf(within, m, rate, rest), m * np.log(rate))
    logs[deep] = pmf + np.log(rest) + np.log(_beta_fraction(x, m - x + 1, rate))
    result[inner] = np.minimum(logs, 0.0)
    return result


def log_lower_each(b: Any, n: Any, p: Any, q: Any) -> Floats:
    """Return what `log_lower` returns, as `log_upper_each`."""
    return log_upper_each(np.asarray(n, dtype=np.float64) - np.asarray(b, dtype=np.float64), n, q, p)


def log_two_tails(n: int, error: float | Fraction, epsilon: float | Fraction) -> tuple[float, float]:
    """Return the logs of the upper and the lower overfitting probability of one model.

    ``P(E_S - E_D >= eps)`` and ``P(E_S - E_D <= -eps)``, both tails closed (spec, bound 1).

    Parameters
    ----------
    n, error, epsilon
        As in `boundaries`.
    """
    a, b = boundaries(n, error, epsilon)
    p = fraction(error)
    rate, rest = float(p), float(1 - p)
    return float(log_upper(a, n, rate, rest)), float(log_lower(b, n, rate, rest))


def log_add(first: float, second: float) -> float:
    """Return ``log(exp(first) + exp(second))``."""
    return float(np.logaddexp(first, second))


def round_up(log_probability: float) -> float:
    """Return the log of a probability, enlarged by `SLACK` (more where the log itself is huge) and cut off at 1."""
    return min(0.0, round_up_sum(log_probability))


def round_up_sum(log_sum: float) -> float:
    """Return the log of a sum of probabilities, which may be above 1, enlarged as by `round_up`."""
    return log_sum if log_sum == -math.inf else log_sum + SLACK + 1e-15 * abs(log_sum)


def probability(log_probability: float) -> float:
    """Return ``exp``, but never 0 for an event that is possible: the smallest double where it would underflow."""
    if log_probability == -math.inf:
        return 0.0
    return max(math.exp(log_probability), math.ulp(0.0))
