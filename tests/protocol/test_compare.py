"""The three protocols: agreement with loops written out here, and the paper's figures where the data is at hand."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol import KernelRidgeClassifier, KernelRidgePress, compare_protocols, nested_cv
from pytest_dscore.protocol.compare import median_selection, paired_bias
from pytest_dscore.protocol.experiment import Selection

from .raetsch import load

X, Y = make_classification(100, 6, n_informative=3, flip_y=0.3, random_state=1)
TREE = DecisionTreeClassifier(random_state=0)
GRID = {"max_depth": [1, 2, 3, 5], "criterion": ["gini", "entropy"]}


def test_equals_loops_written_out() -> None:
    outer, inner = StratifiedKFold(6, shuffle=True, random_state=0), StratifiedKFold(3, shuffle=True, random_state=0)
    found = compare_protocols(TREE, GRID, X, Y, outer=outer, inner=inner, median_folds=3)
    folds = list(outer.split(X, Y))
    chosen = [GridSearchCV(TREE, GRID, cv=inner).fit(X[train], Y[train]).best_params_ for train, _ in folds]
    everything = GridSearchCV(TREE, GRID, cv=inner).fit(X, Y).best_params_
    criteria = [c["criterion"] for c in chosen[:3]]
    middle = {
        "max_depth": int(np.median([c["max_depth"] for c in chosen[:3]])),
        "criterion": max(criteria, key=criteria.count),
    }
    expected = {"internal": chosen, "external": [everything] * 6, "median": [middle] * 6}
    for name, params in expected.items():
        errors = [
            1 - clone(TREE).set_params(**p).fit(X[a], Y[a]).score(X[b], Y[b])
            for p, (a, b) in zip(params, folds, strict=True)
        ]
        assert np.allclose(getattr(found, name).fold_errors, errors), name
        assert list(getattr(found, name).selected) == params
    assert "points" in str(found)
    assert np.array_equal(found.internal.fold_errors, nested_cv(TREE, GRID, X, Y, outer=outer, inner=inner).fold_errors)


def test_repeats_and_callables() -> None:
    def protocol(X, y, train, test, seed, depth=1):
        return DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[train], y[train]).predict(X[test])

    found = compare_protocols(protocol, {"depth": [1, 2, 3]}, X, Y, outer=3, inner=2, repeats=2)
    again = nested_cv(protocol, {"depth": [1, 2, 3]}, X, Y, outer=3, inner=2, repeats=2)
    assert np.array_equal(found.internal.fold_errors, again.fold_errors)
    searched = compare_protocols(GridSearchCV(TREE, GRID, cv=2), None, X, Y, outer=3)
    assert len(searched.external.fold_errors) == 3


def test_bias_in_points() -> None:
    internal, shortcut = np.array([0.2, 0.3, 0.25, 0.4]), np.array([0.1, 0.3, 0.20, 0.3])
    found = paired_bias(internal, shortcut)
    gaps = np.array([10.0, 0.0, 5.0, 10.0])
    assert found.mean == pytest.approx(6.25)
    assert found.se == pytest.approx(stats.sem(gaps))
    assert found.p_value == pytest.approx(stats.wilcoxon(gaps).pvalue)
    assert paired_bias(internal, internal).p_value == 1


def test_median_of_arrays_and_names() -> None:
    chosen = [
        Selection({"gamma": np.array([1.0, 9.0]), "k": k, "flag": k > 2, "name": "ab"[k > 2]}, None) for k in (1, 5, 3)
    ]
    chosen[1].params["gamma"] = np.array([3.0, 2.0])
    found = median_selection(chosen).params
    assert found["gamma"].tolist() == [1.0, 9.0]
    assert found["k"] == 3
    assert found["flag"] is True
    assert found["name"] == "b"


def test_nothing_selected_is_an_error() -> None:
    with pytest.raises(DScoreError, match="nothing is selected"):
        compare_protocols(KernelRidgeClassifier(), None, X, Y, outer=3)
    with pytest.raises(DScoreError, match="at least 2"):
        compare_protocols(TREE, GRID, X, Y, outer=[(np.arange(50), np.arange(50, 100))])


def test_paper_median_bias_on_heart() -> None:
    """Knowl 7, heart: internal 16.73 +- 0.36, median 15.72 +- 0.31, over 100 realisations; here over 12 random ones."""
    data = load("heart")
    t = np.where(data["t"] > 0, 1, -1)
    rng = np.random.default_rng(0)
    splits = [(order[:170], order[170:]) for order in (rng.permutation(270) for _ in range(12))]
    found = compare_protocols(KernelRidgePress(), None, data["x"], t, outer=splits)
    print(found)
    spread = found.internal.fold_errors.std(ddof=1) / 12**0.5
    assert abs(found.internal.error.value - 0.16730) < 3 * spread
    assert found.bias["median"].mean > -2 * found.bias["median"].se
