"""A search object that is cheap enough to search hundreds of noise columns in every fold."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class SignOfColumn(ClassifierMixin, BaseEstimator):
    """Predict by the sign of one column; the threshold and direction come from the training rows."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X: Any, y: Any) -> SignOfColumn:
        self.classes_ = np.unique(y)
        means = [X[y == c, self.column].mean() for c in self.classes_]
        self.middle_, self.up_ = np.mean(means), means[1] > means[0]
        return self

    def predict(self, X: Any) -> Any:
        return self.classes_[((X[:, self.column] > self.middle_) == self.up_).astype(int)]


class OneColumn(ClassifierMixin, BaseEstimator):
    """Choose the column with the fewest training errors."""

    def fit(self, X: Any, y: Any) -> OneColumn:
        self.classes_ = np.unique(y)
        low, high = (X[y == c].mean(axis=0) for c in self.classes_)
        guess = ((low + high) / 2 < X) == (high > low)
        errors = (guess != (y == self.classes_[1])[:, None]).mean(axis=0)
        self.best_params_ = {"column": int(np.argmin(errors))}
        self.best_estimator_ = SignOfColumn(**self.best_params_).fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.best_estimator_.predict(X)
