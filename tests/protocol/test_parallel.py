"""Jobs through joblib: order, progress, errors; and the progress of nested_cv, compare_protocols and probe_leaks."""

# mypy: disable-error-code="import-untyped,no-untyped-def,no-untyped-call,type-arg"
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol import compare_protocols, nested_cv, probe_leaks
from pytest_dscore.protocol.parallel import Tally, run_jobs

from . import zoo

X, Y = make_classification(90, 5, n_informative=3, flip_y=0.2, random_state=0)
GRID = {"max_depth": [1, 2, 4]}
TREE = DecisionTreeClassifier(random_state=0)
Steps = list[tuple[int, int]]


def wait(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return number


def fails() -> int:
    raise ValueError("this fold cannot be fitted")


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_results_keep_their_order_whatever_finishes_first(backend: str) -> None:
    steps: Steps = []
    jobs = [partial(wait, i, 0.3 if i == 0 else 0.0) for i in range(6)]
    with parallel_config(backend=backend):
        assert run_jobs(jobs, 2, Tally(lambda *step: steps.append(step), 6)) == [0, 1, 2, 3, 4, 5]
        assert run_jobs(jobs, 2) == [0, 1, 2, 3, 4, 5]
    # multiprocessing hands nothing back before the end.
    assert steps == ([(6, 6)] if backend == "multiprocessing" else [(i, 6) for i in range(1, 7)])


def test_progress_comes_while_the_first_job_still_runs() -> None:
    release, told = threading.Event(), threading.Event()

    def first() -> int:
        return release.wait(20)

    def told_of(done: int, total: int) -> None:
        told.set()
        release.set()

    jobs: list[Callable[[], int]] = [first, partial(wait, 7, 0.0)]
    with parallel_config(backend="threading"):
        assert run_jobs(jobs, 2, Tally(told_of, 2)) == [1, 7]
    assert told.is_set()


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("watched", [True, False])
def test_an_error_in_a_job_comes_through(n_jobs: int, watched: bool) -> None:
    jobs: list[Callable[[], int]] = [partial(wait, 0, 0.0), fails, partial(wait, 2, 0.1)]
    tally = Tally((lambda done, total: None) if watched else None, 3)
    with pytest.raises(ValueError, match="this fold cannot be fitted"):
        run_jobs(jobs, n_jobs, tally)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_the_progress_ends_the_run(n_jobs: int) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs([partial(wait, i, 0.05) for i in range(4)], n_jobs, Tally(stop, 4))
    assert run_jobs([partial(wait, 7, 0.0)], n_jobs) == [7]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nested_cv_tells_of_every_outer_fold(n_jobs: int) -> None:
    steps: Steps = []
    told = nested_cv(
        TREE, GRID, X, Y, outer=4, inner=2, repeats=2, n_jobs=n_jobs, progress=lambda *step: steps.append(step)
    )
    assert steps == [(i, 8) for i in range(1, 9)]
    silent = nested_cv(TREE, GRID, X, Y, outer=4, inner=2, repeats=2)
    assert np.array_equal(told.fold_errors, silent.fold_errors)
    assert told.selected == silent.selected
    assert told.error == silent.error
    told.intervals["nested"]
    assert len(steps) == 8


def test_the_nested_interval_raises_the_total_by_its_fits() -> None:
    steps: Steps = []
    call: dict[str, Any] = {"outer": 4, "inner": 2, "interval": "nested", "nested_repeats": 2}
    told = nested_cv(TREE, GRID, X, Y, progress=lambda *step: steps.append(step), **call)
    # Four folds; then four of a second partition and, in each of the two, six pairs of folds.
    assert steps == [(i, 4) for i in range(1, 5)] + [(i, 20) for i in range(5, 21)]
    assert told.error == nested_cv(TREE, GRID, X, Y, **call).error


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_compare_protocols_tells_of_every_selection_and_fit(n_jobs: int) -> None:
    steps: Steps = []
    told = compare_protocols(
        TREE, GRID, X, Y, outer=4, inner=2, n_jobs=n_jobs, progress=lambda *step: steps.append(step)
    )
    assert steps == [(i, 17) for i in range(1, 18)]
    silent = compare_protocols(TREE, GRID, X, Y, outer=4, inner=2)
    assert told.bias == silent.bias
    assert np.array_equal(told.median.fold_errors, silent.median.fold_errors)


def test_probe_leaks_tells_of_every_run() -> None:
    steps: Steps = []
    data, labels = zoo.table(0)
    verdict = probe_leaks(TREE, data, labels, 3, progress=lambda *step: steps.append(step))
    assert steps == [*((i, 10) for i in range(1, 11)), (10, 10)]
    steps.clear()
    leaky = probe_leaks(zoo.scaler_on_all, data, labels, 3, progress=lambda *step: steps.append(step), max_runs=30)
    assert steps[:-1] == [(i, 30) for i in range(1, leaky.runs + 1)]
    assert steps[-1] == (leaky.runs, leaky.runs)
    assert verdict == probe_leaks(TREE, data, labels, 3)


def test_progress_that_cannot_be_called() -> None:
    for call in (nested_cv, compare_protocols):
        with pytest.raises(DScoreError, match=r"progress=True must be a callable \(done, total\), or None\."):
            call(TREE, GRID, X, Y, progress=True)  # type: ignore[arg-type]
    with pytest.raises(DScoreError, match="progress=True"):
        probe_leaks(TREE, X, Y, 3, progress=True)  # type: ignore[arg-type]
