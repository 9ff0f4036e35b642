"""A declared protocol, loaded once, and what is computed from it."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import copy
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.model_selection._search import BaseSearchCV
from threadpoolctl import threadpool_limits

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.gates.references import call, describe, find, importable
from pytest_dscore.protocol import Comparison, LeakVerdict, NestedResult, compare_protocols, nested_cv, probe_leaks
from pytest_dscore.protocol.experiment import Experiment, make_experiment, seeded
from pytest_dscore.protocol.inputs import take_rows
from pytest_dscore.protocol.nested import as_data
from pytest_dscore.protocol.parallel import Progress
from pytest_dscore.protocol.probe import as_folds
from pytest_dscore.protocol.splits import Fold, draws_at_random, fold_seed, make_splitter
from pytest_dscore.settings import ProtocolSettings


@dataclass(frozen=True, eq=False)
class LoadedProtocol:
    """What the settings of a protocol refer to.

    Parameters
    ----------
    settings
        As declared.
    experiment
        Estimator or callable, search space and data, checked.
    splits
        Number of folds, splitter, or list of (train rows, test rows).
    """

    settings: ProtocolSettings
    experiment: Experiment
    splits: Any

    @property
    def selects(self) -> bool:
        """Whether hyper-parameters are chosen, so that ways of choosing them can be compared."""
        return self.experiment.grid is not None or isinstance(self.experiment.estimator, BaseSearchCV)

    def folds(self) -> list[Fold]:
        """The outer folds of the first repeat, unchecked: what leaks between their parts is for the probe to say."""
        found, seed = self.experiment, fold_seed(self.settings.seed, 0) % 2**31
        splitter = make_splitter(self.splits, "splits", found.classify, found.groups, seed)
        if hasattr(splitter, "split") and draws_at_random(splitter) and splitter.random_state is None:
            splitter = copy.copy(splitter)
            splitter.random_state = seed
        return as_folds(splitter, found.X, found.y, found.groups, seed)

    def estimate(self, n_jobs: int, progress: Progress | None) -> NestedResult:
        """The error by nested cross-validation."""
        one = self.settings
        return nested_cv(
            **self._inputs(),
            n_jobs=n_jobs,
            interval=one.interval,
            nested_repeats=one.nested_repeats,
            progress=progress,
        )

    def compare(self, n_jobs: int, progress: Progress | None) -> Comparison:
        """The internal, external and median protocols on the same folds."""
        return compare_protocols(**self._inputs(), n_jobs=n_jobs, progress=progress)

    def probe(self, progress: Progress | None) -> LeakVerdict:
        """Look for leaks in the folds, and in what is run on them."""
        found = self.experiment
        return probe_leaks(
            self._as_run(),
            found.X,
            found.y,
            self.folds(),
            self.settings.seed,
            groups=found.groups,
            progress=progress,
        )

    def _inputs(self) -> dict[str, Any]:
        found, one = self.experiment, self.settings
        return {
            "estimator": found.estimator,
            "param_grid": found.grid,
            "X": found.X,
            "y": found.y,
            "outer": self.splits,
            "inner": one.inner,
            "groups": found.groups,
            "scoring": one.scoring,
            "repeats": one.repeats,
            "seed": one.seed,
            "confidence": one.confidence,
        }

    def _as_run(self) -> Any:
        """What is run on each fold, the selection included."""
        found = self.experiment
        searches_by_group = isinstance(found.estimator, BaseSearchCV) and found.groups is not None
        if found.grid is None and not searches_by_group:
            return found.estimator

        def select_then_predict(X: Any, y: NDArray[Any], train: Any, test: Any, seed: int) -> Any:
            chosen = replace(found, X=X, y=y).select(train, seed, "the probed split")
            if found.is_callable:
                return found.estimator(X, y, train, test, seed, **chosen.params)
            model = seeded(chosen.template, seed).set_params(**chosen.params)
            return model.fit(take_rows(X, train), y[train]).predict(take_rows(X, test))

        return select_then_predict


def load_protocol(settings: ProtocolSettings) -> LoadedProtocol:
    """Import and call what the settings refer to.

    Raises
    ------
    DScoreError
        Something is missing, raises, or is not what it should be.
    """
    X, y, groups = _data(settings.data)
    key, subject = _subject(settings)
    grid = _grid(settings.param_grid)
    try:
        X, labels, group_array = as_data(X, y, groups)
    except SettingsError as error:
        raise DScoreError(f"data '{settings.data}': {error}") from error
    try:
        found = make_experiment(subject, grid, X, labels, group_array, settings.inner, settings.scoring)
    except SettingsError as error:
        raise DScoreError(f"{key}: {error}") from error
    return LoadedProtocol(settings, found, _splits(settings.splits))


def _data(reference: str) -> tuple[Any, Any, Any]:
    data = call(reference, "data")
    if isinstance(data, (tuple, list)) and len(data) in (2, 3):
        return data[0], data[1], data[2] if len(data) == 3 else None
    what = f"{len(data)} values" if isinstance(data, (tuple, list)) else f"a {type(data).__name__}"
    raise DScoreError(f"data '{reference}' returned {what}: return (X, y) or (X, y, groups)")


def _subject(settings: ProtocolSettings) -> tuple[str, Any]:
    """The estimator or callable, and how messages call it."""
    if settings.estimator is not None:
        key = f"estimator '{settings.estimator}'"
        found = call(settings.estimator, "estimator")
        if isinstance(found, type) or not hasattr(found, "fit"):
            raise DScoreError(
                f"{key} returned a {type(found).__name__}: return an estimator or a search object; for a function "
                "(X, y, train, test, seed) -> predictions use the key experiment"
            )
        return key, found
    assert settings.experiment is not None
    key = f"experiment '{settings.experiment}'"
    found = find(settings.experiment, "experiment")
    if isinstance(found, type) or hasattr(found, "fit") or not callable(found):
        raise DScoreError(
            f"{key} is a {type(found).__name__}: it must be a function (X, y, train, test, seed) -> predictions; for a "
            "function that returns an estimator use the key estimator"
        )
    if not _takes_five(found):
        raise DScoreError(
            f"{key} cannot be called with (X, y, train, test, seed), to return predictions on the test rows; for a "
            "function that returns an estimator use the key estimator"
        )
    return key, found


def _takes_five(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind_partial(*range(5))
    except TypeError:
        return False
    except ValueError:
        # Functions written in C may not say what they take.
        return True
    return True


def _grid(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    found = find(given, "param_grid")
    return call(given, "param_grid") if callable(found) else found


def _splits(given: int | str) -> Any:
    if isinstance(given, int):
        return given
    found = find(given, "splits")
    if isinstance(found, type) or (callable(found) and not hasattr(found, "split")):
        found = call(given, "splits")
    if hasattr(found, "split") or isinstance(found, (int, np.integer)):
        return found
    if not hasattr(found, "__iter__") or isinstance(found, (str, bytes)):
        raise DScoreError(
            f"splits '{given}' is a {type(found).__name__}: it must be, or return, a splitter, a number of folds or a "
            "list of (train rows, test rows)"
        )
    return list(found)


@contextmanager
def users_code(what: str, root: Path, threads: int | None) -> Iterator[None]:
    """Run somebody's code: from pytest's rootdir, with few threads, and with one sentence for what it raises.

    Parameters
    ----------
    what
        What is run, for messages.
    root
        pytest's rootdir.
    threads
        Most threads, None for as many as there are.

    Raises
    ------
    DScoreError
        The code raised; with the user's own file and line.
    """
    try:
        with importable(root), _random_states_kept(), _few_threads(threads):
            yield
    except (KeyboardInterrupt, GeneratorExit, pytest.exit.Exception, DScoreError):
        raise
    except BaseException as error:  # pytest.skip() in a user's function must not skip the gate.
        raise DScoreError(f"{what} raised {describe(error)}") from error


@contextmanager
def _random_states_kept() -> Iterator[None]:
    """Restore Python's and NumPy's global generators; the library sees to torch's."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


@contextmanager
def _few_threads(threads: int | None) -> Iterator[None]:
    if threads is None:
        yield
        return
    torch: Any = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    if torch:
        torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        if torch:
            torch.set_num_threads(before)
