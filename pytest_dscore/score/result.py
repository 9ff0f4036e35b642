"""The result of a score: figures with intervals, computed from hits alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.figure import Figure
from pytest_dscore.score import bootstrap as resampling
from pytest_dscore.score import formulas
from pytest_dscore.score.engine import Hits

Array = NDArray[np.float64]

_SCALARS = 5


class Scalars(NamedTuple):
    """The five figures of a score, each of shape (...,)."""

    accuracy: Array
    v_robust: Array
    v_fitness: Array
    score: Array
    v_robust_relative: Array


@dataclass(frozen=True)
class Recipe:
    """How figures are made from hits, and what is reported beside them.

    Parameters
    ----------
    n
        The grid.
    operator, form, padding, fill, bf16
        What was computed, resolved against the data: pixels padded in all (vertical, horizontal), black of every
        channel.
    replicates, confidence, seed
        Of the bootstrap.
    remarks
        Sentences on what looks wrong in the input though it could be scored.
    """

    n: int
    operator: str
    form: formulas.Form
    padding: tuple[int, int]
    fill: tuple[float, ...]
    bf16: bool
    replicates: int
    confidence: float
    seed: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class DScore(Recipe):
    """A D-Score with everything it was made from.

    Grids are (n, n) float64; row 0 is the top, column 0 the left.

    Parameters
    ----------
    accuracy, v_robust, v_fitness, score : Figure
        Clean accuracy, robustness index (smaller is better), fitness and the D-Score, each with its interval.
    v_robust_relative : Figure
        `v_robust` with the share of accuracy kept, a / accuracy, in its third term (*reconstruction*).
    f, a
        Accuracy of each mutant, and with the object moved toward each region; `f_lower`, `f_upper`, `a_lower`,
        `a_upper` are the ends of their intervals.
    f_tilde, a_tilde
        Shares of the features and of the attention, each summing to 1.
    no_deletion_hurts
        True where no mutant lost accuracy, so that `f_tilde` is uniform by definition.
    g
        Worst case of `v_robust`.
    helpful_regions
        Regions (row, column) whose mutation *raised* the accuracy.
    skipped_layers
        Convolutional layers whose map is smaller than n x n and was left alone.
    maps
        Output map (height, width) of every convolutional layer that ran.
    hits : (2 n^2 + 1, N) bool
        Right or wrong: the unchanged model, n^2 mutants, n^2 shifts.
    classes
        Number of classes the model tells apart.
    device
        Where the passes ran.
    unused_layers
        Convolutional layers that never ran as modules, and so were never mutated.
    predicted_classes
        How many different classes the unchanged model predicts; 0 where it was not counted.
    n, operator, form, padding, fill, bf16, replicates, confidence, seed, remarks
        See `Recipe`.
    """

    accuracy: Figure
    v_robust: Figure
    v_fitness: Figure
    score: Figure
    v_robust_relative: Figure
    f: Array
    f_lower: Array
    f_upper: Array
    f_tilde: Array
    a: Array
    a_lower: Array
    a_upper: Array
    a_tilde: Array
    no_deletion_hurts: bool
    g: float
    helpful_regions: tuple[tuple[int, int], ...]
    skipped_layers: tuple[str, ...]
    maps: dict[str, tuple[int, int]]
    hits: NDArray[np.bool_]
    classes: int
    device: str
    unused_layers: tuple[str, ...]
    predicted_classes: int

    def __repr__(self) -> str:
        return (
            f"DScore(score={self.score}, v_robust={self.v_robust}, v_fitness={self.v_fitness}, "
            f"accuracy={self.accuracy}, n={self.n}, operator={self.operator!r}, form={self.form!r}, "
            f"examples={self.examples})"
        )

    @property
    def augmentation_probability(self) -> float:
        """``v_robust / g``, clipped to 1: how often score-guided augmentation should pad an image (spec, item 7)."""
        return min(1.0, self.v_robust.value / self.g)

    @property
    def examples(self) -> int:
        """Number of test examples."""
        return int(self.hits.shape[1])

    @property
    def worst_region(self) -> tuple[int, int]:
        """The (row, column) toward which moving the object costs most accuracy; the first of several."""
        row, col = np.unravel_index(int(self.a.argmin()), self.a.shape)
        return int(row), int(col)


def statistics(accuracies: Array, bound: float, form: formulas.Form) -> Scalars:
    """All figures from the accuracies of the 2 n^2 + 1 passes, shape (..., 2 n^2 + 1), in the order of the hits."""
    count = (accuracies.shape[-1] - 1) // 2
    clean, f, a = accuracies[..., 0], accuracies[..., 1 : count + 1], accuracies[..., count + 1 :]
    f_tilde, a_tilde = formulas.feature_distribution(f, clean), formulas.attention_distribution(a)
    robust = formulas.v_robust(f_tilde, a_tilde, a, clean)
    fitness = formulas.v_fitness(f_tilde, a_tilde, clean)
    relative = formulas.v_robust(f_tilde, a_tilde, a, clean, relative=True)
    score = formulas.mean_score(f, a) if form == "mean" else formulas.score(fitness, robust, bound, form)
    return Scalars(clean, robust, fitness, score, relative)


def summarise(measured: Hits, recipe: Recipe) -> DScore:
    """Make the result from hits; no forward pass.

    Parameters
    ----------
    measured
        Hits (2 n^2 + 1, N) with what the engine saw.
    recipe
        Settings; `recipe.n` must be the grid that was measured.
    """
    n, count = recipe.n, recipe.n**2
    bound = formulas.g(n, measured.classes)

    def everything(accuracies: Array) -> Array:
        figures = np.stack(statistics(accuracies, bound, recipe.form), axis=-1)
        return np.concatenate([figures, accuracies[..., 1:]], axis=-1)

    # Counted in whole numbers first: a mean of booleans can differ from its bootstrap twin in the last bit.
    accuracies = measured.hits.sum(axis=1) / measured.hits.shape[1]
    point = everything(accuracies)
    lower, upper = resampling.intervals(measured.hits, everything, recipe.replicates, recipe.confidence, recipe.seed)
    lower, upper = _opened(point, lower, upper, measured.hits.shape[1], recipe.confidence)

    def figure(index: int) -> Figure:
        name = Scalars._fields[index]
        better = not name.startswith("v_robust")
        return Figure(float(point[index]), float(lower[index]), float(upper[index]), better, recipe.confidence)

    def grid(values: Array, start: int) -> Array:
        return values[_SCALARS + start : _SCALARS + start + count].reshape(n, n)

    clean, f, a = accuracies[0], grid(point, 0), grid(point, count)
    shared: dict[str, Any] = {name: figure(index) for index, name in enumerate(Scalars._fields)} | vars(recipe)
    return DScore(
        f=f,
        f_lower=grid(lower, 0),
        f_upper=grid(upper, 0),
        f_tilde=formulas.feature_distribution(f.ravel(), clean).reshape(n, n),
        a=a,
        a_lower=grid(lower, count),
        a_upper=grid(upper, count),
        a_tilde=formulas.attention_distribution(a.ravel()).reshape(n, n),
        no_deletion_hurts=bool((f >= clean).all()),
        g=bound,
        helpful_regions=tuple((int(row), int(col)) for row, col in np.argwhere(f > clean)),
        skipped_layers=measured.skipped,
        maps=measured.maps,
        hits=measured.hits,
        classes=measured.classes,
        device=measured.device,
        unused_layers=measured.unused,
        predicted_classes=measured.predicted_classes,
        **shared,
    )


def _opened(point: Array, lower: Array, upper: Array, examples: int, confidence: float) -> tuple[Array, Array]:
    """Give accuracies of exactly 0 and 1 the open end of an exact binomial interval (Clopper and Pearson 1934).

    Resampling cannot invent an error that never occurred, so the bootstrap's interval has no width there.
    """
    reach = 1.0 - ((1.0 - confidence) / 2) ** (1.0 / examples)
    of_accuracies = np.ones(len(point), dtype=bool)
    of_accuracies[1:_SCALARS] = False
    known = of_accuracies & ~np.isnan(lower)
    return (
        np.where(known & (point == 1.0), np.minimum(lower, 1.0 - reach), lower),
        np.where(known & (point == 0.0), np.maximum(upper, reach), upper),
    )
