"""The arithmetic of the D-Score, as pure functions on accuracies.

Every function takes the n^2 regions as the last axis and broadcasts over the axes before it, so that the point estimate
and a thousand bootstrap replicates go through the same code.

Source: Zhang et al. 2023 (arXiv 2304.00697). The copy at hand has lost its display equations, so each docstring says
whether the prose gives the formula (*said*), leaves only one reading (*forced*), or the formula is this project's own
*reconstruction* and not to be compared with the paper's tables.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Form = Literal["mean", "bounded", "ratio"]


def feature_distribution(f: Array, accuracy: Array) -> Array:
    """Share of the features that lies in each region, from how much deleting the region hurts (*said*).

    Parameters
    ----------
    f : (..., n*n)
        Accuracy of each mutant, in [0, 1].
    accuracy : (...,)
        Accuracy of the unchanged model.

    Returns
    -------
    (..., n*n)
        ``max(0, accuracy - f_i)`` divided by its sum. Where no deletion hurts the share is undefined; it is then
        uniform (*reconstruction*).
    """
    return _shares(np.maximum(0.0, accuracy[..., None] - f))


def attention_distribution(a: Array) -> Array:
    """Share of the model's attention on each region, ``a_i / sum(a)``, shape (..., n*n) (*reconstruction*).

    Uniform where every a_i is 0; the third term of `v_robust` then carries the whole loss.
    """
    return _shares(a)


def v_robust(f_tilde: Array, a_tilde: Array, a: Array, accuracy: Array, *, relative: bool = False) -> Array:
    """Robustness index, shape (...,): 0 is best (third term *said*, first two *forced*).

    ``||f~ - 1/n^2|| + ||a~ - 1/n^2|| + ||a - accuracy||``, Euclidean norms over the regions.

    Parameters
    ----------
    relative
        Use ``||a / accuracy - 1||`` for the third term (*reconstruction*): the paper's term is an absolute drop, so of
        two models that keep the same share of their accuracy it calls the more accurate one less robust.
    """
    even = 1.0 / f_tilde.shape[-1]
    if relative:
        kept = np.divide(a, accuracy[..., None], out=np.ones_like(a), where=accuracy[..., None] > 0)
        drops = kept - 1.0
    else:
        drops = a - accuracy[..., None]
    norm = np.linalg.norm
    index = norm(f_tilde - even, axis=-1) + norm(a_tilde - even, axis=-1) + norm(drops, axis=-1)
    # n^2 equal shares differ from 1/n^2 by rounding; accuracies of fewer than 10^9 examples never do by so little.
    return np.where(index < 1e-12, 0.0, index)


def g(n: int, classes: int) -> float:
    """The paper's worst case of `v_robust`, ``2 sqrt(1 - 1/n^2) + n (1 - 1/c)`` (*forced*).

    It rests on the paper's premise that no accuracy falls below chance, 1/c. A model that does worse than chance on
    shifted images can exceed it by a little; `score` and the augmentation probability are clipped there.
    """
    return 2.0 * math.sqrt(1.0 - 1.0 / n**2) + n * (1.0 - 1.0 / classes)


def v_fitness(f_tilde: Array, a_tilde: Array, accuracy: Array) -> Array:
    """How well attention falls on the features, ``accuracy (1 - 1/2 sum (f~_i - a~_i)^2)``, in [0, accuracy].

    Larger is better; shape (...,). A *reconstruction*: bounded, and consistent with the one pair of values the paper's
    prose gives (accuracy 0.8122, fitness 0.7934).
    """
    return np.asarray(accuracy * (1.0 - 0.5 * np.square(f_tilde - a_tilde).sum(axis=-1)))


def mean_score(f: Array, a: Array) -> Array:
    """Mean accuracy over all mutants and all shifted images, in [0, 1], larger is better; shape (...,).

    This project's own, of the paper's two experiments: it leaves out how evenly features and attention are spread,
    which docs/study.md found to say little of how a model does on images that were moved otherwise.

    Parameters
    ----------
    f, a : (..., n*n)
        Accuracy of each mutant, and under each shift.
    """
    return np.asarray((f.mean(axis=-1) + a.mean(axis=-1)) / 2)


def score(fitness: Array, robustness: Array, bound: float, form: Literal["bounded", "ratio"] = "bounded") -> Array:
    """The D-Score in one of the paper's likely forms, larger is better.

    A *reconstruction*: the prose says only that it grows with fitness and falls with v_robust.

    Parameters
    ----------
    fitness, robustness : (...,)
        `v_fitness` and `v_robust`.
    bound
        `g(n, classes)`.
    form
        ``bounded``: ``fitness (1 - robustness / bound)``, in [0, 1]. ``ratio``: ``fitness / robustness``, in [0, inf].
    """
    if form == "bounded":
        return np.asarray(fitness * np.maximum(0.0, 1.0 - robustness / bound))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(fitness > 0, np.divide(fitness, robustness), 0.0))


def _shares(weights: Array) -> Array:
    total = weights.sum(axis=-1, keepdims=True)
    even = np.full_like(weights, 1.0 / weights.shape[-1])
    return np.asarray(np.divide(weights, total, out=even, where=total > 0))
