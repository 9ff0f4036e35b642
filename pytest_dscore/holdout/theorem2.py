"""Theorem 2 and Corollary 5 of Mania et al. 2019: closed forms for a similarity cover.

The seed's text of the theorem is garbled in print; the formulas here were derived again from its proof (see
docs/holdout-bounds.md). Equation (6) is *not* as printed: it needs a factor 2 under the root.
"""

from __future__ import annotations

import math
from fractions import Fraction

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout import checks, tails
from pytest_dscore.holdout.queries import Queries


def _log_growth(epsilon: float, eta: float | Fraction) -> float:
    """Return ``log(1 + epsilon / (4 (1 - eta)))``, infinite at eta = 1."""
    gap = float(1 - tails.fraction(eta))
    return math.inf if gap <= 0 else math.log1p(epsilon / (4 * gap))


def log_theorem2(queries: Queries, n: int, epsilon: float | Fraction, eta: float | Fraction, cover_size: int) -> float:
    """Return the log of the right-hand side of (4) for any number of queries; may exceed 0."""
    eps = float(epsilon)
    cover = math.log(2 * cover_size) - n * eps * eps / 2
    rest = math.log(2) + queries.log - n * eps / 4 * _log_growth(eps, eta)
    return tails.log_add(cover, rest)


def theorem2_probability(*, k: int, n: int, epsilon: float, eta: float, cover_size: int = 1) -> float:
    """Return the bound (4) on the overfitting event, at most 1.

    ``2 N exp(-n eps^2 / 2) + 2 k exp(-(n eps / 4) log(1 + eps / (4 (1 - eta))))``: the cover's models deviate by half
    of epsilon (Hoeffding), or a model deviates from its cover by the other half (Lemma 4).

    Parameters
    ----------
    k, n
        Models and examples, at least 1.
    epsilon
        Tolerance in (0, 1).
    eta
        Similarity in [0, 1] at which `cover_size` models cover all k.
    cover_size
        N of the theorem, at least 1.

    Raises
    ------
    SettingsError
        A value out of its range.
    """
    size, examples, cover = checks.count(k, "k"), checks.count(n, "n"), checks.count(cover_size, "cover_size")
    eps, similarity = checks.open_unit(epsilon, "epsilon"), checks.closed_unit(eta, "eta")
    return tails.probability(tails.round_up(log_theorem2(Queries.of(size), examples, eps, similarity, cover)))


def theorem2_largest_eta(*, k: int, n: int, delta: float, cover_size: int = 1) -> float:
    """Return the largest eta for which (5) holds: ``1 - max(2 log(4k/delta)/n, sqrt(log(4N/delta)/(2n)))``.

    Negative where (5) holds for no eta. Raises SettingsError for a value out of range.
    """
    log_k, log_n = _log_terms(k, cover_size, delta)
    examples = checks.count(n, "n")
    return 1 - max(2 * log_k / examples, math.sqrt(log_n / (2 * examples)))


def theorem2_deviation(*, k: int, n: int, delta: float, eta: float, cover_size: int = 1) -> float:
    """Return (5): with probability 1 - delta all deviations are at most this.

    ``max(sqrt(2 log(4N/delta)/n), sqrt(32 (1 - eta) log(4k/delta)/n))``.

    Raises
    ------
    SettingsError
        A value out of range.
    DScoreError
        `eta` above `theorem2_largest_eta`, where the equation does not hold (a smaller eta may be used instead: models
        that are eta-similar are also less-than-eta-similar).
    """
    similarity = float(checks.closed_unit(eta, "eta"))
    largest = theorem2_largest_eta(k=k, n=n, delta=delta, cover_size=cover_size)
    if similarity > largest:
        raise DScoreError(
            f"Equation (5) holds for eta up to {largest:.6g} here, not for {similarity:.6g}; pass that smaller eta."
        )
    log_k, log_n = _log_terms(k, cover_size, delta)
    return max(math.sqrt(2 * log_n / n), math.sqrt(32 * (1 - similarity) * log_k / n))


def _log_terms(k: int, cover_size: int, delta: float) -> tuple[float, float]:
    """Return ``log(4k/delta)`` and ``log(4N/delta)``."""
    log_delta = math.log(float(checks.open_unit(delta, "delta")))
    sizes = checks.count(k, "k"), checks.count(cover_size, "cover_size")
    return math.log(4 * sizes[0]) - log_delta, math.log(4 * sizes[1]) - log_delta


def theorem2_epsilon(*, n: int, delta: float, cover_size: int = 1) -> float:
    """Return the epsilon of (6), ``sqrt(2 log((2N+1)/delta)/n)``: the same however many models are scored.

    The printed formula lacks the factor 2; without it the proof gives a failure probability of
    ``sqrt((2N+1) delta)``, not delta. Holds where eta is at least `theorem2_required_eta`.
    """
    size = checks.count(cover_size, "cover_size")
    log_term = math.log(2 * size + 1) - math.log(float(checks.open_unit(delta, "delta")))
    return math.sqrt(2 * log_term / checks.count(n, "n"))


def theorem2_required_eta(*, k: int, n: int, epsilon: float) -> float:
    """Return the similarity that (7) demands: ``1 - eps / (4 (exp(2 eps) (2k)^(4/(n eps)) - 1))``.

    It makes the second term of (4) at most ``exp(-n eps^2 / 2)``. Raises SettingsError for a value out of range.
    """
    if not 0 < float(epsilon) < math.inf:
        checks.open_unit(epsilon, "epsilon")
    eps, examples = float(epsilon), checks.count(n, "n")
    return 1 - eps / 4 * _inverse_expm1(2 * eps + 4 / (examples * eps) * math.log(2 * checks.count(k, "k")))


def _inverse_expm1(x: float) -> float:
    """Return ``1 / (exp(x) - 1)``, 0 where the exponential overflows."""
    return 0.0 if x > 700 else 1 / math.expm1(x)


def corollary5_epsilon(*, k: int, n: int, delta: float, alpha: float = 0.0) -> float:
    """Return the tolerance of Corollary 5 for `k` rounds of adaptive use with exact scores shown.

    ``sqrt(4 (k^(1-alpha) log(n+1) + log(2/delta)) / n)``; it holds when all models that might be asked have a cover of
    at most ``(n+1)^(k^(1-alpha))`` members at `corollary5_eta`. At alpha = 0 nothing is assumed.

    Parameters
    ----------
    k, n
        Rounds and examples, at least 1.
    delta
        Failure probability in (0, 1).
    alpha
        Strength of the similarity assumption, in [0, 1].
    """
    strength = float(checks.closed_unit(alpha, "alpha"))
    rounds, examples = checks.count(k, "k"), checks.count(n, "n")
    log_delta = math.log(float(checks.open_unit(delta, "delta")))
    return math.sqrt(4 * (rounds ** (1 - strength) * math.log(examples + 1) + math.log(2) - log_delta) / examples)


def corollary5_eta(*, k: int, n: int, delta: float, alpha: float = 0.0) -> float:
    """Return the similarity at which Corollary 5 needs its cover: ``1 - eps / (4 (exp(eps k^alpha) - 1))``."""
    eps = corollary5_epsilon(k=k, n=n, delta=delta, alpha=alpha)
    return 1 - eps / 4 * _inverse_expm1(eps * k**alpha)
