"""Intervals from the hits alone: a paired bootstrap over examples that costs no further forward pass.

Examples with the same pattern of hits over the 2 n^2 + 1 passes are exchangeable, so drawing examples with replacement
is the same as drawing how often each distinct pattern occurs, from a multinomial. A test set has far fewer patterns
than examples, which makes a thousand replicates cheap; and as patterns are sorted, the order of the examples changes
nothing.

Source: the D-Score spec, item 8 (*reconstruction*: the paper gives no intervals).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

_CHUNK_CELLS = 4_000_000


def hit_patterns(hits: NDArray[np.bool_]) -> tuple[Array, NDArray[np.int64]]:
    """Distinct columns of a hit matrix and how many examples have each.

    Parameters
    ----------
    hits : (M, N) bool

    Returns
    -------
    patterns : (K, M) float64 of 0 and 1
    counts : (K,) int64, summing to N
    """
    packed = np.packbits(hits.T, axis=1)
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    return hits.T[first].astype(np.float64), counts


def intervals(
    hits: NDArray[np.bool_], statistics: Callable[[Array], Array], replicates: int, confidence: float, seed: int
) -> tuple[Array, Array]:
    """Bias-corrected and accelerated (BCa) bootstrap intervals of several statistics of the passes' accuracies.

    Parameters
    ----------
    hits : (M, N) bool
    statistics
        Maps accuracies (..., M) to figures (..., S).
    replicates
        Number of resamples; 0 gives ``nan`` for both ends.
    confidence
        Nominal coverage.
    seed
        The same seed and the same hits give the same intervals.

    Returns
    -------
    lower, upper : (S,)
    """
    patterns, counts = hit_patterns(hits)
    total = int(counts.sum())
    point = statistics(counts @ patterns / total)
    if replicates == 0:
        return np.full_like(point, np.nan), np.full_like(point, np.nan)
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK_CELLS // len(counts))
    drawn = [
        statistics(rng.multinomial(total, counts / total, size=min(rows, replicates - start)) @ patterns / total)
        for start in range(0, replicates, rows)
    ]
    return _bca(point, np.concatenate(drawn), _acceleration(patterns, counts, statistics), confidence)


def _bca(point: Array, drawn: Array, acceleration: Array, confidence: float) -> tuple[Array, Array]:
    # Ties count half: figures of few examples take few values, and all of them below would push the bias to infinity.
    below = ((drawn < point).mean(axis=0) + (drawn <= point).mean(axis=0)) / 2
    edge = 1 / (2 * len(drawn))
    bias = stats.norm.ppf(np.clip(below, edge, 1 - edge))
    ends = []
    for side in (-1, 1):
        z = bias + side * stats.norm.ppf(0.5 + confidence / 2)
        levels = stats.norm.cdf(bias + z / (1 - acceleration * z))
        ends.append(
            np.array(
                [
                    np.quantile(column, level, method="inverted_cdf")
                    for column, level in zip(drawn.T, levels, strict=True)
                ]
            )
        )
    # With few examples both ends can fall on one side of the estimate; an interval that leaves it out misleads.
    return np.minimum(ends[0], point), np.maximum(ends[1], point)


def _acceleration(patterns: Array, counts: NDArray[np.int64], statistics: Callable[[Array], Array]) -> Array:
    """Skewness of the jackknife; leaving out one example only depends on its pattern."""
    total = int(counts.sum())
    if total < 2:
        return np.zeros_like(statistics(counts @ patterns / total))
    left_out = statistics((counts @ patterns - patterns) / (total - 1))
    weights = counts[:, None] / total
    # A ratio can be infinite, and nothing can be said of the skewness then.
    left_out = np.where(np.isfinite(left_out).all(axis=0), left_out, 0.0)
    influence = (left_out * weights).sum(axis=0) - left_out
    cubes = (weights * influence**3).sum(axis=0) * total
    squares = (weights * influence**2).sum(axis=0) * total
    return np.asarray(np.divide(cubes, 6 * squares**1.5, out=np.zeros_like(cubes), where=squares > 1e-30))
