"""Protocols that leak, each the way it is met in practice, and protocols that look suspicious and are clean."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

Array = np.ndarray[Any, Any]
KNN = KNeighborsClassifier(3)


def table(seed: int, n: int = 90, d: int = 5) -> tuple[Array, Array]:
    """Columns of very different scale; the first carries the signal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(int)
    return X * 10.0 ** np.arange(d)[::-1] / 10, y


def blurred(seed: int) -> tuple[Array, Array]:
    """Two columns and a quarter of the labels wrong: here the flexibility of a model matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 2))
    return X, ((X[:, 0] * X[:, 1] > 0) ^ (rng.random(90) < 0.25)).astype(int)


def noise(seed: int) -> tuple[Array, Array]:
    """300 columns of pure noise."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(80, 300)), rng.permutation(np.repeat([0, 1], 40))


def categories(seed: int) -> tuple[Array, Array]:
    """One column of 25 categories that say nothing, and one weak column."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 120)
    return np.c_[rng.integers(0, 25, 120), 0.3 * y + rng.normal(size=120)], y


def rare(seed: int) -> tuple[Array, Array]:
    """Few positives, to be oversampled."""
    rng = np.random.default_rng(seed)
    y = (rng.random(100) < 0.25).astype(int)
    return rng.normal(size=(100, 4)) + 0.5 * y[:, None], y


def images(seed: int) -> tuple[Array, Array]:
    """Small float images; the class is a brighter corner."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], 40))
    X = rng.random((80, 8, 8))
    X[:, :3, :3] += 0.35 * y[:, None, None]
    return X, y


def holes(seed: int) -> tuple[Array, Array]:
    X, y = table(seed)
    X[np.random.default_rng(seed + 1).random(X.shape) < 0.15] = np.nan
    return X, y


# --- leaks --------------------------------------------------------------------------------------------------------


def scaler_on_all(X, y, train, test, seed):
    Z = StandardScaler().fit_transform(X)
    return KNN.fit(Z[train], y[train]).predict(Z[test])


def scaler_by_hand(X, y, train, test, seed):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return KNN.fit(Z[train], y[train]).predict(Z[test])


def min_max_on_all(X, y, train, test, seed):
    Z = MinMaxScaler().fit_transform(X)
    return KNN.fit(Z[train], y[train]).predict(Z[test])


def quantiles_on_all(X, y, train, test, seed):
    Z = QuantileTransformer(n_quantiles=30).fit_transform(X)
    return RidgeClassifier().fit(Z[train], y[train]).decision_function(Z[test])


def pca_on_all(X, y, train, test, seed):
    Z = PCA(2, random_state=0).fit_transform(X)
    return KNN.fit(Z[train], y[train]).predict(Z[test])


def imputer_on_all(X, y, train, test, seed):
    Z = SimpleImputer().fit_transform(X)
    return KNN.fit(Z[train], y[train]).predict(Z[test])


def mean_of_test_images(X, y, train, test, seed):
    Z = ((X - X[test].mean()) / X[test].std()).reshape(len(X), -1)
    return RidgeClassifier().fit(Z[train], y[train]).predict(Z[test])


def select_k_best_on_all(X, y, train, test, seed):
    Z = SelectKBest(k=8).fit_transform(X, y)
    return RidgeClassifier().fit(Z[train], y[train]).predict(Z[test])


def target_encoder_on_all(X, y, train, test, seed):
    coded = TargetEncoder(smooth=1.0).fit(X[:, :1], y).transform(X[:, :1])
    Z = np.c_[coded, X[:, 1:]]
    return RidgeClassifier().fit(Z[train], y[train]).predict(Z[test])


def target_encoding_by_hand(X, y, train, test, seed):
    codes = X[:, 0]
    means = {c: y[codes == c].mean() for c in np.unique(codes)}
    Z = np.c_[[means[c] for c in codes], X[:, 1:]]
    return RidgeClassifier().fit(Z[train], y[train]).predict(Z[test])


def oversampling_before_split(X, y, train, test, seed):
    positive = np.flatnonzero(y == 1)
    drawn = np.random.default_rng(seed).choice(positive, size=len(y), replace=True)
    known = np.r_[train, drawn]
    return KNN.fit(X[known], y[known]).predict(X[test])


def _tree(depth: int) -> Any:
    return DecisionTreeClassifier(max_depth=depth, random_state=0)


DEPTHS = {"max_depth": [1, 8]}


def external(X, y, train, test, seed):
    search = GridSearchCV(_tree(1), DEPTHS, cv=StratifiedKFold(2)).fit(X, y)
    return _tree(search.best_params_["max_depth"]).fit(X[train], y[train]).predict(X[test])


def external_by_loop(X, y, train, test, seed):
    scores = {depth: cross_val_score(_tree(depth), X, y, cv=2).mean() for depth in (1, 3, 8)}
    best = max(scores, key=lambda depth: scores[depth])
    return _tree(best).fit(X[train], y[train]).predict(X[test])


def median(X, y, train, test, seed):
    chosen = []
    for part, _ in KFold(3, shuffle=True, random_state=1).split(X):
        search = GridSearchCV(_tree(1), DEPTHS, cv=StratifiedKFold(2)).fit(X[part], y[part])
        chosen.append(search.best_params_["max_depth"])
    return _tree(int(np.median(chosen))).fit(X[train], y[train]).predict(X[test])


def _epochs(X, y, train, seed, n=25):
    """Weights of a logistic model after each epoch of stochastic gradient descent."""
    rng = np.random.default_rng(seed)
    scale = np.abs(X[train]).mean(axis=0)
    w = 0.5 * rng.normal(size=X.shape[1])
    for _ in range(n):
        for i in rng.permutation(train):
            x = X[i] / scale
            w = w + 0.1 * (y[i] - 1 / (1 + np.exp(-x @ w))) * x
        yield w / scale


def early_stopping_on_test(X, y, train, test, seed):
    best, kept, waited = -1.0, None, 0
    for w in _epochs(X, y, train, seed):
        score = np.mean((X[test] @ w > 0) == y[test])
        best, kept, waited = (score, w, 0) if score > best else (best, kept, waited + 1)
        if waited >= 5:
            break
    return (X[test] @ kept > 0).astype(int)


def best_epoch_by_test(X, y, train, test, seed):
    weights = list(_epochs(X, y, train, seed))
    scores = [np.mean((X[test] @ w > 0) == y[test]) for w in weights]
    return (X[test] @ weights[int(np.argmax(scores))] > 0).astype(int)


LEAKS: dict[str, tuple[Any, Any, str]] = {
    "scaler on all rows": (scaler_on_all, table, "preprocessing"),
    "scaler by hand": (scaler_by_hand, table, "preprocessing"),
    "min-max on all rows": (min_max_on_all, table, "preprocessing"),
    "quantiles of all rows": (quantiles_on_all, table, "preprocessing"),
    "PCA of all rows": (pca_on_all, table, "preprocessing"),
    "imputer on all rows": (imputer_on_all, holes, "preprocessing"),
    "images by the test mean": (mean_of_test_images, images, "preprocessing"),
    "SelectKBest on all rows": (select_k_best_on_all, noise, "selection"),
    "target encoder on all rows": (target_encoder_on_all, categories, "labels"),
    "target encoding by hand": (target_encoding_by_hand, categories, "labels"),
    "oversampling before the split": (oversampling_before_split, rare, "overlap"),
    "external": (external, blurred, "selection"),
    "external by loop": (external_by_loop, blurred, "selection"),
    "median": (median, blurred, "selection"),
    "early stopping on the test fold": (early_stopping_on_test, table, "early-stopping"),
    "best epoch by test accuracy": (best_epoch_by_test, table, "early-stopping"),
}


# --- clean --------------------------------------------------------------------------------------------------------

PIPELINE = make_pipeline(StandardScaler(), _tree(1))
SEARCH = GridSearchCV(PIPELINE, {"decisiontreeclassifier__max_depth": [1, 5]}, cv=StratifiedKFold(2))


def search_in_fold(X, y, train, test, seed):
    return SEARCH.fit(X[train], y[train]).predict(X[test])


def own_validation_part(X, y, train, test, seed):
    order = np.random.default_rng(seed).permutation(train)
    held, used = order[: len(order) // 4], order[len(order) // 4 :]
    weights = list(_epochs(X, y, used, seed))
    scores = [np.mean((X[held] @ w > 0) == y[held]) for w in weights]
    return (X[test] @ weights[int(np.argmax(scores))] > 0).astype(int)


def rows_by_own_norm(X, y, train, test, seed):
    Z = X / np.linalg.norm(X, axis=1, keepdims=True)
    return KNN.fit(Z[train], y[train]).predict(Z[test])


def reads_test_labels_for_a_log(X, y, train, test, seed):
    guess = KNN.fit(X[train], y[train]).predict(X[test])
    _ = float(np.mean(guess == y[test])), np.unique(y)
    return guess


def writes_into_its_input(X, y, train, test, seed):
    X *= 0.1  # a second run on the same array would give other values
    return RidgeClassifier().fit(X[train], y[train]).decision_function(X[test])


CLEAN: dict[str, tuple[Any, Any, Any]] = {
    "Pipeline in GridSearchCV": (SEARCH, table, StratifiedKFold(3)),
    "search inside the fold": (search_in_fold, table, StratifiedKFold(3)),
    "GroupKFold": (search_in_fold, table, GroupKFold(3)),
    "own validation part": (own_validation_part, table, StratifiedKFold(3)),
    "TimeSeriesSplit": (search_in_fold, table, TimeSeriesSplit(3)),
    "rows by their own norm": (rows_by_own_norm, table, StratifiedKFold(3)),
    "reads test labels for a log": (reads_test_labels_for_a_log, table, StratifiedKFold(3)),
    "writes into its input": (writes_into_its_input, table, StratifiedKFold(3)),
}


def scaler_within(X, y, train, test, seed):
    """Clean, for images."""
    Z = X.reshape(len(X), -1)
    scaler = StandardScaler().fit(Z[train])
    return RidgeClassifier().fit(scaler.transform(Z[train]), y[train]).predict(scaler.transform(Z[test]))
