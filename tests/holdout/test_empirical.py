"""Bounds over outcome matrices: against exact enumeration, and against drawing new test sets from the matrix itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_dscore.holdout import analyse, pack, similarity_matrix
from pytest_dscore.holdout.choosing import NormalModels
from pytest_dscore.holdout.empirical import (
    SIDES,
    Estimate,
    Population,
    choose_structure,
    clopper_pearson,
    cover_bound,
    empirical_bound,
    spanning_tree_bound,
    union_bound,
)
from tests.holdout.truth import event_rate, matrices, pair_counts, simulate_a1


def population(matrix: NDArray[np.bool_], estimate: Estimate = "plug-in", spent: float = 0.01) -> Population:
    packed = pack(matrix)
    return Population(packed.errors(), packed.n, similarity_matrix(packed), estimate, spent)


def exact_pair(matrix: NDArray[np.bool_], i: int, j: int) -> dict[tuple[int, int], Fraction]:
    n = matrix.shape[1]
    first, second = (Fraction(int(matrix[m].sum()), n) for m in (i, j))
    return pair_counts(n, first, second, Fraction(int((matrix[i] == matrix[j]).sum()), n))


def small() -> NDArray[np.bool_]:
    rng = np.random.default_rng(11)
    base = rng.random(14) < 0.4
    return np.asarray(base ^ (rng.random((4, 14)) < [[0.0], [0.1], [0.15], [0.2]]))


def deviates(count: int, wrong: int, m: int, sign: int) -> bool:
    return sign * (count - wrong) >= m


@pytest.mark.parametrize("m", [1, 3, 5])
def test_spanning_tree_is_hunter_s_inequality(m: int) -> None:
    matrix = small()
    models = population(matrix)
    parent = choose_structure(models, m).parent
    wrong = matrix.sum(axis=1)
    total = Fraction(0)
    for sign in (1, -1):
        for i in range(4):
            other = int(parent[i])
            law = exact_pair(matrix, i, other if other != i else (i + 1) % 4)
            total += sum(w for (x, _), w in law.items() if deviates(x, wrong[i], m, sign))
            if other != i:
                total -= sum(
                    w
                    for (x, y), w in law.items()
                    if deviates(x, wrong[i], m, sign) and deviates(y, wrong[other], m, sign)
                )
    assert math.exp(spanning_tree_bound(models, parent, m)) == pytest.approx(min(1.0, float(total)), rel=1e-9)


@pytest.mark.parametrize("m", [3, 5, 6])
def test_an_anchor_s_bound_is_equation_3(m: int) -> None:
    matrix = small()
    models = population(matrix)
    cover = choose_structure(models, m).covers[0]
    anchor, offset = int(cover.anchors[0]), int(cover.offsets[0])
    wrong = matrix.sum(axis=1)
    total = 0.0
    for sign in (1, -1):
        terms, tails = [], []
        for i in range(4):
            law = exact_pair(matrix, i, anchor if i != anchor else (anchor + 1) % 4)
            tails.append(sum(w for (x, _), w in law.items() if deviates(x, wrong[i], m, sign)))
            if i == anchor:
                terms.append(sum(w for (x, _), w in law.items() if deviates(x, wrong[i], offset, sign)))
            else:
                terms.append(
                    sum(
                        w
                        for (x, y), w in law.items()
                        if deviates(x, wrong[i], m, sign) and not deviates(y, wrong[anchor], offset, sign)
                    )
                )
        total += float(min(sum(terms), sum(tails)))
    assert math.exp(cover_bound(models, cover, m)) == pytest.approx(min(1.0, total), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_method_is_below_the_truth_of_test_sets_drawn_from_the_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for matrix in matrices(rng):
        k, n = matrix.shape
        draws = rng.multinomial(n, np.full(n, 1 / n), size=3_000) @ matrix.T.astype(np.int64)
        models = population(matrix)
        for m in range(1, n // 2 + 1, max(1, n // 12)):
            structure = choose_structure(models, m)
            found = empirical_bound(models, structure, m)
            truth, error = event_rate(draws, n, matrix.mean(axis=1), m / n)
            for method, log in found.log_probabilities.items():
                assert math.exp(log) >= truth - error, (k, n, m, method)
            assert found.log_probability <= union_bound(models, m)


def test_trees_span() -> None:
    for matrix in matrices(np.random.default_rng(7)):
        models = population(matrix)
        parent = choose_structure(models, 3).parent
        for start in range(models.k):
            at, steps = start, 0
            while parent[at] != at:
                at, steps = int(parent[at]), steps + 1
                assert steps < models.k
        assert (parent == np.arange(models.k)).sum() == 1


def test_the_tree_is_near_the_best_there_is() -> None:
    # all 3^... rooted choices of small matrices are too many to list; Kruskal on exact joint probabilities is not
    rng = np.random.default_rng(2)
    base = rng.random(60) < 0.3
    matrix = base ^ (rng.random((6, 60)) < 0.12)
    models, m = population(matrix), 7
    chosen = spanning_tree_bound(models, choose_structure(models, m).parent, m)
    gains = sorted(
        (
            (sum(math.exp(models.tail(i, s, m)) - math.exp(models.exclusive(i, j, s, m, m)) for s in SIDES), i, j)
            for i in range(6)
            for j in range(i)
        ),
        reverse=True,
    )
    group, best = list(range(6)), 0.0
    for gain, i, j in gains:
        if group[i] != group[j]:
            best += gain
            group = [group[i] if g == group[j] else g for g in group]
    everything = sum(math.exp(models.tail(i, s, m)) for s in SIDES for i in range(6))
    assert everything - best <= math.exp(chosen) * (1 + 1e-9)
    assert math.exp(chosen) <= (everything - best) * 1.05


def test_covers_of_several_anchors_help_where_models_come_in_families() -> None:
    rng = np.random.default_rng(0)
    bases = rng.random((3, 400)) < 0.3
    matrix = np.concatenate([base ^ (rng.random((15, 400)) < 0.02) for base in bases])
    models = population(matrix)
    found = empirical_bound(models, choose_structure(models, 30), 30)
    values = found.log_probabilities
    assert values["cover"] < values["anchor"] < values["union"]
    assert found.method in ("cover", "spanning-tree")


def test_clopper_pearson_by_its_definition() -> None:
    n, level = 12, 0.03
    low, high = clopper_pearson(np.arange(n + 1), n, level)
    for x in range(n + 1):
        upper_tail = sum(math.comb(n, i) * low[x] ** i * (1 - low[x]) ** (n - i) for i in range(x, n + 1))
        lower_tail = sum(math.comb(n, i) * high[x] ** i * (1 - high[x]) ** (n - i) for i in range(x + 1))
        assert upper_tail == pytest.approx(level if x else 1.0)
        assert lower_tail == pytest.approx(level if x < n else 1.0)


def test_limits_are_looser_than_plugging_in() -> None:
    for matrix in matrices(np.random.default_rng(5)):
        plugged = analyse(matrix, epsilon=0.2, delta=0.1)
        limited = analyse(matrix, epsilon=0.2, delta=0.1, similarity_estimate="lower-confidence")
        assert limited.failure_probability >= plugged.failure_probability
        assert limited.tolerance >= plugged.tolerance
        assert limited.spent == pytest.approx(0.01)


def test_limits_bound_pairs_at_every_rate_and_similarity_within_them() -> None:
    rng = np.random.default_rng(9)
    matrix = rng.random(60) < 0.35
    matrix = matrix ^ (rng.random((2, 60)) < 0.08)
    models = population(matrix, "lower-confidence", 0.3)
    n, m, offset, least = 60, 7, 4, models.least_similarity(0, 1)
    for _ in range(120):
        p = [rng.uniform(models.low[i] / n, models.high[i] / n) for i in range(2)]
        if float(least) > 1 - abs(p[0] - p[1]):
            continue  # no two models of these rates are that alike
        s = rng.uniform(float(least), 1 - abs(p[0] - p[1]))
        p11 = (sum(p) - 1 + s) / 2
        if not max(0.0, sum(p) - 1) <= p11 <= min(p):
            continue
        table = np.array([[1 - sum(p) + p11, p[1] - p11], [p[0] - p11, p11]])
        counts = rng.multinomial(n, table.ravel(), size=20_000)
        first, second = counts[:, 2] + counts[:, 3], counts[:, 1] + counts[:, 3]
        for side, sign in (("upper", 1), ("lower", -1)):
            hit = (sign * (first - n * p[0]) >= m) & (sign * (second - n * p[1]) < offset)
            error = 3 * math.sqrt(max(hit.mean(), 1e-4) / hit.size)
            assert math.exp(models.exclusive(0, 1, side, m, offset)) >= hit.mean() - error  # type: ignore[arg-type]
            alone = (sign * (first - n * p[0]) >= m).mean()
            assert math.exp(models.tail(0, side, m)) >= alone - 3 * math.sqrt(alone / hit.size)  # type: ignore[arg-type]


@pytest.mark.parametrize("nudge", ["0", "1/1000", "1/30", "83/1000"])
@pytest.mark.parametrize(("m", "offset"), [(3, 1), (3, 2), (3, 3), (5, 3)])
def test_limits_allow_for_rates_between_whole_counts(
    nudge: str, m: int, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, alike = 12, Fraction(9, 10)
    rates = Fraction(4, n), Fraction(4, n) + Fraction(nudge)
    models = population(np.tile(np.arange(n) < 4, (2, 1)), "lower-confidence")
    models.low, models.high = np.array([4, 4]), np.array([5, 5])
    monkeypatch.setattr(models, "least_similarity", lambda first, second: alike)
    law = pair_counts(n, *rates, min(alike, 1 - abs(rates[0] - rates[1])))
    for side, sign in zip(SIDES, (1, -1), strict=True):
        truth = sum(
            w for (x, y), w in law.items() if sign * (x - n * rates[0]) >= m and not sign * (y - n * rates[1]) >= offset
        )
        assert math.exp(models.exclusive(0, 1, side, m, offset)) >= float(truth) * (1 - 1e-9)


def test_limits_cover_the_true_event_on_nearly_every_test_set() -> None:
    rng = np.random.default_rng(21)
    n, p, s, k, eps = 120, 0.3, 0.85, 4, 0.12
    truth, error = event_rate(simulate_a1(rng, n, p, s, k, 40_000), n, np.full(k, p), eps)
    p11 = p - (1 - s) / 2
    below = 0
    for _ in range(30):
        hard = rng.random(n) < p * p / p11
        matrix = hard & (rng.random((k, n)) < p11 / p)
        result = analyse(matrix, epsilon=eps, delta=0.2, similarity_estimate="lower-confidence")
        below += result.failure_probability < truth - error
    assert below == 0


def test_normal_models_are_about_right() -> None:
    rng = np.random.default_rng(1)
    base = rng.random(2_000) < 0.3
    matrix = base ^ (rng.random((2, 2_000)) < 0.1)
    models = population(matrix)
    normal = NormalModels(models.wrong, models.n, models.similarity, 50)
    exact = math.exp(models.tail(0, "upper", 50)) - math.exp(models.exclusive(0, 1, "upper", 50, 50))
    assert math.exp(normal.log_joint(1)[0]) == pytest.approx(exact, rel=0.2)
