"""The pieces of work behind Cawley and Talbot's tables, each small enough to be kept and never run again."""

# mypy: disable-error-code="import-untyped,misc"
from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from benchmarks.nested_cv_paper import PAPER
from pytest_dscore.protocol import KernelRidgeClassifier, KernelRidgePress
from pytest_dscore.protocol.compare import median_selection
from pytest_dscore.protocol.experiment import Selection

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Result = dict[str, Any]

#: ARD is also judged where its search would have stopped after so many evaluations.
STOPS = (100, 300, 1000)
#: The median protocol uses the selections of so many first splits.
MEDIAN_SPLITS = 5
#: How much hangs on which splits come first is seen over so many random choices of them, among so many splits.
CHOICES = 20
CHOICE_SPLITS = 100
CV_FOLDS = 10

CENTRES = np.array([[-0.7, 0.3], [0.3, 0.3], [-0.3, 0.7], [0.4, 0.7]])
BAYES_ERROR = 0.1237
CURVE_STOPS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1200, 2000)
CURVE_ROWS = 64
CURVE_TEST_ROWS = 10_000
#: Kernel and number of added columns of noise.
CURVES: Mapping[str, tuple[str, int]] = {"rbf": ("rbf", 0), "ard": ("ard", 0), "ard, 8 columns of noise": ("ard", 8)}


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One data set with its splits.

    Parameters
    ----------
    name
        As in the paper, with underscores.
    X, y
        Data, shapes (n, d) and (n,); labels -1 and +1.
    splits
        (training rows, test rows), original realisations first.
    original
        How many original ones are at hand.
    fingerprint
        Of the file's arrays: results of other data are not taken for these.
    """

    name: str
    X: Floats
    y: NDArray[np.intp]
    splits: list[tuple[Rows, Rows]]
    original: int
    fingerprint: str


def load(name: str, folder: Path, wanted: int) -> Benchmark:
    """Read one set from `folder` and make `wanted` splits of it, or as many as the median protocol needs."""
    with np.load(folder / f"{name}.npz") as archive:
        data = {key: archive[key] for key in ("x", "t", "train", "test")}
    digest = hashlib.sha256()
    for key, array in data.items():
        digest.update(f"{key}{array.shape}{array.dtype}".encode() + np.ascontiguousarray(array).tobytes())
    splits = splits_of(data, PAPER[name].sizes, max(wanted, MEDIAN_SPLITS))
    y = np.where(data["t"] > 0, 1, -1)
    return Benchmark(name, data["x"], y, splits, len(data["train"]), digest.hexdigest()[:16])


def splits_of(data: Mapping[str, Any], sizes: tuple[int, int], wanted: int) -> list[tuple[Rows, Rows]]:
    """Original realisations as far as they are at hand, then random ones of the same sizes.

    The first splits are the same whatever `wanted` is.
    """
    given = [(a.astype(np.intp), b.astype(np.intp)) for a, b in zip(data["train"], data["test"], strict=True)][:wanted]
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(len(data["x"])) for _ in range(wanted - len(given))]
    return given + [(order[: sizes[0]], order[sizes[0] : sum(sizes)]) for order in drawn]


def internal_split(data: Benchmark, kernel: str, index: int) -> Result:
    """Select and train on one split's training rows; the error of its test rows, and PRESS (the sum)."""
    train, test = data.splits[index]
    search = KernelRidgePress(kernel).fit(data.X[train], data.y[train])
    found: Result = {
        "error": 1 - search.score(data.X[test], data.y[test]),
        "press": search.press_,
        "params": as_json(search.best_params_),
        "evaluations": len(search.press_path_),
    }
    if kernel == "ard":
        found["stopped"] = [
            stopped(search, stop, (data.X[train], data.y[train]), (data.X[test], data.y[test])) for stop in STOPS
        ]
    return found


def stopped(
    search: KernelRidgePress, stop: int, train: tuple[Floats, NDArray[Any]], test: tuple[Floats, NDArray[Any]]
) -> list[float]:
    """PRESS and test error of the best point among the first `stop` evaluations of a search."""
    best = int(search.press_path_[:stop].argmin())
    scales = 2.0 ** search.theta_path_[best]
    gamma = float(scales[1]) if search.kernel == "rbf" else scales[1:]
    model = KernelRidgeClassifier(search.kernel, gamma, float(scales[0])).fit(*train)
    return [model.press_, 1 - model.score(*test)]


def median_split(data: Benchmark, first: list[Result], index: int) -> Result:
    """The error of one split with the median of the first splits' parameters."""
    params = median_selection([Selection(result["params"], None) for result in first]).params
    return {"error": fixed_error(data, params, *data.splits[index]), "params": params}


def median_choice(data: Benchmark, results: list[Result], index: int) -> Result:
    """Bias of the median protocol, in points, had five random ones of all splits come first."""
    chosen = np.random.default_rng(index).choice(len(results), MEDIAN_SPLITS, replace=False)
    params = median_selection([Selection(results[i]["params"], None) for i in chosen]).params
    errors = [fixed_error(data, params, *split) for split in data.splits[: len(results)]]
    return {"bias": 100 * float(np.mean([result["error"] for result in results]) - np.mean(errors))}


def fixed_error(data: Benchmark, params: Mapping[str, Any], train: Rows, test: Rows) -> float:
    """Test error with parameters that were chosen elsewhere."""
    model = KernelRidgeClassifier(**params).fit(data.X[train], data.y[train])
    return float(1 - model.score(data.X[test], data.y[test]))


def external_split(data: Benchmark, whole: Mapping[str, Any], index: int) -> Result:
    """Ten-fold cross-validation within one split's training rows: mean internal and external error of its folds.

    `whole` is what was selected on all of those training rows, and external is with that in every fold.
    """
    rows = data.splits[index][0]
    splitter = StratifiedKFold(CV_FOLDS, shuffle=True, random_state=index)
    folds = [(rows[train], rows[test]) for train, test in splitter.split(data.X[rows], data.y[rows])]
    chosen = [KernelRidgePress().fit(data.X[train], data.y[train]).best_params_ for train, _ in folds]
    return {
        "internal": float(np.mean([fixed_error(data, p, *fold) for p, fold in zip(chosen, folds, strict=True)])),
        "external": float(np.mean([fixed_error(data, whole, *fold) for fold in folds])),
    }


def curve(index: int) -> Result:
    """Over-fitting curves of one realisation of the synthetic benchmark: PRESS per row and error after each stop."""
    rng = np.random.default_rng([2010, index])
    X, y = synthetic(CURVE_ROWS, rng)
    Z, t = synthetic(CURVE_TEST_ROWS, rng)
    widths = [0.4 * rng.normal(size=(len(A), max(noise for _, noise in CURVES.values()))) for A in (X, Z)]
    found: Result = {}
    for name, (kernel, noise) in CURVES.items():
        train, test = ((np.c_[A, N[:, :noise]], b) for A, N, b in zip((X, Z), widths, (y, t), strict=True))
        search = KernelRidgePress(kernel, max_evaluations=CURVE_STOPS[-1]).fit(*train)
        steps = np.array([stopped(search, stop, train, test) for stop in CURVE_STOPS])
        found[name] = {"press": list(steps[:, 0] / CURVE_ROWS), "error": list(steps[:, 1])}
    return found


def synthetic(n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[Any]]:
    """Draw n rows of the paper's synthetic benchmark: four Gaussians of variance 0.04, two for each class."""
    which = rng.integers(0, 4, n)
    return CENTRES[which] + 0.2 * rng.normal(size=(n, 2)), np.where(which < 2, -1, 1)


def as_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters in types that JSON knows; every digit survives."""
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in params.items()}
