"""Made-up networks: hits with a known truth, for tests of the study's analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.study.measured import Hits, Measured, Recipe

SIZE = 32
TRANSFORMS = ("crop-0.80", "rescale-0.65-0.85", "rotate-15-25", "rotate-25-40", "translate-0.16")


def network(
    index: int,
    ability: float,
    moved: float,
    unseen: float,
    *,
    examples: int = 400,
    mutated: float = 0.3,
    grids: Sequence[int] = (2, 3, 4),
    operators: Sequence[str] = ("delete", "invert", "noise", "shuffle"),
    seeds: int = 1,
) -> Measured:
    """A network that answers by its ability, the difficulty of the example, and what the pass costs it.

    Parameters
    ----------
    index
        Of the network; decides its recipe and its luck.
    ability
        Larger is better; 0 is an accuracy of one half.
    moved, unseen, mutated
        What shifts, unseen transforms and mutants cost it.
    examples
    grids, operators
    seeds
        How many of ``noise`` and ``shuffle``.
    """
    rng = np.random.default_rng([7, index])
    difficulty = np.random.default_rng(1).normal(size=examples)

    def hits(passes: int, cost: float) -> Hits:
        costs = cost * np.linspace(0.5, 1.5, passes)[:, None]
        luck: NDArray[np.float64] = rng.normal(scale=0.6, size=(passes, examples))
        return np.asarray(ability - costs + difficulty + luck > 0)

    kinds = ("plain", "wide", "dense")
    recipe = Recipe("digits", kinds[index % 3], "none", index // 3, 0, 1000)
    mutants = {
        (n, operator, seed): hits(n * n, mutated)
        for n in grids
        for operator in operators
        for seed in range(seeds if operator in ("noise", "shuffle") else 1)
    }
    shifts = {(n, round(factor * round(SIZE / n))): hits(n * n, moved) for n in grids for factor in (0.5, 1.0, 1.5)}
    changed = {name: hits(1, unseen)[0] for name in TRANSFORMS}
    labels = np.arange(examples, dtype=np.int64) % 10
    return Measured(recipe, labels, 10, hits(1, 0.0)[0], mutants, shifts, changed, SIZE)


def told(number: int = 24, examples: int = 400, seed: int = 0) -> list[Measured]:
    """Networks of one ability; what the score's shifts cost, unseen transforms cost too."""
    costs = np.random.default_rng(seed).uniform(0.1, 2.0, size=number)
    return [network(i, 0.8, cost, cost, examples=examples) for i, cost in enumerate(costs)]


def unrelated(number: int = 24, examples: int = 400, seed: int = 0) -> list[Measured]:
    """Networks for which unseen transforms have nothing to do with anything the score sees."""
    draws = np.random.default_rng(seed).uniform(0.1, 2.0, size=(number, 4))
    return [network(i, a, b, c, mutated=d / 2, examples=examples) for i, (a, b, c, d) in enumerate(draws)]
