"""Make the outer and inner folds, and refuse those that could not give an honest estimate."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from ..errors import SettingsError
from .inputs import check_int

Rows = NDArray[np.intp]
Fold = tuple[Rows, Rows]


def fold_seed(seed: int, *where: int) -> int:
    """Seed of one fold, from the one seed of the call; independent between folds, the same in every process."""
    return int(np.random.SeedSequence([seed, *where]).generate_state(1)[0])


def make_splitter(folds: Any, name: str, classify: bool, groups: Any, seed: int) -> Any:
    """Splitter from a number of folds; anything else is returned as it is.

    Stratified where the task is classification, keeping groups together where there are groups, always shuffled with
    `seed`.
    """
    if not isinstance(folds, (int, np.integer)) or isinstance(folds, bool):
        return folds
    number = check_int(folds, name, 2)
    if groups is not None:
        if classify:
            return StratifiedGroupKFold(number, shuffle=True, random_state=seed)
        return GroupKFold(number)
    kind = StratifiedKFold if classify else KFold
    return kind(number, shuffle=True, random_state=seed)


def draws_at_random(splitter: Any) -> bool:
    """Whether another ``random_state`` gives other folds: numbers of folds and shuffling splitters."""
    if isinstance(splitter, (int, np.integer)):
        return True
    return hasattr(splitter, "random_state") and bool(getattr(splitter, "shuffle", True))


def outer_folds(
    outer: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None, classify: bool, repeats: int, seed: int
) -> list[list[Fold]]:
    """Outer folds, one list per repeat, checked.

    Parameters
    ----------
    outer
        Number of folds, scikit-learn splitter, or list of (train rows, test rows).
    X, y, groups
        Data with n rows.
    classify
        Stratify, and check that every class has enough rows.
    repeats
        How many times to split anew; more than 1 needs a splitter that draws at random.
    seed
        Seed of the splits.

    Returns
    -------
    list of list of (train, test)

    Raises
    ------
    SettingsError
        Too few rows, rows of a class or groups; overlapping, empty or one-class parts; repeats that would be the same.
    """
    if isinstance(outer, (int, np.integer)):
        check_enough(check_int(outer, "outer", 2), y, groups, classify, "outer", "the data")
    elif repeats > 1 and not draws_at_random(outer):
        raise SettingsError(
            f"repeats={repeats} would repeat the same folds, for {type(outer).__name__} does not draw them at random: "
            "use repeats=1, a number of folds, or a splitter with random_state."
        )
    if isinstance(outer, (int, np.integer)) and repeats > 1 and groups is not None and not classify:
        raise SettingsError("repeats > 1 with groups and a numeric target: pass a random splitter (GroupShuffleSplit).")
    return [_one_repeat(outer, X, y, groups, classify, seed, r) for r in range(repeats)]


def _one_repeat(
    outer: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None, classify: bool, seed: int, repeat: int
) -> list[Fold]:
    splitter = make_splitter(outer, "outer", classify, groups, fold_seed(seed, repeat) % 2**31)
    if draws_at_random(outer) and splitter is outer:
        # The user's own seed stands for the first repeat; None would make two calls disagree.
        splitter = copy.copy(splitter)
        if splitter.random_state is None or repeat:
            splitter.random_state = fold_seed(seed, repeat) % 2**31
    name = type(outer).__name__ if hasattr(splitter, "split") else "outer"
    folds = [as_fold(pair, name, i) for i, pair in enumerate(all_pairs(splitter, X, y, groups))]
    check_folds(folds, len(y), name)
    for i, (train, test) in enumerate(folds):
        if classify and len(np.unique(y[train])) < 2:
            raise SettingsError(f"{name} fold {i}: the training part holds one class only ({y[train][0]!r}): stratify.")
        if groups is not None:
            shared = np.intersect1d(groups[train], groups[test])
            if len(shared):
                raise SettingsError(
                    f"{name} fold {i}: group {shared[0]!r} (and {len(shared) - 1} more) is on both sides: use a "
                    "splitter that keeps groups together, such as GroupKFold."
                )
    return folds


def all_pairs(splitter: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> list[Any]:
    """What a splitter yields for the data, or the pairs themselves where they are given as such.

    Whether groups were kept together is for the caller to check, whatever the splitter does with them.
    """
    if not hasattr(splitter, "split"):
        return list(splitter)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        return list(splitter.split(X, y, groups))


def check_folds(folds: Sequence[Fold], rows: int, name: str) -> None:
    """Check folds for empty or overlapping parts, repeated rows and rows that do not exist.

    Raises
    ------
    SettingsError
        Naming the splitter and the fold.
    """
    if not folds:
        raise SettingsError(f"{name} yields no folds: pass at least one (train, test) pair.")
    for i, (train, test) in enumerate(folds):
        for part, indices in (("training", train), ("test", test)):
            if len(indices) == 0:
                raise SettingsError(f"{name} fold {i}: the {part} part is empty: use fewer folds or another splitter.")
            if indices.min() < 0 or indices.max() >= rows:
                raise SettingsError(f"{name} fold {i}: the {part} part names a row outside 0..{rows - 1}.")
        shared = np.intersect1d(train, test)
        if len(shared):
            raise SettingsError(
                f"{name} fold {i}: {len(shared)} row(s) are in both the training and the test part (first: "
                f"{shared[0]}): use a splitter whose parts do not overlap."
            )
        if len(np.unique(test)) < len(test):
            raise SettingsError(f"{name} fold {i}: the test part names a row twice: name each row once.")


def check_enough(
    folds: int, y: NDArray[Any], groups: NDArray[Any] | None, classify: bool, name: str, where: str
) -> None:
    """Check that there are at least as many rows, groups and rows of each class as folds.

    Raises
    ------
    SettingsError
        Naming what is short, and by how much.
    """
    if len(y) < folds:
        raise SettingsError(f"{name}={folds} folds but {where} has {len(y)} rows only: use fewer folds.")
    if groups is not None and len(np.unique(groups)) < folds:
        found = len(np.unique(groups))
        raise SettingsError(f"{name}={folds} folds but {where} has {found} groups only: use fewer folds.")
    if not classify:
        return
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise SettingsError(f"{where} holds one class only ({classes[0]!r}): a classifier needs at least two.")
    if groups is None and counts.min() < folds:
        rare = classes[counts.argmin()]
        raise SettingsError(
            f"{name}={folds} folds but class {rare!r} has {counts.min()} row(s) in {where}: "
            "use fewer folds or more data."
        )


def is_partition(folds: Sequence[Fold], rows: int) -> bool:
    """Whether the test parts cover every row exactly once and each training part is the rest, as in K-fold."""
    tested = np.sort(np.concatenate([test for _, test in folds]))
    whole = len(tested) == rows and bool(np.all(tested == np.arange(rows)))
    return whole and all(len(train) + len(test) == rows for train, test in folds)


def as_fold(pair: Any, name: str, number: int) -> Fold:
    """Two arrays of row numbers from what a splitter yields: integers or a boolean mask for each part."""
    try:
        train, test = (np.asarray(part) for part in pair)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{name} fold {number} is not a (train rows, test rows) pair.") from error
    if train.dtype == bool:
        train, test = np.flatnonzero(train), np.flatnonzero(test)
    if train.size and train.dtype.kind not in "iu":
        raise SettingsError(f"{name} fold {number}: rows must be named by integers, not {train.dtype}.")
    return train.astype(np.intp), test.astype(np.intp)
