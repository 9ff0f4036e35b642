"""nested_cv against scikit-learn's own nesting, on every kind of input, and with every kind of bad input."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol import KernelRidgePress, nested_cv

X, Y = make_classification(90, 5, n_informative=3, flip_y=0.2, random_state=0)
GRID = {"max_depth": [1, 2, 4]}
TREE = DecisionTreeClassifier(random_state=0)


def knn_protocol(X: Any, y: Any, train: Any, test: Any, seed: int, k: int = 3) -> Any:
    return KNeighborsClassifier(k).fit(X[train], y[train]).predict(X[test])


def test_equals_scikit_learns_nesting() -> None:
    inner, outer = StratifiedKFold(3, shuffle=True, random_state=1), StratifiedKFold(6, shuffle=True, random_state=2)
    result = nested_cv(TREE, GRID, X, Y, outer=outer, inner=inner)
    expected = 1 - cross_val_score(GridSearchCV(TREE, GRID, cv=inner), X, Y, cv=outer)
    assert np.allclose(result.fold_errors, expected, rtol=0, atol=1e-15)
    assert result.error.value == pytest.approx(expected.mean())
    search = nested_cv(GridSearchCV(TREE, GRID, cv=inner), None, X, Y, outer=outer)
    assert np.array_equal(search.fold_errors, result.fold_errors)
    assert search.selected == result.selected


def test_same_call_same_number_and_parallel_too() -> None:
    forest = RandomForestClassifier(5)
    first = nested_cv(forest, GRID, X, Y, outer=3, inner=2, repeats=2)
    again = nested_cv(forest, GRID, X, Y, outer=3, inner=2, repeats=2, n_jobs=2)
    other = nested_cv(forest, GRID, X, Y, outer=3, inner=2, repeats=2, seed=1)
    assert np.array_equal(first.fold_errors, again.fold_errors)
    assert first.selected == again.selected
    assert not np.array_equal(first.fold_errors, other.fold_errors)
    assert len(first.fold_errors) == 6
    assert not np.array_equal(first.fold_errors[:3], first.fold_errors[3:])
    assert first.seed == 0


def test_a_callable_equals_the_estimator_that_it_wraps() -> None:
    outer, inner = KFold(5, shuffle=True, random_state=0), KFold(3, shuffle=True, random_state=0)
    by_call = nested_cv(knn_protocol, {"k": [1, 5, 15]}, X, Y, outer=outer, inner=inner)
    by_class = nested_cv(KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]}, X, Y, outer=outer, inner=inner)
    assert np.array_equal(by_call.fold_errors, by_class.fold_errors)
    assert [s["k"] for s in by_call.selected] == [s["n_neighbors"] for s in by_class.selected]
    plain = nested_cv(knn_protocol, None, X, Y, outer=outer, scoring="balanced_accuracy")
    assert plain.selected == ({},) * 5
    assert plain.stability == ()


def test_stability_counts_what_won() -> None:
    result = nested_cv(TREE, GRID, X, Y, outer=6, inner=3)
    (depth,) = result.stability
    assert sum(count for _, count in depth.counts) == 6
    won = [s["max_depth"] for s in result.selected]
    assert depth.agreement == max(won.count(v) for v in won) / 6
    assert depth.log2_range == pytest.approx(np.log2(max(won) / min(won)))
    assert "disagree" in str(result)
    agreed = nested_cv(TREE, {"max_depth": [2]}, X, Y, outer=3, inner=2)
    assert agreed.stability[0].agreement == 1
    assert "all folds agree" in str(agreed)


def test_intervals_and_the_one_the_error_carries() -> None:
    result = nested_cv(TREE, None, X, Y, outer=5, confidence=0.9, nested_repeats=2)
    assert result.error == result.intervals["corrected"]
    assert result.intervals["naive"].lower > result.intervals["corrected"].lower
    again = pickle.loads(pickle.dumps(result))  # noqa: S301
    assert again.intervals["nested"] == result.intervals["nested"]
    direct = nested_cv(TREE, None, X, Y, outer=5, confidence=0.9, nested_repeats=2, interval="nested")
    assert direct.error == result.intervals["nested"]
    assert direct.error.lower < direct.error.value < direct.error.upper
    assert direct.error.confidence == 0.9
    assert set(result.intervals) == {"naive", "corrected", "nested"}


def test_searching_noise_internal_covers_one_half_and_external_does_not() -> None:
    """2,000 random columns, the "hyper-parameter" is which one to use; the true error of any choice is 50 %."""
    from pytest_dscore.protocol import compare_protocols

    from .one_column import OneColumn

    rng = np.random.default_rng(3)
    noise, labels = rng.normal(size=(60, 2000)), rng.permutation(np.repeat([0, 1], 30))
    search = OneColumn()
    result = nested_cv(search, None, noise, labels, confidence=0.95)
    compared = compare_protocols(search, None, noise, labels)
    assert np.array_equal(compared.internal.fold_errors, result.fold_errors)
    assert compared.external.error.value < 0.3
    assert compared.external.error.upper < 0.5
    assert result.error.lower <= 0.5 <= result.error.upper
    assert compared.bias["external"].mean > 10
    assert compared.bias["external"].p_value < 0.1
    print(f"noise: internal {result.error}, external {compared.external.error}")


@pytest.mark.parametrize("kind", ["strings", "bools", "list", "sparse", "pandas", "polars"])
def test_containers(kind: str) -> None:
    data: Any = X
    labels: Any = Y
    if kind == "strings":
        labels = np.array(["no", "yes"])[Y]
    elif kind == "bools":
        labels = Y.astype(bool)
    elif kind == "list":
        data, labels = X.tolist(), Y.tolist()
    elif kind == "sparse":
        data = sparse.csc_matrix(X)
    else:
        frames = pytest.importorskip(kind, reason=f"{kind} is not installed: its frames were not tested")
        data = frames.DataFrame({f"c{i}": X[:, i] for i in range(5)})
        labels = frames.Series(Y)
    result = nested_cv(TREE, GRID, data, labels, outer=3, inner=2)
    assert np.array_equal(result.fold_errors, nested_cv(TREE, GRID, X, Y, outer=3, inner=2).fold_errors)


def test_splitters_groups_regression_and_losses() -> None:
    groups = np.repeat(np.arange(18), 5)
    by_number = nested_cv(TREE, GRID, X, Y, outer=3, inner=2, groups=groups)
    by_splitter = nested_cv(TREE, GRID, X, Y, outer=GroupKFold(3), inner=GroupKFold(2), groups=groups)
    assert len(by_number.fold_errors) == len(by_splitter.fold_errors) == 3
    assert by_number.intervals["nested"].upper > by_number.intervals["nested"].lower
    search = GridSearchCV(TREE, GRID, cv=GroupKFold(2))
    searched = nested_cv(search, None, X, Y, outer=GroupKFold(3), groups=groups)
    assert np.array_equal(searched.fold_errors, by_splitter.fold_errors)
    assert len(nested_cv(TREE, GRID, X, Y, outer=TimeSeriesSplit(4), inner=TimeSeriesSplit(2)).fold_errors) == 4
    assert len(nested_cv(TREE, None, X, Y, outer=RepeatedStratifiedKFold(n_splits=3, n_repeats=2)).fold_errors) == 6
    target = X @ np.arange(5.0)
    ridge = nested_cv(Ridge(), {"alpha": [0.1, 1.0]}, X, target, scoring="neg_mean_squared_error", outer=4, inner=3)
    assert ridge.error.value > 0
    r2 = nested_cv(Ridge(), None, X, target, scoring="r2", outer=4)
    assert r2.error.value == pytest.approx(
        1 - cross_val_score(Ridge(), X, target, cv=KFold(4), scoring="r2").mean(), abs=0.05
    )
    auc = nested_cv(SVC(), None, X, Y, scoring="roc_auc", outer=4)
    assert 0 < auc.error.value < 0.5
    own = nested_cv(TREE, None, X, Y, scoring=lambda model, a, b: float(np.mean(model.predict(a) == b)), outer=4)
    assert own.error.value == pytest.approx(nested_cv(TREE, None, X, Y, outer=4).error.value)


def test_imputer_makes_missing_values_fine() -> None:
    holes = X.copy()
    holes[::7, 2] = np.nan
    assert nested_cv(make_pipeline(SimpleImputer(), SVC()), {"svc__C": [1.0]}, holes, Y, outer=3, inner=2)


def with_hole() -> Any:
    holes = X.copy()
    holes[3, 2] = np.nan
    return holes


RARE = np.r_[np.zeros(86, int), np.ones(4, int)]
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "rows": ({"X": X[:6], "y": Y[:6]}, "outer=10 folds but the data has 6 rows"),
    "class": ({"y": RARE}, r"outer=10 folds but class .*1.* has 4 row\(s\)"),
    "inner class": (
        {"y": RARE, "outer": 4},
        r"inner=5 folds but class .*1.* has 3 row\(s\) in the training part of outer",
    ),
    "one class": ({"y": np.zeros(90, int)}, "one class only"),
    "one class in fold": ({"y": np.sort(Y), "outer": KFold(2)}, "KFold fold 0: the training part holds one class only"),
    "groups length": ({"groups": [1, 2]}, r"groups has shape \(2,\) but X has 90 rows"),
    "few groups": ({"groups": np.repeat([0, 1], 45)}, "2 groups only"),
    "groups straddle": ({"groups": np.arange(90) // 2, "outer": KFold(3, shuffle=True)}, "KFold fold 0: group"),
    "y length": ({"y": Y[:9]}, "y has 9 labels but X has 90 rows"),
    "y missing": ({"y": np.where(Y == 1, 1.0, np.nan)}, "missing label"),
    "y shape": ({"y": np.c_[Y, Y]}, "one label per row"),
    "NaN": ({"X": with_hole(), "estimator": SVC(), "param_grid": {"C": [1]}}, r"NaN in column\(s\) 2 .* imputer"),
    "overlap": ({"outer": [([0, 1, 2], [2, 3])]}, "outer fold 0: 1 row.*both"),
    "empty part": ({"outer": [([0, 1, 2], [])]}, "the test part is empty"),
    "outside": ({"outer": [([0, 1, 2], [90])]}, "outside"),
    "twice": ({"outer": [([0, 1, 2], [5, 5])]}, "twice"),
    "no folds": ({"outer": []}, "no folds"),
    "no pair": ({"outer": [3]}, "not a"),
    "not rows": ({"outer": [([0.5], [1.5])]}, "integers"),
    "NaN score": ({"scoring": lambda *_: float("nan"), "param_grid": None}, "returned NaN in outer fold 0"),
    "NaN inner": ({"scoring": lambda *_: float("nan")}, "returned NaN inside outer fold 0"),
    "scorer": ({"scoring": "acuracy"}, "did you mean 'accuracy'"),
    "empty space": ({"param_grid": {}}, "param_grid is empty"),
    "empty list": ({"param_grid": []}, "param_grid is empty"),
    "no values": ({"param_grid": {"max_depth": []}}, r"param_grid\['max_depth'\] is empty"),
    "no list": ({"param_grid": {"max_depth": 3}}, "pass a list"),
    "misspelt": ({"param_grid": {"max_dept": [1]}}, "did you mean 'max_depth'"),
    "two searches": ({"estimator": GridSearchCV(TREE, GRID)}, "searches already"),
    "a class": ({"estimator": DecisionTreeClassifier}, "neither an estimator nor a function"),
    "wrong number": (
        {"estimator": lambda X, y, train, test, seed: y[test][:-1], "param_grid": None},
        r"outer fold 0: got predictions of shape \(8,\) for 9 test rows",
    ),
    "callable scorer": (
        {"estimator": knn_protocol, "param_grid": None, "scoring": "neg_log_loss"},
        "more than predicted",
    ),
    "repeats": ({"repeats": 0}, "repeats=0"),
    "repeats same": ({"repeats": 2, "outer": TimeSeriesSplit(3)}, "TimeSeriesSplit does not draw"),
    "seed": ({"seed": 0.5}, "seed=0.5"),
    "outer": ({"outer": 1}, "outer=1"),
    "inner": ({"inner": 1}, "inner=1"),
    "interval": ({"interval": "nestd"}, "did you mean 'nested'"),
    "confidence": ({"confidence": 95}, "between 0 and 0.999999"),
    "certainty": ({"confidence": 0.9999999999999999}, "confidence=0.9999999999999999 must be a number between 0 and"),
    "nested rows": ({"interval": "nested", "scoring": "balanced_accuracy"}, "loss per row"),
    "nested one by one": ({"interval": "nested", "outer": LeaveOneOut(), "param_grid": None}, "at least 2 rows"),
    "nested splitter": ({"interval": "nested", "outer": TimeSeriesSplit(3), "inner": KFold(2)}, "K-fold"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_clear_sentence(name: str) -> None:
    change, words = CASES[name]
    call: dict[str, Any] = {"estimator": TREE, "param_grid": GRID, "X": X, "y": Y} | change
    with pytest.raises(DScoreError, match=words) as caught:
        nested_cv(**call)
    assert str(caught.value).endswith((".", "?"))


def test_other_errors_of_the_estimator_pass_through() -> None:
    with pytest.raises(ValueError, match="C"):
        nested_cv(LogisticRegression(C=-1), None, X, Y)


def test_paper_learner_in_nested_cv() -> None:
    result = nested_cv(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1]}, X, Y, outer=3, inner=2)
    ridge = nested_cv(KernelRidgePress(), None, X, Y, outer=3)
    assert abs(result.error.value - ridge.error.value) < 0.15
    assert {p.name for p in ridge.stability} == {"gamma", "kernel", "ridge"}
