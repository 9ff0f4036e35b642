"""One fold: select on the training rows, train on them, measure on the test rows."""

# mypy: disable-error-code="import-untyped,misc"
from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.multiclass import type_of_target

from ..errors import SettingsError
from .inputs import check_grid, check_int, check_scorer, explain_failure, take_rows
from .splits import Rows, check_enough, make_splitter
from .torch_seed import run_seeded

Losses = NDArray[np.float64]
# Scores that are minus a mean (or one minus a mean) over rows: for these an interval can use the rows themselves.
ROW_LOSSES: Mapping[str, Callable[[NDArray[Any], NDArray[Any]], Losses]] = {
    "accuracy": lambda truth, guess: (truth != guess).astype(np.float64),
    "neg_mean_squared_error": lambda truth, guess: (truth - guess).astype(np.float64) ** 2,
    "neg_mean_absolute_error": lambda truth, guess: np.abs(truth - guess).astype(np.float64),
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one fold gave.

    Parameters
    ----------
    error
        ``1 - score``, or ``-score`` for a scorer whose name starts with ``neg_``.
    losses
        Loss of each test row, shape (n_test,), where the score is a mean over rows; otherwise None.
    selected
        The parameters selected.
    """

    error: float
    losses: Losses | None
    selected: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Selection:
    """What model selection chose.

    Parameters
    ----------
    params
        Selected parameters by name; empty where nothing is selected.
    template
        The estimator or callable that takes them.
    """

    params: dict[str, Any]
    template: Any


class _FixedPredictions(ClassifierMixin, BaseEstimator):
    """Stands in for a fitted estimator, so that scikit-learn's scorers can score a callable's predictions."""

    def __init__(self, predictions: NDArray[Any], classes: NDArray[Any]) -> None:
        self.predictions = predictions
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions that were recorded, shape (n_test,)."""
        return self.predictions


@dataclass(frozen=True, eq=False)
class Experiment:
    """An estimator (or callable), its search space and the data: everything a fold needs.

    Parameters
    ----------
    estimator
        scikit-learn estimator or search object, or a callable
        ``(X, y, train, test, seed, **params) -> predictions on test``.
    grid
        Checked search space, or None.
    X, y, groups
        Data with n rows.
    inner
        Number of inner folds or splitter.
    scoring
        Scorer name or callable.
    classify
        Whether the target is made of classes.
    """

    estimator: Any
    grid: list[dict[str, Any]] | None
    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    inner: Any
    scoring: Any
    classify: bool

    @property
    def is_callable(self) -> bool:
        """Whether the protocol is a plain callable."""
        return not hasattr(self.estimator, "fit")

    def run(self, train: Rows, test: Rows, seed: int, where: str) -> Outcome:
        """Select and train on `train` only, measure on `test` (the internal protocol)."""
        if self.is_callable:
            return self.fixed(self.select(train, seed, where), train, test, seed, where)
        fitted = self._fit(self._searcher(train, seed, where), train, where)
        return self._measure(fitted, test, _selected(fitted), where)

    def select(self, train: Rows, seed: int, where: str) -> Selection:
        """Parameters selected on `train` only; empty where nothing is selected."""
        if not self.is_callable:
            fitted = self._fit(self._searcher(train, seed, where), train, where)
            return Selection(_selected(fitted), getattr(fitted, "best_estimator_", self.estimator))
        if self.grid is None:
            return Selection({}, self.estimator)
        folds = self._inner_folds(train, seed, where)
        candidates = [Selection(dict(params), self.estimator) for params in ParameterGrid(self.grid)]
        errors = [
            np.mean([self.fixed(c, train[a], train[b], seed, f"{where}, inner").error for a, b in folds])
            for c in candidates
        ]
        return candidates[int(np.argmin(errors))]

    def fixed(self, chosen: Selection, train: Rows, test: Rows, seed: int, where: str) -> Outcome:
        """Train on `train` with given parameters, selecting nothing, and measure on `test`."""
        if self.is_callable:
            call = partial(self.estimator, self.X, self.y, train, test, seed, **chosen.params)
            guess = np.asarray(run_seeded(call, seed))
            guess = check_predictions(guess, len(test), where)
            return self._measure(_FixedPredictions(guess, np.unique(self.y)), test, chosen.params, where)
        model = seeded(chosen.template, seed).set_params(**chosen.params)
        return self._measure(self._fit(model, train, where), test, chosen.params, where)

    def _searcher(self, train: Rows, seed: int, where: str) -> Any:
        model = seeded(self.estimator, seed)
        if self.grid is None:
            return model
        folds = self._inner_folds(train, seed, where)
        scoring = _accuracy if self.scoring == "accuracy" else check_scorer(self.scoring)
        return GridSearchCV(model, self.grid, scoring=scoring, cv=folds, error_score="raise")

    def _inner_folds(self, train: Rows, seed: int, where: str) -> list[tuple[Rows, Rows]]:
        groups = None if self.groups is None else self.groups[train]
        if isinstance(self.inner, (int, np.integer)):
            part = f"the training part of {where}"
            check_enough(check_int(self.inner, "inner", 2), self.y[train], groups, self.classify, "inner", part)
        splitter = make_splitter(self.inner, "inner", self.classify, groups, seed % 2**31)
        return list(splitter.split(take_rows(self.X, train), self.y[train], groups))

    def _fit(self, model: Any, train: Rows, where: str) -> Any:
        extra = {}
        if isinstance(model, BaseSearchCV) and self.groups is not None and self.grid is None:
            extra = {"groups": self.groups[train]}
        try:
            # Scores that are not finite get an error of their own below, which says more than the warning.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="One or more of the .* scores are non-finite")
                fitted = model.fit(take_rows(self.X, train), self.y[train], **extra)
        except Exception as error:
            clear = explain_failure(error, self.X)
            if clear is error:
                raise
            raise clear from error
        results = getattr(fitted, "cv_results_", None)
        if self.grid is not None and results is not None and np.isnan(results["mean_test_score"]).any():
            raise SettingsError(
                f"scoring={self.scoring!r} returned NaN inside {where}: choose a scorer that is defined."
            )
        return fitted

    def _measure(self, fitted: Any, test: Rows, selected: dict[str, Any], where: str) -> Outcome:
        features, truth = take_rows(self.X, test), self.y[test]
        row_loss = ROW_LOSSES.get(self.scoring) if isinstance(self.scoring, str) else None
        if row_loss is not None:
            guess = check_predictions(np.asarray(fitted.predict(features)), len(test), where)
            losses = row_loss(truth, guess)
            error = float(losses.mean())
        else:
            losses = None
            try:
                score = float(check_scorer(self.scoring)(fitted, features, truth))
            except AttributeError as failure:
                raise SettingsError(
                    f"scoring={self.scoring!r} needs more than predicted labels ({failure}): choose another scorer."
                ) from failure
            error = -score if str(self.scoring).startswith("neg_") else 1.0 - score
        if np.isnan(error):
            raise SettingsError(
                f"scoring={self.scoring!r} returned NaN in {where}: choose a scorer that is defined for its test part."
            )
        return Outcome(error, losses, selected)


def make_experiment(
    estimator: Any, param_grid: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None, inner: Any, scoring: Any
) -> Experiment:
    """Check an estimator, its search space and scorer, and bind them to the data.

    Raises
    ------
    SettingsError
        The estimator cannot be fitted or called, a search object comes with a second search space, or the search space
        or the scorer is wrong.
    """
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") or callable(estimator)):
        raise SettingsError(
            f"{estimator!r} is neither an estimator nor a function: pass an instance with fit and predict, or a "
            "callable (X, y, train, test, seed) -> predictions."
        )
    if isinstance(estimator, BaseSearchCV) and param_grid is not None:
        raise SettingsError(
            f"{type(estimator).__name__} searches already: pass param_grid=None, or the estimator inside it."
        )
    grid = None if param_grid is None else check_grid(param_grid, estimator)
    check_scorer(scoring)
    classify = _is_classification(estimator, y)
    return Experiment(estimator, grid, X, y, groups, inner, scoring, classify)


def _accuracy(fitted: Any, X: Any, y: NDArray[Any]) -> float:
    """The same number as scikit-learn's accuracy scorer, without checks that cost 5 % of a search of small SVCs."""
    return float(np.mean(np.asarray(fitted.predict(X)) == y))


def check_predictions(guess: NDArray[Any], expected: int, where: str) -> NDArray[Any]:
    """One prediction per test row, shape (expected,).

    Raises
    ------
    SettingsError
        There are more or fewer.
    """
    if guess.ndim == 2 and guess.shape[1] == 1:
        guess = guess[:, 0]
    if guess.ndim != 1 or len(guess) != expected:
        raise SettingsError(
            f"{where}: got predictions of shape {guess.shape} for {expected} test rows: return one per test row."
        )
    return guess


def seeded(estimator: Any, seed: int) -> Any:
    """Clone with every ``random_state`` that is None set to `seed`, so that the same call gives the same number."""
    model = clone(estimator)
    params = model.get_params() if hasattr(model, "get_params") else {}
    unset = {k: seed % 2**31 for k, v in params.items() if v is None and k.split("__")[-1] == "random_state"}
    return model.set_params(**unset) if unset else model


def _is_classification(estimator: Any, y: NDArray[Any]) -> bool:
    if hasattr(estimator, "fit") and hasattr(estimator, "get_params"):
        return bool(is_classifier(estimator))
    return not str(type_of_target(y)).startswith("continuous")


def _selected(fitted: Any) -> dict[str, Any]:
    return dict(getattr(fitted, "best_params_", {}))
