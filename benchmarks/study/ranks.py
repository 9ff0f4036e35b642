"""Rank correlations of many scores with a target, over many resamples of the networks at once.

A resample is a weight for each network: how often it was drawn, or 0 and 1 for a half. Ranks among weighted networks
are mid-ranks, so that weights of 1 give Spearman's coefficient with ties at their average, and a network drawn twice
counts as two that are tied.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def midranks(values: Array, weights: Array) -> Array:
    """Rank along the last axis, ties at their average, every network counted `weights` times.

    Parameters
    ----------
    values, weights : (..., m)
        They are broadcast against each other; infinite values may be ranked.

    Returns
    -------
    (..., m)
        Ranks from 1/2 (not 1, which changes no correlation).
    """
    shape = np.broadcast_shapes(values.shape, weights.shape)
    # Sorted before broadcasting: many weights usually share one order.
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    order = np.broadcast_to(order, shape)
    sorted_weights = np.take_along_axis(np.broadcast_to(weights, shape), order, axis=-1)
    upto = np.cumsum(sorted_weights, axis=-1)
    differs = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones_like(ordered[..., :1], dtype=bool)
    first, last = np.concatenate([edge, differs], axis=-1), np.concatenate([differs, edge], axis=-1)
    if not differs.all():
        start = np.maximum.accumulate(np.where(first, upto - sorted_weights, -np.inf), axis=-1)
        stop = np.minimum.accumulate(np.where(last, upto, np.inf)[..., ::-1], axis=-1)[..., ::-1]
        middle = (start + stop) / 2
    else:
        middle = upto - sorted_weights / 2
    ranks = np.empty(shape)
    np.put_along_axis(ranks, order, middle, axis=-1)
    return ranks


def correlation(x: Array, y: Array, weights: Array) -> Array:
    """Weighted Pearson correlation along the last axis; 0 where a side does not vary and so predicts nothing."""
    total = weights.sum(axis=-1, keepdims=True)
    x = x - (weights * x).sum(axis=-1, keepdims=True) / total
    y = y - (weights * y).sum(axis=-1, keepdims=True) / total
    scale = np.sqrt((weights * x * x).sum(axis=-1) * (weights * y * y).sum(axis=-1))
    # Mid-ranks are multiples of 1/4: a true scale of less than this is rounding.
    top = (weights * x * y).sum(axis=-1)
    return np.asarray(np.divide(top, scale, out=np.zeros_like(scale), where=scale > 1e-9))


def spearman(x: Array, y: Array, weights: Array | None = None) -> Array:
    """Spearman's rank correlation along the last axis, shape (...,)."""
    if weights is None:
        weights = np.ones(x.shape[-1])
    return correlation(midranks(x, weights), midranks(y, weights), weights)


def partial(xy: Array, xz: Array, yz: Array) -> Array:
    """Correlation of x and y that z does not explain, from the three pairwise ones; 0 where z explains one wholly."""
    left = np.clip(1 - np.square(xz), 0, None) * np.clip(1 - np.square(yz), 0, None)
    top = xy - xz * yz
    return np.asarray(np.divide(top, np.sqrt(left), out=np.zeros_like(top), where=left > 1e-9))


def draw(groups: Sequence[Hashable], draws: int, rng: np.random.Generator, among: NDArray[np.bool_]) -> Array:
    """Weights of a bootstrap over groups of networks.

    Networks that differ by nothing but their seed are more alike than two drawn from the population, so they are drawn
    together.

    Parameters
    ----------
    groups : sequence of m
        Equal for networks of one group.
    draws
        How many.
    rng
    among : (m,) bool
        Networks outside get the weight 0.

    Returns
    -------
    (draws, m)
    """
    names = {name: index for index, name in enumerate(dict.fromkeys(groups))}
    number = np.array([names[name] for name in groups])
    inside = np.unique(number[among])
    times = np.zeros((draws, len(names)))
    times[:, inside] = rng.multinomial(len(inside), np.full(len(inside), 1 / len(inside)), size=draws)
    return np.asarray(times[:, number] * among)


def halves(strata: Sequence[Hashable], groups: Sequence[Hashable], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Split networks at random into two halves, within strata, groups kept whole.

    Returns
    -------
    (m,) bool
        True in the first half. The halves differ by at most the largest group where groups are of one size.
    """
    members: dict[Hashable, list[int]] = {}
    for index, name in enumerate(groups):
        members.setdefault(name, []).append(index)
    first = np.zeros(len(groups), dtype=bool)
    sizes = [0, 0]
    for stratum in dict.fromkeys(strata):
        names = [name for name, indices in members.items() if strata[indices[0]] == stratum]
        rng.shuffle(names)
        # Pairs go apart, so that each stratum is cut in half; an odd one goes to the smaller side.
        for pair in range(0, len(names), 2):
            side = int(sizes[1] < sizes[0]) if sizes[0] != sizes[1] else int(rng.integers(2))
            for name in names[pair : pair + 2]:
                first[members[name]] = side == 0
                sizes[side] += len(members[name])
                side = 1 - side
    return first
