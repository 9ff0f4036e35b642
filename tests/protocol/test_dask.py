"""nested_cv on a dask cluster: the same number as in one process, also where a worker dies in the middle."""

# mypy: disable-error-code="import-untyped,no-untyped-def,no-untyped-call"
from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from pytest_dscore.protocol import compare_protocols, nested_cv

distributed: Any = pytest.importorskip("distributed", reason="dask's distributed is not installed")

# More than 1,000 bytes of features: what joblib would send to one worker ahead of the jobs.
X, Y = make_classification(120, 6, n_informative=3, flip_y=0.2, random_state=0)
GRID = {"max_depth": [1, 2, 4]}
TREE = DecisionTreeClassifier(random_state=0)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "60s"}):
        options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
        cluster = distributed.LocalCluster(processes=True, host="127.0.0.1", **options)
        with cluster, distributed.Client(cluster) as client:
            yield client


def slow_tree(X: Any, y: Any, train: Any, test: Any, seed: int, depth: int = 2) -> Any:
    time.sleep(0.1)
    return DecisionTreeClassifier(max_depth=depth, random_state=seed).fit(X[train], y[train]).predict(X[test])


def pids(client: Any) -> set[int]:
    return set(client.run(os.getpid).values())


def test_the_same_number_as_in_one_process(client: Any) -> None:
    expected = nested_cv(TREE, GRID, X, Y, outer=6, inner=3)
    with parallel_config(backend="dask"):
        found = nested_cv(TREE, GRID, X, Y, outer=6, inner=3, n_jobs=None)
        # A search that asks for jobs of its own stays on its worker.
        search = nested_cv(GridSearchCV(TREE, GRID, cv=3, n_jobs=2), None, X, Y, outer=6, n_jobs=None)
        compared = compare_protocols(TREE, GRID, X, Y, outer=4, inner=2, n_jobs=None)
    assert np.array_equal(found.fold_errors, expected.fold_errors)
    assert found.selected == expected.selected
    alone = nested_cv(GridSearchCV(TREE, GRID, cv=3), None, X, Y, outer=6)
    assert np.array_equal(search.fold_errors, alone.fold_errors)
    assert compared.bias == compare_protocols(TREE, GRID, X, Y, outer=4, inner=2).bias


def test_a_worker_that_dies_in_the_middle_changes_nothing(client: Any) -> None:
    grid = {"depth": [1, 2, 4]}
    expected = nested_cv(slow_tree, grid, X, Y, outer=8, inner=2)
    workers = pids(client)
    assert len(workers) == 2
    assert os.getpid() not in workers
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if done == 2:
            killed.append(min(workers))
            os.kill(killed[0], signal.SIGKILL)

    with parallel_config(backend="dask"):
        found = nested_cv(slow_tree, grid, X, Y, outer=8, inner=2, n_jobs=None, progress=kill_one)
    assert killed[0] not in pids(client)  # it is dead indeed
    assert np.array_equal(found.fold_errors, expected.fold_errors)
    assert found.selected == expected.selected
    assert found.error == expected.error
