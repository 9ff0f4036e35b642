"""Every leak of the zoo caught and rightly named, every clean protocol passed, over 20 seeds; and bad input."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol import Leak, LeakVerdict, probe_leaks
from pytest_dscore.protocol.leak import KINDS
from pytest_dscore.protocol.probe import widened

from . import zoo

SEEDS = range(20)


@pytest.mark.parametrize("name", zoo.LEAKS)
def test_leaks_are_caught_and_named(name: str) -> None:
    protocol, data, kind = zoo.LEAKS[name]
    found: list[tuple[str, ...]] = []
    for seed in SEEDS:
        X, y = data(seed)
        verdict = probe_leaks(protocol, X, y, StratifiedKFold(3, shuffle=True, random_state=seed), seed=seed)
        found.append(tuple(leak.kind for leak in verdict.leaks))
        assert verdict.runs <= 10
        assert not verdict.undecided
    assert found == [(kind,)] * len(SEEDS)


@pytest.mark.parametrize("name", zoo.CLEAN)
def test_clean_protocols_pass(name: str) -> None:
    protocol, data, splitter = zoo.CLEAN[name]
    for seed in SEEDS:
        X, y = data(seed)
        groups = np.arange(len(y)) // 3 if isinstance(splitter, GroupKFold) else None
        time = np.arange(len(y)) if isinstance(splitter, TimeSeriesSplit) else None
        verdict = probe_leaks(protocol, X, y, splitter, seed=seed, groups=groups, time=time)
        assert verdict.passed, str(verdict)
        assert verdict.runs == 10


@pytest.mark.parametrize("seed", SEEDS)
def test_leaks_in_the_splits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = zoo.images(seed)
    model = DecisionTreeClassifier(max_depth=1, random_state=0)
    flat = X.reshape(len(X), -1)
    splits = [(np.arange(50), np.arange(50, 80))]

    def kinds(data: Any, **more: Any) -> list[str]:
        fit = zoo.scaler_within if data is X else model
        return [leak.kind for leak in probe_leaks(fit, data, y, splits, seed=seed, **more).leaks]

    assert kinds(flat) == []
    copied = X.copy()
    copied[rng.choice(30, 3, replace=False) + 50] = X[rng.choice(50, 3)]
    assert [leak.kind for leak in probe_leaks(zoo.scaler_within, copied, y, splits, seed=seed).leaks] == ["duplicates"]
    dimmed = X.copy()
    dimmed[60] = 0.7 * X[int(rng.integers(50))] + 0.1
    assert [leak.kind for leak in probe_leaks(zoo.scaler_within, dimmed, y, splits, seed=seed).leaks] == ["duplicates"]
    patients = np.arange(80) // 4
    assert kinds(flat, groups=patients) == ["groups"]  # patient 12 has rows 48 to 51
    assert kinds(flat, groups=np.r_[np.arange(50) // 5, np.arange(30) // 5 + 10]) == []
    assert kinds(flat, time=rng.permutation(80)) == ["time"]
    assert kinds(flat, time=np.arange(80)) == []
    splits = [(np.arange(52), np.arange(50, 80))]
    assert "overlap" in kinds(flat)


def test_oversampled_data_split_afterwards_is_duplicates() -> None:
    for seed in SEEDS:
        X, y = zoo.rare(seed)
        rng = np.random.default_rng(seed)
        more = np.r_[np.arange(100), rng.choice(np.flatnonzero(y == 1), 60)]
        splits = StratifiedKFold(3, shuffle=True, random_state=0)
        assert [k.kind for k in probe_leaks(zoo.KNN, X[more], y[more], splits).leaks] == ["duplicates"]


def test_coarse_data_is_no_leak() -> None:
    """Three columns of few values, as in the titanic set: most rows have twins by nature."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X = np.c_[rng.integers(0, 4, 120), rng.integers(0, 2, 120), rng.integers(0, 2, 120)]
        assert probe_leaks(DecisionTreeClassifier(random_state=0), X, rng.integers(0, 2, 120), 4, seed=seed).passed


@pytest.mark.parametrize("folds", [3, 10])
def test_flattery_of_selection_on_noise(folds: int) -> None:
    """On pure noise the true error is 50 %: the flattery is what is missing from that."""
    told, real = [], []
    for seed in range(10):
        X, y = zoo.noise(seed)
        splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y))
        verdict = probe_leaks(zoo.select_k_best_on_all, X, y, splits, seed=seed, max_runs=6 + 2 * folds)
        (leak,) = verdict.leaks
        errors = [np.mean(zoo.select_k_best_on_all(X, y, a, b, 0) != y[b]) for a, b in splits]
        told.append(leak.flattery)
        real.append(50 - 100 * np.mean(errors))
        assert "flatters the error by" in leak.evidence
    assert np.mean(real) > 15
    assert np.mean(told) == pytest.approx(np.mean(real), abs=6)


def test_undecided_is_never_a_pass() -> None:
    X, y = zoo.table(0)

    def forgets_its_seed(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
        return np.random.default_rng().integers(0, 2, len(test))

    verdict = probe_leaks(forgets_its_seed, X, y, 3)
    assert verdict.undecided
    assert not verdict.passed
    assert "disagrees with itself" in verdict.reason
    assert "fix the seed" in str(verdict)
    assert verdict.runs == 2

    def refuses(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
        if not (np.array_equal(X, zoo.table(0)[0]) and np.array_equal(y, zoo.table(0)[1])):
            raise RuntimeError("this is not my data")
        return y[train][:1].repeat(len(test))

    verdict = probe_leaks(refuses, X, y, 3)
    assert verdict.undecided
    assert "not my data" in verdict.reason
    assert not verdict.passed
    single = probe_leaks(zoo.KNN, X, y, [(np.arange(89), np.array([89]))])
    assert single.undecided
    assert single.runs == 0


def test_a_protocol_that_knows_its_splits_is_probed_on_them() -> None:
    X, y = zoo.table(0)
    splits = list(KFold(5).split(X))
    known = {tuple(test): train for train, test in splits}

    def looks_up(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
        train = known[tuple(test)]
        Z = StandardScaler().fit_transform(X)
        return zoo.KNN.fit(Z[train], y[train]).predict(Z[test])

    verdict = probe_leaks(looks_up, X, y, splits)
    assert [leak.kind for leak in verdict.leaks] == ["preprocessing"]
    assert verdict.leaks[0].where == "split 0"
    assert any("wider test part: the protocol raised KeyError" in note for note in verdict.notes)


def test_poison_says_what_was_read_and_does_not_fail() -> None:
    X, y = zoo.table(1)

    def trees(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
        return DecisionTreeClassifier(random_state=seed).fit(X[train], y[train]).predict(X[test])

    assert probe_leaks(trees, X, y, 3).notes == ()

    def counts_classes(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
        assert len(np.unique(y)) == 2, "two classes expected"
        return trees(X, y, train, test, seed)

    verdict = probe_leaks(counts_classes, X, y, 3)
    assert verdict.passed
    assert "two classes expected" in verdict.notes[0]


@pytest.mark.parametrize("kind", ["strings", "bools", "sparse", "pandas", "polars", "counts", "regression", "scores"])
def test_containers_clean_and_leaking(kind: str) -> None:
    X, y = zoo.table(3)
    X = X / np.abs(X).max(axis=0)
    labels: Any = y
    data: Any = X
    pick: Any = lambda Z, rows: Z[rows]  # noqa: E731
    model: Any = KNeighborsClassifier(3)
    if kind == "strings":
        labels = np.array(["no", "yes"])[y]
    elif kind == "bools":
        labels = y.astype(bool)
    elif kind == "sparse":
        data = sparse.csr_matrix(X * (np.abs(X) > 0.2))
    elif kind == "counts":
        data = np.round(np.abs(X) * 50).astype(np.uint8)
    elif kind == "regression":
        labels, model = X[:, 0] + 0.1 * np.arange(90) / 90, KNeighborsRegressor(3)
    elif kind in ("pandas", "polars"):
        frames = pytest.importorskip(kind, reason=f"{kind} is not installed: its frames were not probed")
        data = frames.DataFrame({f"c{i}": X[:, i] for i in range(5)})
        pick = (lambda Z, rows: Z.iloc[rows]) if kind == "pandas" else (lambda Z, rows: Z[rows])

    def guess(Z: Any, y: Any, train: Any, test: Any) -> Any:
        model.fit(pick(Z, train), y[train])
        return model.predict_proba(pick(Z, test)) if kind == "scores" else model.predict(pick(Z, test))

    def leaking(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
        return guess(MaxAbsScaler().fit_transform(X), y, train, test)

    def clean(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
        return guess(X, y, train, test)

    if kind in ("pandas", "polars"):
        pick_array = pick
        pick = lambda Z, rows: Z[rows] if isinstance(Z, np.ndarray) else pick_array(Z, rows)  # noqa: E731
    assert probe_leaks(clean, data, labels, 3).passed
    assert [leak.kind for leak in probe_leaks(leaking, data, labels, 3).leaks] == ["preprocessing"]


def test_a_model_refitted_on_all_rows_for_use_is_noted_and_no_leak() -> None:
    X, y = zoo.table(2)

    def also_ships(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
        guess = zoo.KNN.fit(X[train], y[train]).predict(X[test])
        zoo.KNN.fit(X, y)
        return guess

    verdict = probe_leaks(also_ships, X, y, 3)
    assert verdict.passed
    assert any("KNeighborsClassifier.fit was given 90 rows, 45 of them test rows" in note for note in verdict.notes)


def test_estimators_and_searches_are_probed_as_they_are() -> None:
    X, y = zoo.table(0)
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2)
    assert probe_leaks(search, X, y, 3).passed  # its random_state is set, so that it agrees with itself


def test_widened_keeps_classes_groups_and_time() -> None:
    y = np.r_[np.zeros(80, int), np.ones(20, int)]
    rng = np.random.default_rng(0)
    order = rng.permutation(100)
    train, test = np.sort(order[:90]), np.sort(order[90:])
    wide = widened((train, test), y, None, 0)
    assert wide is not None
    assert len(wide[0]) == 50
    assert np.array_equal(np.sort(np.concatenate(wide)), np.arange(100))
    assert set(test) <= set(wide[1])
    assert abs(int((y[wide[0]] == 1).sum()) - 10) <= 1
    groups = np.arange(100) // 5
    split = (np.arange(90), np.arange(90, 100))
    late = widened(split, y[rng.permutation(100)], None, 0)
    assert late is not None
    assert np.array_equal(late[0], np.arange(50))
    mixed = (np.r_[np.arange(40), np.arange(50, 100)], np.arange(40, 50))
    whole = widened(mixed, y[rng.permutation(100)], groups, 0)
    assert whole is not None
    assert not set(groups[whole[0]]) & set(groups[whole[1]])
    assert widened((np.arange(50), np.arange(50, 100)), y, None, 0) is None


def test_verdict_in_words() -> None:
    leak = Leak("time", "split 0", "2 rows are late", "train on the past")
    assert str(LeakVerdict((leak,), False, "", 3)) == (
        "time leak in split 0: 2 rows are late. Fix: train on the past. (3 runs)"
    )
    assert str(LeakVerdict((), True, "it raised", 3)) == "cannot tell: it raised (3 runs)"
    assert LeakVerdict((), False, "", 3).passed
    assert set(KINDS) >= {kind for _, _, kind in zoo.LEAKS.values()}


X0, Y0 = zoo.table(0)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "wrong number": ({"protocol": lambda X, y, train, test, seed: y[test][1:]}, r"shape \(44,\) for 45 test rows"),
    "a number": ({"protocol": lambda X, y, train, test, seed: 0.5}, "test rows"),
    "no protocol": ({"protocol": 3}, "neither a function nor an estimator"),
    "a class": ({"protocol": KNeighborsClassifier}, "neither a function nor an estimator"),
    "no splits": ({"splits": []}, "no split"),
    "empty part": ({"splits": [([0, 1], [])]}, "test part is empty"),
    "outside": ({"splits": [([0, 1], [90])]}, "outside"),
    "y length": ({"y": Y0[:5]}, "5 labels"),
    "groups length": ({"groups": [1]}, "groups"),
    "time length": ({"time": [1]}, "time has 1 entries"),
    "runs": ({"max_runs": 3}, "max_runs=3"),
    "seed": ({"seed": -1}, "seed=-1"),
    "NaN": ({"protocol": KNeighborsClassifier(), "X": np.where(X0 > 2, np.nan, X0)}, "column.* imputer"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_sentence(name: str) -> None:
    change, words = BAD[name]
    call: dict[str, Any] = {"protocol": zoo.KNN, "X": X0, "y": Y0, "splits": KFold(3)} | change
    with pytest.raises(DScoreError, match=words) as caught:
        probe_leaks(**call)
    assert re.search(r"[.?]$", str(caught.value))
