"""The tree that grows model by model, against the bound over all models at once and against new test sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout import GrowingTree, analyse, pack, similarity_row
from pytest_dscore.holdout.empirical import Population, spanning_tree_bound
from tests.holdout.truth import event_rate, imagenet, matrices


def grown(matrix: np.ndarray[Any, np.dtype[np.bool_]], epsilon: float) -> GrowingTree:
    tree = GrowingTree(matrix.shape[1], epsilon)
    for i, row in enumerate(matrix):
        tree.add(int(row.sum()), (matrix[:i] == row).mean(axis=1))
    return tree


def test_it_is_the_bound_of_its_tree() -> None:
    for matrix in matrices(np.random.default_rng(0)):
        tree = grown(matrix, 0.1)
        packed = pack(matrix)
        alike = np.array([[np.mean(a == b) for b in matrix] for a in matrix])
        models = Population(packed.errors(), packed.n, alike, "plug-in", 0.1)
        parents = np.array(tree.parents)
        want = math.exp(spanning_tree_bound(models, parents, models.deviation(0.1)))
        assert tree.failure_probability == pytest.approx(want, rel=1e-9)
        union = analyse(matrix, epsilon=0.1, delta=0.5, bound="union").failure_probability
        assert tree.union_probability == pytest.approx(union, rel=1e-9)
        assert tree.failure_probability <= tree.union_probability
        assert tree.k == len(matrix)


def test_it_is_not_below_the_truth_of_test_sets_drawn_from_the_matrix() -> None:
    rng = np.random.default_rng(1)
    for matrix in matrices(rng):
        n = matrix.shape[1]
        draws = rng.multinomial(n, np.full(n, 1 / n), size=4_000) @ matrix.T.astype(np.int64)
        truth, error = event_rate(draws, n, matrix.mean(axis=1), 0.1)
        assert grown(matrix, 0.1).failure_probability >= truth - error


def test_a_copy_costs_nothing() -> None:
    row = np.arange(50) < 20
    tree = GrowingTree(50, 0.15)
    first = tree.add(20, [])
    assert tree.add(20, [1.0]) == pytest.approx(first, rel=1e-12)
    assert tree.union_probability == pytest.approx(min(1.0, 2 * first), rel=1e-9)
    assert similarity_row(pack(row[None]), row).tolist() == [1.0]


def test_on_real_models_it_is_nearly_as_good_as_choosing_the_tree_at_the_end() -> None:
    matrix = imagenet()
    tree, whole = grown(matrix, 0.007), analyse(matrix, epsilon=0.007, delta=0.05)
    assert whole.failure_probability <= tree.failure_probability * (1 + 1e-9) < tree.union_probability
    assert tree.failure_probability <= whole.failure_probability * 1.05


@pytest.mark.parametrize(
    ("wrong", "similarity", "words"),
    [
        (51, [0.5], "wrong must be a whole number between 0 and 50"),
        (-1, [0.5], "wrong must be a whole number between 0 and 50"),
        (2.5, [0.5], "wrong must be a whole number between 0 and 50"),
        (3, [], r"one value for each of the 1 models, not shape \(0,\)"),
        (3, [1.5], "values between 0 and 1 only"),
        (3, [float("nan")], "values between 0 and 1 only"),
    ],
)
def test_bad_input(wrong: Any, similarity: Any, words: str) -> None:
    tree = GrowingTree(50, 0.15)
    tree.add(20, [])
    with pytest.raises(DScoreError, match=words):
        tree.add(wrong, similarity)
    assert tree.k == 1
