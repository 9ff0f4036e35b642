"""What changed between two models that were scored on the same examples, judged example by example."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.score import bootstrap as resampling
from pytest_dscore.score import formulas
from pytest_dscore.score.result import Array, Recipe, statistics

#: The figures whose change is judged, and whether larger is better.
CHANGES = {"score": True, "v_fitness": True, "accuracy": True, "worst_region": True, "v_robust": False}


def changes(
    now: NDArray[np.bool_], before: NDArray[np.bool_], recipe: Recipe, classes: int, classes_before: int
) -> dict[str, Figure]:
    """Change of every figure, now minus before, with paired intervals.

    Examples are drawn with replacement, each with its hits under both models; what both models find hard cancels out,
    so the interval of the change is far narrower than those of the two scores.

    Parameters
    ----------
    now, before : (2 n^2 + 1, N) bool
        Hits of the two models on the same examples in the same order.
    recipe
        Settings, the same for both.
    classes, classes_before
        Number of classes that each model tells apart.

    Returns
    -------
    dict
        By the names of `CHANGES`; ``worst_region`` is the least accuracy over all shifts.

    Raises
    ------
    DScoreError
        The hits differ in shape.

    Notes
    -----
    BCa bootstrap of the paired difference, a *reconstruction* as all intervals here. The minimum over regions is not
    smooth where two regions are about equally bad, and its interval is the least exact of them.
    """
    if now.shape != before.shape:
        raise DScoreError(f"hits of shape {now.shape} cannot be compared with hits of shape {before.shape}")
    passes = len(now)
    bounds = formulas.g(recipe.n, classes), formulas.g(recipe.n, classes_before)

    def differences(accuracies: Array) -> Array:
        one = _figures(accuracies[..., :passes], bounds[0], recipe.form)
        other = _figures(accuracies[..., passes:], bounds[1], recipe.form)
        with np.errstate(invalid="ignore"):
            return one - other

    both = np.concatenate([now, before])
    point = differences(both.sum(axis=1) / both.shape[1])
    lower, upper = resampling.intervals(both, differences, recipe.replicates, recipe.confidence, recipe.seed)
    return {
        name: Figure(float(point[i]), float(lower[i]), float(upper[i]), better, recipe.confidence)
        for i, (name, better) in enumerate(CHANGES.items())
    }


def _figures(accuracies: Array, bound: float, form: formulas.Form) -> Array:
    figures = statistics(accuracies, bound, form)
    count = (accuracies.shape[-1] - 1) // 2
    worst = accuracies[..., count + 1 :].min(axis=-1)
    return np.stack([figures.score, figures.v_fitness, figures.accuracy, worst, figures.v_robust], axis=-1)


def examples_to_settle(figure: Figure, limit: float, examples: int) -> int | None:
    """How many more examples would settle on which side of a limit a figure lies, if its value stayed as it is.

    The width of an interval falls with the square root of the number of examples.

    Parameters
    ----------
    figure
        Its interval contains `limit`.
    limit
        The threshold.
    examples
        How many there are.

    Returns
    -------
    int or None
        None where the value is the limit itself, and no number would do.
    """
    gap = abs(figure.value - limit)
    reach = figure.value - figure.lower if figure.value > limit else figure.upper - figure.value
    if gap == 0 or not math.isfinite(gap) or not math.isfinite(reach):
        return None
    needed = examples * (reach / gap) ** 2
    return max(1, math.ceil(needed - examples)) if needed < 1e15 else None
