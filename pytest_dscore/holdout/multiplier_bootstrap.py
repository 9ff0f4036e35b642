"""A multiplier bootstrap of the largest deviation: the dependence of all orders, at the price of being asymptotic.

With independent standard normal multipliers g the sum ``sum_l g_l (q_i(z_l) - mean_i) / n`` has, given the data,
exactly a normal distribution with the empirical covariance of the outcome vectors, so the draws are made from that
k x k matrix (Chernozhukov, Chetverikov and Kato 2013 justify it also for k far above n). The matrix follows from the
similarities. For very many models the multipliers are applied to the data instead, which is the same in distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.similarity import PackedOutcomes
from pytest_dscore.holdout.tails import Floats

ASYMPTOTIC = "asymptotic: a bootstrap on the test set itself, right as examples grow in number; no finite guarantee"

_FACTOR_LIMIT = 3000  # models up to which the covariance is factored
_BATCH = 512


@dataclass(frozen=True)
class BootstrapResult:
    """Simulated values of ``max_i |deviation|``.

    Parameters
    ----------
    maxima
        Sorted, shape (draws,).
    sigma
        Standard deviation of each model's error rate, shape (k,).
    """

    maxima: Floats
    sigma: Floats

    def probability(self, epsilon: float) -> float:
        """Return the share of draws at or above epsilon, counting the data as one more: at least 1/(draws + 1)."""
        above = self.maxima.size - int(np.searchsorted(self.maxima, epsilon, side="left"))
        return (above + 1) / (self.maxima.size + 1)

    def tolerance(self, delta: float) -> float:
        """Return the order statistic that is exceeded with probability at most delta.

        Raises
        ------
        SettingsError
            There are fewer than ``1 / delta - 1`` draws.
        """
        rank = math.ceil((1 - delta) * (self.maxima.size + 1) - 1e-9)
        if rank > self.maxima.size:
            raise SettingsError(
                f"delta = {delta:g} needs at least {math.ceil(1 / delta)} bootstrap draws, not {self.maxima.size}."
            )
        return float(self.maxima[rank - 1])

    def effective_models(self, delta: float) -> float:
        """Return the k' for which a union bound over normal tails gives the bootstrap's tolerance, in [1, k].

        About 1 for copies of one model, about k for independent models.
        """
        epsilon = self.tolerance(delta)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(self.sigma > 0, epsilon / self.sigma, np.inf)
        tail = float(np.mean(2 * special.ndtr(-z)))
        return float(min(max(delta / tail if tail > 0 else 1.0, 1.0), self.sigma.size))


def bootstrap(packed: PackedOutcomes, similarity: Floats, draws: int = 10_000, seed: int = 0) -> BootstrapResult:
    """Simulate the largest absolute deviation of k models.

    Parameters
    ----------
    packed
        Outcomes of k models on n examples.
    similarity
        Their similarities, shape (k, k).
    draws
        Number of simulated test sets, at least 1.
    seed
        Seed of the generator: the same seed gives the same result.
    """
    rate = packed.errors() / packed.n
    sigma = np.sqrt(rate * (1 - rate) / packed.n)
    rng = np.random.default_rng(seed)
    if packed.k <= _FACTOR_LIMIT:
        factor = _factor(rate, similarity) / math.sqrt(packed.n)
        maxima = _from_factor(factor, draws, rng)
    else:
        maxima = _from_data(packed, rate, draws, rng)
    return BootstrapResult(np.sort(maxima), sigma)


def _factor(rate: Floats, similarity: Floats) -> Floats:
    """Return F, shape (k, r), with ``F F' = `` the covariance of one example's outcomes."""
    both = (rate[:, None] + rate - 1 + similarity) / 2
    values, vectors = np.linalg.eigh(both - rate[:, None] * rate)
    keep = values > 0
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]), dtype=np.float64)


def _from_factor(factor: Floats, draws: int, rng: np.random.Generator) -> Floats:
    maxima = np.zeros(draws)
    for start in range(0, draws, _BATCH):
        size = min(_BATCH, draws - start)
        deviations = rng.standard_normal((size, factor.shape[1])) @ factor.T
        maxima[start : start + size] = np.abs(deviations).max(axis=1)
    return maxima


def _from_data(packed: PackedOutcomes, rate: Floats, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Apply multipliers to the data, in blocks of draws and of models; memory is that of a block."""
    maxima = np.zeros(draws)
    for start in range(0, draws, _BATCH):
        size = min(_BATCH, draws - start)
        g = rng.standard_normal((size, packed.n), dtype=np.float32)
        total = g.sum(axis=1, dtype=np.float64)
        for first in range(0, packed.k, _BATCH):
            rows = packed.rows(first, first + _BATCH).astype(np.float32)
            deviations = (g @ rows.T - total[:, None] * rate[first : first + _BATCH]) / packed.n
            here = maxima[start : start + size]
            np.maximum(here, np.abs(deviations).max(axis=1), out=here)
    return maxima
