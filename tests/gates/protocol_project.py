"""A user's project with protocols: small data, a pipeline, clean experiments and leaking ones."""

from __future__ import annotations

# Imported once in the outer process, see conftest.py.
import sklearn.svm  # type: ignore[import-untyped]

import pytest_dscore.gates.protocol_declared
import pytest_dscore.gates.protocol_use
from tests.gates.project import Project

__all__ = ["EXPERIMENTS", "MARKED", "declare", "pytest_dscore", "sklearn"]

EXPERIMENTS = """
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

HERE = Path(__file__).parent
GRID = {"kneighborsclassifier__n_neighbors": [1, 5]}
SPLITTER = StratifiedKFold(3, shuffle=True, random_state=1)


def log(word):
    with (HERE / "log").open("a") as file:
        file.write(word + "\\n")


def data():
    log("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1, 10, 100]
    return X, (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)


def grouped():
    return (*data(), np.arange(60) // 3)


def noise():
    # Labels of pure chance: no honest error is far from one half.
    rng = np.random.default_rng(4)
    return rng.normal(size=(60, 40)), rng.permutation(np.repeat([0, 1], 30))


def build():
    return make_pipeline(StandardScaler(), KNeighborsClassifier())


def tree():
    return DecisionTreeClassifier(random_state=0)


def search():
    return GridSearchCV(build(), GRID, cv=3)


def search_by_group():
    return GridSearchCV(build(), GRID, cv=GroupKFold(3))


def grid():
    return GRID


def clean(X, y, train, test, seed, k=3):
    log("clean")
    return make_pipeline(StandardScaler(), KNeighborsClassifier(k)).fit(X[train], y[train]).predict(X[test])


def leaky(X, y, train, test, seed):
    Z = StandardScaler().fit_transform(X)
    return KNeighborsClassifier(3).fit(Z[train], y[train]).predict(Z[test])


def chosen_on_all(X, y, train, test, seed):
    # The columns that go with the labels of all rows, those of the test rows included.
    centred = y - y.mean()
    best = np.argsort(-np.abs(centred @ X))[:5]
    return KNeighborsClassifier(3).fit(X[train][:, best], y[train]).predict(X[test][:, best])


def unseeded(X, y, train, test, seed):
    return np.random.default_rng().integers(0, 2, len(test))


def too_few(X, y, train, test, seed):
    return clean(X, y, train, test, seed)[:-1]


class Restless(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.random.default_rng().integers(0, 2, len(X))
"""

MARKED = """
from exp import *

@pytest.mark.nested_cv(max_error=0.5, outer=3, inner=2, repeats=2)
def test_error(nested_cv):
    result = nested_cv(build(), GRID, *data())
    assert len(result.fold_errors) == 6
"""


def declare(project: Project, *tables: str, files: bool = True) -> None:
    """Write pyproject.toml: one protocol for each text, called one, two, ...; and the module exp."""
    names = ("one", "two", "three", "four")
    texts = (f"[tool.dscore.protocols.{name}]\n{own}\n" for name, own in zip(names, tables, strict=False))
    project.write("pyproject.toml", "[tool.dscore]\n" + "\n".join(texts))
    if files:
        project.write("exp.py", EXPERIMENTS)
